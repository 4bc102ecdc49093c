/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control plane: progress of the inner interfaces in the async context, receiving
 * of control messages, inbox of the main thread. Called by iface (dispatch); what
 * is sent goes through varuna_ctl_send.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_priv.h"
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_farewell.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include "varuna_heartbeat.h"
#include <uct/ib/varuna/responder/varuna_orphan.h>
#include "varuna_ports.h"
#include "varuna_stranger.h"
#include <uct/ib/varuna/lanes/varuna_link_event.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/* Rounds of progress before others get the lock; the handler calls itself again
 * then. */
#define UCT_VARUNA_CTL_MAX_ROUNDS    256

/* Zeros behind a received body: the inner addresses in it are read by foreign
 * code, which takes their lengths from their contents */
#define UCT_VARUNA_CTL_PADDING       64

/* More than the receive queues of all links hold */
#define UCT_VARUNA_CTL_MAX_POLL      (2 * UCT_VARUNA_MAX_LINKS * 8192)

/* Complaints about peers, seconds between two */
#define UCT_VARUNA_CTL_WARN_PERIOD   1.0

void uct_varuna_ctl_signal(int fd)
{
    uint64_t one = 1;
    ssize_t ret;

    do {
        ret = write(fd, &one, sizeof(one));
    } while ((ret < 0) && (errno == EINTR));

    /* EAGAIN: it is signalled 2^64 - 1 times already */
    if ((ret < 0) && (errno != EAGAIN)) {
        ucs_error("failed to signal eventfd %d: %m", fd);
    }
}

static void uct_varuna_ctl_drain_signal(int fd)
{
    uint64_t value;
    ssize_t ret;

    do {
        ret = read(fd, &value, sizeof(value));
    } while ((ret < 0) && (errno == EINTR));
}

void uct_varuna_ctl_complain(uct_varuna_ctl_t *ctl, uint64_t uuid,
                             const char *what, const char *reason)
{
    ucs_time_t now = ucs_get_time();

    if ((ctl->warned_at != 0) &&
        (now < (ctl->warned_at +
                ucs_time_from_sec(UCT_VARUNA_CTL_WARN_PERIOD)))) {
        ++ctl->unwarned;
        ucs_debug("dropped %s of peer 0x%lx: %s", what, uuid, reason);
        return;
    }

    ucs_warn("dropped %s of peer 0x%lx: %s (%u more since the last such "
             "warning)", what, uuid, reason, ctl->unwarned);
    ctl->warned_at = now;
    ctl->unwarned  = 0;
}


/* --- Receiving --- */

/* Behind the flag that says what there is: either who arms finds that, or we find
 * that he has armed. Who has not is not told: his descriptor stays as it is. */
static void uct_varuna_ctl_wake(uct_varuna_ctl_t *ctl)
{
    if (__atomic_exchange_n(&ctl->armed, 0, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_signal(ctl->event_fd);
        __atomic_store_n(&ctl->signalled, 1, __ATOMIC_SEQ_CST);
    }
}

void uct_varuna_ctl_notify(uct_varuna_ctl_t *ctl)
{
    if (!ctl->has_events) {
        __atomic_store_n(&ctl->has_events, 1, __ATOMIC_SEQ_CST);
        uct_varuna_ctl_wake(ctl);
    }
}

void uct_varuna_ctl_post_inbox(uct_varuna_ctl_t *ctl, unsigned link,
                               const uct_varuna_ctl_hdr_t *hdr,
                               const void *body, uct_varuna_target_t *closed)
{
    size_t size = hdr->length + hdr->from_device_len + hdr->from_ctl_len;
    uct_varuna_ctl_item_t *item;

    /* CLOSE is never sent again, and there is one for each target at most */
    if ((ctl->inbox_len >= UCT_VARUNA_CTL_MAX_INBOX) && (closed == NULL)) {
        uct_varuna_ctl_complain(ctl, hdr->uuid, "a control message",
                                "too many wait for this process to call its "
                                "progress function");
        return;
    }

    item = ucs_calloc(1, sizeof(*item) + size + UCT_VARUNA_CTL_PADDING,
                      "varuna_ctl_item");
    if (item == NULL) {
        ucs_error("failed to allocate a received control message");
        return;
    }

    item->closed = closed;
    item->link   = link;
    item->hdr    = *hdr;
    memcpy(item->body, body, size);
    ucs_list_add_tail(&ctl->inbox, &item->list);
    ++ctl->inbox_len;
    uct_varuna_ctl_notify(ctl);
}

/* Whom have we asked? He alone was told the secret: only what he answers, or says of
 * a request that was his, is kept for the main thread. Of guests there are no answers
 * but PONG. */
static int uct_varuna_ctl_is_own_secret(uct_varuna_ctl_t *ctl,
                                        const uct_varuna_ctl_hdr_t *hdr,
                                        const void *body)
{
    const uct_varuna_ctl_reject_t *rej = body;
    uint64_t uuid                      = (hdr->type == UCT_VARUNA_CTL_REJECT) ?
                                         rej->dest : hdr->uuid;

    if (((hdr->type == UCT_VARUNA_CTL_PONG) &&
         (uct_varuna_peer_find(ctl, uuid, hdr->secret) != NULL))) {
        return 1;
    }

    return (hdr->secret == uct_varuna_secret_of(&ctl->iface->secret_key, uuid)) &&
           ((hdr->type != UCT_VARUNA_CTL_REJECT) ||
            (rej->type != UCT_VARUNA_CTL_PING) ||
            uct_varuna_heartbeat_has_asked(ctl, rej->dest, hdr));
}

static void uct_varuna_ctl_handle_msg(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const void *body)
{
    uct_varuna_target_t *target;

    ucs_log(uct_varuna_ctl_log_level(hdr->type),
            "rc_varuna: received %s vqp=%u epoch=%u of 0x%lx on %s",
            uct_varuna_ctl_type_name(hdr->type), hdr->vqp, hdr->epoch,
            hdr->uuid, uct_varuna_link_name(ctl->iface, link));

    if (uct_varuna_msg_has(hdr->type, UCT_VARUNA_MSG_FLAG_ANSWER) &&
        !uct_varuna_ctl_is_own_secret(ctl, hdr, body)) {
        ucs_debug("dropped %s of 0x%lx, which nobody here has asked",
                  uct_varuna_ctl_type_name(hdr->type), hdr->uuid);
        ++ctl->iface->target_stats.mismatched;
        return;
    }

    uct_varuna_orphan_heard(ctl, hdr);
    switch (hdr->type) {
    case UCT_VARUNA_CTL_OPEN_REQ:
        uct_varuna_target_handle_open(ctl, link, hdr, body);
        break;
    case UCT_VARUNA_CTL_FENCE_REQ:
        uct_varuna_target_handle_fence(ctl, link, hdr, body);
        break;
    case UCT_VARUNA_CTL_PING:
        uct_varuna_heartbeat_handle_ping(ctl, link, hdr);
        break;
    case UCT_VARUNA_CTL_PONG:
        uct_varuna_heartbeat_handle_pong(ctl, hdr, body);
        break;
    case UCT_VARUNA_CTL_PORTS:
        uct_varuna_ports_handle(ctl, link, hdr, body);
        break;
    case UCT_VARUNA_CTL_PROXY_REQ:
        uct_varuna_proxy_handle_req(ctl->proxy, link, hdr, body);
        break;
    case UCT_VARUNA_CTL_CLOSE:
        target = uct_varuna_target_handle_close(ctl, link, hdr);
        if (target != NULL) {
            uct_varuna_ctl_post_inbox(ctl, link, hdr, body, target);
        }
        break;
    case UCT_VARUNA_CTL_CLOSE_REP:
        uct_varuna_farewell_answered(ctl, hdr);
        break;
    case UCT_VARUNA_CTL_CONNECT_REQ:
        uct_varuna_target_handle_connect(ctl, link, hdr, body);
        break;
    default: /* Replies */
        uct_varuna_ctl_post_inbox(ctl, link, hdr, body, NULL);
        break;
    }
}

ucs_status_t uct_varuna_ctl_am_handler(void *arg, void *data,
                                       size_t length, unsigned flags)
{
    uct_varuna_ctl_link_t *link     = arg;
    uct_varuna_ctl_t *ctl           = link->ctl;
    const uct_varuna_ctl_hdr_t *hdr = data;
    const char *reason;
    ucs_status_t status;

    (void)flags;
    if (ctl->iface->ctl != ctl) {
        return UCS_OK; /* We are not open yet, so it is not for us */
    }

    status = uct_varuna_parse_ctl(data, length, &reason);
    if ((status == UCS_OK) && (hdr->dest != ctl->iface->uuid)) {
        ++ctl->iface->target_stats.stale;
        uct_varuna_stranger_refuse(ctl, link->index, hdr, UCS_ERR_CONNECTION_RESET);
        return UCS_OK;
    } else if (status == UCS_OK) {
        uct_varuna_ctl_handle_msg(ctl, link->index, hdr, hdr + 1);
        return UCS_OK;
    }

    uct_varuna_ctl_complain(ctl, (length >= sizeof(*hdr)) ? hdr->uuid : 0,
                            "a control message", reason);
    if (status == UCS_ERR_UNSUPPORTED) {
        uct_varuna_stranger_refuse_old(ctl, link->index, data, length);
    }

    return UCS_OK;
}


/* --- Progress, async context --- */

unsigned uct_varuna_ctl_progress(uct_varuna_ctl_t *ctl)
{
    unsigned count;

    if (ctl->progressing) {
        return 0;
    }

    ctl->progressing = 1;
    count            = uct_worker_progress(ctl->worker);
    ctl->progressing = 0;

    uct_varuna_ctl_reap_eps(ctl, 0);
    if ((count > 0) && !ucs_list_is_empty(&ctl->queue)) {
        uct_varuna_ctl_flush_queue(ctl);
        uct_varuna_ctl_reap_eps(ctl, 0);
    }

    if ((count > 0) && ctl->ports.pending) {
        uct_varuna_ports_announce(ctl);
        uct_varuna_ctl_reap_eps(ctl, 0);
    }

    if (ctl->proxy != NULL) {
        if (!uct_varuna_home_is_at_rest(&ctl->proxy->home)) {
            uct_varuna_leave_step(ctl->proxy);
        }
        if (!ucs_list_is_empty(&ctl->proxy->jobs)) {
            uct_varuna_proxy_run(ctl->proxy);
        }
    }

    return count;
}

static ucs_status_t uct_varuna_ctl_arm(uct_varuna_ctl_t *ctl)
{
    ucs_status_t result = UCS_OK;
    ucs_status_t status;
    unsigned i;

    for (i = 0; (i < ctl->num_links) && (result != UCS_ERR_BUSY); ++i) {
        status = uct_iface_event_arm(ctl->links[i].inner,
                                     UCT_EVENT_SEND_COMP | UCT_EVENT_RECV);
        if (status != UCS_OK) {
            result = status; /* A dead NIC is no reason to ignore the others */
        }
    }

    return result;
}

/* Progress all links until they are idle and armed. */
static void uct_varuna_ctl_progress_and_arm(uct_varuna_ctl_t *ctl)
{
    unsigned rounds = 0;
    ucs_status_t status;

    do {
        while (uct_varuna_ctl_progress(ctl) > 0) {
            if (++rounds >= UCT_VARUNA_CTL_MAX_ROUNDS) {
                goto kick;
            }
        }

        status = uct_varuna_ctl_arm(ctl);
        if ((status != UCS_OK) && (status != UCS_ERR_BUSY)) {
            /* A dead NIC: the others go on when their events come */
            ucs_debug("failed to arm a control interface: %s",
                      ucs_status_string(status));
            return;
        }

        if (++rounds >= UCT_VARUNA_CTL_MAX_ROUNDS) {
            goto kick;
        }
    } while ((status == UCS_ERR_BUSY) || (uct_varuna_ctl_progress(ctl) > 0));

    return;

kick:
    uct_varuna_ctl_signal(ctl->kick_fd);
}

void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg)
{
    uct_varuna_ctl_t *ctl = arg;

    (void)events;
    if (fd == ctl->kick_fd) {
        uct_varuna_ctl_drain_signal(fd);
    }

    uct_varuna_ctl_progress_and_arm(ctl);
}

int uct_varuna_ctl_is_nic_gone(const uct_varuna_ctl_t *ctl, unsigned link)
{
    return (ctl->detector != NULL) &&
           uct_varuna_detector_is_gone(ctl->detector, link);
}

/* Port event: the main thread is told */
void uct_varuna_ctl_port_event(void *arg, unsigned port, int is_up)
{
    uct_varuna_ctl_t *ctl = arg;

    if (is_up) {
        ctl->up_map     |= UCS_BIT(port);
        ctl->ports_down &= ~UCS_BIT(port);
    } else {
        ctl->down_map   |= UCS_BIT(port);
        ctl->up_map     &= ~UCS_BIT(port);
        ctl->ports_down |= UCS_BIT(port);
    }

    uct_varuna_ports_changed(ctl, port);
    if (ctl->proxy != NULL) {
        uct_varuna_leave_step(ctl->proxy);
    }
    uct_varuna_ctl_notify(ctl);
}


/* --- Dispatch, main thread --- */

int uct_varuna_ctl_has_events(const uct_varuna_ctl_t *ctl)
{
    /* Nobody but us progresses the control plane where there is no thread */
    return __atomic_load_n(&ctl->has_events, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&ctl->poked, __ATOMIC_SEQ_CST) ||
           (ctl->async->mode == UCS_ASYNC_MODE_POLL);
}

void uct_varuna_ctl_poke(uct_varuna_ctl_t *ctl)
{
    __atomic_store_n(&ctl->poked, 1, __ATOMIC_SEQ_CST);
    uct_varuna_ctl_wake(ctl);
}

ucs_status_t uct_varuna_ctl_event_arm(uct_varuna_ctl_t *ctl)
{
    if (__atomic_exchange_n(&ctl->signalled, 0, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_drain_signal(ctl->event_fd);
    }

    __atomic_store_n(&ctl->armed, 1, __ATOMIC_SEQ_CST);
    if (uct_varuna_ctl_has_events(ctl)) {
        __atomic_store_n(&ctl->armed, 0, __ATOMIC_SEQ_CST);
        return UCS_ERR_BUSY;
    }

    return UCS_OK;
}

int uct_varuna_ctl_event_fd(const uct_varuna_ctl_t *ctl)
{
    return ctl->event_fd;
}

/* Learn the links which peer @a uuid, a known one, tells in its full address. */
static void uct_varuna_ctl_learn(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                 const void *addr, size_t length)
{
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_peer_t *peer;
    const char *reason;
    ucs_status_t status;

    uct_varuna_ctl_lock(ctl);
    status = uct_varuna_parse_addr(NULL, addr, length, &parsed, &reason);
    if ((status == UCS_OK) && (parsed.uuid != uuid)) {
        reason = "it is another peer's";
        status = UCS_ERR_INVALID_ADDR;
    }

    if (status != UCS_OK) {
        uct_varuna_ctl_complain(ctl, uuid, "an address", reason);
    } else if (uct_varuna_peer_open(ctl, &parsed, 0, &peer) == UCS_OK) {
        uct_varuna_peer_put(ctl, peer);
    }
    uct_varuna_ctl_unlock(ctl);
}

/* The endpoint that has asked for a reply. @return NULL if it is closed; its id may
 * be used again. */
static uct_varuna_ep_t *
uct_varuna_ctl_whose(const uct_varuna_ctl_t *ctl,
                     const uct_varuna_ctl_item_t *item)
{
    uct_varuna_ep_t *ep = uct_varuna_ep_find(ctl->iface, item->hdr.vqp);

    return ((ep != NULL) && (ep->peer->secret == item->hdr.secret)) ? ep : NULL;
}

static void uct_varuna_ctl_dispatch_reply(uct_varuna_ctl_t *ctl,
                                          const uct_varuna_ctl_item_t *item)
{
    const uct_varuna_ctl_hdr_t *hdr = &item->hdr;
    const uct_varuna_ctl_open_rep_t *rep;
    uct_varuna_ep_t *ep;

    if (uct_varuna_stale_is_gone(hdr, item->body)) {
        uct_varuna_stale_fail_eps(ctl->iface, (const void*)item->body);
        return;
    }

    ep  = uct_varuna_ctl_whose(ctl, item);
    rep = (hdr->type == UCT_VARUNA_CTL_OPEN_REP) ? (const void*)item->body : NULL;
    if (ep == NULL) {
        ucs_debug("dropped %s for the closed vqp %u",
                  uct_varuna_ctl_type_name(hdr->type), hdr->vqp);
    } else {
        if (rep != NULL) {
            uct_varuna_ctl_learn(ctl, ep->peer->uuid,
                                 UCS_PTR_BYTE_OFFSET(rep + 1, rep->rkey_len),
                                 rep->addr_len);
        }
        uct_varuna_ep_handle_ctl(ep, hdr, item->body, item->link);
    }

    if (rep != NULL) {
        uct_varuna_stale_close_opening(ctl, item->link, hdr, rep);
    }
}

/* Messages which were acknowledged before CLOSE was sent are in our completion
 * queues: they are delivered before their vQP is forgotten. */
static void uct_varuna_ctl_poll_lanes(uct_varuna_ctl_t *ctl)
{
    unsigned count = 0;
    unsigned polled;

    do {
        polled = uct_varuna_lanes_progress(ctl->iface);
        count += polled;
    } while ((polled > 0) && (count < UCT_VARUNA_CTL_MAX_POLL));
}

static void uct_varuna_ctl_dispatch_item(uct_varuna_ctl_t *ctl,
                                         const uct_varuna_ctl_item_t *item)
{
    const uct_varuna_ctl_hdr_t *hdr = &item->hdr;

    switch (hdr->type) {
    case UCT_VARUNA_CTL_CONNECT_REQ:
        uct_varuna_target_connect(ctl, item->link, hdr, item->body);
        break;
    case UCT_VARUNA_CTL_FENCE_REQ:
        uct_varuna_target_handle_acked(ctl, hdr, item->body);
        break;
    case UCT_VARUNA_CTL_CLOSE:
        uct_varuna_ctl_poll_lanes(ctl);
        if (item->closed->orphan) {
            uct_varuna_orphan_keep(ctl, item->closed);
        } else {
            uct_varuna_target_destroy(ctl, item->closed);
        }
        break;
    default:
        uct_varuna_ctl_dispatch_reply(ctl, item);
        break;
    }
}

static unsigned uct_varuna_ctl_dispatch_links(uct_varuna_ctl_t *ctl,
                                              unsigned down_map,
                                              unsigned up_map)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        if (down_map & UCS_BIT(i)) {
            uct_varuna_link_down(ctl->iface, i,
                                       UCT_VARUNA_LINK_CAUSE_PORT,
                                       "port event");
            ++count;
        }
        if (up_map & UCS_BIT(i)) {
            uct_varuna_link_up(ctl->iface, i,
                                     UCT_VARUNA_LINK_CAUSE_PORT);
            ++count;
        }
    }

    return count;
}

unsigned uct_varuna_ctl_dispatch(uct_varuna_ctl_t *ctl)
{
    unsigned count, down_map, up_map;
    uct_varuna_ctl_item_t *item;
    ucs_list_link_t items;

    ucs_list_head_init(&items);
    uct_varuna_ctl_lock(ctl);

    /* On a busy machine we are here long before the async thread gets a CPU */
    uct_varuna_ctl_progress(ctl);

    __atomic_store_n(&ctl->poked, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ctl->has_events, 0, __ATOMIC_SEQ_CST);

    ucs_list_splice_tail(&items, &ctl->inbox);
    ucs_list_head_init(&ctl->inbox);
    ctl->inbox_len = 0;
    down_map       = ctl->down_map;
    up_map         = ctl->up_map;
    ctl->down_map  = 0;
    ctl->up_map    = 0;
    uct_varuna_ctl_unlock(ctl);

    count = uct_varuna_ctl_dispatch_links(ctl, down_map, up_map) +
            uct_varuna_heartbeat_dispatch(ctl);
    uct_varuna_spares_progress(ctl);
    uct_varuna_target_logs_progress(ctl);
    while (!ucs_list_is_empty(&items)) {
        item = ucs_list_extract_head(&items, uct_varuna_ctl_item_t, list);
        uct_varuna_ctl_dispatch_item(ctl, item);
        ucs_free(item);
        ++count;
    }

    return count;
}
