/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Parser of send WQEs. A WQE is a control segment and then, depending on the
 * operation: an address vector, a remote address, atomic operands, data.
 * Everything is in units of 16 bytes and wraps at the end of the queue.
 */

#include "emu_wqe.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <string.h>

#define EMU_WQE_DS        16
#define EMU_WQE_FENCE(_f) (((_f) >> 5) & 7)
#define EMU_WQE_STRONG    3

/* Modifiers of extended atomics: 8 | log2(size / 4) */
#define EMU_WQE_OPMOD_EXT_4 0x08
#define EMU_WQE_OPMOD_EXT_8 0x09

/* What follows the control segment, by opcode */
typedef struct emu_wqe_format {
    uint8_t kind;
    uint8_t has_imm;
    uint8_t has_raddr;
    uint8_t has_atomic;
    uint8_t is_masked;       /* operands have masks, and a size */
    uint8_t is_known;
} emu_wqe_format_t;

static const emu_wqe_format_t emu_wqe_formats[256] = {
    [MLX5_OPCODE_NOP]              = { EMU_OP_NONE, 0, 0, 0, 0, 1 },
    [MLX5_OPCODE_SEND]             = { EMU_OP_SEND, 0, 0, 0, 0, 1 },
    [MLX5_OPCODE_SEND_IMM]         = { EMU_OP_SEND, 1, 0, 0, 0, 1 },
    [MLX5_OPCODE_RDMA_WRITE]       = { EMU_OP_WRITE, 0, 1, 0, 0, 1 },
    [MLX5_OPCODE_RDMA_WRITE_IMM]   = { EMU_OP_WRITE, 1, 1, 0, 0, 1 },
    [MLX5_OPCODE_RDMA_READ]        = { EMU_OP_READ, 0, 1, 0, 0, 1 },
    [MLX5_OPCODE_ATOMIC_CS]        = { EMU_OP_CAS, 0, 1, 1, 0, 1 },
    [MLX5_OPCODE_ATOMIC_FA]        = { EMU_OP_FAA, 0, 1, 1, 0, 1 },
    [MLX5_OPCODE_ATOMIC_MASKED_CS] = { EMU_OP_CAS, 0, 1, 1, 1, 1 },
    [MLX5_OPCODE_ATOMIC_MASKED_FA] = { EMU_OP_FAA, 0, 1, 1, 1, 1 }
};

/* Where the parser is in the ring */
typedef struct emu_wqe_pos {
    const uint8_t *buf;
    const uint8_t *end;
    const uint8_t *ptr;      /* next segment */
    unsigned      left;      /* segments that are left */
} emu_wqe_pos_t;

static const void *emu_wqe_next(emu_wqe_pos_t *pos, unsigned num_ds)
{
    const void *seg = pos->ptr;

    pos->left -= num_ds;
    pos->ptr  += num_ds * EMU_WQE_DS;
    if (pos->ptr >= pos->end) {
        pos->ptr -= pos->end - pos->buf;
    }
    return seg;
}

static const struct mlx5_wqe_ctrl_seg *
emu_wqe_ctrl(const uint8_t *buf, uint32_t bb_cnt, uint16_t index)
{
    return (const void*)(buf + (size_t)(index & (bb_cnt - 1)) * EMU_SEND_BB);
}

/* A program may write to its queue at any time: what is checked is read once */
static uint32_t emu_wqe_load(const __be32 *word)
{
    return be32toh(__atomic_load_n(word, __ATOMIC_RELAXED));
}

static uint16_t emu_wqe_num_bb(unsigned num_ds)
{
    return emu_max((num_ds + 3) / 4, 1);
}

uint16_t emu_wqe_peek(const uint8_t *buf, uint32_t bb_cnt, uint16_t index,
                      uint8_t *opcode_p)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = emu_wqe_ctrl(buf, bb_cnt, index);

    *opcode_p = emu_wqe_load(&ctrl->opmod_idx_opcode) & 0xff;
    return emu_wqe_num_bb(emu_wqe_load(&ctrl->qpn_ds) & 0x3f);
}

/* The last 32 bytes of an address vector */
static void emu_wqe_parse_grh(const struct mlx5_wqe_av *av, emu_path_t *path)
{
    uint32_t word = be32toh(av->grh_gid_fl);

    path->is_full    = 1;
    path->has_grh    = !!(word & EMU_PATH_GRH);
    path->sgid_index = (word >> 20) & 0xff;
    path->flow_label = word & 0xfffff;
    path->hop_limit  = av->hop_limit;
    path->tclass     = av->tclass;
    memcpy(path->rmac, av->rmac, sizeof(path->rmac));
    memcpy(path->dgid, av->rgid, sizeof(path->dgid));
}

static int emu_wqe_parse_av(emu_wqe_pos_t *pos, emu_op_t *op)
{
    const struct mlx5_wqe_av *av;
    unsigned num_ds;

    if (pos->left < 1) {
        return -1;
    }

    /* The first 16 bytes say whether there are 32 more */
    av         = (const void*)pos->ptr;
    num_ds     = (be32toh(av->dqp_dct) & MLX5_EXTENDED_UD_AV) ? 3 : 1;
    op->has_av = 1;
    op->dc_key = be64toh(av->key.dc_key);
    op->qkey   = be32toh(av->key.qkey.qkey);
    op->dqpn   = be32toh(av->dqp_dct) & 0xffffff;
    op->sl     = av->stat_rate_sl & 0xf;
    memset(&op->path, 0, sizeof(op->path));
    op->path.dlid = be16toh(av->rlid);
    if (pos->left < num_ds) {
        return -1;
    }

    /* It begins in the middle of a basic block and does not wrap */
    if (num_ds == 3) {
        emu_wqe_parse_grh(av, &op->path);
    }

    emu_wqe_next(pos, num_ds);
    return 0;
}

/* Masked atomics of 4 bytes have all operands in one segment; those of 8 bytes
 * have a second one with the masks of a compare and swap */
static int emu_wqe_parse_masked(emu_wqe_pos_t *pos, emu_op_t *op)
{
    const uint32_t *words;
    const uint64_t *quads;

    if (op->atomic_size == 4) {
        words            = emu_wqe_next(pos, 1);
        op->swap_add     = be32toh(words[0]);
        op->compare      = be32toh(words[1]);
        op->swap_mask    = be32toh(words[2]);
        op->compare_mask = be32toh(words[3]);
        return 0;
    }

    quads        = emu_wqe_next(pos, 1);
    op->swap_add = be64toh(quads[0]);
    op->compare  = be64toh(quads[1]);
    if (op->kind == EMU_OP_CAS) {
        if (pos->left < 1) {
            return -1;
        }
        quads            = emu_wqe_next(pos, 1);
        op->swap_mask    = be64toh(quads[0]);
        op->compare_mask = be64toh(quads[1]);
    }
    return 0;
}

static int emu_wqe_parse_atomic(emu_wqe_pos_t *pos, emu_op_t *op,
                                const emu_wqe_format_t *format, uint8_t opmod)
{
    const struct mlx5_wqe_atomic_seg *atomic;

    if (format->is_masked) {
        if ((opmod != EMU_WQE_OPMOD_EXT_4) && (opmod != EMU_WQE_OPMOD_EXT_8)) {
            return -1;
        }
        op->atomic_size = (opmod == EMU_WQE_OPMOD_EXT_4) ? 4 : 8;
        return emu_wqe_parse_masked(pos, op);
    }

    atomic           = emu_wqe_next(pos, 1);
    op->atomic_size  = 8;
    op->swap_add     = be64toh(atomic->swap_add);
    op->compare      = (op->kind == EMU_OP_CAS) ? be64toh(atomic->compare) : 0;
    op->swap_mask    = UINT64_MAX;
    op->compare_mask = UINT64_MAX;
    return 0;
}

static int emu_wqe_parse_remote(emu_wqe_pos_t *pos, emu_op_t *op,
                                const emu_wqe_format_t *format, uint8_t opmod)
{
    const struct mlx5_wqe_raddr_seg *raddr;

    if (pos->left < 1u + format->has_atomic) {
        return -1;
    }

    raddr     = emu_wqe_next(pos, 1);
    op->raddr = be64toh(raddr->raddr);
    op->rkey  = be32toh(raddr->rkey);
    return format->has_atomic ? emu_wqe_parse_atomic(pos, op, format, opmod) :
                                0;
}

static int emu_wqe_add_sge(emu_op_t *op, uint64_t addr, uint32_t length,
                           uint32_t lkey, const void *inl)
{
    if ((op->num_sge == EMU_MAX_SGE) || (length > EMU_MAX_MSG - op->length)) {
        return -1;
    }

    op->sge[op->num_sge++] = (emu_sge_t) {
        .addr = addr, .length = length, .lkey = lkey, .inl = inl
    };
    op->length += length;
    return 0;
}

/* Inline data may wrap: two pieces then */
static int emu_wqe_parse_inline(emu_wqe_pos_t *pos, emu_op_t *op, uint32_t byte_count)
{
    uint32_t length    = byte_count & 0x3ff;
    const uint8_t *ptr = pos->ptr + 4;
    unsigned num_ds    = (length + 4 + EMU_WQE_DS - 1) / EMU_WQE_DS;
    uint32_t first     = emu_min(length, (size_t)(pos->end - ptr));

    if (num_ds > pos->left) {
        return -1;
    }

    if ((emu_wqe_add_sge(op, 0, first, 0, ptr) != 0) ||
        ((first < length) &&
         (emu_wqe_add_sge(op, 0, length - first, 0, pos->buf) != 0))) {
        return -1;
    }

    emu_wqe_next(pos, num_ds);
    return 0;
}

static int emu_wqe_parse_data(emu_wqe_pos_t *pos, emu_op_t *op)
{
    const struct mlx5_wqe_data_seg *data;
    uint32_t byte_count;

    op->is_inline = 1;
    while (pos->left > 0) {
        data       = (const void*)pos->ptr;
        byte_count = emu_wqe_load(&data->byte_count);
        if (byte_count & MLX5_INLINE_SEG) {
            if (emu_wqe_parse_inline(pos, op, byte_count) != 0) {
                return -1;
            }
            continue;
        }

        /* A count of zero means 2 GB, too much for any message here, but
         * programs use it for empty ones */
        op->is_inline = 0;
        if (emu_wqe_add_sge(op, be64toh(data->addr), byte_count,
                            be32toh(data->lkey), NULL) != 0) {
            return -1;
        }
        emu_wqe_next(pos, 1);
    }
    return 0;
}

static void emu_wqe_parse_ctrl(const struct mlx5_wqe_ctrl_seg *ctrl, uint32_t word,
                               const emu_wqe_format_t *format, emu_op_t *op)
{
    uint8_t flags = ctrl->fm_ce_se;

    op->opcode       = word & 0xff;
    op->wqe_index    = (word >> 8) & 0xffff;
    op->kind         = format->kind;
    op->has_imm      = format->has_imm;
    op->imm          = ctrl->imm;
    op->signaled     = !!(flags & MLX5_WQE_CTRL_CQ_UPDATE);
    op->solicited    = !!(flags & MLX5_WQE_CTRL_SOLICITED);
    op->fence        = (EMU_WQE_FENCE(flags) >= 2);
    op->strong       = (EMU_WQE_FENCE(flags) == EMU_WQE_STRONG);
    op->has_av       = 0;
    op->is_inline    = 0;
    op->num_sge      = 0;
    op->length       = 0;
    op->rkey         = 0;
    op->raddr        = 0;
    op->swap_add     = 0;
    op->compare      = 0;
    op->swap_mask    = 0;
    op->compare_mask = 0;
    op->atomic_size  = 0;
}

int emu_wqe_parse(const uint8_t *buf, uint32_t bb_cnt, uint16_t index,
                  int has_av, emu_op_t *op_p)
{
    const struct mlx5_wqe_ctrl_seg *ctrl = emu_wqe_ctrl(buf, bb_cnt, index);
    uint32_t word                        = emu_wqe_load(&ctrl->opmod_idx_opcode);
    uint32_t qpn_ds                      = emu_wqe_load(&ctrl->qpn_ds);
    const emu_wqe_format_t *format       = &emu_wqe_formats[word & 0xff];
    emu_wqe_pos_t pos;

    pos.buf  = buf;
    pos.end  = buf + (size_t)bb_cnt * EMU_SEND_BB;
    pos.ptr  = (const uint8_t*)ctrl;
    pos.left = qpn_ds & 0x3f;

    op_p->qpn    = qpn_ds >> 8;
    op_p->num_bb = emu_wqe_num_bb(pos.left);
    emu_wqe_parse_ctrl(ctrl, word, format, op_p);
    if (!format->is_known || (pos.left < 1) || (op_p->num_bb > bb_cnt)) {
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }

    emu_wqe_next(&pos, 1);
    if (op_p->kind == EMU_OP_NONE) {
        return 0;
    }
    if ((has_av && (emu_wqe_parse_av(&pos, op_p) != 0)) ||
        (format->has_raddr &&
         (emu_wqe_parse_remote(&pos, op_p, format,
                               word >> 24) != 0))) {
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    if (emu_wqe_parse_data(&pos, op_p) != 0) {
        return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    if (format->has_atomic && (op_p->length != op_p->atomic_size)) {
        return MLX5_CQE_SYNDROME_LOCAL_LENGTH_ERR;
    }
    return 0;
}
