/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics that peers ask for: each belongs to a target, which keeps its result. See
 * varuna_atomic_req.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_atomic_req.h"
#include "varuna_target.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_stranger.h>


/* The message names the target's opening: what was meant for a former target of that
 * name finds none. */
static void uct_varuna_atomic_req_handle(void *arg, unsigned link,
                                         const uct_varuna_ctl_hdr_t *hdr,
                                         const void *body)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_target_t *target;
    khiter_t iter;

    target = uct_varuna_target_of(resp, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_NO_ELEM);
        return;
    }

    uct_varuna_cpu_request(resp->ctl, &target->cpu, link,
                           hdr, body);
}

void uct_varuna_atomic_req_init(uct_varuna_responder_t *resp)
{
    static const uct_varuna_bus_reg_t rows[] = {
        {UCT_VARUNA_CTL_ATOMIC_REQ, UCT_VARUNA_BUS_ASYNC,
         uct_varuna_atomic_req_handle}
    };

    uct_varuna_bus_register(&resp->ctl->bus, rows, ucs_static_array_size(rows),
                            resp);
}
