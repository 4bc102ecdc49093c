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

#endif
