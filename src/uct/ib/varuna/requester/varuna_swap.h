/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Planned changes of the lane. Main thread only.
 */
#ifndef UCT_VARUNA_SWAP_H_
#define UCT_VARUNA_SWAP_H_

#include "varuna_ep.h"

/** State SWAP. @return nonzero to be called again. */
int uct_varuna_ep_step_swap(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
