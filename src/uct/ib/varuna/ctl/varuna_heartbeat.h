/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pings over the control plane, in the async context, so that neither side's
 * application takes part: finds links which are silent, and tells a busy peer from
 * a dead path. What it finds goes to the main thread, through the control plane's
 * inbox; it never acts itself.
 */
#ifndef UCT_VARUNA_HEARTBEAT_H_
#define UCT_VARUNA_HEARTBEAT_H_

#include "varuna_ctl.h"

/** Register the rows of the bus, and the job of the clock if HEARTBEAT_INTERVAL is not
 *  zero. */
void uct_varuna_heartbeat_start(uct_varuna_ctl_t *ctl);

/** Was it a ping of ours, to @a uuid and not long ago, of which @a hdr has the
 *  number? Lock held. */
int uct_varuna_heartbeat_has_asked(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                   const uct_varuna_ctl_hdr_t *hdr);

/** The peer object is going away. Lock held. */
void uct_varuna_heartbeat_forget(uct_varuna_peer_t *peer);

/** Something was found about the peer: let the main thread know. Lock held. */
void uct_varuna_heartbeat_queue(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer);

/** Main thread: apply what was found. Lock not held. @return number of events. */
unsigned uct_varuna_heartbeat_dispatch(uct_varuna_ctl_t *ctl);

/** Main thread, no lock: traffic waits on this path. */
static inline void uct_varuna_heartbeat_use(uct_varuna_peer_t *peer,
                                            unsigned link, ucs_time_t now)
{
    __atomic_store_n(&peer->hb.used_at[link], now, __ATOMIC_RELAXED);
}

/** Main thread, no lock: the path was proved to be good, judge it anew. */
static inline void uct_varuna_heartbeat_renew(uct_varuna_peer_t *peer,
                                              unsigned link)
{
    __atomic_fetch_or(&peer->hb.renew, UCS_BIT(link), __ATOMIC_RELAXED);
}

/** @return When the peer last answered on the path; 0: never. No lock. */
static inline ucs_time_t
uct_varuna_heartbeat_answered_at(const uct_varuna_peer_t *peer, unsigned link)
{
    return __atomic_load_n(&peer->hb.alive.paths[link].answered_at,
                           __ATOMIC_ACQUIRE);
}

/** @return A number which moves on when the peer's application calls progress, as
 *  of its last answer. Ask for the time of that first. No lock. */
static inline uint32_t
uct_varuna_heartbeat_app_beat(const uct_varuna_peer_t *peer)
{
    return __atomic_load_n(&peer->hb.app_beat, __ATOMIC_RELAXED);
}

/** @return whether the peer's process has been silent for @a timeout (0: for ever)
 *  while another process on one of its ports answered. No lock. */
static inline int uct_varuna_heartbeat_is_gone(const uct_varuna_peer_t *peer,
                                               ucs_time_t timeout)
{
    return (timeout != 0) &&
           (__atomic_load_n(&peer->hb.gone_time, __ATOMIC_RELAXED) > timeout);
}

/** Main thread: ask once, now. @return nonzero if that was possible: silence is an
 *  answer then. */
int uct_varuna_heartbeat_probe(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                               unsigned link);

#endif
