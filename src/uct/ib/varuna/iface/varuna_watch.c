/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Link states, background scan, the wake-up timer. Called by the interface's progress
 * function and by its event_arm.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_watch.h"
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_ep_ops.h>
#include <uct/ib/varuna/requester/varuna_hang.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/requester/varuna_recovery.h>
#include <uct/ib/varuna/requester/varuna_req.h>
#include <uct/ib/varuna/requester/varuna_stat.h>
#include <uct/ib/varuna/requester/varuna_swap.h>

#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define UCT_VARUNA_SCAN_EPS          16   /* endpoints per scan */

/* Silent requests which are still the oldest after this time are given a
 * completion: without one nobody can tell that they hang */
#define UCT_VARUNA_WATCH_SIGNAL      0.1  /* seconds */

/* Between two scans the clock of requests moves on by this at most: while the
 * application does not call progress, nobody looks for completions either */
#define UCT_VARUNA_WATCH_STEP        0.2  /* seconds */

/* A sleeping application is woken so often while an endpoint recovers: at first,
 * and after some times */
#define UCT_VARUNA_WAKE_FAST         1e-3 /* seconds */
#define UCT_VARUNA_WAKE_SLOW         5e-3
#define UCT_VARUNA_WAKE_FAST_COUNT   32

/* ... and so often while it waits for requests which might hang */
#define UCT_VARUNA_WAKE_WATCH        0.1

/* --- From outside --- */

static void uct_varuna_watch_wake(void *arg)
{
    uct_varuna_iface_t *iface = arg;

    uct_varuna_ctl_poke(iface->ctl);
}

static void uct_varuna_watch_quiesce(void *arg)
{
    uct_varuna_iface_t *iface = arg;

    uct_varuna_ctl_unlisten(iface->ctl);
}

void uct_varuna_watch_start(uct_varuna_iface_t *iface,
                            const uct_varuna_iface_config_t *config)
{
    uct_varuna_admin_t *admin = &iface->admin;
    unsigned link;

    admin->num_links = iface->num_links;
    admin->wake      = uct_varuna_watch_wake;
    admin->quiesce   = uct_varuna_watch_quiesce;
    admin->arg       = iface;
    for (link = 0; link < iface->num_links; ++link) {
        admin->names[link] = uct_varuna_link_name(iface, link);
    }

    uct_varuna_admin_register(admin);
    uct_varuna_admin_sock_start(config->ctl_dir);
    uct_varuna_watch_outside(iface, ucs_get_time());
}

void uct_varuna_watch_stop(uct_varuna_iface_t *iface)
{
    uct_varuna_admin_sock_stop();
    uct_varuna_admin_unregister(&iface->admin);
}

void uct_varuna_watch_outside(uct_varuna_iface_t *iface, ucs_time_t now)
{
    if (ucs_likely(!uct_varuna_admin_is_behind(&iface->admin))) {
        return;
    }

    if (uct_varuna_admin_sync(&iface->admin, &iface->link_table, now) != 0) {
        uct_varuna_iface_look_at_all(iface);
    }
}

/* --- Endpoints --- */

/* The oldest request is another one */
void uct_varuna_watch_restart(uct_varuna_ep_t *ep)
{
    ep->watch.since = uct_varuna_ep_iface(ep)->watch.clock;
    uct_varuna_hang_restart(ep);
}

/* Called for each endpoint now and then; the requests themselves bear no timer. */
static void uct_varuna_ep_watch(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_req_t *head;

    if (ep->lane.ep == NULL) {
        return;
    }

    if (ucs_queue_is_empty(&ep->reqs)) {
        if (iface->config.heartbeat_idle) {
            uct_varuna_heartbeat_use(ep->peer, ep->lane.link, now);
        }
        return;
    }

    uct_varuna_heartbeat_use(ep->peer, ep->lane.link, now);
    head = ucs_queue_head_elem_non_empty(&ep->reqs, uct_varuna_req_t, queue);
    if (!(head->flags & UCT_VARUNA_REQ_FLAG_WATCHED)) {
        head->flags |= UCT_VARUNA_REQ_FLAG_WATCHED;
        uct_varuna_watch_restart(ep);
        return;
    }

    if ((ep->silent > 0) && !ep->want_signal &&
        ((uct_varuna_ep_iface(ep)->watch.clock - ep->watch.since) >=
         ucs_time_from_sec(UCT_VARUNA_WATCH_SIGNAL))) {
        ep->want_signal = 1;
        uct_varuna_ep_add_work(ep);
    }

    uct_varuna_hang_check(ep, now);
}

/* --- Scan --- */

void uct_varuna_watch_scan(uct_varuna_iface_t *iface, ucs_time_t now)
{
    unsigned num_eps = iface->eps.size;
    unsigned i;
    void *ptr;

    if (now < iface->watch.at) {
        return;
    }

    iface->watch.at         = now + ucs_time_from_sec(UCT_VARUNA_SCAN_PERIOD);
    iface->watch.clock     += ucs_min(now - iface->watch.scanned_at,
                                      ucs_time_from_sec(UCT_VARUNA_WATCH_STEP));
    iface->watch.scanned_at = now;
    uct_varuna_link_tick(&iface->link_table, now);
    uct_varuna_admin_publish(&iface->admin, &iface->link_table);
    for (i = 0; i < ucs_min(num_eps, UCT_VARUNA_SCAN_EPS); ++i) {
        iface->watch.next = (iface->watch.next + 1) % num_eps;
        if (ucs_ptr_array_lookup(&iface->eps, iface->watch.next, ptr)) {
            uct_varuna_ep_watch(ptr, now);
            uct_varuna_ep_scan(ptr, now);
            uct_varuna_stat_publish(ptr);
        }
    }
    iface->watch.left -= ucs_min(iface->watch.left, UCT_VARUNA_SCAN_EPS);
}

/* --- Timer --- */

ucs_status_t uct_varuna_watch_init(uct_varuna_iface_t *iface,
                                   const uct_varuna_iface_config_t *config)
{
    memset(&iface->watch, 0, sizeof(iface->watch));
    iface->watch.scanned_at = ucs_get_time();
    uct_varuna_pace_init(&iface->rebuild_pace, config->rebuild_rate);

    iface->watch.timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                           TFD_NONBLOCK | TFD_CLOEXEC);
    if (iface->watch.timer_fd < 0) {
        ucs_error("timerfd_create() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

void uct_varuna_watch_cleanup(uct_varuna_iface_t *iface)
{
    close(iface->watch.timer_fd);
}

static int uct_varuna_watch_has_hold(const uct_varuna_iface_t *iface)
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
static double uct_varuna_watch_sleep_time(uct_varuna_iface_t *iface)
{
    if (!ucs_list_is_empty(&iface->work) ||
        !ucs_list_is_empty(&iface->graveyard) ||
        !ucs_list_is_empty(&iface->gaps) || (iface->watch.left > 0)) {
        return (iface->watch.fast_wakes++ < UCT_VARUNA_WAKE_FAST_COUNT) ?
               UCT_VARUNA_WAKE_FAST : UCT_VARUNA_WAKE_SLOW;
    }

    iface->watch.fast_wakes = 0;
    return ((iface->outstanding > 0) || uct_varuna_watch_has_hold(iface) ||
            iface->config.heartbeat_idle) ? UCT_VARUNA_WAKE_WATCH : 0;
}

ucs_status_t uct_varuna_watch_arm(uct_varuna_iface_t *iface)
{
    double sleep_time = uct_varuna_watch_sleep_time(iface);
    struct itimerspec timer;
    uint64_t expirations;

    if ((sleep_time == 0) && !iface->watch.timer_is_set) {
        return UCS_OK;
    }

    /* It has woken the application: there is something to progress first */
    if (iface->watch.timer_is_set &&
        (read(iface->watch.timer_fd, &expirations, sizeof(expirations)) > 0)) {
        iface->scan_countdown = 1;
        return UCS_ERR_BUSY;
    }

    /* Setting it makes the descriptor unreadable as well */
    memset(&timer, 0, sizeof(timer));
    timer.it_value.tv_nsec = sleep_time * UCS_NSEC_PER_SEC;
    if (timerfd_settime(iface->watch.timer_fd, 0, &timer, NULL) != 0) {
        ucs_error("timerfd_settime() failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    iface->watch.timer_is_set = (sleep_time > 0);
    if (iface->watch.timer_is_set) {
        iface->scan_countdown = 1; /* The next progress call does all */
    }

    return UCS_OK;
}
