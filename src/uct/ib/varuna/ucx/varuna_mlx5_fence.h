/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Stopping the responder's queue pair of an RC connection, so that nothing it has
 * accepted is written to memory any more.
 *
 * ERR stops the queue pair from accepting packets. No document says that what it has
 * accepted is in memory then; RESET says so, because the queue pair's resources may be
 * used otherwise after it. In order:
 *
 *     uct_ep_invalidate()                   ERR
 *     uct_varuna_mlx5_ep_wait_last_wqe()    the shared receive queue is left alone
 *     uct_varuna_mlx5_ep_query_epsn()       RESET clears it
 *     uct_varuna_mlx5_ep_reset()
 *     ...                                   what is in memory, is there
 *     uct_varuna_mlx5_ep_end_reset()        before UCX destroys the endpoint
 */
#ifndef UCT_VARUNA_MLX5_FENCE_H_
#define UCT_VARUNA_MLX5_FENCE_H_

#include <ucs/time/time_def.h>
#include <uct/api/uct.h>
#include <uct/ib/base/ib_device.h>

/**
 * Wait until a queue pair in ERR has taken its last buffer from its shared receive queue
 * (IBTA 10.3.1, event LAST_WQE_REACHED). A buffer that it holds at RESET is lost, and UCX
 * never destroys a queue pair without the event. Any thread.
 *
 * @param [in] deadline  Some NICs never raise the event. 0: only look whether it came.
 *
 * @return UCS_OK, or UCS_ERR_TIMED_OUT.
 */
ucs_status_t uct_varuna_mlx5_ep_wait_last_wqe(uct_ep_h ep, ucs_time_t deadline);

/**
 * Move a queue pair from ERR to RESET. On return, all writes that it has accepted are in
 * memory. What it has sent (flow control's credits) may be unfinished: RESET discards it,
 * and uct_varuna_mlx5_ep_end_reset() settles the accounts. Any thread.
 *
 * @return UCS_OK, or the device's error.
 */
ucs_status_t uct_varuna_mlx5_ep_reset(uct_ep_h ep);

/** Move a queue pair from RESET to INIT, from where UCX can move it to ERR, and settle
 *  UCX's accounts of what RESET has discarded. Main thread. */
void uct_varuna_mlx5_ep_end_reset(uct_ep_h ep);

/* --- LAST_WQE_REACHED --- */

/* The event LAST_WQE_REACHED of a queue pair, which UCX counts for each device. */

/**
 * Wait for the event. Any thread.
 *
 * @param [in] channel_fd  Where the event may come besides the device's file; -1: nowhere.
 * @param [in] deadline    Until when to wait, if it has not come.
 *
 * @return UCS_OK, or UCS_ERR_TIMED_OUT.
 */
ucs_status_t uct_varuna_last_wqe_wait(uct_ib_device_t *dev, uint32_t qp_num,
                                      int channel_fd, ucs_time_t deadline);

/** The next ERR raises the event again, for which UCX waits before it destroys the queue
 *  pair. It does not expect one that comes after it has waited. */
void uct_varuna_last_wqe_forget(uct_ib_device_t *dev, uint32_t qp_num);

#endif
