/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The baselines of the paper: recovery that repeats blindly. Main thread only.
 */
#ifndef UCT_VARUNA_RESEND_H_
#define UCT_VARUNA_RESEND_H_

#include "varuna_lane.h"

static inline int uct_varuna_ep_is_resend(const uct_varuna_ep_t *ep)
{
    uct_varuna_recovery_mode_t mode = uct_varuna_ep_iface(ep)->config.recovery;

    return (mode == UCT_VARUNA_RECOVERY_RESEND) ||
           (mode == UCT_VARUNA_RECOVERY_RESEND_CACHE);
}

/** The lane is drained: all that was posted on it shall be repeated. */
void uct_varuna_resend_mark(uct_varuna_ep_t *ep);

/** Take the RC connection, which has to be made first unless there is a spare.
 *  @return 0 if there is none yet. */
int uct_varuna_resend_take_lane(uct_varuna_ep_t *ep, ucs_time_t now);

/** RESEND_CACHE: the link for a spare RC connection, besides the one in use.
 *  UCT_VARUNA_LINK_NONE: none is wanted. */
uint8_t uct_varuna_resend_spare_link(const uct_varuna_ep_t *ep);

#endif
