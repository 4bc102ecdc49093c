/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Credits of flow control, which rc_mlx5 grants to the sender of a message when that is polled.
 * A queue pair that is moved to RESET, by the thread of its NIC, must not grant any more: a
 * doorbell in RESET would be remembered. UCX's own flag for that belongs to the main thread. So
 * a lock keeps grants and the transition apart:
 *
 *     main thread                              thread of the NIC
 *     uct_rc_mlx5_ep_fc_ctrl(), or nothing     uct_varuna_mlx5_grants_stop(), RESET
 */
#ifndef UCT_VARUNA_MLX5_GRANT_H_
#define UCT_VARUNA_MLX5_GRANT_H_

#include <uct/api/uct.h>

/** Replace UCX's function that grants credits, in an interface of rc_mlx5. */
void uct_varuna_mlx5_guard_rc(uct_iface_h iface);

/**
 * On return, and from then on, nothing is being posted for this endpoint, but for what its owner
 * posts. Any thread.
 *
 * @return UCS_OK, or UCS_ERR_NO_MEMORY.
 */
ucs_status_t uct_varuna_mlx5_grants_stop(uct_ep_h ep);

/** The endpoint is about to be destroyed, or was not moved. Any thread. */
void uct_varuna_mlx5_grants_forget(uct_ep_h ep);

/** In the child of a fork, before anything else here is called. */
void uct_varuna_mlx5_grants_forked(void);

#endif
