/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of puts on a network without order. Called by ft_judge.c.
 */
#ifndef FT_JUDGE_APART_H_
#define FT_JUDGE_APART_H_

#include "ft_judge.h"
#include "ft_trace.h"

/** @param [in] trace  All entries; it is not modified. */
void ft_apart_begin(const ft_plan_t *plan, const char *trace, ft_verdict_t *verdict);

/** A put, or a part of it from its byte @a start on. */
void ft_apart_write(int index, uint32_t start, const ft_entry_t *entry);

/** All entries were passed: judge. */
void ft_apart_end(void);

#endif
