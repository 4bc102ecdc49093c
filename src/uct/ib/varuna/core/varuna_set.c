/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lane sets. See varuna_set.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_set.h"

#include <stddef.h>

const uct_varuna_set_t uct_varuna_sets[] = {
    {"mlx5", UCT_VARUNA_LANE_RC, UCT_VARUNA_LANE_DC, UCT_VARUNA_LANE_DC},
    {NULL}
};

const char *uct_varuna_tl_name(unsigned kind)
{
    static const char *names[] = {
        [UCT_VARUNA_LANE_RC] = UCT_VARUNA_RC_TL,
        [UCT_VARUNA_LANE_DC] = UCT_VARUNA_DC_TL
    };

    return names[kind];
}
