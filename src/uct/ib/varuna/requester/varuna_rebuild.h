/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Connects RC in the background: the lane that the vQP changes to. Main thread only.
 */
#ifndef UCT_VARUNA_REBUILD_H_
#define UCT_VARUNA_REBUILD_H_

#include "varuna_ep.h"

/** Start connecting RC in the background if a better lane may be had. */
void uct_varuna_ep_connect_next(uct_varuna_ep_t *ep, ucs_time_t now);

/** Begin to connect RC on a link. */
void uct_varuna_ep_connect_rc(uct_varuna_ep_t *ep, unsigned link,
                              ucs_time_t now);

/** Ask once more. */
void uct_varuna_ep_connect_again(uct_varuna_ep_t *ep, ucs_time_t now);

/** @return The link to make a lane on, of an endpoint that has none: one after the other
 *  has its turn, and when no lane could be had on any, they have a pause.
 *  UCT_VARUNA_LINK_NONE: none now. */
uint8_t uct_varuna_rebuild_select_link(uct_varuna_ep_t *ep, ucs_time_t now);

/** CONNECT_REQ of an endpoint without a lane is not answered in time: ask once more, or
 *  leave the link. */
void uct_varuna_rebuild_ask_or_leave(uct_varuna_ep_t *ep, ucs_time_t now);

/** Take the best lane that an endpoint without any can have. Without DC it is being
 *  connected: call this again. @return 0 if there is none yet. */
int uct_varuna_ep_take_lane(uct_varuna_ep_t *ep, ucs_time_t now);

/** Connect the next lane while the responder is asked about the last one: without DC, one
 *  round trip of the bus brings both. */
void uct_varuna_rebuild_prepare(uct_varuna_ep_t *ep, ucs_time_t now);

/** @return Whether a connection in reserve can replace a lane that has just failed. */
int uct_varuna_rebuild_keeps_standby(const uct_varuna_ep_t *ep);

/** CONNECT_REP: the peer has made its end. The body's lengths were checked. */
void uct_varuna_ep_handle_connect_rep(uct_varuna_ep_t *ep,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const uct_varuna_ctl_connect_t *rep);

/** Make the lane that is connected the active one. */
void uct_varuna_rebuild_use_next(uct_varuna_ep_t *ep);

/** The new lane is connected, and not known to work: go on with its first write. */
void uct_varuna_rebuild_prove(uct_varuna_ep_t *ep);

/** @return Whether RC may be connected, or CONNECT_REQ be sent again. */
static inline int
uct_varuna_rebuild_is_due(const uct_varuna_ep_t *ep, ucs_time_t now)
{
    return now >= ep->next.retry.due;
}

/** Connect RC as soon as possible. */
static inline void uct_varuna_rebuild_at_once(uct_varuna_ep_t *ep, ucs_time_t now)
{
    ep->next.retry.due = now;
}

/** @return Whether the lane that is being made is of no use: its link or path has failed
 *  since. */
int uct_varuna_ep_is_next_stale(const uct_varuna_ep_t *ep);

/* --- Planned changes of the lane --- */

/** State SWAP. @return nonzero to be called again. */
int uct_varuna_ep_step_swap(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
