/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long an atomic waits after lost races. See varuna_amo_backoff.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_backoff.h"

#include <ucs/sys/math.h>

#define UCT_VARUNA_AMO_BACKOFF_FREE  2     /* Lost races without a wait */
#define UCT_VARUNA_AMO_BACKOFF_MIN   1000u /* Maximum of the first wait, nanoseconds */
#define UCT_VARUNA_AMO_BACKOFF_STEPS 7     /* How often that doubles */

/* Rule 10. Any client may lose two races. After that the maximum doubles, up to the time
 * that some dozens of clients need for one operation each. */
unsigned uct_varuna_amo_sm_backoff(const uct_varuna_amo_sm_t *sm,
                                   uint32_t random)
{
    if ((sm->retries <= UCT_VARUNA_AMO_BACKOFF_FREE) ||
        !uct_varuna_amo_sm_is_free(sm)) {
        return 0;
    }

    return 1 + (random % (UCT_VARUNA_AMO_BACKOFF_MIN <<
                          ucs_min(sm->retries - UCT_VARUNA_AMO_BACKOFF_FREE,
                                  UCT_VARUNA_AMO_BACKOFF_STEPS)));
}
