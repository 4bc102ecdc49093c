/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What is counted and told when an endpoint has switched; varuna_vfs.c shows the
 * counters. Called by varuna_recovery.c.
 */
#ifndef UCT_VARUNA_STAT_H_
#define UCT_VARUNA_STAT_H_

#include "varuna_ep.h"

/** The endpoint has a lane again, and all that was lost is posted there. */
void uct_varuna_stat_switched(uct_varuna_ep_t *ep);

#endif
