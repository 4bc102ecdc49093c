/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Direct verbs: queues and registers are handed to the program, which fills and
 * polls them by itself. Called by programs. Those functions which aren't
 * emulated are in emu_mlx5dv_unsupported.c.
 */

#include "../verbs/emu_verbs.h"
#include "../core/emu_quirk.h"
#include "../uar/emu_uar.h"

#include <string.h>


bool mlx5dv_is_supported(struct ibv_device *device)
{
    const emu_port_t *port;

    if (device == NULL) {
        return false;
    }

    if (!strncmp(device->name, "mlx5_", 5)) {
        return true;
    }

    port = emu_port_get(emu_self->host,
                        emu_container_of(device, emu_vdevice_t, ibv)->link);
    emu_quirk_hits(port->index, EMU_QUIRK_NO_MLX5DV, 0, 0, 0);
    return false;
}

/* A fabric without DEVX refuses, as a kernel without it: programs fall back to
 * ibv_open_device() */
struct ibv_context *mlx5dv_open_device(struct ibv_device *device,
                                       struct mlx5dv_context_attr *attr)
{
    struct ibv_context *context;

    if ((device == NULL) || (attr == NULL)) {
        return emu_verbs_fail(EINVAL);
    }

    if (!mlx5dv_is_supported(device)) {
        return emu_verbs_fail(EOPNOTSUPP);
    }

    context = ibv_open_device(device);
    if ((context == NULL) || !(attr->flags & MLX5DV_CONTEXT_FLAGS_DEVX)) {
        return context;
    }

    if (emu_fabric->cfg.no_devx) {
        ibv_close_device(context);
        return emu_refuse_object(__func__, "DEVX is, by --no-devx,");
    }

    emu_vctx(context)->devx = 1;
    return context;
}

int mlx5dv_query_device(struct ibv_context *context,
                        struct mlx5dv_context *attrs_out)
{
    if ((context == NULL) || (attrs_out == NULL)) {
        return emu_verbs_error(EINVAL);
    }

    if (emu_vctx_refuses_dv(context, __func__)) {
        return EOPNOTSUPP;
    }

    attrs_out->version   = 0;
    attrs_out->flags     = MLX5DV_CONTEXT_FLAGS_CQE_128B_PAD;
    attrs_out->comp_mask = 0;
    return 0;
}

/* The size of the entries, which the attributes may say. 0 with errno set if they ask
 * for what there is not. */
static unsigned emu_mlx5dv_cqe_size(const struct mlx5dv_cq_init_attr *attr)
{
    unsigned cqe_size = (attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE) ?
                        attr->cqe_size : emu_vcq_cqe_size();

    if ((attr->comp_mask &
         ~(uint64_t)(MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE |
                     MLX5DV_CQ_INIT_ATTR_MASK_FLAGS |
                     MLX5DV_CQ_INIT_ATTR_MASK_CQE_SIZE)) ||
        ((cqe_size != 64) && (cqe_size != 128))) {
        emu_verbs_error(EINVAL);
        return 0;
    }

    if ((attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_COMPRESSED_CQE) ||
        ((attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS) &&
         (attr->flags & ~MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD))) {
        emu_refuse("mlx5dv_create_cq", "compression of entries and flags beside"
                   " padding are");
        return 0;
    }

    /* Entries are padded to the length of a cache line of 128 bytes */
    if ((attr->comp_mask & MLX5DV_CQ_INIT_ATTR_MASK_FLAGS) &&
        (attr->flags & MLX5DV_CQ_INIT_ATTR_FLAGS_CQE_PAD) && (cqe_size != 128)) {
        emu_verbs_error(EINVAL);
        return 0;
    }

    return cqe_size;
}

struct ibv_cq_ex *mlx5dv_create_cq(struct ibv_context *context,
                                   struct ibv_cq_init_attr_ex *cq_attr,
                                   struct mlx5dv_cq_init_attr *mlx5_cq_attr)
{
    unsigned cqe_size;

    if ((context != NULL) && emu_vctx_refuses_dv(context, __func__)) {
        return NULL;
    }

    cqe_size = (mlx5_cq_attr == NULL) ? emu_vcq_cqe_size() :
                                        emu_mlx5dv_cqe_size(mlx5_cq_attr);
    if (cqe_size == 0) {
        return NULL;
    }

    return emu_vcq_create(context, cq_attr, cqe_size);
}

struct ibv_qp *mlx5dv_create_qp(struct ibv_context *context,
                                struct ibv_qp_init_attr_ex *qp_attr,
                                struct mlx5dv_qp_init_attr *mlx5_qp_attr)
{
    if ((context != NULL) && emu_vctx_refuses_dv(context, __func__)) {
        return NULL;
    }

    if (mlx5_qp_attr != NULL) {
        if (mlx5_qp_attr->comp_mask & ~(uint64_t)
            (MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS |
             MLX5DV_QP_INIT_ATTR_MASK_DC)) {
            return emu_refuse_object(__func__, "such fields are");
        }

        if ((mlx5_qp_attr->comp_mask &
             MLX5DV_QP_INIT_ATTR_MASK_QP_CREATE_FLAGS) &&
            (mlx5_qp_attr->create_flags &
             ~(MLX5DV_QP_CREATE_DISABLE_SCATTER_TO_CQE |
               MLX5DV_QP_CREATE_ALLOW_SCATTER_TO_CQE |
               MLX5DV_QP_CREATE_PACKET_BASED_CREDIT_MODE))) {
            return emu_refuse_object(__func__, "such flags are");
        }
    }

    return emu_vqp_create(context, qp_attr, mlx5_qp_attr);
}

static int emu_mlx5dv_init_qp(struct ibv_qp *qp, struct mlx5dv_qp *out)
{
    emu_vqp_t *vqp;

    if ((qp == NULL) || (out == NULL)) {
        return EINVAL;
    }

    vqp             = emu_vqp(qp);
    out->dbrec      = (__be32*)vqp->dbrec;
    out->sq.buf     = vqp->sq_buf;
    out->sq.wqe_cnt = vqp->sq_bb_cnt;
    out->sq.stride  = EMU_SEND_BB;
    out->rq.buf     = vqp->rq.buf;
    out->rq.wqe_cnt = vqp->rq.wqe_cnt;
    out->rq.stride  = vqp->rq.stride;

    /* No BlueFlame: a doorbell is one store of eight bytes, which is trapped */
    out->bf.reg     = (char*)emu_vctx(qp->context)->uar + EMU_UAR_OFFSET_SQ;
    out->bf.size    = 0;
    out->comp_mask  = 0;
    return 0;
}

static int emu_mlx5dv_init_cq(struct ibv_cq *cq, struct mlx5dv_cq *out)
{
    emu_vcq_t *vcq;

    if ((cq == NULL) || (out == NULL)) {
        return EINVAL;
    }

    vcq = emu_vcq(cq);
    pthread_mutex_lock(&vcq->lock);
    vcq->direct = 1;
    pthread_mutex_unlock(&vcq->lock);

    out->buf       = vcq->cq->buf;
    out->dbrec     = (__be32*)vcq->cq->dbrec;
    out->cqe_cnt   = vcq->cq->cqe_cnt;
    out->cqe_size  = vcq->cq->cqe_size;
    out->cq_uar    = emu_vctx(cq->context)->uar;
    out->cqn       = vcq->cq->cqn;
    out->comp_mask = 0;
    return 0;
}

static int emu_mlx5dv_init_srq(struct ibv_srq *srq, struct mlx5dv_srq *out)
{
    emu_vsrq_t *vsrq;

    if ((srq == NULL) || (out == NULL)) {
        return EINVAL;
    }

    vsrq        = emu_vsrq(srq);
    out->buf    = vsrq->rq.buf;
    out->dbrec  = (__be32*)vsrq->rq.dbrec;
    out->stride = vsrq->rq.stride;
    out->head   = vsrq->rq.head;
    out->tail   = vsrq->rq.tail;
    if (out->comp_mask & MLX5DV_SRQ_MASK_SRQN) {
        out->srqn      = vsrq->srq->srqn;
        out->comp_mask = MLX5DV_SRQ_MASK_SRQN;
    } else {
        out->comp_mask = 0;
    }

    return 0;
}

static int emu_mlx5dv_init_ah(struct ibv_ah *ah, struct mlx5dv_ah *out)
{
    if ((ah == NULL) || (out == NULL)) {
        return EINVAL;
    }

    out->av        = &emu_container_of(ah, emu_vah_t, ibv)->av;
    out->comp_mask = 0;
    return 0;
}

static int emu_mlx5dv_init_pd(struct ibv_pd *pd, struct mlx5dv_pd *out)
{
    if ((pd == NULL) || (out == NULL)) {
        return EINVAL;
    }

    out->pdn       = emu_vpd(pd)->pd->index;
    out->comp_mask = 0;
    return 0;
}

/* Of the first object that there is; NULL: there is none */
static struct ibv_context *emu_mlx5dv_context(const struct mlx5dv_obj *obj,
                                              uint64_t obj_type)
{
    if ((obj_type & MLX5DV_OBJ_QP) && (obj->qp.in != NULL)) {
        return obj->qp.in->context;
    } else if ((obj_type & MLX5DV_OBJ_CQ) && (obj->cq.in != NULL)) {
        return obj->cq.in->context;
    } else if ((obj_type & MLX5DV_OBJ_SRQ) && (obj->srq.in != NULL)) {
        return obj->srq.in->context;
    } else if ((obj_type & MLX5DV_OBJ_AH) && (obj->ah.in != NULL)) {
        return obj->ah.in->context;
    } else if ((obj_type & MLX5DV_OBJ_PD) && (obj->pd.in != NULL)) {
        return obj->pd.in->context;
    }

    return NULL;
}

int mlx5dv_init_obj(struct mlx5dv_obj *obj, uint64_t obj_type)
{
    struct ibv_context *context;
    int ret = 0;

    if (obj == NULL) {
        return emu_verbs_error(EINVAL);
    }

    if (obj_type & ~(uint64_t)(MLX5DV_OBJ_QP | MLX5DV_OBJ_CQ | MLX5DV_OBJ_SRQ |
                               MLX5DV_OBJ_AH | MLX5DV_OBJ_PD)) {
        return emu_refuse(__func__, "such objects are");
    }

    context = emu_mlx5dv_context(obj, obj_type);
    if ((context != NULL) && emu_vctx_refuses_dv(context, __func__)) {
        return EOPNOTSUPP;
    }

    if (obj_type & MLX5DV_OBJ_QP) {
        ret = emu_mlx5dv_init_qp(obj->qp.in, obj->qp.out);
    }

    if ((ret == 0) && (obj_type & MLX5DV_OBJ_CQ)) {
        ret = emu_mlx5dv_init_cq(obj->cq.in, obj->cq.out);
    }

    if ((ret == 0) && (obj_type & MLX5DV_OBJ_SRQ)) {
        ret = emu_mlx5dv_init_srq(obj->srq.in, obj->srq.out);
    }

    if ((ret == 0) && (obj_type & MLX5DV_OBJ_AH)) {
        ret = emu_mlx5dv_init_ah(obj->ah.in, obj->ah.out);
    }

    if ((ret == 0) && (obj_type & MLX5DV_OBJ_PD)) {
        ret = emu_mlx5dv_init_pd(obj->pd.in, obj->pd.out);
    }

    return (ret == 0) ? 0 : emu_verbs_error(ret);
}
