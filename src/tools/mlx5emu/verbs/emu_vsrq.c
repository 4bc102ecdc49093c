/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Shared receive queues, and posting to receive queues of both kinds. Called by
 * programs, directly and through the operations of ibv_context.
 */

#include "emu_verbs.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define EMU_VRQ_INVALID_LKEY 0x100


static struct mlx5_wqe_srq_next_seg *emu_vsrq_wqe(emu_vsrq_t *vsrq,
                                                  uint16_t index)
{
    return (struct mlx5_wqe_srq_next_seg*)
           (vsrq->rq.buf + (size_t)(index & (vsrq->rq.wqe_cnt - 1)) *
                           vsrq->rq.stride);
}

/* Write the scatter list of a receive entry */
static void emu_vrq_fill(struct mlx5_wqe_data_seg *dseg, unsigned max_sge,
                         const struct ibv_recv_wr *wr)
{
    int i, num = 0;

    for (i = 0; i < wr->num_sge; ++i) {
        if (wr->sg_list[i].length == 0) {
            continue;
        }

        dseg[num].byte_count = htobe32(wr->sg_list[i].length);
        dseg[num].lkey       = htobe32(wr->sg_list[i].lkey);
        dseg[num].addr       = htobe64(wr->sg_list[i].addr);
        ++num;
    }

    if (num < (int)max_sge) {
        dseg[num].byte_count = 0;
        dseg[num].lkey       = htobe32(EMU_VRQ_INVALID_LKEY);
        dseg[num].addr       = 0;
    }
}

static int emu_vsrq_init(emu_vsrq_t *vsrq, struct ibv_pd *pd,
                         struct ibv_srq_init_attr *attr)
{
    emu_vrq_t *rq = &vsrq->rq;
    int ret;

    vsrq->cookie = emu_vreg_add(vsrq);
    if (vsrq->cookie == 0) {
        return ENOMEM;
    }

    ret = emu_srq_create(emu_vpd(pd)->pd, attr->attr.max_wr, attr->attr.max_sge,
                         vsrq->cookie, &vsrq->srq);
    if (ret != 0) {
        goto err_remove;
    }

    rq->buf     = vsrq->srq->buf;
    rq->dbrec   = vsrq->srq->dbrec;
    rq->wqe_cnt = vsrq->srq->wqe_cnt;
    rq->stride  = vsrq->srq->stride;
    rq->max_sge = (rq->stride - sizeof(struct mlx5_wqe_srq_next_seg)) /
                  sizeof(struct mlx5_wqe_data_seg);
    rq->head    = 0;
    rq->tail    = rq->wqe_cnt - 1;
    rq->wrid    = calloc(rq->wqe_cnt, sizeof(*rq->wrid));
    if (rq->wrid == NULL) {
        ret = ENOMEM;
        goto err_destroy;
    }

    return 0;

err_destroy:
    emu_srq_destroy(vsrq->srq);
err_remove:
    emu_vreg_remove(vsrq->cookie);
    return ret;
}

struct ibv_srq *ibv_create_srq(struct ibv_pd *pd,
                               struct ibv_srq_init_attr *attr)
{
    emu_vsrq_t *vsrq;
    int ret;

    if ((pd == NULL) || (attr == NULL) || !emu_vctx_is_mine(pd->context) ||
        (attr->attr.max_wr >= EMU_RQ_MAX_WQE) ||
        (attr->attr.max_sge > EMU_SRQ_MAX_SGE)) {
        return emu_verbs_fail(EINVAL);
    }

    vsrq = calloc(1, sizeof(*vsrq));
    if (vsrq == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    ret = emu_vsrq_init(vsrq, pd, attr);
    if (ret != 0) {
        free(vsrq);
        return emu_verbs_fail(ret);
    }

    vsrq->ibv.context     = pd->context;
    vsrq->ibv.srq_context = attr->srq_context;
    vsrq->ibv.pd          = pd;
    vsrq->ibv.handle      = vsrq->srq->srqn;
    pthread_mutex_init(&vsrq->ibv.mutex, NULL);
    pthread_cond_init(&vsrq->ibv.cond, NULL);
    pthread_mutex_init(&vsrq->lock, NULL);

    attr->attr.max_wr  = vsrq->rq.wqe_cnt - 1;
    attr->attr.max_sge = vsrq->rq.max_sge;
    return &vsrq->ibv;
}

struct ibv_srq *emu_vsrq_create_ex(struct ibv_context *context,
                                   struct ibv_srq_init_attr_ex *attr)
{
    struct ibv_srq_init_attr basic;
    struct ibv_srq *srq;

    if ((context == NULL) || (attr == NULL)) {
        return emu_verbs_fail(EINVAL);
    }

    if ((attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) &&
        (attr->srq_type != IBV_SRQT_BASIC)) {
        return emu_refuse_object(
                __func__, "XRC and hardware tag matching are");
    }

    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || (attr->pd == NULL)) {
        return emu_verbs_fail(EINVAL);
    }

    basic.srq_context = attr->srq_context;
    basic.attr        = attr->attr;
    srq               = ibv_create_srq(attr->pd, &basic);
    if (srq != NULL) {
        attr->attr = basic.attr;
    }

    return srq;
}

int emu_vsrq_get_num(struct ibv_srq *srq, uint32_t *srq_num)
{
    *srq_num = emu_vsrq(srq)->srq->srqn;
    return 0;
}

int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
    emu_vsrq_t *vsrq;

    if ((srq == NULL) || (attr == NULL) || !emu_vctx_is_mine(srq->context)) {
        return emu_verbs_error(EINVAL);
    }

    vsrq = emu_vsrq(srq);
    if (mask & ~IBV_SRQ_LIMIT) {
        return (mask & IBV_SRQ_MAX_WR) ?
               emu_refuse(__func__, "resizing is") : emu_verbs_error(EINVAL);
    }

    if (mask & IBV_SRQ_LIMIT) {
        if (attr->srq_limit >= vsrq->rq.wqe_cnt) {
            return emu_verbs_error(EINVAL);
        }

        vsrq->limit = attr->srq_limit;
        emu_srq_set_limit(vsrq->srq, attr->srq_limit);
    }

    return 0;
}

int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr)
{
    emu_vsrq_t *vsrq;

    if ((srq == NULL) || (attr == NULL)) {
        return emu_verbs_error(EINVAL);
    }

    vsrq            = emu_vsrq(srq);
    attr->max_wr    = vsrq->rq.wqe_cnt - 1;
    attr->max_sge   = vsrq->rq.max_sge;
    attr->srq_limit = vsrq->limit;
    return 0;
}

int ibv_destroy_srq(struct ibv_srq *srq)
{
    emu_vsrq_t *vsrq;
    int ret;

    if (srq == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vsrq = emu_vsrq(srq);
    if (emu_vctx_is_mine(srq->context)) {
        (void)emu_vctx_command(srq->context);
        ret = emu_srq_destroy(vsrq->srq);
        if (ret != 0) {
            return emu_verbs_error(ret);
        }
    }

    emu_vreg_remove(vsrq->cookie);
    pthread_mutex_lock(&srq->mutex);
    while (srq->events_completed != vsrq->async_events) {
        pthread_cond_wait(&srq->cond, &srq->mutex);
    }
    pthread_mutex_unlock(&srq->mutex);

    pthread_mutex_destroy(&vsrq->lock);
    pthread_mutex_destroy(&srq->mutex);
    pthread_cond_destroy(&srq->cond);
    free(vsrq->rq.wrid);
    free(vsrq);
    return 0;
}

void emu_vsrq_free_wqe(emu_vsrq_t *vsrq, uint16_t index)
{
    index &= vsrq->rq.wqe_cnt - 1;

    pthread_mutex_lock(&vsrq->lock);
    emu_vsrq_wqe(vsrq, vsrq->rq.tail)->next_wqe_index = htobe16(index);
    vsrq->rq.tail = index;
    pthread_mutex_unlock(&vsrq->lock);
}

int emu_vsrq_post_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
                       struct ibv_recv_wr **bad_wr)
{
    emu_vsrq_t *vsrq = emu_vsrq(srq);
    emu_vrq_t *rq    = &vsrq->rq;
    struct mlx5_wqe_srq_next_seg *next;
    int ret          = 0;

    if (!emu_vctx_is_mine(srq->context)) {
        *bad_wr = wr;
        return emu_verbs_error(EINVAL);
    }

    pthread_mutex_lock(&vsrq->lock);
    for (; wr != NULL; wr = wr->next) {
        if ((wr->num_sge < 0) || (wr->num_sge > (int)rq->max_sge)) {
            ret = EINVAL;
        } else if (rq->head == rq->tail) {
            ret = ENOMEM; /* The last entry always stays free */
        }

        if (ret != 0) {
            *bad_wr = wr;
            break;
        }

        rq->wrid[rq->head] = wr->wr_id;
        next               = emu_vsrq_wqe(vsrq, rq->head);
        rq->head           = be16toh(next->next_wqe_index) & (rq->wqe_cnt - 1);
        emu_vrq_fill((struct mlx5_wqe_data_seg*)(next + 1), rq->max_sge, wr);
        ++vsrq->counter;
    }

    __atomic_store_n(&rq->dbrec[0], htobe32(vsrq->counter), __ATOMIC_RELEASE);
    pthread_mutex_unlock(&vsrq->lock);
    return (ret == 0) ? 0 : emu_verbs_error(ret);
}

int emu_vqp_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
                      struct ibv_recv_wr **bad_wr)
{
    emu_vqp_t *vqp = emu_vqp(qp);
    emu_vrq_t *rq  = &vqp->rq;
    uint32_t index;
    int ret        = 0;

    if (!emu_vctx_is_mine(qp->context) || (qp->srq != NULL) ||
        (rq->wqe_cnt == 0) || (qp->state == IBV_QPS_RESET)) {
        *bad_wr = wr;
        return emu_verbs_error(EINVAL);
    }

    pthread_mutex_lock(&vqp->rq_lock);
    for (; wr != NULL; wr = wr->next) {
        if ((wr->num_sge < 0) || (wr->num_sge > (int)rq->max_sge)) {
            ret = EINVAL;
        } else if (rq->head - rq->tail >= rq->wqe_cnt) {
            ret = ENOMEM;
        }

        if (ret != 0) {
            *bad_wr = wr;
            break;
        }

        index           = rq->head & (rq->wqe_cnt - 1);
        rq->wrid[index] = wr->wr_id;
        emu_vrq_fill((struct mlx5_wqe_data_seg*)(rq->buf +
                                                 (size_t)index * rq->stride),
                     rq->max_sge, wr);
        ++rq->head;
    }

    __atomic_store_n(&rq->dbrec[MLX5_RCV_DBR], htobe32(rq->head & 0xffff),
                     __ATOMIC_RELEASE);
    pthread_mutex_unlock(&vqp->rq_lock);

    /* It may have failed: this program need not know */
    emu_rq_doorbell(vqp->qp);

    return (ret == 0) ? 0 : emu_verbs_error(ret);
}
