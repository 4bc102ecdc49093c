/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics that peers ask for. See varuna_atomic_req.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_atomic_req.h"
#include "varuna_target.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_stranger.h>
#include <uct/ib/varuna/responder/proxy/varuna_detour.h>


/* The message names the target's opening: one that was meant for an earlier target of
 * that name is refused. @return NULL if it was. */
static uct_varuna_target_t *
uct_varuna_atomic_req_target(uct_varuna_responder_t *resp, unsigned link,
                             const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_target_t *target;
    khiter_t iter;

    target = uct_varuna_target_of(resp, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_NO_ELEM);
    }

    return target;
}

static void uct_varuna_atomic_req_by_cpu(void *arg, unsigned link,
                                         const uct_varuna_ctl_hdr_t *hdr,
                                         const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target  = uct_varuna_atomic_req_target(resp, link, hdr);
    unsigned from;

    if ((target != NULL) &&
        uct_varuna_detour_is_over(resp->proxy, &target->cpu, link, hdr, body, &from)) {
        uct_varuna_cpu_request(resp->ctl, &target->cpu, from, hdr, body);
    }
}

static void uct_varuna_atomic_req_by_nic(void *arg, unsigned link,
                                         const uct_varuna_ctl_hdr_t *hdr,
                                         const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target  = uct_varuna_atomic_req_target(resp, link, hdr);

    if (target != NULL) {
        uct_varuna_proxy_request(resp->proxy, &target->client, link, hdr, body);
    }
}

static void uct_varuna_atomic_req_port_changed(void *arg, unsigned link,
                                               const uct_varuna_ctl_hdr_t *hdr,
                                               const void *body)
{
    uct_varuna_responder_t *resp = arg;

    uct_varuna_detour_port_changed(resp->proxy);
}

void uct_varuna_atomic_req_init(uct_varuna_responder_t *resp)
{
    static const uct_varuna_bus_reg_t by_cpu[] = {
        {UCT_VARUNA_CTL_ATOMIC_REQ,   UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_by_cpu},
        {UCT_VARUNA_BUS_PORT_CHANGED, UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_port_changed}
    };
    static const uct_varuna_bus_reg_t by_nic[] = {
        {UCT_VARUNA_CTL_ATOMIC_REQ,   UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_by_cpu},
        {UCT_VARUNA_CTL_PROXY_REQ,    UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_by_nic}
    };

    /* Without slots nobody handles PROXY_REQ, and with them varuna_home_move.c has the ports */
    if (uct_varuna_proxy_has_slots(resp->proxy)) {
        uct_varuna_bus_register(&resp->ctl->bus, by_nic, ucs_static_array_size(by_nic), resp);
    } else {
        uct_varuna_bus_register(&resp->ctl->bus, by_cpu, ucs_static_array_size(by_cpu), resp);
    }
}
