/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state OPENING: a new vQP asks the peer for a target, and then takes its first lane.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_opening.h"
#include "varuna_ep_ctl.h"
#include "varuna_ep_event.h"
#include "varuna_rebuild.h"
#include <uct/ib/varuna/ctl/varuna_addr.h>

void uct_varuna_ep_open_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if ((ep->hot.state == UCT_VARUNA_EP_OPENING) && (ep->remote.logs_addr != 0) &&
        uct_varuna_ep_take_lane(ep, now)) {
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_OPENED);
    }
}

int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now)
{
    struct {
        uct_varuna_ctl_open_req_t req;
        uint8_t                   addr[512];
    } UCS_S_PACKED body;

    if (ep->remote.logs_addr != 0) {
        /* It is being connected. Otherwise no link is usable: the scan tries */
        if (ep->next.lane.ep != NULL) {
            uct_varuna_ep_open_lane(ep, now);
        }
        if (ep->hot.state == UCT_VARUNA_EP_OPENING) {
            uct_varuna_ep_check_give_up(ep, now);
        }
        return 1;
    }

    body.req.reserved = 0;
    body.req.addr_len = uct_varuna_iface_pack_full_address(
            uct_varuna_ep_iface(ep), body.addr, sizeof(body.addr));
    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_OPEN_REQ, ep->instance,
                              &body, sizeof(body.req) + body.req.addr_len);
    uct_varuna_ep_check_give_up(ep, now);
    return 1;
}
