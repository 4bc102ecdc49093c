/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * All that an interface does periodically, on one timer of UCS's: the timers of a process'
 * interfaces share one queue, and UCX 1.13 ends a process in which there are more than 300
 * (ucs_async_dispatch_timerq). Pure; the caller brings the time. varuna_ctl_open.c has the
 * timer; the periodic jobs are added by their own files.
 */
#ifndef UCT_VARUNA_CLOCK_H_
#define UCT_VARUNA_CLOCK_H_

#include "varuna_def.h"

#include <ucs/time/time.h>
#include <ucs/type/status.h>
#include <ucs/sys/math.h>

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

typedef struct uct_varuna_clock {
    ucs_time_t                 tick;      /* Period of the timer; 0: none is needed */
    unsigned                   num_jobs;
    uct_varuna_clock_job_t     jobs[UCT_VARUNA_CLOCK_MAX_JOBS];
} uct_varuna_clock_t;

void uct_varuna_clock_init(uct_varuna_clock_t *clock);

/** Add a job at @a now, before the timer is started. @a period 0: never. */
void uct_varuna_clock_add(uct_varuna_clock_t *clock, ucs_time_t now,
                          ucs_time_t period, uct_varuna_clock_func_t func,
                          void *arg);

/** What the timer does, at @a now: calls the jobs that are due. It ticks with the shortest
 *  of the periods. Others are kept on the average, each time rounded to a tick. */
void uct_varuna_clock_tick(uct_varuna_clock_t *clock, ucs_time_t now);

/* --- Back-off --- */

/* When to try again what has failed for want of something: the time between two tries
 * doubles with each failure, up to a limit. Pure; the caller brings the time. */

/* Seconds from the first failure to the next try, and at most. UCX writes an error message
 * at each try: eight a minute */
#define UCT_VARUNA_BACKOFF_MIN       1.0
#define UCT_VARUNA_BACKOFF_MAX       16.0

/** All zeros: nothing has failed. */
typedef struct uct_varuna_backoff {
    ucs_time_t                 due;        /* The next try */
    uint32_t                   failures;   /* In a row */
    ucs_status_t               reason;     /* Of the last one */
} uct_varuna_backoff_t;

/** @return Whether a try is due at @a now. */
static inline int
uct_varuna_backoff_is_due(const uct_varuna_backoff_t *backoff, ucs_time_t now)
{
    return (backoff->failures == 0) || (now >= backoff->due);
}

/** @return The time from the last failure to the next try. */
ucs_time_t uct_varuna_backoff_distance(const uct_varuna_backoff_t *backoff);

/** A try has failed. @return Whether that is news: it is the first failure, or has another
 *  reason than the one before. */
int uct_varuna_backoff_failed(uct_varuna_backoff_t *backoff, ucs_status_t reason,
                              ucs_time_t now);

/** A try has succeeded: the next one is due at once. @return How many failed before it. */
unsigned uct_varuna_backoff_succeeded(uct_varuna_backoff_t *backoff);

/* --- Pace --- */

/* Limits how often something is done, such as connecting RC in the background:
 * a token bucket. Pure; the caller brings the time. */

/* So many at once at most */
#define UCT_VARUNA_PACE_BURST        16

/* See uct_varuna_pace_spent() */
#define UCT_VARUNA_PACE_SHARE        5

typedef struct uct_varuna_pace {
    ucs_time_t                 period;     /* Of one */
    ucs_time_t                 free_at;    /* When the bucket is full */
} uct_varuna_pace_t;

/** @param [in] rate  So many a second. */
void uct_varuna_pace_init(uct_varuna_pace_t *pace, double rate);

/** @return nonzero if one more may be done now. */
int uct_varuna_pace_take(uct_varuna_pace_t *pace, ucs_time_t now);

/** One has taken @a time: delay the next ones so that all of them take at most one part
 * in UCT_VARUNA_PACE_SHARE of the time. */
void uct_varuna_pace_spent(uct_varuna_pace_t *pace, ucs_time_t time);

/* --- Packet lifetime --- */

/* For how long a fabric may delay a packet, as far as a port knows it. Pure. */

/* A subnet manager sets an exponent of 5 bits: the time is 4.096 us times a power of
 * two, and at most this one (seconds) */
#define UCT_VARUNA_LIFETIME_UNIT     4.096e-6
#define UCT_VARUNA_LIFETIME_MAX_EXP  31
#define UCT_VARUNA_LIFETIME_MAX \
    (UCT_VARUNA_LIFETIME_UNIT * UCS_BIT(UCT_VARUNA_LIFETIME_MAX_EXP))

/* If nothing is known: longer than a PFC watchdog of RoCE waits before it drops paused
 * packets */
#define UCT_VARUNA_LIFETIME_UNKNOWN  2.0

/**
 * @param [in] is_ib           The port's link layer is InfiniBand.
 * @param [in] subnet_timeout  Exponent from the port's attributes, which the subnet
 *                             manager sets: the longest delay to any port of the subnet.
 *                             0: it has set none.
 *
 * @return Seconds.
 */
static inline double uct_varuna_lifetime(int is_ib, unsigned subnet_timeout)
{
    return (!is_ib || (subnet_timeout == 0)) ? UCT_VARUNA_LIFETIME_UNKNOWN :
           (UCT_VARUNA_LIFETIME_UNIT *
            UCS_BIT(ucs_min(subnet_timeout, UCT_VARUNA_LIFETIME_MAX_EXP)));
}

#endif
