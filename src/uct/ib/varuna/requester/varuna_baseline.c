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
#include <uct/ib/varuna/ctl/varuna_path.h>
#include "varuna_lane.h"
#include "varuna_ring.h"
#include "varuna_rebuild.h"

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
            uct_varuna_ep_set_lane(ep, &ep->next.lane);
            ep->next.lane.ep    = NULL;
            ep->next.ready = 0;
            ep->next.spare = 0;
            ep->next.tried = 0;
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
    [UCT_VARUNA_RECOVERY_RESEND]       = {
        .decide     = uct_varuna_resend_mark,
        .take_lane  = uct_varuna_resend_take_lane,
        .spare_link = uct_varuna_resend_no_spare_link
    },
    [UCT_VARUNA_RECOVERY_RESEND_CACHE] = {
        .decide     = uct_varuna_resend_mark,
        .take_lane  = uct_varuna_resend_take_lane,
        .spare_link = uct_varuna_resend_spare_link
    },
    [UCT_VARUNA_RECOVERY_NONE]         = {
        .is_fatal   = 1,
        .spare_link = uct_varuna_resend_no_spare_link
    }
};

const uct_varuna_baseline_t *uct_varuna_baseline(uct_varuna_recovery_mode_t mode)
{
    return (mode == UCT_VARUNA_RECOVERY_VARUNA) ? NULL :
           &uct_varuna_baselines[mode];
}
