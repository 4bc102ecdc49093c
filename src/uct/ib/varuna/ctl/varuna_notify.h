/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Wakes the main thread when something waits for it. Any thread, no lock, unless a
 * function says otherwise.
 */
#ifndef UCT_VARUNA_NOTIFY_H_
#define UCT_VARUNA_NOTIFY_H_

#include <uct/ib/varuna/core/varuna_def.h>

/** @return nonzero when uct_varuna_ctl_dispatch() has something to do. */
int uct_varuna_ctl_has_events(const uct_varuna_ctl_t *ctl);

/** Main thread, before it waits for uct_varuna_ctl_event_fd(): it is woken once, and
 *  only if it is armed. @return UCS_ERR_BUSY if there is something to do already. */
ucs_status_t uct_varuna_ctl_event_arm(uct_varuna_ctl_t *ctl);

/** Any thread, no lock: let the main thread make a round. */
void uct_varuna_ctl_poke(uct_varuna_ctl_t *ctl);

/** File descriptor which is readable while events wait (for wake-up mode). */
int uct_varuna_ctl_event_fd(const uct_varuna_ctl_t *ctl);

/** Something waits for uct_varuna_ctl_dispatch(). Lock held. */
void uct_varuna_ctl_notify(uct_varuna_ctl_t *ctl);

/** Signal an eventfd, and take the signals back. */
void uct_varuna_ctl_signal(int fd);
void uct_varuna_ctl_drain_signal(int fd);

#endif
