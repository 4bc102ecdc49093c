/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The time, and one timer of UCS's for all that an interface does periodically: the
 * timers of a process' interfaces share one queue, and UCX 1.13 ends a process in which
 * there are more than 300 (ucs_async_dispatch_timerq). Started and stopped by
 * varuna_ctl_open.c; the periodic jobs are added by their own files.
 */
#ifndef UCT_VARUNA_CLOCK_H_
#define UCT_VARUNA_CLOCK_H_

#include "varuna_def.h"

#include <ucs/async/async_fwd.h>
#include <ucs/time/time.h>

/* More than there are */
#define UCT_VARUNA_CLOCK_MAX_JOBS    8

/** Called in the async context, with its lock held. */
typedef void (*uct_varuna_clock_func_t)(void *arg);

typedef struct uct_varuna_clock_job {
    uct_varuna_clock_func_t    func;
    void                       *arg;
    ucs_time_t                 period;    /* 0: never */
    ucs_time_t                 due;
} uct_varuna_clock_job_t;

/** Reads the time. */
typedef ucs_time_t (*uct_varuna_clock_read_t)(void);

typedef struct uct_varuna_clock {
    uct_varuna_clock_read_t    read;      /* UCX's clock, unless a test has its own */
    int                        timer_id;  /* -1: not started */
    ucs_time_t                 tick;      /* Period of the timer */
    unsigned                   num_jobs;
    uct_varuna_clock_job_t     jobs[UCT_VARUNA_CLOCK_MAX_JOBS];
} uct_varuna_clock_t;

void uct_varuna_clock_init(uct_varuna_clock_t *clock);

/** @return The time now. */
static inline ucs_time_t uct_varuna_clock_now(const uct_varuna_clock_t *clock)
{
    return clock->read();
}

/** Add a job, before the start. @a period 0: never. */
void uct_varuna_clock_add(uct_varuna_clock_t *clock, ucs_time_t period,
                          uct_varuna_clock_func_t func, void *arg);

/** Ticks with the shortest of the periods. Others are kept on the average, each
 *  time rounded to a tick. */
ucs_status_t uct_varuna_clock_start(uct_varuna_clock_t *clock,
                                    ucs_async_context_t *async);

/** The lock must not be held. May be called if it was not started. */
void uct_varuna_clock_stop(uct_varuna_clock_t *clock);

/** What the timer does, at @a now: calls the jobs that are due. */
void uct_varuna_clock_tick(uct_varuna_clock_t *clock, ucs_time_t now);

#endif
