/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Failure recovery in epochs: the steps of the states that post, drain and repeat. Called
 * by varuna_sm.c only.
 */
#ifndef UCT_VARUNA_RECOVERY_H_
#define UCT_VARUNA_RECOVERY_H_

#include "varuna_ep_event.h"

/** Note when and why the active lane failed. */
void uct_varuna_recovery_note(uct_varuna_ep_t *ep, const char *reason);

/** Stop the active lane: it becomes the dead one. */
void uct_varuna_recovery_leave_lane(uct_varuna_ep_t *ep);

/** The endpoint is about to fail: stop its lane, and note the status. */
void uct_varuna_recovery_note_fatal(uct_varuna_ep_t *ep, ucs_status_t status);

/** Finish in any state with a lane what may be left over there: the owed log write,
 *  and a completion of what was posted silently. */
void uct_varuna_ep_step_lane(uct_varuna_ep_t *ep);

/** Post what waits: the lane's queue calls the endpoint, as it has resources now. */
void uct_varuna_ep_resume(uct_varuna_ep_t *ep);

/* A step in the state of that name. @return nonzero to be called again. */
int uct_varuna_ep_step_active(uct_varuna_ep_t *ep, ucs_time_t now);
int uct_varuna_ep_step_backlog(uct_varuna_ep_t *ep, ucs_time_t now);
int uct_varuna_ep_step_drain(uct_varuna_ep_t *ep, ucs_time_t now);
int uct_varuna_ep_step_repeat(uct_varuna_ep_t *ep, ucs_time_t now);
int uct_varuna_ep_step_failed(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
