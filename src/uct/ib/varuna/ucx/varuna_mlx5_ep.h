/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCX's internal headers of rc_mlx5 and dc_mlx5, for the files named varuna_mlx5_*.c, and for
 * varuna_ucx_check.c.
 */
#ifndef UCT_VARUNA_MLX5_EP_H_
#define UCT_VARUNA_MLX5_EP_H_

#include "varuna_compat.h"

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  include <uct/ib/mlx5/dc/dc_mlx5.h>
#  include <uct/ib/mlx5/dc/dc_mlx5_ep.h>
#  include <uct/ib/mlx5/rc/rc_mlx5.h>
#else
#  include <uct/ib/dc/dc_mlx5.h>
#  include <uct/ib/dc/dc_mlx5_ep.h>
#  include <uct/ib/rc/accel/rc_mlx5.h>
#endif
#include <uct/base/uct_iov.inl>

/* The part of an RC endpoint which has the send queue. Since 1.17 it is a class of
 * its own, the first member of the endpoint. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 17)
typedef uct_rc_mlx5_base_ep_t uct_varuna_mlx5_rc_ep_t;
#else
typedef uct_rc_mlx5_ep_t uct_varuna_mlx5_rc_ep_t;
#endif

/* The DCI of an endpoint that has one. Since 1.18 DCIs are in an array that grows. */
static inline uct_dc_dci_t *uct_varuna_mlx5_dci(const uct_dc_mlx5_ep_t *ep)
{
    uct_dc_mlx5_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                                uct_dc_mlx5_iface_t);

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
    return uct_dc_mlx5_iface_dci(iface, ep->dci);
#else
    return &iface->tx.dcis[ep->dci];
#endif
}

/* --- Doorbell registers --- */

/* Doorbell registers of mlx5, for the files that post. */

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

/* The same for a register in mode DB, which no other thread uses */
static inline void uct_varuna_mlx5_reg_ring_alone(uct_ib_mlx5_mmio_reg_t *reg,
                                           const void *ctrl)
{
    ucs_memory_bus_store_fence();
    *(volatile uint64_t*)reg->addr.ptr = *(volatile const uint64_t*)ctrl;
    ucs_memory_bus_store_fence();
}

#endif
