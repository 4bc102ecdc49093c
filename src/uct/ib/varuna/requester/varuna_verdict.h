/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * State FENCE: the evidence, and the verdict on each request. Main thread only.
 */
#ifndef UCT_VARUNA_VERDICT_H_
#define UCT_VARUNA_VERDICT_H_

#include "varuna_ep_event.h"
#include "varuna_ep.h"

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

/* --- Draining --- */

/* Waits for a failed lane to come to rest, and decides what may be done when it
 * does not: a NIC that died or hangs flushes nothing, and confirms nothing. Called
 * by varuna_recovery.c. */

typedef enum uct_varuna_drain {
    UCT_VARUNA_DRAIN_WAIT,
    UCT_VARUNA_DRAIN_DONE,      /* At rest: confirmed by its own completions */
    UCT_VARUNA_DRAIN_STUCK,     /* Not at rest in DRAIN_TIMEOUT; the responder's
                                   fence can confirm it, or time: the NIC is gone */
    UCT_VARUNA_DRAIN_HOPELESS   /* It can never be confirmed */
} uct_varuna_drain_t;

/* Of FENCE_REQ: what was over when it was sent, and so when the log was read. */
typedef enum uct_varuna_round {
    UCT_VARUNA_ROUND_EARLY,     /* Nothing */
    UCT_VARUNA_ROUND_LATE,      /* The packet lifetime, since the lane was left */
    UCT_VARUNA_ROUND_ENDED      /* ... and since the lane's NIC, which is gone, has failed
                                   a command */
} uct_varuna_round_t;

/** @return Whether the system says that the NIC of ep->recovery.dead is gone. */
int uct_varuna_drain_is_nic_gone(const uct_varuna_ep_t *ep);

/** @return The round of a FENCE_REQ that is sent now. */
uint32_t uct_varuna_drain_round(const uct_varuna_ep_t *ep, ucs_time_t now);

/** What has become of ep->recovery.dead, which was put into the error state when the
 *  endpoint entered its present state. */
uct_varuna_drain_t uct_varuna_drain_check(uct_varuna_ep_t *ep, ucs_time_t now);

/**
 * An answer to FENCE_REQ has come for a lane that was not flushed. The lane counts as
 * at rest when the responder has stopped its end, so that nothing more is executed or
 * answered, *and* earlier answers have left the network, or our NIC is gone.
 *
 * @param [in] flags  UCT_VARUNA_FENCE_FLAG_xx of the answer.
 * @param [in] round  Of the request that was answered, an uct_varuna_round_t: the
 *                    responder has read the log after that.
 */
uct_varuna_drain_t uct_varuna_drain_fenced(uct_varuna_ep_t *ep, uint32_t flags,
                                           uint32_t round, ucs_time_t now);

/** Give up an endpoint whose lane cannot be stopped: what was posted may be executed, or
 *  an answer be written, at any later time. */
void uct_varuna_drain_give_up(uct_varuna_ep_t *ep);

#endif
