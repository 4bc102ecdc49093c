/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The home NIC of mode extended: requests of clients that cannot reach it, its
 * loopbacks, and the list of jobs. Jobs are executed one after the other
 * (varuna_home_job.c), so each is either done, under way, or not begun. A repeated request
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
#include "varuna_home.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <string.h>

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

void uct_varuna_home_reply(uct_varuna_home_t *home, uct_varuna_job_t *job,
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

void uct_varuna_home_request(uct_varuna_home_t *home,
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
