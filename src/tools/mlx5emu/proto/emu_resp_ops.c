/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's steps that touch memory: rights, resources, execution, and
 * the answer to a request that came before. resp_lock is held throughout.
 */

#include "emu_resp_ops.h"
#include "emu_resp_put.h"
#include "../core/emu_cq.h"
#include "../core/emu_fabric.h"
#include "../core/emu_late.h"
#include "../core/emu_mem.h"
#include "../core/emu_mr.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"
#include "../core/emu_srq.h"
#include "../fault/emu_fault.h"
#include "../trace/emu_trace.h"
#include "../wire/emu_wire_show.h"
#include "../wqe/emu_cqe.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <string.h>
#include <time.h>

/* How often an atomic that a fault holds back looks whether it may go on */
#define EMU_RX_RMW_POLL_NS 100000

/* What a kind of request needs: on the QP and on the memory region */
static const unsigned emu_rx_access[EMU_OP_LAST] = {
    [EMU_OP_WRITE] = IBV_ACCESS_REMOTE_WRITE,
    [EMU_OP_READ]  = IBV_ACCESS_REMOTE_READ,
    [EMU_OP_CAS]   = IBV_ACCESS_REMOTE_ATOMIC,
    [EMU_OP_FAA]   = IBV_ACCESS_REMOTE_ATOMIC
};

emu_rx_verdict_t emu_rx_nak(emu_rx_t *rx, emu_rsp_type_t type)
{
    rx->rsp->type = type;
    rx->rsp->psn  = rx->pkt->psn;
    return EMU_RX_NAK;
}

static uint64_t emu_rx_remote_length(const emu_pkt_t *pkt)
{
    switch (pkt->kind) {
    case EMU_OP_WRITE:
    case EMU_OP_READ:
        return pkt->left;
    default:
        return pkt->atomic_size;
    }
}

emu_rx_verdict_t emu_rx_check_rights(emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    unsigned access      = emu_rx_access[pkt->kind];
    uint64_t length;

    if (access == 0) {
        return EMU_RX_NEXT;
    }
    if (!(rx->qp->attr.qp_access_flags & access)) {
        return emu_rx_nak(rx, EMU_RSP_NAK_INV);
    }

    length = emu_rx_remote_length(pkt);
    if (length == 0) {
        return EMU_RX_NEXT;
    }

    rx->mr = emu_mr_get(pkt->rkey, pkt->raddr, length, access, rx->qp->pd,
                        rx->qp->port);
    if (rx->mr == NULL) {
        return emu_rx_nak(rx, EMU_RSP_NAK_ACCESS);
    }
    if (((pkt->kind == EMU_OP_CAS) || (pkt->kind == EMU_OP_FAA)) &&
        ((pkt->raddr & (pkt->atomic_size - 1)) != 0)) {
        return emu_rx_nak(rx, EMU_RSP_NAK_INV);
    }
    return EMU_RX_NEXT;
}

/* Whether the packet will take a receive entry */
static int emu_rx_needs_entry(const emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;

    return ((pkt->kind == EMU_OP_SEND) && (pkt->flags & EMU_PKT_FIRST)) ||
           ((pkt->kind == EMU_OP_WRITE) && (pkt->flags & EMU_PKT_LAST) &&
            (pkt->flags & EMU_PKT_IMM));
}

emu_rx_verdict_t emu_rx_check_resource(emu_rx_t *rx)
{
    if (!emu_rx_needs_entry(rx)) {
        return EMU_RX_NEXT;
    }

    rx->has_entry = emu_rq_take(rx->qp, &rx->entry);
    if (rx->has_entry) {
        return EMU_RX_NEXT;
    }

    /* What was sent after it is dropped without another NAK */
    rx->ctx->resp_nak  = 1;
    rx->rsp->type      = EMU_RSP_NAK_RNR;
    rx->rsp->psn       = rx->pkt->psn;
    rx->rsp->rnr_timer = rx->qp->attr.min_rnr_timer;
    return EMU_RX_REPLY;
}

static emu_trace_op_t emu_rx_trace_op(const emu_pkt_t *pkt)
{
    int has_imm = !!(pkt->flags & EMU_PKT_IMM);

    switch (pkt->kind) {
    case EMU_OP_WRITE:
        return has_imm ? EMU_TRACE_WRITE_IMM : EMU_TRACE_WRITE;
    case EMU_OP_READ:
        return EMU_TRACE_READ;
    case EMU_OP_CAS:
        return EMU_TRACE_CAS;
    case EMU_OP_FAA:
        return EMU_TRACE_FAA;
    default:
        return has_imm ? EMU_TRACE_SEND_IMM : EMU_TRACE_SEND;
    }
}

static uint8_t emu_rx_trace_flags(const emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    uint8_t flags        = 0;

    if (!(pkt->flags & EMU_PKT_LAST)) {
        flags |= EMU_TRACE_FLAG_PARTIAL;
    } else if (!(pkt->flags & EMU_PKT_FIRST)) {
        flags |= EMU_TRACE_FLAG_LAST;
    }
    if (rx->is_early || (!rx->is_dup && (rx->ctx->resp_num_early > 0))) {
        flags |= EMU_TRACE_FLAG_OOO;
    }
    return flags | (rx->is_dup ? EMU_TRACE_FLAG_DUP : 0) |
           ((pkt->flags & EMU_PKT_INLINE) ? EMU_TRACE_FLAG_INLINE : 0);
}

static void emu_rx_trace(const emu_rx_t *rx, uint64_t value)
{
    const emu_pkt_t *pkt  = rx->pkt;
    const emu_port_t *src = &emu_fabric->ports[pkt->src_port];
    emu_trace_entry_t entry;

    if (emu_fabric->cfg.trace_entries == 0) {
        return;
    }

    memset(&entry, 0, sizeof(entry));
    entry.host      = rx->port->host;
    entry.link      = rx->port->link;
    entry.src_host  = src->host;
    entry.op        = emu_rx_trace_op(pkt);
    entry.flags     = emu_rx_trace_flags(rx);
    entry.qpn       = rx->qp->qpn;
    entry.src_qpn   = pkt->src_qpn;
    entry.psn       = emu_psn_add(pkt->psn, pkt->num_psn - 1);
    entry.wqe_index = pkt->wqe_index;
    entry.id        = pkt->op;
    entry.qp_type   = pkt->qp_type;
    entry.data      = value;
    if (pkt->kind != EMU_OP_SEND) {
        entry.addr = pkt->raddr;
        entry.rkey = pkt->rkey;
    }
    if ((pkt->kind == EMU_OP_CAS) || (pkt->kind == EMU_OP_FAA)) {
        entry.length = pkt->atomic_size;
        entry.arg[0] = (pkt->kind == EMU_OP_CAS) ? pkt->compare : pkt->swap_add;
        entry.arg[1] = (pkt->kind == EMU_OP_CAS) ? pkt->swap_add : 0;
    } else {
        entry.length = (pkt->kind == EMU_OP_READ) ? pkt->left : pkt->length;
        entry.arg[0] = (pkt->flags & EMU_PKT_IMM) ? pkt->imm : 0;
        entry.arg[1] = pkt->msg_total;
    }
    if ((pkt->kind == EMU_OP_SEND) || (pkt->kind == EMU_OP_WRITE)) {
        emu_pkt_copy_out(pkt, 0, &entry.data, emu_min(pkt->length, 8));
    }
    entry.time_ns      = emu_now_ns() - emu_fabric->start_ns;
    rx->rsp->trace_seq = emu_trace_add(emu_fabric->trace, &entry);
}

/* A copy failed: either the owner is gone, and there is no answer, or its memory is */
static emu_rx_verdict_t emu_rx_memory_failed(emu_rx_t *rx, int error)
{
    return (error == -ESRCH) ? EMU_RX_DROP : emu_rx_nak(rx, EMU_RSP_NAK_OP);
}

/* If the completion cannot be written the request was never: it is not answered,
 * so that its requester finds out, and the queue pair fails */
static emu_rx_verdict_t
emu_rx_push_recv(emu_rx_t *rx, uint16_t wqe_index, uint8_t opcode,
                 uint8_t syndrome, const void *inl)
{
    const emu_pkt_t *pkt = rx->pkt;
    emu_cqe_t cqe;

    memset(&cqe, 0, sizeof(cqe));
    cqe.opcode      = opcode;
    cqe.syndrome    = syndrome;
    cqe.wqe_counter = wqe_index;
    cqe.qpn         = rx->qp->qpn;
    cqe.src_qpn     = pkt->src_qpn;
    cqe.slid        = pkt->slid;
    cqe.sl          = emu_pkt_cqe_sl(pkt);
    cqe.byte_cnt    = pkt->msg_total;
    cqe.imm         = pkt->imm;
    cqe.inl         = inl;
    cqe.solicited   = !!(pkt->flags & EMU_PKT_SOLICITED);
    cqe.srqn_uidx   = (rx->qp->srq != NULL) ? rx->qp->srq->srqn :
                                              rx->qp->cqe_uidx;
    if (emu_unlikely(emu_qp_complete(rx->qp, rx->qp->recv_cq, &cqe) != 0)) {
        emu_resp_stop(rx->qp);
        return EMU_RX_DROP;
    }

    EMU_COUNT(rx->port, rx->qp->type,
              (syndrome == 0) ? EMU_CNT_CQES : EMU_CNT_CQE_ERRS, 1);
    return EMU_RX_NEXT;
}

/* The responder's own error: its receive completion and a NAK */
static emu_rx_verdict_t emu_rx_recv_failed(emu_rx_t *rx, uint16_t index,
                                           int error)
{
    if ((error == -ESRCH) || (error == -EFAULT)) {
        return emu_rx_memory_failed(rx, error);
    }

    rx->ctx->resp_msg.kind = EMU_OP_NONE; /* the entry is used up */
    if (emu_rx_push_recv(rx, index, MLX5_CQE_RESP_ERR,
                         (error == -EMSGSIZE) ?
                         MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR :
                         MLX5_CQE_SYNDROME_LOCAL_PROT_ERR, NULL) !=
        EMU_RX_NEXT) {
        return EMU_RX_DROP;
    }

    return emu_rx_nak(rx, (error == -EMSGSIZE) ? EMU_RSP_NAK_INV :
                                                 EMU_RSP_NAK_OP);
}

/* Whether the payload goes into the completion instead of the entry */
static int emu_rx_fits_cqe(const emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    unsigned max         = (rx->qp->recv_cq->cqe_size == 128) ? 64 : 32;

    return rx->qp->scatter_cqe && (pkt->length > 0) && (pkt->length <= max) &&
           (pkt->flags & EMU_PKT_FIRST) && (pkt->flags & EMU_PKT_LAST);
}

static emu_rx_verdict_t emu_rx_send(emu_rx_t *rx)
{
    emu_resp_msg_t *msg  = &rx->ctx->resp_msg;
    const emu_pkt_t *pkt = rx->pkt;
    uint8_t inl[64];
    emu_rq_entry_t entry;
    int in_cqe, ret;

    if (pkt->flags & EMU_PKT_FIRST) {
        entry          = rx->entry;
        rx->has_entry  = 0; /* the message has it */
        msg->wqe_index = entry.index;
        msg->srqn      = (rx->qp->srq != NULL) ? rx->qp->srq->srqn : 0;
        msg->offset    = 0;
        msg->kind      = EMU_OP_SEND;
    } else {
        emu_rq_get(rx->qp, msg->wqe_index, &entry);
    }

    in_cqe = emu_rx_fits_cqe(rx);
    if (in_cqe) {
        emu_pkt_copy_out(pkt, 0, inl, pkt->length);
    } else {
        ret = emu_rq_scatter(rx->qp, &entry, msg->offset, pkt);
        if (ret != 0) {
            return emu_rx_recv_failed(rx, entry.index, ret);
        }
    }

    emu_rx_trace(rx, 0);
    msg->offset += pkt->length;
    if (pkt->flags & EMU_PKT_LAST) {
        msg->kind = EMU_OP_NONE;
        return emu_rx_push_recv(rx, entry.index, (pkt->flags & EMU_PKT_IMM) ?
                                MLX5_CQE_RESP_SEND_IMM : MLX5_CQE_RESP_SEND, 0,
                                in_cqe ? inl : NULL);
    }
    return EMU_RX_NEXT;
}

emu_rx_verdict_t emu_rx_place(emu_rx_t *rx)
{
    int ret = emu_rx_put(rx);

    if (ret != 0) {
        return emu_rx_memory_failed(rx, ret);
    }

    emu_rx_trace(rx, 0);
    return EMU_RX_NEXT;
}

static emu_rx_verdict_t emu_rx_write(emu_rx_t *rx)
{
    const emu_pkt_t *pkt     = rx->pkt;
    emu_rx_verdict_t verdict = emu_rx_place(rx);

    if (verdict != EMU_RX_NEXT) {
        return verdict;
    }

    rx->ctx->resp_msg.kind = EMU_OP_WRITE;
    if (pkt->flags & EMU_PKT_LAST) {
        rx->ctx->resp_msg.kind = EMU_OP_NONE;
        if (rx->has_entry) {
            rx->has_entry = 0;
            emu_late_flush_before(rx->port->index, rx->qp->qpn, 0);
            return emu_rx_push_recv(rx, rx->entry.index, MLX5_CQE_RESP_WR_IMM,
                                    0, NULL);
        }
    }
    return EMU_RX_NEXT;
}

/* The response refers to the memory; the region stays until it is released */
static emu_rx_verdict_t emu_rx_read(emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    emu_rsp_t *rsp       = rx->rsp;

    rsp->type    = EMU_RSP_READ;
    rsp->psn     = pkt->psn;
    rsp->num_psn = pkt->num_psn;
    rsp->length  = pkt->left;
    rsp->mtu     = emu_qp_mtu(rx->qp);
    if (rx->mr != NULL) {
        rsp->proc = rx->mr->proc;
        rsp->addr = pkt->raddr - rx->mr->iova + rx->mr->addr;
        rsp->mr   = rx->mr;
        rx->mr    = NULL;
    }
    emu_rx_trace(rx, 0);
    return EMU_RX_NEXT;
}

/* Fields end at the bits that are set in pkt->compare: those are added without
 * the carry that they would pass on */
static uint64_t emu_rx_masked_add(const emu_pkt_t *pkt, uint64_t old)
{
    uint64_t ends = pkt->compare;

    return ((old & ~ends) + (pkt->swap_add & ~ends)) ^
           ((old ^ pkt->swap_add) & ends);
}

static uint64_t emu_rx_atomic_result(const emu_pkt_t *pkt, uint64_t old)
{
    if (pkt->kind == EMU_OP_FAA) {
        return emu_rx_masked_add(pkt, old);
    }
    if (((old ^ pkt->compare) & pkt->compare_mask) != 0) {
        return old;
    }
    return (old & ~pkt->swap_mask) | (pkt->swap_add & pkt->swap_mask);
}

/* The window between reading and writing, which only the lock of the HCA
 * closes */
static void emu_rx_show_rmw(const emu_pkt_t *pkt)
{
    struct timespec pause = { .tv_nsec = EMU_RX_RMW_POLL_NS };
    emu_fault_verdict_t verdict;
    uint64_t begin, end;

    emu_wire_show(pkt, EMU_FAULT_POINT_RMW, 0, 1, &verdict);
    if (verdict.fate != EMU_FAULT_ACTION_DELAY) {
        return;
    }

    begin = emu_fault_wait_begin(&verdict.wait, pkt->src_qpn);
    end   = emu_now_ns() + emu_scaled_ns(verdict.value_ns);
    while ((emu_now_ns() < end) ||
           !emu_fault_wait_over(&verdict.wait, pkt->src_qpn, begin)) {
        nanosleep(&pause, NULL);
    }
}

/* Read, modify, write: atomic among the NIC's own, by the lock of the HCA, which has the
 * trace show them in this order */
static int emu_rx_atomic_memory(emu_rx_t *rx, uint64_t *old_p)
{
    uint64_t addr        = rx->pkt->raddr - rx->mr->iova + rx->mr->addr;
    emu_lock_t *hca_lock = &emu_fabric->ports[rx->port->hca].hca_lock;
    uint32_t size        = rx->pkt->atomic_size;
    struct iovec remote  = { (void*)(uintptr_t)addr, size };
    struct iovec local   = { old_p, size };
    uint64_t new_value;
    int ret;

    *old_p = 0; /* 4 bytes fill the low half only */
    emu_lock(hca_lock);
    ret = emu_mem_get(rx->mr->proc, &local, 1, &remote, 1, size);
    if (ret == 0) {
        if (emu_fault_active()) {
            emu_rx_show_rmw(rx->pkt);
        }
        new_value = emu_rx_atomic_result(rx->pkt, *old_p);
        if (new_value != *old_p) {
            local.iov_base = &new_value;
            ret = emu_mem_put(rx->mr->proc, &remote, 1, &local, 1, size);
        }
    }
    if (ret == 0) {
        emu_rx_trace(rx, *old_p);
    }
    emu_unlock(hca_lock);
    return ret;
}

static emu_rx_verdict_t emu_rx_atomic(emu_rx_t *rx)
{
    emu_qp_t *ctx = rx->ctx;
    emu_atomic_result_t *result;
    uint64_t old;
    int ret;

    ret = emu_rx_atomic_memory(rx, &old);
    if (ret != 0) {
        return emu_rx_memory_failed(rx, ret);
    }

    result        = &ctx->resp_atomics[ctx->resp_atomic++ % EMU_MAX_RD_ATOMIC];
    result->psn   = rx->pkt->psn;
    result->value = old;
    result->valid = 1;

    rx->rsp->type    = EMU_RSP_ATOMIC;
    rx->rsp->psn     = rx->pkt->psn;
    rx->rsp->num_psn = 1;
    rx->rsp->value   = old;
    return EMU_RX_NEXT;
}

/* Before it reads, or writes a completion */
static void emu_rx_flush_late(const emu_rx_t *rx)
{
    emu_late_flush_before(rx->port->index, rx->qp->qpn,
                          (rx->mr != NULL) ? rx->mr->device : 0);
}

emu_rx_verdict_t emu_rx_execute(emu_rx_t *rx)
{
    if (rx->pkt->kind != EMU_OP_WRITE) {
        /* Writes come before what follows them: a completion, a read */
        emu_rx_flush_late(rx);
    }

    switch (rx->pkt->kind) {
    case EMU_OP_SEND:
        return emu_rx_send(rx);
    case EMU_OP_WRITE:
        return emu_rx_write(rx);
    case EMU_OP_READ:
        return emu_rx_read(rx);
    case EMU_OP_CAS:
    case EMU_OP_FAA:
        return emu_rx_atomic(rx);
    default:
        return emu_rx_nak(rx, EMU_RSP_NAK_INV);
    }
}

/* An atomic that came before gets the result that it got then */
static emu_rx_verdict_t emu_rx_duplicate_atomic(emu_rx_t *rx)
{
    const emu_atomic_result_t *result;
    unsigned i;

    for (i = 0; i < EMU_MAX_RD_ATOMIC; i++) {
        result = &rx->ctx->resp_atomics[i];
        if (result->valid && (result->psn == rx->pkt->psn)) {
            rx->rsp->type    = EMU_RSP_ATOMIC;
            rx->rsp->psn     = rx->pkt->psn;
            rx->rsp->num_psn = 1;
            rx->rsp->value   = result->value;
            emu_rx_trace(rx, result->value);
            return EMU_RX_REPLY;
        }
    }

    return EMU_RX_DROP;
}

emu_rx_verdict_t emu_rx_duplicate(emu_rx_t *rx)
{
    emu_rx_verdict_t verdict;

    rx->is_dup = 1;
    switch (rx->pkt->kind) {
    case EMU_OP_READ:
        /* Reads are done again: nothing says that memory must be the same */
        verdict = emu_rx_check_rights(rx);
        if (verdict != EMU_RX_NEXT) {
            return verdict;
        }
        emu_rx_flush_late(rx);
        emu_rx_read(rx);
        return EMU_RX_REPLY;
    case EMU_OP_CAS:
    case EMU_OP_FAA:
        return emu_rx_duplicate_atomic(rx);
    default:
        if (!(rx->pkt->flags & EMU_PKT_LAST) && !emu_pkt_wants_ack(rx->pkt)) {
            return EMU_RX_DROP;
        }
        emu_rx_trace(rx, 0);
        rx->rsp->is_partial = !(rx->pkt->flags & EMU_PKT_LAST);
        rx->rsp->type = EMU_RSP_ACK;
        rx->rsp->psn  = emu_psn_add(rx->ctx->resp_psn, EMU_PSN_MASK);
        return EMU_RX_REPLY;
    }
}
