/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Responder: stops the end of an incarnation that its requester has left, and answers
 * with what it leaves behind: the evidence.
 */
#ifndef UCT_VARUNA_FENCE_H_
#define UCT_VARUNA_FENCE_H_

#include "varuna_responder.h"

void uct_varuna_fence_init(uct_varuna_responder_t *resp);

/**
 * Stop a queue pair and note its PSN, on the thread of its NIC: see varuna_tl.h.
 * If that does not succeed, the next call goes on from there. Lock held.
 *
 * @return Nonzero if the queue pair is at rest: nothing of its incarnation is
 *         executed here any more, and what was executed is in memory.
 */
int uct_varuna_target_fence_qp(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target,
                               uct_varuna_target_qp_t *qp);

/**
 * The NIC of a link is to be closed.
 *
 * @param [in] is_over   Stop the queue pairs of targets there, and drop those that are stopped.
 *                       Otherwise only count.
 * @param [in] is_ended  The NIC has been at rest for a packet lifetime. If it is not over: all
 *                       requesters that can leave the link had the time to do so.
 *
 * @return How many queue pairs of targets are there, or are in use. Lock held.
 */
unsigned uct_varuna_targets_leave_link(uct_varuna_responder_t *resp, unsigned link, int is_over,
                                       int is_ended);

/**
 * A queue pair is no longer its target's. Lock held.
 *
 * @return Nonzero if it is just being stopped: it is dropped after that. Otherwise the
 *         caller drops it.
 */
int uct_varuna_fence_disown(uct_varuna_responder_t *resp, uct_varuna_target_qp_t *qp);

/**
 * CONNECT_REQ says that older incarnations are over, which their requester may have left
 * without a fence: stop them, and see whether all messages come that it knows to be
 * acknowledged. Lock held.
 *
 * @param [in] link  Over which the request came.
 * @param [in] hdr   Its header.
 * @param [in] req   Its body.
 */
void uct_varuna_fence_end_older(uct_varuna_responder_t *resp, unsigned link,
                                const uct_varuna_ctl_hdr_t *hdr,
                                const uct_varuna_ctl_connect_t *req,
                                uct_varuna_target_t *target);

/** Leftovers of an older incarnation in the ring prove nothing. */
void uct_varuna_target_clear_ring(uct_varuna_target_t *target, uint32_t epoch);

/* --- Gaps --- */

/* Gaps in the sequence of active messages which will never be filled. Main thread
 * only. */

/**
 * Messages up to @a end, without it, were acknowledged, or are known to have come:
 * watch until they have been delivered, or until it is sure that they never will.
 * Then the target is broken: the requester is notified, and its endpoint fails.
 */
void uct_varuna_gap_watch(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, uint32_t end);

/** Look at what is watched. */
void uct_varuna_gap_progress(uct_varuna_responder_t *resp);

/** @return Whether something is watched. */
int uct_varuna_gap_is_watching(uct_varuna_responder_t *resp);

/** Break the target at once. */
void uct_varuna_gap_break(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, const char *reason);

/** No message of the target is delivered any more. */
void uct_varuna_gap_end_target(uct_varuna_target_t *target);

/** A message to a broken target has come. Report to its requester, if a report is due, that its
 *  endpoint has failed: over one link after the other. Lock not held. */
void uct_varuna_gap_refuse(uct_varuna_responder_t *resp, uct_varuna_target_t *target);

/** The target is being destroyed. */
void uct_varuna_gap_forget(uct_varuna_target_t *target);

/* --- Arrival in memory of devices --- */

/* Whether what a NIC has accepted for memory of devices (GPUs) has arrived there. A reset of
 * the queue pair is evidence for the host's memory alone: data for a device goes another way. */

/** The link is closed. No command of its NIC's thread is under way. */
void uct_varuna_arrival_close(uct_varuna_responder_t *resp, unsigned link);

/** The interface is closed. What a hanging NIC uses is left alone. */
void uct_varuna_arrival_cleanup(uct_varuna_responder_t *resp);

#endif
