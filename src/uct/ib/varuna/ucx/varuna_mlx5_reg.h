/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Doorbell registers of mlx5, for the files that post.
 */
#ifndef UCT_VARUNA_MLX5_REG_H_
#define UCT_VARUNA_MLX5_REG_H_

#include "varuna_mlx5_ep.h"

/* Since 1.14 threads may share a register, which then has a lock. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
static inline int uct_varuna_mlx5_reg_is_locked(const uct_ib_mlx5_mmio_reg_t *reg)
{
    return reg->mode == UCT_IB_MLX5_MMIO_MODE_DB_LOCK;
}

static inline void uct_varuna_mlx5_reg_lock(uct_ib_mlx5_mmio_reg_t *reg)
{
    if (uct_varuna_mlx5_reg_is_locked(reg)) {
        ucs_spin_lock(&reg->db_lock);
    }
}

static inline void uct_varuna_mlx5_reg_unlock(uct_ib_mlx5_mmio_reg_t *reg)
{
    if (uct_varuna_mlx5_reg_is_locked(reg)) {
        ucs_spin_unlock(&reg->db_lock);
    }
}
#else
static inline int uct_varuna_mlx5_reg_is_locked(const uct_ib_mlx5_mmio_reg_t *reg)
{
    (void)reg;
    return 0;
}

static inline void uct_varuna_mlx5_reg_lock(uct_ib_mlx5_mmio_reg_t *reg)
{
    (void)reg;
}

static inline void uct_varuna_mlx5_reg_unlock(uct_ib_mlx5_mmio_reg_t *reg)
{
    (void)reg;
}
#endif

static inline void uct_varuna_mlx5_reg_ring(uct_ib_mlx5_mmio_reg_t *reg,
                                     const void *ctrl)
{
    /* The doorbell record was written when the WQE was posted */
    ucs_memory_bus_store_fence();
    uct_varuna_mlx5_reg_lock(reg);
    *(volatile uint64_t*)reg->addr.ptr = *(volatile const uint64_t*)ctrl;
    uct_varuna_mlx5_reg_unlock(reg);
    ucs_memory_bus_store_fence();
}

#endif
