/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Options that are times: UCX's parser accepts numbers that cannot be used as one.
 */
#ifndef UCT_VARUNA_TIMES_H_
#define UCT_VARUNA_TIMES_H_

#include <ucs/config/parser.h>

/* Longer times become this one: nobody lives to see the difference, and sums of some of
 * them do not overflow (seconds, 10 years) */
#define UCT_VARUNA_TIMES_MAX         315360000.0

/**
 * Check all options of a table that are times, whichever these are. A time in seconds
 * that is infinite or too long becomes UCT_VARUNA_TIMES_MAX. Negative ones, and those
 * that are no number, are refused with a message.
 *
 * @param [in]    table   Its options of type TIME and TIME_UNITS are looked at.
 * @param [in]    prefix  Of their names.
 * @param [inout] config  Their values.
 *
 * @return UCS_ERR_INVALID_PARAM if one was refused.
 */
ucs_status_t uct_varuna_times_check(const ucs_config_field_t *table, const char *prefix,
                                    void *config);

#endif
