/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A request that is repeated, over one link after the other, until it is answered or
 * given up: when to send it, over which link, and when to stop. Pure; the caller
 * sends the message and brings the time.
 *
 *   start --> check: SEND --> next (a link) --> send --> check: WAIT ... SEND ...
 *                \                                          \
 *                 +-- stop (answered)                        +-- GIVE_UP
 */
#ifndef UCT_VARUNA_RETRY_H_
#define UCT_VARUNA_RETRY_H_

#include <uct/ib/varuna/core/varuna_def.h>

#include <ucs/time/time.h>

/* How requests of one kind are repeated. */
typedef struct uct_varuna_retry_policy {
    ucs_time_t                 interval;   /* From a try to the next one */
    unsigned                   backoff;    /* The interval doubles with each try, so
                                              often at most */
    unsigned                   max_tries;  /* 0: no limit */
    ucs_time_t                 give_up;    /* Time without an answer; 0: no limit */
} uct_varuna_retry_policy_t;

typedef struct uct_varuna_retry {
    ucs_time_t                 since;      /* Start, by the give-up clock */
    ucs_time_t                 due;        /* Next try */
    unsigned                   tries;
    uint8_t                    link;       /* Of the last try, LINK_NONE: none yet */
    uint8_t                    is_active;  /* Started, and not stopped since */
} uct_varuna_retry_t;

typedef enum {
    UCT_VARUNA_RETRY_WAIT,                 /* Nothing to do now */
    UCT_VARUNA_RETRY_SEND,                 /* A try is due */
    UCT_VARUNA_RETRY_GIVE_UP               /* A limit of the policy is exceeded */
} uct_varuna_retry_verdict_t;

/**
 * Begin a request.
 *
 * @param [in] due    Time of the first try; 0: as soon as possible.
 * @param [in] clock  The clock for giving up. It need not be the one of @a due: one
 *                    that stops while the application does not call progress gives
 *                    answers a chance that arrived meanwhile.
 */
void uct_varuna_retry_start(uct_varuna_retry_t *retry, ucs_time_t due,
                            ucs_time_t clock);

/** End it: it was answered, or is not wanted any more. */
void uct_varuna_retry_stop(uct_varuna_retry_t *retry);

/** @return What to do at @a now, which is @a clock by the clock for giving up. WAIT if
 *  the request was not started. */
uct_varuna_retry_verdict_t
uct_varuna_retry_check(const uct_varuna_retry_t *retry,
                       const uct_varuna_retry_policy_t *policy, ucs_time_t now,
                       ucs_time_t clock);

/**
 * Count a try at @a now, and choose its link.
 *
 * @param [in] first  Link of the first try, if @a map has it; LINK_NONE: any. Later
 *                    tries use the links of @a map in turn, since silence may mean that
 *                    the last link is dead.
 * @param [in] map    Links over which the request may be sent; not empty.
 *
 * @return The link.
 */
unsigned uct_varuna_retry_next(uct_varuna_retry_t *retry,
                               const uct_varuna_retry_policy_t *policy,
                               unsigned first, unsigned map, ucs_time_t now);

/** @return Whether it was sent, and is not answered yet. */
static inline int uct_varuna_retry_is_asking(const uct_varuna_retry_t *retry)
{
    return retry->is_active && (retry->tries > 0);
}

#endif
