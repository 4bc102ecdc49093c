/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The series of runs of a sweep. See ft_series.h.
 */
#include "ft_series.h"
#include "ft_clock.h"
#include "ft_driver.h"

#include <stdlib.h>

#define FT_MAX_REPEATS 10 /* Repetitions of one run */


int ft_series_is_valid(const ft_series_t *series)
{
    return (series->stride > 0) && (series->events[0] > 0);
}

const char *ft_series_run(ft_series_t *series, unsigned *event_p, unsigned last,
                          unsigned max, ft_series_func_t run, void *arg)
{
    unsigned repeats = 0;
    int ret;

    ++series->count;
    while (*event_p <= last) {
        if ((series->budget > 0) && (ft_now() - series->start > series->budget)) {
            ++series->cut;
            return NULL;
        }

        ret = run(arg);
        if (ret == 0) {
            return NULL;
        } else if (ret > 0) {
            *event_p += series->stride;
            repeats   = 0;
        } else if (++repeats > FT_MAX_REPEATS) {
            return "the lane changes all the time";
        }

        if (*event_p > max) {
            return "there is no end of events";
        }
    }

    return NULL;
}
