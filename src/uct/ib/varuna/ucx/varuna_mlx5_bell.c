/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Two work requests with one doorbell, posted by UCX's functions. See varuna_mlx5.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5.h"
#include "varuna_mlx5_reg.h"
#include <uct/ib/varuna/core/varuna_def.h>

/* The register's stand-in is in DB mode: one 8-byte store to wherever it points.
 * BlueFlame would copy the second WQE alone, which is not the next in line. */
static uct_ib_mlx5_mmio_reg_t *
uct_varuna_mlx5_bell_stand_in(uct_varuna_mlx5_bell_t *bell)
{
    UCS_STATIC_ASSERT(sizeof(bell->stand_in) >= sizeof(uct_ib_mlx5_mmio_reg_t));
    return (uct_ib_mlx5_mmio_reg_t*)bell->stand_in;
}

int uct_varuna_mlx5_bell_hold(uct_ep_h tl_ep, unsigned kind,
                              uct_varuna_mlx5_bell_t *bell)
{
    uct_ib_mlx5_mmio_reg_t *stand = uct_varuna_mlx5_bell_stand_in(bell);
    const uct_dc_mlx5_ep_t *dc_ep = ucs_derived_of(tl_ep, uct_dc_mlx5_ep_t);
    uct_ib_mlx5_txwq_t *wq;

    if (kind == UCT_VARUNA_LANE_RC) {
        wq = &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq;
    } else if (dc_ep->dci == UCT_DC_MLX5_EP_NO_DCI) {
        return 0;
    } else {
        wq = &uct_varuna_mlx5_dci(dc_ep)->txwq; /* It keeps that until all is complete */
    }

    stand->mode     = UCT_IB_MLX5_MMIO_MODE_DB;
    stand->addr.ptr = &bell->sink;
    bell->wq        = wq;
    bell->reg       = wq->reg;
    bell->ctrl      = wq->curr;
    wq->reg         = stand;
    return 1;
}

void uct_varuna_mlx5_bell_join(uct_varuna_mlx5_bell_t *bell)
{
    uct_ib_mlx5_mmio_reg_t *stand = uct_varuna_mlx5_bell_stand_in(bell);
    uct_ib_mlx5_mmio_reg_t *reg   = bell->reg;
    uct_ib_mlx5_txwq_t *wq        = bell->wq;

    if (uct_varuna_mlx5_reg_is_locked(reg)) {
        wq->reg = reg; /* It rings by one 8-byte store, under its lock */
    } else {
        stand->addr = reg->addr;
    }
}

void uct_varuna_mlx5_bell_restore(uct_varuna_mlx5_bell_t *bell, int ring)
{
    uct_ib_mlx5_txwq_t *wq      = bell->wq;
    uct_ib_mlx5_mmio_reg_t *reg = bell->reg;

    wq->reg = reg;
    if (ucs_unlikely(ring)) {
        uct_varuna_mlx5_reg_ring(reg, bell->ctrl);
    }

    /* The two halves of the register take turns */
    reg->addr.uint ^= UCT_IB_MLX5_BF_REG_SIZE;
}
