/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A queue pair and its completion queue that are made by commands of the device, as UCX makes
 * them where it can (UCX_IB_MLX5_DEVX_OBJECTS). Called by check_qp.c.
 */
#ifndef CHECK_DEVX_H_
#define CHECK_DEVX_H_

#include "check_nic.h"

/** Create both; the queue pair is in state INIT. @return 0 or errno. */
int check_devx_create(check_qp_t *qp);

/** To RTR and RTS. If @a is_ordered, it is forced to the order of the specification.
 *  @return 0 or errno. */
int check_devx_connect(check_qp_t *qp, const struct ibv_qp_attr *rtr, int is_ordered);

/** To ERR or RESET. @return 0 or errno. */
int check_devx_modify(check_qp_t *qp, enum ibv_qp_state state);

/** Read its context, of CHECK_QPC_SIZE bytes, from the device. @return 0 or errno. */
int check_devx_query(const check_qp_t *qp, uint8_t *qpc);

/** Post a write with a completion. @return 0. */
int check_devx_write(check_qp_t *qp, const struct ibv_send_wr *wr, int is_strong);

/** Poll up to @a max completions: their status, and the number of the request, from 0, in
 *  wr_id. @return How many. */
int check_devx_poll(check_qp_t *qp, int max, struct ibv_wc *wc);

void check_devx_destroy(check_qp_t *qp);

/** Have LAST_WQE_REACHED reported. @return 0 or errno. */
int check_devx_watch_last_wqe(check_qp_t *qp);

/** @return Whether it has come. */
int check_devx_has_last_wqe(check_qp_t *qp);

/** Create a DC target as UCX does, and read how it places what comes early.
 *
 *  @param [out] order_p  See check_qp_order().
 *
 *  @return 0 or errno. */
int check_devx_dct(check_nic_t *nic, check_order_bits_t *order_p);

#endif
