/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs: their memory, their states and attributes. What they do is in
 * proto/, modify among it. See emu_qp.h.
 */

#include "emu_qp.h"
#include "emu_cq.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_heap.h"
#include "emu_late.h"
#include "emu_mr.h"
#include "emu_nic.h"
#include "emu_pipe.h"
#include "emu_port.h"
#include "emu_proc.h"
#include "emu_quirk.h"
#include "emu_srq.h"
#include "emu_table.h"
#include "../wqe/emu_wqe.h"

#include <errno.h>
#include <string.h>

#define EMU_QP_GEN_MASK 0x3ff

_Static_assert(EMU_MAX_QPS == (1 << EMU_QP_IDX_BITS), "QPN layout");

static unsigned emu_qp_round(unsigned value)
{
    unsigned pow2 = 1;

    while (pow2 < value) {
        pow2 <<= 1;
    }
    return pow2;
}

/* [send queue][receive queue][emu_sqe_t array][doorbell record], or just the
 * array if the program has the rest */
static size_t emu_qp_mem_size(const emu_qp_t *qp)
{
    size_t size = (size_t)qp->sq_bb_cnt * sizeof(emu_sqe_t) + 64;

    if (!qp->user_mem) {
        size += (size_t)qp->sq_bb_cnt * EMU_SEND_BB +
                (size_t)qp->rq_wqe_cnt * qp->rq_stride;
    }
    return size;
}

static int emu_qp_alloc_mem(emu_qp_t *qp, const emu_qp_init_attr_t *init)
{
    uint8_t *ptr;

    qp->user_mem = (init->user_dbrec != NULL);
    ptr          = emu_heap_alloc(emu_qp_mem_size(qp));
    if (ptr == NULL) {
        return -ENOMEM;
    }

    qp->mem = ptr;
    if (qp->user_mem) {
        qp->sq_buf = init->user_sq;
        qp->rq_buf = init->user_rq;
        qp->dbrec  = init->user_dbrec;
        qp->sqes   = (void*)ptr;
        return 0;
    }

    qp->sq_buf = ptr;
    qp->rq_buf = qp->sq_buf + (size_t)qp->sq_bb_cnt * EMU_SEND_BB;
    qp->sqes   = (void*)(qp->rq_buf + (size_t)qp->rq_wqe_cnt * qp->rq_stride);
    qp->dbrec  = (void*)(qp->sqes + qp->sq_bb_cnt);
    return 0;
}

static int emu_qp_check_init(const emu_qp_init_attr_t *init)
{
    if ((init->type >= EMU_QPT_LAST) || (init->pd == NULL) ||
        (init->recv_cq == NULL) || (init->sq_bb_cnt > EMU_SQ_MAX_BB) ||
        (init->rq_wqe_cnt > EMU_RQ_MAX_WQE) || (init->rq_max_sge > 64)) {
        return -EINVAL;
    }

    if (init->type == EMU_QPT_DCT) {
        return (init->srq != NULL) ? 0 : -EINVAL;
    }

    return ((init->send_cq != NULL) && (init->sq_bb_cnt > 0)) ? 0 : -EINVAL;
}

static void emu_qp_init_sizes(emu_qp_t *qp, const emu_qp_init_attr_t *init)
{
    qp->sq_bb_cnt  = 0;
    qp->rq_wqe_cnt = 0;
    qp->rq_stride  = 0;
    qp->rq_max_sge = 0;
    if (init->type != EMU_QPT_DCT) {
        qp->sq_bb_cnt = emu_qp_round(init->sq_bb_cnt);
    }
    if ((init->srq == NULL) && (init->rq_wqe_cnt > 0)) {
        qp->rq_wqe_cnt = emu_qp_round(init->rq_wqe_cnt);
        qp->rq_max_sge = emu_qp_round(emu_max(init->rq_max_sge, 1));
        qp->rq_stride  = qp->rq_max_sge * 16;
    }
}

static void emu_qp_ref(emu_qp_t *qp, int add)
{
    __atomic_fetch_add(&emu_fabric->pds[qp->pd].refs, add, __ATOMIC_RELAXED);
    __atomic_fetch_add(&qp->recv_cq->refs, add, __ATOMIC_RELAXED);
    if (qp->send_cq != NULL) {
        __atomic_fetch_add(&qp->send_cq->refs, add, __ATOMIC_RELAXED);
    }
    if (qp->srq != NULL) {
        __atomic_fetch_add(&qp->srq->refs, add, __ATOMIC_RELAXED);
    }
}

void emu_qp_abandon_msg(emu_qp_t *ctx)
{
    emu_resp_msg_t *msg = &ctx->resp_msg;
    emu_srq_t *srq;

    if ((msg->kind == EMU_OP_SEND) && (msg->srqn != 0)) {
        msg->kind = EMU_OP_NONE;
        srq       = emu_srq_find(msg->srqn);
        if (srq != NULL) {
            emu_srq_return(srq, msg->wqe_index);
        }
    }
    msg->kind = EMU_OP_NONE;
}

void emu_qp_forget_early(emu_qp_t *ctx)
{
    if (ctx->resp_num_early > 0) {
        memset(ctx->resp_early, 0, sizeof(ctx->resp_early));
        ctx->resp_num_early = 0;
    }
}

/* What a DC initiator's target knows survives the initiator's reset: a packet
 * of its last connection that is still on its way is executed, as in reality,
 * until the next connection begins */
static void emu_qp_reset_responder(emu_qp_t *qp)
{
    emu_late_flush_qp_host(qp->qpn); /* nothing for the host is placed after RESET */
    emu_qp_abandon_msg(qp);
    memset(qp->resp_atomics, 0, sizeof(qp->resp_atomics));
    emu_qp_forget_early(qp);
    qp->resp_state    = IBV_QPS_RESET;
    qp->resp_psn      = 0;
    qp->resp_msn      = 0;
    qp->resp_nak      = 0;
    qp->resp_last_wqe = 0;
    qp->resp_atomic   = 0;
    qp->rq_ci         = 0;
}

void emu_qp_reset(emu_qp_t *qp)
{
    memset(&qp->attr, 0, sizeof(qp->attr));
    if (!qp->user_mem) {
        qp->dbrec[0] = 0;
        qp->dbrec[1] = 0;
    }
    qp->req_state     = IBV_QPS_RESET;
    qp->sq_ci         = qp->sq_send = qp->sq_new = qp->sq_posted = 0;
    qp->sq_pi         = 0;
    qp->req_psn       = qp->req_send = qp->req_una = qp->req_max = 0;
    qp->known_rq_psn  = qp->known_sq_psn = 0;
    qp->req_rd_out    = 0;
    qp->req_waiting   = 0;
    qp->req_flush_due = 0;
    qp->req_deadline  = 0;
    qp->req_hung      = 0;
    qp->req_asked     = 0;
    qp->last_op       = EMU_FAULT_OP_LAST;
    qp->dc_dct_now    = 0;
    __atomic_store_n(&qp->fatal, 0, __ATOMIC_RELEASE);
    if (qp->type != EMU_QPT_DCI) {
        emu_qp_reset_responder(qp);
    }
}

static void emu_qp_init(emu_qp_t *qp, int index, emu_ctx_t *ctx,
                        const emu_qp_init_attr_t *init)
{
    if (!emu_fabric->cfg.reuse_qpns || (qp->gen == 0)) {
        qp->gen       = (qp->gen + 1) & EMU_QP_GEN_MASK;
    }
    qp->qpn           = index | (qp->gen << EMU_QP_IDX_BITS);
    qp->type          = init->type;
    qp->sq_sig_all    = !!init->sq_sig_all;
    qp->scatter_cqe   = !!init->scatter_cqe;
    qp->proc          = emu_self->index;
    qp->ctx           = ctx->index;
    qp->pd            = init->pd->index;
    qp->port          = ctx->port;
    qp->nic_gen       = ctx->nic_gen;
    qp->ops           = __atomic_add_fetch(&emu_fabric->next_qp_id, 1,
                                           __ATOMIC_RELAXED) << EMU_QP_OPS_BITS;
    qp->cqe_uidx      = init->cqe_uidx;
    qp->send_cq       = init->send_cq;
    qp->recv_cq       = init->recv_cq;
    qp->srq           = init->srq;
    qp->dc_key        = init->dc_key;
    qp->cookie        = init->cookie;
    qp->order         = init->order;
    qp->order_forced  = init->order_forced;
    qp->async         = init->no_async ? NULL :
                        (init->async != NULL) ? init->async : ctx->async;
    qp->req_serial    = 0;
    qp->resp_serial   = 0;
    qp->req_timer_due = 0;
    if (!qp->locks_ready) {
        /* Once: a timer of an earlier user may still try one of them */
        if (emu_pipe_is_on()) {
            emu_lock_init_urgent(&qp->req_lock);
            emu_lock_init_urgent(&qp->resp_lock);
        } else {
            emu_lock_init(&qp->req_lock);
            emu_lock_init(&qp->resp_lock);
        }
        qp->locks_ready = 1;
    }
    memset(&qp->resp_msg, 0, sizeof(qp->resp_msg));
    emu_qp_forget_early(qp);
    emu_qp_reset_responder(qp);
    emu_qp_reset(qp);
}

/* A NIC that uses its numbers again: the lowest that is free of those which it had before, or
 * one that nobody had. table_lock is held. @return -1 if there is none */
static int emu_qp_find_used(uint32_t port)
{
    const emu_qp_t *qp;
    int fresh = -1;
    int index;

    for (index = 2; index < EMU_MAX_QPS; index++) {
        qp = &emu_fabric->qps[index];
        if (qp->used) {
            continue;
        } else if ((qp->gen != 0) && (qp->port == port)) {
            return index;
        } else if ((qp->gen == 0) && (fresh < 0)) {
            fresh = index;
        }
    }

    return fresh;
}

/* table_lock is held. @return -1 if there is none */
static int emu_qp_find_free(uint32_t port)
{
    int index = emu_fabric->cfg.reuse_qpns ? emu_qp_find_used(port) : -1;

    return (index >= 0) ? index :
           emu_table_find(EMU_TABLE_QP, emu_fabric->qps, sizeof(emu_qp_t), 2, EMU_MAX_QPS);
}

int emu_qp_create(emu_ctx_t *ctx, const emu_qp_init_attr_t *init,
                  emu_qp_t **qp_p)
{
    emu_qp_t *qp;
    int index, ret;

    ret = emu_qp_check_init(init);
    if (ret != 0) {
        return ret;
    }

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

    emu_lock(&emu_fabric->table_lock);
    ret   = -ENOMEM;
    index = emu_qp_find_free(ctx->port);
    if (index >= 0) {
        qp = &emu_fabric->qps[index];
        emu_qp_init_sizes(qp, init);
        ret = emu_qp_alloc_mem(qp, init);
        if (ret == 0) {
            emu_qp_init(qp, index, ctx, init);
            emu_qp_ref(qp, 1);
            __atomic_store_n(&qp->used, 1, __ATOMIC_RELEASE);
            *qp_p = qp;
        }
    }
    emu_unlock(&emu_fabric->table_lock);
    return ret;
}

void emu_qp_destroy(emu_qp_t *qp)
{
    int is_first;

    emu_lock(&qp->req_lock);
    emu_lock(&qp->resp_lock);
    is_first         = (qp->used == 1); /* else its owner died in here */
    emu_qp_abandon_msg(qp);
    qp->req_state    = IBV_QPS_RESET;
    qp->resp_state   = IBV_QPS_RESET;
    emu_late_flush_qp(qp->qpn);
    qp->req_deadline = 0;
    __atomic_store_n(&qp->used, 2, __ATOMIC_RELEASE);
    emu_unlock(&qp->resp_lock);
    emu_unlock(&qp->req_lock);

    /* From here on no thread touches the queues: all check "used" or the states
     * with a lock held */
    if (is_first) {
        emu_heap_free(qp->mem, emu_qp_mem_size(qp));
        emu_qp_ref(qp, -1);
    }
    __atomic_store_n(&qp->used, 0, __ATOMIC_RELEASE);
}

emu_qp_t *emu_qp_find(uint32_t qpn)
{
    emu_qp_t *qp = &emu_fabric->qps[qpn & (EMU_MAX_QPS - 1)];

    return ((__atomic_load_n(&qp->used, __ATOMIC_ACQUIRE) == 1) &&
            (qp->qpn == (qpn & 0xffffff))) ? qp : NULL;
}

emu_qp_order_t emu_qp_order(const emu_qp_t *qp)
{
    return (qp->order_forced || (qp->order != EMU_QP_ORDER_IBTA) ||
            (emu_port_ooo_sls(&emu_fabric->ports[qp->port]) == 0)) ?
           qp->order : EMU_QP_ORDER_RW;
}

unsigned emu_qp_mtu(const emu_qp_t *qp)
{
    return 128u << qp->attr.path_mtu;
}

enum ibv_qp_state emu_qp_state(const emu_qp_t *qp)
{
    if ((qp->type != EMU_QPT_DCI) && (qp->resp_state == IBV_QPS_ERR)) {
        return IBV_QPS_ERR;
    }
    return qp->req_state;
}

/* Both locks are held */
static void emu_qp_fill(const emu_qp_t *qp, struct ibv_qp_attr *attr_p)
{
    *attr_p              = qp->attr;
    attr_p->qp_state     = emu_qp_state(qp);
    attr_p->cur_qp_state = attr_p->qp_state;
    attr_p->sq_psn       = qp->req_psn;
    attr_p->rq_psn       = qp->resp_psn;
    attr_p->port_num     = 1;
}

int emu_qp_read(emu_qp_t *qp, struct ibv_qp_attr *attr_p)
{
    if (emu_nic_command(qp->port, qp->nic_gen)) {
        return -EIO;
    }

    emu_lock(&qp->req_lock);
    emu_lock(&qp->resp_lock);
    emu_qp_fill(qp, attr_p);
    emu_unlock(&qp->resp_lock);
    emu_unlock(&qp->req_lock);
    return 0;
}

/* What a driver makes of the PSNs that it is asked for. Both locks are held. */
static void emu_qp_show_psns(emu_qp_t *qp, struct ibv_qp_attr *attr)
{
    int is_err = (attr->qp_state == IBV_QPS_ERR);
    int always = emu_quirk_on(qp->port, EMU_QUIRK_PSN_STALE) &&
                 emu_quirk_value(qp->port, EMU_QUIRK_PSN_STALE, 0);

    if ((is_err || always) &&
        emu_quirk_hits(qp->port, EMU_QUIRK_PSN_STALE, qp->qpn, 0,
                       attr->rq_psn)) {
        attr->rq_psn = qp->known_rq_psn;
        attr->sq_psn = qp->known_sq_psn;
    } else if (!is_err) {
        qp->known_rq_psn = attr->rq_psn;
        qp->known_sq_psn = attr->sq_psn;
    }

    if (is_err && emu_quirk_hits(qp->port, EMU_QUIRK_PSN_LOST, qp->qpn, 0,
                                 attr->rq_psn)) {
        attr->rq_psn = 0;
        attr->sq_psn = 0;
    }
}

int emu_qp_query(emu_qp_t *qp, struct ibv_qp_attr *attr_p)
{
    if (emu_nic_command(qp->port, qp->nic_gen)) {
        return -EIO;
    }

    emu_lock(&qp->req_lock);
    emu_lock(&qp->resp_lock);
    emu_qp_fill(qp, attr_p);
    emu_qp_show_psns(qp, attr_p);
    emu_unlock(&qp->resp_lock);
    emu_unlock(&qp->req_lock);
    return 0;
}
