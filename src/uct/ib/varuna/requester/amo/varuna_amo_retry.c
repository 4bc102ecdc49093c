/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * When and over which link a request for an atomic is sent again, and when it is given
 * up. Called by modes proxy and extended. Main thread only.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_priv.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>

#include <ucs/debug/log.h>

static uct_varuna_retry_policy_t
uct_varuna_amo_retry_policy(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface        = uct_varuna_ep_iface(ep);
    const uct_varuna_retry_policy_t policy = {
        .interval = iface->config.ctl_timeout,
        .give_up  = iface->config.give_up
    };

    return policy;
}

void uct_varuna_amo_retry_start(uct_varuna_ep_t *ep)
{
    uct_varuna_retry_start(&ep->amo.retry, 0, uct_varuna_ep_requester(ep)->scan.clock);
    ep->amo.retry_epoch = ep->lane.epoch;
}

/* While the endpoint recovered, nothing was asked, and no answer could come. The peer has
 * taken part in the recovery, so it has its time once more. */
static void uct_varuna_amo_retry_renew(uct_varuna_ep_t *ep, ucs_time_t clock)
{
    if (ep->amo.retry_epoch != ep->lane.epoch) {
        ep->amo.retry.since = clock;
        ep->amo.retry_epoch = ep->lane.epoch;
    }
}

unsigned uct_varuna_amo_retry_next(uct_varuna_ep_t *ep)
{
    const uct_varuna_retry_policy_t policy = uct_varuna_amo_retry_policy(ep);

    return uct_varuna_retry_next(&ep->amo.retry, &policy, uct_varuna_ep_select_link(ep),
                                 ep->peer->link_map, ucs_get_time());
}

int uct_varuna_amo_retry_is_due(uct_varuna_ep_t *ep)
{
    const uct_varuna_retry_policy_t policy = uct_varuna_amo_retry_policy(ep);
    ucs_time_t clock                       = uct_varuna_ep_requester(ep)->scan.clock;

    uct_varuna_amo_retry_renew(ep, clock);
    switch (uct_varuna_retry_check(&ep->amo.retry, &policy, ucs_get_time(), clock)) {
    case UCT_VARUNA_RETRY_SEND:
        return 1;
    case UCT_VARUNA_RETRY_GIVE_UP:
        ucs_diag("ep %p: vQP %u: the peer has not executed an atomic for %.1f s: "
                 "giving up", ep, ep->id,
                 ucs_time_to_sec(clock - ep->amo.retry.since));
        uct_varuna_ep_raise_fatal(ep, UCS_ERR_ENDPOINT_TIMEOUT);
        return 0;
    default:
        return 0;
    }
}
