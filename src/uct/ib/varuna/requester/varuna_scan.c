/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The background scan over the endpoints. See varuna_scan.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_scan.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_hang.h"
#include "varuna_lane.h"
#include "varuna_ep_event.h"
#include "varuna_ep_life.h"
#include "varuna_stat.h"
#include "varuna_rebuild.h"
#include "varuna_ring.h"

#define UCT_VARUNA_SCAN_EPS          16   /* endpoints per scan */

/* Requests without a completion that are still the oldest after this time are given one:
 * without it, a hanging request is not found */
#define UCT_VARUNA_SCAN_SIGNAL       0.1  /* seconds */

/* The user is told if a request waits for a peer that has no link: not of what is slow */
#define UCT_VARUNA_SCAN_STUCK        1.0  /* seconds */

/* Between two scans the clock of requests advances by this at most: while the application
 * does not call progress, completions are not polled either */
#define UCT_VARUNA_SCAN_STEP         0.2  /* seconds */

/* Called for each endpoint now and then; the requests themselves bear no timer. */
static void uct_varuna_ep_watch(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_req_t *head;

    if (uct_varuna_ring_is_empty(&ep->hot.reqs)) {
        ep->hot.gate = 1; /* The next post gets another slab */
        uct_varuna_ring_trim(&ep->hot.reqs);
        return;
    }

    if (ep->lane.ep == NULL) {
        return;
    }

    uct_varuna_heartbeat_use(ep->peer, ep->lane.link, now);
    head = ep->hot.reqs.tail;
    if (!(head->flags & UCT_VARUNA_REQ_FLAG_WATCHED)) {
        head->flags |= UCT_VARUNA_REQ_FLAG_WATCHED;
        uct_varuna_hang_new_head(ep);
        return;
    }

    if ((ep->hot.silent > 0) && !ep->hot.want_signal &&
        (uct_varuna_hang_head_age(ep) >= ucs_time_from_sec(UCT_VARUNA_SCAN_SIGNAL))) {
        ep->hot.want_signal = 1;
        uct_varuna_ep_add_work(ep);
    }

    if (uct_varuna_hang_head_age(ep) >= ucs_time_from_sec(UCT_VARUNA_SCAN_STUCK)) {
        uct_varuna_outage_check(ep);
    }

    uct_varuna_hang_check(ep, now);
}

void uct_varuna_scan(uct_varuna_requester_t *requester, ucs_time_t now)
{
    unsigned num_eps = requester->eps.size;
    unsigned i;
    void *ptr;

    if (requester->scan.failures != requester->super.failures) {
        requester->scan.failures = requester->super.failures;
        requester->scan.left     = num_eps;
    }

    requester->scan.at         = now + ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD);
    requester->scan.clock     += ucs_min(now - requester->scan.scanned_at,
                                         ucs_time_from_sec(UCT_VARUNA_SCAN_STEP));
    requester->scan.scanned_at = now;
    for (i = 0; i < ucs_min(num_eps, UCT_VARUNA_SCAN_EPS); ++i) {
        requester->scan.next = (requester->scan.next + 1) % num_eps;
        if (ucs_ptr_array_lookup(&requester->eps, requester->scan.next, ptr)) {
            uct_varuna_ep_watch(ptr, now);
            uct_varuna_ep_open_lane(ptr, now);
            uct_varuna_ep_connect_next(ptr, now);
            uct_varuna_stat_publish(ptr);
        }
    }
    requester->scan.left -= ucs_min(requester->scan.left, UCT_VARUNA_SCAN_EPS);
}
