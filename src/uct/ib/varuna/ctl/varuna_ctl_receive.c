/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control plane: receiving of messages, which the bus delivers, and what is left to the
 * main thread. varuna_ctl_send.c sends.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_receive.h"
#include "varuna_peer.h"
#include "varuna_ctl.h"
#include "varuna_ctl_ep.h"
#include "varuna_ctl_progress.h"
#include "varuna_heartbeat.h"
#include "varuna_bus.h"
#include "varuna_path.h"
#include "varuna_stranger.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

/* @param [in] status  Of the bus: what became of a message. */
static void uct_varuna_ctl_deferred(uct_varuna_ctl_t *ctl,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    ucs_status_t status)
{
    switch (status) {
    case UCS_OK:
        break;
    case UCS_INPROGRESS:
        uct_varuna_ctl_notify(ctl);
        break;
    case UCS_ERR_NO_RESOURCE:
        uct_varuna_ctl_complain(ctl, hdr->uuid, "a control message",
                                "too many wait for this process to call its "
                                "progress function");
        break;
    default:
        ucs_error("failed to keep a received control message: %s",
                  ucs_status_string(status));
        break;
    }
}

void uct_varuna_ctl_defer(uct_varuna_ctl_t *ctl, unsigned link,
                          const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_ctl_deferred(ctl, hdr,
                            uct_varuna_bus_defer(&ctl->bus, link, hdr, body));
}

/* An answer is accepted only from the peer that was asked, since only that peer knows
 * the secret. A REJECT names that peer in its body. Guests send no answers but PONG. */
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

/* The link works: the answer must not wait for messages sent while it did not */
static void uct_varuna_ctl_heard(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                 unsigned link)
{
    if (ucs_unlikely(peer->doubtful & UCS_BIT(link))) {
        uct_varuna_ctl_renew_ep(ctl, peer, link);
    }
}

static void uct_varuna_ctl_handle_msg(uct_varuna_ctl_t *ctl, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const void *body)
{
    uct_varuna_peer_t *peer;

    ucs_log(uct_varuna_ctl_log_level(hdr->type),
            "rc_varuna: received %s vqp=%u epoch=%u of 0x%lx on %s",
            uct_varuna_ctl_type_name(hdr->type), hdr->vqp, hdr->epoch,
            hdr->uuid, uct_varuna_link_name(ctl->iface, link));

    if (uct_varuna_msg_has(hdr->type, UCT_VARUNA_MSG_FLAG_ANSWER) &&
        !uct_varuna_ctl_is_own_secret(ctl, hdr, body)) {
        ucs_debug("dropped %s of 0x%lx, to which no request is open",
                  uct_varuna_ctl_type_name(hdr->type), hdr->uuid);
        ++ctl->stats.mismatched;
        return;
    }

    peer = uct_varuna_peer_find(ctl, hdr->uuid, hdr->secret);
    if (peer != NULL) {
        uct_varuna_peer_heard(peer, uct_varuna_ctl_now(ctl));
        uct_varuna_ctl_heard(ctl, peer, link);
        uct_varuna_peer_update_guest(ctl, peer, hdr);
    }

    uct_varuna_ctl_deferred(ctl, hdr,
                            uct_varuna_bus_deliver(&ctl->bus, link, hdr, body));
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

    status = uct_varuna_bus_check(&ctl->bus, data, length, &reason);
    if ((status == UCS_OK) && (hdr->type != UCT_VARUNA_CTL_PING) &&
        (hdr->type != UCT_VARUNA_CTL_PONG)) {
        __atomic_store_n(&ctl->events.num_received, ctl->events.num_received + 1, __ATOMIC_RELAXED);
    }

    if ((status == UCS_OK) && (hdr->dest != ctl->iface->uuid)) {
        ++ctl->stats.stale;
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


/* --- Dispatch, main thread --- */

static unsigned uct_varuna_ctl_dispatch_links(uct_varuna_ctl_t *ctl,
                                              unsigned down_map,
                                              unsigned up_map)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        if (down_map & UCS_BIT(i)) {
            uct_varuna_link_down(ctl->iface, i, UCT_VARUNA_LINK_CAUSE_PORT,
                                 "port event");
            ++count;
        }
        if (up_map & UCS_BIT(i)) {
            uct_varuna_link_up(ctl->iface, i, UCT_VARUNA_LINK_CAUSE_PORT);
            ++count;
        }
    }

    return count;
}

/* The main thread alone writes it */
static inline void uct_varuna_ctl_note_poll(uct_varuna_ctl_t *ctl)
{
    __atomic_store_n(&ctl->events.num_polls, ctl->events.num_polls + 1, __ATOMIC_RELAXED);
}

unsigned uct_varuna_ctl_num_received(const uct_varuna_ctl_t *ctl)
{
    return __atomic_load_n(&ctl->events.num_received, __ATOMIC_RELAXED);
}

/* Without the lock this is only a hint: another thread may be receiving just then. What
 * is overlooked is found by the next call. */
static int uct_varuna_ctl_has_input(const uct_varuna_ctl_t *ctl)
{
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        if (uct_varuna_tl_has_input(ctl->links[i].inner,
                                    uct_varuna_link_set(ctl->iface, i)->bus)) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_ctl_poll(uct_varuna_ctl_t *ctl)
{
    uct_varuna_ctl_note_poll(ctl);
    if (uct_varuna_ctl_has_input(ctl) && uct_varuna_ctl_try_lock(ctl)) {
        uct_varuna_ctl_progress(ctl);
        uct_varuna_ctl_unlock(ctl);
    }
}

unsigned uct_varuna_ctl_dispatch(uct_varuna_ctl_t *ctl)
{
    unsigned count, down_map, up_map;
    ucs_list_link_t items;
    int has_peer_events;

    uct_varuna_ctl_note_poll(ctl);
    if (!uct_varuna_ctl_try_lock(ctl)) {
        return 0; /* If there are events, the next call finds them */
    }

    /* On a busy machine we are here long before the async thread gets a CPU */
    uct_varuna_ctl_progress(ctl);

    __atomic_store_n(&ctl->events.poked, 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&ctl->events.pending, 0, __ATOMIC_SEQ_CST);

    ucs_list_head_init(&items);
    uct_varuna_bus_take(&ctl->bus, &items);
    down_map        = ctl->events.down_map;
    up_map          = ctl->events.up_map;
    ctl->events.down_map   = 0;
    ctl->events.up_map     = 0;
    has_peer_events = uct_varuna_peer_has_events(ctl);
    uct_varuna_ctl_unlock(ctl);

    count = uct_varuna_ctl_dispatch_links(ctl, down_map, up_map);
    if (has_peer_events) {
        count += uct_varuna_peer_events_dispatch(ctl);
    }

    return count + uct_varuna_bus_run(&ctl->bus, &items);
}
