/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Completion queues: creation and the rest that isn't polling (that is in
 * emu_vcq_poll.c). Called by programs, directly and through the operations of
 * verbs_context, and by mlx5dv_create_cq().
 */

#include "emu_verbs.h"

#include <stdlib.h>

#define EMU_VCQ_WC_FLAGS (IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM | \
                          IBV_WC_EX_WITH_QP_NUM | IBV_WC_EX_WITH_SRC_QP | \
                          IBV_WC_EX_WITH_SLID | IBV_WC_EX_WITH_SL | \
                          IBV_WC_EX_WITH_DLID_PATH_BITS)


static int emu_vcq_check_attr(struct ibv_context *context,
                              const struct ibv_cq_init_attr_ex *attr)
{
    if ((context == NULL) || (attr == NULL) || !emu_vctx_is_mine(context) ||
        (attr->cqe == 0) || (attr->cqe >= EMU_CQ_MAX_CQE) ||
        (attr->comp_vector >= EMU_VERBS_COMP_VECTORS)) {
        return EINVAL;
    }

    if ((attr->wc_flags & ~(uint64_t)EMU_VCQ_WC_FLAGS) ||
        (attr->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS |
                             IBV_CQ_INIT_ATTR_MASK_PD)) ||
        ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
         (attr->flags & ~(IBV_CREATE_CQ_ATTR_SINGLE_THREADED |
                          IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN)))) {
        return emu_refuse("ibv_create_cq_ex", "such flags or fields are");
    }

    return 0;
}

/* Of queues that do not say it; not checked. MLX5_CQE_SIZE is libmlx5's */
unsigned emu_vcq_cqe_size(void)
{
    const char *env = getenv("MLX5_CQE_SIZE");

    return (env == NULL) ? sizeof(struct mlx5_cqe64) : strtoul(env, NULL, 10);
}

struct ibv_cq_ex *emu_vcq_create(struct ibv_context *context,
                                 const struct ibv_cq_init_attr_ex *attr,
                                 unsigned cqe_size)
{
    emu_chan_t *chan = NULL;
    emu_vcq_t *vcq;
    int ret;

    ret = emu_vcq_check_attr(context, attr);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    vcq = calloc(1, sizeof(*vcq));
    if (vcq == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    vcq->cookie = emu_vreg_add(vcq);
    if (vcq->cookie == 0) {
        ret = ENOMEM;
        goto err_free;
    }

    if (attr->channel != NULL) {
        chan = emu_container_of(attr->channel, emu_vchan_t, ibv)->chan;
    }

    ret = emu_cq_create(emu_vctx(context)->ctx, attr->cqe, cqe_size, chan,
                        vcq->cookie, &vcq->cq);
    if (ret != 0) {
        goto err_remove;
    }

    vcq->cq->ignore_overrun =
            (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
            (attr->flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN);
    if (attr->channel != NULL) {
        __atomic_add_fetch(&attr->channel->refcnt, 1, __ATOMIC_RELAXED);
    }

    vcq->ibv.context    = context;
    vcq->ibv.channel    = attr->channel;
    vcq->ibv.cq_context = attr->cq_context;
    vcq->ibv.handle     = vcq->cq->cqn;
    vcq->ibv.cqe        = vcq->cq->cqe_cnt - 1;
    pthread_mutex_init(&vcq->ibv.mutex, NULL);
    pthread_cond_init(&vcq->ibv.cond, NULL);
    pthread_mutex_init(&vcq->lock, NULL);
    emu_vcq_init_ex(vcq);
    return &vcq->ex;

err_remove:
    emu_vreg_remove(vcq->cookie);
err_free:
    free(vcq);
    return emu_verbs_fail(ret);
}

struct ibv_cq_ex *emu_vcq_create_ex(struct ibv_context *context,
                                    struct ibv_cq_init_attr_ex *attr)
{
    return emu_vcq_create(context, attr, emu_vcq_cqe_size());
}

struct ibv_cq *ibv_create_cq(struct ibv_context *context, int cqe,
                             void *cq_context, struct ibv_comp_channel *channel,
                             int comp_vector)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe         = (cqe < 0) ? 0 : cqe,
        .cq_context  = cq_context,
        .channel     = channel,
        .comp_vector = comp_vector
    };
    struct ibv_cq_ex *cq;

    cq = emu_vcq_create(context, &attr, emu_vcq_cqe_size());
    return (cq == NULL) ? NULL : ibv_cq_ex_to_cq(cq);
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe)
{
    emu_vcq_t *vcq;
    int ret;

    if ((cq == NULL) || (cqe <= 0) || !emu_vctx_is_mine(cq->context)) {
        return emu_verbs_error(EINVAL);
    }

    vcq = emu_vcq(cq);
    pthread_mutex_lock(&vcq->lock);
    if (vcq->direct) {
        /* The ring would move below a program that polls it by itself */
        ret = emu_refuse(__func__, "resizing a queue of direct verbs is");
    } else {
        ret     = emu_cq_resize(vcq->cq, cqe, vcq->ci);
        cq->cqe = vcq->cq->cqe_cnt - 1;
    }
    pthread_mutex_unlock(&vcq->lock);
    return (ret == 0) ? 0 : emu_verbs_error(ret);
}

int emu_vcq_modify(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
    (void)cq;

    /* Moderation: no events are held back, which it allows */
    return (attr->attr_mask & ~IBV_CQ_ATTR_MODERATE) ?
           emu_verbs_error(EINVAL) : 0;
}

int ibv_destroy_cq(struct ibv_cq *cq)
{
    emu_vcq_t *vcq;
    int ret;

    if (cq == NULL) {
        return emu_verbs_error(EINVAL);
    }

    vcq = emu_vcq(cq);
    if (emu_vctx_is_mine(cq->context)) {
        (void)emu_vctx_command(cq->context);
        ret = emu_cq_destroy(vcq->cq);
        if (ret != 0) {
            return emu_verbs_error(ret);
        }
    }

    emu_vreg_remove(vcq->cookie);

    /* The program must have acknowledged what it got */
    pthread_mutex_lock(&cq->mutex);
    while ((cq->comp_events_completed != vcq->comp_events) ||
           (cq->async_events_completed != vcq->async_events)) {
        pthread_cond_wait(&cq->cond, &cq->mutex);
    }
    pthread_mutex_unlock(&cq->mutex);

    if (cq->channel != NULL) {
        __atomic_sub_fetch(&cq->channel->refcnt, 1, __ATOMIC_RELAXED);
    }

    pthread_mutex_destroy(&vcq->lock);
    pthread_mutex_destroy(&cq->mutex);
    pthread_cond_destroy(&cq->cond);
    free(vcq);
    return 0;
}

int emu_vcq_req_notify(struct ibv_cq *cq, int solicited_only)
{
    emu_vcq_t *vcq = emu_vcq(cq);

    if (!emu_vctx_is_mine(cq->context)) {
        return emu_verbs_error(EINVAL);
    }

    pthread_mutex_lock(&vcq->lock);
    emu_cq_req_notify(vcq->cq, solicited_only, vcq->ci);
    pthread_mutex_unlock(&vcq->lock);
    return 0;
}
