/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The physical lanes of a vQP, and the paths to its peer. Main thread only.
 */
#ifndef UCT_VARUNA_LANE_H_
#define UCT_VARUNA_LANE_H_

#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_avoid.h"
#include "varuna_ep.h"

/** @return The link for new traffic, UCT_VARUNA_LINK_NONE if there is none. */
uint8_t uct_varuna_ep_select_link(const uct_varuna_ep_t *ep);

/** @return One of the links @a among for a lane of an endpoint that has none: a good one,
 *  or one whose path to the peer has failed, but may work again; UCT_VARUNA_LINK_NONE if
 *  none is worth a try yet. Links that are to be left, here or at the peer, are the last
 *  choice. */
uint8_t uct_varuna_ep_select_among(const uct_varuna_ep_t *ep, unsigned among);

/**
 * Make a lane, as a new incarnation. RC is not connected yet.
 *
 * @param [in]  kind    RC or DC.
 * @param [in]  link    Local link index.
 * @param [out] lane_p  Filled only on success.
 */
ucs_status_t uct_varuna_lane_create(uct_varuna_ep_t *ep,
                                    uct_varuna_lane_kind_t kind, unsigned link,
                                    uct_varuna_lane_t *lane_p);

/** Destroy an inner endpoint, and forget whose it was. */
void uct_varuna_lane_destroy(uct_varuna_ep_t *ep, uct_varuna_lane_t *lane);

/** Post on this lane from now on. */
void uct_varuna_ep_set_lane(uct_varuna_ep_t *ep, const uct_varuna_lane_t *lane);

/** Its lane, or the peer's home NIC, is another one. */
void uct_varuna_ep_note_away(uct_varuna_ep_t *ep);

/** Give up the RC lane which is being connected. */
void uct_varuna_ep_drop_next(uct_varuna_ep_t *ep);

/** Its CONNECT_REQ is answered, or given up. */
void uct_varuna_ep_connect_ended(uct_varuna_ep_t *ep);

/** The RC lane which is being connected cannot be had: it is destroyed in the next step,
 *  and an endpoint without a lane tries the other links first. */
void uct_varuna_ep_fail_next(uct_varuna_ep_t *ep);

/** An inner endpoint of ours reported an error. */
void uct_varuna_ep_lane_error(uct_varuna_ep_t *ep, uct_ep_h inner,
                              ucs_status_t status);

/* --- State of the lane --- */

/* Whether the active lane's link or path has failed. Main thread. */

/** @return whether the active lane's link or path has failed since the lane was made:
 *  one store in another place, which every endpoint sees here. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_lane_is_stale(const uct_varuna_iface_t *iface,
                            const uct_varuna_ep_t *ep)
{
    unsigned link = ep->lane.link;

    return (iface->link_table.links[link].generation != ep->lane.link_gen) ||
           (ep->peer->paths[link].generation != ep->lane.path_gen);
}

/** @return Why the active lane's link or path has failed. */
static inline const char *
uct_varuna_ep_failure_reason(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface     = uct_varuna_ep_iface(ep);
    const uct_varuna_link_entry_t *link =
            &iface->link_table.links[ep->lane.link];

    return (link->generation != ep->lane.link_gen) ? link->reason :
           ep->peer->paths[ep->lane.link].reason;
}

/* --- Queue pairs that hang --- */

/* They neither complete nor fail what they were given. */

/** Nothing hangs as of now: the timeout starts anew. */
void uct_varuna_hang_restart(uct_varuna_ep_t *ep);

/** The lane or its oldest request is a new one: both timeouts start anew. */
void uct_varuna_hang_new_head(uct_varuna_ep_t *ep);

/** @return For how long the oldest request has been the same, by the clock of the scan. */
ucs_time_t uct_varuna_hang_head_age(const uct_varuna_ep_t *ep);

/** @return Since when the peer has answered nothing, by the clock of the scan: since the
 *  present lane has last completed something, if the peer is silent on all links; 0 if
 *  it is not. */
ucs_time_t uct_varuna_hang_silent_since(const uct_varuna_ep_t *ep);

/** The endpoint has a lane and unfinished requests. If its queue pair hangs, or the peer is
 *  silent on all links for GIVE_UP, the path fails. */
void uct_varuna_hang_check(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
