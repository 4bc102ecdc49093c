/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The completer: what responses mean for the send queue. Everything here runs
 * with req_lock held.
 */

#include "emu_proto.h"
#include "../core/emu_cq.h"
#include "../core/emu_fabric.h"
#include "../core/emu_mem.h"
#include "../core/emu_pipe.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"
#include "../wqe/emu_cqe.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

/* Vendor syndromes as ConnectX devices give them beside the syndrome */
static const uint8_t emu_comp_vendor[256] = {
    [MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR]        = 0x68,
    [MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR]         = 0x68,
    [MLX5_CQE_SYNDROME_LOCAL_PROT_ERR]          = 0x51,
    [MLX5_CQE_SYNDROME_WR_FLUSH_ERR]            = 0xf9,
    [MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR]    = 0x8a,
    [MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR]       = 0x88,
    [MLX5_CQE_SYNDROME_REMOTE_OP_ERR]           = 0x89,
    [MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR] = 0x81,
    [MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR]       = 0x87
};

/* Receiver's RNR timer codes, in units of 10 us */
static const uint32_t emu_comp_rnr_10us[32] = {
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384,
    512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576,
    32768, 49152
};

static emu_sqe_t *emu_comp_oldest(emu_qp_t *qp)
{
    return emu_sq_entry(qp, qp->sq_ci);
}

static void emu_comp_progress(emu_qp_t *qp)
{
    qp->req_retry = qp->attr.retry_cnt;
    qp->req_rnr   = qp->attr.rnr_retry;
    if (!(qp->req_waiting & EMU_REQ_WAITS_RNR)) {
        qp->req_deadline = 0;
    }
}

void emu_comp_one(emu_qp_t *qp)
{
    emu_sqe_t *sqe = emu_comp_oldest(qp);
    int ret        = 0;
    emu_cqe_t cqe;

    if (sqe->flags & EMU_SQE_SIGNALED) {
        memset(&cqe, 0, sizeof(cqe));
        cqe.opcode      = MLX5_CQE_REQ;
        cqe.wqe_opcode  = sqe->opcode;
        cqe.wqe_counter = qp->sq_ci;
        cqe.qpn         = qp->qpn;
        cqe.srqn_uidx   = qp->cqe_uidx;
        cqe.byte_cnt    = sqe->length;
        cqe.solicited   = 0;
        ret = emu_qp_complete(qp, qp->send_cq, &cqe);
        EMU_COUNT(&emu_fabric->ports[qp->port], qp->type, EMU_CNT_CQES, 1);
    }

    if (sqe->flags & EMU_SQE_RD_ATOMIC) {
        qp->req_rd_out--;
    }
    qp->req_una = emu_psn_add(sqe->psn, sqe->num_psn);
    qp->sq_ci  += sqe->num_bb;
    if (emu_unlikely(ret != 0)) {
        emu_req_stop(qp);
    }
}

void emu_comp_nops(emu_qp_t *qp)
{
    while ((qp->sq_ci != qp->sq_send) && (qp->sq_ci != qp->sq_new) &&
           (emu_comp_oldest(qp)->num_psn == 0)) {
        emu_comp_one(qp);
    }
}

void emu_comp_fail(emu_qp_t *qp, uint8_t syndrome)
{
    emu_cqe_t cqe;
    uint16_t num_bb;

    memset(&cqe, 0, sizeof(cqe));
    num_bb          = emu_wqe_peek(qp->sq_buf, qp->sq_bb_cnt, qp->sq_ci,
                                   &cqe.wqe_opcode);
    cqe.opcode      = MLX5_CQE_REQ_ERR;
    cqe.syndrome    = syndrome;
    cqe.vendor      = emu_comp_vendor[syndrome];
    cqe.wqe_counter = qp->sq_ci;
    cqe.qpn         = qp->qpn;
    cqe.srqn_uidx   = qp->cqe_uidx;
    emu_qp_complete(qp, qp->send_cq, &cqe);
    EMU_COUNT(&emu_fabric->ports[qp->port], qp->type, EMU_CNT_CQE_ERRS, 1);
    qp->sq_ci += emu_min(num_bb, emu_sq_posted(qp, qp->sq_ci));
    emu_qp_fail_requester(qp);
}

/* The responder misses a packet, or we miss a response */
static void emu_comp_nak_seq(emu_qp_t *qp, uint32_t psn)
{
    /* Where time passes, what was on the way already shows the same gap again */
    if (emu_pipe_is_on()) {
        if (qp->req_asked == (psn | EMU_REQ_ASKED)) {
            return;
        }
        qp->req_asked = psn | EMU_REQ_ASKED;
    }

    if (qp->req_retry == 0) {
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
        return;
    }

    qp->req_retry--;
    emu_sq_rewind(qp, psn);
}

/* Everything up to and including a PSN was executed. 0: a read or an atomic
 * among it has no response yet, and is asked for again. */
static int emu_comp_ack(emu_qp_t *qp, uint32_t psn)
{
    emu_sqe_t *sqe;
    uint32_t last;

    while (qp->sq_ci != qp->sq_new) {
        sqe = emu_comp_oldest(qp);
        if (sqe->num_psn == 0) {
            emu_comp_one(qp);
            continue;
        }
        if (emu_psn_diff(psn, sqe->psn) < 0) {
            break;
        }
        if (sqe->flags & EMU_SQE_RD_ATOMIC) {
            if (emu_psn_diff(psn, qp->req_una) < 0) {
                break; /* the part of a read that came already */
            }
            emu_comp_nak_seq(qp, qp->req_una);
            return 0;
        }

        /* A NAK within a message says once more that its beginning has arrived, which
         * must not renew the retries: they would never end */
        if (emu_psn_diff(psn, qp->req_una) >= 0) {
            emu_comp_progress(qp);
        }
        last = emu_psn_add(sqe->psn, sqe->num_psn - 1);
        if (emu_psn_diff(psn, last) < 0) {
            if (emu_psn_diff(psn, qp->req_una) >= 0) {
                qp->req_una = emu_psn_add(psn, 1);
            }
            break;
        }
        emu_comp_one(qp);
    }

    return 1;
}

/* The data of a read are in this process, or the queue pair is: elsewhere the keeper
 * brings them */
static int emu_comp_scatter(const emu_qp_t *qp, const emu_rsp_t *rsp,
                            const struct iovec *dst, unsigned num_dst,
                            const struct iovec *src)
{
    if (emu_unlikely(qp->proc != emu_self->index)) {
        return emu_mem_put(qp->proc, dst, num_dst, src, 1, rsp->length);
    }
    return emu_mem_get((rsp->copy != NULL) ? emu_self->index : rsp->proc, dst,
                       num_dst, src, 1, rsp->length);
}

/* Whether the responder cuts the data of a read as the requester counts it: otherwise a
 * first packet comes where the only one should, say */
static int emu_comp_suits_mtu(const emu_qp_t *qp, const emu_sqe_t *sqe,
                              const emu_rsp_t *rsp)
{
    unsigned mtu = emu_qp_mtu(qp);

    return (rsp->type != EMU_RSP_READ) || (rsp->mtu == mtu) ||
           (sqe->length <= emu_min(rsp->mtu, mtu));
}

/* Data of a read or the result of an atomic; all before it is complete */
static void emu_comp_data(emu_qp_t *qp, const emu_rsp_t *rsp)
{
    emu_sqe_t *sqe = emu_comp_oldest(qp);
    uint32_t first = emu_psn_diff(rsp->psn, sqe->psn);
    struct iovec dst[EMU_MAX_SGE];
    struct iovec src;
    unsigned num_dst;
    uint64_t value;
    emu_op_t op;
    int ret;

    if ((qp->sq_ci == qp->sq_new) || !(sqe->flags & EMU_SQE_RD_ATOMIC) ||
        (rsp->psn != qp->req_una) || (first >= sqe->num_psn)) {
        return; /* an answer to an earlier request, which came again */
    }

    ret = emu_sq_reload(qp, qp->sq_ci, &op);
    if (ret != 0) {
        emu_comp_fail(qp, ret);
        return;
    }

    if (emu_unlikely(!emu_comp_suits_mtu(qp, sqe, rsp))) {
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_BAD_RESP_ERR);
        return;
    }

    if (rsp->num_psn == 0) {
        emu_comp_nak_seq(qp, qp->req_una);
        return;
    }

    if (rsp->type == EMU_RSP_ATOMIC) {
        /* 8 bytes come in the order of the host, 4 bytes in that of the
         * network: see atomic_req_8B_endianness_mode in the PRM */
        value        = (op.atomic_size == 4) ? htobe32((uint32_t)rsp->value) :
                                               rsp->value;
        src.iov_base = &value;
        src.iov_len  = sizeof(value);
        num_dst      = emu_iov_slice(op.sge, op.num_sge, 0, op.length, dst);
        ret = emu_mem_put(qp->proc, dst, num_dst, &src, 1, op.length);
    } else {
        src.iov_base = (rsp->copy != NULL) ? rsp->copy : (void*)rsp->addr;
        src.iov_len  = rsp->length;
        num_dst      = emu_iov_slice(op.sge, op.num_sge,
                                     first * emu_qp_mtu(qp), rsp->length, dst);
        ret = emu_comp_scatter(qp, rsp, dst, num_dst, &src);
    }
    if (ret != 0) {
        /* The responder's memory went away between request and response */
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
        return;
    }

    emu_comp_progress(qp);
    qp->req_una = emu_psn_add(rsp->psn, rsp->num_psn);
    if (qp->req_una == emu_psn_add(sqe->psn, sqe->num_psn)) {
        emu_comp_one(qp);
        emu_comp_nops(qp);
    } else if (rsp->has_gap) {
        emu_comp_nak_seq(qp, qp->req_una);
    }
}

static void emu_comp_nak_rnr(emu_qp_t *qp, const emu_rsp_t *rsp)
{
    if (qp->attr.rnr_retry != 7) {
        if (qp->req_rnr == 0) {
            emu_comp_fail(qp, MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR);
            return;
        }
        qp->req_rnr--;
    }

    EMU_COUNT(&emu_fabric->ports[qp->port], qp->type, EMU_CNT_RNR_WAITS, 1);
    emu_sq_rewind(qp, rsp->psn);
    qp->req_waiting |= EMU_REQ_WAITS_RNR;
    qp->req_deadline = emu_now_ns() +
                       emu_scaled_ns(emu_comp_rnr_10us[rsp->rnr_timer & 0x1f] *
                                     10000ul);
}

static void emu_comp_nak(emu_qp_t *qp, const emu_rsp_t *rsp)
{
    switch (rsp->type) {
    case EMU_RSP_NAK_SEQ:
        emu_comp_nak_seq(qp, rsp->psn);
        break;
    case EMU_RSP_NAK_RNR:
        emu_comp_nak_rnr(qp, rsp);
        break;
    case EMU_RSP_NAK_INV:
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR);
        break;
    case EMU_RSP_NAK_ACCESS:
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR);
        break;
    default:
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_REMOTE_OP_ERR);
        break;
    }
}

void emu_comp_receive(emu_qp_t *qp, const emu_rsp_t *rsp)
{
    if ((qp->req_state != IBV_QPS_RTS) || qp->req_hung ||
        (emu_psn_diff(rsp->psn, qp->req_una) < 0) ||
        (emu_psn_diff(rsp->psn, qp->req_max) >= 0)) {
        return; /* old, or not ours */
    }

    if (emu_likely(rsp->type == EMU_RSP_ACK)) {
        emu_comp_ack(qp, rsp->psn);
    } else if (emu_comp_ack(qp, emu_psn_add(rsp->psn, EMU_PSN_MASK))) {
        if ((rsp->type == EMU_RSP_READ) || (rsp->type == EMU_RSP_ATOMIC)) {
            emu_comp_data(qp, rsp);
        } else {
            emu_comp_nak(qp, rsp);
        }
    }

    /* What is acknowledged needs no repetition that was begun */
    if ((qp->req_state == IBV_QPS_RTS) &&
        (emu_psn_diff(qp->req_send, qp->req_una) < 0)) {
        emu_sq_rewind(qp, qp->req_una);
    }
}
