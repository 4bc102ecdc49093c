/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Judging a trace, for verb "trace".
 */

#ifndef CTL_TRACE_CHECK_H_
#define CTL_TRACE_CHECK_H_

#include "ctl.h"
#include "../core/emu_qp.h"
#include "../trace/emu_trace.h"

typedef struct ctl_check ctl_check_t;

/** @return NULL if there is no memory. */
ctl_check_t *ctl_check_create(void);

/** Show the next entry of the trace. */
void ctl_check_entry(ctl_check_t *check, const emu_trace_entry_t *entry);

/** The next @a num entries are missing: what needs them cannot be judged. */
void ctl_check_lost(ctl_check_t *check, uint64_t num);

/** The next @a num entries are left out by intention. */
void ctl_check_left_out(ctl_check_t *check, uint64_t num);

/** Print the result and free everything. @return exit status. */
int ctl_check_finish(ctl_check_t *check, int json);

#endif
