/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links that an endpoint avoids. See varuna_avoid.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_avoid.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>

#include <ucs/debug/log.h>

/* --- Generations of the peer's NICs --- */

static void uct_varuna_ep_forget_keys(uct_varuna_ep_t *ep, unsigned nic)
{
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (uct_varuna_req_info(req)->user_key) {
            req->keys[nic] = UCT_INVALID_RKEY;
        }
    }
    uct_varuna_devices_forget_keys(ep, nic);
    if ((ep->remote.logs_addr != 0) &&
        (((uct_varuna_rkey_t*)ep->remote.log_bundle.rkey)->generations[nic] !=
         ep->keyless.generations[nic])) {
        uct_varuna_rkey_remove(uct_varuna_ep_iface(ep)->md->ib,
                               (uct_varuna_rkey_t*)ep->remote.log_bundle.rkey, nic);
    }
}

void uct_varuna_ep_renew_keys(uct_varuna_ep_t *ep)
{
    const uct_varuna_peer_link_t *far;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->returned) {
        far = &ep->peer->links[link];
        /* Another link to that NIC may not have heard of its present life */
        if (ep->keyless.generations[far->nic] < far->generation) {
            ep->keyless.generations[far->nic] = far->generation;
            uct_varuna_ep_forget_keys(ep, far->nic);
        }
    }
}

void uct_varuna_ep_check_log_key(uct_varuna_ep_t *ep)
{
    uct_varuna_rkey_t *rkey = (uct_varuna_rkey_t*)ep->remote.log_bundle.rkey;
    const uct_varuna_peer_link_t *far;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map) {
        far = &ep->peer->links[link];
        if (rkey->generations[far->nic] != far->generation) {
            uct_varuna_rkey_remove(uct_varuna_ep_iface(ep)->md->ib, rkey, far->nic);
        }
    }
}

/* --- Links without a key --- */

/* Links over which an endpoint cannot reach memory. */

unsigned uct_varuna_ep_logless_links(const uct_varuna_ep_t *ep)
{
    const uct_varuna_rkey_t *rkey = (const uct_varuna_rkey_t*)ep->remote.log_bundle.rkey;
    const uct_varuna_peer_link_t *far;
    unsigned map = 0;
    unsigned link;

    if (ep->remote.logs_addr == 0) {
        return 0; /* Not known yet */
    }

    ucs_for_each_bit(link, ep->peer->link_map) {
        far = &ep->peer->links[link];
        if ((rkey->keys[far->nic % UCT_VARUNA_MAX_LINKS] == UCT_INVALID_RKEY) ||
            (rkey->generations[far->nic % UCT_VARUNA_MAX_LINKS] != far->generation)) {
            map |= UCS_BIT(link);
        }
    }

    return map;
}

unsigned uct_varuna_ep_keyless_links(const uct_varuna_ep_t *ep)
{
    unsigned map = uct_varuna_ep_logless_links(ep);

    if (!uct_varuna_backoff_is_due(&ep->keyless.backoff,
                                   uct_varuna_ctl_now(uct_varuna_ep_iface(ep)->ctl))) {
        map |= ep->keyless.links;
    }

    return map;
}

void uct_varuna_ep_avoid_links(uct_varuna_ep_t *ep, unsigned links, unsigned refused)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_time_t now            = uct_varuna_ctl_now(iface->ctl);

    /* It is not the next failure in a row if it was good for longer than the last distance */
    if ((ep->keyless.backoff.failures > 0) &&
        (now > (ep->keyless.backoff.due +
                uct_varuna_backoff_distance(&ep->keyless.backoff)))) {
        (void)uct_varuna_backoff_succeeded(&ep->keyless.backoff);
    }

    if (uct_varuna_backoff_is_due(&ep->keyless.backoff, now)) {
        ep->keyless.links   = 0;
        ep->keyless.refused = 0;
    }

    ep->keyless.links   |= links;
    ep->keyless.refused |= refused;
    if (uct_varuna_backoff_failed(&ep->keyless.backoff, UCS_ERR_NO_MEMORY, now) &&
        (refused & UCS_BIT(ep->lane.link))) {
        ucs_diag("rc_varuna: ep %p: a NIC of %s has not registered the memory of a request: "
                 "other links are used", ep, uct_varuna_link_name(iface, ep->lane.link));
    }
}

/* Whether a NIC of ours has not registered what a request reads or writes here */
static int uct_varuna_req_misses_local(const uct_varuna_req_t *req, unsigned nic)
{
    const uct_varuna_md_t *md = uct_varuna_ep_iface(req->ep)->md;
    unsigned i;

    switch (uct_varuna_req_info(req)->place) {
    case UCT_VARUNA_REQ_IN_BCOPY:
        return uct_varuna_md_is_spare(md, req->bcopy->memh, nic);
    case UCT_VARUNA_REQ_IN_IOV:
    case UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER:
        for (i = 0; i < req->iovcnt; ++i) {
            if (uct_varuna_md_is_spare(md, req->iov[i].memh, nic)) {
                return 1;
            }
        }
        return 0;
    case UCT_VARUNA_REQ_IN_DATA:
    case UCT_VARUNA_REQ_NOWHERE:
    case UCT_VARUNA_REQ_OPERANDS:
        break;
    }

    return 0;
}

/* Whether a request cannot be executed on a link, as a NIC has not registered what it accesses */
static int uct_varuna_req_misses_link(const uct_varuna_req_t *req, unsigned nic, unsigned far_nic)
{
    return uct_varuna_req_misses_local(req, nic) ||
           (uct_varuna_req_info(req)->user_key && (req->length > 0) &&
            (req->keys[far_nic] == UCT_INVALID_RKEY));
}

int uct_varuna_ep_note_keyless(uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if ((req->flags & UCT_VARUNA_REQ_FLAG_POSTED) &&
            uct_varuna_req_misses_link(req, ep->hot.nic, ep->hot.far_nic)) {
            uct_varuna_ep_avoid_links(ep, UCS_BIT(ep->lane.link), UCS_BIT(ep->lane.link));
            return 1;
        }
    }

    return 0;
}

/* @return Those of the links on which what waits lacks something. */
static unsigned uct_varuna_ep_missing_links(const uct_varuna_ep_t *ep, unsigned links)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned missing                = 0;
    uct_varuna_req_t *req;
    unsigned link;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        ucs_for_each_bit(link, links) {
            missing |= uct_varuna_req_misses_link(req, iface->links[link].nic,
                                                  ep->peer->links[link].nic) ? UCS_BIT(link) :
                                                                               0;
        }
    }

    return missing;
}

/* A NIC may be short: what one request lacks there, the next one may lack as well, though those
 * that wait just now do not. So links that have refused one are looked at only for a reason */
void uct_varuna_ep_review_avoided(uct_varuna_ep_t *ep, int has_learned)
{
    unsigned links = ep->keyless.links;

    if (uct_varuna_ring_is_empty(&ep->hot.reqs)) {
        return; /* Nobody knows what comes next */
    }

    if (!has_learned &&
        (uct_varuna_peer_usable_links(ep->peer) & ~uct_varuna_ep_keyless_links(ep))) {
        links &= ~ep->keyless.refused; /* There are other ones */
    }

    ep->keyless.links = (ep->keyless.links & ~links) | uct_varuna_ep_missing_links(ep, links);
    if ((ep->keyless.links == 0) && (has_learned || (ep->keyless.refused == 0))) {
        (void)uct_varuna_backoff_succeeded(&ep->keyless.backoff);
    }
    ep->keyless.refused &= ep->keyless.links;
}
