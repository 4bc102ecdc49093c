/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Drives what the home NIC executes, and moves the home NIC when it fails: what the targets'
 * connections have to do with it.
 */
#ifndef UCT_VARUNA_HOME_MOVE_H_
#define UCT_VARUNA_HOME_MOVE_H_

#include "varuna_responder.h"

/** Register the rows of the bus, and the job of the clock. */
void uct_varuna_home_move_init(uct_varuna_responder_t *resp);

#endif
