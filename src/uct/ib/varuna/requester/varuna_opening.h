/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state OPENING of a vQP. Main thread only.
 */
#ifndef UCT_VARUNA_OPENING_H_
#define UCT_VARUNA_OPENING_H_

#include "varuna_ep.h"

/** Take the first lane of a vQP that has a target, if there is any. */
void uct_varuna_ep_open_lane(uct_varuna_ep_t *ep, ucs_time_t now);

/** The step of this state. */
int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
