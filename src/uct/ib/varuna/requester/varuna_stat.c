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
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_witness.h>

#include <ucs/debug/log.h>
#include <ucs/stats/stats.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>

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
    uint64_t *fences                  = requester->link_stats[ep->recovery.dead.link].fences;

    ep->recovery.fenced = fenced;
    /* rc_varuna_status() reads it in any thread */
    __atomic_store_n(&fences[fenced], fences[fenced] + 1, __ATOMIC_RELAXED);
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

void uct_varuna_stat_settle(uct_varuna_ep_t *ep)
{
    if (ep->lane.link != UCT_VARUNA_LINK_NONE) {
        uct_varuna_ep_requester(ep)->link_stats[ep->lane.link].posted +=
                uct_varuna_stat_unsettled(ep);
    }
    ep->report.settled = ep->stats.posted;
}

/* --- Outages --- */

/* Lines about peers without a link.
 *
 * A line waits a moment for other peers of which the same is true; that endpoints fail is
 * written in the progress call in which they do. Then the line is kept for a while, and counts
 * who follows. */

/* Times in seconds by the clock of the scan, which pauses while the application does not call
 * progress */
#define UCT_VARUNA_OUTAGE_TIME       1.0   /* Without a link */
#define UCT_VARUNA_OUTAGE_LOOK       0.1   /* Between two looks at a peer */
#define UCT_VARUNA_OUTAGE_OVER       0.5   /* Nobody waits for it any more */
#define UCT_VARUNA_OUTAGE_DELAY      0.2   /* Others may follow */
#define UCT_VARUNA_OUTAGE_PERIOD     1.0   /* Between lines that say the same */

struct uct_varuna_outage {
    uct_varuna_outage_t        *next;
    int                        is_end;     /* Endpoints fail */
    unsigned                   number;     /* Unique, another one after it was written */
    uint64_t                   uuid;       /* Of the first peer */
    unsigned                   num_peers;
    unsigned                   num_eps;    /* That fail */
    ucs_time_t                 age;        /* How long the first one has waited */
    ucs_time_t                 due;
    char                       text[];     /* Why */
};


static ucs_time_t uct_varuna_outage_clock(const uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_requester(ep)->scan.clock;
}

/* --- Lines --- */

static uct_varuna_outage_t *
uct_varuna_outage_find(const uct_varuna_requester_t *requester, const char *text, int is_end)
{
    uct_varuna_outage_t *line;

    for (line = requester->outage.lines; line != NULL; line = line->next) {
        if ((line->is_end == is_end) && !strcmp(line->text, text)) {
            break;
        }
    }

    return line;
}

static uct_varuna_outage_t *
uct_varuna_outage_new(uct_varuna_requester_t *requester, const char *text, int is_end)
{
    size_t size = strlen(text) + 1;
    uct_varuna_outage_t *line;

    line = ucs_calloc(1, sizeof(*line) + size, "varuna_outage");
    if (line == NULL) {
        return NULL;
    }

    memcpy(line->text, text, size);
    line->is_end            = is_end;
    line->number            = ++requester->outage.number;
    line->due               = requester->scan.clock +
                              (is_end ? 0 : ucs_time_from_sec(UCT_VARUNA_OUTAGE_DELAY));
    line->next              = requester->outage.lines;
    requester->outage.lines = line;
    return line;
}

static void uct_varuna_outage_print(const uct_varuna_requester_t *requester,
                                    const uct_varuna_outage_t *line)
{
    ucs_log_level_t level = requester->super.super.config.failure_level;
    char others[32]       = "";

    if (line->num_peers > 1) {
        ucs_snprintf_safe(others, sizeof(others), " and %u more", line->num_peers - 1);
    }

    if (line->is_end) {
        ucs_log(level, "rc_varuna: %u endpoint%s to peer 0x%lx%s fail%s, after %.1f s without an "
                "answer: %s", line->num_eps, (line->num_eps == 1) ? "" : "s", line->uuid,
                 others, (line->num_eps == 1) ? "s" : "", ucs_time_to_sec(line->age),
                 line->text);
    } else {
        ucs_log(level, "rc_varuna: no link to peer 0x%lx%s for %.1f s: %s", line->uuid, others,
                ucs_time_to_sec(line->age), line->text);
    }
}

/* @return Whether it is over. */
static int uct_varuna_outage_step(uct_varuna_requester_t *requester,
                                  uct_varuna_outage_t *line, int is_last)
{
    if (!is_last && (requester->scan.clock < line->due)) {
        return 0;
    }

    if (line->num_peers == 0) {
        return 1;
    }

    uct_varuna_outage_print(requester, line);
    line->num_peers = 0;
    line->num_eps   = 0;
    line->number    = ++requester->outage.number;
    line->due       = requester->scan.clock + ucs_time_from_sec(UCT_VARUNA_OUTAGE_PERIOD);
    return is_last;
}

static void uct_varuna_outage_step_all(uct_varuna_requester_t *requester, int is_last)
{
    uct_varuna_outage_t **next_p = &requester->outage.lines;
    uct_varuna_outage_t *line;

    while ((line = *next_p) != NULL) {
        if (uct_varuna_outage_step(requester, line, is_last)) {
            *next_p = line->next;
            ucs_free(line);
        } else {
            next_p = &line->next;
        }
    }
}

void uct_varuna_outage_write(uct_varuna_requester_t *requester)
{
    if (ucs_unlikely(requester->outage.lines != NULL)) {
        uct_varuna_outage_step_all(requester, 0);
    }
}

void uct_varuna_outage_cleanup(uct_varuna_requester_t *requester)
{
    uct_varuna_outage_step_all(requester, 1);
}

/* Count the peer in the line that says why. @return That line. */
static uct_varuna_outage_t *
uct_varuna_outage_note(uct_varuna_ep_t *ep, int is_end, ucs_time_t age)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);
    uct_varuna_ctl_t *ctl             = uct_varuna_ep_iface(ep)->ctl;
    uct_varuna_outage_t *line;
    ucs_string_buffer_t text;

    ucs_string_buffer_init(&text);
    uct_varuna_ctl_lock(ctl);
    uct_varuna_ways_describe(ctl, ep->peer, &text);
    uct_varuna_ctl_unlock(ctl);
    line = uct_varuna_outage_find(requester, ucs_string_buffer_cstr(&text), is_end);
    if (line == NULL) {
        line = uct_varuna_outage_new(requester, ucs_string_buffer_cstr(&text), is_end);
    }
    ucs_string_buffer_cleanup(&text);

    if ((line != NULL) && (line->num_peers++ == 0)) {
        line->uuid = ep->peer->uuid;
        line->age  = age;
    }

    return line;
}

/* --- Peers --- */

/* A link that is used, or could be as far as is known */
static int uct_varuna_outage_has_way(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_ways_t ways;
    unsigned link;

    uct_varuna_ctl_lock(iface->ctl);
    uct_varuna_ways_get(iface->ctl, ep->peer, &ways);
    uct_varuna_ctl_unlock(iface->ctl);
    ucs_for_each_bit(link, uct_varuna_ways_open(&ways)) {
        if ((iface->link_table.links[link].damp.state != UCT_VARUNA_DAMP_DOWN) &&
            (ep->peer->paths[link].damp.state != UCT_VARUNA_DAMP_DOWN)) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_outage_check(uct_varuna_ep_t *ep)
{
    ucs_time_t clock                  = uct_varuna_outage_clock(ep);
    uct_varuna_requester_peer_t *peer =
            uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer);
    ucs_time_t last                   = peer->outage.looked_at;

    if ((last != 0) && ((clock - last) < ucs_time_from_sec(UCT_VARUNA_OUTAGE_LOOK))) {
        return;
    }

    peer->outage.looked_at = clock;
    if (uct_varuna_outage_has_way(ep) ||
        ((clock - last) > ucs_time_from_sec(UCT_VARUNA_OUTAGE_OVER))) {
        peer->outage.since = clock;
        peer->outage.told  = 0;
    } else if (!peer->outage.told &&
               ((clock - peer->outage.since) >= ucs_time_from_sec(UCT_VARUNA_OUTAGE_TIME))) {
        peer->outage.told = 1;
        (void)uct_varuna_outage_note(ep, 0, clock - peer->outage.since);
    }
}

void uct_varuna_outage_give_up(uct_varuna_ep_t *ep, ucs_time_t age)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);
    uct_varuna_requester_peer_t *peer =
            uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer);
    uct_varuna_outage_t *line         = requester->outage.lines;

    /* Of thousands of endpoints to a peer, the first one finds out why */
    while ((line != NULL) && (line->number != peer->outage.line)) {
        line = line->next;
    }

    if (line == NULL) {
        line = uct_varuna_outage_note(ep, 1, age);
    }

    if (line != NULL) {
        peer->outage.line = line->number;
        ++line->num_eps;
    }
}
