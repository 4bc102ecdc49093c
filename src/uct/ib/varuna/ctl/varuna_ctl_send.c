/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sending of control messages. One that finds no resources waits in a queue. Called by
 * all rooms that have something to say.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_send.h"
#include "varuna_ctl.h"
#include "varuna_ctl_ep.h"
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
    hdr->from_nic        = uct_varuna_wire_nic(own->nic,
                                               uct_varuna_link_port(ctl->iface, link));
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
