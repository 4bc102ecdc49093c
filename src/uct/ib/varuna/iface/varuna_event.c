/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The event descriptor of the interface: one epoll set, which is itself readable, for
 * the lanes, the control plane and the timer of varuna_wake.c. Called by UCT.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_event.h"
#include <uct/ib/varuna/ctl/varuna_notify.h>
#include "varuna_wake.h"

#include <sys/epoll.h>
#include <unistd.h>

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
