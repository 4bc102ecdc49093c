/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The event LAST_WQE_REACHED of a queue pair. See varuna_mlx5.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_compat.h"
#include "varuna_mlx5.h"

#include <ucs/async/async.h>
#include <ucs/async/async_int.h>
#include <ucs/time/time.h>
#include <uct/ib/base/ib_device.h>
#include <poll.h>

/* While UCX's thread reads the event: nanoseconds between two looks */
#define UCT_VARUNA_LAST_WQE_POLL     20000

/* What UCX knows of the event: it keeps this until it destroys the queue pair. The lock is
 * held. */
static uct_ib_async_event_val_t *
uct_varuna_last_wqe_find(const uct_varuna_last_wqe_t *event)
{
    uct_ib_device_t *dev = event->dev;
    const uct_ib_async_event_t *key;
    khiter_t iter;

    for (iter = kh_begin(&dev->async_events_hash);
         iter != kh_end(&dev->async_events_hash); ++iter) {
        if (!kh_exist(&dev->async_events_hash, iter)) {
            continue;
        }

        key = &kh_key(&dev->async_events_hash, iter);
        if ((key->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) &&
            (key->qp_num == event->qp_num)) {
            return &kh_value(&dev->async_events_hash, iter);
        }
    }

    return NULL;
}

static int uct_varuna_last_wqe_is_reached(const uct_varuna_last_wqe_t *event)
{
    const uct_ib_async_event_val_t *entry;
    int fired;

    ucs_spin_lock(&event->dev->async_event_lock);
    entry = uct_varuna_last_wqe_find(event);
    fired = (entry != NULL) && entry->fired;
    ucs_spin_unlock(&event->dev->async_event_lock);
    return fired;
}

void uct_varuna_last_wqe_forget(const uct_varuna_last_wqe_t *event)
{
    uct_ib_async_event_val_t *entry;

    ucs_spin_lock(&event->dev->async_event_lock);
    entry = uct_varuna_last_wqe_find(event);
    if (entry != NULL) {
        entry->fired = 0;
    }
    ucs_spin_unlock(&event->dev->async_event_lock);
}

static void uct_varuna_last_wqe_cancel(uct_ib_async_event_wait_t *wait)
{
    if (wait->cb_id != UCS_CALLBACKQ_ID_NULL) {
        ucs_callbackq_remove_safe(wait->cbq, wait->cb_id);
        wait->cb_id = UCS_CALLBACKQ_ID_NULL;
    }
}

/* From 1.21 on, several may wait for an event */
static void uct_varuna_last_wqe_cancel_all(uct_ib_async_event_val_t *entry)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 21)
    uct_ib_async_event_wait_t *wait;

    ucs_hlist_for_each(wait, &entry->list, link) {
        uct_varuna_last_wqe_cancel(wait);
    }
    ucs_hlist_head_init(&entry->list);
#else
    if (entry->wait_ctx != NULL) {
        uct_varuna_last_wqe_cancel(entry->wait_ctx);
        entry->wait_ctx = NULL;
    }
#endif
}

void uct_varuna_last_wqe_ignore(const uct_varuna_last_wqe_t *event)
{
    uct_ib_async_event_val_t *entry;

    ucs_spin_lock(&event->dev->async_event_lock);
    entry = uct_varuna_last_wqe_find(event);
    if (entry != NULL) {
        uct_varuna_last_wqe_cancel_all(entry);
    }
    ucs_spin_unlock(&event->dev->async_event_lock);
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
static void
uct_varuna_last_wqe_read(const uct_varuna_last_wqe_t *event, ucs_time_t timeout)
{
    struct timespec wait = { .tv_nsec = UCT_VARUNA_LAST_WQE_POLL };
    struct pollfd fds[2] = {
        { .fd = event->channel_fd,                 .events = POLLIN }, /* -1 is ignored */
        { .fd = event->dev->ibv_context->async_fd, .events = POLLIN }
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

ucs_status_t
uct_varuna_last_wqe_wait(const uct_varuna_last_wqe_t *event, ucs_time_t deadline)
{
    ucs_time_t now;

    while (!uct_varuna_last_wqe_is_reached(event)) {
        now = ucs_get_time();
        if (now >= deadline) {
            return UCS_ERR_TIMED_OUT;
        }

        uct_varuna_last_wqe_read(event, deadline - now);
    }

    return UCS_OK;
}
