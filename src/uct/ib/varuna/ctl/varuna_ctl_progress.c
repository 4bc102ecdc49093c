/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control plane: progress of the inner interfaces in the async context, and receiving of
 * messages. varuna_ctl_send.c sends.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl.h"
#include "varuna_ports.h"
#include "varuna_bus.h"
#include "varuna_heartbeat.h"
#include "varuna_peer.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

/* Rounds of progress before others get the lock; the handler calls itself again
 * then. */
#define UCT_VARUNA_CTL_MAX_ROUNDS    256


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
    if ((count > 0) && !ucs_list_is_empty(&ctl->queue.msgs)) {
        uct_varuna_ctl_flush_queue(ctl);
        uct_varuna_ctl_reap_eps(ctl, 0);
    }

    if (count > 0) {
        uct_varuna_ping_go_on(ctl);
        uct_varuna_ctl_reap_eps(ctl, 0);
    }

    if ((count > 0) && ctl->ports.pending) {
        uct_varuna_ports_announce(ctl);
        uct_varuna_ctl_reap_eps(ctl, 0);
    }

    uct_varuna_bus_raise(&ctl->bus, UCT_VARUNA_BUS_PROGRESSED);
    return count;
}

/* With no @a events, take those that were raised, and let no others follow.
 * @return UCS_ERR_BUSY if there were some, otherwise UCS_OK. */
static ucs_status_t uct_varuna_ctl_arm(uct_varuna_ctl_t *ctl, unsigned events)
{
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < ctl->num_links; ++i) {
        if (ctl->links[i].inner == NULL) {
            continue; /* Its NIC is away */
        }

        status = uct_iface_event_arm(ctl->links[i].inner, events);
        if (status == UCS_ERR_BUSY) {
            return status;
        } else if (status != UCS_OK) {
            /* A dead NIC: the others go on, and what came before they were armed is
             * still to be polled */
            ucs_debug("failed to arm the control interface of %s: %s",
                      uct_varuna_link_name(ctl->iface, i), ucs_status_string(status));
        }
    }

    return UCS_OK;
}

/* Progress all links until they are idle, and armed unless the main thread polls. */
static void uct_varuna_ctl_progress_and_arm(uct_varuna_ctl_t *ctl)
{
    unsigned events = UCT_EVENT_SEND_COMP | UCT_EVENT_RECV;
    int is_decided  = 0;
    unsigned rounds = 0;
    ucs_status_t status;

    do {
        while (uct_varuna_ctl_progress(ctl) > 0) {
            if (++rounds >= UCT_VARUNA_CTL_MAX_ROUNDS) {
                goto kick;
            }
        }

        if (!is_decided && uct_varuna_ctl_rest_decide(ctl)) {
            events = 0;
        }
        is_decided = 1;

        status = uct_varuna_ctl_arm(ctl, events);
        if (++rounds >= UCT_VARUNA_CTL_MAX_ROUNDS) {
            goto kick;
        }
    } while ((status == UCS_ERR_BUSY) || (uct_varuna_ctl_progress(ctl) > 0));

    return;

kick:
    uct_varuna_ctl_signal(ctl->events.kick_fd);
}

void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg)
{
    uct_varuna_ctl_t *ctl = arg;

    (void)events;
    if ((fd == ctl->events.kick_fd) || (fd == ctl->rest.timer_fd)) {
        uct_varuna_ctl_drain_signal(fd);
    }

    if (fd == ctl->rest.timer_fd) {
        uct_varuna_ctl_rest_expired(ctl);
    }

    uct_varuna_ctl_progress_and_arm(ctl);
}

/* --- Rest of the async thread --- */

/* The async thread's rest. */

/* Longer than the time between two progress calls of a thread that polls, and so short that
 * a peer does not notice the delay when that thread stops polling */
#define UCT_VARUNA_CTL_REST_TIME     5e-4 /* seconds */


ucs_status_t uct_varuna_ctl_rest_init(uct_varuna_ctl_t *ctl)
{
    ctl->rest.timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (ctl->rest.timer_fd < 0) {
        ucs_error("timerfd_create() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

void uct_varuna_ctl_rest_cleanup(uct_varuna_ctl_t *ctl)
{
    close(ctl->rest.timer_fd);
}

static void uct_varuna_ctl_rest_set(uct_varuna_ctl_t *ctl, int is_on)
{
    __atomic_store_n(&ctl->rest.is_on, is_on, __ATOMIC_SEQ_CST);
}

static int uct_varuna_ctl_rest_set_timer(uct_varuna_ctl_t *ctl)
{
    struct itimerspec timer;

    memset(&timer, 0, sizeof(timer));
    timer.it_value.tv_nsec = UCT_VARUNA_CTL_REST_TIME * UCS_NSEC_PER_SEC;
    if (timerfd_settime(ctl->rest.timer_fd, 0, &timer, NULL) != 0) {
        ucs_error("timerfd_settime() failed: %m");
        return 0;
    }

    ctl->rest.has_timer = 1;
    return 1;
}

/* Whether messages have come, and the main thread has polled, since the last time. Without
 * a thread nobody is woken. */
static int uct_varuna_ctl_rest_is_useful(uct_varuna_ctl_t *ctl)
{
    unsigned num_polls = __atomic_load_n(&ctl->events.num_polls, __ATOMIC_RELAXED);
    int is_useful      = (num_polls != ctl->rest.num_polls) &&
                         (ctl->events.num_received != ctl->rest.num_received) &&
                         uct_varuna_ctl_has_thread(ctl);

    ctl->rest.num_polls    = num_polls;
    ctl->rest.num_received = ctl->events.num_received;
    return is_useful;
}

void uct_varuna_ctl_rest_expired(uct_varuna_ctl_t *ctl)
{
    ctl->rest.has_timer = 0;
}

int uct_varuna_ctl_rest_decide(uct_varuna_ctl_t *ctl)
{
    if ((!ctl->rest.is_on || !ctl->rest.has_timer) &&
        (!uct_varuna_ctl_rest_is_useful(ctl) || !uct_varuna_ctl_rest_set_timer(ctl))) {
        uct_varuna_ctl_rest_set(ctl, 0);
        return 0;
    }

    /* Either the main thread, before it sleeps, sees that we rest, or we see that it
     * is armed */
    uct_varuna_ctl_rest_set(ctl, 1);
    if (__atomic_load_n(&ctl->events.armed, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_rest_set(ctl, 0);
    }

    return ctl->rest.is_on;
}


/* --- Receiving --- */

/* Control plane: receiving of messages, which the bus delivers, and what is left to the
 * main thread. varuna_ctl_send.c sends. */

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
        if ((ctl->links[i].inner != NULL) &&
            uct_varuna_tl_has_input(ctl->links[i].inner,
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
