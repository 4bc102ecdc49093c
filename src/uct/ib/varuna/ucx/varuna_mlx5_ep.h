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

#endif
