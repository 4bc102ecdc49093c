/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pings over the control plane, in the async context, so that neither side's
 * application takes part: finds silent links, and distinguishes a busy peer from a dead
 * path. It reports to the main thread, through the control plane's inbox, and never acts
 * itself.
 */
#ifndef UCT_VARUNA_HEARTBEAT_H_
#define UCT_VARUNA_HEARTBEAT_H_

#include "varuna_peer.h"
#include "varuna_ctl.h"

/** Register the rows of the bus, and the job of the clock if HEARTBEAT_INTERVAL is not
 *  zero. */
void uct_varuna_heartbeat_start(uct_varuna_ctl_t *ctl);

/** Was it a ping of ours, to @a uuid and not long ago, of which @a hdr has the
 *  number? Lock held. */
int uct_varuna_heartbeat_has_asked(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                   const uct_varuna_ctl_hdr_t *hdr);

/** Main thread: ask once, now. @return nonzero if that was possible: silence is an
 *  answer then. */
int uct_varuna_heartbeat_probe(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                               unsigned link);

/* --- Pings --- */

/* Sends pings. A link has resources for a few messages at a time (4 DCIs), and gets them
 * back only when it is polled, so one tick of the heartbeat cannot ask all peers: those
 * that are left are due, and are asked as resources come back. Lock held in all. */

/** There are none at first. */
void uct_varuna_ping_init(uct_varuna_ctl_t *ctl);

/** Send the pings that are due, as far as there are resources, but no more than a burst on
 *  each link, because the caller holds the lock. */
void uct_varuna_ping_go_on(uct_varuna_ctl_t *ctl);

#endif
