/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Any bytes in a send queue: the parser of work requests must stay in the queue and
 * within its limits.
 */
#include "fuzz.h"
#include "base/emu_def.h"
#include "wqe/emu_wqe.h"

#include <arpa/inet.h>
#include <infiniband/mlx5dv.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_input_t in = { data, size };
    unsigned order  = fuzz_u64(&in, 1) % 6;
    uint16_t index  = fuzz_u64(&in, 2);
    int has_av      = fuzz_u64(&in, 1) & 1;
    uint32_t bb_cnt = 1u << order;
    uint8_t *buf    = malloc(bb_cnt * EMU_SEND_BB); /* no byte more */
    uint64_t sum    = 0;
    emu_op_t op;
    uint8_t opcode;
    const uint8_t *inl;
    unsigned i;
    int ret;

    FUZZ_CHECK(buf != NULL);
    fuzz_take(&in, buf, bb_cnt * EMU_SEND_BB);
    ret = emu_wqe_parse(buf, bb_cnt, index, has_av, &op);
    FUZZ_CHECK(op.num_bb >= 1);
    FUZZ_CHECK(emu_wqe_peek(buf, bb_cnt, index, &opcode) == op.num_bb);
    FUZZ_CHECK(opcode == op.opcode);
    if (ret == 0) {
        FUZZ_CHECK(op.kind < EMU_OP_LAST);
        FUZZ_CHECK(op.num_sge <= EMU_MAX_SGE);
        for (i = 0; i < op.num_sge; ++i) {
            inl  = op.sge[i].inl;
            sum += op.sge[i].length;
            FUZZ_CHECK((inl == NULL) ||
                       ((inl >= buf) &&
                        (inl + op.sge[i].length <=
                         buf + bb_cnt * EMU_SEND_BB)));
        }
        FUZZ_CHECK(sum == op.length);
        FUZZ_CHECK((op.kind != EMU_OP_CAS && op.kind != EMU_OP_FAA) ||
                   (op.atomic_size == 4) || (op.atomic_size == 8));
    }

    free(buf);
    return 0;
}

/* One work request of @a ds segments; the first 4 bytes are for the harness */
static void seed(void (*add)(const void *data, size_t size), uint8_t opcode,
                 uint8_t ds, int has_av, int with_raddr, int inline_length)
{
    uint64_t wqe[4 * EMU_SEND_BB / 8]  = { 0 };
    struct mlx5_wqe_ctrl_seg *ctrl     = (void*)wqe;
    uint8_t *seg                       = (uint8_t*)(ctrl + 1);
    uint8_t data[4 + sizeof(wqe)]      = { 2, 0, 0, has_av };

    ctrl->opmod_idx_opcode = htonl(opcode);
    ctrl->qpn_ds           = htonl((5 << 8) | ds);
    ctrl->fm_ce_se         = MLX5_WQE_CTRL_CQ_UPDATE;
    if (has_av) {
        ((struct mlx5_wqe_av*)seg)->dqp_dct = htonl(0x80000007);
        seg += sizeof(struct mlx5_wqe_av);
    }
    if (with_raddr) {
        ((struct mlx5_wqe_raddr_seg*)seg)->rkey = htonl(0x100);
        seg += sizeof(struct mlx5_wqe_raddr_seg);
    }
    if (inline_length > 0) {
        ((struct mlx5_wqe_inl_data_seg*)seg)->byte_count =
                htonl(MLX5_INLINE_SEG | inline_length);
    } else {
        ((struct mlx5_wqe_data_seg*)(seg + 16))->byte_count = htonl(64);
        ((struct mlx5_wqe_data_seg*)seg)->byte_count        = htonl(64);
    }
    memcpy(data + 4, wqe, sizeof(wqe));
    add(data, sizeof(data));
}

void fuzz_seeds(void (*add)(const void *data, size_t size))
{
    seed(add, MLX5_OPCODE_NOP, 1, 0, 0, 0);
    seed(add, MLX5_OPCODE_SEND, 2, 0, 0, 0);
    seed(add, MLX5_OPCODE_SEND_IMM, 6, 1, 0, 0);
    seed(add, MLX5_OPCODE_RDMA_WRITE, 3, 0, 1, 8);
    seed(add, MLX5_OPCODE_RDMA_WRITE, 16, 0, 1, 200);
    seed(add, MLX5_OPCODE_RDMA_WRITE_IMM, 7, 1, 1, 0);
    seed(add, MLX5_OPCODE_RDMA_READ, 4, 0, 1, 0);
    seed(add, MLX5_OPCODE_ATOMIC_CS, 4, 0, 1, 0);
    seed(add, MLX5_OPCODE_ATOMIC_FA, 4, 0, 1, 0);
    seed(add, MLX5_OPCODE_ATOMIC_MASKED_CS, 5, 0, 1, 0);
    seed(add, MLX5_OPCODE_ATOMIC_MASKED_FA, 8, 1, 1, 0);
}
