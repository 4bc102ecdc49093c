/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The rows of the bus for atomics that peers ask for: whole ones, which the CPU executes
 * (mode proxy), and single accesses, which the home NIC executes (mode extended).
 */
#ifndef UCT_VARUNA_ATOMIC_REQ_H_
#define UCT_VARUNA_ATOMIC_REQ_H_

#include "varuna_responder.h"

/** Register them. The proxy is open. */
void uct_varuna_atomic_req_init(uct_varuna_responder_t *resp);

#endif
