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

/** @return For how long the oldest request has been the same, by the clock of the scan. */
ucs_time_t uct_varuna_hang_head_age(const uct_varuna_ep_t *ep);

/** @return Since when the peer has answered nothing, by the clock of the scan: since the
 *  present lane has last completed something, if the peer is silent on all links; 0 if
 *  it is not. */
ucs_time_t uct_varuna_hang_silent_since(const uct_varuna_ep_t *ep);

/** The endpoint has a lane and unfinished requests. If its queue pair hangs, or the peer is
 *  silent on all links for GIVE_UP, the path fails. */
void uct_varuna_hang_check(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
