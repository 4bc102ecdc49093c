/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Applies what the async context has found out about paths and links.
 */
#ifndef UCT_VARUNA_PEER_EVENT_H_
#define UCT_VARUNA_PEER_EVENT_H_

#include <uct/ib/varuna/core/varuna_def.h>

/** @return Whether there is something to apply. Lock held. */
int uct_varuna_peer_has_events(uct_varuna_ctl_t *ctl);

/** Main thread: apply what was found. Lock not held. @return number of events. */
unsigned uct_varuna_peer_events_dispatch(uct_varuna_ctl_t *ctl);

#endif
