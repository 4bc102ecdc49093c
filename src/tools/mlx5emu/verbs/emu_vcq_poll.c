/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Polling of completion queues by verbs: turns mlx5 CQEs into work completions.
 * Called by programs, through the operations of ibv_context and of ibv_cq_ex.
 */

#include "emu_verbs.h"

#include <endian.h>
#include <string.h>

#define EMU_VCQ_QPN_MASK    0xffffffu


/* Entry with that index if it was written, otherwise NULL. The lock must be
 * held. */
static struct mlx5_cqe64 *emu_vcq_cqe(const emu_vcq_t *vcq, uint32_t index)
{
    const emu_cq_t *cq = vcq->cq;
    struct mlx5_cqe64 *cqe;
    uint8_t op_own;

    cqe    = (struct mlx5_cqe64*)(cq->buf +
                                  (size_t)(index & (cq->cqe_cnt - 1)) *
                                  cq->cqe_size + cq->cqe_size - sizeof(*cqe));
    op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
    if (((op_own >> 4) == MLX5_CQE_INVALID) ||
        ((op_own & MLX5_CQE_OWNER_MASK) != !!(index & cq->cqe_cnt))) {
        return NULL;
    }

    return cqe;
}

static enum ibv_wc_status emu_vcq_status(uint8_t syndrome)
{
    static const uint8_t table[] = {
        [MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR]         = IBV_WC_LOC_LEN_ERR,
        [MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR]          = IBV_WC_LOC_QP_OP_ERR,
        [MLX5_CQE_SYNDROME_LOCAL_PROT_ERR]           = IBV_WC_LOC_PROT_ERR,
        [MLX5_CQE_SYNDROME_WR_FLUSH_ERR]             = IBV_WC_WR_FLUSH_ERR,
        [MLX5_CQE_SYNDROME_MW_BIND_ERR]              = IBV_WC_MW_BIND_ERR,
        [MLX5_CQE_SYNDROME_BAD_RESP_ERR]             = IBV_WC_BAD_RESP_ERR,
        [MLX5_CQE_SYNDROME_LOCAL_ACCESS_ERR]         = IBV_WC_LOC_ACCESS_ERR,
        [MLX5_CQE_SYNDROME_REMOTE_INVAL_REQ_ERR]     = IBV_WC_REM_INV_REQ_ERR,
        [MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR]        = IBV_WC_REM_ACCESS_ERR,
        [MLX5_CQE_SYNDROME_REMOTE_OP_ERR]            = IBV_WC_REM_OP_ERR,
        [MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR]  = IBV_WC_RETRY_EXC_ERR,
        [MLX5_CQE_SYNDROME_RNR_RETRY_EXC_ERR]        = IBV_WC_RNR_RETRY_EXC_ERR,
        [MLX5_CQE_SYNDROME_REMOTE_ABORTED_ERR]       = IBV_WC_REM_ABORT_ERR
    };

    if ((syndrome < sizeof(table)) && (table[syndrome] != 0)) {
        return table[syndrome];
    }

    return IBV_WC_GENERAL_ERR;
}

static void emu_vcq_send_opcode(const struct mlx5_cqe64 *cqe, struct ibv_wc *wc)
{
    switch (be32toh(cqe->sop_drop_qpn) >> 24) {
    case MLX5_OPCODE_RDMA_WRITE:
    case MLX5_OPCODE_RDMA_WRITE_IMM:
        wc->opcode = IBV_WC_RDMA_WRITE;
        break;
    case MLX5_OPCODE_RDMA_READ:
        wc->opcode   = IBV_WC_RDMA_READ;
        wc->byte_len = be32toh(cqe->byte_cnt);
        break;
    case MLX5_OPCODE_ATOMIC_CS:
        wc->opcode   = IBV_WC_COMP_SWAP;
        wc->byte_len = sizeof(uint64_t);
        break;
    case MLX5_OPCODE_ATOMIC_FA:
        wc->opcode   = IBV_WC_FETCH_ADD;
        wc->byte_len = sizeof(uint64_t);
        break;
    default:
        wc->opcode = IBV_WC_SEND;
        break;
    }
}

/* A send completed: its basic blocks, and those before, are free again */
static void emu_vcq_complete_send(emu_vqp_t *vqp, uint16_t counter,
                                  struct ibv_wc *wc)
{
    uint32_t index = counter & (vqp->sq_bb_cnt - 1);
    uint16_t behind;

    pthread_mutex_lock(&vqp->sq_lock);
    wc->wr_id    = vqp->sq_wrid[index];
    behind       = (uint16_t)vqp->sq_head - counter;
    vqp->sq_tail = vqp->sq_head - behind + vqp->sq_num_bb[index];
    pthread_mutex_unlock(&vqp->sq_lock);
}

static void emu_vcq_complete_recv(emu_vqp_t *vqp, uint16_t counter,
                                  struct ibv_wc *wc)
{
    emu_vsrq_t *vsrq;
    uint32_t index;

    if (vqp->ibv.srq != NULL) {
        vsrq      = emu_vsrq(vqp->ibv.srq);
        wc->wr_id = vsrq->rq.wrid[counter & (vsrq->rq.wqe_cnt - 1)];
        emu_vsrq_free_wqe(vsrq, counter);
        return;
    }

    if (vqp->rq.wqe_cnt == 0) {
        return;
    }

    index = counter & (vqp->rq.wqe_cnt - 1);
    pthread_mutex_lock(&vqp->rq_lock);
    wc->wr_id = vqp->rq.wrid[index];
    ++vqp->rq.tail;
    pthread_mutex_unlock(&vqp->rq_lock);
}

/* Data which arrived inside the CQE belong to the program's first buffers */
static void emu_vcq_scatter(const emu_vqp_t *vqp, const struct mlx5_cqe64 *cqe,
                            uint16_t counter, uint32_t length)
{
    const uint8_t *data = (const uint8_t*)cqe;
    const struct mlx5_wqe_data_seg *dseg;
    const emu_vrq_t *rq;
    const uint8_t *wqe;
    uint32_t i, part;

    if (cqe->op_own & MLX5_INLINE_SCATTER_64) {
        data -= sizeof(*cqe);
    } else if (!(cqe->op_own & MLX5_INLINE_SCATTER_32)) {
        return;
    }

    rq   = (vqp->ibv.srq != NULL) ? &emu_vsrq(vqp->ibv.srq)->rq : &vqp->rq;
    wqe  = rq->buf + (size_t)(counter & (rq->wqe_cnt - 1)) * rq->stride;
    dseg = (const struct mlx5_wqe_data_seg*)
           (wqe + ((vqp->ibv.srq != NULL) ?
                   sizeof(struct mlx5_wqe_srq_next_seg) : 0));
    for (i = 0; (i < rq->max_sge) && (length > 0); ++i) {
        part    = emu_min(be32toh(dseg[i].byte_count), length);
        memcpy((void*)(uintptr_t)be64toh(dseg[i].addr), data, part);
        data   += part;
        length -= part;
    }
}

static void emu_vcq_fill_recv(emu_vqp_t *vqp, const struct mlx5_cqe64 *cqe,
                              struct ibv_wc *wc)
{
    const uint16_t counter = be16toh(cqe->wqe_counter);
    const uint32_t flags   = be32toh(cqe->flags_rqpn);

    wc->byte_len = be32toh(cqe->byte_cnt);
    wc->opcode   = IBV_WC_RECV;
    switch (cqe->op_own >> 4) {
    case MLX5_CQE_RESP_WR_IMM:
        wc->opcode    = IBV_WC_RECV_RDMA_WITH_IMM;
        wc->wc_flags |= IBV_WC_WITH_IMM;
        wc->imm_data  = cqe->imm_inval_pkey;
        break;
    case MLX5_CQE_RESP_SEND_IMM:
        wc->wc_flags |= IBV_WC_WITH_IMM;
        wc->imm_data  = cqe->imm_inval_pkey;
        break;
    default:
        break;
    }

    emu_vcq_scatter(vqp, cqe, counter, wc->byte_len);
    emu_vcq_complete_recv(vqp, counter, wc);

    wc->src_qp         = flags & EMU_VCQ_QPN_MASK;
    wc->slid           = be16toh(cqe->slid);
    wc->sl             = (flags >> 24) & 0xf;
    wc->dlid_path_bits = cqe->ml_path & 0x7f;
    if ((flags >> 28) & 3) {
        wc->wc_flags |= IBV_WC_GRH;
    }
}

static void emu_vcq_fill_error(emu_vqp_t *vqp, const struct mlx5_cqe64 *cqe,
                               struct ibv_wc *wc)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe*)cqe;

    wc->status     = emu_vcq_status(err->syndrome);
    wc->vendor_err = err->vendor_err_synd;
    if ((cqe->op_own >> 4) == MLX5_CQE_REQ_ERR) {
        emu_vcq_send_opcode(cqe, wc);
        emu_vcq_complete_send(vqp, be16toh(err->wqe_counter), wc);
    } else {
        wc->opcode = IBV_WC_RECV;
        emu_vcq_complete_recv(vqp, be16toh(err->wqe_counter), wc);
    }
}

/* Poll one completion. The lock must be held.
 *
 * @return Whether there was one. */
static int emu_vcq_poll_one(emu_vcq_t *vcq, struct ibv_wc *wc)
{
    struct mlx5_cqe64 *cqe;
    emu_vqp_t *vqp;

    for (;;) {
        cqe = emu_vcq_cqe(vcq, vcq->ci);
        if (cqe == NULL) {
            return 0;
        }

        memset(wc, 0, sizeof(*wc));
        wc->qp_num = be32toh(cqe->sop_drop_qpn) & EMU_VCQ_QPN_MASK;
        vqp        = emu_vqp_find(wc->qp_num);
        if (vqp == NULL) {
            ++vcq->ci; /* Of a queue pair that is destroyed */
            continue;
        }

        switch (cqe->op_own >> 4) {
        case MLX5_CQE_REQ:
            emu_vcq_send_opcode(cqe, wc);
            emu_vcq_complete_send(vqp, be16toh(cqe->wqe_counter), wc);
            break;
        case MLX5_CQE_REQ_ERR:
        case MLX5_CQE_RESP_ERR:
            emu_vcq_fill_error(vqp, cqe, wc);
            break;
        default:
            emu_vcq_fill_recv(vqp, cqe, wc);
            break;
        }

        ++vcq->ci;
        return 1;
    }
}

/* The device learns how far the queue was read. It must also where the program gets
 * nothing of that, or it finds the queue full: after entries of queue pairs that are
 * destroyed. The lock must be held. */
static void emu_vcq_update_dbrec(emu_vcq_t *vcq)
{
    __atomic_store_n(&vcq->cq->dbrec[0], htobe32(vcq->ci & EMU_VCQ_QPN_MASK),
                     __ATOMIC_RELEASE);
}

static int emu_vcq_is_recv(const struct mlx5_cqe64 *cqe)
{
    uint8_t opcode = cqe->op_own >> 4;

    return (opcode != MLX5_CQE_REQ) && (opcode != MLX5_CQE_REQ_ERR);
}

/* Remove what a queue pair, which makes no more of them, left in the queue */
void emu_vcq_clean(emu_vcq_t *vcq, const emu_vqp_t *vqp)
{
    const struct mlx5_cqe64 *cqe;
    uint32_t i;

    pthread_mutex_lock(&vcq->lock);
    if (vcq->direct) {
        goto out; /* Only the program knows what it polled */
    }

    for (i = vcq->ci; i - vcq->ci < vcq->cq->cqe_cnt; ++i) {
        cqe = emu_vcq_cqe(vcq, i);
        if (cqe == NULL) {
            break;
        }

        if ((vqp->ibv.srq != NULL) && emu_vcq_is_recv(cqe) &&
            ((be32toh(cqe->sop_drop_qpn) & EMU_VCQ_QPN_MASK) ==
             vqp->ibv.qp_num)) {
            emu_vsrq_free_wqe(emu_vsrq(vqp->ibv.srq),
                              be16toh(cqe->wqe_counter));
        }
    }

    vcq->ci += emu_cq_clean(vcq->cq, vqp->ibv.qp_num, vcq->ci);
    emu_vcq_update_dbrec(vcq);
out:
    pthread_mutex_unlock(&vcq->lock);
}

int emu_vcq_poll(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc)
{
    emu_vcq_t *vcq = emu_vcq(cq);
    uint32_t ci;
    int num;

    if (!emu_vctx_is_mine(cq->context) || (wc == NULL)) {
        errno = EINVAL;
        return -1;
    }

    pthread_mutex_lock(&vcq->lock);
    ci = vcq->ci;
    for (num = 0; num < num_entries; ++num) {
        if (!emu_vcq_poll_one(vcq, &wc[num])) {
            break;
        }
    }

    if (vcq->ci != ci) {
        emu_vcq_update_dbrec(vcq);
    }
    pthread_mutex_unlock(&vcq->lock);
    return num;
}

static int emu_vcq_advance(struct ibv_cq_ex *cq)
{
    emu_vcq_t *vcq = emu_container_of(cq, emu_vcq_t, ex);

    if (!emu_vcq_poll_one(vcq, &vcq->wc)) {
        return ENOENT;
    }

    cq->status = vcq->wc.status;
    cq->wr_id  = vcq->wc.wr_id;
    return 0;
}

/* Holds the lock until emu_vcq_end_poll(), if it succeeds */
static int emu_vcq_start_poll(struct ibv_cq_ex *cq,
                              struct ibv_poll_cq_attr *attr)
{
    emu_vcq_t *vcq = emu_container_of(cq, emu_vcq_t, ex);
    int ret;

    if ((attr != NULL) && (attr->comp_mask != 0)) {
        return EINVAL;
    }

    pthread_mutex_lock(&vcq->lock);
    ret = emu_vcq_advance(cq);
    if (ret != 0) {
        emu_vcq_update_dbrec(vcq);
        pthread_mutex_unlock(&vcq->lock);
    }

    return ret;
}

static void emu_vcq_end_poll(struct ibv_cq_ex *cq)
{
    emu_vcq_t *vcq = emu_container_of(cq, emu_vcq_t, ex);

    emu_vcq_update_dbrec(vcq);
    pthread_mutex_unlock(&vcq->lock);
}

#define EMU_VCQ_READ(_type, _name, _field) \
    static _type emu_vcq_read_##_name(struct ibv_cq_ex *cq) \
    { \
        return emu_container_of(cq, emu_vcq_t, ex)->wc._field; \
    }

EMU_VCQ_READ(enum ibv_wc_opcode, opcode, opcode)
EMU_VCQ_READ(uint32_t, vendor_err, vendor_err)
EMU_VCQ_READ(uint32_t, byte_len, byte_len)
EMU_VCQ_READ(__be32, imm_data, imm_data)
EMU_VCQ_READ(uint32_t, qp_num, qp_num)
EMU_VCQ_READ(uint32_t, src_qp, src_qp)
EMU_VCQ_READ(unsigned, wc_flags, wc_flags)
EMU_VCQ_READ(uint32_t, slid, slid)
EMU_VCQ_READ(uint8_t, sl, sl)
EMU_VCQ_READ(uint8_t, dlid_path_bits, dlid_path_bits)

void emu_vcq_init_ex(emu_vcq_t *vcq)
{
    vcq->ex.start_poll          = emu_vcq_start_poll;
    vcq->ex.next_poll           = emu_vcq_advance;
    vcq->ex.end_poll            = emu_vcq_end_poll;
    vcq->ex.read_opcode         = emu_vcq_read_opcode;
    vcq->ex.read_vendor_err     = emu_vcq_read_vendor_err;
    vcq->ex.read_byte_len       = emu_vcq_read_byte_len;
    vcq->ex.read_imm_data       = emu_vcq_read_imm_data;
    vcq->ex.read_qp_num         = emu_vcq_read_qp_num;
    vcq->ex.read_src_qp         = emu_vcq_read_src_qp;
    vcq->ex.read_wc_flags       = emu_vcq_read_wc_flags;
    vcq->ex.read_slid           = emu_vcq_read_slid;
    vcq->ex.read_sl             = emu_vcq_read_sl;
    vcq->ex.read_dlid_path_bits = emu_vcq_read_dlid_path_bits;
}
