/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester: turns send WQEs into packets, and sends them again where
 * needed. The send queue, oldest first:
 *
 *     sq_ci          sq_send           sq_new           producer
 *       | unacknowledged | to be sent again | never sent    |
 *     req_una         req_send           req_psn
 *
 * Without loss all four are together whenever a doorbell returns. Everything
 * here runs with req_lock held.
 */

#include "emu_engine.h"
#include "emu_ooo.h"
#include "emu_proto.h"
#include "../core/emu_fabric.h"
#include "../core/emu_nic.h"
#include "../core/emu_pipe.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"
#include "../core/emu_quirk.h"
#include "../core/emu_route.h"
#include "../core/emu_svc.h"
#include "../fault/emu_fault.h"
#include "../wire/emu_wire.h"
#include "../wire/emu_wire_show.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

/* What is posted is the NIC's from the doorbell on, not from the moment when
 * the doorbell record is written: a record may hold anything until then */
static uint16_t emu_req_producer(const emu_qp_t *qp)
{
    return qp->sq_pi;
}

static emu_port_t *emu_req_port(const emu_qp_t *qp)
{
    return &emu_fabric->ports[qp->port];
}

static int emu_req_is_rd_atomic(const emu_op_t *op)
{
    return (op->kind == EMU_OP_READ) || (op->kind == EMU_OP_CAS) ||
           (op->kind == EMU_OP_FAA);
}

/* What a QP of this kind can not do */
static int emu_req_check_op(const emu_qp_t *qp, const emu_op_t *op)
{
    if ((op->qpn != qp->qpn) || (op->num_bb > emu_sq_posted(qp, qp->sq_send)) ||
        ((qp->type == EMU_QPT_UD) && (op->kind != EMU_OP_SEND) &&
         (op->kind != EMU_OP_NONE))) {
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    if (emu_req_is_rd_atomic(op) && (qp->attr.max_rd_atomic == 0)) {
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    if ((qp->type == EMU_QPT_UD) && (op->length > emu_req_port(qp)->mtu)) {
        return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    return 0;
}

/* Connect a DC initiator. 0: it must wait, since its present connection has
 * something in flight. */
static int emu_req_connect(emu_qp_t *qp, const emu_op_t *op)
{
    if (emu_likely((qp->dc_dct_now == op->dqpn) &&
                   (qp->dc_key_now == op->dc_key) &&
                   (memcmp(&qp->dc_path_now, &op->path,
                           sizeof(op->path)) == 0))) {
        return 1;
    }

    if (qp->req_una != qp->req_psn) {
        return 0;
    }

    qp->req_serial++;
    qp->dc_dct_now  = op->dqpn;
    qp->dc_path_now = op->path;
    qp->dc_key_now  = op->dc_key;
    qp->dc_psn      = qp->req_psn;
    return 1;
}

static void emu_req_show_post(emu_qp_t *qp, const emu_op_t *op)
{
    emu_fault_event_t event;
    emu_fault_verdict_t verdict;

    if (qp->sq_posted == (uint16_t)(qp->sq_send + op->num_bb)) {
        return;
    }

    qp->sq_posted = qp->sq_send + op->num_bb;
    emu_wire_op_event(qp, op, &event);
    emu_fault_check(&event, &verdict);
}

static uint32_t emu_req_num_psn(const emu_qp_t *qp, const emu_op_t *op)
{
    unsigned mtu = emu_qp_mtu(qp);

    if (op->kind == EMU_OP_NONE) {
        return 0;
    }
    if ((op->kind == EMU_OP_CAS) || (op->kind == EMU_OP_FAA)) {
        return 1;
    }
    return emu_max((op->length + mtu - 1) / mtu, 1);
}

/* Give a WQE its PSNs */
static void emu_req_admit(emu_qp_t *qp, const emu_op_t *op)
{
    emu_sqe_t *sqe = emu_sq_entry(qp, qp->sq_new);

    sqe->psn       = qp->req_psn;
    sqe->num_psn   = emu_req_num_psn(qp, op);
    sqe->length    = op->length;
    sqe->num_bb    = op->num_bb;
    sqe->opcode    = op->opcode;
    sqe->op        = qp->ops;
    sqe->prev_op   = qp->last_op;
    sqe->prev_size = qp->last_size;
    sqe->flags     = ((op->signaled || qp->sq_sig_all) ?
                      EMU_SQE_SIGNALED : 0) |
                     (op->solicited ? EMU_SQE_SOLICITED : 0);
    if (emu_req_is_rd_atomic(op)) {
        sqe->flags |= EMU_SQE_RD_ATOMIC;
        qp->req_rd_out++;
    }

    if (op->kind != EMU_OP_NONE) {
        qp->last_op   = emu_wire_fault_op(op->kind, op->has_imm);
        qp->last_size = op->length;
    }

    __atomic_store_n(&qp->ops, qp->ops + 1, __ATOMIC_RELEASE);
    qp->req_psn = emu_psn_add(qp->req_psn, sqe->num_psn);
    qp->sq_new += op->num_bb;
    EMU_COUNT(emu_req_port(qp), qp->type, EMU_CNT_WQES, 1);
}

/* Quirk no-route: whether the host has no way for a WQE, which then fails when it is
 * the oldest: errors come in order. Soft-RoCE stops datagrams' queue pairs, too. */
static int emu_req_has_no_route(emu_qp_t *qp, const emu_op_t *op)
{
    if (emu_likely(!emu_route_is_gone(emu_req_port(qp))) ||
        (qp->type == EMU_QPT_DCI) || (op->kind == EMU_OP_NONE)) {
        return 0;
    }

    if (qp->sq_ci == qp->sq_send) {
        emu_quirk_act(qp->port, EMU_QUIRK_NO_ROUTE, qp->qpn, qp->ops,
                      qp->req_send);
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
        if (qp->type == EMU_QPT_UD) {
            emu_lock(&qp->resp_lock);
            emu_qp_fail_locked(qp);
            emu_unlock(&qp->resp_lock);
        }
    }
    return 1;
}

/* A WQE that was never sent. 0: it has to wait, or the QP has failed */
static int emu_req_begin(emu_qp_t *qp, const emu_op_t *op, int error)
{
    if (emu_likely(error == 0)) {
        error = emu_req_check_op(qp, op);
    }
    if (emu_unlikely(error != 0)) {
        /* Errors come in order */
        if (qp->sq_ci == qp->sq_send) {
            emu_comp_fail(qp, error);
        }
        return 0;
    }

    if ((op->fence && (qp->req_rd_out > 0)) ||
        (emu_req_is_rd_atomic(op) &&
         (qp->req_rd_out >= qp->attr.max_rd_atomic)) ||
        ((qp->type == EMU_QPT_DCI) && (op->kind != EMU_OP_NONE) &&
         !emu_req_connect(qp, op))) {
        return 0;
    }

    if (emu_fault_active()) {
        emu_req_show_post(qp, op);
    }

    emu_req_admit(qp, op);
    return 1;
}

static void emu_req_fill_dest(const emu_qp_t *qp, emu_pkt_t *pkt)
{
    emu_pkt_set_path(pkt, emu_req_port(qp), qp->attr.pkey_index,
                     (qp->type == EMU_QPT_DCI) ? &qp->dc_path_now : &qp->path);
    if (qp->type == EMU_QPT_DCI) {
        pkt->dst_qpn  = qp->dc_dct_now;
        pkt->dc_key   = qp->dc_key_now;
        pkt->serial   = qp->req_serial;
        pkt->conn_psn = qp->dc_psn;
    } else {
        pkt->dst_qpn  = qp->attr.dest_qp_num;
        pkt->dc_key   = 0;
        pkt->serial   = 0;
        pkt->conn_psn = 0;
    }
}

/* How many packets of a message may go at once */
static uint32_t emu_req_train(const emu_qp_t *qp, uint8_t sl, uint32_t num_psn,
                              unsigned mtu)
{
    const emu_port_t *port = emu_req_port(qp);

    if ((num_psn > 1) &&
        (emu_ooo_is_on(qp, sl) ||
         (emu_fault_active() &&
          emu_fault_need_split(port->host, port->link)))) {
        return 1;
    }
    return emu_min(num_psn, EMU_TRAIN_MAX / mtu);
}

static int emu_req_has_payload(const emu_op_t *op)
{
    return (op->kind == EMU_OP_SEND) || (op->kind == EMU_OP_WRITE);
}

/* The whole number of a request that was begun */
static uint64_t emu_req_op_number(const emu_qp_t *qp, const emu_sqe_t *sqe)
{
    return qp->ops - (uint32_t)(qp->ops - sqe->op);
}

/* The packets of a WQE from req_send on */
static void emu_req_build(const emu_qp_t *qp, const emu_op_t *op,
                          const emu_sqe_t *sqe, uint16_t index, emu_pkt_t *pkt)
{
    unsigned mtu   = emu_qp_mtu(qp);
    uint32_t first = emu_psn_diff(qp->req_send, sqe->psn);
    uint32_t num   = sqe->num_psn - first;
    uint8_t sl     = (qp->type == EMU_QPT_DCI) ?
                     emu_port_sl(emu_req_port(qp), op->sl) : qp->attr.ah_attr.sl;

    if (op->kind != EMU_OP_READ) {
        num = emu_req_train(qp, sl, num, mtu);
    }

    pkt->kind         = op->kind;
    pkt->qp_type      = qp->type;
    pkt->sl           = sl;
    pkt->qkey         = 0;
    pkt->flags        = (((first == 0) || (op->kind == EMU_OP_READ)) ?
                         EMU_PKT_FIRST : 0) |
                        ((first + num == sqe->num_psn) ? EMU_PKT_LAST : 0) |
                        (op->has_imm ? EMU_PKT_IMM : 0) |
                        (op->solicited ? EMU_PKT_SOLICITED : 0) |
                        (op->is_inline ? EMU_PKT_INLINE : 0) |
                        ((emu_psn_diff(qp->req_send, qp->req_max) < 0) ?
                         EMU_PKT_RETRY : 0);
    pkt->wqe_index    = index;
    pkt->mtu          = mtu;
    pkt->psn          = qp->req_send;
    pkt->num_psn      = num;
    pkt->num_pkts     = (op->kind == EMU_OP_READ) ? 1 : num;
    pkt->pkt_no       = (op->kind == EMU_OP_READ) ? 1 : (first + 1);
    pkt->msg_pkts     = (op->kind == EMU_OP_READ) ? 1 : sqe->num_psn;
    pkt->msg_total    = op->length;
    pkt->src_qpn      = qp->qpn;
    pkt->rkey         = op->rkey;
    pkt->raddr        = op->raddr + (uint64_t)first * mtu;
    pkt->left         = op->length - first * mtu;
    pkt->swap_add     = op->swap_add;
    pkt->compare      = op->compare;
    pkt->swap_mask    = op->swap_mask;
    pkt->compare_mask = op->compare_mask;
    pkt->atomic_size  = op->atomic_size;
    pkt->imm          = op->imm;
    pkt->is_strong    = op->strong;
    pkt->prev_op      = sqe->prev_op;
    pkt->prev_size    = sqe->prev_size;
    pkt->op           = emu_req_op_number(qp, sqe);
    pkt->offset       = first * mtu;
    pkt->length       = emu_req_has_payload(op) ?
                        emu_min(pkt->left, num * mtu) : 0;
    pkt->sge          = op->sge;
    pkt->num_sge      = op->num_sge;
    emu_req_fill_dest(qp, pkt);
}

/* The keeper runs queue pairs of all processes. With its process a queue pair is gone,
 * though nobody may have cleaned up. */
static int emu_req_has_owner(const emu_qp_t *qp)
{
    return emu_likely(qp->proc == emu_self->index) ||
           emu_proc_alive(&emu_fabric->procs[qp->proc]);
}

/* Whether the requester must not send now, whatever is posted */
static int emu_req_is_idle(const emu_qp_t *qp)
{
    return qp->req_waiting || !emu_req_has_owner(qp) || (qp->req_state != IBV_QPS_RTS) ||
           __atomic_load_n(&qp->req_hung, __ATOMIC_ACQUIRE) ||
           !emu_nic_works(qp->port, qp->nic_gen);
}

static void emu_req_late_response(const emu_pkt_t *pkt, emu_rsp_t *rsp);
static void emu_req_respond(emu_qp_t *qp, const emu_pkt_t *pkt, emu_rsp_t *rsp);

const emu_wire_ends_t emu_req_ends = {
    .request  = emu_resp_receive,
    .response = emu_req_late_response,
    .respond  = emu_req_respond
};

static int emu_req_transmit(emu_qp_t *qp, emu_pkt_t *pkt, emu_rsp_t *rsp_p)
{
    if (emu_pipe_is_on()) {
        emu_req_depart(qp, pkt);
        return 0;
    }

    return emu_ooo_has(qp) ?
           emu_ooo_send(qp, &emu_req_ends, pkt, rsp_p) :
           emu_wire_send(&emu_req_ends, pkt, rsp_p);
}

/* Send the packets of a WQE, until it ends or something comes in between */
static void emu_req_send(emu_qp_t *qp, const emu_op_t *op, uint16_t index)
{
    emu_sqe_t *sqe = emu_sq_entry(qp, index);
    uint32_t end   = emu_psn_add(sqe->psn, sqe->num_psn);
    uint32_t next  = qp->req_send;
    emu_pkt_t pkt;
    emu_rsp_t rsp;

    do {
        emu_req_build(qp, op, sqe, index, &pkt);
        next         = emu_psn_add(next, pkt.num_psn);
        qp->req_send = next;
        if (emu_psn_diff(next, qp->req_max) > 0) {
            qp->req_max = next;
        }
        if (next == end) {
            qp->sq_send = index + op->num_bb;
        }

        if (emu_req_transmit(qp, &pkt, &rsp)) {
            emu_comp_receive(qp, &rsp);
            emu_rsp_release(&rsp);
        }
    } while ((next != end) && (qp->req_send == next) &&
             (qp->sq_send == index) && !emu_req_is_idle(qp) &&
             !emu_route_is_gone(emu_req_port(qp)));
}

/* @return whether to go on */
static int emu_req_step(emu_qp_t *qp)
{
    uint16_t index = qp->sq_send;
    emu_pkt_t pkt;
    emu_rsp_t rsp;
    emu_op_t op;
    int error;

    if ((index == emu_req_producer(qp)) || emu_req_is_idle(qp)) {
        return 0;
    }

    error = (index == qp->sq_new) ? emu_sq_load(qp, index, &op) :
                                    emu_sq_reload(qp, index, &op);
    if ((error == 0) && emu_req_has_no_route(qp, &op)) {
        return 0;
    }
    if ((index == qp->sq_new) && !emu_req_begin(qp, &op, error)) {
        return 0;
    }
    if (emu_unlikely(emu_req_is_idle(qp) ||
                     ((error == 0) && emu_req_has_no_route(qp, &op)))) {
        return 0; /* a fault has struck as it was begun */
    }
    if (emu_unlikely(error != 0)) {
        /* It was sent before, and its memory is gone since. Errors come in order */
        if (qp->sq_ci == index) {
            emu_comp_fail(qp, error);
        }
        return 0;
    }

    if (op.kind == EMU_OP_NONE) {
        qp->sq_send = index + op.num_bb;
        emu_comp_nops(qp);
    } else if (qp->type == EMU_QPT_UD) {
        qp->sq_send = index + op.num_bb;
        emu_ud_build(qp, &op, &pkt);
        if (emu_pipe_is_on()) {
            emu_req_depart(qp, &pkt);
        } else {
            emu_wire_send(&emu_req_ends, &pkt, &rsp);
        }
        qp->req_send = qp->req_una = qp->req_max = qp->req_psn;
        emu_comp_one(qp);
    } else {
        emu_req_send(qp, &op, index);
    }
    return 1;
}

static void emu_req_timer(void *arg, uint64_t qpn);

static uint64_t emu_req_timeout_ns(const emu_qp_t *qp)
{
    return emu_scaled_ns(4096ul << qp->attr.timeout);
}

/* Have the service thread look at this QP when req_deadline comes */
static void emu_req_schedule(emu_qp_t *qp)
{
    if ((qp->req_timer_due == 0) || (qp->req_deadline < qp->req_timer_due)) {
        if (emu_svc_add(qp->req_deadline, emu_req_timer, qp, qp->qpn) == 0) {
            qp->req_timer_due = qp->req_deadline;
        }
    }
}

static void emu_req_arm(emu_qp_t *qp)
{
    if (emu_likely((qp->req_una == qp->req_max) &&
                   !(qp->req_waiting & EMU_REQ_WAITS_RNR))) {
        qp->req_deadline = 0;
        return;
    }

    if ((qp->req_state != IBV_QPS_RTS) || qp->req_hung ||
        !emu_nic_works(qp->port, qp->nic_gen)) {
        qp->req_deadline = 0;
        return;
    }

    if ((qp->req_deadline == 0) && (qp->attr.timeout != 0)) {
        qp->req_deadline = emu_now_ns() + emu_req_timeout_ns(qp);
    }
    if (qp->req_deadline != 0) {
        emu_req_schedule(qp);
    }
}

/* More is posted than the queue has room for, so that it has lost its oldest entries, or
 * less than before */
static int emu_req_is_overrun(const emu_qp_t *qp)
{
    uint16_t posted = emu_sq_posted(qp, qp->sq_ci);

    return (posted > qp->sq_bb_cnt) ||
           (posted < (uint16_t)(qp->sq_new - qp->sq_ci));
}

void emu_req_run(emu_qp_t *qp)
{
    if (emu_unlikely(emu_req_is_overrun(qp)) && !emu_req_is_idle(qp)) {
        emu_comp_fail(qp, MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR);
    }
    while (emu_req_step(qp)) {
    }
    emu_req_arm(qp);
}

static void emu_req_expired(emu_qp_t *qp)
{
    qp->req_deadline = 0;
    if (qp->req_waiting & EMU_REQ_WAITS_RNR) {
        qp->req_waiting &= ~EMU_REQ_WAITS_RNR;
    } else {
        EMU_COUNT(emu_req_port(qp), qp->type, EMU_CNT_TIMEOUTS, 1);
        if (qp->req_retry == 0) {
            emu_comp_fail(qp, MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR);
            return;
        }
        qp->req_retry--;
        qp->req_asked = 0;
        emu_sq_rewind(qp, qp->req_una);
    }
    emu_req_run(qp);
}

/* A response that is late, whatever it is. Service thread, req_lock is held. */
static void emu_req_respond(emu_qp_t *qp, const emu_pkt_t *pkt, emu_rsp_t *rsp)
{
    if ((qp->used == 1) && (qp->qpn == pkt->src_qpn) &&
        (qp->type == pkt->qp_type) && (qp->req_state == IBV_QPS_RTS) &&
        ((qp->type != EMU_QPT_DCI) || (qp->req_serial == pkt->serial)) &&
        emu_req_has_owner(qp) && emu_nic_works(qp->port, qp->nic_gen)) {
        emu_comp_receive(qp, rsp);
        if (qp->req_state == IBV_QPS_RTS) {
            emu_req_run(qp);
        }
    }
}

/* A late response, or the response to a late request. Service thread. */
static void emu_req_late_response(const emu_pkt_t *pkt, emu_rsp_t *rsp)
{
    emu_qp_t *qp = (rsp != NULL) ? emu_qp_find(pkt->src_qpn) : NULL;

    if (qp != NULL) {
        emu_lock(&qp->req_lock);
        emu_req_respond(qp, pkt, rsp);
        emu_unlock(&qp->req_lock);
    }
    if (rsp != NULL) {
        emu_rsp_release(rsp);
    }
    emu_run_deferred();
}

/* Service thread */
static void emu_req_timer(void *arg, uint64_t qpn)
{
    emu_qp_t *qp = arg;

    emu_lock(&qp->req_lock);
    if ((qp->used == 1) && (qp->qpn == qpn)) {
        qp->req_timer_due = 0;
        if ((qp->req_deadline != 0) && (qp->req_state == IBV_QPS_RTS) &&
            !qp->req_hung && emu_nic_works(qp->port, qp->nic_gen)) {
            if (emu_now_ns() < qp->req_deadline) {
                emu_req_schedule(qp);
            } else {
                emu_req_expired(qp);
            }
        }
    }
    emu_unlock(&qp->req_lock);
    emu_run_deferred();
}

void emu_sq_doorbell(uint32_t qpn)
{
    emu_qp_t *qp = emu_qp_find(qpn);

    /* A doorbell for a QP that is not ours is a program's mistake; hardware
     * ignores it as well */
    if (emu_unlikely((qp == NULL) || (emu_self == NULL) ||
                     (qp->proc != emu_self->index) ||
                     (qp->type == EMU_QPT_DCT) ||
                     !emu_nic_works(qp->port, qp->nic_gen))) {
        return;
    }

    if (emu_unlikely(emu_lock(&qp->req_lock))) {
        /* Only a fork of ours can have died in there */
        emu_qp_fail_requester(qp);
    }
    EMU_COUNT(emu_req_port(qp), qp->type, EMU_CNT_DOORBELLS, 1);
    /* In RESET a NIC has no send queue that it could look at, and remembers nothing */
    if (emu_likely(qp->req_state != IBV_QPS_RESET)) {
        qp->sq_pi = be32toh(__atomic_load_n(&qp->dbrec[MLX5_SND_DBR],
                                            __ATOMIC_ACQUIRE));
    } else {
        EMU_COUNT(emu_req_port(qp), qp->type, EMU_CNT_RESET_BELLS, 1);
    }
    if (emu_likely(qp->req_state == IBV_QPS_RTS)) {
        emu_req_run(qp);
    } else if ((qp->req_state == IBV_QPS_ERR) ||
               (qp->req_state == IBV_QPS_SQE)) {
        emu_req_flush(qp);
    }
    emu_unlock(&qp->req_lock);
    emu_run_deferred();
}
