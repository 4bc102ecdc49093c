/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's proxy: requests of those who cannot reach its home NIC, its
 * loopbacks, and the list of jobs. These are carried out one after the other
 * (varuna_job.c), so that each is either done, under way, or not begun: a repeated
 * request is answered from the target's memory of its last one (rule 12: exactly
 * once).
 *
 * Lock held in all of it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/ctl/varuna_ctl_priv.h>
#include <uct/ib/varuna/md/varuna_md_share.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include "varuna_proxy.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <string.h>

/* Jobs that wait; requests beyond are dropped and come again */
#define UCT_VARUNA_PROXY_MAX_JOBS    4096

uint8_t uct_varuna_proxy_find_link(const uct_varuna_proxy_t *proxy, uint8_t nic)
{
    const uct_varuna_iface_t *iface = proxy->ctl->iface;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if (iface->links[link].nic == nic) {
            return link;
        }
    }

    return UCT_VARUNA_LINK_NONE;
}

/* --- Loopbacks --- */

static ucs_status_t uct_varuna_proxy_open_loopback(uct_varuna_proxy_t *proxy,
                                                   unsigned link)
{
    uct_varuna_ctl_t *ctl = proxy->ctl;

    return uct_varuna_ctl_ep_create(ctl, link, ctl->iface->links[link].device_addr,
                                    ctl->links[link].addr,
                                    &proxy->loopbacks[link].ep);
}

/* Not from inside its own callbacks, nor before it is drained: UCX would not give
 * its DCI back, and when all are lost, so are all control messages.
 * @return Nonzero if the loopback of @a link can be used. */
static int uct_varuna_proxy_use_loopback(uct_varuna_proxy_t *proxy,
                                         unsigned link)
{
    uct_varuna_loopback_t *loopback = &proxy->loopbacks[link];

    if ((loopback->ep != NULL) && loopback->ep->failed) {
        ucs_debug("a loopback failed");
        loopback->dead = loopback->ep;
        loopback->ep   = NULL;
    }

    if (loopback->dead != NULL) {
        if (proxy->ctl->progressing ||
            !uct_varuna_mlx5_is_drained(loopback->dead->inner,
                                        UCT_VARUNA_LANE_DC)) {
            return 0;
        }
        uct_varuna_ctl_ep_destroy(proxy->ctl, loopback->dead);
        loopback->dead = NULL;
    }

    return (loopback->ep != NULL) ||
           (uct_varuna_proxy_open_loopback(proxy, link) == UCS_OK);
}

/* @return the link of the home NIC, UCT_VARUNA_LINK_NONE if it moves, or if what
 * failed there is not dead yet. */
static uint8_t uct_varuna_proxy_home_link(uct_varuna_proxy_t *proxy,
                                          uint8_t *nic_p)
{
    uct_varuna_home_name_t name;

    uct_varuna_home_get(&name);
    *nic_p = name.nic;
    if ((name.nic == UCT_VARUNA_HOME_NONE) ||
        (ucs_get_time() < proxy->rest_at)) {
        return UCT_VARUNA_LINK_NONE;
    }

    return uct_varuna_proxy_find_link(proxy, name.nic);
}

/* --- Jobs --- */

void uct_varuna_proxy_reply(uct_varuna_proxy_t *proxy, uct_varuna_job_t *job,
                            ucs_status_t status)
{
    uct_varuna_proxy_last_t *last;
    uct_varuna_home_name_t name;
    uct_varuna_target_t *target;
    khiter_t iter;

    target = uct_varuna_target_of(proxy->ctl, &job->hdr, &iter);
    if (target == NULL) {
        return;
    }

    uct_varuna_home_get(&name);
    last = &uct_varuna_target_impl(target)->proxy_last;
    memset(&last->rep, 0, sizeof(last->rep));
    last->busy           = 0;
    last->rep.seq        = job->seq;
    last->rep.value      = job->value;
    last->rep.status     = status;
    last->rep.home_nic   = name.nic;
    last->rep.home_epoch = name.epoch;
    proxy->stats.executed += (status == UCS_OK);
    uct_varuna_ctl_reply(proxy->ctl, target->peer, job->link, &job->hdr,
                         UCT_VARUNA_CTL_PROXY_REP, &last->rep,
                         sizeof(last->rep));
}

/* Whatever is no error comes again: with the timer, a kick, or the next request. */
void uct_varuna_proxy_run(uct_varuna_proxy_t *proxy)
{
    uct_varuna_job_t *job;
    ucs_status_t status;
    uint8_t link, nic;

    while (!proxy->running && !ucs_list_is_empty(&proxy->jobs)) {
        job  = ucs_list_head(&proxy->jobs, uct_varuna_job_t, list);
        link = uct_varuna_proxy_home_link(proxy, &nic);
        if ((link == UCT_VARUNA_LINK_NONE) ||
            !uct_varuna_proxy_use_loopback(proxy, link) ||
            !uct_varuna_job_prepare(proxy, job)) {
            return;
        }

        proxy->running    = 1;
        proxy->running_on = link;
        proxy->running_at = ucs_get_time();
        status            = uct_varuna_job_post(proxy, job, link, nic);
        if (status == UCS_INPROGRESS) {
            return;
        }

        proxy->running = 0;
        if (status == UCS_OK) {
            uct_varuna_job_next(proxy, job, proxy->access->word);
        } else if (status == UCS_ERR_NO_RESOURCE) {
            return;
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
    case UCT_VARUNA_AMO_ACT_CAS_MARK:
    case UCT_VARUNA_AMO_ACT_CONFIRM:
        return proxy->arena.slots != NULL;
    default:
        return 0;
    }
}

/* The loopback has a queue pair of our own, and the keys are the client's word. So no
 * access but to memory of which some client was given a key. */
static int uct_varuna_proxy_is_in_reach(const uct_varuna_proxy_t *proxy,
                                        const uct_varuna_ctl_proxy_req_t *req)
{
    return (req->type == UCT_VARUNA_AMO_ACT_CAS_MARK) ||
           uct_varuna_md_is_shared(proxy->ctl->iface->md, req->addr,
                                   req->width);
}

static void uct_varuna_proxy_refuse(uct_varuna_proxy_t *proxy, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_proxy_req_t *req)
{
    uct_varuna_job_t job = {
        .hdr  = *hdr,
        .seq  = req->seq,
        .link = link
    };
    char reason[128];

    ucs_snprintf_safe(reason, sizeof(reason),
                      "0x%lx is in memory no key of which was given away",
                      req->addr);
    uct_varuna_ctl_complain(proxy->ctl, hdr->uuid, "an atomic", reason);
    ++proxy->stats.refused;
    uct_varuna_proxy_reply(proxy, &job, UCS_ERR_INVALID_ADDR);
}

void uct_varuna_proxy_handle_req(void *arg, unsigned link,
                                 const uct_varuna_ctl_hdr_t *hdr,
                                 const void *body)
{
    uct_varuna_proxy_t *proxy             = arg;
    const uct_varuna_ctl_proxy_req_t *req = body;
    uct_varuna_proxy_last_t *last;
    uct_varuna_target_t *target;
    uct_varuna_job_t *job;
    khiter_t iter;

    target = uct_varuna_target_of(proxy->ctl, hdr, &iter);
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

    if (!uct_varuna_proxy_is_in_reach(proxy, req)) {
        last->seq = req->seq;
        uct_varuna_proxy_refuse(proxy, link, hdr, req);
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
    job->width         = req->width;
    memcpy(job->rkeys, req->rkeys, sizeof(job->rkeys));
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
                                (proxy->arena.slots != NULL) ?
                                UCT_VARUNA_SLOTS_MAX : 0);
    }

    uct_varuna_proxy_run(proxy);
}
