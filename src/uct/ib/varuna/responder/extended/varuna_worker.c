/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's background worker (paper, "Confirm"; docs/ATOMICS.md, rule 7): if the
 * mark of a slot has not changed for a while, the slot's target may hold a UID. The
 * worker reads the target like any client, with the same state machine, which resolves
 * a UID: through the home NIC, not by the CPU. When the owner is gone, and its packets
 * have expired, its block of slots is swept and freed.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include "varuna_home.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>

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
        uct_varuna_arena_free(block->first);
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
