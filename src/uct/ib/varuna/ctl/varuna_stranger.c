/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Strangers. A process ends, another one starts, and its queue pairs may have the
 * numbers of the old one's: messages to the old process reach the new one. It must not
 * act on them (an endpoint opened so would write to the memory of another program). It
 * refuses them, so that their senders do not wait until the give-up time.
 *
 * Such a message may come from any process, and its address may be false. So there is
 * one endpoint for all strangers on a link, which takes one of the places of doubtful
 * peers; it is used for another stranger only when the last answer has left; and answers
 * are limited in rate, and in the time that they take. The answer is the message's own
 * header, so it reveals nothing, and only the sender of the message accepts it.
 * Called by varuna_ctl_receive.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_stranger.h"
#include "varuna_ctl.h"
#include "varuna_ctl_ep.h"
#include "varuna_ctl_send.h"
#include "varuna_peer.h"

#include <ucs/debug/log.h>
#include <string.h>

/* Answers in a second */
#define UCT_VARUNA_STRANGER_RATE     1000.0

/* Creating an endpoint may resolve an address, which takes a second if there is no
 * answer: with uct_varuna_pace_spent() that is 5 % of the thread's time */
#define UCT_VARUNA_STRANGER_SHARE    (20 / UCT_VARUNA_PACE_SHARE)


/* --- Answers --- */

/* @return The sender's address on @a link, NULL if the message has none there. */
static const uct_varuna_parsed_link_t *
uct_varuna_stranger_locate(const uct_varuna_ctl_t *ctl, unsigned link,
                           const uct_varuna_ctl_hdr_t *hdr,
                           uct_varuna_parsed_addr_t *parsed)
{
    const uct_varuna_ctl_open_req_t *req    = (const void*)(hdr + 1);
    const uct_varuna_parsed_link_t *located = NULL;
    const char *reason;
    ucs_status_t status;
    unsigned i;

    if (hdr->type == UCT_VARUNA_CTL_OPEN_REQ) {
        status = uct_varuna_parse_addr(NULL, req + 1, req->addr_len, parsed,
                                       &reason);
    } else {
        status = uct_varuna_parse_ctl_from(hdr, parsed);
    }

    if (status != UCS_OK) {
        return NULL;
    }

    for (i = 0; i < parsed->num_links; ++i) {
        if (((located == NULL) ||
             (parsed->links[i].port == uct_varuna_link_port(ctl->iface, link))) &&
            uct_varuna_peer_ctl_reaches(ctl->iface, link, &parsed->links[i])) {
            located = &parsed->links[i];
        }
    }

    return located;
}

void uct_varuna_stranger_drop(uct_varuna_ctl_t *ctl, unsigned link)
{
    uct_varuna_stranger_t *stranger = &ctl->links[link].stranger;

    if (stranger->ep != NULL) {
        ucs_list_add_tail(&ctl->dead_eps, &stranger->ep->list);
        stranger->ep = NULL;
    }
}

/* The endpoint to that address, of which there is one: it's that already, or what was
 * sent on it has left. @return NULL if it can't be had now. */
static uct_varuna_ctl_ep_t *
uct_varuna_stranger_ep(uct_varuna_ctl_t *ctl, unsigned link,
                       const uct_varuna_parsed_link_t *remote, ucs_time_t now)
{
    uct_varuna_stranger_t *stranger = &ctl->links[link].stranger;
    uct_varuna_stranger_t wanted;

    memset(&wanted, 0, sizeof(wanted));
    memcpy(wanted.device_addr, remote->device_addr, remote->device_len);
    memcpy(wanted.ctl_addr, remote->ctl_addr, remote->ctl_len);
    if ((stranger->ep != NULL) && !stranger->ep->failed &&
        !memcmp(stranger->device_addr, wanted.device_addr,
                sizeof(wanted.device_addr)) &&
        !memcmp(stranger->ctl_addr, wanted.ctl_addr, sizeof(wanted.ctl_addr))) {
        return stranger->ep;
    }

    if ((stranger->ep != NULL) &&
        !uct_varuna_ctl_ep_is_drained(ctl, stranger->ep)) {
        return NULL;
    }

    uct_varuna_stranger_drop(ctl, link);
    if (!uct_varuna_reach_allow(ctl, link, remote->device_addr,
                                       remote->device_len, 0) ||
        (uct_varuna_ctl_ep_create(ctl, link,
                                  (uct_device_addr_t*)wanted.device_addr,
                                  (uct_iface_addr_t*)wanted.ctl_addr,
                                  &wanted.ep) != UCS_OK)) {
        return NULL;
    }

    uct_varuna_pace_spent(&ctl->strangers.pace, UCT_VARUNA_STRANGER_SHARE *
                          (uct_varuna_ctl_now(ctl) - now));
    *stranger = wanted;
    return stranger->ep;
}

static int uct_varuna_stranger_answer(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_varuna_parsed_link_t *remote,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      ucs_status_t status)
{
    struct {
        uct_varuna_ctl_hdr_t    hdr;
        uct_varuna_ctl_reject_t body;
    } UCS_S_PACKED msg;
    ucs_time_t now = uct_varuna_ctl_now(ctl);
    uct_varuna_ctl_ep_t *ep;

    if (!uct_varuna_pace_take(&ctl->strangers.pace, now)) {
        return 0;
    }

    ep = uct_varuna_stranger_ep(ctl, link, remote, now);
    if ((ep == NULL) || !uct_varuna_doubt_admit(ctl, ep)) {
        return 0;
    }

    memset(&msg, 0, sizeof(msg));
    msg.hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
    msg.hdr.version = UCT_VARUNA_WIRE_VERSION;
    msg.hdr.type    = UCT_VARUNA_CTL_REJECT;
    msg.hdr.length  = sizeof(msg.body);
    msg.hdr.dest    = hdr->uuid;
    msg.hdr.uuid    = hdr->dest; /* Ours is not for everybody */
    msg.hdr.secret  = hdr->secret;
    msg.hdr.opening = hdr->opening;
    msg.hdr.vqp     = hdr->vqp;
    msg.hdr.epoch   = hdr->epoch;
    msg.body.dest   = hdr->dest;
    msg.body.type   = hdr->type;
    msg.body.status = status;
    return uct_varuna_ctl_ep_post(ep->inner, &msg, sizeof(msg)) == UCS_OK;
}

static void uct_varuna_stranger_tell(uct_varuna_ctl_t *ctl, unsigned link,
                                     const uct_varuna_parsed_link_t *remote,
                                     const uct_varuna_ctl_hdr_t *hdr,
                                     ucs_status_t status)
{
    if ((remote != NULL) &&
        uct_varuna_stranger_answer(ctl, link, remote, hdr, status)) {
        ++ctl->stats.answered;
        ucs_debug("rc_varuna: refused %s vqp=%u epoch=%u of stranger 0x%lx: %s",
                  uct_varuna_ctl_type_name(hdr->type), hdr->vqp, hdr->epoch,
                  hdr->uuid, ucs_status_string(status));
    } else {
        ++ctl->stats.ignored;
        ucs_debug("rc_varuna: dropped %s vqp=%u of stranger 0x%lx",
                  uct_varuna_ctl_type_name(hdr->type), hdr->vqp, hdr->uuid);
    }
}

void uct_varuna_stranger_refuse(uct_varuna_ctl_t *ctl, unsigned link,
                                const uct_varuna_ctl_hdr_t *hdr,
                                ucs_status_t status)
{
    uct_varuna_parsed_addr_t parsed;

    uct_varuna_stranger_tell(ctl, link,
                             uct_varuna_stranger_locate(ctl, link, hdr, &parsed),
                             hdr, status);
}

void uct_varuna_stranger_refuse_old(uct_varuna_ctl_t *ctl, unsigned link,
                                    const void *data, size_t length)
{
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_ctl_hdr_t hdr;

    if (uct_varuna_parse_ctl_old(data, length, &hdr, &parsed) != UCS_OK) {
        return;
    }

    uct_varuna_stranger_tell(ctl, link,
                             uct_varuna_peer_ctl_reaches(ctl->iface, link,
                                                         &parsed.links[0]) ?
                             &parsed.links[0] : NULL,
                             &hdr, UCS_ERR_UNSUPPORTED);
}

void uct_varuna_strangers_init(uct_varuna_ctl_t *ctl)
{
    kh_init_inplace(uct_varuna_ports, &ctl->strangers.ports);
    uct_varuna_pace_init(&ctl->strangers.pace, UCT_VARUNA_STRANGER_RATE);
}

void uct_varuna_strangers_cleanup(uct_varuna_ctl_t *ctl)
{
    unsigned link;

    for (link = 0; link < ctl->num_links; ++link) {
        uct_varuna_stranger_drop(ctl, link);
    }
    kh_destroy_inplace(uct_varuna_ports, &ctl->strangers.ports);
}

void uct_varuna_ctl_reject(uct_varuna_ctl_t *ctl, unsigned link,
                           const uct_varuna_ctl_hdr_t *hdr, ucs_status_t status)
{
    uct_varuna_peer_t *peer = uct_varuna_peer_find(ctl, hdr->uuid, hdr->secret);
    uct_varuna_ctl_reject_t body;

    ucs_debug("rc_varuna: refused %s vqp=%u epoch=%u of peer 0x%lx: %s",
              uct_varuna_ctl_type_name(hdr->type), hdr->vqp, hdr->epoch,
              hdr->uuid, ucs_status_string(status));
    if (peer == NULL) {
        uct_varuna_stranger_refuse(ctl, link, hdr, status);
        return;
    }

    body.dest     = hdr->dest;
    body.type     = hdr->type;
    body.reserved = 0;
    body.status   = status;
    uct_varuna_ctl_reply(ctl, peer, link, hdr, UCT_VARUNA_CTL_REJECT, &body,
                         sizeof(body));
}
