/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs at rest. A packet of RC names its destination only, and UCX begins each
 * connection with the same sequence number. So a packet that is late would be executed by
 * the next queue pair that gets the number of the one that it was meant for, whose own
 * packet is then taken for a duplicate: a write is lost, and nobody notices. The same goes
 * for late acknowledgements at the requester's end. So a queue pair that was connected keeps
 * its number until such packets have expired, at both ends. Used by the requester, the
 * responder and the graves below, in the main thread.
 */
#ifndef UCT_VARUNA_REST_H_
#define UCT_VARUNA_REST_H_

#include "varuna_lanes.h"

#include <ucs/datastruct/queue.h>

/** At rest at the same time: beyond that, the oldest is destroyed early. */
#define UCT_VARUNA_REST_MAX          256

/**
 * Destroy an inner endpoint that nobody uses any more: if it has a queue pair of its own, which
 * is drained, when a packet lifetime is over, otherwise at once. Its queue pair must not accept
 * anything new: it is in ERR or RESET, or the other end is.
 */
void uct_varuna_rest_begin(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind);

/** What an owner does before UCX destroys an inner endpoint that has rested. */
typedef void (*uct_varuna_rest_release_t)(void *arg, uct_ep_h inner);

/**
 * The same for a queue pair in RESET, which need not be drained. It is destroyed by progress,
 * when UCX can do that: UCX waits for an event LAST_WQE_REACHED then, and does not expect two, so
 * that of the first time must have come. It may be late, or never come.
 *
 * @param [in] arg  The owner, see uct_varuna_rest_end_resets().
 */
void uct_varuna_rest_begin_reset(uct_varuna_iface_t *iface, uct_ep_h inner,
                                 uct_varuna_lane_kind_t kind,
                                 uct_varuna_rest_release_t release, void *arg);

/** Destroy all of an owner that are in RESET. Wait until @a deadline for the event. */
void uct_varuna_rest_end_resets(uct_varuna_iface_t *iface, const void *arg,
                                ucs_time_t deadline);

/** Destroy those that have rested for long enough. */
void uct_varuna_rest_progress(uct_varuna_iface_t *iface, ucs_time_t now);

/** A NIC is short of queue pairs: destroy the oldest one that rests on it, if any. One in RESET
 *  is destroyed by the next progress: the NIC is not asked again before that. */
void uct_varuna_rest_yield(uct_varuna_iface_t *iface, unsigned nic);

/** The interface is being closed: destroy all, also those that come from now on. */
void uct_varuna_rest_cleanup(uct_varuna_iface_t *iface);

/* --- Endpoints whose owner is gone --- */

/* UCX does not expect a success completion of a destroyed endpoint, so it is destroyed when it
 * is drained, or rests from then on. Until it is drained the lane may still complete requests,
 * or write into their buffers. */

/** Release the requests in a queue, which no lane uses any more. */
typedef void (*uct_varuna_grave_release_t)(void *remains);

/**
 * Destroy an inner endpoint, now or when it is drained.
 *
 * @param [in]    inner    Inner endpoint, which was invalidated.
 * @param [in]    kind     Its transport.
 * @param [inout] reqs     Its unfinished requests, released with it; empty
 *                         afterwards. NULL if there are none.
 * @param [in]    release  Releases them.
 */
void uct_varuna_grave_bury(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind, void *remains,
                           uct_varuna_grave_release_t release);

/** Destroy those that are drained. */
void uct_varuna_graves_progress(uct_varuna_iface_t *iface);

/** The NIC of a link has been at rest for a packet lifetime: nothing more comes to those there. */
void uct_varuna_graves_end(uct_varuna_iface_t *iface, unsigned link);

/** Destroy all, after waiting a second at most for them to drain. */
void uct_varuna_graves_cleanup(uct_varuna_iface_t *iface);

/** @return Whether anything is on the lanes of a link: endpoints that rest or drain, those on
 *          DC, and buffers that the user has. Main thread. */
int uct_varuna_lanes_are_used(const uct_varuna_iface_t *iface, unsigned link);

#endif
