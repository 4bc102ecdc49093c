/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Posting of send requests by verbs: writes the mlx5 WQEs which a program using
 * direct verbs would write, and rings. Called through the operations of
 * ibv_context.
 *
 *   RC:  | ctrl | raddr (atomic) | data or inline ...
 *   UD:  | ctrl | address vector (48 bytes) | data or inline ...
 *
 * The WQE is built in a flat buffer and copied into the ring, which may wrap
 * between basic blocks.
 */

#include "emu_verbs.h"

#include <endian.h>
#include <string.h>

#define EMU_VQP_SEG_SIZE    16
#define EMU_VQP_INLINE_FLAG 0x80000000u
#define EMU_VQP_EXT_AV      0x80000000u
#define EMU_VQP_MAX_WQE     1024


/* A request on its way to the ring */
typedef struct emu_vqp_wqe {
    uint8_t  buf[EMU_VQP_MAX_WQE] __attribute__((aligned(16)));
    unsigned length;
} emu_vqp_wqe_t;


static void *emu_vqp_wqe_add(emu_vqp_wqe_t *wqe, unsigned size)
{
    void *seg = &wqe->buf[wqe->length];

    memset(seg, 0, size);
    wqe->length += size;
    return seg;
}

static int emu_vqp_opcode(const struct ibv_send_wr *wr, uint8_t *opcode_p)
{
    static const int table[] = {
        [IBV_WR_RDMA_WRITE]           = MLX5_OPCODE_RDMA_WRITE,
        [IBV_WR_RDMA_WRITE_WITH_IMM]  = MLX5_OPCODE_RDMA_WRITE_IMM,
        [IBV_WR_SEND]                 = MLX5_OPCODE_SEND,
        [IBV_WR_SEND_WITH_IMM]        = MLX5_OPCODE_SEND_IMM,
        [IBV_WR_RDMA_READ]            = MLX5_OPCODE_RDMA_READ,
        [IBV_WR_ATOMIC_CMP_AND_SWP]   = MLX5_OPCODE_ATOMIC_CS,
        [IBV_WR_ATOMIC_FETCH_AND_ADD] = MLX5_OPCODE_ATOMIC_FA
    };

    if (((unsigned)wr->opcode >= sizeof(table) / sizeof(table[0])) ||
        (table[wr->opcode] == 0)) {
        return emu_refuse("ibv_post_send", "invalidation, memory windows and"
                          " segmentation are");
    }

    *opcode_p = table[wr->opcode];
    return 0;
}

static void emu_vqp_add_raddr(emu_vqp_wqe_t *wqe, uint64_t addr, uint32_t rkey)
{
    struct mlx5_wqe_raddr_seg *seg = emu_vqp_wqe_add(wqe, sizeof(*seg));

    seg->raddr = htobe64(addr);
    seg->rkey  = htobe32(rkey);
}

/* Segments which the opcode needs before the data */
static int emu_vqp_add_header(emu_vqp_t *vqp, emu_vqp_wqe_t *wqe,
                              const struct ibv_send_wr *wr)
{
    struct mlx5_wqe_atomic_seg *atomic;
    struct mlx5_wqe_av *av;

    if (vqp->type == EMU_QPT_UD) {
        if (((wr->opcode != IBV_WR_SEND) &&
             (wr->opcode != IBV_WR_SEND_WITH_IMM)) || (wr->wr.ud.ah == NULL)) {
            return EINVAL;
        }

        av                = emu_vqp_wqe_add(wqe, sizeof(*av));
        *av               = emu_container_of(wr->wr.ud.ah, emu_vah_t, ibv)->av;
        av->key.qkey.qkey = htobe32(wr->wr.ud.remote_qkey);
        av->dqp_dct       = htobe32((wr->wr.ud.remote_qpn & 0xffffff) |
                                    EMU_VQP_EXT_AV);
        return 0;
    }

    switch (wr->opcode) {
    case IBV_WR_RDMA_WRITE:
    case IBV_WR_RDMA_WRITE_WITH_IMM:
    case IBV_WR_RDMA_READ:
        emu_vqp_add_raddr(wqe, wr->wr.rdma.remote_addr, wr->wr.rdma.rkey);
        break;
    case IBV_WR_ATOMIC_CMP_AND_SWP:
        emu_vqp_add_raddr(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
        atomic           = emu_vqp_wqe_add(wqe, sizeof(*atomic));
        atomic->swap_add = htobe64(wr->wr.atomic.swap);
        atomic->compare  = htobe64(wr->wr.atomic.compare_add);
        break;
    case IBV_WR_ATOMIC_FETCH_AND_ADD:
        emu_vqp_add_raddr(wqe, wr->wr.atomic.remote_addr, wr->wr.atomic.rkey);
        atomic           = emu_vqp_wqe_add(wqe, sizeof(*atomic));
        atomic->swap_add = htobe64(wr->wr.atomic.compare_add);
        break;
    default:
        break;
    }

    return 0;
}

static int emu_vqp_add_inline(const emu_vqp_t *vqp, emu_vqp_wqe_t *wqe,
                              const struct ibv_send_wr *wr)
{
    struct mlx5_wqe_inl_data_seg *seg;
    unsigned pad;
    size_t total = 0;
    int i;

    for (i = 0; i < wr->num_sge; ++i) {
        total += wr->sg_list[i].length;
    }

    if (total > vqp->init.cap.max_inline_data) {
        return ENOMEM; /* As libmlx5 has it */
    }

    if (total == 0) {
        return 0;
    }

    seg             = emu_vqp_wqe_add(wqe, sizeof(*seg));
    seg->byte_count = htobe32(total | EMU_VQP_INLINE_FLAG);
    for (i = 0; i < wr->num_sge; ++i) {
        memcpy(&wqe->buf[wqe->length],
               (const void*)(uintptr_t)wr->sg_list[i].addr,
               wr->sg_list[i].length);
        wqe->length += wr->sg_list[i].length;
    }

    pad = -wqe->length % EMU_VQP_SEG_SIZE;
    emu_vqp_wqe_add(wqe, pad);
    return 0;
}

static int emu_vqp_add_data(const emu_vqp_t *vqp, emu_vqp_wqe_t *wqe,
                            const struct ibv_send_wr *wr)
{
    struct mlx5_wqe_data_seg *seg;
    int i;

    if ((wr->num_sge < 0) ||
        ((unsigned)wr->num_sge > emu_max(vqp->init.cap.max_send_sge, 1))) {
        return EINVAL;
    }

    if (wr->send_flags & IBV_SEND_INLINE) {
        return ((wr->opcode == IBV_WR_RDMA_READ) ||
                (wr->opcode == IBV_WR_ATOMIC_CMP_AND_SWP) ||
                (wr->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)) ?
               EINVAL : emu_vqp_add_inline(vqp, wqe, wr);
    }

    for (i = 0; i < wr->num_sge; ++i) {
        if (wr->sg_list[i].length == 0) {
            continue; /* Would mean 2 GB on the wire */
        }

        seg             = emu_vqp_wqe_add(wqe, sizeof(*seg));
        seg->byte_count = htobe32(wr->sg_list[i].length);
        seg->lkey       = htobe32(wr->sg_list[i].lkey);
        seg->addr       = htobe64(wr->sg_list[i].addr);
    }

    return 0;
}

static uint8_t emu_vqp_flags(emu_vqp_t *vqp, const struct ibv_send_wr *wr)
{
    uint8_t flags = 0;

    if ((wr->send_flags & IBV_SEND_SIGNALED) || vqp->init.sq_sig_all) {
        flags |= MLX5_WQE_CTRL_CQ_UPDATE;
    }

    if (wr->send_flags & IBV_SEND_SOLICITED) {
        flags |= MLX5_WQE_CTRL_SOLICITED;
    }

    if (wr->send_flags & IBV_SEND_FENCE) {
        flags |= MLX5_WQE_CTRL_FENCE;
    }

    return flags;
}

static int emu_vqp_build(emu_vqp_t *vqp, emu_vqp_wqe_t *wqe,
                         const struct ibv_send_wr *wr)
{
    struct mlx5_wqe_ctrl_seg *ctrl;
    uint8_t opcode;
    int ret;

    ret = emu_vqp_opcode(wr, &opcode);
    if (ret != 0) {
        return ret;
    }

    wqe->length = 0;
    ctrl        = emu_vqp_wqe_add(wqe, sizeof(*ctrl));
    ret         = emu_vqp_add_header(vqp, wqe, wr);
    if (ret != 0) {
        return ret;
    }

    ret = emu_vqp_add_data(vqp, wqe, wr);
    if (ret != 0) {
        return ret;
    }

    ctrl->opmod_idx_opcode = htobe32(((vqp->sq_head & 0xffff) << 8) | opcode);
    ctrl->qpn_ds           = htobe32((vqp->ibv.qp_num << 8) |
                                     (wqe->length / EMU_VQP_SEG_SIZE));
    ctrl->fm_ce_se         = emu_vqp_flags(vqp, wr);
    if ((wr->opcode == IBV_WR_SEND_WITH_IMM) ||
        (wr->opcode == IBV_WR_RDMA_WRITE_WITH_IMM)) {
        ctrl->imm = wr->imm_data;
    }

    return 0;
}

/* Copy a WQE into the ring. @return ENOMEM if there is no room. */
static int emu_vqp_enqueue(emu_vqp_t *vqp, const emu_vqp_wqe_t *wqe,
                           uint64_t wr_id)
{
    const uint32_t mask = vqp->sq_bb_cnt - 1;
    unsigned num_bb     = (wqe->length + EMU_SEND_BB - 1) / EMU_SEND_BB;
    unsigned i, part;

    if ((vqp->sq_head - vqp->sq_tail) + num_bb > vqp->sq_bb_cnt) {
        return ENOMEM;
    }

    for (i = 0; i < num_bb; ++i) {
        part = emu_min(wqe->length - i * EMU_SEND_BB, EMU_SEND_BB);
        memcpy(vqp->sq_buf +
               (size_t)((vqp->sq_head + i) & mask) * EMU_SEND_BB,
               &wqe->buf[i * EMU_SEND_BB], part);
    }

    vqp->sq_wrid[vqp->sq_head & mask]   = wr_id;
    vqp->sq_num_bb[vqp->sq_head & mask] = num_bb;
    vqp->sq_head                       += num_bb;
    return 0;
}

int emu_vqp_can_post(const emu_vqp_t *vqp)
{
    const enum ibv_qp_state state = vqp->ibv.state;

    return emu_vctx_is_mine(vqp->ibv.context) && (vqp->sq_bb_cnt > 0) &&
           ((vqp->type == EMU_QPT_RC) || (vqp->type == EMU_QPT_UD)) &&
           ((state == IBV_QPS_RTS) || (state == IBV_QPS_SQD) ||
            (state == IBV_QPS_SQE) || (state == IBV_QPS_ERR));
}

int emu_vqp_post_locked(emu_vqp_t *vqp, const struct ibv_send_wr *wr)
{
    emu_vqp_wqe_t wqe;
    int ret;

    ret = emu_vqp_build(vqp, &wqe, wr);
    return (ret != 0) ? ret : emu_vqp_enqueue(vqp, &wqe, wr->wr_id);
}

void emu_vqp_write_dbrec(emu_vqp_t *vqp)
{
    __atomic_store_n(&vqp->dbrec[MLX5_SND_DBR], htobe32(vqp->sq_head & 0xffff),
                     __ATOMIC_RELEASE);
}

int emu_vqp_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
                      struct ibv_send_wr **bad_wr)
{
    emu_vqp_t *vqp  = emu_vqp(qp);
    unsigned posted = 0;
    int ret         = 0;

    if (!emu_vqp_can_post(vqp)) {
        *bad_wr = wr;
        return emu_verbs_error(EINVAL);
    }

    pthread_mutex_lock(&vqp->sq_lock);
    for (; wr != NULL; wr = wr->next) {
        ret = emu_vqp_post_locked(vqp, wr);
        if (ret != 0) {
            *bad_wr = wr;
            break;
        }
        ++posted;
    }

    if (posted > 0) {
        emu_vqp_write_dbrec(vqp);
    }
    pthread_mutex_unlock(&vqp->sq_lock);

    if (posted > 0) {
        emu_sq_doorbell(qp->qp_num);
    }

    return (ret == 0) ? 0 : emu_verbs_error(ret);
}
