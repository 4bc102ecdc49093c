/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Actions of fault rules, NAME or NAME=VALUE. Called by emu_fault_parse.c.
 */

#ifndef EMU_FAULT_ACTION_H_
#define EMU_FAULT_ACTION_H_

#include "emu_fault_value.h"

/** Read an action into the rule. @a value: NULL if there is none.
 *  @return 0, or -1 with the error written. */
int emu_fault_parse_action(emu_fault_parser_t *p, unsigned action,
                           const char *name, const char *value);

#endif
