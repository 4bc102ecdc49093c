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

/* A build of UCX with logging (its configure's default) prints each packet at level data, by
 * functions of its modules, which cannot be linked: what is posted here is not printed */
#include <uct/ib/mlx5/ib_mlx5_log.h>
#undef uct_ib_mlx5_log_tx
#undef uct_ib_mlx5_log_rx
#undef uct_ib_mlx5_log_cqe
#define uct_ib_mlx5_log_tx(_iface, _wqe, _qstart, _qend, _max_sge, _log_sge, _dump_cb) \
    ((void)(_log_sge))
#define uct_ib_mlx5_log_rx(_iface, _cqe, _data, _dump_cb) ((void)(_cqe))
#define uct_ib_mlx5_log_cqe(_cqe)                         ((void)(_cqe))

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  include <uct/ib/mlx5/rc/rc_mlx5.inl>
#else
#  include <uct/ib/rc/accel/rc_mlx5.inl>
#endif

#endif
