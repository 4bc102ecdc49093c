/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Polling the completion queues of an inner interface.
 */
#ifndef UCT_VARUNA_MLX5_POLL_H_
#define UCT_VARUNA_MLX5_POLL_H_

#include "varuna_tl_def.h"
#include <uct/api/uct.h>

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

/* --- Functions by name --- */

/* Functions of UCX's library with rc_mlx5. UCX opens that library for itself alone, so
 * what we call by name would end the process ("undefined symbol") at the first call. */

/**
 * Find a function. It takes a search: keep the result.
 *
 * @param [in] iface  An inner interface, whose code is in the library.
 * @param [in] name   Name of the function.
 *
 * @return The function, or NULL if this UCX has none.
 */
void *uct_varuna_ib_symbol(uct_iface_h iface, const char *name);

#endif
