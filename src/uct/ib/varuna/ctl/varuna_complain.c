/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Warnings about what peers send. See varuna_complain.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_complain.h"

#include <ucs/debug/log.h>

/* Seconds between two */
#define UCT_VARUNA_CTL_WARN_PERIOD   1.0


void uct_varuna_ctl_complain(uct_varuna_ctl_t *ctl, uint64_t uuid,
                             const char *what, const char *reason)
{
    ucs_time_t now = uct_varuna_ctl_now(ctl);

    if ((ctl->complaints.warned_at != 0) &&
        (now < (ctl->complaints.warned_at +
                ucs_time_from_sec(UCT_VARUNA_CTL_WARN_PERIOD)))) {
        ++ctl->complaints.unwarned;
        ucs_debug("dropped %s of peer 0x%lx: %s", what, uuid, reason);
        return;
    }

    ucs_warn("dropped %s of peer 0x%lx: %s (%u more since the last such "
             "warning)", what, uuid, reason, ctl->complaints.unwarned);
    ctl->complaints.warned_at = now;
    ctl->complaints.unwarned  = 0;
}
