/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCX's inline functions for mlx5.
 */
#ifndef UCT_VARUNA_MLX5_INL_H_
#define UCT_VARUNA_MLX5_INL_H_

#include "varuna_compat.h"

#include <uct/ib/mlx5/ib_mlx5.h>

/* Called by one of the functions that nobody here calls. Without this, a process with
 * LD_BIND_NOW ends when it opens the plugin: UCX opens its libraries for itself alone */
extern __typeof__(uct_ib_mlx5_iface_get_res_domain) uct_ib_mlx5_iface_get_res_domain
        __attribute__((weak));

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  include <uct/ib/mlx5/rc/rc_mlx5.inl>
#else
#  include <uct/ib/rc/accel/rc_mlx5.inl>
#endif

#endif
