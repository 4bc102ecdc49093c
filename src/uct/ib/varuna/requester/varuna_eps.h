/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The endpoints of an interface together: their pools, their list of work, and the
 * interface's flush and fence. Main thread.
 */
#ifndef UCT_VARUNA_EPS_H_
#define UCT_VARUNA_EPS_H_

#include "varuna_requester.h"
#include "varuna_ep.h"

/** Create the pools of requests and buffers. The lanes are open, their attributes are
 *  known. */
ucs_status_t uct_varuna_requester_init_mpools(uct_varuna_requester_t *requester);

void uct_varuna_requester_cleanup_mpools(uct_varuna_requester_t *requester);

/** An inner endpoint of a requester has failed. @return 0 if it belongs to no endpoint
 *  of ours. */
int uct_varuna_requester_lane_error(uct_varuna_requester_t *requester,
                                    uct_ep_h inner, ucs_status_t status);

/** Let some endpoints that have work take a step, and the others in the next calls. */
void uct_varuna_requester_progress(uct_varuna_requester_t *requester,
                                   ucs_time_t now);

/** As uct_iface_flush(). */
ucs_status_t uct_varuna_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                    uct_completion_t *comp);

/** As uct_iface_fence(). */
ucs_status_t uct_varuna_iface_fence(uct_iface_h tl_iface, unsigned flags);

/* --- The table of endpoints, by their ids --- */

/* Main thread, but the lock of the table
 * covers changes, for other readers. */

/** @return The endpoint with this vQP id, NULL if it is gone. */
uct_varuna_ep_t *uct_varuna_ep_find(uct_varuna_iface_t *iface, uint32_t id);

/** Give the endpoint an id by which it is found. */
ucs_status_t uct_varuna_ep_add(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

/** No thread finds it any more. */
void uct_varuna_ep_remove(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

#endif
