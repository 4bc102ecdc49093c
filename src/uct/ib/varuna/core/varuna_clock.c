/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_clock.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_clock.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <string.h>

void uct_varuna_clock_init(uct_varuna_clock_t *clock)
{
    memset(clock, 0, sizeof(*clock));
}

void uct_varuna_clock_add(uct_varuna_clock_t *clock, ucs_time_t now,
                          ucs_time_t period, uct_varuna_clock_func_t func,
                          void *arg)
{
    uct_varuna_clock_job_t *job = &clock->jobs[clock->num_jobs++];

    ucs_assert_always(clock->num_jobs <= UCT_VARUNA_CLOCK_MAX_JOBS);
    job->func   = func;
    job->arg    = arg;
    job->period = period;
    job->due    = now + period;
    if ((period != 0) && ((clock->tick == 0) || (period < clock->tick))) {
        clock->tick = period;
    }
}

void uct_varuna_clock_tick(uct_varuna_clock_t *clock, ucs_time_t now)
{
    uct_varuna_clock_job_t *job;
    unsigned i;

    for (i = 0; i < clock->num_jobs; ++i) {
        job = &clock->jobs[i];
        /* The next tick would be further from it */
        if ((job->period == 0) || ((now + (clock->tick / 2)) < job->due)) {
            continue;
        }

        job->due += job->period;
        if (job->due < now) {
            job->due = now + job->period; /* A job that is late runs once */
        }
        job->func(job->arg);
    }
}

/* --- Back-off --- */

/* When to try again. */

/* So often the distance doubles at most */
#define UCT_VARUNA_BACKOFF_STEPS     4

UCT_VARUNA_STATIC_ASSERT(((int)UCT_VARUNA_BACKOFF_MIN << UCT_VARUNA_BACKOFF_STEPS) ==
                         (int)UCT_VARUNA_BACKOFF_MAX);

ucs_time_t uct_varuna_backoff_distance(const uct_varuna_backoff_t *backoff)
{
    return (backoff->failures == 0) ? 0 :
           (ucs_time_from_sec(UCT_VARUNA_BACKOFF_MIN) <<
            ucs_min(backoff->failures - 1, UCT_VARUNA_BACKOFF_STEPS));
}

int uct_varuna_backoff_failed(uct_varuna_backoff_t *backoff, ucs_status_t reason,
                              ucs_time_t now)
{
    int is_news = (backoff->failures == 0) || (backoff->reason != reason);

    ++backoff->failures;
    backoff->reason = reason;
    backoff->due    = now + uct_varuna_backoff_distance(backoff);
    return is_news;
}

unsigned uct_varuna_backoff_succeeded(uct_varuna_backoff_t *backoff)
{
    unsigned failures = backoff->failures;

    memset(backoff, 0, sizeof(*backoff));
    return failures;
}

/* --- Pace --- */

/* A token bucket. */

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
