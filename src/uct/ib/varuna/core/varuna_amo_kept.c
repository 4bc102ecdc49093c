/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Kept results of atomics. See varuna_amo_kept.h.
 */
#include "varuna_amo_kept.h"

#include <string.h>

void uct_varuna_amo_kept_init(uct_varuna_amo_kept_t *kept)
{
    memset(kept, 0, sizeof(*kept));
    kept->next  = 1;
    kept->acked = 1;
}

/* What was not executed cannot be acknowledged: such a number is ignored. */
void uct_varuna_amo_kept_ack(uct_varuna_amo_kept_t *kept, uint64_t acked)
{
    if ((acked > kept->acked) && (acked <= kept->next)) {
        kept->acked = acked;
    }
}

uct_varuna_amo_kept_verdict_t
uct_varuna_amo_kept_check(const uct_varuna_amo_kept_t *kept, uint64_t number)
{
    if ((number < kept->acked) ||
        (number >= (kept->acked + UCT_VARUNA_AMO_WINDOW))) {
        return UCT_VARUNA_AMO_KEPT_REFUSE;
    }

    if (number < kept->next) {
        return UCT_VARUNA_AMO_KEPT_RESULT;
    }

    return (number == kept->next) ? UCT_VARUNA_AMO_KEPT_NEXT :
           UCT_VARUNA_AMO_KEPT_LATER;
}

void uct_varuna_amo_kept_add(uct_varuna_amo_kept_t *kept,
                             const uct_varuna_ctl_atomic_result_t *result)
{
    kept->results[kept->next % UCT_VARUNA_AMO_WINDOW] = *result;
    ++kept->next;
}
