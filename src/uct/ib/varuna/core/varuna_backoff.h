/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * When to try again what has failed for want of something: the time between two tries
 * doubles with each failure, up to a limit. Pure; the caller brings the time.
 */
#ifndef UCT_VARUNA_BACKOFF_H_
#define UCT_VARUNA_BACKOFF_H_

#include "varuna_def.h"

#include <ucs/time/time.h>
#include <ucs/type/status.h>

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

#endif
