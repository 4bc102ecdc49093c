/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long an atomic waits before its next access, after it has lost races for its
 * target (docs/ATOMICS.md, rule 10).
 */
#ifndef UCT_VARUNA_AMO_BACKOFF_H_
#define UCT_VARUNA_AMO_BACKOFF_H_

#include "varuna_amo_sm.h"

/**
 * @param [in] random  A random number.
 *
 * @return Nanoseconds to wait before the next action, 0: do not wait.
 */
unsigned uct_varuna_amo_sm_backoff(const uct_varuna_amo_sm_t *sm,
                                   uint32_t random);

#endif
