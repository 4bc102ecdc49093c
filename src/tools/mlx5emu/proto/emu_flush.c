/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Errors: queue pairs that fail, and the flush of what was posted to them.
 *
 * The requester's half is failed under req_lock, the responder's under
 * resp_lock. Where a responder fails, no req_lock can be taken (see the order
 * in emu_lock.h): its requester's half follows when all locks are released.
 */

#include "emu_engine.h"
#include "emu_proto.h"
#include "../core/emu_chan.h"
#include "../core/emu_cq.h"
#include "../core/emu_fabric.h"
#include "../core/emu_proc.h"
#include "../core/emu_quirk.h"
#include "../core/emu_srq.h"
#include "../core/emu_svc.h"
#include "../fault/emu_fault.h"
#include "../wire/emu_wire_show.h"
#include "../wqe/emu_cqe.h"

#include <infiniband/mlx5dv.h>
#include <string.h>

#define EMU_FLUSH_VENDOR   0xf9
#define EMU_MAX_DEFERRED   64

/* What this thread has to do when it holds no locks any more */
static __thread struct {
    unsigned num_qps;
    unsigned num_cqs;
    uint32_t qps[EMU_MAX_DEFERRED]; /* Requester's half is yet to be failed */
    uint32_t cqs[EMU_MAX_DEFERRED]; /* Dead: fail their queue pairs */
} emu_deferred;

static void emu_defer_cq(const emu_cq_t *cq)
{
    unsigned i;

    for (i = 0; i < emu_deferred.num_cqs; i++) {
        if (emu_deferred.cqs[i] == cq->cqn) {
            return;
        }
    }
    if (emu_deferred.num_cqs < EMU_MAX_DEFERRED) {
        emu_deferred.cqs[emu_deferred.num_cqs++] = cq->cqn;
    }
}

/* A flush completion; its queue pair is in ERR already */
static void emu_flush_complete(emu_cq_t *cq, const emu_cqe_t *cqe)
{
    if (emu_unlikely(emu_cq_push(cq, cqe) != 0) &&
        !__atomic_exchange_n(&cq->spread, 1, __ATOMIC_ACQ_REL)) {
        emu_defer_cq(cq);
    }
}

int emu_qp_complete(emu_qp_t *qp, emu_cq_t *cq, const emu_cqe_t *cqe)
{
    uint8_t none = 0;

    if (emu_likely(emu_cq_push(cq, cqe) == 0)) {
        return 0;
    }

    __atomic_store_n(&cq->spread, 1, __ATOMIC_RELEASE);
    __atomic_compare_exchange_n(&qp->fatal, &none, EMU_QP_FATAL_LOST, 0,
                                __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    emu_defer_cq(cq);
    return -1;
}

static void emu_req_flush_posted(emu_qp_t *qp)
{
    uint16_t pi = qp->sq_pi;
    emu_cqe_t cqe;
    uint16_t num_bb;
    unsigned count;

    memset(&cqe, 0, sizeof(cqe));
    cqe.opcode    = MLX5_CQE_REQ_ERR;
    cqe.syndrome  = MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
    cqe.vendor    = EMU_FLUSH_VENDOR;
    cqe.qpn       = qp->qpn;
    cqe.srqn_uidx = qp->cqe_uidx;

    for (count = 0; (qp->sq_ci != pi) && (count < qp->sq_bb_cnt);
         count += num_bb) {
        num_bb          = emu_wqe_peek(qp->sq_buf, qp->sq_bb_cnt, qp->sq_ci,
                                       &cqe.wqe_opcode);
        cqe.wqe_counter = qp->sq_ci;
        emu_flush_complete(qp->send_cq, &cqe);
        qp->sq_ci += num_bb;
    }

    qp->sq_ci      = pi;
    qp->sq_send    = pi;
    qp->sq_new     = pi;
    qp->req_rd_out = 0;
    qp->req_una    = qp->req_send = qp->req_max = qp->req_psn;
}

/* Service thread */
static void emu_req_late_flush(void *arg, uint64_t qpn)
{
    emu_qp_t *qp = arg;

    emu_lock(&qp->req_lock);
    if ((qp->used == 1) && (qp->qpn == qpn) && (qp->req_flush_due != 0) &&
        (qp->req_flush_due <= emu_now_ns())) { /* Or it has failed anew since then */
        qp->req_flush_due = 0;
        emu_req_flush_posted(qp);
    }
    emu_unlock(&qp->req_lock);
    emu_run_deferred();
}

/* Quirk late-flush. @return Whether what is posted is flushed later */
static int emu_req_is_flushed_late(emu_qp_t *qp)
{
    uint64_t due;

    if (emu_likely(!emu_quirk_on(qp->port, EMU_QUIRK_LATE_FLUSH)) ||
        (qp->req_state != IBV_QPS_ERR) || (qp->sq_ci == qp->sq_pi)) {
        return 0;
    }

    due = emu_now_ns() +
          emu_scaled_ns(emu_quirk_value(qp->port, EMU_QUIRK_LATE_FLUSH, 0));
    if ((qp->req_flush_due == 0) &&
        (emu_svc_add(due, emu_req_late_flush, qp, qp->qpn) == 0)) {
        qp->req_flush_due = due;
        emu_quirk_act(qp->port, EMU_QUIRK_LATE_FLUSH, qp->qpn, 0, 0);
    }

    return qp->req_flush_due != 0;
}

void emu_req_flush(emu_qp_t *qp)
{
    if (!emu_req_is_flushed_late(qp)) {
        emu_req_flush_posted(qp);
    }
}

/* What is posted to its own receive queue; of an SRQ, only the entry that a message
 * has which will not end: that belongs to the queue pair. resp_lock is held */
static void emu_resp_flush(emu_qp_t *qp)
{
    emu_rq_entry_t entry;
    emu_cqe_t cqe;

    memset(&cqe, 0, sizeof(cqe));
    cqe.opcode    = MLX5_CQE_RESP_ERR;
    cqe.syndrome  = MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
    cqe.vendor    = EMU_FLUSH_VENDOR;
    cqe.qpn       = qp->qpn;
    cqe.srqn_uidx = (qp->srq != NULL) ? qp->srq->srqn : qp->cqe_uidx;
    if (qp->resp_msg.kind == EMU_OP_SEND) {
        qp->resp_msg.kind = EMU_OP_NONE;
        cqe.wqe_counter   = qp->resp_msg.wqe_index;
        emu_flush_complete(qp->recv_cq, &cqe);
    }
    while ((qp->srq == NULL) && emu_rq_take(qp, &entry)) {
        cqe.wqe_counter = entry.index;
        emu_flush_complete(qp->recv_cq, &cqe);
    }
}

static void emu_raise_last_wqe(const emu_qp_t *qp)
{
    emu_chan_post(qp->async, IBV_EVENT_QP_LAST_WQE_REACHED, qp->qpn, qp->cookie);
}

static void emu_late_last_wqe(void *arg, uint64_t qpn)
{
    emu_qp_t *qp = arg;

    emu_lock(&qp->resp_lock);
    if ((qp->used == 1) && (qp->qpn == qpn)) {
        emu_quirk_act(qp->port, EMU_QUIRK_LATE_LAST_WQE, qp->qpn, 0, 0);
        emu_raise_last_wqe(qp);
    }
    emu_unlock(&qp->resp_lock);
}

/* resp_lock is held */
static void emu_resp_reach_last_wqe(emu_qp_t *qp)
{
    uint64_t delay;

    if (emu_quirk_hits(qp->port, EMU_QUIRK_NO_LAST_WQE, qp->qpn, 0, 0)) {
        return;
    }

    if (emu_quirk_on(qp->port, EMU_QUIRK_LATE_LAST_WQE)) {
        delay = emu_quirk_value(qp->port, EMU_QUIRK_LATE_LAST_WQE, 0);
        if (emu_svc_add(emu_now_ns() + emu_scaled_ns(delay), emu_late_last_wqe, qp,
                        qp->qpn) == 0) {
            return;
        }
    }

    emu_raise_last_wqe(qp);
}

/* resp_lock is held */
static void emu_resp_enter_err(emu_qp_t *qp)
{
    if (qp->resp_state == IBV_QPS_ERR) {
        return;
    }

    __atomic_store_n(&qp->resp_state, IBV_QPS_ERR, __ATOMIC_SEQ_CST);
    emu_resp_flush(qp);
    emu_qp_abandon_msg(qp);
    if ((qp->srq != NULL) && (qp->type == EMU_QPT_RC) &&
        !qp->resp_last_wqe) {
        qp->resp_last_wqe = 1;
        emu_resp_reach_last_wqe(qp);
    }
}

/* req_lock is held */
static void emu_req_enter_err(emu_qp_t *qp, enum ibv_qp_state state)
{
    if (emu_fault_active() && (qp->type != EMU_QPT_DCT) &&
        (state == IBV_QPS_ERR) && (qp->req_state != IBV_QPS_ERR)) {
        emu_wire_show_err(qp);
    }

    qp->req_state    = state;
    qp->req_waiting  = 0;
    qp->req_deadline = 0;
    qp->req_hung     = 0;
    if (qp->type != EMU_QPT_DCT) {
        emu_req_flush(qp);
    }
}

void emu_qp_fail_requester(emu_qp_t *qp)
{
    if (qp->type == EMU_QPT_UD) {
        emu_req_enter_err(qp, IBV_QPS_SQE);
        return;
    }

    emu_req_enter_err(qp, IBV_QPS_ERR);
    if (qp->type == EMU_QPT_RC) {
        emu_lock(&qp->resp_lock);
        emu_resp_enter_err(qp);
        emu_unlock(&qp->resp_lock);
    }
}

void emu_qp_fail_locked(emu_qp_t *qp)
{
    emu_req_enter_err(qp, IBV_QPS_ERR);
    if (qp->type != EMU_QPT_DCI) {
        emu_resp_enter_err(qp);
    }
}

void emu_qp_fail_responder(emu_qp_t *qp, emu_rsp_type_t why)
{
    emu_resp_enter_err(qp);
    if ((why == EMU_RSP_NAK_ACCESS) || (why == EMU_RSP_NAK_INV)) {
        emu_chan_post(qp->async,
                      (why == EMU_RSP_NAK_ACCESS) ? IBV_EVENT_QP_ACCESS_ERR :
                                                    IBV_EVENT_QP_REQ_ERR,
                      qp->qpn, qp->cookie);
    }
    if (emu_deferred.num_qps < EMU_MAX_DEFERRED) {
        emu_deferred.qps[emu_deferred.num_qps++] = qp->qpn;
    }
}

void emu_req_stop(emu_qp_t *qp)
{
    emu_req_enter_err(qp, IBV_QPS_ERR);
}

void emu_resp_stop(emu_qp_t *qp)
{
    emu_resp_enter_err(qp);
}

static void emu_run_deferred_qp(uint32_t qpn)
{
    emu_qp_t *qp = emu_qp_find(qpn);

    if (qp == NULL) {
        return;
    }

    emu_lock(&qp->req_lock);
    if ((qp->used == 1) && (qp->qpn == qpn) &&
        (qp->resp_state == IBV_QPS_ERR)) {
        emu_req_enter_err(qp, IBV_QPS_ERR);
    }
    emu_unlock(&qp->req_lock);
}

/* Both locks are held. A DC initiator's responder half is its target's. */
static int emu_qp_is_dead(const emu_qp_t *qp)
{
    uint32_t state = (qp->type == EMU_QPT_DCT) ? qp->resp_state :
                                                 qp->req_state;

    return (qp->fatal != EMU_QP_FATAL_LOST) &&
           ((state == IBV_QPS_RESET) || (state == IBV_QPS_ERR));
}

/* All queue pairs of a dead completion queue: they can no longer report completions */
static void emu_run_deferred_cq(uint32_t cqn)
{
    const emu_cq_t *cq = emu_cq_find(cqn);
    emu_qp_t *qp;
    unsigned i;

    for (i = 0; (cq != NULL) && (i < EMU_MAX_QPS); i++) {
        qp = &emu_fabric->qps[i];
        if (__atomic_load_n(&qp->used, __ATOMIC_ACQUIRE) != 1) {
            continue;
        }

        emu_lock(&qp->req_lock);
        emu_lock(&qp->resp_lock);
        if ((qp->used == 1) && ((qp->send_cq == cq) || (qp->recv_cq == cq)) &&
            !emu_qp_is_dead(qp)) {
            __atomic_store_n(&qp->fatal, EMU_QP_FATAL_TOLD, __ATOMIC_RELEASE);
            emu_qp_fail_locked(qp);
            emu_chan_post(qp->async, IBV_EVENT_QP_FATAL, qp->qpn, qp->cookie);
        }
        emu_unlock(&qp->resp_lock);
        emu_unlock(&qp->req_lock);
    }
}

void emu_run_deferred(void)
{
    while (emu_unlikely(emu_deferred.num_qps > 0)) {
        emu_run_deferred_qp(emu_deferred.qps[--emu_deferred.num_qps]);
    }
    while (emu_unlikely(emu_deferred.num_cqs > 0)) {
        emu_run_deferred_cq(emu_deferred.cqs[--emu_deferred.num_cqs]);
    }
}

void emu_rq_doorbell(emu_qp_t *qp)
{
    /* A thread that enters ERR writes the state before it looks for posted entries: either
     * it sees what our caller has posted, or we see the state */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (emu_likely(__atomic_load_n(&qp->resp_state, __ATOMIC_RELAXED) !=
                   IBV_QPS_ERR)) {
        return;
    }

    emu_lock(&qp->resp_lock);
    if ((qp->resp_state == IBV_QPS_ERR) && (qp->srq == NULL)) {
        emu_resp_flush(qp);
    }
    emu_unlock(&qp->resp_lock);
    emu_run_deferred();
}
