/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Polling the completion queues of an inner interface.
 */
#ifndef UCT_VARUNA_MLX5_POLL_H_
#define UCT_VARUNA_MLX5_POLL_H_

#include "varuna_tl_def.h"

/** @return whether completions of sends wait to be polled on an inner interface: its
 *          progress function does not count errors. */
int uct_varuna_mlx5_has_completions(uct_iface_h iface);

/** @return whether anything waits to be polled on an inner interface. */
int uct_varuna_mlx5_has_input(uct_iface_h iface);

/** As uct_iface_progress(), for RC. */
unsigned uct_varuna_mlx5_progress(uct_iface_h iface);

/* See uct_varuna_tl_refill() and uct_varuna_tl_poll_func(). */
unsigned uct_varuna_mlx5_refill(uct_iface_h iface);

uct_varuna_tl_poll_func_t uct_varuna_mlx5_poll_func(uct_iface_h iface, unsigned kind);

#endif
