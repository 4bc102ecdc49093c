/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion queue entries. See emu_cqe.h.
 */

#include "emu_cqe.h"

#include <endian.h>
#include <infiniband/mlx5dv.h>
#include <stddef.h>
#include <string.h>

/* An error entry; mlx5dv.h does not define it */
typedef struct emu_err_cqe {
    uint8_t  reserved0[32];
    uint32_t srqn;
    uint8_t  reserved1[16];
    uint8_t  hw_err_synd;
    uint8_t  hw_synd_type;
    uint8_t  vendor_err_synd;
    uint8_t  syndrome;
    uint32_t s_wqe_opcode_qpn;
    uint16_t wqe_counter;
    uint8_t  signature;
    uint8_t  op_own;
} emu_err_cqe_t;

_Static_assert(sizeof(struct mlx5_cqe64) == 64, "mlx5 format");
_Static_assert(sizeof(emu_err_cqe_t) == 64, "mlx5 format");
_Static_assert(offsetof(emu_err_cqe_t, op_own) ==
               offsetof(struct mlx5_cqe64, op_own), "mlx5 format");
_Static_assert(offsetof(emu_err_cqe_t, s_wqe_opcode_qpn) ==
               offsetof(struct mlx5_cqe64, sop_drop_qpn), "mlx5 format");

/* A 64-byte entry is the second half of a 128-byte one */
static struct mlx5_cqe64 *emu_cqe_get64(const void *buf, unsigned cqe_size)
{
    return (struct mlx5_cqe64*)((uintptr_t)buf + cqe_size - 64);
}

static void emu_cqe_fill_err(emu_err_cqe_t *err, const emu_cqe_t *cqe)
{
    memset(err, 0, offsetof(emu_err_cqe_t, op_own));
    err->srqn             = htobe32(cqe->srqn_uidx);
    err->hw_err_synd      = cqe->vendor;
    err->vendor_err_synd  = cqe->vendor;
    err->syndrome         = cqe->syndrome;
    err->s_wqe_opcode_qpn = htobe32(((uint32_t)cqe->wqe_opcode << 24) |
                                    cqe->qpn);
    err->wqe_counter      = htobe16(cqe->wqe_counter);
}

static unsigned emu_cqe_fill(void *buf, unsigned cqe_size,
                             struct mlx5_cqe64 *cqe64, const emu_cqe_t *cqe)
{
    unsigned flags = 0;

    memset(cqe64, 0, offsetof(struct mlx5_cqe64, op_own));
    if (cqe->inl != NULL) {
        if (cqe->byte_cnt <= 32) {
            memcpy(cqe64, cqe->inl, cqe->byte_cnt);
            flags = MLX5_INLINE_SCATTER_32;
        } else {
            memcpy(buf, cqe->inl, cqe->byte_cnt);
            flags = MLX5_INLINE_SCATTER_64;
        }
    }

    (void)cqe_size;
    if (flags != MLX5_INLINE_SCATTER_32) {
        cqe64->slid       = htobe16(cqe->slid);
        cqe64->flags_rqpn = htobe32(((uint32_t)!!cqe->has_grh << 28) |
                                    ((uint32_t)cqe->sl << 24) |
                                    (cqe->src_qpn & 0xffffff));
    }
    cqe64->srqn_uidx      = htobe32(cqe->srqn_uidx);
    cqe64->imm_inval_pkey = cqe->imm;
    cqe64->byte_cnt       = htobe32(cqe->byte_cnt);
    cqe64->timestamp      = htobe64(cqe->timestamp);
    cqe64->sop_drop_qpn   = htobe32((cqe->wqe_opcode << 24) | cqe->qpn);
    cqe64->wqe_counter    = htobe16(cqe->wqe_counter);
    return flags;
}

void emu_cqe_write(void *buf, unsigned cqe_size, const emu_cqe_t *cqe,
                   unsigned owner)
{
    struct mlx5_cqe64 *cqe64 = emu_cqe_get64(buf, cqe_size);
    unsigned flags           = 0;

    if ((cqe->opcode == MLX5_CQE_REQ_ERR) ||
        (cqe->opcode == MLX5_CQE_RESP_ERR)) {
        emu_cqe_fill_err((emu_err_cqe_t*)cqe64, cqe);
    } else {
        flags = emu_cqe_fill(buf, cqe_size, cqe64, cqe);
    }

    __atomic_store_n(&cqe64->op_own, (cqe->opcode << 4) | flags | owner,
                     __ATOMIC_RELEASE);
}

void emu_cqe_init(void *buf, unsigned cqe_size)
{
    emu_cqe_get64(buf, cqe_size)->op_own = (MLX5_CQE_INVALID << 4) |
                                           MLX5_CQE_OWNER_MASK;
}

int emu_cqe_is_valid(const void *buf, unsigned cqe_size, uint32_t ci,
                     uint32_t cqe_cnt)
{
    uint8_t op_own = __atomic_load_n(&emu_cqe_get64(buf, cqe_size)->op_own,
                                     __ATOMIC_ACQUIRE);

    return ((op_own >> 4) != MLX5_CQE_INVALID) &&
           ((op_own & MLX5_CQE_OWNER_MASK) == !!(ci & cqe_cnt));
}

uint32_t emu_cqe_qpn(const void *buf, unsigned cqe_size)
{
    return be32toh(emu_cqe_get64(buf, cqe_size)->sop_drop_qpn) & 0xffffff;
}

void emu_cqe_copy(void *dst, const void *src, unsigned cqe_size, unsigned owner)
{
    struct mlx5_cqe64 *dst64       = emu_cqe_get64(dst, cqe_size);
    const struct mlx5_cqe64 *src64 = emu_cqe_get64(src, cqe_size);

    memcpy(dst, src, cqe_size - 1);
    __atomic_store_n(&dst64->op_own,
                     (src64->op_own & ~MLX5_CQE_OWNER_MASK) | owner,
                     __ATOMIC_RELEASE);
}

void emu_cqe_move(void *dst, const void *src, unsigned cqe_size)
{
    emu_cqe_copy(dst, src, cqe_size,
                 emu_cqe_get64(dst, cqe_size)->op_own & MLX5_CQE_OWNER_MASK);
}
