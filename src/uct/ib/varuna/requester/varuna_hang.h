/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs which hang: they neither complete nor fail what they were given.
 * Called by varuna_scan.c.
 */
#ifndef UCT_VARUNA_HANG_H_
#define UCT_VARUNA_HANG_H_

#include "varuna_ep.h"

/** Nothing hangs as of now: the timeout starts anew. */
void uct_varuna_hang_restart(uct_varuna_ep_t *ep);

/** The lane or its oldest request is a new one: both timeouts start anew. */
void uct_varuna_hang_new_head(uct_varuna_ep_t *ep);

/** The endpoint has a lane and unfinished requests. If its queue pair hangs, the
 *  path fails. */
void uct_varuna_hang_check(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
