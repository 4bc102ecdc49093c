/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Queue pairs: creation, modification, query. Called by programs, directly and
 * through the operations of verbs_context, and by mlx5dv_create_qp(). Posting
 * is in emu_vqp_post.c and emu_vsrq.c.
 */

#include "emu_verbs.h"

#include <stdlib.h>
#include <string.h>

/* Segments before the data of the largest request of a kind, in bytes. The
 * driver of a real NIC reserves room for memory window binding in RC and DC
 * queues; programs which size their queues by it get the same room here. */
#define EMU_VQP_OVERHEAD_RC  192
#define EMU_VQP_OVERHEAD_UD  64
#define EMU_VQP_OVERHEAD_DCI 240


static int emu_vqp_type(const struct ibv_qp_init_attr_ex *attr,
                        const struct mlx5dv_qp_init_attr *dv_attr,
                        emu_qp_type_t *type_p)
{
    switch (attr->qp_type) {
    case IBV_QPT_RC:
        *type_p = EMU_QPT_RC;
        return 0;
    case IBV_QPT_UD:
        *type_p = EMU_QPT_UD;
        return 0;
    case IBV_QPT_DRIVER:
        if ((dv_attr == NULL) ||
            !(dv_attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_DC)) {
            return EINVAL;
        }
        switch (dv_attr->dc_init_attr.dc_type) {
        case MLX5DV_DCTYPE_DCT:
            *type_p = EMU_QPT_DCT;
            return 0;
        case MLX5DV_DCTYPE_DCI:
            *type_p = EMU_QPT_DCI;
            return 0;
        default:
            return EINVAL;
        }
    default:
        return emu_refuse("ibv_create_qp", "types other than RC, UD and DC are");
    }
}

/* Send queue: basic blocks, and what the program may make of them */
static int emu_vqp_size_sq(emu_qp_type_t type, struct ibv_qp_cap *cap,
                           uint32_t *bb_cnt_p)
{
    static const uint32_t overheads[] = {
        [EMU_QPT_RC]  = EMU_VQP_OVERHEAD_RC,
        [EMU_QPT_UD]  = EMU_VQP_OVERHEAD_UD,
        [EMU_QPT_DCI] = EMU_VQP_OVERHEAD_DCI,
    };
    uint32_t overhead, size, bb_cnt;

    *bb_cnt_p = 0;
    if (type == EMU_QPT_DCT) {
        return 0;
    }

    if ((cap->max_send_wr > EMU_SQ_MAX_BB) ||
        (cap->max_send_sge > EMU_VERBS_MAX_SEND_SGE) ||
        (cap->max_inline_data > EMU_VERBS_MAX_INLINE)) {
        return EINVAL;
    }

    if (cap->max_send_wr == 0) {
        *bb_cnt_p = 1; /* A queue has a block, even if it's never used */
        return 0;
    }

    overhead = overheads[type];
    size     = overhead +
               emu_max(cap->max_send_sge * sizeof(struct mlx5_wqe_data_seg),
                       (cap->max_inline_data == 0) ? 0 :
                       (sizeof(struct mlx5_wqe_inl_data_seg) +
                        cap->max_inline_data));
    size     = (size + EMU_SEND_BB - 1) & ~(EMU_SEND_BB - 1);
    bb_cnt   = emu_roundup_pow2(cap->max_send_wr * (size / EMU_SEND_BB));
    if (bb_cnt > EMU_SQ_MAX_BB) {
        return ENOMEM;
    }

    cap->max_send_wr     = bb_cnt / (size / EMU_SEND_BB);
    cap->max_inline_data = emu_min(size - overhead -
                                   sizeof(struct mlx5_wqe_inl_data_seg),
                                   EMU_VERBS_MAX_INLINE);
    cap->max_send_sge    = emu_min((size - overhead) /
                                   sizeof(struct mlx5_wqe_data_seg),
                                   EMU_VERBS_MAX_SEND_SGE);
    *bb_cnt_p            = bb_cnt;
    return 0;
}

static int emu_vqp_size_rq(emu_qp_type_t type, int has_srq,
                           struct ibv_qp_cap *cap, uint32_t *wqe_cnt_p)
{
    *wqe_cnt_p = 0;
    if (has_srq || (type == EMU_QPT_DCI) || (type == EMU_QPT_DCT)) {
        cap->max_recv_wr  = 0;
        cap->max_recv_sge = 0;
        return 0;
    }

    if ((cap->max_recv_wr > EMU_RQ_MAX_WQE) ||
        (cap->max_recv_sge > EMU_VERBS_MAX_RECV_SGE)) {
        return EINVAL;
    }

    if (cap->max_recv_wr > 0) {
        *wqe_cnt_p        = emu_roundup_pow2(cap->max_recv_wr);
        cap->max_recv_wr  = *wqe_cnt_p;
        cap->max_recv_sge = emu_roundup_pow2(cap->max_recv_sge);
    }

    return 0;
}

static int emu_vqp_check_attr(struct ibv_context *context,
                              const struct ibv_qp_init_attr_ex *attr)
{
    if ((context == NULL) || (attr == NULL) || !emu_vctx_is_mine(context) ||
        !(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || (attr->pd == NULL) ||
        (attr->pd->context != context)) {
        return EINVAL;
    }

    /* There is no multicast, so none comes back */
    if ((attr->comp_mask & ~(IBV_QP_INIT_ATTR_PD |
                             IBV_QP_INIT_ATTR_CREATE_FLAGS |
                             IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)) ||
        ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
         (attr->create_flags & ~(uint32_t)IBV_QP_CREATE_BLOCK_SELF_MCAST_LB))) {
        return emu_refuse("ibv_create_qp", "such flags or fields are");
    }

    if (((attr->send_cq != NULL) && (attr->send_cq->context != context)) ||
        ((attr->recv_cq != NULL) && (attr->recv_cq->context != context)) ||
        ((attr->srq != NULL) && (attr->srq->context != context))) {
        return EINVAL;
    }

    return 0;
}

/* Received data that fit in a CQE are put there, unless a program that uses direct verbs
 * forbids it. For other programs the result is the same, so it is not done for them */
static int emu_vqp_scatter_cqe(emu_qp_type_t type,
                               const struct mlx5dv_qp_init_attr *dv_attr)
{
    uint32_t flags;
    const char *env;

    if ((type == EMU_QPT_UD) || (dv_attr == NULL)) {
        return 0;
    }

    flags = (dv_attr->comp_mask & MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) ?
            dv_attr->create_flags : 0;
    if (flags & MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE) {
        return 0;
    }

    /* The environment is libmlx5's, and decides where flags do not */
    env = getenv("MLX5_SCATTER_TO_CQE");
    return (flags & MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE) || (env == NULL) ||
           strcmp(env, "0");
}

static int emu_vqp_create_queues(emu_vqp_t *vqp, emu_ctx_t *ctx,
                                 emu_qp_init_attr_t *init)
{
    int ret;

    ret = emu_qp_create(ctx, init, &vqp->qp);
    if (ret != 0) {
        return ret;
    }

    vqp->sq_buf     = vqp->qp->sq_buf;
    vqp->sq_bb_cnt  = vqp->qp->sq_bb_cnt;
    vqp->dbrec      = vqp->qp->dbrec;
    vqp->rq.buf     = vqp->qp->rq_buf;
    vqp->rq.dbrec   = vqp->qp->dbrec;
    vqp->rq.wqe_cnt = vqp->qp->rq_wqe_cnt;
    vqp->rq.stride  = vqp->qp->rq_stride;
    vqp->rq.max_sge = vqp->qp->rq_stride / sizeof(struct mlx5_wqe_data_seg);

    vqp->sq_wrid   = calloc(vqp->sq_bb_cnt + 1, sizeof(*vqp->sq_wrid));
    vqp->sq_num_bb = calloc(vqp->sq_bb_cnt + 1, sizeof(*vqp->sq_num_bb));
    vqp->rq.wrid   = calloc(vqp->rq.wqe_cnt + 1, sizeof(*vqp->rq.wrid));
    if ((vqp->sq_wrid == NULL) || (vqp->sq_num_bb == NULL) ||
        (vqp->rq.wrid == NULL)) {
        free(vqp->sq_wrid);
        free(vqp->sq_num_bb);
        free(vqp->rq.wrid);
        emu_qp_destroy(vqp->qp);
        return ENOMEM;
    }

    return 0;
}

static void emu_vqp_init_public(emu_vqp_t *vqp, struct ibv_context *context,
                                const struct ibv_qp_init_attr_ex *attr)
{
    vqp->ibv.context     = context;
    vqp->ibv.qp_context  = attr->qp_context;
    vqp->ibv.pd          = attr->pd;
    vqp->ibv.send_cq     = attr->send_cq;
    vqp->ibv.recv_cq     = attr->recv_cq;
    vqp->ibv.srq         = attr->srq;
    vqp->ibv.handle      = vqp->qp->qpn;
    vqp->ibv.qp_num      = vqp->qp->qpn;
    vqp->ibv.state       = IBV_QPS_RESET;
    vqp->ibv.qp_type     = attr->qp_type;
    memcpy(&vqp->init, attr, sizeof(vqp->init));
    pthread_mutex_init(&vqp->ibv.mutex, NULL);
    pthread_cond_init(&vqp->ibv.cond, NULL);
    pthread_mutex_init(&vqp->sq_lock, NULL);
    pthread_mutex_init(&vqp->rq_lock, NULL);
}

/* What the engine needs, from what the program wants; sizes that the program
 * gets go to cap */
static int emu_vqp_init_attr(struct ibv_context *context,
                             const struct ibv_qp_init_attr_ex *attr,
                             const struct mlx5dv_qp_init_attr *dv_attr,
                             struct ibv_qp_cap *cap, emu_qp_init_attr_t *init)
{
    int ret;

    ret = emu_vqp_check_attr(context, attr);
    if (ret != 0) {
        return ret;
    }

    ret = emu_vqp_type(attr, dv_attr, &init->type);
    if (ret != 0) {
        return ret;
    }

    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
        ret = emu_vqp_ex_check(init->type, attr->send_ops_flags);
        if (ret != 0) {
            return ret;
        }
    }

    if ((attr->recv_cq == NULL) ||
        ((attr->send_cq == NULL) && (init->type != EMU_QPT_DCT)) ||
        ((attr->srq == NULL) && (init->type == EMU_QPT_DCT))) {
        return EINVAL;
    }

    *cap = attr->cap;
    ret  = emu_vqp_size_sq(init->type, cap, &init->sq_bb_cnt);
    if (ret != 0) {
        return ret;
    }

    ret = emu_vqp_size_rq(init->type, attr->srq != NULL, cap,
                          &init->rq_wqe_cnt);
    if (ret != 0) {
        return ret;
    }

    init->pd          = emu_vpd(attr->pd)->pd;
    init->recv_cq     = emu_vcq(attr->recv_cq)->cq;
    init->send_cq     = (init->type == EMU_QPT_DCT) ?
                        NULL : emu_vcq(attr->send_cq)->cq;
    init->srq         = (attr->srq == NULL) ? NULL : emu_vsrq(attr->srq)->srq;
    init->rq_max_sge  = cap->max_recv_sge;
    init->sq_sig_all  = attr->sq_sig_all;
    init->scatter_cqe = emu_vqp_scatter_cqe(init->type, dv_attr);
    if (init->type == EMU_QPT_DCT) {
        init->dc_key = dv_attr->dc_init_attr.dct_access_key;
    }

    return 0;
}

struct ibv_qp *emu_vqp_create(struct ibv_context *context,
                              struct ibv_qp_init_attr_ex *attr,
                              const struct mlx5dv_qp_init_attr *dv_attr)
{
    emu_qp_init_attr_t init = {};
    struct ibv_qp_cap cap;
    emu_vqp_t *vqp;
    int ret;

    ret = emu_vqp_init_attr(context, attr, dv_attr, &cap, &init);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    vqp = calloc(1, sizeof(*vqp));
    if (vqp == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    vqp->cookie = emu_vreg_add(vqp);
    if (vqp->cookie == 0) {
        ret = ENOMEM;
        goto err_free;
    }

    if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
        ret = emu_vqp_ex_init(vqp, attr->send_ops_flags);
        if (ret != 0) {
            goto err_remove;
        }
    }

    vqp->type   = init.type;
    init.cookie = vqp->cookie;
    ret         = emu_vqp_create_queues(vqp, emu_vctx(context)->ctx, &init);
    if (ret != 0) {
        goto err_batch;
    }

    attr->cap = cap;
    emu_vqp_init_public(vqp, context, attr);
    emu_vqp_set(vqp->ibv.qp_num, vqp);
    return &vqp->ibv;

err_batch:
    free(vqp->batch);
err_remove:
    emu_vreg_remove(vqp->cookie);
err_free:
    free(vqp);
    return emu_verbs_fail(ret);
}

struct ibv_qp *emu_vqp_create_ex(struct ibv_context *context,
                                 struct ibv_qp_init_attr_ex *attr)
{
    return emu_vqp_create(context, attr, NULL);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp_init_attr_ex attr_ex;
    struct ibv_qp *qp;

    if ((pd == NULL) || (attr == NULL)) {
        return emu_verbs_fail(EINVAL);
    }

    memset(&attr_ex, 0, sizeof(attr_ex));
    memcpy(&attr_ex, attr, sizeof(*attr));
    attr_ex.comp_mask = IBV_QP_INIT_ATTR_PD;
    attr_ex.pd        = pd;
    qp                = emu_vqp_create(pd->context, &attr_ex, NULL);
    if (qp != NULL) {
        attr->cap = attr_ex.cap;
    }

    return qp;
}

/* Forget what was posted: the engine did the same */
static void emu_vqp_reset(emu_vqp_t *vqp)
{
    pthread_mutex_lock(&vqp->sq_lock);
    vqp->sq_head = 0;
    vqp->sq_tail = 0;
    pthread_mutex_unlock(&vqp->sq_lock);

    pthread_mutex_lock(&vqp->rq_lock);
    vqp->rq.head = 0;
    vqp->rq.tail = 0;
    pthread_mutex_unlock(&vqp->rq_lock);
}

static void emu_vqp_clean_cqs(const emu_vqp_t *vqp)
{
    if (vqp->ibv.recv_cq != NULL) {
        emu_vcq_clean(emu_vcq(vqp->ibv.recv_cq), vqp);
    }

    if ((vqp->ibv.send_cq != NULL) && (vqp->ibv.send_cq != vqp->ibv.recv_cq)) {
        emu_vcq_clean(emu_vcq(vqp->ibv.send_cq), vqp);
    }
}

/* On RoCE, the kernel finds the MAC address that a connection leads to. A DC target
 * has none. @return 0 or a negative errno */
static int emu_vqp_resolve(const emu_vqp_t *vqp, const struct ibv_qp_attr *attr,
                           int attr_mask, uint8_t rmac[6], const uint8_t **rmac_p)
{
    const struct ibv_ah_attr *ah = &attr->ah_attr;
    emu_port_t *port             = emu_vctx(vqp->ibv.context)->port;

    *rmac_p = NULL;
    if (!(attr_mask & IBV_QP_AV) || !emu_port_is_roce(port)) {
        return 0;
    }

    if (!ah->is_global) {
        return -EINVAL;
    }

    if (vqp->type != EMU_QPT_RC) {
        return 0;
    }

    *rmac_p = rmac;
    return emu_route_resolve(port, ah->grh.sgid_index, &ah->grh.dgid, rmac);
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask)
{
    const uint8_t *rmac_p;
    uint8_t rmac[6];
    emu_vqp_t *vqp;
    int ret;

    if ((qp == NULL) || (attr == NULL) || !emu_vctx_is_mine(qp->context)) {
        return emu_verbs_error(EINVAL);
    }

    vqp = emu_vqp(qp);
    ret = emu_vqp_resolve(vqp, attr, attr_mask, rmac, &rmac_p);
    if (ret == 0) {
        ret = emu_qp_modify_to(vqp->qp, attr, attr_mask, rmac_p);
    }
    if (ret != 0) {
        return emu_verbs_error(ret);
    }

    if (attr_mask & IBV_QP_STATE) {
        qp->state = attr->qp_state;
        if (attr->qp_state == IBV_QPS_RESET) {
            emu_vqp_clean_cqs(vqp);
            emu_vqp_reset(vqp);
        }
    }

    return 0;
}

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int attr_mask,
                 struct ibv_qp_init_attr *init_attr)
{
    emu_vqp_t *vqp;
    int ret;

    if ((qp == NULL) || (attr == NULL) || (init_attr == NULL) ||
        !emu_vctx_is_mine(qp->context)) {
        return emu_verbs_error(EINVAL);
    }

    vqp = emu_vqp(qp);
    memset(attr, 0, sizeof(*attr));
    ret = emu_qp_query(vqp->qp, attr); /* All attributes are cheap */
    if (ret != 0) {
        return emu_verbs_error(ret);
    }

    attr->cap  = vqp->init.cap;
    *init_attr = vqp->init;
    if (attr_mask & IBV_QP_STATE) {
        /* libibverbs returns the state only if the mask asks for it; otherwise the
         * program sees the last state that it set */
        qp->state = attr->qp_state;
    }
    return 0;
}

int ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op,
                               uint32_t flags)
{
    (void)qp;
    (void)op;
    (void)flags;
    return 0;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    emu_vqp_t *vqp;

    if (qp == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vqp = emu_vqp(qp);
    emu_vqp_set(qp->qp_num, NULL); /* Before the number is free */
    if (emu_vctx_is_mine(qp->context)) {
        (void)emu_vctx_command(qp->context);
        emu_qp_destroy(vqp->qp);
        emu_vqp_clean_cqs(vqp);
    }

    emu_vreg_remove(vqp->cookie);
    pthread_mutex_lock(&qp->mutex);
    while (qp->events_completed != vqp->async_events) {
        pthread_cond_wait(&qp->cond, &qp->mutex);
    }
    pthread_mutex_unlock(&qp->mutex);

    pthread_mutex_destroy(&vqp->sq_lock);
    pthread_mutex_destroy(&vqp->rq_lock);
    pthread_mutex_destroy(&qp->mutex);
    pthread_cond_destroy(&qp->cond);
    free(vqp->sq_wrid);
    free(vqp->sq_num_bb);
    free(vqp->rq.wrid);
    free(vqp->batch);
    free(vqp);
    return 0;
}
