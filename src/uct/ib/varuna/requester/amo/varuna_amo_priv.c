/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What modes of atomics have in common, see varuna_amo_priv.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_priv.h"
#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>

#include <ucs/debug/log.h>

/* --- Flushes --- */

/* A flush that waits for atomics completes when all atomics before it, and then the requests
 * before it on the lane, are complete. */

/* Whether an atomic before @a flush is unfinished. */
static int uct_varuna_amo_is_before(uct_varuna_ep_t *ep,
                                    const uct_varuna_req_t *flush)
{
    const uct_varuna_amo_t *oldest;

    if (ucs_list_is_empty(&ep->amo.all)) {
        return 0;
    }

    oldest = ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all);
    return UCS_CIRCULAR_COMPARE32(oldest->sn, <=, flush->log_sn);
}

/* The flush waits for the requests on the lane */
static int uct_varuna_amo_move_flush(uct_varuna_ep_t *ep, uct_varuna_req_t *flush)
{
    ep->hot.want_signal = 1;
    uct_varuna_ep_add_work(ep);
    if (uct_varuna_ep_queue_flush(ep, flush->opcode, flush->user_comp) != UCS_INPROGRESS) {
        return 0;
    }

    ucs_queue_pull_non_empty(&ep->amo.flushes);
    ucs_mpool_put(flush);
    return 1;
}

static int uct_varuna_amo_is_flushed(const uct_varuna_ep_t *ep, const uct_varuna_req_t *flush)
{
    return !uct_varuna_ep_is_busy(ep) && uct_varuna_ep_is_placed(ep, flush->opcode);
}

/* Both lists are in order of age, and there are no counters, because a user's callback may
 * add atomics and flushes at any point. */
void uct_varuna_amo_finish_flushes(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_req_t *flush;
    uct_completion_t *comp;

    while (!ucs_queue_is_empty(&ep->amo.flushes)) {
        flush = ucs_queue_head_elem_non_empty(&ep->amo.flushes,
                                              uct_varuna_req_t, queue);
        if (uct_varuna_amo_is_before(ep, flush)) {
            return;
        }

        if ((status == UCS_OK) && !uct_varuna_amo_is_flushed(ep, flush)) {
            if (!uct_varuna_amo_move_flush(ep, flush)) {
                return;
            }
            continue;
        }

        ucs_queue_pull_non_empty(&ep->amo.flushes);
        comp = flush->user_comp;
        ucs_mpool_put(flush);
        uct_invoke_completion(comp, status);
    }
}

int uct_varuna_amo_retry_flushes(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *flush;

    while (!ucs_queue_is_empty(&ep->amo.flushes)) {
        flush = ucs_queue_head_elem_non_empty(&ep->amo.flushes,
                                              uct_varuna_req_t, queue);
        if (uct_varuna_amo_is_before(ep, flush)) {
            return 0;
        }

        if (uct_varuna_amo_is_flushed(ep, flush)) {
            uct_varuna_amo_finish_flushes(ep, UCS_OK); /* The user may destroy it */
            return 0;
        }

        if (!uct_varuna_amo_move_flush(ep, flush)) {
            return 1;
        }
    }

    return 0;
}


/* --- Requests that are sent again --- */

/* When and over which link a request for an atomic is sent again, and when it is given
 * up. Called by modes proxy and extended. */

static uct_varuna_retry_policy_t
uct_varuna_amo_retry_policy(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface        = uct_varuna_ep_iface(ep);
    const uct_varuna_retry_policy_t policy = {
        .interval = iface->config.ctl_timeout,
        .give_up  = iface->config.give_up
    };

    return policy;
}

void uct_varuna_amo_retry_start(uct_varuna_ep_t *ep)
{
    uct_varuna_retry_start(&ep->amo.retry, 0, uct_varuna_ep_requester(ep)->scan.clock);
    ep->amo.retry_epoch = ep->lane.epoch;
}

/* While the endpoint recovered, nothing was asked, and no answer could come. The peer has
 * taken part in the recovery, so it has its time once more. */
static void uct_varuna_amo_retry_renew(uct_varuna_ep_t *ep, ucs_time_t clock)
{
    if (ep->amo.retry_epoch != ep->lane.epoch) {
        ep->amo.retry.since = clock;
        ep->amo.retry_epoch = ep->lane.epoch;
    }
}

unsigned uct_varuna_amo_retry_next(uct_varuna_ep_t *ep)
{
    const uct_varuna_retry_policy_t policy = uct_varuna_amo_retry_policy(ep);

    return uct_varuna_retry_next(&ep->amo.retry, &policy, uct_varuna_ep_select_link(ep),
                                 ep->peer->link_map, ucs_get_time());
}

int uct_varuna_amo_retry_is_due(uct_varuna_ep_t *ep)
{
    const uct_varuna_retry_policy_t policy = uct_varuna_amo_retry_policy(ep);
    ucs_time_t clock                       = uct_varuna_ep_requester(ep)->scan.clock;

    uct_varuna_amo_retry_renew(ep, clock);
    switch (uct_varuna_retry_check(&ep->amo.retry, &policy, ucs_get_time(), clock)) {
    case UCT_VARUNA_RETRY_SEND:
        return 1;
    case UCT_VARUNA_RETRY_GIVE_UP:
        ucs_diag("ep %p: vQP %u: the peer has not executed an atomic for %.1f s: "
                 "giving up", ep, ep->id,
                 ucs_time_to_sec(clock - ep->amo.retry.since));
        uct_varuna_ep_raise_fatal(ep, UCS_ERR_ENDPOINT_TIMEOUT);
        return 0;
    default:
        return 0;
    }
}
