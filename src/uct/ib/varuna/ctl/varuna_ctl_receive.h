/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Receiving of control messages, and the main thread's part of it.
 */
#ifndef UCT_VARUNA_CTL_RECEIVE_H_
#define UCT_VARUNA_CTL_RECEIVE_H_

#include <uct/ib/varuna/core/varuna_wire.h>

/** Callback of the inner interfaces, which varuna_ctl_open.c installs; @a arg is the
 *  uct_varuna_ctl_link_t. Lock held. */
ucs_status_t uct_varuna_ctl_am_handler(void *arg, void *data,
                                       size_t length, unsigned flags);

/** Pass a message to its handler in the main thread. Lock held. */
void uct_varuna_ctl_defer(uct_varuna_ctl_t *ctl, unsigned link,
                          const uct_varuna_ctl_hdr_t *hdr, const void *body);

/** @return Messages that came until now, except for pings and their answers. No lock. */
unsigned uct_varuna_ctl_num_received(const uct_varuna_ctl_t *ctl);

/** Main thread: receive what is there on behalf of the async context, unless another
 *  thread is just doing that. Never blocks. */
void uct_varuna_ctl_poll(uct_varuna_ctl_t *ctl);

/** Main thread: handle what the async context has queued, and poll on its behalf
 *  (worth calling now and then without an event): messages go to their handlers on the
 *  bus, events of links and peers to their paths. @return number of events. */
unsigned uct_varuna_ctl_dispatch(uct_varuna_ctl_t *ctl);

#endif
