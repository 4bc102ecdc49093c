/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Facts of the modes of atomics (docs/ATOMICS.md) that memory domains, keys and lanes ask
 * for. iface/varuna_modes.c says which code serves a mode.
 */
#ifndef UCT_VARUNA_AMO_MODE_H_
#define UCT_VARUNA_AMO_MODE_H_

#include "varuna_def.h"

typedef struct uct_varuna_atomic_mode_info {
    uint8_t                    by_cpu;    /* The target's CPU executes atomics, by
                                             tokens of regions */
    uint8_t                    by_home;   /* One NIC of the target executes them: it needs
                                             DC and host memory, and no NIC that was away
                                             is used again */
    uint8_t                    is_built;  /* 0: by configure's choice */
} uct_varuna_atomic_mode_info_t;

/* By uct_varuna_atomic_mode_t */
extern const uct_varuna_atomic_mode_info_t uct_varuna_atomic_modes[];
extern const char *uct_varuna_atomic_mode_names[];

#endif
