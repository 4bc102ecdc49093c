/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Facts of the modes of atomics. See varuna_atomic_mode.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_atomic_mode.h"

const uct_varuna_atomic_mode_info_t uct_varuna_atomic_modes[] = {
    [UCT_VARUNA_ATOMIC_NATIVE]   = {.by_cpu = 0, .has_slots = 0},
    [UCT_VARUNA_ATOMIC_PROXY]    = {.by_cpu = 1, .has_slots = 0},
    [UCT_VARUNA_ATOMIC_REREAD]   = {.by_cpu = 0, .has_slots = 0},
    [UCT_VARUNA_ATOMIC_EXTENDED] = {.by_cpu = 0, .has_slots = 1}
};
