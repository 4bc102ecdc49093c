/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Progress of the control plane, receiving, and the main thread's part of both.
 */
#ifndef UCT_VARUNA_CTL_PROGRESS_H_
#define UCT_VARUNA_CTL_PROGRESS_H_

#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/sys/event_set.h>

/** Progress the inner interfaces, and what depends on them. Lock held.
 *  @return number of events. */
unsigned uct_varuna_ctl_progress(uct_varuna_ctl_t *ctl);

/** Main thread: handle what the async context has queued, and poll on its behalf
 *  (worth calling now and then without an event): messages go to their handlers on the
 *  bus, link events to uct_varuna_iface_link_*().
 *  @return number of events. */
unsigned uct_varuna_ctl_dispatch(uct_varuna_ctl_t *ctl);

/** Pass a message to its handler in the main thread. Lock held. */
void uct_varuna_ctl_defer(uct_varuna_ctl_t *ctl, unsigned link,
                          const uct_varuna_ctl_hdr_t *hdr, const void *body);

/** @return whether the system says that the NIC of @a link is gone. No lock. */
int uct_varuna_ctl_is_nic_gone(const uct_varuna_ctl_t *ctl, unsigned link);

/** Callbacks which varuna_ctl_open.c installs: a message, an event, a port event. */
ucs_status_t uct_varuna_ctl_am_handler(void *arg, void *data,
                                       size_t length, unsigned flags);

void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg);

void uct_varuna_ctl_port_event(void *arg, unsigned port, int is_up);

#endif
