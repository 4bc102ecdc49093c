/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Something that a NIC has run out of. See varuna_shortage.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_shortage.h"

#include <ucs/debug/log.h>


static void uct_varuna_shortage_failed(uct_varuna_backoff_t *backoff, const char *what,
                                       const char *where, ucs_status_t status,
                                       ucs_time_t now)
{
    if (uct_varuna_backoff_failed(backoff, status, now)) {
        ucs_warn("rc_varuna: %s gives no %s (%s): other links carry the traffic; it is asked "
                 "again in %.0f s, and less often after each refusal", where, what,
                 ucs_status_string(status), ucs_time_to_sec(uct_varuna_backoff_distance(backoff)));
    } else {
        ucs_debug("rc_varuna: %s gives no %s (%s), refusal %u: it is asked again in %.0f s",
                  where, what, ucs_status_string(status), backoff->failures,
                  ucs_time_to_sec(uct_varuna_backoff_distance(backoff)));
    }
}

void uct_varuna_shortage_note(uct_varuna_shortage_t *shortage, const char *what,
                              const char *where, ucs_status_t status, ucs_time_t now)
{
    unsigned failures;

    if (status != UCS_OK) {
        uct_varuna_shortage_failed(&shortage->backoff, what, where, status, now);
        return;
    }

    failures = uct_varuna_backoff_succeeded(&shortage->backoff);
    if (failures > 0) {
        ucs_diag("rc_varuna: %s gives %s %s again, after %u refusals", where,
                 (what[0] == 'a') ? "an" : "a", what, failures);
    }
}
