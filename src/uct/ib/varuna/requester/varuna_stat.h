/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Counts and reports the switches of endpoints, and shows the counters of an
 * endpoint as UCX's statistics, where UCX is built with them. varuna_vfs.c shows the
 * same in the VFS tree.
 */
#ifndef UCT_VARUNA_STAT_H_
#define UCT_VARUNA_STAT_H_

#include "varuna_ep.h"

#include <ucs/stats/stats.h>

/** Names of the counters of an endpoint: the members of its stats, in their order. */
#define UCT_VARUNA_STAT_EP(_counter) \
    _counter(posted) \
    _counter(slow) \
    _counter(logged) \
    _counter(executed) \
    _counter(lost) \
    _counter(ambiguous) \
    _counter(compared_equal) \
    _counter(compared_different) \
    _counter(undecided) \
    _counter(repeated) \
    _counter(repeated_bytes) \
    _counter(switches) \
    _counter(epochs) \
    _counter(rebuilds) \
    _counter(rebuild_usec) \
    _counter(rebuild_messages) \
    _counter(rebuild_reads) \
    _counter(moves) \
    _counter(recovery_usec) \
    _counter(drain_usec) \
    _counter(fence_usec) \
    _counter(repeat_usec) \
    _counter(detect_usec) \
    _counter(fences_reset) \
    _counter(fences_lifetime) \
    _counter(resumed) \
    _counter(resume_usec)

/** The same of its atomics. */
#define UCT_VARUNA_STAT_AMO(_counter) \
    _counter(started) \
    _counter(helped) \
    _counter(recovered) \
    _counter(proxied) \
    _counter(retries) \
    _counter(backoffs)

/** A failure is noticed. @a waited: how long the oldest request has waited. */
void uct_varuna_stat_failing(uct_varuna_ep_t *ep, ucs_time_t waited);

/** The endpoint leaves a state. @a time: how long it was in it. */
void uct_varuna_stat_spent(uct_varuna_ep_t *ep, uct_varuna_ep_state_t state,
                           ucs_time_t time);

/** A dead lane is at rest, and the evidence is there. */
void uct_varuna_stat_fenced(uct_varuna_ep_t *ep, uct_varuna_fenced_t fenced);

/** The endpoint has a lane again, and all that was lost is posted there. */
void uct_varuna_stat_switched(uct_varuna_ep_t *ep);

/** The endpoint has failed while it recovered: what was found counts all the same. */
void uct_varuna_stat_failed(uct_varuna_ep_t *ep);

/** Make the endpoint's node of UCX's statistics, a child of its base class's. Does
 *  nothing if UCX is built without statistics, as do the two below. */
ucs_status_t uct_varuna_stat_init(uct_varuna_ep_t *ep);

void uct_varuna_stat_cleanup(uct_varuna_ep_t *ep);

/** Show the counters as they are now. Called after a switch and by the background
 *  scan, so that the posting path counts once only. */
void uct_varuna_stat_publish(uct_varuna_ep_t *ep);

/* --- Outages --- */

/* Tells the user, at the default log level, which peers have no link, which endpoints fail
 * therefore, and why as far as is known. The same reason for many peers is one line. Main
 * thread only. */

/** The endpoint waits for its peer. If that has no link for a second, the user is told, once
 *  for each outage. */
void uct_varuna_outage_check(uct_varuna_ep_t *ep);

/** The endpoint fails because it got no answer for the time @a age. */
void uct_varuna_outage_give_up(uct_varuna_ep_t *ep, ucs_time_t age);

/** Write the lines that are due; to be called before users are told of failed endpoints. */
void uct_varuna_outage_write(uct_varuna_requester_t *requester);

/** Write all that is left. */
void uct_varuna_outage_cleanup(uct_varuna_requester_t *requester);

/** Count for its present link what the endpoint has posted so far. */
void uct_varuna_stat_settle(uct_varuna_ep_t *ep);

/** @return Posted requests that the sum of a link does not contain yet. */
static inline uint64_t uct_varuna_stat_unsettled(const uct_varuna_ep_t *ep)
{
    return ep->stats.posted - ep->report.settled;
}

#endif
