/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The async thread's rest. See varuna_ctl_rest.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ctl_rest.h"

#include <ucs/debug/log.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

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
    unsigned num_polls = __atomic_load_n(&ctl->num_polls, __ATOMIC_RELAXED);
    int is_useful      = (num_polls != ctl->rest.num_polls) &&
                         (ctl->num_received != ctl->rest.num_received) &&
                         ((ctl->async->mode == UCS_ASYNC_MODE_THREAD_SPINLOCK) ||
                          (ctl->async->mode == UCS_ASYNC_MODE_THREAD_MUTEX));

    ctl->rest.num_polls    = num_polls;
    ctl->rest.num_received = ctl->num_received;
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
    if (__atomic_load_n(&ctl->armed, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_rest_set(ctl, 0);
    }

    return ctl->rest.is_on;
}
