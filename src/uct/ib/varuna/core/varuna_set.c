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
    {"verbs", UCT_VARUNA_LANE_VERBS, UCT_VARUNA_LANE_NONE, UCT_VARUNA_LANE_UD},
    {NULL}
};

const char *uct_varuna_lanes_names[] = {"auto", "mlx5", "verbs", NULL};

const char *uct_varuna_tl_name(unsigned kind)
{
    static const char *names[] = {
        [UCT_VARUNA_LANE_RC]    = UCT_VARUNA_RC_TL,
        [UCT_VARUNA_LANE_DC]    = UCT_VARUNA_DC_TL,
        [UCT_VARUNA_LANE_VERBS] = UCT_VARUNA_VERBS_TL,
        [UCT_VARUNA_LANE_UD]    = "datagrams",
        [UCT_VARUNA_LANE_NONE]  = "none"
    };

    return names[kind];
}
