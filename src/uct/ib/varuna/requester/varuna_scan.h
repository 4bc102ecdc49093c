/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The background scan over the endpoints: those that do not post notice failures, and
 * requests that hang are found. Main thread.
 */
#ifndef UCT_VARUNA_SCAN_H_
#define UCT_VARUNA_SCAN_H_

#include "varuna_ep.h"

/* Time between two scans, seconds; more if the application calls progress less often */
#define UCT_VARUNA_SCAN_PERIOD  1e-3

/** @return Whether the next scan is due. */
static inline int
uct_varuna_scan_is_due(const uct_varuna_requester_t *requester, ucs_time_t now)
{
    return now >= requester->scan.at;
}

/** @return Whether endpoints have not been looked at since the last failure. */
static inline int
uct_varuna_scan_is_behind(const uct_varuna_requester_t *requester)
{
    return (requester->scan.left > 0) ||
           (requester->scan.failures != requester->super.failures);
}

/** Look at some endpoints. */
void uct_varuna_scan(uct_varuna_requester_t *requester, ucs_time_t now);

#endif
