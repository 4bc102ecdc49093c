/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Targets whose requester may not know that it has them.
 */
#ifndef UCT_VARUNA_UNUSED_H_
#define UCT_VARUNA_UNUSED_H_

#include "varuna_responder.h"

/** Give the clock its job. */
void uct_varuna_unused_start(uct_varuna_responder_t *resp);

#endif
