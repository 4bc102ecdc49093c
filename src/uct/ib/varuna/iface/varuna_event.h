/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The event descriptor of the interface.
 */
#ifndef UCT_VARUNA_EVENT_H_
#define UCT_VARUNA_EVENT_H_

#include "varuna_tl_iface.h"

/** As uct_iface_event_fd_get() and uct_iface_event_arm(). */
ucs_status_t uct_varuna_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p);
ucs_status_t uct_varuna_iface_event_arm(uct_iface_h tl_iface, unsigned events);

/** Open the event descriptor. The lanes and the control plane are open. */
ucs_status_t uct_varuna_iface_open_event_fd(uct_varuna_tl_iface_t *iface);


#endif
