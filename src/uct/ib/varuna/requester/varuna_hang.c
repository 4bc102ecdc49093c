/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Finds queue pairs that hang.
 *
 *   A lane hangs if its queue pair holds work of this vQP and has completed none of it
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
 *   the peer has no receive buffers            it answers, and does not progress
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_hang.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include "varuna_ring.h"

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
