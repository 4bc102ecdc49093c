/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Answers to the requester's control messages: each goes to the endpoint that has
 * asked, if that is still there. Main thread, but for CLOSE_REP, whose endpoint is gone.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_requester.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_ep.h"
#include "varuna_sm.h"

#include <ucs/debug/log.h>

/* --- Late answers --- */

/* Either the process that was asked does not exist any more, and the one
 * that has its queue pairs now refuses (varuna_ctl_send.c); or an endpoint was closed
 * before its request to open arrived, which was on its way over another link. */

/* @return Whether a message says that a peer which we have asked does not exist any more. */
static int uct_varuna_stale_is_gone(const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    const uct_varuna_ctl_reject_t *rej = body;

    return (hdr->type == UCT_VARUNA_CTL_REJECT) &&
           (rej->type == UCT_VARUNA_CTL_PING) &&
           (rej->status == UCS_ERR_CONNECTION_RESET);
}

/* Fail all endpoints to that peer. */
static void uct_varuna_stale_fail_eps(uct_varuna_iface_t *iface,
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

/* OPEN_REP has come. If no endpoint wants what it opened, the request was late, and its
 * endpoint is closed: close the target as well, or it would stay open. */
static void uct_varuna_stale_close_opening(uct_varuna_ctl_t *ctl, unsigned link,
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

/* --- Answers --- */

/* @return The endpoint that has asked, NULL if it is closed. Its id may be used again,
 * by an endpoint to another peer. */
static uct_varuna_ep_t *
uct_varuna_answer_ep(uct_varuna_iface_t *iface, const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_ep_t *ep = uct_varuna_ep_find(iface, hdr->vqp);

    if ((ep != NULL) && (ep->peer->secret == hdr->secret)) {
        return ep;
    }

    ucs_debug("dropped %s for the closed vqp %u",
              uct_varuna_ctl_type_name(hdr->type), hdr->vqp);
    return NULL;
}

uct_varuna_ep_t *
uct_varuna_answer_opened_ep(uct_varuna_iface_t *iface,
                            const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_ep(iface, hdr);

    if ((ep == NULL) || (ep->remote.opening == hdr->opening)) {
        return ep;
    }

    ucs_debug("ep %p: vQP %u: dropped %s for another opening", ep, ep->id,
              uct_varuna_ctl_type_name(hdr->type));
    ++iface->ctl->stats.mismatched;
    return NULL;
}

static void uct_varuna_answer_open(void *arg, unsigned link,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const void *body)
{
    uct_varuna_iface_t *iface            = arg;
    const uct_varuna_ctl_open_rep_t *rep = body;
    uct_varuna_ep_t *ep                  = uct_varuna_answer_ep(iface, hdr);

    if (ep != NULL) {
        uct_varuna_peer_learn(iface->ctl, ep->peer->uuid,
                              UCS_PTR_BYTE_OFFSET(rep + 1, rep->rkey_len),
                              rep->addr_len);
        uct_varuna_ep_handle_open_rep(ep, hdr, rep);
        uct_varuna_ep_open_lane(ep, uct_varuna_ctl_now(iface->ctl));
    }

    uct_varuna_stale_close_opening(iface->ctl, link, hdr, rep);
}

static void uct_varuna_answer_connect(void *arg, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const void *body)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_opened_ep(arg, hdr);

    if (ep != NULL) {
        uct_varuna_ep_handle_connect_rep(ep, hdr, body);
    }
}

static void uct_varuna_answer_fence(void *arg, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const void *body)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_opened_ep(arg, hdr);

    if (ep != NULL) {
        uct_varuna_ep_handle_fence_rep(ep, hdr, body);
    }
}

static void uct_varuna_answer_reject(void *arg, unsigned link,
                                     const uct_varuna_ctl_hdr_t *hdr,
                                     const void *body)
{
    uct_varuna_ep_t *ep;

    if (uct_varuna_stale_is_gone(hdr, body)) {
        uct_varuna_stale_fail_eps(arg, body);
        return;
    }

    ep = uct_varuna_answer_opened_ep(arg, hdr);
    if (ep != NULL) {
        uct_varuna_ep_handle_reject(ep, body);
    }
}

static void uct_varuna_answer_key(void *arg, unsigned link,
                                  const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_opened_ep(arg, hdr);

    if (ep != NULL) {
        uct_varuna_ep_handle_key_rep(ep, body);
    }
}

static void uct_varuna_answer_close(void *arg, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const void *body)
{
    uct_varuna_farewell_answered(uct_varuna_requester(arg), hdr);
}

static const uct_varuna_bus_reg_t uct_varuna_answer_rows[] = {
    {UCT_VARUNA_CTL_OPEN_REP,    UCT_VARUNA_BUS_MAIN,  uct_varuna_answer_open},
    {UCT_VARUNA_CTL_CONNECT_REP, UCT_VARUNA_BUS_MAIN,  uct_varuna_answer_connect},
    {UCT_VARUNA_CTL_FENCE_REP,   UCT_VARUNA_BUS_MAIN,  uct_varuna_answer_fence},
    {UCT_VARUNA_CTL_REJECT,      UCT_VARUNA_BUS_MAIN,  uct_varuna_answer_reject},
    {UCT_VARUNA_CTL_KEY_REP,     UCT_VARUNA_BUS_MAIN,  uct_varuna_answer_key},
    {UCT_VARUNA_CTL_CLOSE_REP,   UCT_VARUNA_BUS_ASYNC, uct_varuna_answer_close}
};

void uct_varuna_answers_init(uct_varuna_iface_t *iface)
{
    uct_varuna_requester_t *requester = uct_varuna_requester(iface);

    requester->peer_part =
            uct_varuna_peer_add_part(iface->ctl, sizeof(uct_varuna_requester_peer_t));
    uct_varuna_farewell_start(requester);
    uct_varuna_bus_register(&iface->ctl->bus, uct_varuna_answer_rows,
                            ucs_static_array_size(uct_varuna_answer_rows), iface);
}
