/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The arena of slots. The CPU sets a mark once, before any peer knows its slot. After
 * that only atomics of the home NIC change it, and its generation continues over all
 * owners of the slot.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_home.h"
#include <uct/ib/varuna/rc_varuna.h>
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <ucs/sys/uid.h>
#include <ucs/arch/cpu.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#define UCT_VARUNA_ARENA_BLOCKS      (UCT_VARUNA_SLOTS_MAX / \
                                      UCT_VARUNA_SLOT_BLOCK)

/* The lock protects all of it */
static struct {
    pthread_mutex_t            lock;
    unsigned                   refcount;
    uct_varuna_arena_t         memory;    /* Its life goes up with each fork(): a child may
                                             close what it has inherited */
    uint8_t                    used[UCT_VARUNA_ARENA_BLOCKS];
    unsigned                   next;      /* Blocks take turns, so a late packet
                                             finds an old generation */
} uct_varuna_arena = {
    .lock = PTHREAD_MUTEX_INITIALIZER
};

static void *uct_varuna_arena_alloc_pages(size_t size, const char *name)
{
    void *pages;

    if (ucs_posix_memalign(&pages, ucs_get_page_size(), size, name) != 0) {
        ucs_error("failed to allocate %zu bytes for slots of atomics", size);
        return NULL;
    }

    memset(pages, 0, size);
    return pages;
}

static ucs_status_t uct_varuna_arena_create(uct_varuna_arena_t *arena)
{
    uint64_t gen;
    unsigned i;

    arena->slots = uct_varuna_arena_alloc_pages(UCT_VARUNA_SLOTS_MAX *
                                                sizeof(*arena->slots),
                                                "varuna_slots");
    if (arena->slots == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    arena->marks = uct_varuna_arena_alloc_pages(UCT_VARUNA_SLOTS_MAX *
                                                sizeof(*arena->marks),
                                                "varuna_marks");
    if (arena->marks == NULL) {
        ucs_free(arena->slots);
        arena->slots = NULL;
        return UCS_ERR_NO_MEMORY;
    }

    /* Rule 1: a process must not use the generations of an earlier process that had the
     * same memory, so all of them start at random */
    gen = ucs_generate_uuid((uintptr_t)arena->marks);
    for (i = 0; i < UCT_VARUNA_SLOTS_MAX; ++i) {
        arena->marks[i] = uct_varuna_mark((gen + (i * 0x9e3779b97f4a7c15ul)) &
                                          UCT_VARUNA_UID_GEN_MASK,
                                          UCT_VARUNA_MARK_PENDING);
    }

    memset(uct_varuna_arena.used, 0, sizeof(uct_varuna_arena.used));
    uct_varuna_arena.next = 0;
    return UCS_OK;
}

ucs_status_t uct_varuna_arena_get(uct_varuna_arena_t *arena)
{
    ucs_status_t status = UCS_OK;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    if (uct_varuna_arena.refcount == 0) {
        status = uct_varuna_arena_create(&uct_varuna_arena.memory);
    }

    if (status == UCS_OK) {
        ++uct_varuna_arena.refcount;
        *arena = uct_varuna_arena.memory;
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
    return status;
}

/* Lock held. @return Whether it is that of this process. */
static int uct_varuna_arena_is_own(const uct_varuna_arena_t *arena)
{
    return arena->life == uct_varuna_arena.memory.life;
}

void uct_varuna_arena_put(const uct_varuna_arena_t *arena)
{
    uct_varuna_arena_t last = {NULL, NULL, 0};

    pthread_mutex_lock(&uct_varuna_arena.lock);
    if (uct_varuna_arena_is_own(arena) && (--uct_varuna_arena.refcount == 0)) {
        last                           = uct_varuna_arena.memory;
        uct_varuna_arena.memory.slots = NULL;
        uct_varuna_arena.memory.marks = NULL;
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);

    ucs_free(last.marks);
    ucs_free(last.slots);
}

uint32_t uct_varuna_arena_alloc(void)
{
    uint32_t first = UCT_VARUNA_SLOT_NONE;
    unsigned i, block;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    for (i = 0; i < UCT_VARUNA_ARENA_BLOCKS; ++i) {
        block = (uct_varuna_arena.next + i) % UCT_VARUNA_ARENA_BLOCKS;
        if (!uct_varuna_arena.used[block]) {
            uct_varuna_arena.used[block] = 1;
            uct_varuna_arena.next        = block + 1;
            first                        = block * UCT_VARUNA_SLOT_BLOCK;
            break;
        }
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
    return first;
}

void uct_varuna_arena_free(const uct_varuna_arena_t *arena, uint32_t first)
{
    unsigned block = first / UCT_VARUNA_SLOT_BLOCK;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    if (uct_varuna_arena_is_own(arena)) {
        ucs_assert(uct_varuna_arena.used[block]);
        uct_varuna_arena.used[block] = 0;
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
}

/* Copy a body, which its owner may be writing, and then its mark, see
 * uct_varuna_slot_t.
 * @return 0 if there is no arena. */
static int uct_varuna_arena_peek(uint32_t index, uct_varuna_slot_t *slot,
                                 uint64_t *mark_p)
{
    const volatile uint64_t *words;
    unsigned i;
    int found;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    found = (uct_varuna_arena.memory.slots != NULL);
    if (found) {
        words = (const volatile uint64_t*)&uct_varuna_arena.memory.slots[index];
        for (i = 0; i < sizeof(*slot) / sizeof(*words); ++i) {
            ((uint64_t*)slot)[i] = words[i];
        }
        ucs_memory_cpu_load_fence();
        *mark_p = *(const volatile uint64_t*)
                          &uct_varuna_arena.memory.marks[index];
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
    return found;
}

static uint64_t uct_varuna_arena_load(const volatile void *address,
                                      unsigned width)
{
    return (width == sizeof(uint64_t)) ? *(const volatile uint64_t*)address :
           *(const volatile uint32_t*)address;
}

/* @return Whether the slot's UID is where @a value was found. */
static int uct_varuna_arena_find(uint64_t value, unsigned width, uint64_t addr,
                                 uint32_t index, uct_varuna_slot_t *slot,
                                 uint64_t *mark_p, uct_varuna_uid_place_t *place_p)
{
    return uct_varuna_arena_peek(index, slot, mark_p) &&
           uct_varuna_uid_find(value, width, addr, index, slot, place_p);
}

/* Rules 4 and 5, for a reader that cannot change a mark, because the CPU's atomics are
 * not atomic with the NIC's. It waits until a client has. */
int rc_varuna_atomic_read(const volatile void *address, unsigned width,
                          uint64_t *value_p)
{
    uint64_t addr = (uintptr_t)address;
    uct_varuna_uid_place_t place;
    uct_varuna_slot_t slot;
    uint64_t value, result, mark, uid;
    uint32_t index;
    int half;

    if (((width != sizeof(uint32_t)) && (width != sizeof(uint64_t))) ||
        (addr % width)) {
        return -EINVAL;
    }

    value = result = uct_varuna_arena_load(address, width);
    for (half = 0; (half = uct_varuna_uid_parse(value, width, UCT_VARUNA_SLOTS_MAX,
                                                half, &index)) >= 0; ++half) {
        ucs_memory_cpu_load_fence();
        if (!uct_varuna_arena_find(value, width, addr, index, &slot, &mark, &place)) {
            continue;
        }

        if (place.width > width) {
            /* All of the UID must be there, and its body is read after that */
            uid = place.uid;
            if (uct_varuna_arena_load((const void*)place.addr, place.width) != uid) {
                continue;
            }

            ucs_memory_cpu_load_fence();
            if (!uct_varuna_arena_find(value, width, addr, index, &slot, &mark,
                                       &place) || (place.uid != uid)) {
                return -EAGAIN;
            }
        }

        switch (uct_varuna_mark_check(mark, uct_varuna_slot_gen(&slot))) {
        case UCT_VARUNA_UID_FOREIGN:
            break;
        case UCT_VARUNA_UID_DONE:
            result = uct_varuna_uid_replace(result, width, addr, &place, slot.swap);
            break;
        default:
            return -EAGAIN;
        }
    }

    ucs_memory_cpu_load_fence();
    if (uct_varuna_arena_load(address, width) != value) {
        return -EAGAIN; /* It was one, and is over */
    }

    *value_p = result;
    return 0;
}

/* The memory stays: the parent has registered it, so it may not even be mapped here */
void uct_varuna_arena_forked(void)
{
    pthread_mutex_init(&uct_varuna_arena.lock, NULL);
    uct_varuna_arena.refcount     = 0;
    uct_varuna_arena.memory.slots = NULL;
    uct_varuna_arena.memory.marks = NULL;
    ++uct_varuna_arena.memory.life;
}

/* --- Blocks --- */

/* Which parts of the arena peers may access, and with which keys (docs/SECURITY.md):
 *
 *   all bodies          read             every requester
 *   all marks           read, atomic     every requester
 *   a block of bodies   write            the requester whose slots they are, by an address
 *                                        that no requester has known before
 *
 * Called by varuna_home.c. */

/* --- The arena --- */

/* Slots for atomics that we execute; the CPU writes them. Without them such an atomic
 * fails if its access is lost. */
static void uct_varuna_blocks_take_own(uct_varuna_home_t *home)
{
    uint32_t first = uct_varuna_arena_alloc();

    if (first == UCT_VARUNA_SLOT_NONE) {
        ucs_diag("no slots are left for atomics that the home NIC executes");
        return;
    }

    uct_varuna_slots_init(&home->own, first, UCT_VARUNA_SLOT_BLOCK,
                          &home->arena.marks[first], ucs_get_time());
}

ucs_status_t uct_varuna_blocks_init(uct_varuna_home_t *home)
{
    uct_varuna_md_t *md = home->ctl->iface->md;
    ucs_status_t status;

    status = uct_varuna_arena_get(&home->arena);
    if (status != UCS_OK) {
        return status;
    }

    /* Without relaxed ordering (rule 2) */
    status = uct_varuna_own_reg(md, UINT8_MAX, home->arena.slots,
                                UCT_VARUNA_SLOTS_MAX *
                                sizeof(*home->arena.slots),
                                UCT_VARUNA_MR_READ, 1, UCS_TIME_INFINITY,
                                &home->read_own);
    if (status != UCS_OK) {
        goto err_put;
    }

    status = uct_varuna_own_reg(md, UINT8_MAX, home->arena.marks,
                                UCT_VARUNA_SLOTS_MAX *
                                sizeof(*home->arena.marks),
                                UCT_VARUNA_MR_READ | UCT_VARUNA_MR_ATOMIC, 1,
                                UCS_TIME_INFINITY, &home->mark_own);
    if (status != UCS_OK) {
        goto err_dereg_read;
    }

    status = uct_rkey_unpack(&uct_varuna_component, home->mark_own.key,
                             &home->mark);
    if (status != UCS_OK) {
        goto err_dereg_mark;
    }

    uct_varuna_blocks_take_own(home);
    return UCS_OK;

err_dereg_mark:
    (void)uct_varuna_own_dereg(md, &home->mark_own);
err_dereg_read:
    (void)uct_varuna_own_dereg(md, &home->read_own);
err_put:
    uct_varuna_arena_put(&home->arena);
    memset(&home->arena, 0, sizeof(home->arena));
    return status;
}

void uct_varuna_blocks_cleanup(uct_varuna_home_t *home)
{
    uct_varuna_md_t *md = home->ctl->iface->md;
    int is_left;

    if (home->arena.slots == NULL) {
        return;
    }

    if (home->own.num > 0) {
        uct_varuna_arena_free(&home->arena, home->own.first);
    }

    uct_rkey_release(&uct_varuna_component, &home->mark);
    is_left  = (uct_varuna_own_dereg(md, &home->mark_own) != UCS_OK);
    is_left |= (uct_varuna_own_dereg(md, &home->read_own) != UCS_OK);
    if (!is_left) {
        uct_varuna_arena_put(&home->arena); /* A NIC may access it otherwise */
    }
}


/* --- Blocks of requesters --- */

static void uct_varuna_block_get(uct_varuna_home_t *home,
                                 uct_varuna_home_client_t *client)
{
    uct_varuna_md_t *md = home->ctl->iface->md;
    uint32_t first      = uct_varuna_arena_alloc();
    ucs_status_t status;

    if (first == UCT_VARUNA_SLOT_NONE) {
        ucs_debug("an endpoint of peer 0x%lx gets no slots: its atomics are requests",
                  client->peer->uuid);
        return;
    }

    status = uct_varuna_own_reg(md, UINT8_MAX, &home->arena.slots[first],
                                UCT_VARUNA_SLOT_BLOCK * sizeof(*home->arena.slots),
                                UCT_VARUNA_MR_WRITE, 0,
                                ucs_time_from_sec(UCT_VARUNA_OWN_PATIENCE),
                                &client->write_own);
    if ((status == UCS_OK) && (client->write_own.missing == 0)) {
        client->first_slot = first;
        return;
    }

    /* The home may be, or move to, a NIC without a key for it: requests are used instead.
     * A block that a NIC does not let go stays taken */
    if (uct_varuna_own_dereg(md, &client->write_own) == UCS_OK) {
        uct_varuna_arena_free(&home->arena, first);
    }
}

static size_t uct_varuna_block_pack_key(void *tail, size_t length,
                                        const uct_varuna_own_t *own)
{
    memcpy(UCS_PTR_BYTE_OFFSET(tail, length), own->key, own->key_len);
    return length + own->key_len;
}

size_t uct_varuna_blocks_fill_open(uct_varuna_home_t *home,
                                   uct_varuna_home_client_t *client,
                                   uct_varuna_ctl_open_rep_t *rep, void *tail)
{
    size_t marks_size = UCT_VARUNA_SLOT_BLOCK *
                        sizeof(*home->arena.marks);
    size_t length;

    if (client->first_slot == UCT_VARUNA_SLOT_NONE) {
        uct_varuna_block_get(home, client);
    }

    rep->slots_addr  = (uintptr_t)home->arena.slots;
    rep->marks_addr  = (uintptr_t)home->arena.marks;
    rep->arena_slots = UCT_VARUNA_SLOTS_MAX;
    length           = uct_varuna_block_pack_key(tail, 0, &home->read_own);
    length           = uct_varuna_block_pack_key(tail, length,
                                                 &home->mark_own);
    if (client->first_slot == UCT_VARUNA_SLOT_NONE) {
        return length;
    }

    rep->first_slot = client->first_slot;
    rep->num_slots  = UCT_VARUNA_SLOT_BLOCK;
    rep->own_addr   = client->write_own.address;
    length          = uct_varuna_block_pack_key(tail, length, &client->write_own);
    memcpy(UCS_PTR_BYTE_OFFSET(tail, length),
           &home->arena.marks[client->first_slot], marks_size);
    return length + marks_size;
}

void uct_varuna_blocks_close_client(uct_varuna_home_t *home,
                                    uct_varuna_home_client_t *client)
{
    uct_varuna_dead_block_t *block;
    uct_varuna_job_t *job;

    ucs_list_for_each(job, &home->jobs, list) {
        if (job->client == client) {
            job->client = NULL; /* Nobody waits for its result */
        }
    }

    if (client->first_slot == UCT_VARUNA_SLOT_NONE) {
        return;
    }

    /* From now on the requester cannot write there */
    if (uct_varuna_own_dereg(home->ctl->iface->md, &client->write_own) != UCS_OK) {
        client->first_slot = UCT_VARUNA_SLOT_NONE;
        return; /* ... unless a NIC hangs: the block stays taken */
    }

    block = ucs_calloc(1, sizeof(*block), "varuna_dead_block");
    if (block == NULL) {
        return; /* The block stays taken, which is safe */
    }

    /* Its RC queue pairs are stopped; packets on other lanes expire until then */
    block->first     = client->first_slot;
    block->due       = uct_varuna_ctl_now(home->ctl) +
                       home->ctl->iface->config.packet_lifetime;
    client->first_slot = UCT_VARUNA_SLOT_NONE;
    ucs_list_add_tail(&home->dead_blocks, &block->list);
}


/* --- The worker --- */

/* The responder's background worker (paper, "Confirm"; docs/ATOMICS.md, rule 7): if the
 * mark of a slot has not changed for a while, the slot's target may hold a UID. The
 * worker reads the target like any client, with the same state machine, which resolves
 * a UID: through the home NIC, not by the CPU. When the owner is gone, and its packets
 * have expired, its block of slots is swept and freed. */

/* Whether a slot's target has to be read, and is being read */
typedef enum uct_varuna_worker_read {
    UCT_VARUNA_WORKER_NOTHING,   /* It holds no UID */
    UCT_VARUNA_WORKER_STARTED,
    UCT_VARUNA_WORKER_LATER      /* It may hold one, and cannot be read now */
} uct_varuna_worker_read_t;

/* Blocks of living owners that are checked in one period */
#define UCT_VARUNA_WORKER_BLOCKS     8


/* Whether the slot's target may hold its UID: a guess, because body and mark are read
 * at different times. @return Its width, 0 if not. */
static unsigned uct_varuna_worker_slot_width(const uct_varuna_slot_t *slot,
                                             uint64_t mark)
{
    unsigned width;

    if ((slot->addr == 0) || (slot->gen_head != slot->gen_tail) ||
        (uct_varuna_mark_gen(mark) != uct_varuna_slot_gen(slot))) {
        return 0;
    }

    width = (slot->gen_head & UCT_VARUNA_SLOT_WIDTH32) ? sizeof(uint32_t) :
            sizeof(uint64_t);
    return (slot->addr % width) ? 0 : width;
}

/* Keys of a region of ours. It may have none for a NIC that was dead when it was
 * registered. @return Whether the home NIC has one. */
static int uct_varuna_worker_find_rkeys(uct_varuna_home_t *home,
                                        uint64_t addr, unsigned width,
                                        uint64_t *rkeys)
{
    const uct_varuna_iface_t *iface = home->ctl->iface;
    uct_varuna_home_name_t name;
    unsigned link, nic;
    uct_rkey_t rkey;

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        rkeys[nic] = UCT_INVALID_RKEY;
    }

    for (link = 0; link < iface->num_links; ++link) {
        nic = iface->links[link].nic;
        if (uct_varuna_md_find_rkey(iface->md, nic, addr, width, &rkey)) {
            rkeys[nic] = rkey;
        }
    }

    uct_varuna_home_name_get(&name);
    return (name.nic < UCT_VARUNA_MAX_LINKS) && (rkeys[name.nic] != UCT_INVALID_RKEY);
}

/* Read the slot's target. The owner has written the address, so only memory of which a key
 * was given away is read. Another address need not be a lie: a slot keeps the address of
 * its last use, and that memory may be gone. */
static uct_varuna_worker_read_t
uct_varuna_worker_read_target(uct_varuna_home_t *home, uint32_t index, int advance)
{
    uct_varuna_slot_t slot = home->arena.slots[index];
    unsigned width         =
            uct_varuna_worker_slot_width(&slot, home->arena.marks[index]);
    uint64_t rkeys[UCT_VARUNA_MAX_LINKS];
    uct_varuna_job_t *job;

    if ((width == 0) ||
        !uct_varuna_md_is_shared(home->ctl->iface->md, slot.addr, width)) {
        return UCT_VARUNA_WORKER_NOTHING;
    }

    job = uct_varuna_worker_find_rkeys(home, slot.addr, width, rkeys) ?
          uct_varuna_home_job_create(home) : NULL;
    if (job == NULL) {
        return UCT_VARUNA_WORKER_LATER;
    }

    /* compare == swap: a read that resolves a UID (rule 8) */
    uct_varuna_amo_sm_start(&job->sm, UCT_ATOMIC_OP_CSWAP, width, slot.addr, 0,
                            0, UCT_VARUNA_SLOTS_MAX);
    job->is_sweep = 1;
    job->index    = index;
    job->advance  = advance;
    job->act      = job->sm.act;
    job->addr     = slot.addr;
    job->width    = width;
    memcpy(job->rkeys, rkeys, sizeof(job->rkeys));
    return UCT_VARUNA_WORKER_STARTED;
}

static int uct_varuna_worker_has_sweeps(const uct_varuna_home_t *home)
{
    const uct_varuna_job_t *job;

    ucs_list_for_each(job, &home->jobs, list) {
        if (job->is_sweep) {
            return 1;
        }
    }

    return 0;
}

/* Check the slots of a block. @return LATER if any cannot be read now, STARTED if others
 * are. */
static uct_varuna_worker_read_t
uct_varuna_worker_sweep_block(uct_varuna_home_t *home,
                              const uct_varuna_dead_block_t *block)
{
    uct_varuna_worker_read_t result = UCT_VARUNA_WORKER_NOTHING;
    uct_varuna_worker_read_t slot;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_SLOT_BLOCK; ++i) {
        slot   = uct_varuna_worker_read_target(home, block->first + i, 1);
        result = ucs_max(result, slot);
    }

    return result;
}

/* Rule 7: free the slots of owners that are gone. All that are due at once, because
 * endpoints may be closed faster than the timer's period. Called when no sweep is under
 * way, so a sweep that was started for a block is done. A block whose targets cannot all be
 * read now is kept: what a slot's UID means is lost when the slot is used again. */
static void uct_varuna_worker_sweep_dead(uct_varuna_home_t *home)
{
    ucs_time_t now = uct_varuna_ctl_now(home->ctl);
    uct_varuna_dead_block_t *block, *tmp;
    uct_varuna_worker_read_t sweep;

    ucs_list_for_each_safe(block, tmp, &home->dead_blocks, list) {
        if (now < block->due) {
            return; /* The list is in order */
        }

        if (!block->swept) {
            sweep        = uct_varuna_worker_sweep_block(home, block);
            block->swept = (sweep == UCT_VARUNA_WORKER_STARTED);
            if (sweep != UCT_VARUNA_WORKER_NOTHING) {
                continue;
            }
        }

        ucs_list_del(&block->list);
        uct_varuna_arena_free(&home->arena, block->first);
        ucs_debug("slots from %u are free again", block->first);
        ++home->stats.swept;
        ucs_free(block);
    }
}

/* A living owner confirms at once. A slot that has not changed after one period may
 * belong to one that hangs, or has died without a CLOSE. */
static void uct_varuna_worker_help_old(uct_varuna_home_t *home)
{
    uint64_t mark;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_WORKER_BLOCKS * UCT_VARUNA_SLOT_BLOCK; ++i) {
        home->scan_next = (home->scan_next + 1) % UCT_VARUNA_SLOTS_MAX;
        mark            = home->arena.marks[home->scan_next];
        if (uct_varuna_worker_slot_width(&home->arena.slots[home->scan_next],
                                         mark) == 0) {
            home->seen_marks[home->scan_next] = 0;
            continue;
        }

        if (home->seen_marks[home->scan_next] != mark) {
            home->seen_marks[home->scan_next] = mark;
            continue;
        }

        uct_varuna_worker_read_target(home, home->scan_next, 0);
    }
}

void uct_varuna_worker_step(uct_varuna_home_t *home)
{
    if ((home->arena.slots != NULL) && !uct_varuna_worker_has_sweeps(home)) {
        uct_varuna_worker_sweep_dead(home);
        uct_varuna_worker_help_old(home);
    }
}
