/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The physical lanes of a vQP, and the paths to its peer. Main thread only.
 */
#ifndef UCT_VARUNA_LANE_H_
#define UCT_VARUNA_LANE_H_

#include "varuna_ep.h"

static inline uct_varuna_iface_t *uct_varuna_ep_iface(const uct_varuna_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_varuna_iface_t);
}

static inline uct_varuna_requester_t *
uct_varuna_ep_requester(const uct_varuna_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_varuna_requester_t);
}

/** @return The link for new traffic, UCT_VARUNA_LINK_NONE if there is none. */
uint8_t uct_varuna_ep_select_link(const uct_varuna_ep_t *ep);

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

/** Give up the RC lane which is being connected. */
/** What the endpoint has posted so far counts for its present link. */
void uct_varuna_ep_settle(uct_varuna_ep_t *ep);

void uct_varuna_ep_drop_next(uct_varuna_ep_t *ep);

/** Its CONNECT_REQ is answered, or given up. */
void uct_varuna_ep_connect_ended(uct_varuna_ep_t *ep);

/** Take the best lane which can be had at once, DC. @return 0 if there is none. */
int uct_varuna_ep_take_dc_lane(uct_varuna_ep_t *ep);

/** @return Why the active lane's link or path has failed. */
const char *uct_varuna_ep_failure_reason(const uct_varuna_ep_t *ep);

/** @return nonzero if the active lane's link or path has failed meanwhile. */
int uct_varuna_ep_lane_failed(const uct_varuna_ep_t *ep);

/** The path of a lane failed, since requests on it ran out of retries; nothing if it has
 *  failed before. */
void uct_varuna_path_down(uct_varuna_ep_t *ep, const uct_varuna_lane_t *lane);

#endif
