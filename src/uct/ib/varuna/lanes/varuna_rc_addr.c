/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Connects an RC endpoint to an address that a peer sent. See varuna_rc_addr.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_rc_addr.h"
#include <uct/ib/varuna/core/varuna_ib_addr.h>

#include <ucs/debug/log.h>
#include <string.h>

/* Inner code takes lengths from what it reads */
#define UCT_VARUNA_RC_ADDR_ROOM 64

typedef struct {
    char                       device[UCT_VARUNA_RC_ADDR_ROOM];
    char                       ep[UCT_VARUNA_RC_ADDR_ROOM];
} uct_varuna_rc_addr_t;

static ucs_status_t uct_varuna_rc_addr_read(const uct_varuna_link_t *link,
                                            const uct_varuna_ctl_connect_t *msg,
                                            uct_varuna_rc_addr_t *addr)
{
    const uct_varuna_lane_iface_t *rc = uct_varuna_link_rc(link);

    if ((msg->ep_len != rc->attr.ep_addr_len) ||
        (msg->ep_len > sizeof(addr->ep)) ||
        (msg->device_len > sizeof(addr->device)) ||
        !uct_varuna_ib_addr_is_valid(msg + 1, msg->device_len,
                                     link->device_addr)) {
        ucs_debug("a peer's RC address of %u + %u bytes is not valid",
                  msg->device_len, msg->ep_len);
        return UCS_ERR_INVALID_ADDR;
    }

    memset(addr, 0, sizeof(*addr));
    memcpy(addr->device, msg + 1, msg->device_len);
    uct_varuna_ib_addr_limit_mtu(addr->device, msg->device_len,
                                 uct_varuna_ib_addr_mtu(link->device_addr,
                                                        link->device_addr_len));
    memcpy(addr->ep, UCS_PTR_BYTE_OFFSET(msg + 1, msg->device_len), msg->ep_len);
    if (!uct_iface_is_reachable(rc->inner, (uct_device_addr_t*)addr->device,
                                NULL)) {
        ucs_debug("a peer's RC address is not reached from this link");
        return UCS_ERR_UNREACHABLE;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_rc_addr_check(const uct_varuna_link_t *link,
                                      const uct_varuna_ctl_connect_t *msg)
{
    uct_varuna_rc_addr_t addr;

    return uct_varuna_rc_addr_read(link, msg, &addr);
}

ucs_status_t uct_varuna_rc_connect(const uct_varuna_link_t *link, uct_ep_h ep,
                                   const uct_varuna_ctl_connect_t *msg)
{
    uct_varuna_rc_addr_t addr;
    ucs_status_t status;

    status = uct_varuna_rc_addr_read(link, msg, &addr);
    return (status != UCS_OK) ? status :
           uct_ep_connect_to_ep(ep, (uct_device_addr_t*)addr.device,
                                (uct_ep_addr_t*)addr.ep);
}
