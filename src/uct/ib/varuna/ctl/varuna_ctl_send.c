/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sending of control messages. One that finds no resources waits in a queue. Called by
 * all rooms that have something to say. And refusals, which go to strangers too.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl.h"
#include "varuna_peer.h"

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>



void uct_varuna_ctl_msg_free(uct_varuna_ctl_t *ctl,
                             uct_varuna_ctl_msg_t *msg)
{
    ucs_list_del(&msg->list);
    --ctl->queue.len;
    uct_varuna_peer_put(ctl, msg->peer);
    ucs_free(msg);
}

/* Make room: a dropped reply is asked for again. */
static void uct_varuna_ctl_queue_trim(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_msg_t *msg, *victim;
    const uct_varuna_ctl_hdr_t *hdr;

    victim = NULL;
    ucs_list_for_each(msg, &ctl->queue.msgs, list) {
        hdr = (const uct_varuna_ctl_hdr_t*)msg->data;
        if (uct_varuna_msg_has(hdr->type, UCT_VARUNA_MSG_FLAG_ANSWER)) {
            victim = msg;
            break;
        }
    }

    if (victim == NULL) {
        victim = ucs_list_head(&ctl->queue.msgs, uct_varuna_ctl_msg_t, list);
    }

    hdr = (const uct_varuna_ctl_hdr_t*)victim->data;
    ucs_debug("%u control messages wait for resources: dropped %s to peer "
              "0x%lx", ctl->queue.len, uct_varuna_ctl_type_name(hdr->type),
              victim->peer->uuid);
    uct_varuna_ctl_msg_free(ctl, victim);
}

static ucs_status_t uct_varuna_ctl_enqueue(uct_varuna_ctl_t *ctl,
                                           uct_varuna_peer_t *peer,
                                           unsigned link, const void *data,
                                           size_t length)
{
    uct_varuna_ctl_msg_t *msg;

    msg = ucs_malloc(sizeof(*msg) + length, "varuna_ctl_msg");
    if (msg == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    while (ctl->queue.len >= UCT_VARUNA_CTL_MAX_QUEUE) {
        uct_varuna_ctl_queue_trim(ctl);
    }

    if (ctl->queue.len == 0) {
        ucs_debug("control messages on %s wait for resources",
                  uct_varuna_link_name(ctl->iface, link));
    }

    ++peer->refcount;
    msg->peer   = peer;
    msg->link   = link;
    msg->length = length;
    memcpy(msg->data, data, length);
    ucs_list_add_tail(&ctl->queue.msgs, &msg->list);
    ++ctl->queue.len;
    return UCS_OK;
}

void uct_varuna_ctl_flush_queue(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_msg_t *msg, *tmp;
    ucs_status_t status;

    /* There may be a thousand messages, and this is done for each one more: a peer's
     * are tried until one finds no resources */
    ++ctl->queue.pass;
    ucs_list_for_each_safe(msg, tmp, &ctl->queue.msgs, list) {
        if (msg->peer->queue_full[msg->link] == ctl->queue.pass) {
            continue;
        }

        status = uct_varuna_ctl_post(ctl, msg->peer, msg->link, msg->data,
                                     msg->length);
        if (status != UCS_ERR_NO_RESOURCE) {
            uct_varuna_ctl_msg_free(ctl, msg);
        } else {
            msg->peer->queue_full[msg->link] = ctl->queue.pass;
        }
    }
}

size_t uct_varuna_ctl_append_from(const uct_varuna_ctl_t *ctl, unsigned link,
                                  uct_varuna_ctl_hdr_t *hdr)
{
    const uct_varuna_link_t *own       = &ctl->iface->links[link];
    const uct_varuna_ctl_link_t *inner = &ctl->links[link];
    char *pos                          = UCS_PTR_BYTE_OFFSET(hdr + 1,
                                                             hdr->length);

    hdr->from_device_len = own->device_addr_len;
    hdr->from_ctl_len    = inner->attr.iface_addr_len;
    hdr->from_nic        = own->nic;
    hdr->from_generation = ctl->iface->md->nics[own->nic].generation;
    memcpy(pos, own->device_addr, own->device_addr_len);
    memcpy(pos + own->device_addr_len, inner->addr, inner->attr.iface_addr_len);
    return hdr->from_device_len + hdr->from_ctl_len;
}

static void uct_varuna_ctl_fill_hdr(const uct_varuna_ctl_t *ctl,
                                    const uct_varuna_peer_t *peer,
                                    uct_varuna_ctl_type_t type,
                                    const uct_varuna_ctl_hdr_t *whose, size_t length,
                                    uct_varuna_ctl_hdr_t *hdr)
{
    memset(hdr, 0, sizeof(*hdr));
    hdr->magic   = UCT_VARUNA_WIRE_MAGIC;
    hdr->version = UCT_VARUNA_WIRE_VERSION;
    hdr->type    = type;
    hdr->length  = length;
    hdr->dest    = peer->uuid;
    hdr->uuid    = ctl->iface->uuid;
    hdr->secret  = whose->secret;
    hdr->vqp     = whose->vqp;
    hdr->epoch   = whose->epoch;
    hdr->opening = whose->opening;
}

ucs_status_t uct_varuna_ctl_send(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, uct_varuna_ctl_type_t type,
                                 const uct_varuna_ctl_hdr_t *whose,
                                 const void *body, size_t length)
{
    char data[UCT_VARUNA_CTL_MAX_MSG];
    uct_varuna_ctl_hdr_t *hdr = (uct_varuna_ctl_hdr_t*)data;
    size_t total              = sizeof(*hdr) + length;
    size_t room               = uct_varuna_ctl_has_from(type) ?
                                UCT_VARUNA_CTL_MAX_FROM : 0;
    ucs_status_t status;

    if ((link >= ctl->num_links) || !(peer->link_map & UCS_BIT(link))) {
        return UCS_ERR_UNREACHABLE;
    }

    if (ctl->iface->links[link].is_closed) {
        uct_varuna_ctl_lock(ctl);
        uct_varuna_ctl_count_lost(peer, link);
        uct_varuna_ctl_unlock(ctl);
        return UCS_ERR_UNREACHABLE;
    }

    if ((total + room) > sizeof(data)) {
        ucs_error("control message %s is too long: %zu bytes",
                  uct_varuna_ctl_type_name(type), total);
        return UCS_ERR_EXCEEDS_LIMIT;
    }

    uct_varuna_ctl_fill_hdr(ctl, peer, type, whose, length, hdr);
    if (length > 0) {
        memcpy(hdr + 1, body, length);
    }

    if (room > 0) {
        hdr->moves = peer->moves.known;
        total     += uct_varuna_ctl_append_from(ctl, link, hdr);
    }

    uct_varuna_ctl_lock(ctl);
    /* The caller may know it only from the table, and the last reference to it may be
     * that of a message which is dropped to make room for this one */
    ++peer->refcount;
    ucs_log(uct_varuna_ctl_log_level(type),
            "rc_varuna: send %s vqp=%u epoch=%u to peer 0x%lx on %s",
            uct_varuna_ctl_type_name(type), hdr->vqp, hdr->epoch, peer->uuid,
            uct_varuna_link_name(ctl->iface, link));
    if (ucs_list_is_empty(&ctl->queue.msgs)) {
        status = uct_varuna_ctl_post(ctl, peer, link, data, total);
        if (status == UCS_ERR_NO_RESOURCE) {
            status = uct_varuna_ctl_enqueue(ctl, peer, link, data, total);
        }
    } else {
        /* Don't overtake what waits */
        status = uct_varuna_ctl_enqueue(ctl, peer, link, data, total);
        uct_varuna_ctl_flush_queue(ctl);
    }
    uct_varuna_peer_put(ctl, peer);
    uct_varuna_ctl_reap_eps(ctl, 0);
    uct_varuna_ctl_unlock(ctl);
    return status;
}

unsigned uct_varuna_ctl_reply_link(const uct_varuna_ctl_t *ctl,
                                   const uct_varuna_peer_t *peer, unsigned link)
{
    unsigned other;

    if ((peer->link_map & UCS_BIT(link)) && !uct_varuna_ctl_is_nic_gone(ctl, link)) {
        return link;
    }

    ucs_for_each_bit(other, peer->link_map) {
        if (!uct_varuna_ctl_is_nic_gone(ctl, other)) {
            return other;
        }
    }

    return ucs_ffs64(peer->link_map);
}

void uct_varuna_ctl_reply(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                          unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                          uct_varuna_ctl_type_t type, const void *body,
                          size_t length)
{
    /* If it can't be sent, it is asked for again */
    (void)uct_varuna_ctl_send(ctl, peer, uct_varuna_ctl_reply_link(ctl, peer, link),
                              type, hdr, body, length);
}


/* --- Strangers --- */

/* Strangers. A process ends, another one starts, and its queue pairs may have the
 * numbers of the old one's: messages to the old process reach the new one. It must not
 * act on them (an endpoint opened so would write to the memory of another program). It
 * refuses them, so that their senders do not wait until the give-up time.
 *
 * Such a message may come from any process, and its address may be false. So there is
 * one endpoint for all strangers on a link, which takes one of the places of doubtful
 * peers; it is used for another stranger only when the last answer has left; and answers
 * are limited in rate, and in the time that they take. On Ethernet, a port to which there was
 * no address handle yet gets no answer at first: its messages are repeated, and until then a
 * thread of the NIC has found it (uct_varuna_ctl_seek_stranger()). The answer is the message's own
 * header, so it reveals nothing, and only the sender of the message accepts it.
 * Called by varuna_ctl_progress.c. */

/* Answers in a second */
#define UCT_VARUNA_STRANGER_RATE     1000.0

/* Creating endpoints takes 5 % of the thread's time at most */
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
             (parsed->links[i].nic == ctl->iface->links[link].nic)) &&
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
        !uct_varuna_ctl_seek_stranger(ctl, link, wanted.device_addr,
                                      sizeof(wanted.device_addr)) ||
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
