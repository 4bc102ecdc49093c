/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * none: the endpoint fails with its lane. resend and resend_cache: RC is connected on
 * another link, or is there as a spare; then everything unfinished is repeated, whether
 * it was executed or not. The responder is not asked, and nothing is fenced.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_baseline.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_lane.h"
#include "varuna_ring.h"
#include "varuna_sm.h"

#include <ucs/debug/log.h>
#include <stdlib.h>
#include <string.h>

static void uct_varuna_resend_mark(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;
    int is_posted;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        is_posted   = !!(req->flags & UCT_VARUNA_REQ_FLAG_POSTED);
        req->flags &= ~UCT_VARUNA_REQ_FLAGS_OF_LANE;
        if (!is_posted) {
            continue;
        }

        ++ep->recovery.result.repeated;
        ++ep->stats.repeated;
        ep->stats.repeated_bytes += req->length;
    }
}

static int uct_varuna_resend_take_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uint8_t link;

    if (ep->next.lane.ep != NULL) {
        if (uct_varuna_ep_is_next_stale(ep)) {
            uct_varuna_ep_drop_next(ep); /* The spare has failed, too */
        } else if (ep->next.ready) {
            uct_varuna_rebuild_use_next(ep);
            return 1;
        } else if (uct_varuna_rebuild_is_due(ep, now)) {
            uct_varuna_rebuild_ask_or_leave(ep, now);
        }
        return 0;
    }

    link = uct_varuna_rebuild_select_link(ep, now);
    if (link != UCT_VARUNA_LINK_NONE) {
        uct_varuna_ep_connect_rc(ep, link, now);
    }

    return 0;
}

static uint8_t uct_varuna_resend_no_spare_link(const uct_varuna_ep_t *ep)
{
    return UCT_VARUNA_LINK_NONE;
}

static uint8_t uct_varuna_resend_spare_link(const uct_varuna_ep_t *ep)
{
    return uct_varuna_link_select(&uct_varuna_ep_iface(ep)->link_table,
                                  UCT_VARUNA_LINK_NONE,
                                  uct_varuna_peer_usable_links(ep->peer) &
                                  ~UCS_BIT(ep->lane.link));
}

static const uct_varuna_baseline_t uct_varuna_baselines[] = {
    {
        .name       = "resend",
        .decide     = uct_varuna_resend_mark,
        .take_lane  = uct_varuna_resend_take_lane,
        .spare_link = uct_varuna_resend_no_spare_link
    },
    {
        .name       = "resend_cache",
        .decide     = uct_varuna_resend_mark,
        .take_lane  = uct_varuna_resend_take_lane,
        .spare_link = uct_varuna_resend_spare_link
    },
    {
        .name       = "none",
        .is_fatal   = 1,
        .spare_link = uct_varuna_resend_no_spare_link
    }
};

const uct_varuna_baseline_t *uct_varuna_baseline_find(const char *name)
{
    unsigned i;

    for (i = 0; i < ucs_static_array_size(uct_varuna_baselines); ++i) {
        if (!strcmp(uct_varuna_baselines[i].name, name)) {
            return &uct_varuna_baselines[i];
        }
    }

    return NULL;
}

/* No option of UCX, as nobody is to set it by mistake */
const uct_varuna_baseline_t *uct_varuna_baseline_select(void)
{
    const char *name = getenv("RC_VARUNA_BASELINE");
    const uct_varuna_baseline_t *baseline;

    if (name == NULL) {
        return NULL;
    }

    baseline = uct_varuna_baseline_find(name);
    if (baseline == NULL) {
        ucs_fatal("RC_VARUNA_BASELINE=%s is no baseline: it is resend, resend_cache or "
                  "none", name);
    }

    return baseline;
}
