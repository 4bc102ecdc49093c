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
#include "varuna_ctl_rest.h"
#include "varuna_ctl_send.h"
#include "varuna_moves.h"
#include "varuna_notify.h"
#include "varuna_ping.h"
#include "varuna_ports.h"

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

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
    if ((count > 0) && !ucs_list_is_empty(&ctl->queue)) {
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
    uct_varuna_ctl_signal(ctl->kick_fd);
}

void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg)
{
    uct_varuna_ctl_t *ctl = arg;

    (void)events;
    if ((fd == ctl->kick_fd) || (fd == ctl->rest.timer_fd)) {
        uct_varuna_ctl_drain_signal(fd);
    }

    if (fd == ctl->rest.timer_fd) {
        uct_varuna_ctl_rest_expired(ctl);
    }

    uct_varuna_ctl_progress_and_arm(ctl);
}
