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

    if (target != NULL) {
        uct_varuna_cpu_request(resp->ctl, &target->cpu, link, hdr, body);
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

void uct_varuna_atomic_req_init(uct_varuna_responder_t *resp)
{
    static const uct_varuna_bus_reg_t rows[] = {
        {UCT_VARUNA_CTL_ATOMIC_REQ, UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_by_cpu},
        {UCT_VARUNA_CTL_PROXY_REQ,  UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_by_nic}
    };

    /* Without a home NIC nobody handles PROXY_REQ */
    uct_varuna_bus_register(&resp->ctl->bus, rows, resp->proxy->joined ? 2 : 1, resp);
}
