/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What is known of the order in which the writes of a lane are placed (core/varuna_oplog.h).
 */
#ifndef UCT_VARUNA_LANE_ORDER_H_
#define UCT_VARUNA_LANE_ORDER_H_

#include "varuna_lanes.h"

/** Ask for order before an inner interface of a link is opened: see
 *  uct_varuna_mlx5_order_request(). All interfaces of a link use one service level, as long
 *  as it carries something. */
ucs_status_t uct_varuna_link_order_request(uct_varuna_iface_t *iface, unsigned link,
                                           unsigned kind, uct_iface_config_t *config);

/** A message over a link has failed, and none has arrived yet. If the link has moved to
 *  another service level, it moves back: what is connected from now on uses the first one. @a
 *  bus: the control plane's interface. With the lock of ctl. @return Whether it moves. */
int uct_varuna_link_sl_fall_back(uct_varuna_iface_t *iface, unsigned link,
                                 uct_iface_h bus);

/** Find out what the network does with what a lane sends, and the lane's own target (DC) with
 *  what it receives. When it is opened. */
void uct_varuna_lane_read_order(uct_varuna_lane_iface_t *lane);

/**
 * Find out how the queue pairs of the fast lane of a link place what comes early. Only the
 * first one is asked: UCX makes all of them in the same way, and a NIC that has died cannot be
 * asked. With the lock of ctl.
 *
 * @param [in] ep  An inner endpoint that was connected.
 */
void uct_varuna_lane_read_rx_order(uct_varuna_iface_t *iface, unsigned link, uct_ep_h ep);

/** Say what is known of the order on a link whose lanes are open; once for each NIC. */
void uct_varuna_link_log_order(uct_varuna_iface_t *iface, unsigned link);

#endif
