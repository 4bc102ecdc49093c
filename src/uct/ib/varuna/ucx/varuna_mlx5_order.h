/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether a responder executes the packets of a lane in the order of their posting.
 * With adaptive routing they may overtake each other, and NICs place them as they
 * arrive. Then a log entry does not prove that the data before it is in memory. A
 * port's ooo_sl_mask has the service levels for which that is so.
 */
#ifndef UCT_VARUNA_MLX5_ORDER_H_
#define UCT_VARUNA_MLX5_ORDER_H_

#include <uct/api/uct.h>
#include <stdint.h>

typedef enum {
    UCT_VARUNA_ORDER_UNKNOWN,  /* Unknown: RoCE, or no DEVX */
    UCT_VARUNA_ORDER_NONE,     /* Packets of this service level overtake each other */
    UCT_VARUNA_ORDER_CERTAIN
} uct_varuna_order_t;

/**
 * Ask for order before an inner interface is opened: a service level without adaptive
 * routing, if the user's choice (UCX_IB_SL) has one; and messages that are placed in order,
 * where the device can be forced to do that.
 *
 * @param [in]     md        Memory domain of ib.
 * @param [in]     dev_name  Name of the port.
 * @param [in]     kind      The transport, an uct_varuna_lane_kind_t.
 * @param [in,out] config    Its configuration.
 *
 * @return Error if UCX does not take an option, which is logged.
 */
ucs_status_t uct_varuna_mlx5_order_request(uct_md_h md, const char *dev_name,
                                           unsigned kind,
                                           uct_iface_config_t *config);

/**
 * @param [in]  inner   Open inner interface.
 * @param [out] sl_p    Its service level.
 * @param [out] mask_p  Service levels out of order; only if that is known.
 */
uct_varuna_order_t uct_varuna_mlx5_order(uct_iface_h inner, uint8_t *sl_p,
                                         uint16_t *mask_p);

#endif
