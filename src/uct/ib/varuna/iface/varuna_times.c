/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Options that are times. See varuna_times.h. Called when an interface is opened.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_times.h"

#include <ucs/debug/log.h>
#include <ucs/sys/compiler_def.h>
#include <ucs/sys/math.h>
#include <ucs/time/time.h>


/* In seconds */
static int uct_varuna_times_check_seconds(double *value)
{
    if (!(*value >= 0)) {
        return 0; /* "nan" is neither */
    }

    *value = ucs_min(*value, UCT_VARUNA_TIMES_MAX);
    return 1;
}

/* In ticks of UCX's clock, which a negative number of seconds makes enormous. The two
 * words that the type has are the largest numbers; each option says what they mean. */
static int uct_varuna_times_check_ticks(const ucs_time_t *value)
{
    return (*value == UCS_TIME_INFINITY) || (*value == UCS_TIME_AUTO) ||
           (*value <= ucs_time_from_sec(UCT_VARUNA_TIMES_MAX));
}

ucs_status_t uct_varuna_times_check(const ucs_config_field_t *table, const char *prefix,
                                    void *config)
{
    const ucs_config_field_t *field;
    int is_good, has_inf;
    void *value;

    for (field = table; field->name != NULL; ++field) {
        value   = UCS_PTR_BYTE_OFFSET(config, field->offset);
        is_good = 1;
        has_inf = 0;
        if (field->parser.read == ucs_config_sscanf_time) {
            is_good = uct_varuna_times_check_seconds(value);
            has_inf = 1;
        } else if (field->parser.read == ucs_config_sscanf_time_units) {
            is_good = uct_varuna_times_check_ticks(value);
        }

        if (!is_good) {
            ucs_error("%s%s is no time: expected a number, not below 0, with a unit, such "
                      "as 100ms, 10s or 5m%s", prefix, field->name,
                      has_inf ? ", or inf" : "; not more than 10 years");
            return UCS_ERR_INVALID_PARAM;
        }
    }

    return UCS_OK;
}
