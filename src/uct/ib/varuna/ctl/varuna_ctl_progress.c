/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control plane: progress of the inner interfaces in the async context.
 * varuna_ctl_receive.c receives.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_progress.h"
#include "varuna_ctl.h"
#include "varuna_ctl_ep.h"
#include "varuna_ctl_send.h"
#include "varuna_ports.h"
#include "varuna_bus.h"
#include "varuna_heartbeat.h"

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
                         ((ctl->async->mode == UCS_ASYNC_MODE_THREAD_SPINLOCK) ||
                          (ctl->async->mode == UCS_ASYNC_MODE_THREAD_MUTEX));

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
