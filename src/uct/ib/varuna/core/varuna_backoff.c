/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * When to try again. See varuna_backoff.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_backoff.h"

#include <ucs/sys/math.h>
#include <string.h>


/* So often the distance doubles at most */
#define UCT_VARUNA_BACKOFF_STEPS     4

UCT_VARUNA_STATIC_ASSERT((UCT_VARUNA_BACKOFF_MIN * (1 << UCT_VARUNA_BACKOFF_STEPS)) ==
                         UCT_VARUNA_BACKOFF_MAX);

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
