/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A token bucket. See varuna_pace.h.
 */
#include "varuna_pace.h"

#include <ucs/sys/math.h>

void uct_varuna_pace_init(uct_varuna_pace_t *pace, double rate)
{
    pace->free_at = 0;
    pace->period  = ucs_max(1, ucs_time_from_sec(1.0 / rate));
}

int uct_varuna_pace_take(uct_varuna_pace_t *pace, ucs_time_t now)
{
    ucs_time_t free_at = ucs_max(pace->free_at, now);

    if ((free_at - now) > ((UCT_VARUNA_PACE_BURST - 1) * pace->period)) {
        return 0;
    }

    pace->free_at = free_at + pace->period;
    return 1;
}

void uct_varuna_pace_spent(uct_varuna_pace_t *pace, ucs_time_t time)
{
    pace->free_at += UCT_VARUNA_PACE_SHARE * time;
}
