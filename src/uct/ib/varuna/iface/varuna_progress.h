/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Progress of the interface.
 */
#ifndef UCT_VARUNA_PROGRESS_H_
#define UCT_VARUNA_PROGRESS_H_

#include "varuna_tl_iface.h"

/** As uct_iface_progress(), and enabling and disabling it. */
unsigned uct_varuna_iface_progress(uct_iface_h tl_iface);
void uct_varuna_iface_progress_enable(uct_iface_h tl_iface, unsigned flags);
void uct_varuna_iface_progress_disable(uct_iface_h tl_iface, unsigned flags);

/** Initialize the pace of slow-path work. */
void uct_varuna_iface_init_pace(uct_varuna_tl_iface_t *iface);

/* --- The event descriptor --- */

/* The event descriptor of the interface. */

/** As uct_iface_event_fd_get() and uct_iface_event_arm(). */
ucs_status_t uct_varuna_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_varuna_iface_event_arm(uct_iface_h tl_iface, unsigned events);

/** Open the event descriptor. The lanes and the control plane are open. */
ucs_status_t uct_varuna_iface_open_event_fd(uct_varuna_tl_iface_t *iface);

/* --- The timer --- */

/* The timer that wakes an application that sleeps although an endpoint recovers, a
 * hold-down expires, or requests might hang. Main thread. */

ucs_status_t uct_varuna_wake_init(uct_varuna_tl_iface_t *iface);

void uct_varuna_wake_cleanup(uct_varuna_tl_iface_t *iface);

#endif
