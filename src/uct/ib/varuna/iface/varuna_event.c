/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The event descriptor of the interface: one epoll set, which is itself readable, for
 * the lanes, the control plane and a timer. Called by UCT.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_event.h"
#include <uct/ib/varuna/ctl/varuna_notify.h>
#include "varuna_progress.h"
#include <uct/ib/varuna/requester/varuna_scan.h>
#include <uct/ib/varuna/responder/varuna_gap.h>

#include <sys/epoll.h>
#include <unistd.h>
#include <string.h>
#include <sys/timerfd.h>

ucs_status_t uct_varuna_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_varuna_tl_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_tl_iface_t);

    iface->super.uses_events = 1;
    *fd_p                    = iface->event_fd;
    return UCS_OK;
}

ucs_status_t uct_varuna_iface_event_arm(uct_iface_h tl_iface, unsigned events)
{
    uct_varuna_tl_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_tl_iface_t);
    uct_varuna_iface_t *base     = &iface->super.super;
    ucs_status_t status;

    status = uct_varuna_lanes_event_arm(base, events);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ctl_event_arm(base->ctl);
    if (status != UCS_OK) {
        return status;
    }

    /* A recovery in progress has timers: do not sleep through them */
    return uct_varuna_wake_arm(iface);
}

static ucs_status_t uct_varuna_iface_add_event_fd(uct_varuna_tl_iface_t *iface,
                                                  int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

    if (epoll_ctl(iface->event_fd, EPOLL_CTL_ADD, fd, &event) != 0) {
        ucs_error("epoll_ctl(ADD, fd=%d) failed: %m", fd);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_iface_open_event_fd(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;
    ucs_status_t status;

    iface->event_fd = epoll_create1(EPOLL_CLOEXEC);
    if (iface->event_fd < 0) {
        ucs_error("epoll_create1() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    status = uct_varuna_iface_add_event_fd(iface, uct_varuna_ctl_event_fd(base->ctl));
    if (status == UCS_OK) {
        status = uct_varuna_iface_add_event_fd(iface, iface->wake.timer_fd);
    }

    if (status == UCS_OK) {
        status = uct_varuna_lanes_event_add(base, iface->event_fd);
    }

    if (status != UCS_OK) {
        close(iface->event_fd);
    }

    return status;
}

/* --- The timer that wakes a sleeping application --- */

/* How often a sleeping application is woken while an endpoint recovers: at first, and
 * after some times */
#define UCT_VARUNA_WAKE_FAST         1e-3 /* seconds */
#define UCT_VARUNA_WAKE_SLOW         5e-3
#define UCT_VARUNA_WAKE_FAST_COUNT   32

/* ... and while it waits for requests that might hang */
#define UCT_VARUNA_WAKE_WATCH        0.1

ucs_status_t uct_varuna_wake_init(uct_varuna_tl_iface_t *iface)
{
    iface->wake.timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                          TFD_NONBLOCK | TFD_CLOEXEC);
    if (iface->wake.timer_fd < 0) {
        ucs_error("timerfd_create() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

void uct_varuna_wake_cleanup(uct_varuna_tl_iface_t *iface)
{
    close(iface->wake.timer_fd);
}

static int uct_varuna_wake_has_hold(const uct_varuna_iface_t *iface)
{
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if (iface->link_table.links[link].damp.state == UCT_VARUNA_DAMP_HOLD) {
            return 1;
        }
    }

    return 0;
}

/* @return How long the application may sleep, seconds; 0: as long as it likes. */
static double uct_varuna_wake_sleep_time(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_requester_t *requester = &iface->super;
    uct_varuna_iface_t *base          = &requester->super;

    if (!ucs_list_is_empty(&requester->work) ||
        !ucs_list_is_empty(&base->graveyard) ||
        uct_varuna_gap_is_watching(base->responder) ||
        uct_varuna_scan_is_behind(requester)) {
        return (iface->wake.fast_wakes++ < UCT_VARUNA_WAKE_FAST_COUNT) ?
               UCT_VARUNA_WAKE_FAST : UCT_VARUNA_WAKE_SLOW;
    }

    iface->wake.fast_wakes = 0;
    return ((requester->outstanding > 0) || uct_varuna_wake_has_hold(base)) ?
           UCT_VARUNA_WAKE_WATCH : 0;
}

ucs_status_t uct_varuna_wake_arm(uct_varuna_tl_iface_t *iface)
{
    double sleep_time = uct_varuna_wake_sleep_time(iface);
    struct itimerspec timer;
    uint64_t expirations;

    if ((sleep_time == 0) && !iface->wake.timer_is_set) {
        return UCS_OK;
    }

    /* It has woken the application: there is something to progress first */
    if (iface->wake.timer_is_set &&
        (read(iface->wake.timer_fd, &expirations, sizeof(expirations)) > 0)) {
        uct_varuna_iface_pace_now(iface);
        return UCS_ERR_BUSY;
    }

    /* Setting it makes the descriptor unreadable as well */
    memset(&timer, 0, sizeof(timer));
    timer.it_value.tv_nsec = sleep_time * UCS_NSEC_PER_SEC;
    if (timerfd_settime(iface->wake.timer_fd, 0, &timer, NULL) != 0) {
        ucs_error("timerfd_settime() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    iface->wake.timer_is_set = (sleep_time > 0);
    if (iface->wake.timer_is_set) {
        uct_varuna_iface_pace_now(iface); /* The next progress call does all */
    }

    return UCS_OK;
}
