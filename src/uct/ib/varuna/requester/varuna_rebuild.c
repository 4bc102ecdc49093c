/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Connects RC in the background, on the present link, or on a better one. When it is
 * connected, the vQP changes to it: a planned change, below.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_sm.h"
#include "varuna_ep.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/lanes/varuna_ib_addr.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_amo_ops.h"
#include "varuna_baseline.h"
#include "varuna_lane.h"
#include "varuna.inl"
#include "varuna_pending.h"
#include "varuna_ring.h"

/* How often the time between CONNECT_REQs doubles at most. */
#define UCT_VARUNA_MAX_CONNECT_BACKOFF 6

/* How often an endpoint that has no lane asks on each link. */
#define UCT_VARUNA_MAX_CONNECT_TRIES 3

/* The link of the lane is not to be used any more, here or at the peer: any other one will
 * do. */
static uint8_t uct_varuna_ep_refuge(const uct_varuna_ep_t *ep)
{
    const uct_varuna_link_table_t *table = &uct_varuna_ep_iface(ep)->link_table;
    unsigned usable                      = uct_varuna_peer_usable_links(ep->peer) &
                                           ~uct_varuna_ep_keyless_links(ep);
    uint8_t link;

    link = uct_varuna_link_select(table, UCT_VARUNA_LINK_NONE,
                                  usable & ~UCS_BIT(ep->lane.link) &
                                  ~ep->peer->retired);
    if ((link == UCT_VARUNA_LINK_NONE) &&
        !uct_varuna_link_is_retired(table, ep->lane.link)) {
        link = uct_varuna_link_select(table, ep->lane.link,
                                      usable & UCS_BIT(ep->lane.link));
    } else if (link == UCT_VARUNA_LINK_NONE) {
        link = uct_varuna_link_select(table, UCT_VARUNA_LINK_NONE, usable);
    }

    return link;
}

/* The link on which RC is wanted: the present one, or a better one which has been good
 * for long enough. */
static uint8_t uct_varuna_ep_rc_link(const uct_varuna_ep_t *ep, ucs_time_t now)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned usable, keyless;

    if (uct_varuna_link_is_retired(&iface->link_table, ep->lane.link) ||
        (ep->peer->retired & UCS_BIT(ep->lane.link))) {
        return uct_varuna_ep_refuge(ep);
    }

    keyless = uct_varuna_ep_keyless_links(ep);
    if ((ep->lane.link == 0) && !(keyless & UCS_BIT(0)) &&
        (iface->link_table.links[0].damp.state == UCT_VARUNA_DAMP_UP) &&
        (ep->peer->paths[0].damp.state == UCT_VARUNA_DAMP_UP)) {
        return 0; /* None is better than the first one */
    }

    usable = uct_varuna_peer_usable_links(ep->peer) & ~keyless;
    if (usable & UCS_BIT(ep->lane.link)) {
        usable = UCS_BIT(ep->lane.link) |
                 (uct_varuna_peer_returnable_links(iface, ep->peer, now) &
                  ~ep->peer->retired & ~keyless);
    }

    return uct_varuna_link_select(&iface->link_table, ep->lane.link, usable);
}

int uct_varuna_ep_is_next_stale(const uct_varuna_ep_t *ep)
{
    const uct_varuna_path_t *path       = &ep->peer->paths[ep->next.lane.link];
    const uct_varuna_link_entry_t *link =
            &uct_varuna_ep_iface(ep)->link_table.links[ep->next.lane.link];

    /* Without any lane, even one on a path or link that should not be used is welcome */
    return ((ep->lane.ep != NULL) && ((path->damp.state != UCT_VARUNA_DAMP_UP) ||
                                      (link->damp.state == UCT_VARUNA_DAMP_DOWN))) ||
           (path->generation != ep->next.lane.path_gen) ||
           (link->generation != ep->next.lane.link_gen);
}

static void uct_varuna_ep_send_connect(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface     = uct_varuna_ep_iface(ep);
    const uct_varuna_link_t *link = &iface->links[ep->next.lane.link];
    size_t ep_len = uct_varuna_link_rc(link)->attr.ep_addr_len;
    struct {
        uct_varuna_ctl_connect_t msg;
        uint8_t                  addr[256];
    } UCS_S_PACKED body;

    if (link->device_addr_len + ep_len > sizeof(body.addr)) {
        uct_varuna_ep_fail_next(ep);
        return;
    }

    if (uct_varuna_ep_next_is_former(ep)) {
        uct_varuna_ep_fail_next(ep); /* The peer's NIC was opened again since */
        return;
    }

    body.msg.link       = ep->peer->links[ep->next.lane.link].nic;
    body.msg.generation = ep->peer->links[ep->next.lane.link].generation;
    body.msg.status     = 0;
    body.msg.device_len = link->device_addr_len;
    body.msg.ep_len     = ep_len;
    body.msg.home_epoch = 0;
    body.msg.home_nic   = 0;
    body.msg.in_use     = (ep->lane.ep != NULL) ? ep->lane.epoch : ep->next.lane.epoch;
    body.msg.am_acked   = uct_varuna_ep_am_acked(ep);
    body.msg.reserved   = 0;
    memcpy(body.addr, link->device_addr, link->device_addr_len);
    if (uct_ep_get_address(ep->next.lane.ep,
                           (uct_ep_addr_t*)(body.addr + link->device_addr_len))
        != UCS_OK) {
        uct_varuna_ep_fail_next(ep);
        return;
    }

    /* Over the very link: the answer proves that the path is good */
    ++ep->stats.rebuild_messages;
    uct_varuna_ep_ctl_send(ep, ep->next.lane.link, UCT_VARUNA_CTL_CONNECT_REQ,
                           ep->next.lane.epoch, &body,
                           sizeof(body.msg) + body.msg.device_len + ep_len);
}

/* Over the same link each time: if that is dead, the lane is of no use. */
static void uct_varuna_rebuild_count_try(uct_varuna_ep_t *ep, unsigned link,
                                         ucs_time_t now)
{
    const uct_varuna_retry_policy_t policy = {
        .interval = 4 * uct_varuna_ep_iface(ep)->config.ctl_timeout,
        /* Without any lane, the next link is tried soon */
        .backoff  = (ep->lane.ep == NULL) ? 0 : UCT_VARUNA_MAX_CONNECT_BACKOFF
    };

    uct_varuna_retry_next(&ep->next.retry, &policy, link, UCS_BIT(link), now);
}

/* No answer to CONNECT_REQ: a peer which computes, and has no spare queue pair
 * left, answers when its application calls progress. So that is no failure of the
 * path. */
static void uct_varuna_ep_connect_again(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_is_next_stale(ep)) {
        ep->next.failed = 1;
        uct_varuna_ep_add_work(ep);
        return;
    }

    uct_varuna_rebuild_count_try(ep, ep->next.lane.link, now);
    uct_varuna_ep_send_connect(ep);
}

void uct_varuna_ep_connect_rc(uct_varuna_ep_t *ep, unsigned link,
                              ucs_time_t now)
{
    uct_varuna_retry_start(&ep->next.retry, now, now);
    uct_varuna_rebuild_count_try(ep, link, now);
    if (uct_varuna_lane_create(ep, uct_varuna_link_set(uct_varuna_ep_iface(ep), link)->fast,
                               link, &ep->next.lane) ==
        UCS_OK) {
        ep->next.counted = 1;
        uct_varuna_ep_note_next_generation(ep);
        ++uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer)->connecting;
        uct_varuna_ep_send_connect(ep);
    } else if (ep->lane.ep == NULL) {
        ep->next.tried |= UCS_BIT(link);
    }
}

/* Without a PSN the log alone decides. */
static void uct_varuna_rebuild_read_psn(uct_varuna_lane_t *lane)
{
    uint32_t mtu;

    lane->mtu = (uct_varuna_tl_query_sq(lane->ep, lane->kind, &lane->psn, &mtu) == UCS_OK) ?
                mtu : 0;
}

void
uct_varuna_ep_handle_connect_rep(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_hdr_t *hdr,
                                 const uct_varuna_ctl_connect_t *rep)
{
    const uct_varuna_link_t *link;
    ucs_status_t status;

    if ((ep->next.lane.ep == NULL) || (hdr->epoch != ep->next.lane.epoch) ||
        ep->next.proving || ep->next.ready ||
        ep->next.failed) {
        return;
    }

    uct_varuna_ep_note_life(ep);
    ++ep->stats.rebuild_messages;
    uct_varuna_requester(uct_varuna_ep_iface(ep))->amo->learn_home(
            ep, rep->home_nic, rep->home_epoch);
    link = &uct_varuna_ep_iface(ep)->links[ep->next.lane.link];
    if ((rep->status == 0) &&
        ((rep->device_len == 0) ||
         (rep->ep_len != uct_varuna_link_rc(link)->attr.ep_addr_len))) {
        ucs_diag("ep %p: the peer's RC address has %u + %u bytes: install the"
                 " same UCX on both hosts", ep, rep->device_len, rep->ep_len);
        uct_varuna_ep_fail_next(ep);
        return;
    }

    if (rep->status == 0) {
        uct_varuna_ep_forget_left(ep); /* CONNECT_REQ has ended it */
        status = uct_varuna_rc_connect(link, ep->next.lane.ep, rep);
        if (status == UCS_OK) {
            uct_varuna_rebuild_read_psn(&ep->next.lane);
        }
    } else {
        ucs_debug("ep %p: the peer cannot connect: %s", ep,
                  ucs_status_string(-(int)rep->status));
        status = UCS_ERR_UNREACHABLE;
    }

    if (status != UCS_OK) {
        uct_varuna_ep_fail_next(ep);
        return;
    }

    if (uct_varuna_ep_is_next_stale(ep)) {
        ep->next.failed = 1;
        uct_varuna_ep_add_work(ep);
        return;
    }

    uct_varuna_ep_connect_ended(ep);
    uct_varuna_heartbeat_renew(ep->peer, ep->next.lane.link);
    ep->next.proving      = (ep->next.lane.mtu != 0) &&
                            (uct_varuna_ep_baseline(ep) == NULL);
    ep->next.proof_posted = 0;
    ep->next.ready        = !ep->next.proving;
    uct_varuna_ep_add_work(ep);
}

/*
 * The first write of a connection, into a word after the logs that nobody reads: it may be
 * late, when the ring has another user. Once it is acknowledged, no true PSN is the initial
 * one any more, and a device that reports the initial one is not believed (varuna_plan.c).
 */
static ucs_status_t uct_varuna_rebuild_post_proof(uct_varuna_ep_t *ep)
{
    uct_varuna_lane_t *lane = &ep->next.lane;
    uint64_t nothing        = 0;
    ucs_status_t status;

    status = uct_ep_put_short(lane->ep, &nothing, sizeof(nothing),
                              ep->remote.logs_addr + UCT_VARUNA_LOG_SCRATCH,
                              uct_varuna_rkey_inner(ep->remote.log_bundle.rkey,
                                                    ep->peer->links[lane->link].nic));
    if (status == UCS_OK) {
        lane->acked_psn       = lane->psn;
        ep->next.proof_posted = 1;
        uct_varuna_lane_advance_psn(lane, 1);
    }

    return status;
}

void uct_varuna_rebuild_prove(uct_varuna_ep_t *ep)
{
    ucs_status_t status = UCS_OK;
    unsigned num_psns;

    if (!ep->next.proof_posted) {
        status = uct_varuna_rebuild_post_proof(ep);
    }

    if (status == UCS_OK) {
        status = uct_varuna_tl_flush(ep->next.lane.ep, ep->next.lane.kind, NULL,
                                     &num_psns);
        uct_varuna_lane_advance_psn(&ep->next.lane, num_psns);
    }

    if (status == UCS_OK) {
        ep->next.lane.acked_psn = ep->next.lane.psn;
        ep->next.proving        = 0;
        ep->next.ready          = 1;
    } else if (UCS_STATUS_IS_ERR(status) && (status != UCS_ERR_NO_RESOURCE)) {
        ep->next.proving = 0;
        uct_varuna_ep_fail_next(ep);
    }
}

uint8_t uct_varuna_rebuild_select_link(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uint8_t link = uct_varuna_ep_select_among(ep, ep->peer->link_map & ~ep->next.tried);

    if ((link != UCT_VARUNA_LINK_NONE) || (ep->next.tried == 0) ||
        !uct_varuna_rebuild_is_due(ep, now)) {
        return link;
    }

    ep->next.tried = 0; /* All once more */
    return uct_varuna_ep_select_among(ep, ep->peer->link_map);
}

static void uct_varuna_rebuild_begin(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uint8_t link;

    if (uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer)->connecting >=
        UCT_VARUNA_MAX_CONNECTING) {
        return; /* Its turn comes */
    }

    link = uct_varuna_rebuild_select_link(ep, now);
    if (link != UCT_VARUNA_LINK_NONE) {
        ep->next.spare = 0;
        uct_varuna_ep_connect_rc(ep, link, now);
    }
}

void uct_varuna_rebuild_ask_or_leave(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (ep->next.retry.tries < UCT_VARUNA_MAX_CONNECT_TRIES) {
        uct_varuna_ep_connect_again(ep, now);
    } else {
        ep->next.tried |= UCS_BIT(ep->next.lane.link);
        uct_varuna_ep_drop_next(ep);
    }
}

/* Connect RC for an endpoint that has no lane. A link on which nobody answers is left, even
 * if it is not known to be dead. @return Whether the lane works. */
static int uct_varuna_rebuild_make_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (ep->next.lane.ep == NULL) {
        uct_varuna_rebuild_begin(ep, now);
        return 0;
    }

    if (uct_varuna_ep_is_next_stale(ep)) {
        uct_varuna_ep_drop_next(ep);
        return 0;
    }

    uct_varuna_heartbeat_use(ep->peer, ep->next.lane.link, now);
    if (ep->next.proving) {
        uct_varuna_rebuild_prove(ep);
    } else if (!ep->next.ready && uct_varuna_rebuild_is_due(ep, now)) {
        uct_varuna_rebuild_ask_or_leave(ep, now);
    }

    return ep->next.ready && !ep->next.failed;
}

void uct_varuna_rebuild_use_next(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_set_lane(ep, &ep->next.lane);
    ep->next.lane.ep = NULL;
    ep->next.ready   = 0;
    ep->next.spare   = 0;
    ep->next.tried   = 0;
}

static int uct_varuna_rebuild_take_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (!uct_varuna_rebuild_make_lane(ep, now)) {
        return 0;
    }

    uct_varuna_rebuild_use_next(ep);
    return 1;
}

/* Take the best lane which can be had at once, DC. A link on which none can be made is left
 * for another one. */
static int uct_varuna_rebuild_take_dc_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uint8_t link = uct_varuna_rebuild_select_link(ep, now);
    uct_varuna_lane_t lane;

    if (link == UCT_VARUNA_LINK_NONE) {
        return 0;
    }

    if (uct_varuna_lane_create(ep, UCT_VARUNA_LANE_DC, link, &lane) != UCS_OK) {
        uct_varuna_retry_start(&ep->next.retry, now, now);
        uct_varuna_rebuild_count_try(ep, link, now);
        ep->next.tried |= UCS_BIT(link);
        return 0;
    }

    uct_varuna_ep_set_lane(ep, &lane);
    ep->next.tried = 0;
    return 1;
}

/* Whether there are lanes that need no connection. With path MTUs that differ, the peer's DC
 * targets refuse what our DC initiators send. */
static int uct_varuna_rebuild_has_fallback(const uct_varuna_ep_t *ep)
{
    return (uct_varuna_link_set(uct_varuna_ep_iface(ep), 0)->fallback !=
            UCT_VARUNA_LANE_NONE) && (ep->peer->mtu_differs == 0);
}

int uct_varuna_ep_take_lane(uct_varuna_ep_t *ep, ucs_time_t now)
{
    return uct_varuna_rebuild_has_fallback(ep) ? uct_varuna_rebuild_take_dc_lane(ep, now) :
           uct_varuna_rebuild_take_lane(ep, now);
}

void uct_varuna_rebuild_prepare(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (!uct_varuna_rebuild_has_fallback(ep)) {
        (void)uct_varuna_rebuild_make_lane(ep, now);
    }
}

int uct_varuna_rebuild_keeps_standby(const uct_varuna_ep_t *ep)
{
    return ep->next.spare && ep->next.ready && !ep->next.failed &&
           !uct_varuna_rebuild_has_fallback(ep);
}

/* @return The link for a connection in reserve, or UCT_VARUNA_LINK_NONE. */
static uint8_t uct_varuna_rebuild_standby_link(const uct_varuna_ep_t *ep)
{
    const uct_varuna_baseline_t *baseline = uct_varuna_ep_baseline(ep);
    const uct_varuna_iface_t *iface       = uct_varuna_ep_iface(ep);

    if (baseline != NULL) {
        return baseline->spare_link(ep);
    }

    if (!iface->config.standby || uct_varuna_rebuild_has_fallback(ep)) {
        return UCT_VARUNA_LINK_NONE;
    }

    return uct_varuna_link_select(&iface->link_table, UCT_VARUNA_LINK_NONE,
                                  uct_varuna_peer_usable_links(ep->peer) &
                                  ~ep->peer->retired & ~UCS_BIT(ep->lane.link) &
                                  ~uct_varuna_ep_keyless_links(ep));
}

/* A connection in reserve, and RC is wanted on @a link: it is changed to if it is there, and
 * makes room otherwise. */
static void uct_varuna_rebuild_review_standby(uct_varuna_ep_t *ep, uint8_t link)
{
    if ((link == ep->lane.link) || (link == UCT_VARUNA_LINK_NONE) ||
        (uct_varuna_ep_baseline(ep) != NULL)) {
        return;
    }

    ep->next.failed = (link != ep->next.lane.link);
    ep->next.spare  = 0;
    uct_varuna_ep_add_work(ep);
}

void uct_varuna_ep_connect_next(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uint8_t link;

    uct_varuna_peer_probe_paths(iface, ep->peer, now);
    uct_varuna_ep_complete_logs(ep, now);
    if (uct_varuna_ep_avoids_links(ep)) {
        uct_varuna_ep_review_avoided(ep, uct_varuna_ep_learn_keys(ep));
    }

    if ((ep->hot.state != UCT_VARUNA_EP_ACTIVE) || !uct_varuna_rebuild_is_due(ep, now)) {
        return;
    }

    if (uct_varuna_ep_lane_is_stale(iface, ep)) {
        uct_varuna_ep_raise_lane_failed(ep, uct_varuna_ep_failure_reason(ep));
        return;
    }

    if (ep->next.lane.ep != NULL) {
        if (uct_varuna_ep_is_next_stale(ep)) {
            ep->next.failed = 1;
            uct_varuna_ep_add_work(ep);
        } else if (!ep->next.ready && !ep->next.proving) {
            uct_varuna_ep_connect_again(ep, now);
        } else if (ep->next.spare) {
            uct_varuna_rebuild_review_standby(ep, uct_varuna_ep_rc_link(ep, now));
        }
        return;
    }

    link = uct_varuna_ep_rc_link(ep, now);
    if ((link == ep->lane.link) && (ep->lane.kind != UCT_VARUNA_LANE_DC)) {
        link           = uct_varuna_rebuild_standby_link(ep);
        ep->next.spare = (link != UCT_VARUNA_LINK_NONE);
    } else {
        ep->next.spare = 0;
    }

    if (link == UCT_VARUNA_LINK_NONE) {
        return;
    }

    if ((uct_varuna_requester_peer(iface, ep->peer)->connecting >=
         UCT_VARUNA_MAX_CONNECTING) ||
        !uct_varuna_pace_take(&uct_varuna_requester(iface)->rebuild_pace, now)) {
        return; /* Its turn comes */
    }

    uct_varuna_ep_connect_rc(ep, link, now);
    uct_varuna_pace_spent(&uct_varuna_requester(iface)->rebuild_pace, ucs_get_time() - now);
}

/* --- Planned changes of the lane: from DC to RC, and back to a better link. Failures are
 * left to varuna_recovery.c --- */

/*
 * The last request on the old lane is a read of the peer's memory. When its data has
 * come, all earlier writes are in memory, so they cannot overtake a write over another
 * NIC. It is repeated like any other request if the lane fails. Only messages follow it
 * (varuna_post.c).
 *
 * While the lane has no resources for it, it has none for the user either.
 */
static void uct_varuna_ep_post_swap_read(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    if (ep->owed != NULL) {
        return;
    }

    status = uct_varuna_ep_read_devices(ep);
    if (status == UCS_OK) {
        status = uct_varuna_ep_read_back(ep, NULL);
    }
    if (status == UCS_OK) {
        ep->next.swap_posts = 1;
        ++ep->stats.rebuild_reads;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
    }
}

/* @return Whether the old lane still has work. Requests that were posted precede those
 * that wait for the new lane. */
static int uct_varuna_ep_is_lane_busy(const uct_varuna_ep_t *ep)
{
    if (!uct_varuna_ring_is_empty(&ep->hot.reqs) &&
        (ep->hot.reqs.tail->flags & UCT_VARUNA_REQ_FLAG_POSTED)) {
        return 1;
    }

    return !uct_varuna_tl_is_drained(ep->lane.ep, ep->lane.kind);
}

int uct_varuna_ep_step_swap(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_lane_is_stale(uct_varuna_ep_iface(ep), ep)) {
        uct_varuna_ep_raise_lane_failed(ep, uct_varuna_ep_failure_reason(ep));
        return 1;
    }

    if (!ep->next.ready) {
        uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_SWAPPED); /* It failed: stay */
        return 1;
    }

    if (uct_varuna_ep_is_next_stale(ep)) {
        ep->next.failed = 1; /* It is dropped before the next step */
        return 1;
    }

    if (ep->next.swap_posts == 0) {
        uct_varuna_ep_post_swap_read(ep);
        return 1;
    }

    if (uct_varuna_ep_is_lane_busy(ep)) {
        return 1;
    }

    ucs_debug("rc_varuna: ep %p vqp=%u: planned swap from %s on %s to %s on %s, %u "
              "requests wait for it", ep, ep->id, uct_varuna_lane_names[ep->lane.kind],
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->lane.link),
              uct_varuna_lane_names[ep->next.lane.kind],
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->next.lane.link),
              ep->hot.num_reqs);
    ep->stats.moves += (ep->lane.link != ep->next.lane.link);
    uct_varuna_ep_leave_inner_pending(ep, ep->lane.ep);
    uct_varuna_lane_destroy(ep, &ep->lane);
    uct_varuna_ep_set_lane(ep, &ep->next.lane);
    ep->next.lane.ep    = NULL;
    ep->next.ready = 0;
    ++ep->stats.rebuilds;
    ep->stats.rebuild_usec += ucs_time_to_usec(now - ep->next.retry.since);
    uct_varuna_ep_raise(ep, UCT_VARUNA_EP_EVENT_SWAPPED);
    return 1;
}
