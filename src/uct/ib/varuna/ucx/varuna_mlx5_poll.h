/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Polling the completion queues of an inner interface.
 */
#ifndef UCT_VARUNA_MLX5_POLL_H_
#define UCT_VARUNA_MLX5_POLL_H_

#include <uct/api/uct.h>

/** @return whether completions of sends wait to be polled on an inner interface: its
 *          progress function does not count errors. */
int uct_varuna_mlx5_has_completions(uct_iface_h iface);

/** @return whether anything waits to be polled on an inner interface. */
int uct_varuna_mlx5_has_input(uct_iface_h iface);

/** As uct_iface_progress(), at less cost. It posts receive buffers after a message, but
 *  none that were missing then: call uct_varuna_mlx5_refill() from time to time. */
typedef unsigned (*uct_varuna_mlx5_poll_func_t)(uct_iface_h iface);

/** Post receive buffers if many are missing: the user, who kept them all, has released
 *  some. @return Number of events. */
unsigned uct_varuna_mlx5_refill(uct_iface_h iface);

/** @return How to poll an inner interface of a transport, an uct_varuna_lane_kind_t. */
uct_varuna_mlx5_poll_func_t uct_varuna_mlx5_poll_func(uct_iface_h iface, unsigned kind);

#endif
