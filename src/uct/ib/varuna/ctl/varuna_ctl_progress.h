/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Progress of the control plane in the async context.
 */
#ifndef UCT_VARUNA_CTL_PROGRESS_H_
#define UCT_VARUNA_CTL_PROGRESS_H_

#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/lanes/varuna_detector.h>

#include <ucs/sys/event_set.h>
#include "varuna_ctl.h"

/** Progress the inner interfaces, and what depends on them. Lock held.
 *  @return number of events. */
unsigned uct_varuna_ctl_progress(uct_varuna_ctl_t *ctl);

/** Installed by varuna_ctl_open.c: an event. */
void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg);

/* --- Rest of the async thread --- */

/* The async thread's rest. While the main thread polls the bus, events would only wake
 * the async thread to find nothing, at the cost of whoever computes on its CPU, and with
 * the lock held when the main thread wants to send. So when messages have come and the
 * main thread polls, events are not armed until a timer expires at which one of the two
 * has ended. If the main thread begins to compute meanwhile, the peers wait for the timer,
 * once.
 *
 *      event: messages, and the main thread polls
 *   armed -----------------------------------------> rest --+ timer: still so
 *     ^                                               |  ^--+
 *     +-----------------------------------------------+
 *      timer: no messages, or no polls; the main thread is about to sleep
 *
 * Lock held, unless a function says otherwise. */

ucs_status_t uct_varuna_ctl_rest_init(uct_varuna_ctl_t *ctl);

void uct_varuna_ctl_rest_cleanup(uct_varuna_ctl_t *ctl);

/** The timer has expired. There may be so much to receive that another event has to come
 *  before uct_varuna_ctl_rest_decide() is called: that decides then. */
void uct_varuna_ctl_rest_expired(uct_varuna_ctl_t *ctl);

/**
 * An event was handled: nothing is left to receive.
 *
 * @return Whether events are not to be armed. Then the timer is set.
 */
int uct_varuna_ctl_rest_decide(uct_varuna_ctl_t *ctl);

#endif
