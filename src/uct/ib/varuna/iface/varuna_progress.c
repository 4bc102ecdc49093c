/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Progress of the interface: the inner interfaces in each call, the bus in some, and
 * slow-path work now and then, or when there is some. Called by UCT.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_bus.h>
#include "varuna_progress.h"
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/responder/varuna_fence.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <string.h>
#include <sys/timerfd.h>

#define UCT_VARUNA_PACE_CALLS        256  /* progress calls between slow-path work, at
                                             most */
#define UCT_VARUNA_BEAT_CALLS        64   /* ... that make the application beat */
#define UCT_VARUNA_BUS_CALLS         32   /* ... between looks at the bus, the clock and a
                                             resting lane */
#define UCT_VARUNA_UNASKED           8    /* times slow-path work is done unasked,
                                             the responder's once */
#define UCT_VARUNA_BUS_HOT           64   /* calls that poll the bus after each message */

/* The next @a calls end with slow-path work */
static void uct_varuna_iface_pace_set(uct_varuna_tl_iface_t *iface, unsigned calls)
{
    iface->pace.countdown = ucs_min(calls, (iface->pace.hot > 0) ? 1 :
                                    UCT_VARUNA_BUS_CALLS);
    iface->pace.left      = calls - iface->pace.countdown;
}

void uct_varuna_iface_init_pace(uct_varuna_tl_iface_t *iface)
{
    iface->pace.calls      = UCT_VARUNA_PACE_CALLS;
    iface->pace.beat_calls = 0;
    iface->pace.start      = ucs_get_time();
    iface->pace.received   = 0;
    iface->pace.hot        = 0;
    uct_varuna_iface_pace_set(iface, UCT_VARUNA_PACE_CALLS);
}

/* The next progress call does all of it. */
static void uct_varuna_iface_pace_now(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_pace_set(iface, 1);
}

/* Read the clock after as many calls as take a scan's period: in each call of an
 * application that calls progress every 10 ms. The application beats after the number of
 * calls in which UCX gives the receive queue new buffers. */
static void uct_varuna_iface_pace(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;
    int is_early             = (iface->pace.countdown + iface->pace.left) > 0;
    ucs_time_t elapsed       = now - iface->pace.start;

    iface->pace.beat_calls += is_early ? UCT_VARUNA_BEAT_CALLS : iface->pace.calls;
    if (iface->pace.beat_calls >= UCT_VARUNA_BEAT_CALLS) {
        iface->pace.beat_calls = 0;
        __atomic_store_n(&base->app_beat, base->app_beat + 1, __ATOMIC_RELAXED);
    }

    if (!is_early) {
        iface->pace.calls = ucs_min(UCT_VARUNA_PACE_CALLS,
                                    iface->pace.calls *
                                    ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD) /
                                    ucs_max(elapsed, 1));
        iface->pace.calls = ucs_max(iface->pace.calls, 1);
    }

    iface->pace.start = now;
    uct_varuna_iface_pace_set(iface, iface->pace.calls);
}

static void uct_varuna_iface_scan(uct_varuna_tl_iface_t *iface, ucs_time_t now)
{
    uct_varuna_iface_t *base = &iface->super.super;

    uct_varuna_link_tick(&base->link_table, now);
    uct_varuna_admin_publish(&iface->admin, &base->link_table);
    uct_varuna_scan(&iface->super, now);
    if (ucs_unlikely(iface->lives != 0)) {
        uct_varuna_join_scan(iface, now);
    }
}

/* Everything beyond the inner interfaces' own progress. The result is never counted: a
 * count announces messages or completions of the caller, and UCP requires a new
 * interface to have none. */
static UCS_F_NOINLINE void uct_varuna_iface_progress_slow(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_requester_t *requester = &iface->super;
    uct_varuna_iface_t *base          = &requester->super;
    ucs_time_t now;
    int is_asked;

    /* What is stored from now on sets it again */
    is_asked = __atomic_exchange_n(&base->has_slow, 0, __ATOMIC_SEQ_CST);

    now = ucs_get_time();
    uct_varuna_iface_pace(iface, now);
    uct_varuna_moves_progress(base->ctl);
    uct_varuna_join_progress(iface);
    if (uct_varuna_ctl_has_events(base->ctl)) {
        uct_varuna_ctl_dispatch(base->ctl);
    }

    if (is_asked || ((++iface->pace.unasked % UCT_VARUNA_UNASKED) == 0)) {
        uct_varuna_responder_progress(base->responder);
    }

    if (ucs_unlikely(base->want_dry)) {
        uct_varuna_lanes_poll_dry(base);
    } else if (ucs_unlikely(!ucs_list_is_empty(&requester->work))) {
        uct_varuna_lanes_poll_more(base);
    }

    now = ucs_get_time(); /* Users' callbacks may take their time */
    uct_varuna_admin_iface_obey(iface, now);
    if (uct_varuna_scan_is_due(requester, now)) {
        uct_varuna_iface_scan(iface, now);
        uct_varuna_rest_progress(base, now);
    }

    uct_varuna_requester_progress(requester, now);
    uct_varuna_gap_progress(base->responder);
    if (ucs_unlikely(!ucs_list_is_empty(&base->graveyard))) {
        uct_varuna_graves_progress(base);
    }

    /* Nobody sets it when a control message arrives where there is no thread */
    if (!ucs_list_is_empty(&requester->work) || uct_varuna_ctl_has_events(base->ctl)) {
        uct_varuna_iface_set_slow(base);
    }
}

/* A peer that has sent something is likely to wait for an answer, and to send more */
static void uct_varuna_iface_pace_bus(uct_varuna_tl_iface_t *iface)
{
    unsigned received = uct_varuna_ctl_num_received(iface->super.super.ctl);

    if (received != iface->pace.received) {
        iface->pace.received = received;
        iface->pace.hot      = UCT_VARUNA_BUS_HOT;
    } else if (iface->pace.hot > 0) {
        --iface->pace.hot;
    }
}

/* The application calls progress less often than before */
static int uct_varuna_iface_pace_is_late(const uct_varuna_tl_iface_t *iface)
{
    return (ucs_get_time() - iface->pace.start) >=
           ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD);
}

/* What the bus brings may be slow-path work */
static UCS_F_NOINLINE unsigned uct_varuna_iface_progress_more(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (!uct_varuna_ctl_has_events(base->ctl)) {
        uct_varuna_ctl_poll(base->ctl);
    } /* Else uct_varuna_ctl_dispatch() does */

    uct_varuna_iface_pace_bus(iface);
    if (!__atomic_load_n(&base->has_slow, __ATOMIC_RELAXED) &&
        (iface->pace.left > 0) && !uct_varuna_iface_pace_is_late(iface)) {
        uct_varuna_iface_pace_set(iface, iface->pace.left);
        return 0;
    }

    uct_varuna_iface_progress_slow(iface);
    if (iface->pace.calls > UCT_VARUNA_BUS_CALLS) {
        return 0; /* Soon it is each lane's turn */
    }

    return uct_varuna_lanes_progress(base);
}

/* In every 32nd call, and while there is slow-path work */
static UCS_F_NOINLINE unsigned
uct_varuna_iface_progress_all(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;
    unsigned count           = uct_varuna_iface_progress_more(iface);

    count += uct_varuna_lanes_poll(base);
    return count + uct_varuna_lanes_poll_standby(base);
}

/* In most calls: is there slow-path work, and has a lane something? */
static UCS_F_ALWAYS_INLINE unsigned
uct_varuna_iface_progress_inline(uct_varuna_tl_iface_t *iface)
{
    uct_varuna_iface_t *base = &iface->super.super;

    if (ucs_unlikely(__atomic_load_n(&base->has_slow, __ATOMIC_RELAXED) ||
                     (--iface->pace.countdown == 0))) {
        return uct_varuna_iface_progress_all(iface);
    }

    return uct_varuna_lanes_poll(base);
}

static unsigned uct_varuna_iface_progress_cb(void *arg)
{
    return uct_varuna_iface_progress_inline(arg);
}

unsigned uct_varuna_iface_progress(uct_iface_h tl_iface)
{
    return uct_varuna_iface_progress_inline(ucs_derived_of(tl_iface,
                                                           uct_varuna_tl_iface_t));
}

/* The callbacks of the inner interfaces are not registered: this one polls them. Their
 * receives are posted since they were opened. */
void uct_varuna_iface_progress_enable(uct_iface_h tl_iface, unsigned flags)
{
    uct_base_iface_progress_enable_cb(ucs_derived_of(tl_iface, uct_base_iface_t),
                                      uct_varuna_iface_progress_cb, flags);
}

void uct_varuna_iface_progress_disable(uct_iface_h tl_iface, unsigned flags)
{
    uct_base_iface_progress_disable(tl_iface, flags);
}

/* --- The event descriptor --- */

/* The event descriptor of the interface: one epoll set, which is itself readable, for
 * the lanes, the control plane and a timer. Called by UCT. */

ucs_status_t uct_varuna_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    uct_varuna_tl_iface_t *iface = ucs_derived_of(tl_iface, uct_varuna_tl_iface_t);

    iface->super.uses_events = 1;
    *fd_p                    = iface->event_fd;
    return UCS_OK;
}

static ucs_status_t uct_varuna_wake_arm(uct_varuna_tl_iface_t *iface);

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

/* The application is about to sleep: set the timer, if we need one. @return
 * UCS_ERR_BUSY if it has expired, and there is something to progress first. */
static ucs_status_t uct_varuna_wake_arm(uct_varuna_tl_iface_t *iface)
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
