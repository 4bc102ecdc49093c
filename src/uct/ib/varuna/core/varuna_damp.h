/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Damping of what fails and comes back: of a link, and of the path to a peer. Pure:
 * the caller serialises access and brings the time.
 *
 *             fail                 good                 hold-down is over
 *   UP -----------------> DOWN ------------> HOLD -----------------------> UP
 *                          ^      fail        | ^ again: it starts anew
 *                          +------------------+-+
 *
 * Each failure doubles the hold-down, also one during it. What has been up for longer
 * than the longest hold-down starts with a clean record.
 */
#ifndef UCT_VARUNA_DAMP_H_
#define UCT_VARUNA_DAMP_H_

#include <ucs/time/time.h>
#include <stdint.h>

typedef enum {
    UCT_VARUNA_DAMP_UP,         /* Also what is all zeros */
    UCT_VARUNA_DAMP_DOWN,       /* Known to be bad: nothing new is posted */
    UCT_VARUNA_DAMP_HOLD,       /* Good again, and not yet used */
    UCT_VARUNA_DAMP_LAST
} uct_varuna_damp_state_t;

typedef struct uct_varuna_damp {
    uint8_t                    state;     /* uct_varuna_damp_state_t */
    unsigned                   flaps;     /* Recent failures */
    ucs_time_t                 changed;   /* Time of the last transition */
    ucs_time_t                 usable_at; /* In HOLD: end of the hold-down */
} uct_varuna_damp_t;

typedef struct uct_varuna_damp_times {
    ucs_time_t                 hold_min;  /* Hold-down after the first failure */
    ucs_time_t                 hold_max;  /* Its cap */
} uct_varuna_damp_times_t;

extern const char *uct_varuna_damp_state_names[];

/** It failed. @return Nonzero if that changes the state (UP or HOLD -> DOWN). */
int uct_varuna_damp_fail(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now);

/** It was seen to be good. @return nonzero if that was news: the hold-down begins
 *  (DOWN -> HOLD). */
int uct_varuna_damp_good(uct_varuna_damp_t *damp,
                         const uct_varuna_damp_times_t *times, ucs_time_t now);

/** In HOLD: it is in doubt whether it is good. The hold-down begins anew, and is as
 *  long as it was. */
void uct_varuna_damp_again(uct_varuna_damp_t *damp,
                           const uct_varuna_damp_times_t *times,
                           ucs_time_t now);

/** @return nonzero in HOLD, if the hold-down is over. */
int uct_varuna_damp_is_over(const uct_varuna_damp_t *damp, ucs_time_t now);

/** Use it again: the hold-down is over. */
void uct_varuna_damp_up(uct_varuna_damp_t *damp, ucs_time_t now);

/** It was not a failure: use it at once, and do not count it. */
void uct_varuna_damp_revoke(uct_varuna_damp_t *damp, ucs_time_t now);

/** @return The hold-down which the failures so far call for. */
ucs_time_t uct_varuna_damp_hold_time(const uct_varuna_damp_t *damp,
                                     const uct_varuna_damp_times_t *times);

#endif
