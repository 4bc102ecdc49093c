/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state machine of the vQP: the only file that changes a state. Its picture is in
 * varuna_sm_table.h. Main thread only.
 */
#ifndef UCT_VARUNA_SM_H_
#define UCT_VARUNA_SM_H_

#include "varuna_ep_event.h"

/** Receive the events of the endpoints of an interface, whose configuration is
 *  known. */
void uct_varuna_sm_init(uct_varuna_requester_t *requester);

/** Begin in state OPENING. */
void uct_varuna_sm_start(uct_varuna_ep_t *ep);

/** The endpoint is being destroyed: no event has an effect any more. */
void uct_varuna_sm_end(uct_varuna_ep_t *ep);

/** Take a step. @return nonzero if the endpoint has more to do and must stay in the
 *  list of work. */
int uct_varuna_sm_step(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
