/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What others do when a lane fails, for measurements (paper, section "Experimental Setup").
 * Baselines execute operations twice, or not at all. So the plugin has none: one is in
 * libuct_varuna_baselines.so, which is not installed (configure --enable-baselines). Each is
 * a row of one table; recovery and swap call what differs.
 */
#ifndef UCT_VARUNA_BASELINE_H_
#define UCT_VARUNA_BASELINE_H_

#include "varuna_ep.h"

struct uct_varuna_baseline {
    const char                 *name;
    uint8_t                    is_fatal;  /* A failed lane is the endpoint's end */

    /* Decide on the requests of a lane at rest, without the responder. */
    void                       (*decide)(uct_varuna_ep_t *ep);

    /* Get another lane. @return nonzero if there is one. */
    int                        (*take_lane)(uct_varuna_ep_t *ep, ucs_time_t now);

    /* @return The link on which a spare lane is wanted, or UCT_VARUNA_LINK_NONE. */
    uint8_t                    (*spare_link)(const uct_varuna_ep_t *ep);
};

static inline const uct_varuna_baseline_t *
uct_varuna_ep_baseline(const uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_requester(ep)->baseline;
}

/** @return The baseline of an interface that is opened, NULL if none was selected. In the
 *  plugin, which has no baselines, the function is NULL. */
const uct_varuna_baseline_t *uct_varuna_baseline_select(void) __attribute__((weak));

/** @return The baseline of this name: "resend", "resend_cache" or "none"; else NULL. */
const uct_varuna_baseline_t *uct_varuna_baseline_find(const char *name);

#endif
