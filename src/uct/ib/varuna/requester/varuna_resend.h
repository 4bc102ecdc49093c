/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The table of baselines.
 */
#ifndef UCT_VARUNA_RESEND_H_
#define UCT_VARUNA_RESEND_H_

#include "varuna_baseline.h"

/** @return The baseline of this mode, NULL if it is none. */
const uct_varuna_baseline_t *uct_varuna_baseline(uct_varuna_recovery_mode_t mode);

#endif
