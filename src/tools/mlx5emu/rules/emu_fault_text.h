/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Words and units of the text form of fault rules, for the parser and the
 * printer.
 */

#ifndef EMU_FAULT_TEXT_H_
#define EMU_FAULT_TEXT_H_

#include "emu_fault_rule.h"

#define EMU_FAULT_BIT(_n)       (1u << (_n))
#define EMU_FAULT_PPM_ONE       1000000u
#define EMU_FAULT_NUM_TIMES     4
#define EMU_FAULT_NUM_SIZES     4

/** A unit; tables have the largest first. */
typedef struct emu_fault_unit {
    const char *name;
    uint64_t   value;
} emu_fault_unit_t;

extern const emu_fault_unit_t emu_fault_time_units[EMU_FAULT_NUM_TIMES];
extern const emu_fault_unit_t emu_fault_size_units[EMU_FAULT_NUM_SIZES];
extern const char             *emu_fault_try_names[EMU_FAULT_TRY_LAST];

#endif
