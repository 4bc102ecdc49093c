/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Decides ambiguous puts: reads their target back over the new lane and compares
 * it with the data. Called by varuna_recovery.c. Main thread only.
 */
#ifndef UCT_VARUNA_COMPARE_H_
#define UCT_VARUNA_COMPARE_H_

#include "varuna_ep.h"

/**
 * Go on with deciding what becomes of an ambiguous request, at its place among
 * those which are repeated. The active lane is used; the old one has been fenced
 * or waited out.
 *
 * @return UCS_OK if it is decided: the request is DONE, or is to be posted;
 *         UCS_ERR_NO_RESOURCE while that takes time; else why the endpoint or the
 *         lane must be given up: UCS_ERR_CONNECTION_RESET is the user's policy,
 *         anything else an error of the lane.
 */
ucs_status_t uct_varuna_compare_step(uct_varuna_ep_t *ep,
                                     uct_varuna_req_t *req);

/** The lane is drained: what was being read comes no more. What has been found
 *  to be equal stays so. */
void uct_varuna_compare_abort(uct_varuna_ep_t *ep);

/** The endpoint is being destroyed: its unfinished requests, of which the lane
 *  still knows, get the read. */
void uct_varuna_compare_detach(uct_varuna_ep_t *ep);

#endif
