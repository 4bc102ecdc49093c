/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The arena of slots. The CPU sets a mark before any peer knows its slot. After that only
 * atomics of the home NIC change it, until no NIC executes anything there any more, and its
 * generation continues over all owners of the slot.
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
#include <uct/ib/varuna/responder/cpu/varuna_fault.h>

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

/* The lock protects all of it. While it is held, no memory is allocated or freed: that may
 * deregister memory, which takes it, too. */
static struct {
    pthread_mutex_t            lock;
    unsigned                   refcount;
    uct_varuna_arena_t         memory;    /* Its life goes up with each fork(): a child may
                                             close what it has inherited */
    uint8_t                    used[UCT_VARUNA_ARENA_BLOCKS];
    unsigned                   next;      /* Blocks take turns, so a late packet
                                             finds an old generation */
    ucs_list_link_t            homes;     /* uct_varuna_home_t: all that use it */
    ucs_list_link_t            left;      /* uct_varuna_dead_block_t, by interfaces that are
                                             closed, for others of their memory domain */
} uct_varuna_arena = {
    .lock  = PTHREAD_MUTEX_INITIALIZER,
    .homes = UCS_LIST_INITIALIZER(&uct_varuna_arena.homes, &uct_varuna_arena.homes),
    .left  = UCS_LIST_INITIALIZER(&uct_varuna_arena.left, &uct_varuna_arena.left)
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

    return UCS_OK;
}

static void uct_varuna_arena_destroy(const uct_varuna_arena_t *arena)
{
    ucs_free(arena->marks);
    ucs_free(arena->slots);
}

/* Take a reference. @param [inout] fresh  If there is none: an arena, or no slots. @return
 * Whether there is one. */
static int uct_varuna_arena_try_get(uct_varuna_arena_t *fresh, uct_varuna_arena_t *arena)
{
    int found;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    if ((uct_varuna_arena.refcount == 0) && (fresh->slots != NULL)) {
        uct_varuna_arena.memory.slots = fresh->slots;
        uct_varuna_arena.memory.marks = fresh->marks;
        uct_varuna_arena.next         = 0;
        memset(uct_varuna_arena.used, 0, sizeof(uct_varuna_arena.used));
        memset(fresh, 0, sizeof(*fresh));
    }

    found = (uct_varuna_arena.memory.slots != NULL);
    if (found) {
        ++uct_varuna_arena.refcount;
        *arena = uct_varuna_arena.memory;
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
    return found;
}

ucs_status_t uct_varuna_arena_get(uct_varuna_arena_t *arena)
{
    uct_varuna_arena_t fresh = {NULL, NULL, 0};
    ucs_status_t status;

    if (uct_varuna_arena_try_get(&fresh, arena)) {
        return UCS_OK;
    }

    status = uct_varuna_arena_create(&fresh);
    if (status != UCS_OK) {
        return status;
    }

    (void)uct_varuna_arena_try_get(&fresh, arena);
    uct_varuna_arena_destroy(&fresh);
    return UCS_OK;
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

    uct_varuna_arena_destroy(&last);
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
 * uct_varuna_slot_t. Lock held. */
static void uct_varuna_arena_copy(uint32_t index, uct_varuna_slot_t *slot,
                                  uint64_t *mark_p)
{
    const volatile uint64_t *words =
            (const volatile uint64_t*)&uct_varuna_arena.memory.slots[index];
    unsigned i;

    for (i = 0; i < sizeof(*slot) / sizeof(*words); ++i) {
        ((uint64_t*)slot)[i] = words[i];
    }
    ucs_memory_cpu_load_fence();
    *mark_p = *(const volatile uint64_t*)&uct_varuna_arena.memory.marks[index];
}

/* @return 0 if there is no arena. */
static int uct_varuna_arena_peek(uint32_t index, uct_varuna_slot_t *slot,
                                 uint64_t *mark_p)
{
    int found;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    found = (uct_varuna_arena.memory.slots != NULL);
    if (found) {
        uct_varuna_arena_copy(index, slot, mark_p);
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
    ucs_list_head_init(&uct_varuna_arena.homes);
    ucs_list_head_init(&uct_varuna_arena.left);
}

/* --- Without a NIC --- */

/* What a UID means is lost when its slot is used again. So when nobody can resolve those in
 * some memory any more, because its keys are invalid, or because the queue pairs that could
 * use them are gone, the CPU does so: no NIC executes anything there then. */

typedef struct uct_varuna_arena_swap {
    uint64_t                   addr;
    unsigned                   width;
    uint64_t                   uid;
    uint64_t                   value;
} uct_varuna_arena_swap_t;

static void uct_varuna_arena_run_swap(void *arg)
{
    uct_varuna_arena_swap_t *swap = arg;
    uint64_t uid                  = swap->uid;
    uint32_t uid32                = swap->uid;

    if (swap->width == sizeof(uint64_t)) {
        __atomic_compare_exchange_n((uint64_t*)swap->addr, &uid, swap->value, 0,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    } else {
        __atomic_compare_exchange_n((uint32_t*)swap->addr, &uid32, (uint32_t)swap->value, 0,
                                    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
    }
}

/* The slot's target is, or was, memory that peers had a key of. It may be unmapped. */
static void uct_varuna_arena_resolve(uint32_t index, unsigned width,
                                     const uct_varuna_slot_t *slot, uint64_t mark)
{
    uct_varuna_arena_swap_t swap = {
        .addr  = slot->addr,
        .width = width,
        .uid   = uct_varuna_uid(index, uct_varuna_slot_gen(slot), width),
        .value = (uct_varuna_mark_state(mark) == UCT_VARUNA_MARK_ABORTED) ?
                 slot->compare : slot->swap
    };

    (void)uct_varuna_fault_run(swap.addr, uct_varuna_arena_run_swap, &swap);
}

/* Lock held. @return Whether peers of any interface can access the word. */
static int uct_varuna_arena_is_reached(uint64_t addr, unsigned width)
{
    const uct_varuna_home_t *home;

    ucs_list_for_each(home, &uct_varuna_arena.homes, list) {
        if (uct_varuna_md_is_shared(home->ctl->iface->md, addr, width)) {
            return 1;
        }
    }

    return 0;
}

/* A region is deregistered. Its owners may live, and use their slots for other memory
 * meanwhile. Any thread */
static void uct_varuna_arena_end_mem(const uct_varuna_mem_t *mem)
{
    uint64_t first = (uintptr_t)mem->address;
    uct_varuna_slot_t slot;
    unsigned width;
    uint64_t mark;
    uint32_t i;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    for (i = 0; (uct_varuna_arena.memory.slots != NULL) && (i < UCT_VARUNA_SLOTS_MAX); ++i) {
        if (!uct_varuna_arena.used[i / UCT_VARUNA_SLOT_BLOCK]) {
            i |= UCT_VARUNA_SLOT_BLOCK - 1; /* The whole block */
            continue;
        }

        uct_varuna_arena_copy(i, &slot, &mark);
        width = uct_varuna_arena_slot_width(&slot, mark);
        if ((width > 0) && ((slot.addr - first) < mem->length) &&
            ((slot.addr - first + width) <= mem->length) &&
            !uct_varuna_arena_is_reached(slot.addr, width)) {
            uct_varuna_arena_resolve(i, width, &slot, mark);
        }
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
}

/* The queue pairs of the memory domain are gone: resolve what its memory holds, and end
 * these generations. A slot that is met in another domain's memory keeps its block.
 * Lock held. */
static void uct_varuna_arena_end_block(const uct_varuna_dead_block_t *block)
{
    uint64_t *marks = uct_varuna_arena.memory.marks;
    int is_met      = 0;
    const uct_varuna_slot_t *slot;
    unsigned width;
    uint32_t i;

    for (i = block->first; i < (block->first + UCT_VARUNA_SLOT_BLOCK); ++i) {
        slot  = &uct_varuna_arena.memory.slots[i];
        width = uct_varuna_arena_slot_width(slot, marks[i]);
        if (width == 0) {
            continue;
        } else if (uct_varuna_arena_is_reached(slot->addr, width)) {
            is_met = 1;
            continue;
        }

        if (uct_varuna_md_is_shared(block->md, slot->addr, width)) {
            uct_varuna_arena_resolve(i, width, slot, marks[i]);
        }
        marks[i] = uct_varuna_mark(uct_varuna_gen_next(uct_varuna_mark_gen(marks[i])),
                                   UCT_VARUNA_MARK_PENDING);
    }

    uct_varuna_arena.used[block->first / UCT_VARUNA_SLOT_BLOCK] = is_met;
}

/* Lock held */
static int uct_varuna_arena_has_md(const uct_varuna_md_t *md)
{
    const uct_varuna_home_t *home;

    ucs_list_for_each(home, &uct_varuna_arena.homes, list) {
        if (home->ctl->iface->md == md) {
            return 1;
        }
    }

    return 0;
}

static void uct_varuna_arena_join(uct_varuna_home_t *home)
{
    home->ctl->iface->md->mem_ended = uct_varuna_arena_end_mem;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    ucs_list_add_tail(&uct_varuna_arena.homes, &home->list);
    pthread_mutex_unlock(&uct_varuna_arena.lock);
}

void uct_varuna_arena_adopt(uct_varuna_home_t *home)
{
    uct_varuna_dead_block_t *block, *tmp;

    pthread_mutex_lock(&uct_varuna_arena.lock);
    ucs_list_for_each_safe(block, tmp, &uct_varuna_arena.left, list) {
        if (block->md == home->ctl->iface->md) {
            ucs_list_del(&block->list);
            ucs_list_add_tail(&home->dead_blocks, &block->list);
        }
    }
    pthread_mutex_unlock(&uct_varuna_arena.lock);
}

/* The interface is closed, its queue pairs are gone: leave its dead blocks to others, or end
 * them. */
static void uct_varuna_arena_leave(uct_varuna_home_t *home)
{
    const uct_varuna_md_t *md = home->ctl->iface->md;
    uct_varuna_dead_block_t *block, *tmp;
    ucs_list_link_t ended;

    ucs_list_head_init(&ended);
    pthread_mutex_lock(&uct_varuna_arena.lock);
    if (!uct_varuna_arena_is_own(&home->arena)) {
        ucs_list_splice_tail(&ended, &home->dead_blocks); /* The parent's */
        goto out;
    }

    ucs_list_del(&home->list);
    ucs_list_splice_tail(&uct_varuna_arena.left, &home->dead_blocks);
    if (uct_varuna_arena_has_md(md)) {
        goto out;
    }

    ucs_list_for_each_safe(block, tmp, &uct_varuna_arena.left, list) {
        if (block->md == md) {
            uct_varuna_arena_end_block(block);
            ucs_list_del(&block->list);
            ucs_list_add_tail(&ended, &block->list);
        }
    }

out:
    pthread_mutex_unlock(&uct_varuna_arena.lock);
    ucs_list_head_init(&home->dead_blocks);
    while (!ucs_list_is_empty(&ended)) {
        ucs_free(ucs_list_extract_head(&ended, uct_varuna_dead_block_t, list));
    }
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

    if (first != UCT_VARUNA_SLOT_NONE) {
        uct_varuna_slots_init(&home->own, first, UCT_VARUNA_SLOT_BLOCK,
                              &home->arena.marks[first], ucs_get_time());
    }

    if (home->own.num == 0) {
        ucs_diag("no slots are left for atomics that the home NIC executes");
    }
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

    uct_varuna_arena_join(home);
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

static uint8_t uct_varuna_blocks_own_nics(const uct_varuna_own_t *own)
{
    return ((const uct_varuna_packed_rkey_t*)own->key)->nic_map;
}

uint8_t uct_varuna_blocks_nics(const uct_varuna_home_t *home)
{
    return uct_varuna_blocks_own_nics(&home->read_own) &
           uct_varuna_blocks_own_nics(&home->mark_own);
}

/* Nobody occupies with these slots any more, once packets on their way have expired. */
static void uct_varuna_block_end(uct_varuna_home_t *home, uint32_t first)
{
    uct_varuna_dead_block_t *block;

    block = ucs_calloc(1, sizeof(*block), "varuna_dead_block");
    if (block == NULL) {
        return; /* The block stays taken, which is safe */
    }

    block->md    = home->ctl->iface->md;
    block->first = first;
    block->due   = uct_varuna_ctl_now(home->ctl) +
                   home->ctl->iface->config.packet_lifetime;
    ucs_list_add_tail(&home->dead_blocks, &block->list);
}

void uct_varuna_blocks_cleanup(uct_varuna_home_t *home)
{
    uct_varuna_md_t *md = home->ctl->iface->md;
    int is_left;

    if (home->arena.slots == NULL) {
        return;
    }

    if (home->own.num > 0) {
        uct_varuna_block_end(home, home->own.first);
    }

    uct_varuna_arena_leave(home);
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

    /* Its RC queue pairs are stopped; packets on other lanes expire */
    uct_varuna_block_end(home, client->first_slot);
    client->first_slot = UCT_VARUNA_SLOT_NONE;
}
