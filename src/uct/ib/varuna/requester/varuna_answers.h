/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's rows of the bus.
 */
#ifndef UCT_VARUNA_ANSWERS_H_
#define UCT_VARUNA_ANSWERS_H_

#include <uct/ib/varuna/core/varuna_def.h>

/** Register them. The control plane is open. */
void uct_varuna_answers_init(uct_varuna_iface_t *iface);

#endif
