/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A request that is repeated until it is answered. See varuna_retry.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_retry.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>


void uct_varuna_retry_start(uct_varuna_retry_t *retry, ucs_time_t due,
                            ucs_time_t clock)
{
    retry->since     = clock;
    retry->due       = due;
    retry->tries     = 0;
    retry->link      = UCT_VARUNA_LINK_NONE;
    retry->is_active = 1;
}

void uct_varuna_retry_stop(uct_varuna_retry_t *retry)
{
    retry->is_active = 0;
}

uct_varuna_retry_verdict_t
uct_varuna_retry_check(const uct_varuna_retry_t *retry,
                       const uct_varuna_retry_policy_t *policy, ucs_time_t now,
                       ucs_time_t clock)
{
    if (!retry->is_active) {
        return UCT_VARUNA_RETRY_WAIT;
    }

    if ((policy->give_up != 0) && ((clock - retry->since) > policy->give_up)) {
        return UCT_VARUNA_RETRY_GIVE_UP;
    }

    if (now < retry->due) {
        return UCT_VARUNA_RETRY_WAIT;
    }

    /* The last try, too, has its interval for the answer */
    return ((policy->max_tries != 0) && (retry->tries >= policy->max_tries)) ?
           UCT_VARUNA_RETRY_GIVE_UP : UCT_VARUNA_RETRY_SEND;
}

unsigned uct_varuna_retry_next(uct_varuna_retry_t *retry,
                               const uct_varuna_retry_policy_t *policy,
                               unsigned first, unsigned map, ucs_time_t now)
{
    unsigned power = ucs_min(retry->tries, policy->backoff);
    unsigned link  = retry->link + 1;

    ucs_assert((map & UCS_MASK(UCT_VARUNA_MAX_LINKS)) != 0);
    if (retry->link == UCT_VARUNA_LINK_NONE) {
        link = (first == UCT_VARUNA_LINK_NONE) ? 0 : first;
    }

    link %= UCT_VARUNA_MAX_LINKS;
    while (!(map & UCS_BIT(link))) {
        link = (link + 1) % UCT_VARUNA_MAX_LINKS;
    }

    retry->link    = link;
    retry->due     = now + (policy->interval << power);
    ++retry->tries;
    return link;
}
