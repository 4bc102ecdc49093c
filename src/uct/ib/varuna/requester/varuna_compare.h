/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Decides ambiguous requests: reads their targets back over the new lane. Called by
 * varuna_recovery.c. Main thread only.
 */
#ifndef UCT_VARUNA_COMPARE_H_
#define UCT_VARUNA_COMPARE_H_

#include "varuna_ep.h"

/**
 * Go on with deciding what becomes of the ambiguous requests, before anything is
 * repeated. The active lane is used; the old one has been fenced or waited out.
 *
 * @return UCS_OK if all is decided: each request is DONE, or is to be posted;
 *         UCS_ERR_NO_RESOURCE while that takes time, or if it has ended the endpoint;
 *         else an error of the lane.
 */
ucs_status_t uct_varuna_compare_progress(uct_varuna_ep_t *ep);

/**
 * A request was executed: it is done, unless its result was lost with the lane.
 *
 * @return UCS_OK, or why the endpoint fails.
 */
ucs_status_t uct_varuna_req_executed(uct_varuna_req_t *req);

/** The lane is drained: reads under way will not return. Targets that were found to
 *  be equal stay so. */
void uct_varuna_compare_abort(uct_varuna_ep_t *ep);

/** The endpoint is being destroyed: forget what was read. A read under way is one of the
 *  unfinished requests. */
void uct_varuna_compare_detach(uct_varuna_ep_t *ep);

#endif
