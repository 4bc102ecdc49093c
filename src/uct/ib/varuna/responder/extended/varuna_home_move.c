/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One interface's part in moving the home NIC (rule 12): away when its port goes down
 * or it dies, and back when the first NIC works again. Before another NIC is named, the
 * queue pairs that peers have connected to the old one are stopped, also those of targets
 * that were closed, and so is our loopback; or the NIC is gone. Then packets on their way get
 * the time to expire.
 *
 * Requesters post compare and swaps on RC only, and the loopback's DC target has no
 * other user, so the old NIC can execute nothing else. In mode proxy the home NIC stays.
 *
 * And the worker, which the same clock drives.
 *
 * Async context, lock held.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include "varuna_home.h"
#include <uct/ib/varuna/responder/varuna_fence.h>
#include <uct/ib/varuna/responder/varuna_target.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>

/* Seconds between two calls of the timer */
#define UCT_VARUNA_HOME_MOVE_PERIOD  0.05

/* Seconds: how long an access may take before the device is queried; how long a NIC
 * whose loopback fails is avoided; how long the first NIC must have worked before the
 * home returns to it */
#define UCT_VARUNA_HOME_MOVE_CHECK   0.1
#define UCT_VARUNA_HOME_MOVE_AVOID   1.0
#define UCT_VARUNA_HOME_MOVE_RETURN  1.0

/* Consecutive failures of a loopback whose port is reported up */
#define UCT_VARUNA_HOME_MOVE_MAX_FAILS 3


static int uct_varuna_home_move_is_gone(uct_varuna_responder_t *resp,
                                        unsigned link)
{
    uct_varuna_loopback_t *loopback = &uct_varuna_home(resp)->nic.loopbacks[link];

    if ((loopback->gone_at == 0) &&
        uct_varuna_ctl_is_nic_gone(resp->ctl, link)) {
        loopback->gone_at = uct_varuna_ctl_now(resp->ctl);
    }

    return loopback->gone_at != 0;
}

static uint8_t uct_varuna_home_move_good_map(uct_varuna_responder_t *resp)
{
    const uct_varuna_iface_t *iface = resp->iface;
    ucs_time_t now                  = uct_varuna_ctl_now(resp->ctl);
    uint8_t map                     = 0;
    uct_varuna_loopback_t *loopback;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        loopback = &uct_varuna_home(resp)->nic.loopbacks[link];
        if (loopback->fails >= UCT_VARUNA_HOME_MOVE_MAX_FAILS) {
            loopback->fails     = 0;
            loopback->bad_until = now +
                                  ucs_time_from_sec(UCT_VARUNA_HOME_MOVE_AVOID);
        }

        if (!(resp->ctl->ports.down & UCS_BIT(link)) &&
            !uct_varuna_home_move_is_gone(resp, link) &&
            (now >= loopback->bad_until)) {
            map |= UCS_BIT(iface->links[link].nic);
        }
    }

    return map;
}

/* An access takes long: perhaps an event was lost, or there is none. */
static void uct_varuna_home_move_check_device(uct_varuna_responder_t *resp)
{
    uct_varuna_ctl_t *ctl = resp->ctl;

    if (uct_varuna_home(resp)->running && (ctl->detector != NULL) &&
        ((uct_varuna_ctl_now(resp->ctl) - uct_varuna_home(resp)->running_at) >
         ucs_time_from_sec(UCT_VARUNA_HOME_MOVE_CHECK))) {
        uct_varuna_detector_check(ctl->detector, uct_varuna_home(resp)->running_on,
                                  !(ctl->ports.down &
                                    UCS_BIT(uct_varuna_home(resp)->running_on)));
    }
}

/* Connections in use on a NIC: the newest one of a target there, or one that is
 * just being replaced. */
static unsigned uct_varuna_home_move_count(uct_varuna_responder_t *resp,
                                           uint8_t nic)
{
    unsigned count = 0;
    const uct_varuna_target_qp_t *qp, *newest;
    uct_varuna_target_t *target;
    unsigned i;

    kh_foreach_value(&resp->targets.by_name, target, {
        newest = NULL;
        for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
            qp = &target->qps[i];
            if ((qp->ep != NULL) && (qp->stopped_at == 0) &&
                ((newest == NULL) || (qp->epoch > newest->epoch))) {
                newest = qp;
            }
        }

        if ((newest != NULL) &&
            ((resp->iface->links[newest->link].nic == nic) ||
             ((uct_varuna_ctl_now(resp->ctl) - newest->attached_at) <
              ucs_time_from_sec(UCT_VARUNA_HOME_MOVE_RETURN)))) {
            ++count;
        }
    });

    return count;
}

/* Move what may carry atomics over @a link to ERR. @return Nonzero if all of it is
 * there. */
static int uct_varuna_home_move_fence(uct_varuna_responder_t *resp,
                                      unsigned link)
{
    uct_varuna_target_table_t *table = &resp->targets;
    int fenced                       = 1;
    uct_varuna_target_t *target;
    uct_varuna_target_qp_t *qp;
    uint64_t key;
    unsigned i;

    kh_foreach(&table->rc_eps, key, target, {
        for (i = 0; (target != NULL) && (i < UCT_VARUNA_LOG_COUNT); ++i) {
            qp = &target->qps[i];
            if (((uintptr_t)qp->ep == key) && (qp->link == link)) {
                fenced &= uct_varuna_target_fence_qp(resp, target, qp);
            }
        }
    });

    return fenced;
}

/* Give up the access of a NIC that is gone. */
static void uct_varuna_home_move_abandon(uct_varuna_responder_t *resp,
                                         unsigned link)
{
    uct_varuna_home_t *home = uct_varuna_home(resp);
    uct_varuna_access_t *access;
    uct_varuna_job_t *job;

    if (!home->running || (home->running_on != link)) {
        return;
    }

    access = ucs_calloc(1, sizeof(*access), "varuna_access");
    if (access == NULL) {
        ucs_fatal("no memory for an atomic");
    }

    job                = ucs_list_head(&home->jobs, uct_varuna_job_t, list);
    home->access->home = NULL;
    ucs_list_add_tail(&home->lost, &home->access->list);
    home->access       = access;
    home->running      = 0;
    uct_varuna_job_failed(home, job, UCS_ERR_ENDPOINT_TIMEOUT);
}

/* @return Nonzero if the last packets of a NIC that is gone have had their time, from when
 * the driver has taken it away. */
static int uct_varuna_home_move_has_ended(uct_varuna_responder_t *resp, unsigned link)
{
    const uct_varuna_iface_t *iface = resp->iface;
    ucs_time_t now                  = uct_varuna_ctl_now(resp->ctl);
    ucs_time_t gone_at              = uct_varuna_home(resp)->nic.loopbacks[link].gone_at;

    return uct_varuna_md_is_at_rest(iface->md, iface->links[link].nic, now,
                                    iface->config.packet_lifetime) &&
           (now >= (gone_at + iface->config.packet_lifetime));
}

/* @return Nonzero if the NIC of @a link executes nothing more. */
static int uct_varuna_home_move_is_at_rest(uct_varuna_responder_t *resp,
                                           unsigned link)
{
    uct_varuna_loopback_t *loopback = &uct_varuna_home(resp)->nic.loopbacks[link];
    ucs_time_t now                  = uct_varuna_ctl_now(resp->ctl);
    int fenced                      = uct_varuna_home_move_fence(resp, link);

    if (uct_varuna_home_move_is_gone(resp, link)) {
        if (!uct_varuna_home_move_has_ended(resp, link)) {
            return 0;
        }
        uct_varuna_home_move_abandon(resp, link);
        return 1;
    }

    if (!fenced) {
        if (resp->ctl->detector != NULL) {
            uct_varuna_detector_check(resp->ctl->detector, link, 0);
        }
        return 0;
    }

    if (uct_varuna_home(resp)->running && (uct_varuna_home(resp)->running_on == link)) {
        /* Its completion comes: with success, or because the loopback is in ERR */
        if (!loopback->in_err && (loopback->ep != NULL) &&
            !loopback->ep->failed &&
            (uct_varuna_tl_stop(loopback->ep->inner,
                                uct_varuna_link_set(resp->iface, link)->bus) == UCS_OK)) {
            loopback->in_err = 1;
        }
        return 0;
    }

    return (now >= uct_varuna_home(resp)->rest_at) &&
           uct_varuna_spares_are_at_rest(resp, link);
}

static void uct_varuna_home_move_step(uct_varuna_responder_t *resp)
{
    const uct_varuna_iface_t *iface = resp->iface;
    uct_varuna_home_name_t name;
    unsigned in_use;
    ucs_time_t delay;
    uint8_t link;

    uct_varuna_home_move_check_device(resp);
    uct_varuna_home_name_get(&name);
    in_use = ((name.nic == UCT_VARUNA_HOME_NONE) ||
              (name.nic == name.first)) ? 0 :
             uct_varuna_home_move_count(resp, name.nic);
    delay  = (iface->link_table.return_delay == UCS_TIME_INFINITY) ? 0 :
             (ucs_time_from_sec(UCT_VARUNA_HOME_MOVE_RETURN) +
              iface->link_table.return_delay);
    if (uct_varuna_home_name_report(&uct_varuna_home(resp)->nic.member,
                                    uct_varuna_home_move_good_map(resp), in_use,
                                    uct_varuna_ctl_now(resp->ctl), delay)) {
        uct_varuna_home_name_get(&name);
        ucs_info("rc_varuna: atomics on memory of this process move from %s to "
                 "%s", iface->md->nics[name.from].dev_name,
                 iface->md->nics[name.to].dev_name);
        ++uct_varuna_home(resp)->stats.moved;
    }

    uct_varuna_home_name_get(&name);
    if (name.nic != UCT_VARUNA_HOME_NONE) {
        return;
    }

    link = uct_varuna_home_nic_find_link(&uct_varuna_home(resp)->nic, name.from);
    if (((link == UCT_VARUNA_LINK_NONE) ||
         uct_varuna_home_move_is_at_rest(resp, link)) &&
        uct_varuna_home_name_rest(&uct_varuna_home(resp)->nic.member)) {
        ucs_debug("nothing is executed on %s any more: the home NIC is %s",
                  iface->md->nics[name.from].dev_name,
                  iface->md->nics[name.to].dev_name);
    }
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

/* Read the slot's target, and let its mark @a advance then. The owner has written the address,
 * so only memory of which a key was given away is read. Another address need not be a lie: a
 * slot keeps the address of its last use, and that memory may be gone. But it may be
 * registered again, and still hold the UID, so the generation ends all the same. */
static uct_varuna_worker_read_t
uct_varuna_worker_read_target(uct_varuna_home_t *home, uint32_t index, int advance)
{
    uct_varuna_slot_t slot = home->arena.slots[index];
    unsigned width         =
            uct_varuna_arena_slot_width(&slot, home->arena.marks[index]);
    uint64_t rkeys[UCT_VARUNA_MAX_LINKS];
    uct_varuna_job_t *job;
    int is_shared;

    is_shared = (width > 0) &&
                uct_varuna_md_is_shared(home->ctl->iface->md, slot.addr, width);
    if ((width == 0) || (!is_shared && !advance)) {
        return UCT_VARUNA_WORKER_NOTHING;
    }

    job = (!is_shared || uct_varuna_worker_find_rkeys(home, slot.addr, width, rkeys)) ?
          uct_varuna_home_job_create(home) : NULL;
    if (job == NULL) {
        return UCT_VARUNA_WORKER_LATER;
    }

    job->is_sweep = 1;
    job->index    = index;
    job->addr     = slot.addr;
    job->width    = width;
    if (!is_shared) {
        uct_varuna_job_advance(home, job);
        return UCT_VARUNA_WORKER_STARTED;
    }

    /* compare == swap: a read that resolves a UID (rule 8) */
    uct_varuna_amo_sm_start(&job->sm, UCT_ATOMIC_OP_CSWAP, width, slot.addr, 0,
                            0, UCT_VARUNA_SLOTS_MAX);
    job->advance = advance;
    job->act     = job->sm.act;
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

/* Check the slots of a block. @return NOTHING if all of their generations are over. */
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
 * way. A block is kept until sweeps have ended the generations of its slots: what a slot's
 * UID means is lost when the slot is used again. */
static void uct_varuna_worker_sweep_dead(uct_varuna_home_t *home)
{
    ucs_time_t now = uct_varuna_ctl_now(home->ctl);
    uct_varuna_dead_block_t *block, *tmp;

    ucs_list_for_each_safe(block, tmp, &home->dead_blocks, list) {
        if (now < block->due) {
            return; /* The list is in order */
        }

        if (uct_varuna_worker_sweep_block(home, block) != UCT_VARUNA_WORKER_NOTHING) {
            continue;
        }

        ucs_list_del(&block->list);
        uct_varuna_arena_free(&home->arena, block->first);
        ucs_debug("slots from %u are free again", block->first);
        ++home->stats.swept;
        ucs_free(block);
    }
}

static int uct_varuna_worker_is_reading(const uct_varuna_home_t *home, uint32_t index)
{
    const uct_varuna_job_t *job;

    ucs_list_for_each(job, &home->jobs, list) {
        if (job->is_sweep && (job->index == index)) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_worker_free_own(uct_varuna_home_t *home)
{
    uint64_t mark;
    uint32_t index;
    unsigned i;

    ucs_for_each_bit(i, home->own_left) {
        index = home->own.first + i;
        if (uct_varuna_worker_is_reading(home, index) ||
            (uct_varuna_worker_read_target(home, index, 1) != UCT_VARUNA_WORKER_NOTHING)) {
            continue;
        }

        mark = home->arena.marks[index];
        if (uct_varuna_mark_state(mark) == UCT_VARUNA_MARK_PENDING) {
            home->own_left &= ~UCS_BIT(i);
            uct_varuna_slots_give(&home->own, index, uct_varuna_mark_gen(mark));
        }
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
        if (uct_varuna_arena_slot_width(&home->arena.slots[home->scan_next],
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

/* The worker's period is over: resolve slots of dead or slow owners. */
static void uct_varuna_worker_step(uct_varuna_home_t *home)
{
    if ((home->arena.slots != NULL) && !uct_varuna_worker_has_sweeps(home)) {
        uct_varuna_arena_adopt(home);
        uct_varuna_worker_sweep_dead(home);
        uct_varuna_worker_free_own(home);
        uct_varuna_worker_help_old(home);
    }
}


/* --- Rows of the bus, and the clock --- */

/* The control plane has polled its inner interfaces, including the loopbacks'. */
static void uct_varuna_home_move_progressed(void *arg, unsigned link,
                                            const uct_varuna_ctl_hdr_t *hdr,
                                            const void *body)
{
    uct_varuna_responder_t *resp = arg;

    if (!uct_varuna_home_name_is_at_rest(&uct_varuna_home(resp)->nic.member)) {
        uct_varuna_home_move_step(resp);
    }

    if (!ucs_list_is_empty(&uct_varuna_home(resp)->jobs)) {
        uct_varuna_home_run(uct_varuna_home(resp));
    }
}

static void uct_varuna_home_move_port_changed(void *arg, unsigned link,
                                              const uct_varuna_ctl_hdr_t *hdr,
                                              const void *body)
{
    uct_varuna_home_move_step(arg);
}

static void uct_varuna_home_move_timer(void *arg)
{
    uct_varuna_responder_t *resp = arg;

    uct_varuna_worker_step(uct_varuna_home(resp));
    uct_varuna_home_move_step(resp);
    uct_varuna_home_run(uct_varuna_home(resp));
    /* The loopback's completions come here as well */
    uct_varuna_ctl_progress(resp->ctl);
}

static const uct_varuna_bus_reg_t uct_varuna_home_move_rows[] = {
    {UCT_VARUNA_BUS_PROGRESSED,   UCT_VARUNA_BUS_ASYNC,
     uct_varuna_home_move_progressed},
    {UCT_VARUNA_BUS_PORT_CHANGED, UCT_VARUNA_BUS_ASYNC,
     uct_varuna_home_move_port_changed}
};

void uct_varuna_home_move_init(uct_varuna_responder_t *resp)
{
    uct_varuna_bus_register(&resp->ctl->bus, uct_varuna_home_move_rows,
                            ucs_static_array_size(uct_varuna_home_move_rows), resp);
    uct_varuna_clock_add(&resp->ctl->time.clock, uct_varuna_ctl_now(resp->ctl),
                         ucs_time_from_sec(UCT_VARUNA_HOME_MOVE_PERIOD),
                         uct_varuna_home_move_timer, resp);
}
