/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Selectors of fault rules, NAME=VALUE. Called by emu_fault_parse.c.
 */

#ifndef EMU_FAULT_SELECT_H_
#define EMU_FAULT_SELECT_H_

#include "emu_fault_value.h"

/** Read a selector into the rule. @a value: NULL if there is none; may be changed.
 *  @return 0, or -1 with the error written. */
int emu_fault_parse_selector(emu_fault_parser_t *p, const char *name,
                             char *value);

#endif
