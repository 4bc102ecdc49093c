/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links over which an endpoint cannot reach memory. See varuna_keyless.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_keyless.h"
#include "varuna_req.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md_dead.h>


/* Links on which the peer's log cannot be written */
static unsigned uct_varuna_ep_logless_links(const uct_varuna_ep_t *ep)
{
    unsigned map = 0;
    unsigned link, nic;

    if (ep->remote.logs_addr == 0) {
        return 0; /* Not known yet */
    }

    ucs_for_each_bit(link, ep->peer->link_map) {
        nic = ep->peer->links[link].nic % UCT_VARUNA_MAX_LINKS;
        if (uct_varuna_rkey_inner(ep->remote.log_bundle.rkey, nic) == UCT_INVALID_RKEY) {
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

/* Whether our NIC of the active lane has not registered what a request reads or writes here */
static int uct_varuna_req_misses_local(const uct_varuna_req_t *req)
{
    const uct_varuna_md_t *md = uct_varuna_ep_iface(req->ep)->md;
    unsigned nic              = req->ep->hot.nic;
    unsigned i;

    switch (req->type) {
    case UCT_VARUNA_REQ_AM_BCOPY:
        return uct_varuna_md_is_spare(md, ((const uct_varuna_bcopy_t*)req->bcopy)->memh, nic);
    case UCT_VARUNA_REQ_PUT_ZCOPY:
    case UCT_VARUNA_REQ_GET_ZCOPY:
    case UCT_VARUNA_REQ_AM_ZCOPY:
        for (i = 0; i < req->iovcnt; ++i) {
            if (uct_varuna_md_is_spare(md, req->iov[i].memh, nic)) {
                return 1;
            }
        }
        return 0;
    default:
        return 0;
    }
}

/* Whether the peer's NIC of the active lane has not registered what it accesses there */
static int uct_varuna_req_misses_remote(const uct_varuna_req_t *req)
{
    switch (uct_varuna_req_info(req)->kind) {
    case UCT_VARUNA_OP_PUT:
    case UCT_VARUNA_OP_GET:
    case UCT_VARUNA_OP_ATOMIC:
        return req->keys[req->ep->hot.far_nic] == UCT_INVALID_RKEY;
    default:
        return 0;
    }
}

int uct_varuna_ep_note_keyless(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_time_t now            = uct_varuna_ctl_now(iface->ctl);
    const uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if ((req->flags & UCT_VARUNA_REQ_FLAG_POSTED) &&
            (uct_varuna_req_misses_local(req) || uct_varuna_req_misses_remote(req))) {
            break;
        }
    }

    if (req == ep->hot.reqs.head) {
        return 0;
    }

    ep->keyless.links = UCS_BIT(ep->lane.link) |
                        (uct_varuna_backoff_is_due(&ep->keyless.backoff, now) ?
                         0 : ep->keyless.links);
    if (uct_varuna_backoff_failed(&ep->keyless.backoff, UCS_ERR_NO_MEMORY, now)) {
        ucs_diag("rc_varuna: ep %p: a NIC of %s has not registered the memory of a request: "
                 "other links are used", ep, uct_varuna_link_name(iface, ep->lane.link));
    }

    return 1;
}
