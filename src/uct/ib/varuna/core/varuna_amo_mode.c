/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Facts of the modes of atomics.
 */
#include "varuna_amo_mode.h"

const uct_varuna_atomic_mode_info_t uct_varuna_atomic_modes[] = {
    [UCT_VARUNA_ATOMIC_NATIVE]   = {.is_built = 1},
    [UCT_VARUNA_ATOMIC_CPU]      = {.is_built = 1, .by_cpu = 1},
    [UCT_VARUNA_ATOMIC_REREAD]   = {.is_built = UCT_VARUNA_HAVE_EXTENDED},
    [UCT_VARUNA_ATOMIC_EXTENDED] = {.is_built = UCT_VARUNA_HAVE_EXTENDED, .by_home = 1}
};

const char *uct_varuna_atomic_mode_names[] = {
    [UCT_VARUNA_ATOMIC_NATIVE]   = "native",
    [UCT_VARUNA_ATOMIC_CPU]      = "proxy",
    [UCT_VARUNA_ATOMIC_REREAD]   = "reread",
    [UCT_VARUNA_ATOMIC_EXTENDED] = "extended",
    [UCT_VARUNA_ATOMIC_LAST]     = NULL
};
