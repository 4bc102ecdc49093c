/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Hold-down of what fails and comes back. See varuna_damp.h.
 */
#include "varuna_damp.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>

#include <limits.h>

const char *uct_varuna_damp_state_names[] = {
    [UCT_VARUNA_DAMP_UP]   = "up",
    [UCT_VARUNA_DAMP_DOWN] = "down",
    [UCT_VARUNA_DAMP_HOLD] = "hold",
    [UCT_VARUNA_DAMP_LAST] = NULL
};

static void uct_varuna_damp_set_state(uct_varuna_damp_t *damp,
                                      uct_varuna_damp_state_t state,
                                      ucs_time_t now)
{
    damp->state   = state;
    damp->changed = now;
}

int uct_varuna_damp_fail(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now)
{
    if (damp->state == UCT_VARUNA_DAMP_DOWN) {
        return 0;
    }

    if ((damp->state == UCT_VARUNA_DAMP_UP) &&
        ((now - damp->changed) > times->hold_max)) {
        damp->flaps = 0; /* It had been good for long */
    }

    if (damp->flaps < UINT_MAX) {
        ++damp->flaps;
    }

    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_DOWN, now);
    return 1;
}

/* hold_min * 2^(flaps - 1), not above hold_max */
ucs_time_t uct_varuna_damp_hold_time(const uct_varuna_damp_t *damp,
                                     const uct_varuna_damp_times_t *times)
{
    ucs_time_t hold = ucs_min(times->hold_min, times->hold_max);
    unsigned flaps  = damp->flaps;

    while ((flaps > 1) && (hold > 0) && (hold < times->hold_max)) {
        hold = (hold > (times->hold_max / 2)) ? times->hold_max : (hold * 2);
        --flaps;
    }

    return hold;
}

int uct_varuna_damp_good(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now)
{
    if (damp->state != UCT_VARUNA_DAMP_DOWN) {
        return 0;
    }

    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_HOLD, now);
    damp->usable_at = now + uct_varuna_damp_hold_time(damp, times);
    return 1;
}

void uct_varuna_damp_again(uct_varuna_damp_t *damp,
                           const uct_varuna_damp_times_t *times, ucs_time_t now)
{
    ucs_assert(damp->state == UCT_VARUNA_DAMP_HOLD);
    damp->changed   = now;
    damp->usable_at = now + uct_varuna_damp_hold_time(damp, times);
}

int uct_varuna_damp_is_over(const uct_varuna_damp_t *damp, ucs_time_t now)
{
    return (damp->state == UCT_VARUNA_DAMP_HOLD) && (now >= damp->usable_at);
}

void uct_varuna_damp_up(uct_varuna_damp_t *damp, ucs_time_t now)
{
    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_UP, now);
}

void uct_varuna_damp_revoke(uct_varuna_damp_t *damp, ucs_time_t now)
{
    damp->flaps -= (damp->flaps > 0);
    uct_varuna_damp_set_state(damp, UCT_VARUNA_DAMP_UP, now);
}
