/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_clock.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_clock.h"

#include <ucs/async/async.h>
#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <string.h>

static ucs_time_t uct_varuna_clock_read(void)
{
    return ucs_get_time();
}

void uct_varuna_clock_init(uct_varuna_clock_t *clock)
{
    memset(clock, 0, sizeof(*clock));
    clock->timer_id = -1;
    clock->read     = uct_varuna_clock_read;
}

void uct_varuna_clock_add(uct_varuna_clock_t *clock, ucs_time_t period,
                          uct_varuna_clock_func_t func, void *arg)
{
    uct_varuna_clock_job_t *job = &clock->jobs[clock->num_jobs++];

    ucs_assert_always(clock->num_jobs <= UCT_VARUNA_CLOCK_MAX_JOBS);
    job->func   = func;
    job->arg    = arg;
    job->period = period;
    job->due    = uct_varuna_clock_now(clock) + period;
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

static void uct_varuna_clock_timer(int id, ucs_event_set_types_t events,
                                   void *arg)
{
    uct_varuna_clock_t *clock = arg;

    (void)id;
    (void)events;
    uct_varuna_clock_tick(clock, uct_varuna_clock_now(clock));
}

ucs_status_t uct_varuna_clock_start(uct_varuna_clock_t *clock,
                                    ucs_async_context_t *async)
{
    if (clock->tick == 0) {
        return UCS_OK;
    }

    return ucs_async_add_timer(async->mode, clock->tick, uct_varuna_clock_timer,
                               clock, async, &clock->timer_id);
}

void uct_varuna_clock_stop(uct_varuna_clock_t *clock)
{
    if (clock->timer_id != -1) {
        ucs_async_remove_handler(clock->timer_id, 1);
        clock->timer_id = -1;
    }
}
