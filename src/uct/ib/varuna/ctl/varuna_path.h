/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The paths to a peer: which are good, which were not, and when one is used again.
 * Main thread only.
 */
#ifndef UCT_VARUNA_PATH_H_
#define UCT_VARUNA_PATH_H_

#include "varuna_peer.h"
#include <uct/ib/varuna/core/varuna_def.h>

/** The path of @a link to @a peer failed, for whatever @a reason: all endpoints
 *  on it recover. Cost does not grow with their number. */
void uct_varuna_peer_path_down(uct_varuna_iface_t *iface,
                               uct_varuna_peer_t *peer, unsigned link,
                               const char *reason);

/** The path was seen to be good: its hold-down begins if it was down. */
void uct_varuna_peer_path_good(uct_varuna_iface_t *iface,
                               uct_varuna_peer_t *peer, unsigned link);

/** @return Bit map of the links over which the peer may be reached now. */
unsigned uct_varuna_peer_usable_links(const uct_varuna_peer_t *peer);

/** The same, without those which are not good for RETURN_DELAY yet. */
unsigned uct_varuna_peer_returnable_links(const uct_varuna_iface_t *iface,
                                          const uct_varuna_peer_t *peer,
                                          ucs_time_t now);

/**
 * Ask on paths which are down, and during their hold-down: they are good again when
 * they answer all the time until it is over. For each peer, however many endpoints
 * call this.
 */
void uct_varuna_peer_probe_paths(uct_varuna_iface_t *iface,
                                 uct_varuna_peer_t *peer, ucs_time_t now);

/* --- What the async context found --- */

/* Applies what the async context has found out about paths and links. */

/** @return Whether there is something to apply. Lock held. */
int uct_varuna_peer_has_events(uct_varuna_ctl_t *ctl);

/** Main thread: apply what was found. Lock not held. @return number of events. */
unsigned uct_varuna_peer_events_dispatch(uct_varuna_ctl_t *ctl);

#endif
