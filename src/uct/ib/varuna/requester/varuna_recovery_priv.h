/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Shared by the files that move a vQP (varuna_recovery.c, varuna_verdict.c,
 * varuna_swap.c, varuna_ep_ctl.c) and by nobody else. Main thread only.
 */
#ifndef UCT_VARUNA_RECOVERY_PRIV_H_
#define UCT_VARUNA_RECOVERY_PRIV_H_

#include "varuna_recovery.h"

/* --- varuna_recovery.c --- */

/* State REPEAT: post in order what is not on the lane. @return nonzero to be called
 * again. */
int uct_varuna_ep_step_repeat(uct_varuna_ep_t *ep, ucs_time_t now);

/* Give up an endpoint whose lane can't be stopped: what was posted may be executed,
 * or an answer be written, at any later time. */
void uct_varuna_ep_fail_unconfirmed(uct_varuna_ep_t *ep);

/* --- varuna_verdict.c --- */

/* State FENCE. @return nonzero to be called again. */
int uct_varuna_ep_step_fence(uct_varuna_ep_t *ep, ucs_time_t now);

/* FENCE_REP: the evidence. The body's lengths were checked. */
void uct_varuna_ep_handle_fence_rep(uct_varuna_ep_t *ep,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_fence_rep_t *rep);

/* --- varuna_ep_ctl.c --- */

/* State OPENING. @return nonzero to be called again. */
int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now);

/* OPEN_REP and REJECT. The lengths were checked, the contents are the peer's. */
void uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_open_rep_t *rep);
void uct_varuna_ep_handle_reject(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_reject_t *rej);

/* Send a request now if none was sent lately. */
void uct_varuna_ep_ctl_request(uct_varuna_ep_t *ep, ucs_time_t now,
                               uct_varuna_ctl_type_t type, uint32_t epoch,
                               const void *body, size_t length);

/** It is answered, or nobody waits for the answer any more. */
void uct_varuna_ep_ctl_ended(uct_varuna_ep_t *ep);

/* Fail the endpoint if its peer is gone, or has not answered for too long. */
void uct_varuna_ep_check_give_up(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
