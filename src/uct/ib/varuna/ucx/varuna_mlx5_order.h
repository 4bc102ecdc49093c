/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a device reports about the order of packets, and asking it for order. See
 * core/varuna_order.h.
 */
#ifndef UCT_VARUNA_MLX5_ORDER_H_
#define UCT_VARUNA_MLX5_ORDER_H_

#include <uct/ib/varuna/core/varuna_order.h>
#include <uct/api/uct.h>
#include <stdint.h>

/* A move to another service level. It may have another virtual lane, or none. */
typedef struct uct_varuna_sl_move {
    uint8_t                    is_allowed; /* The user agrees */
    uint8_t                    is_done;
    uint8_t                    from;       /* The level that UCX uses without us */
    uint8_t                    to;
} uct_varuna_sl_move_t;

/**
 * Ask for order before an inner interface is opened: a service level without adaptive
 * routing, if the user agrees and the user's choice (UCX_IB_SL) has one; and, where the device
 * can be forced to do that, queue pairs with the order of the specification on RoCE and on such
 * a level, and messages that are placed in order on others.
 *
 * @param [in]     md        Memory domain of ib.
 * @param [in]     dev_name  Name of the port.
 * @param [in]     kind      The transport, an uct_varuna_lane_kind_t.
 * @param [in,out] config    Its configuration.
 * @param [in,out] move      Whether the level may change, and whether it does.
 *
 * @return Error if UCX does not take an option, which is logged.
 */
ucs_status_t uct_varuna_mlx5_order_request(uct_md_h md, const char *dev_name,
                                           unsigned kind, uct_iface_config_t *config,
                                           uct_varuna_sl_move_t *move);

/** Let an open interface use another service level for what is connected from now on. */
void uct_varuna_mlx5_order_set_sl(uct_iface_h inner, uint8_t sl);

/**
 * What is known of the network. A port's ooo_sl_mask has the service levels on which packets
 * may overtake each other. There is none on RoCE, and without DEVX.
 *
 * @param [in]  inner   Open inner interface.
 * @param [out] sl_p    Its service level.
 * @param [out] mask_p  Service levels out of order; only if that is known.
 */
uct_varuna_order_t uct_varuna_mlx5_order(uct_iface_h inner, uint8_t *sl_p,
                                         uint16_t *mask_p);

/** What is known of the queue pair of an RC endpoint that receives. A command to the NIC. */
uct_varuna_order_t uct_varuna_mlx5_order_of_rc(uct_ep_h ep);

/** What is known of the target of a DC interface. A command to the NIC. */
uct_varuna_order_t uct_varuna_mlx5_order_of_dct(uct_iface_h inner);

#endif
