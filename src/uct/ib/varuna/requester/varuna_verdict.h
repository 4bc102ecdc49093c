/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * State FENCE: the evidence, and the verdict on each request. Main thread only.
 */
#ifndef UCT_VARUNA_VERDICT_H_
#define UCT_VARUNA_VERDICT_H_

#include "varuna_ep_event.h"

/* Number of the first message which may not have been acknowledged. */
uint32_t uct_varuna_ep_am_acked(const uct_varuna_ep_t *ep);

/* The dead lane is drained. If no evidence is needed, decide, and go on without a fence.
 * @return Whether that was done. */
int uct_varuna_ep_decide_without_fence(uct_varuna_ep_t *ep);

/* The responder knows that the lane is over which was left without a fence, or the endpoint
 * ends. */
void uct_varuna_ep_forget_left(uct_varuna_ep_t *ep);

/* State FENCE. @return nonzero to be called again. */
int uct_varuna_ep_step_fence(uct_varuna_ep_t *ep, ucs_time_t now);

/* FENCE_REP: the evidence. The body's lengths were checked. */
void uct_varuna_ep_handle_fence_rep(uct_varuna_ep_t *ep,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_fence_rep_t *rep);

#endif
