/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_lane_order.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_lane_order.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>

static uct_varuna_nic_t *uct_varuna_lane_nic(const uct_varuna_lane_iface_t *lane)
{
    return &lane->iface->md->nics[lane->iface->links[lane->link].nic];
}

/* --- Service levels --- */

ucs_status_t uct_varuna_link_order_request(uct_varuna_iface_t *iface, unsigned link,
                                           unsigned kind, uct_iface_config_t *config)
{
    uct_varuna_link_t *own    = &iface->links[link];
    uct_varuna_nic_t *nic     = &iface->md->nics[own->nic];
    uct_varuna_sl_move_t move = {
        .is_allowed = iface->config.ordered_sl && !own->sl_is_dead
    };
    ucs_status_t status;

    status = uct_varuna_tl_order_request(nic->md, nic->dev_name, kind, config, &move);
    if (status != UCS_OK) {
        return status;
    }

    own->sl_move = move;
    if (move.is_done && !nic->sl_move_is_logged) {
        nic->sl_move_is_logged = 1;
        ucs_diag("rc_varuna: %s: traffic moves from service level %u, on which packets may "
                 "overtake each other, to %u", nic->dev_name, move.from, move.to);
    }

    return UCS_OK;
}

int uct_varuna_link_sl_fall_back(uct_varuna_iface_t *iface, unsigned link,
                                 uct_iface_h bus)
{
    uct_varuna_link_t *own = &iface->links[link];
    uct_varuna_lane_iface_t *lane;
    unsigned kind;

    if (!own->sl_move.is_done) {
        return 0;
    }

    own->sl_is_dead      = 1;
    own->sl_move.is_done = 0;
    uct_varuna_mlx5_order_set_sl(bus, own->sl_move.from);
    for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
        lane = &own->lanes[kind];
        if (lane->inner != NULL) {
            uct_varuna_mlx5_order_set_sl(lane->inner, own->sl_move.from);
            lane->order = UCT_VARUNA_ORDER_NONE; /* Also for what is connected already */
        }
    }

    ucs_diag("rc_varuna: %s: nothing arrives over service level %u, so traffic moves back to "
             "%u, on which packets may overtake each other",
             uct_varuna_lane_nic(uct_varuna_link_base(own))->dev_name, own->sl_move.to,
             own->sl_move.from);
    return 1;
}

/* --- What is known --- */

/* Warn once that the user claims an order which a device denies */
static void uct_varuna_order_warn(const uct_varuna_lane_iface_t *lane, const char *who)
{
    uct_varuna_nic_t *nic = uct_varuna_lane_nic(lane);

    if ((lane->iface->config.order != UCT_VARUNA_ORDER_POLICY_CERTAIN) ||
        nic->order_is_warned) {
        return;
    }

    nic->order_is_warned = 1;
    ucs_warn("rc_varuna: UCX_RC_VARUNA_ORDER=certain is ignored on %s, where %s may place "
             "writes out of order", nic->dev_name, who);
}

static void uct_varuna_lane_set_rx_order(uct_varuna_lane_iface_t *lane, uct_ep_h ep)
{
    lane->rx_order         = uct_varuna_tl_order_of_qp(lane->inner, ep, lane->kind);
    lane->is_rx_order_read = (ep != NULL);
    if ((lane->rx_order == UCT_VARUNA_ORDER_NONE) &&
        (lane->order != UCT_VARUNA_ORDER_CERTAIN)) {
        uct_varuna_order_warn(lane, "queue pairs");
    }
}

void uct_varuna_lane_read_order(uct_varuna_lane_iface_t *lane)
{
    uint16_t mask;
    uint8_t sl;

    lane->order = uct_varuna_tl_order(lane->inner, lane->kind, &sl, &mask);
    if (lane->order == UCT_VARUNA_ORDER_NONE) {
        uct_varuna_order_warn(lane, "the network");
    }

    uct_varuna_lane_set_rx_order(lane, NULL);
}

void uct_varuna_lane_read_rx_order(uct_varuna_iface_t *iface, unsigned link, uct_ep_h ep)
{
    uct_varuna_lane_iface_t *lane = &iface->links[link].lanes[iface->links[link].set->fast];

    if (!lane->is_rx_order_read) {
        uct_varuna_lane_set_rx_order(lane, ep);
    }
}

static void uct_varuna_order_log_unknown(const uct_varuna_iface_t *iface,
                                         const char *dev_name, unsigned sl)
{
    ucs_info("rc_varuna: %s: it is unknown whether packets of service level %u stay in "
             "order: they may overtake each other", dev_name, sl);
    if (iface->config.log == UCT_VARUNA_LOG_ALL) {
        ucs_diag("rc_varuna: %s: the log on RC lanes proves nothing if it is unknown whether "
                 "writes stay in order: UCX_RC_VARUNA_LOG=fallback gives the same guarantees "
                 "without its messages. If the network keeps the order, say "
                 "UCX_RC_VARUNA_ORDER=certain", dev_name);
    }
}

/* Assumes that the DC targets of the peers are configured as ours is */
void uct_varuna_link_log_order(uct_varuna_iface_t *iface, unsigned link)
{
    const uct_varuna_lane_iface_t *lane = uct_varuna_link_base(&iface->links[link]);
    uct_varuna_nic_t *nic               = uct_varuna_lane_nic(lane);
    uct_varuna_order_t order            = uct_varuna_order_of_lane(
            iface->config.order, lane->order, lane->rx_order);
    uint16_t mask;
    uint8_t sl;

    if (nic->order_is_logged) {
        return;
    }

    nic->order_is_logged = 1;
    (void)uct_varuna_tl_order(lane->inner, lane->kind, &sl, &mask);
    if (order == UCT_VARUNA_ORDER_UNKNOWN) {
        uct_varuna_order_log_unknown(iface, nic->dev_name, sl);
    } else if (lane->order == UCT_VARUNA_ORDER_CERTAIN) {
        ucs_info("rc_varuna: %s: packets of service level %u stay in order "
                 "(ooo_sl_mask 0x%04x)", nic->dev_name, sl, mask);
    } else if (lane->rx_order == UCT_VARUNA_ORDER_CERTAIN) {
        ucs_info("rc_varuna: %s: writes stay in order, as queue pairs drop what comes "
                 "before its predecessors", nic->dev_name);
    } else if (order == UCT_VARUNA_ORDER_CERTAIN) {
        ucs_info("rc_varuna: %s: packets of service level %u stay in order, as "
                 "UCX_RC_VARUNA_ORDER says", nic->dev_name, sl);
    } else if (lane->order == UCT_VARUNA_ORDER_NONE) {
        ucs_diag("rc_varuna: %s: packets of service level %u may overtake each other "
                 "(ooo_sl_mask 0x%04x), so log entries alone prove nothing. If there is a "
                 "service level in order, name it in UCX_IB_SL, or let "
                 "UCX_RC_VARUNA_ORDERED_SL=y find it; otherwise take one out of "
                 "ar_sl_mask in the subnet manager", nic->dev_name, sl, mask);
    } else {
        ucs_diag("rc_varuna: %s: queue pairs may place writes before earlier ones, so log "
                 "entries alone prove nothing", nic->dev_name);
    }
}
