/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Modes of atomics. See varuna_amo_mode.h.
 */
#include "varuna_amo_mode.h"

#include <string.h>

const uct_varuna_atomic_mode_info_t uct_varuna_atomic_modes[] = {
    [UCT_VARUNA_ATOMIC_NATIVE]   = {.is_built = 1},
    [UCT_VARUNA_ATOMIC_CPU]      = {.is_built = 1, .by_cpu = 1},
    [UCT_VARUNA_ATOMIC_REREAD]   = {.is_built = UCT_VARUNA_HAVE_EXTENDED},
    [UCT_VARUNA_ATOMIC_EXTENDED] = {.is_built = UCT_VARUNA_HAVE_EXTENDED, .by_home = 1}
};

const char *uct_varuna_atomic_mode_names[] = {
    [UCT_VARUNA_ATOMIC_NATIVE]   = "native",
    [UCT_VARUNA_ATOMIC_CPU]      = "proxy",
    [UCT_VARUNA_ATOMIC_REREAD]   = "reread",
    [UCT_VARUNA_ATOMIC_EXTENDED] = "extended",
    [UCT_VARUNA_ATOMIC_LAST]     = NULL
};

/* --- Kept results of atomics --- */

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
