/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Executes the jobs of the home NIC: single accesses and whole atomics of requesters, and
 * the worker's reads of targets. If the loopback of an access fails, the access is
 * repeated where that is harmless. Otherwise recovery finds out whether it was
 * executed, once it cannot be executed any more: a whole atomic has a slot of our own
 * and two stages, like that of any client (rule 6).
 *
 * Lock held in all of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_home.h"
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/md/varuna_md.h>

#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>

/* --- Slots --- */

static int uct_varuna_job_has_slot(const uct_varuna_job_t *job)
{
    return job->is_whole && (job->sm.flags & UCT_VARUNA_AMO_FLAG_SLOT);
}

static int uct_varuna_job_take_slot(uct_varuna_home_t *home,
                                    uct_varuna_job_t *job)
{
    uint64_t gen;
    uint32_t slot;

    slot = uct_varuna_slots_take(&home->own, &gen);
    if (ucs_unlikely(slot == UCT_VARUNA_SLOT_NONE) &&
        uct_varuna_slots_wait_for_time(&home->own)) {
        slot = uct_varuna_slots_take_timed(&home->own, ucs_get_time(), &gen);
    }

    if (slot == UCT_VARUNA_SLOT_NONE) {
        return 0; /* The timer comes */
    }

    uct_varuna_amo_sm_set_slot(&job->sm, slot, gen);
    return 1;
}

static int uct_varuna_job_begin(uct_varuna_home_t *home,
                                uct_varuna_job_t *job)
{
    if (!job->is_whole) {
        return 1;
    }

    if ((home->own.num > 0) && !uct_varuna_job_take_slot(home, job)) {
        return 0;
    }

    job->act = job->sm.act;
    return 1;
}

/* The home has moved to a NIC for which the target has no key: its block of slots is swept
 * once more. */
static void uct_varuna_job_sweep_again(uct_varuna_home_t *home, uint32_t index)
{
    uct_varuna_dead_block_t *block;

    ucs_list_for_each(block, &home->dead_blocks, list) {
        if ((index - block->first) < UCT_VARUNA_SLOT_BLOCK) {
            block->swept = 0;
        }
    }
}

static void uct_varuna_job_finish(uct_varuna_home_t *home,
                                  uct_varuna_job_t *job, ucs_status_t status)
{
    ucs_list_del(&job->list);
    if (uct_varuna_job_has_slot(job)) {
        uct_varuna_slots_give(&home->own, job->sm.slot, job->sm.gen);
    }

    if (job->is_sweep) {
        if (job->sm.helped > 0) {
            ++home->stats.helped;
            ucs_debug("worker: resolved slot %u at 0x%lx", job->index,
                      job->addr);
        }
        if (status == UCS_ERR_NO_DEVICE) {
            uct_varuna_job_sweep_again(home, job->index);
        }
    } else {
        uct_varuna_home_reply(home, job, status);
    }

    ucs_free(job);
}


/* --- An access failed --- */

/* A compare and swap that must not be executed twice. Others may be repeated: a UID is
 * unique, and so is the value that a mark is changed from. */
static int uct_varuna_job_is_plain_cas(const uct_varuna_job_t *job)
{
    return job->is_whole && (job->sm.state == UCT_VARUNA_AMO_OCCUPY) &&
           (job->act.type == UCT_VARUNA_AMO_ACT_CAS);
}

/* There was no answer, or the loopback was moved to ERR. Other errors are answers. */
static int uct_varuna_job_may_come_late(ucs_status_t status)
{
    return (status == UCS_ERR_ENDPOINT_TIMEOUT) || (status == UCS_ERR_CANCELED);
}

void uct_varuna_job_failed(uct_varuna_home_t *home, uct_varuna_job_t *job,
                           ucs_status_t status)
{
    ucs_debug("an access on the home NIC failed: %s",
              ucs_status_string(status));
    if (!uct_varuna_job_may_come_late(status) ||
        uct_varuna_job_is_plain_cas(job)) {
        /* Wrong memory; or a plain CAS, whose fate nobody can find out */
        uct_varuna_job_finish(home, job, status);
        return;
    }

    job->second = 0;
    job->lost   = 1;
}

/* Rule 6, for the one access that was lost. */
static void uct_varuna_job_find_out(uct_varuna_home_t *home,
                                    uct_varuna_job_t *job)
{
    job->lost = 0;
    if (job->act.type == UCT_VARUNA_AMO_ACT_OCCUPY) {
        uct_varuna_amo_sm_lost(&job->sm);
        job->act = job->sm.act;
        ++home->stats.recovered;
    }
}

int uct_varuna_job_prepare(uct_varuna_home_t *home, uct_varuna_job_t *job)
{
    if (!job->begun) {
        if (!uct_varuna_job_begin(home, job)) {
            return 0;
        }
        job->begun = 1;
    }

    if (job->lost) {
        uct_varuna_job_find_out(home, job);
    }

    return 1;
}


/* --- An access is done --- */

/* A generation that its owner has left is not used again (rule 1). */
static void uct_varuna_job_advance(uct_varuna_home_t *home,
                                   uct_varuna_job_t *job)
{
    uint64_t mark = home->arena.marks[job->index];

    job->advance       = 0;
    job->is_advancing  = 1;
    job->act.type      = UCT_VARUNA_AMO_ACT_CAS_MARK;
    job->act.slot      = job->index;
    job->act.mark_from = mark;
    job->act.mark_to   = uct_varuna_mark(
            uct_varuna_gen_next(uct_varuna_mark_gen(mark)),
            UCT_VARUNA_MARK_PENDING);
}

static int uct_varuna_job_is_mark(const uct_varuna_job_t *job)
{
    return (job->act.type == UCT_VARUNA_AMO_ACT_CAS_MARK) || job->second;
}

void uct_varuna_job_next(uct_varuna_home_t *home, uct_varuna_job_t *job,
                         uint64_t word)
{
    if ((job->act.width == sizeof(uint32_t)) && !uct_varuna_job_is_mark(job)) {
        word &= UINT32_MAX;
    }

    job->value = word;
    if ((job->act.type == UCT_VARUNA_AMO_ACT_CONFIRM) && !job->second) {
        job->second = 1;
        return;
    }

    job->second = 0;
    if ((job->is_sweep || job->is_whole) && !job->is_advancing) {
        uct_varuna_amo_sm_done(&job->sm, job->value, &job->slot);
        job->act   = job->sm.act;
        job->value = job->sm.result;
        if (job->act.type != UCT_VARUNA_AMO_ACT_NONE) {
            return;
        }

        if (job->advance) {
            uct_varuna_job_advance(home, job);
            return;
        }
    }

    uct_varuna_job_finish(home, job, UCS_OK);
}

static void uct_varuna_job_completion(uct_completion_t *comp)
{
    uct_varuna_access_t *access = ucs_container_of(comp, uct_varuna_access_t,
                                                   comp);
    uct_varuna_home_t *home     = access->home;
    uct_varuna_loopback_t *loopback;
    uct_varuna_job_t *job;

    if (home == NULL) {
        return; /* Its NIC was given up */
    }

    job           = ucs_list_head(&home->jobs, uct_varuna_job_t, list);
    loopback      = &home->nic.loopbacks[home->running_on];
    home->running = 0;
    if (comp->status == UCS_OK) {
        loopback->fails = 0;
        uct_varuna_job_next(home, job, access->word);
        uct_varuna_home_run(home);
        return;
    }

    /* The loopback is in ERR, and its error handler is still to be called: the next job
     * waits for progress, and until packets of this access have expired */
    if (loopback->ep != NULL) {
        ucs_assert(loopback->dead == NULL);
        loopback->dead = loopback->ep;
        loopback->ep   = NULL;
    }

    loopback->fails += (comp->status == UCS_ERR_ENDPOINT_TIMEOUT) &&
                       !loopback->in_err;
    loopback->in_err = 0;
    if (uct_varuna_job_may_come_late(comp->status)) {
        home->rest_at = uct_varuna_ctl_now(home->ctl) +
                        home->ctl->iface->config.packet_lifetime;
    }

    uct_varuna_job_failed(home, job, comp->status);
}


/* --- Posting --- */

static void uct_varuna_job_unpack(void *arg, const void *data, size_t length)
{
    uct_varuna_access_t *access = arg;

    access->word = 0;
    memcpy(&access->word, data, length);
}

static ucs_status_t uct_varuna_job_cas(uct_varuna_access_t *access,
                                       uct_ep_h ep, uint64_t addr,
                                       uct_rkey_t rkey, unsigned width,
                                       uint64_t compare, uint64_t swap)
{
    access->word = 0;
    return (width == sizeof(uint64_t)) ?
           uct_ep_atomic_cswap64(ep, compare, swap, addr, rkey, &access->word,
                                 &access->comp) :
           uct_ep_atomic_cswap32(ep, compare, swap, addr, rkey,
                                 (uint32_t*)&access->word, &access->comp);
}

/* Whether the access is to the target, for which this NIC has no key. */
static int uct_varuna_job_lacks_key(const uct_varuna_job_t *job, uint8_t nic)
{
    return job->is_sweep && !uct_varuna_job_is_mark(job) &&
           (job->act.type != UCT_VARUNA_AMO_ACT_READ_BODY) &&
           (job->rkeys[nic] == UCT_INVALID_RKEY);
}

static ucs_status_t uct_varuna_job_cas_mark(uct_varuna_home_t *home,
                                            uct_ep_h ep, uint8_t nic,
                                            const uct_varuna_amo_act_t *act)
{
    return uct_varuna_job_cas(home->access, ep,
                              (uintptr_t)&home->arena.marks[act->slot],
                              uct_varuna_rkey_inner(home->mark.rkey, nic),
                              sizeof(uint64_t), act->mark_from, act->mark_to);
}

/* Rule 12: each access goes through the loopback of the home NIC, because the CPU's
 * atomics need not be atomic with the NIC's. The CPU may read bodies, and write our
 * own. */
ucs_status_t uct_varuna_job_post(uct_varuna_home_t *home,
                                 uct_varuna_job_t *job, unsigned link,
                                 uint8_t nic)
{
    const uct_varuna_amo_act_t *act = &job->act;
    uct_varuna_access_t *access     = home->access;
    uct_ep_h ep                     = home->nic.loopbacks[link].ep->inner;

    if (uct_varuna_job_lacks_key(job, nic)) {
        return UCS_ERR_NO_DEVICE;
    }

    access->home        = home;
    access->comp.func   = uct_varuna_job_completion;
    access->comp.count  = 1;
    access->comp.status = UCS_OK;
    switch (act->type) {
    case UCT_VARUNA_AMO_ACT_READ:
        return uct_ep_get_bcopy(ep, uct_varuna_job_unpack, access, act->width,
                                act->addr, job->rkeys[nic], &access->comp);
    case UCT_VARUNA_AMO_ACT_READ_BODY:
        job->slot = home->arena.slots[act->slot];
        return UCS_OK;
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
        return uct_varuna_job_cas_mark(home, ep, nic, act);
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        if (job->second) {
            return uct_varuna_job_cas_mark(home, ep, nic, act);
        }
        break;
    case UCT_VARUNA_AMO_ACT_OCCUPY:
        /* Rule 2: before the CAS, whose doorbell follows a fence */
        uct_varuna_amo_sm_body(&job->sm, &home->arena.slots[act->slot]);
        ucs_memory_cpu_store_fence();
        break;
    case UCT_VARUNA_AMO_ACT_CAS:
        break;
    default:
        return UCS_ERR_INVALID_PARAM;
    }

    return uct_varuna_job_cas(access, ep, act->addr, job->rkeys[nic],
                              act->width, act->compare, act->swap);
}
