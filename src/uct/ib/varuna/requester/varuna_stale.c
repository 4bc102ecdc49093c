/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Late answers. Either the process that was asked does not exist any more, and the one
 * that has its queue pairs now refuses (varuna_ctl_send.c); or an endpoint was closed
 * before its request to open arrived, which was on its way over another link.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_stale.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_ep_event.h"
#include "varuna_eps.h"
#include "varuna_ep_life.h"

#include <ucs/debug/log.h>


int uct_varuna_stale_is_gone(const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    const uct_varuna_ctl_reject_t *rej = body;

    return (hdr->type == UCT_VARUNA_CTL_REJECT) &&
           (rej->type == UCT_VARUNA_CTL_PING) &&
           (rej->status == UCS_ERR_CONNECTION_RESET);
}

void uct_varuna_stale_fail_eps(uct_varuna_iface_t *iface,
                               const uct_varuna_ctl_reject_t *rej)
{
    uct_varuna_ep_t *ep;
    unsigned i;
    void *ptr;

    ucs_ptr_array_for_each(ptr, i, &uct_varuna_requester(iface)->eps) {
        ep = ptr;
        if ((ep->peer->uuid == rej->dest) &&
            (ep->hot.state != UCT_VARUNA_EP_FAILED)) {
            ucs_diag("ep %p: vQP %u: another process has taken its peer's place",
                     ep, ep->id);
            uct_varuna_ep_raise_fatal(ep, UCS_ERR_CONNECTION_RESET);
        }
    }
}

void uct_varuna_stale_close_opening(uct_varuna_ctl_t *ctl, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_open_rep_t *rep)
{
    const uct_varuna_ep_t *ep = uct_varuna_ep_find(ctl->iface, hdr->vqp);
    const void *addr          = UCS_PTR_BYTE_OFFSET(rep + 1, rep->rkey_len);
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_peer_t *peer;
    const char *reason;

    if ((ep != NULL) && (ep->remote.opening == hdr->opening)) {
        return;
    }

    if ((uct_varuna_parse_addr(NULL, addr, rep->addr_len, &parsed, &reason) !=
         UCS_OK) || (parsed.uuid != hdr->uuid)) {
        ucs_debug("rc_varuna: vqp=%u was opened late by an unknown process", hdr->vqp);
        return;
    }

    ++uct_varuna_requester(ctl->iface)->late_opens;
    uct_varuna_ctl_lock(ctl);
    if (uct_varuna_peer_open(ctl, &parsed, 0, &peer) == UCS_OK) {
        uct_varuna_farewell_say(uct_varuna_requester(ctl->iface), peer,
                                uct_varuna_ctl_reply_link(ctl, peer, link), hdr);
        uct_varuna_peer_put(ctl, peer);
    }
    uct_varuna_ctl_unlock(ctl);
}
