/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Waits for LAST_WQE_REACHED. See varuna_last_wqe.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_last_wqe.h"

#include <ucs/async/async.h>
#include <ucs/async/async_int.h>
#include <ucs/time/time.h>
#include <poll.h>

/* While UCX's thread reads the event: nanoseconds between two looks */
#define UCT_VARUNA_LAST_WQE_POLL     20000

/* What UCX knows of the event LAST_WQE_REACHED of a queue pair: it keeps this until it
 * destroys the queue pair. The lock is held. */
static uct_ib_async_event_val_t *
uct_varuna_last_wqe_find(uct_ib_device_t *dev, uint32_t qp_num)
{
    const uct_ib_async_event_t *event;
    khiter_t iter;

    for (iter = kh_begin(&dev->async_events_hash);
         iter != kh_end(&dev->async_events_hash); ++iter) {
        if (!kh_exist(&dev->async_events_hash, iter)) {
            continue;
        }

        event = &kh_key(&dev->async_events_hash, iter);
        if ((event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) &&
            (event->qp_num == qp_num)) {
            return &kh_value(&dev->async_events_hash, iter);
        }
    }

    return NULL;
}

static int uct_varuna_last_wqe_is_reached(uct_ib_device_t *dev, uint32_t qp_num)
{
    const uct_ib_async_event_val_t *event;
    int fired;

    ucs_spin_lock(&dev->async_event_lock);
    event = uct_varuna_last_wqe_find(dev, qp_num);
    fired = (event != NULL) && event->fired;
    ucs_spin_unlock(&dev->async_event_lock);
    return fired;
}

void uct_varuna_last_wqe_forget(uct_ib_device_t *dev, uint32_t qp_num)
{
    uct_ib_async_event_val_t *event;

    ucs_spin_lock(&dev->async_event_lock);
    event = uct_varuna_last_wqe_find(dev, qp_num);
    if (event != NULL) {
        event->fired = 0;
    }
    ucs_spin_unlock(&dev->async_event_lock);
}

/* UCX's handler of the device's file has no lock: only the thread that calls it for UCX may
 * call it. */
static int uct_varuna_last_wqe_is_async_thread(void)
{
    static const ucs_async_context_t thread = { .mode = UCS_ASYNC_THREAD_LOCK_TYPE };

    return ucs_async_is_from_async(&thread);
}

/* The event comes to the device's file, or to the channel of queue pairs that UCX made
 * through DEVX. UCX's handlers of both accept that there is nothing to read. */
static void uct_varuna_last_wqe_read(uct_ib_device_t *dev, int channel_fd,
                                     ucs_time_t timeout)
{
    struct timespec wait = { .tv_nsec = UCT_VARUNA_LAST_WQE_POLL };
    struct pollfd fds[2] = {
        { .fd = channel_fd,                 .events = POLLIN }, /* -1 is ignored */
        { .fd = dev->ibv_context->async_fd, .events = POLLIN }
    };
    int i, num_fds = 1;

    if (uct_varuna_last_wqe_is_async_thread()) {
        ucs_sec_to_timespec(ucs_time_to_sec(timeout), &wait);
        num_fds = 2;
    }

    if (ppoll(fds, num_fds, &wait, NULL) <= 0) {
        return;
    }

    for (i = 0; i < num_fds; ++i) {
        if (fds[i].revents & POLLIN) {
            ucs_async_dispatch_handlers(&fds[i].fd, 1, UCS_EVENT_SET_EVREAD);
        }
    }
}

ucs_status_t uct_varuna_last_wqe_wait(uct_ib_device_t *dev, uint32_t qp_num,
                                      int channel_fd, ucs_time_t deadline)
{
    ucs_time_t now;

    while (!uct_varuna_last_wqe_is_reached(dev, qp_num)) {
        now = ucs_get_time();
        if (now >= deadline) {
            return UCS_ERR_TIMED_OUT;
        }

        uct_varuna_last_wqe_read(dev, channel_fd, deadline - now);
    }

    return UCS_OK;
}
