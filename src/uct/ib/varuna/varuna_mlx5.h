/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The few facts of the inner rc_mlx5 and dc_mlx5 endpoints which UCT's public
 * interface does not tell. Everything else goes through the public interface.
 */
#ifndef UCT_VARUNA_MLX5_H_
#define UCT_VARUNA_MLX5_H_

#include <uct/api/uct.h>
#include <stdint.h>

/**
 * Tell whether an inner endpoint has anything in flight.
 *
 * @param [in] ep    Inner endpoint.
 * @param [in] kind  Its transport, an uct_varuna_lane_kind_t.
 *
 * @return nonzero if no posted WQE awaits its completion (RC), or if the endpoint
 *         holds no DCI (DC).
 */
int uct_varuna_mlx5_is_drained(uct_ep_h ep, unsigned kind);

/**
 * The same for an endpoint which is in ERR; to be called until it says so.
 */
int uct_varuna_mlx5_drain(uct_ep_h ep, unsigned kind);

/** Responder: PSN which the RC endpoint's QP expects next. Once the QP is in ERR
 *  it does not change any more, so that is when to ask. */
ucs_status_t uct_varuna_mlx5_ep_query_epsn(uct_ep_h ep, uint32_t *epsn_p);

/** Requester: first PSN and path MTU (bytes) of a connected RC endpoint. */
ucs_status_t uct_varuna_mlx5_ep_query_sq(uct_ep_h ep, uint32_t *psn_p,
                                         uint32_t *mtu_p);

/** @return Bytes which rc_mlx5 puts before an AM's header on the wire. */
unsigned uct_varuna_mlx5_am_overhead(void);

#endif
