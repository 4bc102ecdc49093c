/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Warnings about what peers send.
 */
#ifndef UCT_VARUNA_COMPLAIN_H_
#define UCT_VARUNA_COMPLAIN_H_

#include "varuna_ctl.h"

/** Tell the user that a peer's message or address is refused; at most once in a
 * while, since a broken peer repeats itself. */
void uct_varuna_ctl_complain(uct_varuna_ctl_t *ctl, uint64_t uuid,
                             const char *what, const char *reason);

#endif
