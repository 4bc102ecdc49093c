/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control plane: endpoints to peers, and sending on them. A message that finds no
 * resources waits in a queue; an endpoint that fails is made anew by the next
 * message. Called by whoever has something to say: ep and recovery, heartbeat,
 * and varuna_ctl.c with answers.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_priv.h"
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include "varuna_stranger.h"


#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>


/* --- Endpoints --- */

ucs_status_t uct_varuna_ctl_ep_create(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_device_addr_t *device_addr,
                                      const uct_iface_addr_t *iface_addr,
                                      uct_varuna_ctl_ep_t **ep_p)
{
    uct_varuna_ctl_ep_t *ep;
    uct_ep_params_t params;
    ucs_status_t status;
    khiter_t iter;
    int ret;

    ep = ucs_malloc(sizeof(*ep), "varuna_ctl_ep");
    if (ep == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                        UCT_EP_PARAM_FIELD_DEV_ADDR |
                        UCT_EP_PARAM_FIELD_IFACE_ADDR;
    params.iface      = ctl->links[link].inner;
    params.dev_addr   = device_addr;
    params.iface_addr = iface_addr;
    status            = uct_ep_create(&params, &ep->inner);
    if (status != UCS_OK) {
        ucs_debug("failed to create a control endpoint on link %u: %s", link,
                  ucs_status_string(status));
        goto err_free;
    }

    iter = kh_put(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)ep->inner, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        status = UCS_ERR_NO_MEMORY;
        goto err_destroy;
    }

    ep->peer                = NULL;
    ep->link                = link;
    ep->failed              = 0;
    kh_val(&ctl->eps, iter) = ep;
    *ep_p                   = ep;
    return UCS_OK;

err_destroy:
    uct_ep_destroy(ep->inner);
err_free:
    ucs_free(ep);
    return status;
}

static ucs_status_t uct_varuna_ctl_open_ep(uct_varuna_ctl_t *ctl,
                                           uct_varuna_peer_t *peer,
                                           unsigned link)
{
    uct_varuna_ctl_ep_t *ep;
    ucs_status_t status;

    status = uct_varuna_ctl_ep_create(ctl, link, peer->links[link].device_addr,
                                      peer->links[link].ctl_addr, &ep);
    if (status == UCS_OK) {
        ep->peer            = peer;
        peer->ctl_eps[link] = ep->inner;
    }

    return status;
}

void uct_varuna_ctl_drop_ep(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, int failed)
{
    uct_ep_h inner = peer->ctl_eps[link];
    uct_varuna_ctl_ep_t *ep;
    khiter_t iter;

    if (inner == NULL) {
        return;
    }

    iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)inner);
    ucs_assert(iter != kh_end(&ctl->eps));
    ep                  = kh_val(&ctl->eps, iter);
    ep->peer            = NULL;
    ep->failed          = failed;
    peer->ctl_eps[link] = NULL;
    ucs_list_add_tail(&ctl->dead_eps, &ep->list);
}

void uct_varuna_ctl_ep_destroy(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep)
{
    khiter_t iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)ep->inner);

    kh_del(uct_varuna_ctl_eps, &ctl->eps, iter);
    uct_varuna_doubt_forget(ctl, ep);
    uct_ep_destroy(ep->inner);
    ucs_free(ep);
}

void uct_varuna_ctl_reap_eps(uct_varuna_ctl_t *ctl, int force)
{
    uct_varuna_ctl_ep_t *ep, *tmp;

    if (ctl->progressing) {
        return; /* A callback of such an endpoint may be running */
    }

    ucs_list_for_each_safe(ep, tmp, &ctl->dead_eps, list) {
        /* UCX would use the buffer of a message again which is on its way; and of a
         * failed endpoint that has messages left UCX would not give the DCI back:
         * when all DCIs are lost, so are all messages */
        if (!force &&
            (ep->failed ? !uct_varuna_mlx5_is_drained(ep->inner,
                                                      UCT_VARUNA_LANE_DC) :
             (uct_ep_flush(ep->inner, UCT_FLUSH_FLAG_LOCAL, NULL) !=
              UCS_OK))) {
            continue;
        }

        ucs_list_del(&ep->list);
        uct_varuna_ctl_ep_destroy(ctl, ep);
    }
}

/* A control endpoint failed: the next message makes a new one. Who sent a request
 * sends it again, on another link if it likes. */
ucs_status_t uct_varuna_ctl_err_handler(void *arg, uct_ep_h inner,
                                        ucs_status_t status)
{
    uct_varuna_ctl_link_t *link = arg;
    uct_varuna_ctl_t *ctl       = link->ctl;
    uct_varuna_ctl_ep_t *ep;
    khiter_t iter;

    iter = kh_get(uct_varuna_ctl_eps, &ctl->eps, (uintptr_t)inner);
    if (iter == kh_end(&ctl->eps)) {
        return UCS_OK;
    }

    ep = kh_val(&ctl->eps, iter);
    if (ep->peer == NULL) {
        ep->failed = 1; /* It was to be destroyed anyway */
        return UCS_OK;
    }

    ucs_debug("rc_varuna: control messages to peer 0x%lx on %s fail: %s",
              ep->peer->uuid, uct_varuna_link_name(ctl->iface, ep->link),
              ucs_status_string(status));
    ep->peer->failed |= UCS_BIT(ep->link);
    uct_varuna_doubt_failed(ep->peer, ep->link);
    uct_varuna_ctl_drop_ep(ctl, ep->peer, ep->link, 1);
    return UCS_OK;
}


/* --- Sending --- */

typedef struct uct_varuna_ctl_pack_arg {
    const void                 *data;
    size_t                     length;
} uct_varuna_ctl_pack_arg_t;

static size_t uct_varuna_ctl_pack_cb(void *dest, void *arg)
{
    const uct_varuna_ctl_pack_arg_t *pack = arg;

    memcpy(dest, pack->data, pack->length);
    return pack->length;
}

ucs_status_t uct_varuna_ctl_ep_post(uct_ep_h inner, const void *data,
                                    size_t length)
{
    uct_varuna_ctl_pack_arg_t pack = {data, length};
    ssize_t packed                 = uct_ep_am_bcopy(inner, UCT_VARUNA_AM_ID_CTL,
                                                     uct_varuna_ctl_pack_cb,
                                                     &pack, 0);

    return (packed >= 0) ? UCS_OK : (ucs_status_t)packed;
}

ucs_status_t uct_varuna_ctl_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link, const void *data, size_t length)
{
    ucs_status_t status;
    int retry;

    if (!uct_varuna_doubt_may_post(ctl, peer, link)) {
        return UCS_ERR_UNREACHABLE; /* Who asks asks again */
    }

    for (retry = 0; retry < 2; ++retry) {
        if (peer->ctl_eps[link] == NULL) {
            status = uct_varuna_ctl_open_ep(ctl, peer, link);
            if (status != UCS_OK) {
                return status;
            }
        }

        status = uct_varuna_ctl_ep_post(peer->ctl_eps[link], data, length);
        if (status == UCS_OK) {
            uct_varuna_doubt_posted(ctl, peer, link);
            return UCS_OK;
        } else if (status == UCS_ERR_NO_RESOURCE) {
            return status;
        }

        /* It has failed since its last message */
        uct_varuna_ctl_drop_ep(ctl, peer, link, 1);
    }

    ucs_debug("rc_varuna: failed to send a control message to peer 0x%lx on %s: "
              "%s", peer->uuid, uct_varuna_link_name(ctl->iface, link),
              ucs_status_string(status));
    return status;
}

void uct_varuna_ctl_msg_free(uct_varuna_ctl_t *ctl,
                             uct_varuna_ctl_msg_t *msg)
{
    ucs_list_del(&msg->list);
    --ctl->queue_len;
    uct_varuna_peer_put(ctl, msg->peer);
    ucs_free(msg);
}

/* Make room: a dropped reply is asked for again. */
static void uct_varuna_ctl_queue_trim(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_msg_t *msg, *victim;
    const uct_varuna_ctl_hdr_t *hdr;

    victim = NULL;
    ucs_list_for_each(msg, &ctl->queue, list) {
        hdr = (const uct_varuna_ctl_hdr_t*)msg->data;
        if (uct_varuna_msg_has(hdr->type, UCT_VARUNA_MSG_FLAG_ANSWER)) {
            victim = msg;
            break;
        }
    }

    if (victim == NULL) {
        victim = ucs_list_head(&ctl->queue, uct_varuna_ctl_msg_t, list);
    }

    hdr = (const uct_varuna_ctl_hdr_t*)victim->data;
    ucs_debug("%u control messages wait for resources: dropped %s to peer "
              "0x%lx", ctl->queue_len, uct_varuna_ctl_type_name(hdr->type),
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

    while (ctl->queue_len >= UCT_VARUNA_CTL_MAX_QUEUE) {
        uct_varuna_ctl_queue_trim(ctl);
    }

    ++peer->refcount;
    msg->peer   = peer;
    msg->link   = link;
    msg->length = length;
    memcpy(msg->data, data, length);
    ucs_list_add_tail(&ctl->queue, &msg->list);
    ++ctl->queue_len;
    return UCS_OK;
}

void uct_varuna_ctl_flush_queue(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_msg_t *msg, *tmp;
    ucs_status_t status;

    /* There may be a thousand messages, and this is done for each one more: a peer's
     * are tried until one finds no resources */
    ++ctl->queue_pass;
    ucs_list_for_each_safe(msg, tmp, &ctl->queue, list) {
        if (msg->peer->queue_full[msg->link] == ctl->queue_pass) {
            continue;
        }

        status = uct_varuna_ctl_post(ctl, msg->peer, msg->link, msg->data,
                                     msg->length);
        if (status != UCS_ERR_NO_RESOURCE) {
            uct_varuna_ctl_msg_free(ctl, msg);
        } else {
            msg->peer->queue_full[msg->link] = ctl->queue_pass;
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
    memcpy(pos, own->device_addr, own->device_addr_len);
    memcpy(pos + own->device_addr_len, inner->addr, inner->attr.iface_addr_len);
    return hdr->from_device_len + hdr->from_ctl_len;
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
    if (length > 0) {
        memcpy(hdr + 1, body, length);
    }

    if (room > 0) {
        total += uct_varuna_ctl_append_from(ctl, link, hdr);
    }

    uct_varuna_ctl_lock(ctl);
    /* The caller may know it only from the table, and the last reference to it may be
     * that of a message which is dropped to make room for this one */
    ++peer->refcount;
    ucs_log(uct_varuna_ctl_log_level(type),
            "rc_varuna: send %s vqp=%u epoch=%u to peer 0x%lx on %s",
            uct_varuna_ctl_type_name(type), hdr->vqp, hdr->epoch, peer->uuid,
            uct_varuna_link_name(ctl->iface, link));
    if (ucs_list_is_empty(&ctl->queue)) {
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

void uct_varuna_ctl_reply(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                          unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                          uct_varuna_ctl_type_t type, const void *body,
                          size_t length)
{
    /* If it can't be sent, it is asked for again */
    (void)uct_varuna_ctl_send(ctl, peer, uct_varuna_peer_reply_link(peer, link),
                              type, hdr, body, length);
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
