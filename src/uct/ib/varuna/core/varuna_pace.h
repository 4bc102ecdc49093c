/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Limits how often something is done, such as connecting RC in the background:
 * a token bucket. Pure; the caller brings the time.
 */
#ifndef UCT_VARUNA_PACE_H_
#define UCT_VARUNA_PACE_H_

#include "varuna_def.h"

#include <ucs/time/time.h>

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

#endif
