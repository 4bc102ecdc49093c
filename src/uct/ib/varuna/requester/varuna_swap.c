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
#include "varuna_placed.h"
#include "varuna_rebuild.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_ring.h"

/*
 * The last request on the old lane is a read of the peer's memory. When its data has
 * come, all earlier writes are in memory, so they cannot overtake a write over another
 * NIC. It is repeated like any other request if the lane fails. Only messages follow it
 * (varuna_start.c).
 *
 * While the lane has no resources for it, it has none for the user either.
 */
static void uct_varuna_ep_post_swap_read(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    if (ep->owed != NULL) {
        return;
    }

    status = uct_varuna_ep_read_back(ep, NULL);
    if (status == UCS_OK) {
        ep->next.swap_posts = 1;
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

    if (ep->next.swap_posts == 0) {
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
