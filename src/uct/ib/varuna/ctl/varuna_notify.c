/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Wakes the main thread, and the handler of the async context. See varuna_notify.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_notify.h"
#include "varuna_ctl.h"

#include <errno.h>
#include <unistd.h>


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

void uct_varuna_ctl_drain_signal(int fd)
{
    uint64_t value;
    ssize_t ret;

    do {
        ret = read(fd, &value, sizeof(value));
    } while ((ret < 0) && (errno == EINTR));
}

/* Called after the flag is set that says what there is to do: either the arming thread
 * sees the flag, or we see that it is armed and wake it. If it is not armed, its
 * descriptor stays as it is. */
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
        uct_varuna_iface_set_slow(ctl->iface);
        uct_varuna_ctl_wake(ctl);
    }
}

int uct_varuna_ctl_has_events(const uct_varuna_ctl_t *ctl)
{
    /* Without an async thread, only this progresses the control plane */
    return __atomic_load_n(&ctl->has_events, __ATOMIC_SEQ_CST) ||
           __atomic_load_n(&ctl->poked, __ATOMIC_SEQ_CST) ||
           (ctl->async->mode == UCS_ASYNC_MODE_POLL);
}

void uct_varuna_ctl_poke(uct_varuna_ctl_t *ctl)
{
    __atomic_store_n(&ctl->poked, 1, __ATOMIC_SEQ_CST);
    uct_varuna_iface_set_slow(ctl->iface);
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

    if (__atomic_load_n(&ctl->rest.is_on, __ATOMIC_SEQ_CST)) {
        uct_varuna_ctl_signal(ctl->kick_fd); /* Nobody polls from now on */
    }

    return UCS_OK;
}

int uct_varuna_ctl_event_fd(const uct_varuna_ctl_t *ctl)
{
    return ctl->event_fd;
}
