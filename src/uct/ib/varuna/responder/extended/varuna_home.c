/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The home NIC of mode extended: requests of clients that cannot reach it, its
 * loopbacks, and the list of jobs. Jobs are executed one after the other, so each is either done, under way, or not begun. A repeated request
 * gets the answer that is kept for its client (rule 12: exactly once).
 *
 * Lock held in all of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/responder/varuna_target.h>
#include "varuna_home.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <string.h>
#include <ucs/arch/cpu.h>

/* Jobs that wait. Further requests are dropped, and their clients repeat them */
#define UCT_VARUNA_HOME_MAX_JOBS     4096

/* @return the link of the home NIC, UCT_VARUNA_LINK_NONE while it moves, and until
 * packets of a failed access have expired. */
static uint8_t uct_varuna_home_link(uct_varuna_home_t *home,
                                    uint8_t *nic_p)
{
    uct_varuna_home_name_t name;

    uct_varuna_home_name_get(&name);
    *nic_p = name.nic;
    if ((name.nic == UCT_VARUNA_HOME_NONE) ||
        (uct_varuna_ctl_now(home->ctl) < home->rest_at)) {
        return UCT_VARUNA_LINK_NONE;
    }

    return uct_varuna_home_nic_find_link(&home->nic, name.nic);
}

/* --- Jobs --- */

/* Send the answer of the target's last access, or a first one. */
static void uct_varuna_home_reply(uct_varuna_home_t *home, uct_varuna_job_t *job,
                                  ucs_status_t status)
{
    uct_varuna_home_client_t *client = job->client;
    uct_varuna_ctl_home_rep_t *rep;
    uct_varuna_home_name_t name;

    if (client == NULL) {
        return;
    }

    uct_varuna_home_name_get(&name);
    client->last.busy = 0;
    rep               = &client->last.rep;
    memset(rep, 0, sizeof(*rep));
    rep->seq        = job->seq;
    rep->value      = job->value;
    rep->status     = status;
    rep->home_nic   = name.nic;
    rep->home_epoch = name.epoch;
    home->stats.executed += (status == UCS_OK);
    uct_varuna_ctl_reply(home->ctl, client->peer, job->link, &job->hdr,
                         UCT_VARUNA_CTL_HOME_REP, rep, sizeof(*rep));
}

static int uct_varuna_job_prepare(uct_varuna_home_t *home, uct_varuna_job_t *job);
static void uct_varuna_job_next(uct_varuna_home_t *home, uct_varuna_job_t *job,
                                uint64_t word);
static ucs_status_t uct_varuna_job_post(uct_varuna_home_t *home,
                                        uct_varuna_job_t *job, unsigned link,
                                        uint8_t nic);

/* A job that cannot run now is tried again: by the timer, after a kick, or with the
 * next request. */
void uct_varuna_home_run(uct_varuna_home_t *home)
{
    uct_varuna_job_t *job;
    ucs_status_t status;
    uint8_t link, nic;

    while (!home->running && !ucs_list_is_empty(&home->jobs)) {
        job  = ucs_list_head(&home->jobs, uct_varuna_job_t, list);
        link = uct_varuna_home_link(home, &nic);
        if ((link == UCT_VARUNA_LINK_NONE) ||
            !uct_varuna_home_nic_use_loopback(&home->nic, link) ||
            !uct_varuna_job_prepare(home, job)) {
            return;
        }

        home->running    = 1;
        home->running_on = link;
        home->running_at = uct_varuna_ctl_now(home->ctl);
        status           = uct_varuna_job_post(home, job, link, nic);
        if (status == UCS_INPROGRESS) {
            return;
        }

        home->running = 0;
        if (status == UCS_OK) {
            uct_varuna_job_next(home, job, home->access->word);
        } else if (status == UCS_ERR_NO_RESOURCE) {
            return;
        } else {
            uct_varuna_job_failed(home, job, status);
        }
    }
}

/* --- Requests --- */

uct_varuna_job_t *uct_varuna_home_job_create(uct_varuna_home_t *home)
{
    uct_varuna_job_t *job;

    if (ucs_list_length(&home->jobs) >= UCT_VARUNA_HOME_MAX_JOBS) {
        return NULL;
    }

    job = ucs_calloc(1, sizeof(*job), "varuna_job");
    if (job != NULL) {
        ucs_list_add_tail(&home->jobs, &job->list);
    }

    return job;
}

static int uct_varuna_home_is_allowed(const uct_varuna_ctl_home_req_t *req)
{
    switch (req->type) {
    case UCT_VARUNA_AMO_ACT_READ:
    case UCT_VARUNA_AMO_ACT_CAS:
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        return 1;
    case UCT_VARUNA_AMO_ACT_EXECUTE:
        return req->slot <= UCT_ATOMIC_OP_CSWAP;
    default:
        return 0;
    }
}

/* The loopback is a queue pair of our own, and the client has written the keys. So only
 * memory of which some client was given a key is accessed. */
static int uct_varuna_home_is_in_reach(const uct_varuna_home_t *home,
                                       const uct_varuna_ctl_home_req_t *req)
{
    return (req->type == UCT_VARUNA_AMO_ACT_CAS_MARK) ||
           uct_varuna_md_is_shared(home->ctl->iface->md, req->addr,
                                   req->width);
}

static void uct_varuna_home_refuse(uct_varuna_home_t *home,
                                   uct_varuna_home_client_t *client, unsigned link,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_home_req_t *req)
{
    uct_varuna_job_t job = {
        .client = client,
        .hdr    = *hdr,
        .seq    = req->seq,
        .link   = link
    };
    char reason[128];

    ucs_snprintf_safe(reason, sizeof(reason),
                      "0x%lx is in memory no key of which was given away",
                      req->addr);
    uct_varuna_ctl_complain(home->ctl, hdr->uuid, "an atomic", reason);
    ++home->stats.refused;
    uct_varuna_home_reply(home, &job, UCS_ERR_INVALID_ADDR);
}

/* HOME_REQ of a requester; the message has been checked. */
static void uct_varuna_home_request(uct_varuna_home_t *home,
                                    uct_varuna_home_client_t *client, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_home_req_t *req)
{
    uct_varuna_job_t *job;

    if (!uct_varuna_home_is_allowed(req)) {
        uct_varuna_ctl_reject(home->ctl, link, hdr, UCS_ERR_NO_ELEM);
        return;
    }

    if (req->seq <= client->last.seq) {
        if ((req->seq == client->last.seq) && !client->last.busy) {
            /* Rule 12: not twice. The answer was lost */
            uct_varuna_ctl_reply(home->ctl, client->peer, link, hdr,
                                 UCT_VARUNA_CTL_HOME_REP, &client->last.rep,
                                 sizeof(client->last.rep));
        }
        uct_varuna_home_run(home);
        return;
    }

    if (!uct_varuna_home_is_in_reach(home, req)) {
        client->last.seq = req->seq;
        uct_varuna_home_refuse(home, client, link, hdr, req);
        return;
    }

    job = uct_varuna_home_job_create(home);
    if (job == NULL) {
        return; /* It comes again */
    }

    client->last.seq   = req->seq;
    client->last.busy  = 1;
    job->client        = client;
    job->hdr           = *hdr;
    job->seq           = req->seq;
    job->link          = link;
    job->addr          = req->addr;
    job->width         = req->width;
    memcpy(job->rkeys, req->rkeys, sizeof(job->rkeys));
    job->act.type      = (uct_varuna_amo_act_type_t)req->type;
    job->act.slot      = req->slot;
    job->act.addr      = req->addr;
    job->act.width     = req->width;
    job->act.compare   = req->compare;
    job->act.swap      = req->swap;
    job->act.mark_from = req->mark_from;
    job->act.mark_to   = req->mark_to;
    if (req->type == UCT_VARUNA_AMO_ACT_EXECUTE) {
        job->is_whole = 1;
        uct_varuna_amo_sm_start(&job->sm, req->slot, req->width, req->addr,
                                req->compare, req->swap,
                                UCT_VARUNA_SLOTS_MAX);
    }

    uct_varuna_home_run(home);
}


/* --- Execution of jobs --- */

/* Executes the jobs of the home NIC: single accesses and whole atomics of requesters, and
 * the worker's reads of targets. If the loopback of an access fails, the access is
 * repeated where that is harmless. Otherwise recovery finds out whether it was
 * executed, once it cannot be executed any more: a whole atomic has a slot of our own
 * and two stages, like that of any client (rule 6). */

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

/* Rule 7. If it was an error that has ended the atomic, its target may hold the UID, or the
 * mark may have advanced: the worker finds out. */
static void uct_varuna_job_leave_slot(uct_varuna_home_t *home,
                                      const uct_varuna_job_t *job)
{
    if ((job->sm.state == UCT_VARUNA_AMO_FINISHED) ||
        (uct_varuna_amo_sm_is_free(&job->sm) && !job->occupies)) {
        uct_varuna_slots_give(&home->own, job->sm.slot, job->sm.gen);
    } else {
        home->own_left |= UCS_BIT(job->sm.slot - home->own.first);
    }
}

static void uct_varuna_job_finish(uct_varuna_home_t *home,
                                  uct_varuna_job_t *job, ucs_status_t status)
{
    int is_own = job->is_whole || (job->is_sweep && (status == UCS_OK));

    ucs_list_del(&job->list);
    if (uct_varuna_job_has_slot(job)) {
        uct_varuna_job_leave_slot(home, job);
    }

    if (job->is_sweep) {
        if (job->sm.helped > 0) {
            ++home->stats.helped;
            ucs_debug("worker: resolved slot %u at 0x%lx", job->index,
                      job->addr);
        }
    } else {
        uct_varuna_home_reply(home, job, status);
    }

    ucs_free(job);
    if (ucs_unlikely((home->own_left != 0) && is_own)) {
        uct_varuna_worker_free_own(home); /* If it cannot now: after a period */
    }
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

/* Before its next access: get a slot, and decide what a lost access was. @return Zero if it
 * has to wait. */
static int uct_varuna_job_prepare(uct_varuna_home_t *home, uct_varuna_job_t *job)
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

void uct_varuna_job_advance(uct_varuna_home_t *home, uct_varuna_job_t *job)
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

/* The access of the first job gave @a word. */
static void uct_varuna_job_next(uct_varuna_home_t *home, uct_varuna_job_t *job,
                                uint64_t word)
{
    if ((job->act.width == sizeof(uint32_t)) && !uct_varuna_job_is_mark(job)) {
        word &= UINT32_MAX;
    }

    job->value    = word;
    job->occupies = 0;
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

/* Whether this NIC has no key for the access. */
static int uct_varuna_job_lacks_key(const uct_varuna_home_t *home,
                                    const uct_varuna_job_t *job, uint8_t nic)
{
    if (uct_varuna_job_is_mark(job)) {
        return uct_varuna_rkey_inner(home->mark.rkey, nic) == UCT_INVALID_RKEY;
    }

    return (job->act.type != UCT_VARUNA_AMO_ACT_READ_BODY) &&
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
static ucs_status_t uct_varuna_job_post(uct_varuna_home_t *home,
                                        uct_varuna_job_t *job, unsigned link,
                                        uint8_t nic)
{
    const uct_varuna_amo_act_t *act = &job->act;
    uct_varuna_access_t *access     = home->access;
    uct_ep_h ep                     = home->nic.loopbacks[link].ep->inner;

    if (uct_varuna_job_lacks_key(home, job, nic)) {
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
        job->occupies = 1;
        break;
    case UCT_VARUNA_AMO_ACT_CAS:
        break;
    default:
        return UCS_ERR_INVALID_PARAM;
    }

    return uct_varuna_job_cas(access, ep, act->addr, job->rkeys[nic],
                              act->width, act->compare, act->swap);
}


/* --- Opening and closing --- */

/* The responder's table of mode extended: opening and closing the home NIC's part, and what
 * targets have of it. */

static uct_varuna_home_client_t *uct_varuna_home_client(uct_varuna_target_t *target)
{
    return (uct_varuna_home_client_t*)target->amo_part;
}

static void uct_varuna_home_handle_req(void *arg, unsigned link,
                                       const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target  = uct_varuna_target_asked(resp, link, hdr);

    if (target != NULL) {
        uct_varuna_home_request(uct_varuna_home(resp), uct_varuna_home_client(target), link,
                                hdr, body);
    }
}

static void uct_varuna_home_close(uct_varuna_responder_t *resp)
{
    uct_varuna_home_t *home = uct_varuna_home(resp);
    uct_varuna_access_t *access;
    uct_varuna_job_t *job;

    if (home->access != NULL) {
        home->access->home = NULL;
    }

    uct_varuna_home_nic_cleanup(&home->nic);

    while (!ucs_list_is_empty(&home->lost)) {
        access = ucs_list_extract_head(&home->lost, uct_varuna_access_t, list);
        ucs_free(access);
    }

    while (!ucs_list_is_empty(&home->jobs)) {
        job = ucs_list_extract_head(&home->jobs, uct_varuna_job_t, list);
        ucs_free(job);
    }

    uct_varuna_blocks_cleanup(home);
    ucs_free(home->access);
    ucs_free(home);
}

static ucs_status_t uct_varuna_home_open(uct_varuna_responder_t *resp)
{
    static const uct_varuna_bus_reg_t row = {
        UCT_VARUNA_CTL_HOME_REQ, UCT_VARUNA_BUS_ASYNC, uct_varuna_home_handle_req
    };
    uct_varuna_home_t *home;
    ucs_status_t status;

    home = ucs_calloc(1, sizeof(*home), "varuna_home");
    if (home == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    resp->amo_part = home;
    home->ctl      = resp->ctl;
    uct_varuna_home_nic_init(&home->nic, resp->ctl);
    ucs_list_head_init(&home->jobs);
    ucs_list_head_init(&home->lost);
    ucs_list_head_init(&home->dead_blocks);
    home->access = ucs_calloc(1, sizeof(*home->access), "varuna_access");
    if (home->access == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_close;
    }

    status = uct_varuna_blocks_init(home);
    if (status != UCS_OK) {
        goto err_close;
    }

    uct_varuna_home_nic_join(&home->nic, uct_varuna_blocks_nics(home));
    uct_varuna_bus_register(&resp->ctl->bus, &row, 1, resp);
    uct_varuna_home_move_init(resp);
    return UCS_OK;

err_close:
    uct_varuna_home_close(resp);
    return status;
}

static void uct_varuna_home_open_target(uct_varuna_target_t *target)
{
    uct_varuna_home_client(target)->peer       = target->peer;
    uct_varuna_home_client(target)->first_slot = UCT_VARUNA_SLOT_NONE;
}

/* Rule 7: a requester without queue pairs can't occupy any more, so what it has left is
 * swept, and its slots serve others */
static void
uct_varuna_home_close_target(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    uct_varuna_blocks_close_client(uct_varuna_home(resp), uct_varuna_home_client(target));
}

static size_t
uct_varuna_home_fill_open(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                          uct_varuna_ctl_open_rep_t *rep, void *tail)
{
    return uct_varuna_blocks_fill_open(uct_varuna_home(resp), uct_varuna_home_client(target),
                                       rep, tail);
}

const uct_varuna_served_ops_t uct_varuna_home_ops = {
    .target_part  = sizeof(uct_varuna_home_client_t),
    .open         = uct_varuna_home_open,
    .close        = uct_varuna_home_close,
    .open_target  = uct_varuna_home_open_target,
    .fill_open    = uct_varuna_home_fill_open,
    .close_target = uct_varuna_home_close_target,
    .tell_home    = uct_varuna_home_name_tell,
    .forked       = uct_varuna_arena_forked
};
