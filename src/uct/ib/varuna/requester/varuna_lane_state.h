/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether the active lane's link or path has failed. Main thread.
 */
#ifndef UCT_VARUNA_LANE_STATE_H_
#define UCT_VARUNA_LANE_STATE_H_

#include "varuna_ep.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>

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

#endif
