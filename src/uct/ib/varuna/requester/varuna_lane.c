/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Lanes: making and destroying the physical lanes of a vQP, choosing the links for them, and
 * finding those that hang.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_lane.h"
#include "varuna_ep.h"
#include "varuna_requester.h"
#include "varuna_ring.h"
#include "varuna_sm.h"
#include "varuna_stat.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

/* The link which a recovery leaves. Pings may get through where requests do not. So what
 * has just failed is not tried again while there is another link: the two would alternate
 * endlessly. */
static unsigned uct_varuna_ep_failed_link(const uct_varuna_ep_t *ep)
{
    return ((ep->recovery.start != 0) &&
            (ep->recovery.dead.link != UCT_VARUNA_LINK_NONE)) ?
           UCS_BIT(ep->recovery.dead.link) : 0;
}

static uint8_t uct_varuna_ep_select_good(const uct_varuna_ep_t *ep, unsigned among)
{
    unsigned usable         = uct_varuna_peer_usable_links(ep->peer) & among &
                              ~uct_varuna_ep_keyless_links(ep);
    unsigned failed         = uct_varuna_ep_failed_link(ep);
    const unsigned wishes[] = {usable & ~failed & ~ep->peer->retired, usable & ~failed,
                               usable};
    uint8_t link            = UCT_VARUNA_LINK_NONE;
    unsigned i;

    for (i = 0; (i < ucs_static_array_size(wishes)) && (link == UCT_VARUNA_LINK_NONE);
         ++i) {
        link = uct_varuna_link_select(&uct_varuna_ep_iface(ep)->link_table,
                                      ep->lane.link, wishes[i]);
    }

    return link;
}

uint8_t uct_varuna_ep_select_link(const uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_select_good(ep, ep->peer->link_map);
}

/* No path is known to be good. Choose among the failed ones on links that are up: a path
 * that was good since, although it is held down; otherwise the one that was not tried
 * for the longest time. Without a lane only a new attempt shows whether a path works
 * again, so each must have its turn. */
static uint8_t uct_varuna_ep_select_failed_path(const uct_varuna_ep_t *ep,
                                                unsigned among)
{
    const uct_varuna_path_t *paths = ep->peer->paths;
    ucs_time_t now                 = ucs_get_time();
    uint8_t best                   = UCT_VARUNA_LINK_NONE;
    uint8_t link;

    ucs_for_each_bit(link, ep->peer->link_map & among &
                           ~uct_varuna_ep_keyless_links(ep)) {
        if (uct_varuna_link_select(&uct_varuna_ep_iface(ep)->link_table, link,
                                   UCS_BIT(link)) != link) {
            continue;
        }

        if (paths[link].damp.state == UCT_VARUNA_DAMP_HOLD) {
            return link;
        }

        if ((now >= paths[link].retry_at) &&
            ((best == UCT_VARUNA_LINK_NONE) ||
             (paths[link].retry_at < paths[best].retry_at))) {
            best = link;
        }
    }

    return best;
}

uint8_t uct_varuna_ep_select_among(const uct_varuna_ep_t *ep, unsigned among)
{
    uint8_t link = uct_varuna_ep_select_good(ep, among);

    if (link == UCT_VARUNA_LINK_NONE) {
        link = uct_varuna_ep_select_failed_path(ep, among & ~ep->peer->retired);
    }

    return (link != UCT_VARUNA_LINK_NONE) ? link :
           uct_varuna_ep_select_failed_path(ep, among);
}

/* A new incarnation. Its log ring must be neither the active lane's nor that of the lane
 * which was just fenced: the responder clears the other one. What follows a lane that was
 * left without a fence goes on in its ring: a CONNECT_REQ that is late may clear the other
 * one at any time. */
static uint32_t uct_varuna_ep_new_epoch(uct_varuna_ep_t *ep)
{
    int goes_on   = (ep->lane.ep == NULL) && ep->recovery.unfenced;
    uint32_t last = (ep->lane.ep != NULL) ? ep->lane.epoch : ep->recovery.dead.epoch;

    ++ep->lanes.epoch;
    if ((uct_varuna_log_ring(ep->lanes.epoch) == uct_varuna_log_ring(last)) != goes_on) {
        ++ep->lanes.epoch;
    }

    ++ep->stats.epochs;
    return ep->lanes.epoch;
}

/* Whether the peer has an address handle that takes no time */
static ucs_status_t uct_varuna_lane_seek(const uct_varuna_ep_t *ep, unsigned link)
{
    uct_varuna_ctl_t *ctl = uct_varuna_ep_iface(ep)->ctl;
    ucs_status_t status;

    uct_varuna_ctl_lock(ctl);
    status = uct_varuna_ctl_seek(ctl, ep->peer, link);
    uct_varuna_ctl_unlock(ctl);
    return status;
}

/* Whether the NIC is to be asked for what a lane takes: UCX logs an error if it has none */
static int uct_varuna_lane_may_ask(const uct_varuna_ep_t *ep, uct_varuna_lane_kind_t kind,
                                   unsigned link, ucs_time_t now)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    /* DC takes an address handle, which another peer may get nevertheless */
    return (kind == UCT_VARUNA_LANE_DC) ?
           uct_varuna_backoff_is_due(&ep->peer->no_dc_ep[link], now) :
           uct_varuna_md_may_ask(iface->md, iface->links[link].nic, UCT_VARUNA_SHORT_QP, now);
}

static void uct_varuna_lane_note_answer(const uct_varuna_ep_t *ep, uct_varuna_lane_kind_t kind,
                                        unsigned link, ucs_status_t status, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned nic              = iface->links[link].nic;

    if (kind == UCT_VARUNA_LANE_DC) {
        uct_varuna_md_note_handle(iface->md, nic, &ep->peer->no_dc_ep[link], status, now);
    } else {
        uct_varuna_md_note_answer(iface->md, nic, UCT_VARUNA_SHORT_QP, status, now);
        if (status != UCS_OK) {
            uct_varuna_rest_yield(iface, nic);
        }
    }
}

/* Nothing was posted on it */
static void uct_varuna_lane_init(uct_varuna_ep_t *ep, uct_varuna_lane_kind_t kind,
                                 unsigned link, uct_ep_h inner, uct_varuna_lane_t *lane)
{
    lane->ep        = inner;
    lane->kind      = kind;
    lane->link      = link;
    lane->link_gen  = uct_varuna_ep_iface(ep)->link_table.links[link].generation;
    lane->path_gen  = ep->peer->paths[link].generation;
    lane->psn       = 0;
    lane->acked_psn = 0;
    lane->mtu       = 0;
    lane->epoch     = uct_varuna_ep_new_epoch(ep);
}

ucs_status_t
uct_varuna_lane_create(uct_varuna_ep_t *ep, uct_varuna_lane_kind_t kind,
                       unsigned link, uct_varuna_lane_t *lane)
{
    uct_varuna_iface_t *iface         = uct_varuna_ep_iface(ep);
    const uct_varuna_peer_link_t *far = &ep->peer->links[link];
    uct_varuna_lane_iface_t *on       = &iface->links[link].lanes[kind];
    ucs_time_t now                    = uct_varuna_ctl_now(iface->ctl);
    uct_ep_params_t params;
    ucs_status_t status;
    khiter_t iter;
    uct_ep_h inner;
    int ret;

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE |
                        UCT_EP_PARAM_FIELD_PATH_INDEX;
    params.iface      = on->inner;
    params.path_index = ep->lanes.path_index % ucs_max(on->attr.dev_num_paths, 1);
    if (kind == UCT_VARUNA_LANE_DC) {
        if (far->dc_addr == NULL) {
            return UCS_ERR_UNREACHABLE; /* The peer has not sent it yet */
        }

        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                             UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr    = far->device_addr;
        params.iface_addr  = far->dc_addr;

        status = uct_varuna_lane_seek(ep, link);
        if (status != UCS_OK) {
            return status;
        }
    }

    if (iface->links[link].is_closed) {
        return UCS_ERR_UNREACHABLE; /* Its NIC is away */
    }

    if (!uct_varuna_lane_may_ask(ep, kind, link, now)) {
        return UCS_ERR_NO_RESOURCE;
    }

    status = uct_ep_create(&params, &inner);
    uct_varuna_lane_note_answer(ep, kind, link, status, now);
    if (status != UCS_OK) {
        ucs_debug("ep %p: cannot create a %s lane on %s: %s", ep,
                  uct_varuna_lane_names[kind],
                  uct_varuna_link_name(iface, link), ucs_status_string(status));
        return status;
    }

    iter = kh_put(uct_varuna_inner_eps, &uct_varuna_requester(iface)->inner_eps, (uintptr_t)inner,
                  &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        uct_varuna_tl_destroy(inner);
        return UCS_ERR_NO_MEMORY;
    }

    on->num_eps                                          += (kind == UCT_VARUNA_LANE_DC);
    kh_val(&uct_varuna_requester(iface)->inner_eps, iter) = ep;
    uct_varuna_lane_init(ep, kind, link, inner, lane);
    return UCS_OK;
}

/* Its completions and errors are not the endpoint's any more */
static void uct_varuna_lane_forget(uct_varuna_ep_t *ep, const uct_varuna_lane_t *lane)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);
    khiter_t iter;

    iter = kh_get(uct_varuna_inner_eps, &requester->inner_eps, (uintptr_t)lane->ep);
    ucs_assert(iter != kh_end(&requester->inner_eps));
    kh_del(uct_varuna_inner_eps, &requester->inner_eps, iter);
}

void uct_varuna_lane_destroy(uct_varuna_ep_t *ep, uct_varuna_lane_t *lane)
{
    if (lane->ep == NULL) {
        return;
    }

    uct_varuna_lane_forget(ep, lane);
    uct_varuna_rest_begin(uct_varuna_ep_iface(ep), lane->ep, lane->kind);
    lane->ep = NULL;
}

/* Where the PSN decides, a log entry is needed only if the peer's NIC dies. A baseline, which
 * repeats everything or fails, reads no log. */
static int uct_varuna_lane_is_logged(const uct_varuna_ep_t *ep,
                                     const uct_varuna_lane_t *lane)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    if (uct_varuna_ep_requester(ep)->baseline != NULL) {
        return 0;
    }

    return (iface->config.log == UCT_VARUNA_LOG_ALL) ||
           (lane->kind == UCT_VARUNA_LANE_DC) || (lane->mtu == 0) ||
           (uct_varuna_requester_peer(iface, ep->peer)->no_psn & UCS_BIT(lane->link));
}

void uct_varuna_ep_note_away(uct_varuna_ep_t *ep)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);

    ep->amo.is_away      = (requester->amo->is_away != NULL) && requester->amo->is_away(ep);
    requester->was_away |= ep->amo.is_away;
}

void uct_varuna_ep_set_lane(uct_varuna_ep_t *ep,
                                   const uct_varuna_lane_t *lane)
{
    uct_varuna_ep_renew_keys(ep);
    uct_varuna_stat_settle(ep);
    ep->lane              = *lane;
    ep->lanes.first_acked = lane->acked_psn;
    ep->hot.gate          = 1;
    uct_varuna_hang_new_head(ep);
    ep->hot.logged   = uct_varuna_lane_is_logged(ep, lane);
    ep->hot.log_addr = uct_varuna_ep_ring_addr(ep, lane->epoch);
    ep->hot.nic      = uct_varuna_ep_iface(ep)->links[lane->link].nic;
    ep->hot.far_nic  = ep->peer->links[lane->link].nic % UCT_VARUNA_MAX_LINKS;
    uct_varuna_ep_note_away(ep);
    ep->hot.log_rkey = uct_varuna_rkey_inner(ep->remote.log_bundle.rkey,
                                             ep->hot.far_nic);
    ep->hot.silent   = 0;
    ep->hot.last_silent = NULL;
}

void uct_varuna_ep_connect_ended(uct_varuna_ep_t *ep)
{
    uct_varuna_requester_peer(uct_varuna_ep_iface(ep), ep->peer)->connecting -=
            ep->next.counted;
    ep->next.counted = 0;
}

void uct_varuna_ep_drop_next(uct_varuna_ep_t *ep)
{
    uct_varuna_lane_t *lane = &ep->next.lane;

    uct_varuna_ep_connect_ended(ep);
    if ((lane->ep != NULL) && !uct_varuna_tl_is_drained(lane->ep, lane->kind)) {
        /* The completion of its first write may be there, and is not polled yet */
        uct_varuna_lane_forget(ep, lane);
        uct_varuna_tl_stop(lane->ep, lane->kind);
        uct_varuna_grave_bury(uct_varuna_ep_iface(ep), lane->ep, lane->kind, NULL, NULL);
        lane->ep = NULL;
    }

    uct_varuna_lane_destroy(ep, lane);
    ep->next.proving = 0;
    ep->next.ready  = 0;
    ep->next.spare  = 0;
    ep->next.failed = 0;
}

void uct_varuna_ep_fail_next(uct_varuna_ep_t *ep)
{
    ep->next.failed = 1;
    if (ep->lane.ep == NULL) {
        ep->next.tried |= UCS_BIT(ep->next.lane.link);
    }

    uct_varuna_ep_add_work(ep);
}

/* Requests on @a lane ran out of retries: its path failed, unless it has failed since
 * the lane was made. */
static void uct_varuna_ep_path_down(uct_varuna_ep_t *ep, const uct_varuna_lane_t *lane)
{
    if (lane->path_gen == ep->peer->paths[lane->link].generation) {
        uct_varuna_peer_path_down(uct_varuna_ep_iface(ep), ep->peer, lane->link,
                                  ucs_status_string(UCS_ERR_ENDPOINT_TIMEOUT));
    }
}

/* The active lane's NIC could not send a request. @return Whether that is due to the
 * request itself. */
static int uct_varuna_ep_unsent(uct_varuna_ep_t *ep)
{
    /* A request that no lane can send is the first one on each lane but the first */
    if ((uint16_t)ep->lane.acked_psn != ep->lanes.first_acked) {
        ep->lanes.unsent = 0;
    }

    return ++ep->lanes.unsent >= UCT_VARUNA_MAX_UNSENT;
}

void uct_varuna_ep_lane_error(uct_varuna_ep_t *ep, uct_ep_h inner,
                              ucs_status_t status)
{
    if (inner == NULL) {
        return; /* Of an old incarnation */
    }

    if (inner == ep->next.lane.ep) {
        uct_varuna_ep_path_down(ep, &ep->next.lane);
        uct_varuna_ep_fail_next(ep);
        return;
    }

    if (inner != ep->lane.ep) {
        return;
    }

    switch (status) {
    case UCS_ERR_UNREACHABLE:
        if (uct_varuna_ep_unsent(ep)) {
            uct_varuna_ep_raise_fatal(ep, UCS_ERR_IO_ERROR);
            break;
        }
        /* Fall through */
    case UCS_ERR_ENDPOINT_TIMEOUT:
        uct_varuna_ep_path_down(ep, &ep->lane);
        /* Fall through */
    case UCS_ERR_CANCELED:
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
        break;
    default:
        if (uct_varuna_ep_note_keyless(ep) && !uct_varuna_ep_unsent(ep)) {
            uct_varuna_ep_raise_lane_failed(ep, "memory is not registered there");
            break;
        }

        if (uct_varuna_devices_are_read(ep)) {
            uct_varuna_ep_raise_lane_failed(ep, "memory of a device could not be read");
            break;
        }

        /* A wrong key or address is not a fault of the link, and would fail again */
        uct_varuna_ep_raise_fatal(ep, status);
        break;
    }
}

/* --- Queue pairs that hang --- */

/*   A lane hangs if its queue pair holds work of this vQP and has completed none of it
 *   for HANG_TIMEOUT.
 *
 * The age of a request proves nothing: thousands of vQPs may share one DCI, which one of
 * them uses at a time. Only the vQP that has the DCI is judged. A lane does not hang if
 *
 *   the application does not call progress     the clock of the watch pauses
 *   completions are not polled yet             the queue is polled until it is empty
 *   the peer is silent on all links            silence on one link counts only if
 *                                              the peer answers on another one; on all,
 *                                              after GIVE_UP
 *   the peer has no receive buffers            it answers, and does not progress */

/* Intervals in each of which the peer's application must move on */
#define UCT_VARUNA_HANG_BEATS        3

/* The peer has so many times CTL_TIMEOUT at least, even if GIVE_UP is shorter */
#define UCT_VARUNA_HANG_MIN_SILENCE  10

void uct_varuna_hang_restart(uct_varuna_ep_t *ep)
{
    ep->hang.since    = uct_varuna_ep_requester(ep)->scan.clock;
    ep->hang.asked_at = 0;
    ep->hang.due_at   = 0;
    ep->hang.beats    = 0;
}

ucs_time_t uct_varuna_hang_head_age(const uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_requester(ep)->scan.clock - ep->hang.head_since;
}

void uct_varuna_hang_new_head(uct_varuna_ep_t *ep)
{
    ep->hang.head_since = uct_varuna_ep_requester(ep)->scan.clock;
    uct_varuna_hang_restart(ep);
}

/* @return whether there is nothing to wait for, or something has completed since
 * the last look. */
static int uct_varuna_hang_moves(uct_varuna_ep_t *ep)
{
    uint16_t mark;

    if (!uct_varuna_tl_get_mark(ep->lane.ep, ep->lane.kind, &mark)) {
        return 1;
    }

    if (mark != ep->hang.mark) {
        ep->hang.mark = mark;
        return 1;
    }

    return 0;
}

/* No failure as far as is known: the time starts anew. That the peer's application moves
 * on is still true. */
static void uct_varuna_hang_wait(uct_varuna_ep_t *ep)
{
    uint8_t beats = ep->hang.beats;

    uct_varuna_hang_restart(ep);
    ep->hang.beats = beats;
}

/* --- Questions to the peer --- */

/* On all links that are up, which others of the same peer may have done just now */
static void uct_varuna_hang_ask(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_time_t *asked_at      = uct_varuna_requester_peer(iface, ep->peer)->asked_at;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map) {
        if (((now - asked_at[link]) >= iface->config.ctl_timeout) &&
            ((link == ep->lane.link) || /* It may be retired */
             (iface->link_table.links[link].damp.state == UCT_VARUNA_DAMP_UP)) &&
            uct_varuna_heartbeat_probe(iface->ctl, ep->peer, link)) {
            asked_at[link] = now;
        }
    }

    link = ep->lane.link;
    if ((ep->hang.asked_at == 0) &&
        ((now - asked_at[link]) < iface->config.ctl_timeout)) {
        ep->hang.asked_at    = asked_at[link];
        ep->hang.asked_clock = uct_varuna_requester(iface)->scan.clock;
    }
}

static int uct_varuna_hang_answers(const uct_varuna_ep_t *ep, unsigned link)
{
    return (ep->hang.asked_at != 0) &&
           (uct_varuna_heartbeat_answered_at(ep->peer, link) >=
            ep->hang.asked_at);
}

static int uct_varuna_hang_has_witness(const uct_varuna_ep_t *ep)
{
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map & ~UCS_BIT(ep->lane.link)) {
        if (uct_varuna_hang_answers(ep, link)) {
            return 1;
        }
    }

    return 0;
}

/* It was asked, and has answered on no link since then. */
static int uct_varuna_hang_is_silent(const uct_varuna_ep_t *ep)
{
    return (ep->hang.asked_at != 0) && !uct_varuna_hang_answers(ep, ep->lane.link) &&
           !uct_varuna_hang_has_witness(ep);
}

/* The heartbeat knows more than we do who have not asked */
static int uct_varuna_hang_is_peer_silent(const uct_varuna_ep_t *ep)
{
    uct_varuna_ctl_t *ctl = uct_varuna_ep_iface(ep)->ctl;
    int is_silent;

    if (ep->hang.asked_at != 0) {
        return uct_varuna_hang_is_silent(ep);
    }

    uct_varuna_ctl_lock(ctl);
    is_silent = ep->peer->hb.alive.silent;
    uct_varuna_ctl_unlock(ctl);
    return is_silent;
}

ucs_time_t uct_varuna_hang_silent_since(const uct_varuna_ep_t *ep)
{
    if (uct_varuna_ring_is_empty(&ep->hot.reqs) || !uct_varuna_hang_is_peer_silent(ep)) {
        return 0;
    }

    /* It has answered earlier questions */
    return ((ep->hang.beats > 0) && (ep->hang.asked_at != 0)) ? ep->hang.asked_clock :
           ep->hang.since;
}

/* The peer was asked, and has answered since. Note whether its application calls
 * progress: in each of several intervals, or a call at the end of a long computation
 * would do. */
static void uct_varuna_hang_beat(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uint32_t beat             = uct_varuna_heartbeat_app_beat(ep->peer);
    ucs_time_t interval       = iface->config.hang_timeout /
                                (4 * UCT_VARUNA_HANG_BEATS);

    if (ep->hang.beats == 0) {
        ep->hang.beats = 1; /* There is something to compare with */
    } else if ((beat == ep->hang.beat) ||
               ((uct_varuna_requester(iface)->scan.clock - ep->hang.beat_since) < interval)) {
        return;
    } else if (ep->hang.beats <= UCT_VARUNA_HANG_BEATS) {
        ++ep->hang.beats;
    }

    ep->hang.beat       = beat;
    ep->hang.beat_since = uct_varuna_requester(iface)->scan.clock;
}

/* --- Verdict --- */

/* Completions may not be polled yet: thousands of vQPs share a completion queue. But
 * messages may arrive faster than they are polled, so the wait is limited. */
static int uct_varuna_hang_is_polled(uct_varuna_ep_t *ep, ucs_time_t age,
                                     ucs_time_t timeout, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_lane_iface_t *lane =
            &iface->links[ep->lane.link].lanes[ep->lane.kind];

    if (ep->hang.due_at == 0) {
        ep->hang.due_at = now;
    }

    if (lane->dry_at >= ep->hang.due_at) {
        return 1;
    }

    lane->want_dry  = 1;
    iface->want_dry = 1;
    return age >= (2 * timeout);
}

/*
 * The peer answers on the link of the lane. @return Why the lane has failed
 * nevertheless, or NULL: messages may wait for receive buffers of a peer whose
 * application computes, and later requests wait for these messages.
 */
static const char *uct_varuna_hang_reason(const uct_varuna_ep_t *ep)
{
    int has_message = 0;
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        has_message |= (req->flags & UCT_VARUNA_REQ_FLAG_POSTED) &&
                       (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_AM);
    }

    if (!has_message) {
        return "none of its requests needs a receive buffer";
    }

    return (ep->hang.beats > UCT_VARUNA_HANG_BEATS) ?
           "the peer's application is not busy" : NULL;
}

static void uct_varuna_hang_failed(uct_varuna_ep_t *ep, ucs_time_t age,
                                   const char *why)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned link             = ep->lane.link;

    ucs_info("rc_varuna: vqp=%u: its oldest request hangs for %.1f s on %s, and "
             "%s", ep->id, ucs_time_to_sec(age),
             uct_varuna_link_name(iface, link), why);
    uct_varuna_peer_path_down(iface, ep->peer, link, "requests hang");
}

/* The timeout is over, and nothing has completed */
static void uct_varuna_hang_judge(uct_varuna_ep_t *ep, ucs_time_t age)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned link             = ep->lane.link;
    const char *why           = NULL;

    if (uct_varuna_hang_answers(ep, link)) {
        why = uct_varuna_hang_reason(ep);
        if (why == NULL) {
            ucs_debug("ep %p: vQP %u waits for its oldest request for %.1f s, and "
                      "the peer answers on %s and computes: no failure", ep,
                      ep->id, ucs_time_to_sec(age),
                      uct_varuna_link_name(iface, link));
            uct_varuna_hang_wait(ep);
            return;
        }
    } else if (uct_varuna_hang_has_witness(ep) &&
               ((uct_varuna_requester(iface)->scan.clock - ep->hang.asked_clock) >=
                (iface->config.hang_timeout / 2))) {
        why = "the peer does not answer there";
    }

    if (why != NULL) {
        uct_varuna_hang_failed(ep, age, why);
        uct_varuna_hang_restart(ep);
    }
}

/* How long a peer that is silent on all links is waited for */
static ucs_time_t uct_varuna_hang_silence(const uct_varuna_iface_t *iface)
{
    return ucs_max(iface->config.give_up,
                   UCT_VARUNA_HANG_MIN_SILENCE * iface->config.ctl_timeout);
}

/* In the second half of the shorter one of both times the peer is asked. If it is silent on the
 * link of the lane, the path has failed. If it answers, it may be merely busy. If it is silent
 * on all links until GIVE_UP, the endpoint leaves its lane, asks once more, and fails: that it
 * was silent is not forgotten. */
void uct_varuna_hang_check(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_time_t timeout        = iface->config.hang_timeout;
    ucs_time_t silence        = uct_varuna_hang_silence(iface);
    ucs_time_t first          = (timeout == 0) ? silence : ucs_min(timeout, silence);
    ucs_time_t age, asked;
    int answers;

    if (uct_varuna_hang_moves(ep)) {
        uct_varuna_hang_restart(ep);
        return;
    }

    age = uct_varuna_requester(iface)->scan.clock - ep->hang.since;
    if (age < (first / 2)) {
        return;
    }

    uct_varuna_hang_ask(ep, now);
    answers = uct_varuna_hang_answers(ep, ep->lane.link);
    if (answers) {
        uct_varuna_hang_beat(ep);
    }

    asked = uct_varuna_requester(iface)->scan.clock - ep->hang.asked_clock;
    if ((age >= silence) && uct_varuna_hang_is_silent(ep) && (asked >= (first / 2)) &&
        uct_varuna_hang_is_polled(ep, age, silence, now)) {
        uct_varuna_hang_failed(ep, age, "the peer does not answer at all");
    } else if ((timeout != 0) && (age >= timeout) &&
               uct_varuna_hang_is_polled(ep, age, timeout, now)) {
        uct_varuna_hang_judge(ep, age);
    } else if (answers && (asked >= (silence / 2))) {
        ep->hang.asked_at = 0; /* It may have died since */
    }
}
