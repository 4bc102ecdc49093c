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

/** Progress the inner interfaces, and what depends on them. Lock held.
 *  @return number of events. */
unsigned uct_varuna_ctl_progress(uct_varuna_ctl_t *ctl);

/** Installed by varuna_ctl_open.c: an event. */
void uct_varuna_ctl_event_handler(int fd, ucs_event_set_types_t events,
                                  void *arg);

#endif
