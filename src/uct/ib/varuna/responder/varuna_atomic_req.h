/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy: the row of the bus for atomics that peers ask for.
 */
#ifndef UCT_VARUNA_ATOMIC_REQ_H_
#define UCT_VARUNA_ATOMIC_REQ_H_

#include "varuna_responder.h"

/** Register it. */
void uct_varuna_atomic_req_init(uct_varuna_responder_t *resp);

#endif
