/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs at rest. A packet of RC names its destination only, and UCX begins each
 * connection with the same sequence number. So a packet that is late would be executed by
 * the next queue pair that gets the number of the one that it was meant for, whose own
 * packet is then taken for a duplicate: a write is lost, and nobody notices. The same goes
 * for late acknowledgements at the requester's end. So a queue pair that was connected keeps
 * its number until such packets have expired, at both ends. Used by the requester, the
 * responder and varuna_grave.c, in the main thread.
 */
#ifndef UCT_VARUNA_REST_H_
#define UCT_VARUNA_REST_H_

#include "varuna_lanes.h"

/** At rest at the same time: beyond that, the oldest is destroyed early. */
#define UCT_VARUNA_REST_MAX          256

/**
 * Destroy an inner endpoint that nobody uses any more: if it has a queue pair of its own, which
 * is drained, when a packet lifetime is over, otherwise at once. Its queue pair must not accept
 * anything new: it is in ERR or RESET, or the other end is.
 */
void uct_varuna_rest_begin(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind);

/** Destroy those that have rested for long enough. */
void uct_varuna_rest_progress(uct_varuna_iface_t *iface, ucs_time_t now);

/** A NIC is short of queue pairs: destroy the oldest one that rests on it, if any. */
void uct_varuna_rest_yield(uct_varuna_iface_t *iface, unsigned nic);

/** The interface is being closed: destroy all, also those that come from now on. */
void uct_varuna_rest_cleanup(uct_varuna_iface_t *iface);

#endif
