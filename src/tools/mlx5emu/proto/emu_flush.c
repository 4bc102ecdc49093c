/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Errors: queue pairs that fail, and the flush of what was posted to them.
 *
 * The requester's half is failed under req_lock, the responder's under
 * resp_lock. Where a responder fails, no req_lock can be taken (see the order
 * in emu_lock.h): its requester's half follows when all locks are released.
 */

#include "emu_proto.h"
#include "../core/emu_cq.h"
#include "../core/emu_fabric.h"
#include "../core/emu_proc.h"
#include "../wqe/emu_cqe.h"

#include <infiniband/mlx5dv.h>
#include <string.h>

#define EMU_FLUSH_VENDOR   0xf9
#define EMU_MAX_DEFERRED   64

/* Queue pairs whose requester's half is yet to be failed by this thread */
static __thread uint32_t emu_deferred[EMU_MAX_DEFERRED];
static __thread unsigned emu_num_deferred;

void emu_req_flush(emu_qp_t *qp)
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
        emu_cq_push(qp->send_cq, &cqe);
        qp->sq_ci += num_bb;
    }

    qp->sq_ci      = pi;
    qp->sq_send    = pi;
    qp->sq_new     = pi;
    qp->req_rd_out = 0;
    qp->req_una    = qp->req_send = qp->req_max = qp->req_psn;
}

/* resp_lock is held */
static void emu_resp_flush(emu_qp_t *qp)
{
    emu_rq_entry_t entry;
    emu_cqe_t cqe;

    memset(&cqe, 0, sizeof(cqe));
    cqe.opcode    = MLX5_CQE_RESP_ERR;
    cqe.syndrome  = MLX5_CQE_SYNDROME_WR_FLUSH_ERR;
    cqe.vendor    = EMU_FLUSH_VENDOR;
    cqe.qpn       = qp->qpn;
    cqe.srqn_uidx = qp->cqe_uidx;
    if (qp->resp_msg.kind == EMU_OP_SEND) {
        cqe.wqe_counter = qp->resp_msg.wqe_index;
        emu_cq_push(qp->recv_cq, &cqe);
    }
    while (emu_rq_take(qp, &entry)) {
        cqe.wqe_counter = entry.index;
        emu_cq_push(qp->recv_cq, &cqe);
    }
}

/* resp_lock is held */
static void emu_resp_enter_err(emu_qp_t *qp)
{
    if (qp->resp_state == IBV_QPS_ERR) {
        return;
    }

    qp->resp_state = IBV_QPS_ERR;
    if (qp->srq == NULL) {
        emu_resp_flush(qp);
    }
    emu_rq_abandon(qp);
    if ((qp->srq != NULL) && (qp->type == EMU_QPT_RC) &&
        !qp->resp_last_wqe) {
        qp->resp_last_wqe = 1;
        emu_chan_post(qp->async, IBV_EVENT_QP_LAST_WQE_REACHED, qp->qpn,
                      qp->cookie);
    }
}

/* req_lock is held */
static void emu_req_enter_err(emu_qp_t *qp, enum ibv_qp_state state)
{
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
    if (emu_num_deferred < EMU_MAX_DEFERRED) {
        emu_deferred[emu_num_deferred++] = qp->qpn;
    }
}

void emu_run_deferred(void)
{
    emu_qp_t *qp;
    uint32_t qpn;

    while (emu_unlikely(emu_num_deferred > 0)) {
        qpn = emu_deferred[--emu_num_deferred];
        qp  = emu_qp_find(qpn);
        if (qp == NULL) {
            continue;
        }

        emu_lock(&qp->req_lock);
        if ((qp->used == 1) && (qp->qpn == qpn) &&
            (qp->resp_state == IBV_QPS_ERR)) {
            emu_req_enter_err(qp, IBV_QPS_ERR);
        }
        emu_unlock(&qp->req_lock);
    }
}

void emu_rq_doorbell(emu_qp_t *qp)
{
    if (emu_likely(qp->resp_state != IBV_QPS_ERR)) {
        return;
    }

    emu_lock(&qp->resp_lock);
    if ((qp->resp_state == IBV_QPS_ERR) && (qp->srq == NULL)) {
        emu_resp_flush(qp);
    }
    emu_unlock(&qp->resp_lock);
}
