/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Planned changes of the lane: from DC to RC, and back to a better link. Failures are
 * left to varuna_recovery.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_swap.h"
#include "varuna.inl"
#include "varuna_lane.h"
#include "varuna_pending.h"
#include "varuna_rebuild.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_ring.h"

/* Post a read of ours in any state that has a lane. @return UCS_OK if it is posted. */
static ucs_status_t
uct_varuna_swap_post_get(uct_varuna_ep_t *ep, uct_unpack_callback_t unpack_cb,
                         size_t length, uint64_t remote_addr, uct_rkey_t rkey)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_req_t *req     = uct_varuna_req_new(ep);
    ucs_status_t status;

    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_GET_BCOPY, NULL);
    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->length  = length;
    req->get.cb  = unpack_cb;
    req->get.arg = NULL;
    status       = uct_varuna_req_post(req, 1);
    if (status != UCS_OK) {
        return status;
    }

    uct_varuna_req_push(iface, ep, req, UCT_VARUNA_REQ_GET_BCOPY);
    return UCS_OK;
}

static void uct_varuna_ep_swap_unpack(void *arg, const void *data, size_t len)
{
    /* That it has come back is all that counts */
}

/*
 * The last request on the old lane is a read of the peer's memory. When its data has
 * come, all earlier writes are in memory, so they cannot overtake a write over another
 * NIC. It is repeated like any other request if the lane fails.
 *
 * While the lane has no resources for it, it has none for the user either.
 */
static void uct_varuna_ep_post_swap_read(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    if (ep->owed != NULL) {
        return;
    }

    status = uct_varuna_swap_post_get(ep, uct_varuna_ep_swap_unpack, sizeof(uint64_t),
                                      ep->hot.log_addr,
                                      ep->remote.log_bundle.rkey);
    if (status == UCS_OK) {
        ep->next.swap_read = 1;
        ++ep->stats.rebuild_reads;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
    }
}

/* @return Whether the old lane still has work. Requests that were posted precede those
 * that wait for the new lane. */
static int uct_varuna_ep_is_lane_busy(const uct_varuna_ep_t *ep)
{
    if (!uct_varuna_ring_is_empty(&ep->hot.reqs) &&
        (ep->hot.reqs.tail->flags & UCT_VARUNA_REQ_FLAG_POSTED)) {
        return 1;
    }

    return !uct_varuna_tl_is_drained(ep->lane.ep, ep->lane.kind);
}

int uct_varuna_ep_step_swap(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_lane_is_stale(uct_varuna_ep_iface(ep), ep)) {
        uct_varuna_ep_raise_lane_failed(ep, uct_varuna_ep_failure_reason(ep));
        return 1;
    }

    if (!ep->next.ready) {
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_SWAPPED); /* It failed: stay */
        return 1;
    }

    if (uct_varuna_ep_is_next_stale(ep)) {
        ep->next.failed = 1; /* It is dropped before the next step */
        return 1;
    }

    if (!ep->next.swap_read) {
        uct_varuna_ep_post_swap_read(ep);
        return 1;
    }

    if (uct_varuna_ep_is_lane_busy(ep)) {
        return 1;
    }

    ucs_debug("rc_varuna: ep %p vqp=%u: planned swap from %s on %s to %s on %s, %u "
              "requests wait for it", ep, ep->id, uct_varuna_lane_names[ep->lane.kind],
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->lane.link),
              uct_varuna_lane_names[ep->next.lane.kind],
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->next.lane.link),
              ep->hot.num_reqs);
    ep->stats.moves += (ep->lane.link != ep->next.lane.link);
    uct_varuna_ep_leave_inner_pending(ep, ep->lane.ep);
    uct_varuna_lane_destroy(ep, &ep->lane);
    uct_varuna_ep_set_lane(ep, &ep->next.lane);
    ep->next.lane.ep    = NULL;
    ep->next.ready = 0;
    ++ep->stats.rebuilds;
    ep->stats.rebuild_usec += ucs_time_to_usec(now - ep->next.retry.since);
    uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_SWAPPED);
    return 1;
}
