/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Facts of the modes of atomics, one table (docs/ATOMICS.md).
 */
#ifndef UCT_VARUNA_ATOMIC_MODE_H_
#define UCT_VARUNA_ATOMIC_MODE_H_

#include "varuna_def.h"

typedef struct uct_varuna_atomic_mode_info {
    uint8_t                    by_cpu;    /* The target's CPU executes atomics, by
                                             tokens of regions */
    uint8_t                    has_slots; /* The target has an arena of slots, and a
                                             home NIC that executes all atomics */
} uct_varuna_atomic_mode_info_t;

/* By uct_varuna_atomic_mode_t */
extern const uct_varuna_atomic_mode_info_t uct_varuna_atomic_modes[];

#endif
