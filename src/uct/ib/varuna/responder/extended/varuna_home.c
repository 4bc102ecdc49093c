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

#include <uct/ib/varuna/core/varuna_amo_sm.h>
#include <uct/ib/varuna/md/varuna_mem.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ctl_ep.h>
#include <uct/ib/varuna/ctl/varuna_ctl_send.h>
#include <uct/ib/varuna/ctl/varuna_stranger.h>
#include "varuna_home.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <ucs/sys/string.h>
#include <string.h>

/* Jobs that wait. Further requests are dropped, and their clients repeat them */
#define UCT_VARUNA_HOME_MAX_JOBS     4096

int uct_varuna_home_has_slots(const uct_varuna_home_t *home)
{
    return uct_varuna_atomic_modes[home->ctl->iface->md->atomic_mode].has_slots;
}

uint8_t uct_varuna_home_find_link(const uct_varuna_home_t *home, uint8_t nic)
{
    const uct_varuna_iface_t *iface = home->ctl->iface;
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if (iface->links[link].nic == nic) {
            return link;
        }
    }

    return UCT_VARUNA_LINK_NONE;
}

/* --- Loopbacks --- */

static ucs_status_t uct_varuna_home_open_loopback(uct_varuna_home_t *home,
                                                  unsigned link)
{
    uct_varuna_ctl_t *ctl = home->ctl;

    return uct_varuna_ctl_ep_create(ctl, link, ctl->iface->links[link].device_addr,
                                    ctl->links[link].addr,
                                    &home->loopbacks[link].ep);
}

/* A failed one is not destroyed in its own callbacks, nor before it is drained: UCX
 * would not give its DCI back, and without DCIs there are no control messages. */
int uct_varuna_home_use_loopback(uct_varuna_home_t *home, unsigned link)
{
    uct_varuna_loopback_t *loopback = &home->loopbacks[link];

    if ((loopback->ep != NULL) && loopback->ep->failed) {
        ucs_debug("a loopback failed");
        loopback->dead = loopback->ep;
        loopback->ep   = NULL;
    }

    if (loopback->dead != NULL) {
        if (home->ctl->progressing ||
            !uct_varuna_ctl_ep_is_drained(home->ctl, loopback->dead)) {
            return 0;
        }
        uct_varuna_ctl_ep_destroy(home->ctl, loopback->dead);
        loopback->dead = NULL;
    }

    return (loopback->ep != NULL) ||
           (uct_varuna_home_open_loopback(home, link) == UCS_OK);
}

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

    return uct_varuna_home_find_link(home, name.nic);
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
            !uct_varuna_home_use_loopback(home, link) ||
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

void uct_varuna_home_client_init(uct_varuna_home_client_t *client, uct_varuna_peer_t *peer)
{
    memset(client, 0, sizeof(*client));
    client->peer       = peer;
    client->first_slot = UCT_VARUNA_SLOT_NONE;
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


/* --- Opening and closing --- */

void uct_varuna_home_join(uct_varuna_home_t *home)
{
    const uct_varuna_iface_t *iface = home->ctl->iface;
    uint8_t map                     = 0;
    unsigned link;

    if (home->joined) {
        return;
    }

    for (link = 0; link < iface->num_links; ++link) {
        map |= UCS_BIT(iface->links[link].nic);
    }

    uct_varuna_home_name_join(&home->member, iface->links[0].nic, map,
                              home->ctl->kick_fd);
    home->joined = 1;
}

ucs_status_t uct_varuna_home_create(uct_varuna_ctl_t *ctl,
                                    uct_varuna_home_t **home_p)
{
    uct_varuna_home_t *home;
    ucs_status_t status;

    home = ucs_calloc(1, sizeof(*home), "varuna_home");
    if (home == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    home->ctl            = ctl;
    home->member.at_rest = 1;
    ucs_list_head_init(&home->jobs);
    ucs_list_head_init(&home->lost);
    ucs_list_head_init(&home->dead_blocks);
    home->access = ucs_calloc(1, sizeof(*home->access), "varuna_access");
    if (home->access == NULL) {
        status = UCS_ERR_NO_MEMORY;
        goto err_destroy;
    }

    if (uct_varuna_home_has_slots(home)) {
        status = uct_varuna_blocks_init(home);
        if (status != UCS_OK) {
            goto err_destroy;
        }

        uct_varuna_home_join(home);
    }

    *home_p = home;
    return UCS_OK;

err_destroy:
    uct_varuna_home_destroy(home);
    return status;
}

void uct_varuna_home_destroy(uct_varuna_home_t *home)
{
    uct_varuna_dead_block_t *block;
    uct_varuna_access_t *access;
    uct_varuna_job_t *job;
    unsigned link;

    if (home->access != NULL) {
        home->access->home = NULL;
    }

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        if (home->loopbacks[link].ep != NULL) {
            uct_varuna_ctl_ep_destroy(home->ctl, home->loopbacks[link].ep);
        }
        if (home->loopbacks[link].dead != NULL) {
            uct_varuna_ctl_ep_destroy(home->ctl, home->loopbacks[link].dead);
        }
    }

    /* Nothing of ours is on any NIC now */
    if (home->joined) {
        uct_varuna_home_name_leave(&home->member);
    }

    while (!ucs_list_is_empty(&home->lost)) {
        access = ucs_list_extract_head(&home->lost, uct_varuna_access_t, list);
        ucs_free(access);
    }

    while (!ucs_list_is_empty(&home->jobs)) {
        job = ucs_list_extract_head(&home->jobs, uct_varuna_job_t, list);
        ucs_free(job);
    }

    while (!ucs_list_is_empty(&home->dead_blocks)) {
        block = ucs_list_extract_head(&home->dead_blocks,
                                      uct_varuna_dead_block_t, list);
        uct_varuna_arena_free(block->first);
        ucs_free(block);
    }

    uct_varuna_blocks_cleanup(home);
    ucs_free(home->access);
    ucs_free(home);
}
