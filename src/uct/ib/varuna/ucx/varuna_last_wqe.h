/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The event LAST_WQE_REACHED of a queue pair, which UCX counts for each device.
 */
#ifndef UCT_VARUNA_LAST_WQE_H_
#define UCT_VARUNA_LAST_WQE_H_

#include <uct/ib/base/ib_device.h>
#include <ucs/time/time_def.h>

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
