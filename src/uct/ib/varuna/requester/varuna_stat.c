/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Counts and reports the switches of endpoints, and shows the counters of an
 * endpoint as UCX's statistics. See varuna_stat.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_stat.h"
#include "varuna_ring.h"

#include <ucs/debug/log.h>
#include <ucs/stats/stats.h>

#define UCT_VARUNA_STAT_COUNT(_name) + 1

enum {
    UCT_VARUNA_STAT_NUM_EP  = 0 UCT_VARUNA_STAT_EP(UCT_VARUNA_STAT_COUNT),
    UCT_VARUNA_STAT_NUM_AMO = 0 UCT_VARUNA_STAT_AMO(UCT_VARUNA_STAT_COUNT)
};

UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_STAT_NUM_EP * sizeof(uint64_t) ==
                         sizeof(((uct_varuna_ep_t*)NULL)->stats));
UCT_VARUNA_STATIC_ASSERT(UCT_VARUNA_STAT_NUM_AMO * sizeof(uint64_t) ==
                         sizeof(((uct_varuna_ep_t*)NULL)->amo.stats));

static const char *uct_varuna_fenced_names[UCT_VARUNA_FENCED_LAST] = {
    [UCT_VARUNA_FENCED_NOT]   = "none",
    [UCT_VARUNA_FENCED_RESET] = "reset",
    [UCT_VARUNA_FENCED_DC]    = "dc",
    [UCT_VARUNA_FENCED_DEAD]  = "nic-dead",
    [UCT_VARUNA_FENCED_HUNG]  = "nic-hung",
    [UCT_VARUNA_FENCED_OTHER] = "other"
};

void uct_varuna_stat_failing(uct_varuna_ep_t *ep, ucs_time_t waited)
{
    memset(&ep->recovery.spent, 0, sizeof(ep->recovery.spent));
    ep->recovery.spent.detect = ucs_time_to_usec(waited);
    ep->stats.detect_usec    += ep->recovery.spent.detect;
    ep->recovery.fenced       = UCT_VARUNA_FENCED_NOT;
}

void uct_varuna_stat_spent(uct_varuna_ep_t *ep, uct_varuna_ep_state_t state,
                           ucs_time_t time)
{
    uint64_t usec = ucs_time_to_usec(time);

    switch (state) {
    case UCT_VARUNA_EP_DRAIN:
        ep->recovery.spent.drain += usec;
        ep->stats.drain_usec     += usec;
        break;
    case UCT_VARUNA_EP_FENCE:
        ep->recovery.spent.fence += usec;
        ep->stats.fence_usec     += usec;
        break;
    case UCT_VARUNA_EP_REPEAT:
        ep->recovery.spent.repeat += usec;
        ep->stats.repeat_usec     += usec;
        break;
    default:
        break;
    }
}

void uct_varuna_stat_fenced(uct_varuna_ep_t *ep, uct_varuna_fenced_t fenced)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);

    ep->recovery.fenced = fenced;
    ++requester->link_stats[ep->recovery.dead.link].fences[fenced];
    ep->stats.fences_reset    += (fenced == UCT_VARUNA_FENCED_RESET);
    ep->stats.fences_lifetime += (fenced != UCT_VARUNA_FENCED_RESET) &&
                                 (fenced != UCT_VARUNA_FENCED_NOT);
}

/* Which completion is the first of the new lane? */
static void uct_varuna_stat_mark_first(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (req->flags & UCT_VARUNA_REQ_FLAG_FIRST) {
            return; /* That lane failed as well */
        } else if (!(req->flags & UCT_VARUNA_REQ_FLAG_DONE)) {
            req->flags |= UCT_VARUNA_REQ_FLAG_FIRST;
            return;
        }
    }

    ep->recovery.noticed_at = 0; /* No request waits */
}

/* The sums of the link which was left. */
static void uct_varuna_stat_count(const uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface          = uct_varuna_ep_iface(ep);
    const uct_varuna_plan_result_t *rs = &ep->recovery.result;
    unsigned link                      = ep->recovery.from_link;

    uct_varuna_requester(iface)->link_stats[link].executed  += rs->executed;
    uct_varuna_requester(iface)->link_stats[link].lost      += rs->lost;
    uct_varuna_requester(iface)->link_stats[link].ambiguous += rs->ambiguous;
    uct_varuna_requester(iface)->link_stats[link].repeated  += rs->repeated;
}

/* The one readable line per switch. */
static void uct_varuna_stat_log(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface          = uct_varuna_ep_iface(ep);
    const uct_varuna_plan_result_t *rs = &ep->recovery.result;

    ++ep->stats.switches;
    ep->stats.recovery_usec += ucs_time_to_usec(ucs_get_time() -
                                                ep->recovery.start);
    ucs_info("rc_varuna: switched vqp=%u from=%s was=%s to=%s lane=%s "
             "reason=\"%s\" "
             "executed=%u lost=%u repeated=%u ambiguous=%u equal=%u "
             "different=%u fence=%s time_us=%.0f detect_us=%u drain_us=%u "
             "fence_us=%u repeat_us=%u",
             ep->id, uct_varuna_link_name(iface, ep->recovery.from_link),
             uct_varuna_lane_names[ep->recovery.from_kind],
             uct_varuna_link_name(iface, ep->lane.link),
             uct_varuna_lane_names[ep->lane.kind], ep->recovery.reason,
             rs->executed, rs->lost, rs->repeated, rs->ambiguous,
             ep->recovery.equal, ep->recovery.different,
             uct_varuna_fenced_names[ep->recovery.fenced],
             ucs_time_to_usec(ucs_get_time() - ep->recovery.start),
             ep->recovery.spent.detect, ep->recovery.spent.drain,
             ep->recovery.spent.fence, ep->recovery.spent.repeat);
}

void uct_varuna_stat_switched(uct_varuna_ep_t *ep)
{
    uct_varuna_stat_log(ep);
    ++uct_varuna_ep_requester(ep)->link_stats[ep->recovery.from_link].switches;
    uct_varuna_stat_count(ep);
    uct_varuna_stat_mark_first(ep);
    uct_varuna_stat_publish(ep);
}

void uct_varuna_stat_failed(uct_varuna_ep_t *ep)
{
    uct_varuna_stat_count(ep);
    uct_varuna_stat_publish(ep);
}

#ifdef ENABLE_STATS
static ucs_stats_class_t uct_varuna_stat_class = {
    .name          = "rc_varuna_ep",
    .num_counters  = UCT_VARUNA_STAT_NUM_EP + UCT_VARUNA_STAT_NUM_AMO,
    .class_id      = UCS_STATS_CLASS_ID_INVALID,
    .counter_names = {
#define UCT_VARUNA_STAT_EP_NAME(_name) #_name,
        UCT_VARUNA_STAT_EP(UCT_VARUNA_STAT_EP_NAME)
#define UCT_VARUNA_STAT_AMO_NAME(_name) "atomics_" #_name,
        UCT_VARUNA_STAT_AMO(UCT_VARUNA_STAT_AMO_NAME)
    }
};
#endif

ucs_status_t uct_varuna_stat_init(uct_varuna_ep_t *ep)
{
    return UCS_STATS_NODE_ALLOC(&ep->report.node, &uct_varuna_stat_class,
                                ep->super.stats, "-%p", ep);
}

void uct_varuna_stat_cleanup(uct_varuna_ep_t *ep)
{
    uct_varuna_stat_publish(ep); /* UCX reports nodes that are gone, too */
    UCS_STATS_NODE_FREE(ep->report.node);
}

void uct_varuna_stat_publish(uct_varuna_ep_t *ep)
{
#ifdef ENABLE_STATS
    ucs_stats_node_t *node = ep->report.node;

    if (node != NULL) {
        memcpy(node->counters, &ep->stats, sizeof(ep->stats));
        memcpy(node->counters + UCT_VARUNA_STAT_NUM_EP, &ep->amo.stats,
               sizeof(ep->amo.stats));
    }
#endif
}
