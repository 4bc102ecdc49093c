/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Extended posting: ibv_wr_start() ... ibv_wr_complete(). The calls for one
 * request put a struct ibv_send_wr together, which emu_vqp_post.c turns into a
 * WQE as soon as the next request begins, or the batch ends. The doorbell rings
 * once for a batch. Called through the operations of ibv_qp_ex; between start
 * and complete, or abort, the send queue is locked.
 */

#include "emu_verbs.h"

#include <stdlib.h>
#include <string.h>

#define EMU_VQP_EX_RC_OPS (IBV_QP_EX_WITH_RDMA_WRITE | \
                           IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
                           IBV_QP_EX_WITH_SEND | \
                           IBV_QP_EX_WITH_SEND_WITH_IMM | \
                           IBV_QP_EX_WITH_RDMA_READ | \
                           IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | \
                           IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD)
#define EMU_VQP_EX_UD_OPS (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)


/* A batch that is under way */
struct emu_vqp_batch {
    uint32_t           start;      /* Head of the queue when it began */
    int                error;      /* First one; nothing is added after it */
    int                open;       /* wr is begun and not in the queue */
    struct ibv_send_wr wr;
    struct ibv_sge     sge[EMU_VERBS_MAX_SEND_SGE];
    uint8_t            inl[EMU_VERBS_MAX_INLINE];
};


static emu_vqp_t *emu_vqp_of_ex(struct ibv_qp_ex *ex)
{
    return emu_vqp(&ex->qp_base);
}

/* Put what was begun in the queue */
static void emu_vqp_wr_flush(emu_vqp_t *vqp)
{
    emu_vqp_batch_t *batch = vqp->batch;

    if (batch->open && (batch->error == 0)) {
        batch->error = emu_vqp_post_locked(vqp, &batch->wr);
    }
    batch->open = 0;
}

static struct ibv_send_wr *emu_vqp_wr_begin(struct ibv_qp_ex *ex,
                                            enum ibv_wr_opcode opcode)
{
    emu_vqp_batch_t *batch = emu_vqp_of_ex(ex)->batch;

    emu_vqp_wr_flush(emu_vqp_of_ex(ex));
    memset(&batch->wr, 0, sizeof(batch->wr));
    batch->open          = 1;
    batch->wr.opcode     = opcode;
    batch->wr.wr_id      = ex->wr_id;
    batch->wr.send_flags = ex->wr_flags & ~IBV_SEND_INLINE;
    batch->wr.sg_list    = batch->sge;
    return &batch->wr;
}

static void emu_vqp_wr_error(struct ibv_qp_ex *ex, int error)
{
    emu_vqp_batch_t *batch = emu_vqp_of_ex(ex)->batch;

    if (batch->error == 0) {
        batch->error = error;
    }
}

static void emu_vqp_wr_start(struct ibv_qp_ex *ex)
{
    emu_vqp_t *vqp = emu_vqp_of_ex(ex);

    pthread_mutex_lock(&vqp->sq_lock);
    vqp->batch->start = vqp->sq_head;
    vqp->batch->error = emu_vqp_can_post(vqp) ? 0 : EINVAL;
    vqp->batch->open  = 0;
}

static int emu_vqp_wr_complete(struct ibv_qp_ex *ex)
{
    emu_vqp_t *vqp = emu_vqp_of_ex(ex);
    int posted     = 0;
    int ret;

    emu_vqp_wr_flush(vqp);
    ret = vqp->batch->error;
    if (ret != 0) {
        vqp->sq_head = vqp->batch->start; /* All or nothing */
    } else if (vqp->sq_head != vqp->batch->start) {
        emu_vqp_write_dbrec(vqp);
        posted = 1;
    }
    pthread_mutex_unlock(&vqp->sq_lock);

    if (posted) {
        emu_sq_doorbell(ex->qp_base.qp_num);
    }

    return (ret == 0) ? 0 : emu_verbs_error(ret);
}

static void emu_vqp_wr_abort(struct ibv_qp_ex *ex)
{
    emu_vqp_t *vqp = emu_vqp_of_ex(ex);

    vqp->sq_head = vqp->batch->start;
    pthread_mutex_unlock(&vqp->sq_lock);
}

static void emu_vqp_wr_rdma(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
                            uint32_t rkey, uint64_t remote_addr,
                            __be32 imm_data)
{
    struct ibv_send_wr *wr = emu_vqp_wr_begin(ex, opcode);

    wr->wr.rdma.rkey        = rkey;
    wr->wr.rdma.remote_addr = remote_addr;
    wr->imm_data            = imm_data;
}

static void emu_vqp_wr_rdma_read(struct ibv_qp_ex *ex, uint32_t rkey,
                                 uint64_t remote_addr)
{
    emu_vqp_wr_rdma(ex, IBV_WR_RDMA_READ, rkey, remote_addr, 0);
}

static void emu_vqp_wr_rdma_write(struct ibv_qp_ex *ex, uint32_t rkey,
                                  uint64_t remote_addr)
{
    emu_vqp_wr_rdma(ex, IBV_WR_RDMA_WRITE, rkey, remote_addr, 0);
}

static void emu_vqp_wr_rdma_write_imm(struct ibv_qp_ex *ex, uint32_t rkey,
                                      uint64_t remote_addr, __be32 imm_data)
{
    emu_vqp_wr_rdma(ex, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr,
                    imm_data);
}

static void emu_vqp_wr_atomic(struct ibv_qp_ex *ex, enum ibv_wr_opcode opcode,
                              uint32_t rkey, uint64_t remote_addr,
                              uint64_t compare_add, uint64_t swap)
{
    struct ibv_send_wr *wr = emu_vqp_wr_begin(ex, opcode);

    wr->wr.atomic.rkey        = rkey;
    wr->wr.atomic.remote_addr = remote_addr;
    wr->wr.atomic.compare_add = compare_add;
    wr->wr.atomic.swap        = swap;
}

static void emu_vqp_wr_cmp_swp(struct ibv_qp_ex *ex, uint32_t rkey,
                               uint64_t remote_addr, uint64_t compare,
                               uint64_t swap)
{
    emu_vqp_wr_atomic(ex, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr,
                      compare, swap);
}

static void emu_vqp_wr_fetch_add(struct ibv_qp_ex *ex, uint32_t rkey,
                                 uint64_t remote_addr, uint64_t add)
{
    emu_vqp_wr_atomic(ex, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr, add,
                      0);
}

static void emu_vqp_wr_send(struct ibv_qp_ex *ex)
{
    emu_vqp_wr_begin(ex, IBV_WR_SEND);
}

static void emu_vqp_wr_send_imm(struct ibv_qp_ex *ex, __be32 imm_data)
{
    emu_vqp_wr_begin(ex, IBV_WR_SEND_WITH_IMM)->imm_data = imm_data;
}

static void emu_vqp_wr_set_ud_addr(struct ibv_qp_ex *ex, struct ibv_ah *ah,
                                   uint32_t remote_qpn, uint32_t remote_qkey)
{
    struct ibv_send_wr *wr = &emu_vqp_of_ex(ex)->batch->wr;

    wr->wr.ud.ah          = ah;
    wr->wr.ud.remote_qpn  = remote_qpn;
    wr->wr.ud.remote_qkey = remote_qkey;
}

static void emu_vqp_wr_set_sge_list(struct ibv_qp_ex *ex, size_t num_sge,
                                    const struct ibv_sge *sg_list)
{
    emu_vqp_batch_t *batch = emu_vqp_of_ex(ex)->batch;

    if (num_sge > EMU_VERBS_MAX_SEND_SGE) {
        emu_vqp_wr_error(ex, EINVAL);
        return;
    }

    memcpy(batch->sge, sg_list, num_sge * sizeof(*sg_list));
    batch->wr.num_sge = num_sge;
}

static void emu_vqp_wr_set_sge(struct ibv_qp_ex *ex, uint32_t lkey,
                               uint64_t addr, uint32_t length)
{
    const struct ibv_sge sge = { .addr = addr, .length = length, .lkey = lkey };

    emu_vqp_wr_set_sge_list(ex, 1, &sge);
}

/* The program may use its buffers again as soon as this returns */
static void emu_vqp_wr_set_inline_list(struct ibv_qp_ex *ex, size_t num_buf,
                                       const struct ibv_data_buf *buf_list)
{
    emu_vqp_batch_t *batch = emu_vqp_of_ex(ex)->batch;
    size_t length          = 0;
    size_t i;

    for (i = 0; i < num_buf; ++i) {
        if (buf_list[i].length > sizeof(batch->inl) - length) {
            emu_vqp_wr_error(ex, ENOMEM);
            return;
        }
        memcpy(&batch->inl[length], buf_list[i].addr, buf_list[i].length);
        length += buf_list[i].length;
    }

    batch->sge[0].addr    = (uintptr_t)batch->inl;
    batch->sge[0].length  = length;
    batch->wr.num_sge     = 1;
    batch->wr.send_flags |= IBV_SEND_INLINE;
}

static void emu_vqp_wr_set_inline(struct ibv_qp_ex *ex, void *addr,
                                  size_t length)
{
    const struct ibv_data_buf buf = { .addr = addr, .length = length };

    emu_vqp_wr_set_inline_list(ex, 1, &buf);
}

int emu_vqp_ex_check(emu_qp_type_t type, uint64_t send_ops)
{
    const uint64_t known = (type == EMU_QPT_RC) ? EMU_VQP_EX_RC_OPS :
                           (type == EMU_QPT_UD) ? EMU_VQP_EX_UD_OPS : 0;

    return (send_ops & ~known) ?
           emu_refuse("ibv_create_qp_ex", "some of the send operations are") : 0;
}

int emu_vqp_ex_init(emu_vqp_t *vqp, uint64_t send_ops)
{
    struct ibv_qp_ex *ex = &vqp->ex;

    vqp->batch = calloc(1, sizeof(*vqp->batch));
    if (vqp->batch == NULL) {
        return ENOMEM;
    }

    ex->wr_start    = emu_vqp_wr_start;
    ex->wr_complete = emu_vqp_wr_complete;
    ex->wr_abort    = emu_vqp_wr_abort;

    ex->wr_set_ud_addr          = emu_vqp_wr_set_ud_addr;
    ex->wr_set_sge              = emu_vqp_wr_set_sge;
    ex->wr_set_sge_list         = emu_vqp_wr_set_sge_list;
    ex->wr_set_inline_data      = emu_vqp_wr_set_inline;
    ex->wr_set_inline_data_list = emu_vqp_wr_set_inline_list;

    /* Operations that were not asked for have no function, as with libmlx5 */
#define EMU_VQP_EX_SET(_flag, _member, _func) \
    ex->_member = (send_ops & IBV_QP_EX_WITH_##_flag) ? (_func) : NULL
    EMU_VQP_EX_SET(RDMA_WRITE, wr_rdma_write, emu_vqp_wr_rdma_write);
    EMU_VQP_EX_SET(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm,
                   emu_vqp_wr_rdma_write_imm);
    EMU_VQP_EX_SET(SEND, wr_send, emu_vqp_wr_send);
    EMU_VQP_EX_SET(SEND_WITH_IMM, wr_send_imm, emu_vqp_wr_send_imm);
    EMU_VQP_EX_SET(RDMA_READ, wr_rdma_read, emu_vqp_wr_rdma_read);
    EMU_VQP_EX_SET(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp, emu_vqp_wr_cmp_swp);
    EMU_VQP_EX_SET(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add,
                   emu_vqp_wr_fetch_add);
#undef EMU_VQP_EX_SET
    return 0;
}

struct ibv_qp_ex *ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
    if ((qp == NULL) || (emu_vqp(qp)->batch == NULL)) {
        return NULL; /* Not created with send_ops_flags */
    }

    return &emu_vqp(qp)->ex;
}
