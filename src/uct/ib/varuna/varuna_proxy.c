/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's home NIC and its loopback. Jobs are carried out one after the
 * other, so that each is either done, under way, or not begun: a repeated request
 * is answered from the target's memory of its last one (rule 12: exactly once).
 *
 * Lock held in all of it but create, stop and destroy.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_priv.h"
#include "varuna_mlx5.h"
#include "varuna_proxy.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <string.h>

/* Period of the background worker, seconds */
#define UCT_VARUNA_PROXY_PERIOD      0.05

/* Jobs that wait; requests beyond are dropped and come again */
#define UCT_VARUNA_PROXY_MAX_JOBS    4096

uint8_t uct_varuna_proxy_home_nic(const uct_varuna_proxy_t *proxy)
{
    return proxy->ctl->iface->links[proxy->home].nic;
}

/* --- Loopback --- */

static ucs_status_t uct_varuna_proxy_open_loopback(uct_varuna_proxy_t *proxy)
{
    uct_varuna_ctl_t *ctl = proxy->ctl;
    uct_ep_params_t params;

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                        UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = ctl->links[proxy->home].inner;
    params.dev_addr   = ctl->iface->links[proxy->home].device_addr;
    params.iface_addr = ctl->links[proxy->home].addr;
    return uct_ep_create(&params, &proxy->loopback);
}

int uct_varuna_proxy_ep_failed(uct_varuna_proxy_t *proxy, uct_ep_h inner)
{
    if (inner == proxy->dead) {
        return 1;
    }

    if ((inner != proxy->loopback) || (inner == NULL)) {
        return 0;
    }

    ucs_debug("loopback of the home NIC failed");
    proxy->dead     = proxy->loopback;
    proxy->loopback = NULL;
    return 1;
}

/* Not from inside its own callbacks, nor before it is drained: UCX would not give
 * its DCI back, and when all are lost, so are all control messages */
static void uct_varuna_proxy_reap(uct_varuna_proxy_t *proxy)
{
    if ((proxy->dead != NULL) && !proxy->ctl->progressing &&
        uct_varuna_mlx5_is_drained(proxy->dead, UCT_VARUNA_LANE_DC)) {
        uct_ep_destroy(proxy->dead);
        proxy->dead = NULL;
    }
}

/* --- Jobs --- */

static void uct_varuna_job_reply(uct_varuna_proxy_t *proxy,
                                 uct_varuna_job_t *job, ucs_status_t status)
{
    uct_varuna_target_t *target;
    uct_varuna_proxy_last_t *last;
    khiter_t iter;

    target = uct_varuna_target_by_name(proxy->ctl, &job->hdr, &iter);
    if (target == NULL) {
        return;
    }

    last = &uct_varuna_target_impl(target)->proxy_last;
    memset(&last->rep, 0, sizeof(last->rep));
    last->busy           = 0;
    last->rep.seq        = job->seq;
    last->rep.value      = job->value;
    last->rep.status     = status;
    last->rep.home_nic   = uct_varuna_proxy_home_nic(proxy);
    last->rep.home_epoch = proxy->home_epoch;
    memcpy(last->rep.slot, &job->slot, sizeof(last->rep.slot));
    ++proxy->stats.executed;
    uct_varuna_ctl_reply(proxy->ctl, target->peer, job->link, &job->hdr,
                         UCT_VARUNA_CTL_PROXY_REP, &last->rep,
                         sizeof(last->rep));
}

static void uct_varuna_job_finish(uct_varuna_proxy_t *proxy,
                                  uct_varuna_job_t *job, ucs_status_t status)
{
    ucs_list_del(&job->list);
    proxy->running = 0;
    if (job->is_sweep) {
        if (job->sm.helped > 0) {
            ++proxy->stats.helped;
            ucs_debug("worker: resolved slot %u at 0x%lx", job->index,
                      job->addr);
        }
    } else {
        uct_varuna_job_reply(proxy, job, status);
    }

    ucs_free(job);
}

/* An access whose repetition changes nothing: a UID is unique, and so is what a
 * mark is changed from. Only the plain CAS of a requester is not of that kind. */
static int uct_varuna_job_is_idempotent(const uct_varuna_job_t *job)
{
    return job->is_sweep || (job->act.type != UCT_VARUNA_AMO_ACT_CAS) ||
           (job->is_whole && (job->sm.state != UCT_VARUNA_AMO_OCCUPY));
}

static void uct_varuna_job_failed(uct_varuna_proxy_t *proxy,
                                  uct_varuna_job_t *job, ucs_status_t status)
{
    ucs_debug("an access on the home NIC failed: %s",
              ucs_status_string(status));
    proxy->running = 0;
    if ((status == UCS_ERR_ENDPOINT_TIMEOUT) && !job->posted_cas) {
        /* The port: try again later, perhaps on another home NIC */
        job->second     = 0;
        proxy->retry_at = ucs_get_time() +
                          ucs_time_from_sec(UCT_VARUNA_PROXY_PERIOD);
        return;
    }

    uct_varuna_job_finish(proxy, job, status);
}

/* The access under way gave proxy->word. */
static void uct_varuna_job_next(uct_varuna_proxy_t *proxy,
                                uct_varuna_job_t *job)
{
    uint64_t mark;

    job->value = proxy->word & ((job->width == sizeof(uint32_t)) &&
                                (job->act.type != UCT_VARUNA_AMO_ACT_CAS_MARK) &&
                                !job->second ? UINT32_MAX : UINT64_MAX);
    if ((job->act.type == UCT_VARUNA_AMO_ACT_CONFIRM) && !job->second) {
        job->second = 1;
        return;
    }

    job->second = 0;
    if ((job->is_sweep || job->is_whole) && !job->is_advancing) {
        job->posted_cas = 0;
        uct_varuna_amo_sm_done(&job->sm, job->value, &job->slot);
        job->act        = job->sm.act;
        job->value      = job->sm.result;
        if (job->act.type != UCT_VARUNA_AMO_ACT_NONE) {
            return;
        }

        if (job->advance) {
            /* A generation that its owner left is not used again (rule 1) */
            mark               = proxy->slots[job->index].mark;
            job->advance       = 0;
            job->act.type      = UCT_VARUNA_AMO_ACT_CAS_MARK;
            job->act.slot      = job->index;
            job->act.mark_from = mark;
            job->act.mark_to   = uct_varuna_mark(
                    uct_varuna_gen_next(uct_varuna_mark_gen(mark)),
                    UCT_VARUNA_MARK_PENDING);
            job->is_advancing  = 1;
            return;
        }
    }

    uct_varuna_job_finish(proxy, job, UCS_OK);
}

static void uct_varuna_job_completion(uct_completion_t *comp)
{
    uct_varuna_job_t *job     = ucs_container_of(comp, uct_varuna_job_t, comp);
    uct_varuna_proxy_t *proxy = job->proxy;

    proxy->running = 0;
    if (comp->status == UCS_OK) {
        uct_varuna_job_next(proxy, job);
        uct_varuna_proxy_run(proxy);
        return;
    }

    /* The loopback is in ERR, and its error handler comes yet: what is next waits
     * for the progress */
    if (proxy->loopback != NULL) {
        ucs_assert(proxy->dead == NULL);
        proxy->dead     = proxy->loopback;
        proxy->loopback = NULL;
    }

    uct_varuna_job_failed(proxy, job, comp->status);
}

static void uct_varuna_job_unpack(void *arg, const void *data, size_t length)
{
    uct_varuna_job_t *job = arg;

    job->proxy->word = 0;
    memcpy(&job->proxy->word, data, length);
}

static ucs_status_t uct_varuna_job_cas(uct_varuna_proxy_t *proxy,
                                       uct_varuna_job_t *job, uint64_t addr,
                                       uct_rkey_t rkey, unsigned width,
                                       uint64_t compare, uint64_t swap)
{
    proxy->word     = 0;
    job->posted_cas = !uct_varuna_job_is_idempotent(job);
    return (width == sizeof(uint64_t)) ?
           uct_ep_atomic_cswap64(proxy->loopback, compare, swap, addr, rkey,
                                 &proxy->word, &job->comp) :
           uct_ep_atomic_cswap32(proxy->loopback, compare, swap, addr, rkey,
                                 (uint32_t*)&proxy->word, &job->comp);
}

/* Rule 12: all of it through the loopback of the home NIC, not by the CPU, whose
 * atomics need not be atomic with the NIC's. Slots are only read, so the CPU may. */
static ucs_status_t uct_varuna_job_post(uct_varuna_proxy_t *proxy,
                                        uct_varuna_job_t *job)
{
    const uct_varuna_amo_act_t *act = &job->act;
    uint64_t mark_addr              = 0;
    uct_rkey_t mark_rkey            = UCT_INVALID_RKEY;

    if (proxy->slots != NULL) {
        mark_addr = (uintptr_t)&proxy->slots[act->slot].mark;
        mark_rkey = uct_varuna_rkey_inner(proxy->bundle.rkey,
                                          uct_varuna_proxy_home_nic(proxy));
    }

    job->comp.func   = uct_varuna_job_completion;
    job->comp.count  = 1;
    job->comp.status = UCS_OK;
    switch (act->type) {
    case UCT_VARUNA_AMO_ACT_READ:
        return uct_ep_get_bcopy(proxy->loopback, uct_varuna_job_unpack, job,
                                job->width, job->addr, job->rkey, &job->comp);
    case UCT_VARUNA_AMO_ACT_READ_SLOT:
        job->slot = proxy->slots[act->slot];
        return UCS_OK;
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
        return uct_varuna_job_cas(proxy, job, mark_addr, mark_rkey,
                                  sizeof(uint64_t), act->mark_from,
                                  act->mark_to);
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        if (job->second) {
            return uct_varuna_job_cas(proxy, job, mark_addr, mark_rkey,
                                      sizeof(uint64_t), act->mark_from,
                                      act->mark_to);
        }
        /* Fall through */
    case UCT_VARUNA_AMO_ACT_CAS:
        return uct_varuna_job_cas(proxy, job, job->addr, job->rkey, job->width,
                                  act->compare, act->swap);
    default:
        return UCS_ERR_INVALID_PARAM;
    }
}

/* Begin the first job in the list, unless it is under way. */
void uct_varuna_proxy_run(uct_varuna_proxy_t *proxy)
{
    uct_varuna_job_t *job;
    ucs_status_t status;

    uct_varuna_proxy_reap(proxy);
    if (proxy->ctl->ports_down & UCS_BIT(proxy->home)) {
        return; /* A loopback needs its port: the timer tries again */
    }

    while (!proxy->running && !ucs_list_is_empty(&proxy->jobs) &&
           (ucs_get_time() >= proxy->retry_at)) {
        if ((proxy->dead != NULL) ||
            ((proxy->loopback == NULL) &&
             (uct_varuna_proxy_open_loopback(proxy) != UCS_OK))) {
            return; /* The timer tries again */
        }

        job            = ucs_list_head(&proxy->jobs, uct_varuna_job_t, list);
        proxy->running = 1;
        status         = uct_varuna_job_post(proxy, job);
        if (status == UCS_INPROGRESS) {
            return;
        }

        proxy->running = 0;
        if (status == UCS_OK) {
            uct_varuna_job_next(proxy, job);
        } else if (status == UCS_ERR_NO_RESOURCE) {
            return; /* The timer, or the next request */
        } else {
            uct_varuna_job_failed(proxy, job, status);
        }
    }
}

/* --- Requests --- */

uct_varuna_job_t *uct_varuna_proxy_job_create(uct_varuna_proxy_t *proxy)
{
    uct_varuna_job_t *job;

    if (ucs_list_length(&proxy->jobs) >= UCT_VARUNA_PROXY_MAX_JOBS) {
        return NULL;
    }

    job = ucs_calloc(1, sizeof(*job), "varuna_job");
    if (job != NULL) {
        job->proxy = proxy;
        ucs_list_add_tail(&proxy->jobs, &job->list);
    }

    return job;
}

static int uct_varuna_proxy_is_allowed(const uct_varuna_proxy_t *proxy,
                                       const uct_varuna_ctl_proxy_req_t *req)
{
    switch (req->type) {
    case UCT_VARUNA_AMO_ACT_READ:
    case UCT_VARUNA_AMO_ACT_CAS:
        return 1;
    case UCT_VARUNA_AMO_ACT_EXECUTE:
        return req->slot <= UCT_ATOMIC_OP_CSWAP;
    case UCT_VARUNA_AMO_ACT_READ_SLOT:
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        return proxy->slots != NULL;
    default:
        return 0;
    }
}

void uct_varuna_proxy_handle_req(uct_varuna_proxy_t *proxy, unsigned link,
                                 const uct_varuna_ctl_hdr_t *hdr,
                                 const uct_varuna_ctl_proxy_req_t *req)
{
    uct_varuna_proxy_last_t *last;
    uct_varuna_target_t *target;
    uct_varuna_job_t *job;
    khiter_t iter;

    target = uct_varuna_target_by_name(proxy->ctl, hdr, &iter);
    if ((target == NULL) || !uct_varuna_proxy_is_allowed(proxy, req)) {
        uct_varuna_ctl_reject(proxy->ctl, link, hdr, UCS_ERR_NO_ELEM);
        return;
    }

    last = &uct_varuna_target_impl(target)->proxy_last;
    if (req->seq <= last->seq) {
        if ((req->seq == last->seq) && !last->busy) {
            /* Rule 12: once. The answer was lost */
            uct_varuna_ctl_reply(proxy->ctl, target->peer, link, hdr,
                                 UCT_VARUNA_CTL_PROXY_REP, &last->rep,
                                 sizeof(last->rep));
        }
        uct_varuna_proxy_run(proxy);
        return;
    }

    job = uct_varuna_proxy_job_create(proxy);
    if (job == NULL) {
        return; /* It comes again */
    }

    last->seq          = req->seq;
    last->busy         = 1;
    job->hdr           = *hdr;
    job->seq           = req->seq;
    job->link          = link;
    job->addr          = req->addr;
    job->rkey          = req->rkeys[uct_varuna_proxy_home_nic(proxy)];
    job->width         = req->width;
    job->act.type      = (uct_varuna_amo_act_type_t)req->type;
    job->act.slot      = req->slot;
    job->act.compare   = req->compare;
    job->act.swap      = req->swap;
    job->act.mark_from = req->mark_from;
    job->act.mark_to   = req->mark_to;
    if (req->type == UCT_VARUNA_AMO_ACT_EXECUTE) {
        job->is_whole = 1;
        uct_varuna_amo_sm_start(&job->sm, req->slot, req->width, req->addr,
                                req->compare, req->swap,
                                (proxy->slots != NULL) ? UCT_VARUNA_SLOTS_MAX :
                                0);
        job->act = job->sm.act;
    }

    uct_varuna_proxy_run(proxy);
}
