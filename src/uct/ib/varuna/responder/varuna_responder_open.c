/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening, closing and progress of the responder. See varuna_responder.h for its parts.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_target.h"
#include "varuna_fence.h"
#include "varuna_responder.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

/* More completions than the receive queues of all links hold */
#define UCT_VARUNA_RESPONDER_MAX_POLL (2 * UCT_VARUNA_MAX_LINKS * 8192)


/* Messages which were acknowledged before CLOSE was sent are in our completion
 * queues: they are delivered before their vQP is forgotten. */
static void uct_varuna_responder_poll_lanes(uct_varuna_responder_t *resp)
{
    unsigned count = 0;
    unsigned polled;

    do {
        polled = uct_varuna_lanes_progress(resp->iface);
        count += polled;
    } while ((polled > 0) && (count < UCT_VARUNA_RESPONDER_MAX_POLL));
}

static void uct_varuna_unused_start(uct_varuna_responder_t *resp);
static void uct_varuna_orphan_start(uct_varuna_responder_t *resp);
static void uct_varuna_orphan_keep(uct_varuna_responder_t *resp, uct_varuna_target_t *target);
static void uct_varuna_orphans_cleanup(uct_varuna_responder_t *resp);

void uct_varuna_responder_progress(uct_varuna_responder_t *resp)
{
    uct_varuna_target_t *target;
    ucs_list_link_t closed;

    uct_varuna_spares_progress(resp);
    uct_varuna_target_logs_progress(resp);

    ucs_list_head_init(&closed);
    uct_varuna_ctl_lock(resp->ctl);
    ucs_list_splice_tail(&closed, &resp->targets.closed);
    ucs_list_head_init(&resp->targets.closed);
    uct_varuna_ctl_unlock(resp->ctl);
    if (ucs_list_is_empty(&closed)) {
        return;
    }

    uct_varuna_responder_poll_lanes(resp);
    while (!ucs_list_is_empty(&closed)) {
        target = ucs_list_extract_head(&closed, uct_varuna_target_t, list);
        if (target->orphan) {
            uct_varuna_orphan_keep(resp, target);
        } else {
            uct_varuna_target_destroy(resp, target);
        }
    }
}

/* Also of targets that are gone: their endpoints are destroyed, or rest. Lock held */
static int uct_varuna_responder_has_rc_eps(const uct_varuna_responder_t *resp, unsigned link)
{
    khiter_t iter;

    for (iter = kh_begin(&resp->targets.rc_eps); iter != kh_end(&resp->targets.rc_eps); ++iter) {
        if (kh_exist(&resp->targets.rc_eps, iter) &&
            uct_varuna_link_is_of(resp->iface, link,
                                  (uct_ep_h)kh_key(&resp->targets.rc_eps, iter))) {
            return 1;
        }
    }

    return 0;
}

unsigned uct_varuna_responder_leave_link(uct_varuna_responder_t *resp, unsigned link,
                                         int is_over, int is_ended)
{
    unsigned count;

    uct_varuna_ctl_lock(resp->ctl);
    count = uct_varuna_targets_leave_link(resp, link, is_over, is_ended);
    if (is_over) {
        uct_varuna_spares_leave_link(resp, link);
    }
    uct_varuna_ctl_unlock(resp->ctl);
    return count;
}

int uct_varuna_responder_is_on_link(const uct_varuna_responder_t *resp, unsigned link)
{
    return uct_varuna_responder_has_rc_eps(resp, link) || uct_varuna_spares_are_on(resp, link);
}

ucs_status_t uct_varuna_responder_create(uct_varuna_iface_t *iface,
                                         uct_varuna_ctl_t *ctl,
                                         const uct_varuna_served_ops_t *amo,
                                         uct_varuna_responder_t **resp_p)
{
    uct_varuna_responder_t *resp;
    ucs_status_t status;

    resp = ucs_calloc(1, sizeof(*resp), "varuna_responder");
    if (resp == NULL) {
        ucs_error("failed to allocate the responder");
        return UCS_ERR_NO_MEMORY;
    }

    resp->iface     = iface;
    resp->ctl       = ctl;
    resp->amo       = amo;
    resp->peer_part = uct_varuna_peer_add_part(ctl,
                                               sizeof(uct_varuna_responder_peer_t));
    uct_varuna_am_init(resp);

    status = uct_varuna_targets_init(resp);
    if (status != UCS_OK) {
        goto err_free;
    }

    status = (amo == NULL) ? UCS_OK : amo->open(resp);
    if (status != UCS_OK) {
        goto err_cleanup_targets;
    }

    status = uct_varuna_spares_init(resp);
    if (status != UCS_OK) {
        goto err_close_amo;
    }

    uct_varuna_connect_init(resp);
    uct_varuna_fence_init(resp);
    uct_varuna_orphan_start(resp);
    uct_varuna_unused_start(resp);
    *resp_p = resp;
    return UCS_OK;

err_close_amo:
    if (amo != NULL) {
        amo->close(resp);
    }
err_cleanup_targets:
    uct_varuna_targets_cleanup(resp);
err_free:
    ucs_free(resp);
    return status;
}

void uct_varuna_responder_destroy(uct_varuna_responder_t *resp)
{
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_spares_cleanup(resp);
    uct_varuna_orphans_cleanup(resp);
    uct_varuna_targets_cleanup(resp);
    if (resp->amo != NULL) {
        resp->amo->close(resp);
    }
    uct_varuna_ctl_unlock(resp->ctl);
    uct_varuna_arrival_cleanup(resp);
    ucs_free(resp);
}

/* --- Targets that nobody knows --- */

/* A late OPEN_REQ, which a switch has kept while the endpoint was closed, opens its vQP
 * once more, and if OPEN_REP is lost, it is never closed. So OPEN_REP is sent again
 * for a target that was never used. A requester that has no such endpoint answers with
 * CLOSE (varuna_answers.c); one that has it and is idle ignores the answer.
 *
 * The intervals double, and the number is limited, so an idle requester costs nothing in
 * the end. varuna_responder_open.c handles dead ones. */

#define UCT_VARUNA_UNUSED_PERIOD   1.0 /* Seconds between looks, and before the first */
#define UCT_VARUNA_UNUSED_TRIES    12  /* The last one after an hour and 8 minutes */
#define UCT_VARUNA_UNUSED_BURST    64  /* At one look */


static uct_varuna_retry_policy_t uct_varuna_unused_policy(void)
{
    uct_varuna_retry_policy_t policy = {
        .interval  = ucs_time_from_sec(2 * UCT_VARUNA_UNUSED_PERIOD),
        .backoff   = UCT_VARUNA_UNUSED_TRIES,
        .max_tries = UCT_VARUNA_UNUSED_TRIES
    };

    return policy;
}

static int uct_varuna_unused_is_used(const uct_varuna_target_t *target)
{
    return target->is_used ||
           (target->next_seq != uct_varuna_am_seq_first(target->opening));
}

static void uct_varuna_unused_remind(uct_varuna_responder_t *resp,
                                     uct_varuna_target_t *target,
                                     const uct_varuna_retry_policy_t *policy,
                                     ucs_time_t now)
{
    unsigned usable          = target->peer->link_map & ~resp->ctl->ports.down;
    uct_varuna_ctl_hdr_t hdr = {
        .type   = UCT_VARUNA_CTL_OPEN_REQ,
        .dest   = resp->iface->uuid,
        .uuid   = target->peer->uuid,
        .secret = target->peer->secret,
        .vqp    = target->vqp,
        .epoch  = target->instance
    };
    unsigned link;

    if (usable == 0) {
        return; /* Its turn comes when a port is up */
    }

    link = uct_varuna_retry_next(&target->reminder, policy, UCT_VARUNA_LINK_NONE,
                                 usable, now);
    ucs_debug("rc_varuna: target %u for vqp=%u of peer 0x%" PRIx64 " is not used: "
              "repeated OPEN_REP", target->id, target->vqp, target->peer->uuid);
    uct_varuna_target_reply_open(resp, link, &hdr, target);
}

/* @return Whether a reminder was due. */
static int uct_varuna_unused_look(uct_varuna_responder_t *resp,
                                  uct_varuna_target_t *target, ucs_time_t now,
                                  int has_room)
{
    uct_varuna_retry_policy_t policy = uct_varuna_unused_policy();
    uct_varuna_retry_t *reminder     = &target->reminder;

    if (!reminder->is_active) {
        uct_varuna_retry_start(reminder, now + (policy.interval / 2), now);
    }

    switch (uct_varuna_retry_check(reminder, &policy, now, now)) {
    case UCT_VARUNA_RETRY_WAIT:
        return 0;
    case UCT_VARUNA_RETRY_SEND:
        if (has_room) {
            uct_varuna_unused_remind(resp, target, &policy, now);
        }
        return 1;
    default:
        target->is_used = 1; /* As far as we can know */
        return 0;
    }
}

/* Async context, lock held */
static void uct_varuna_unused_timer(void *arg)
{
    uct_varuna_responder_t *resp = arg;
    ucs_time_t now               = uct_varuna_ctl_now(resp->ctl);
    unsigned due                 = 0;
    uct_varuna_target_t *target;

    /* All that were ever opened since have proved that they are used */
    if (resp->unused.num == 0) {
        return;
    }

    resp->unused.num = 0;
    kh_foreach_value(&resp->targets.by_name, target, {
        if (uct_varuna_unused_is_used(target)) {
            continue;
        }

        ++resp->unused.num;
        due += uct_varuna_unused_look(resp, target, now,
                                      due < UCT_VARUNA_UNUSED_BURST);
    });
}

/* Give the clock its job. */
static void uct_varuna_unused_start(uct_varuna_responder_t *resp)
{
    uct_varuna_clock_add(&resp->ctl->time.clock, uct_varuna_ctl_now(resp->ctl),
                         ucs_time_from_sec(UCT_VARUNA_UNUSED_PERIOD),
                         uct_varuna_unused_timer, resp);
}

/* --- Orphans --- */

/* A requester that is killed sends no CLOSE, and its targets would stay here, each with
 * a queue pair. So quiet peers that have targets here are pinged. A peer is given up when
 * it was silent for the whole of ORPHAN_TIMEOUT, and messages to it failed on all links.
 *
 *   the peer          what a ping meets                  verdict
 *   computes, idle    its async context answers          alive
 *   is stopped        its NIC takes it, no answer        alive
 *   is dead           an error: nothing takes it         given up in the end
 *   is cut off        an error, as above                 given up in the end
 *
 * The last two look the same from here. One that was cut off may come back and find
 * itself given up. Its queue pairs are gone, so what it posts on RC fails, it asks
 * for a fence, and is refused. What it posts on DC needs no queue pair of ours: its
 * messages are refused one by one, and its log ring is not given to another requester
 * while the target is kept. */

/* Looks in one timeout; a peer that was quiet for two of them is asked */
#define UCT_VARUNA_ORPHAN_TICKS    8

/* Questions without an answer or an error fill the receive queue of a peer that is
 * stopped: beyond these only each 16th is asked */
#define UCT_VARUNA_ORPHAN_EAGER    32

/* How many are kept, about 2 KB each; then the oldest one is destroyed */
#define UCT_VARUNA_ORPHANS_MAX     256


static ucs_time_t uct_varuna_orphan_period(const uct_varuna_responder_t *resp)
{
    return resp->iface->config.orphan_timeout / UCT_VARUNA_ORPHAN_TICKS;
}

static void uct_varuna_orphan_give_up(uct_varuna_responder_t *resp,
                                      uct_varuna_peer_t *peer, ucs_time_t now)
{
    khash_t(uct_varuna_targets) *targets = &resp->targets.by_name;
    uct_varuna_target_t *target;
    khiter_t iter;

    ucs_info("rc_varuna: peer 0x%" PRIx64 " has not answered on any link for %.1f "
             "s: freed the queue pairs of %u endpoints of it", peer->uuid,
             ucs_time_to_sec(now - peer->heard_at),
             uct_varuna_responder_peer(resp, peer)->targets);
    for (iter = kh_begin(targets); iter != kh_end(targets); ++iter) {
        if (!kh_exist(targets, iter)) {
            continue;
        }

        target = kh_val(targets, iter);
        if (target->peer == peer) {
            target->orphan = 1;
            ++resp->stats.given_up;
            uct_varuna_target_drop(resp, iter);
        }
    }
}

static void uct_varuna_orphan_check(uct_varuna_responder_t *resp,
                                    uct_varuna_peer_t *peer, ucs_time_t now)
{
    uct_varuna_responder_peer_t *own = uct_varuna_responder_peer(resp, peer);
    ucs_time_t quiet                 = now - peer->heard_at;
    unsigned usable                  = peer->link_map & ~resp->ctl->ports.down;
    unsigned link;

    /* With all our ports down, this host is the one that is cut off */
    if ((own->targets == 0) || (usable == 0) ||
        (quiet < (2 * uct_varuna_orphan_period(resp)))) {
        return;
    }

    if ((quiet >= resp->iface->config.orphan_timeout) &&
        ucs_test_all_flags(peer->failed, usable)) {
        uct_varuna_orphan_give_up(resp, peer, now);
        return;
    }

    if (own->orphan.since != peer->heard_at) {
        own->orphan.since = peer->heard_at;
        own->orphan.asked = 0;
    }

    ++own->orphan.asked;
    if ((own->orphan.asked <= UCT_VARUNA_ORPHAN_EAGER) ||
        ((own->orphan.asked % 16) == 0)) {
        ucs_for_each_bit(link, usable) {
            uct_varuna_heartbeat_probe(resp->ctl, peer, link);
        }
    }
}

static void uct_varuna_orphan_timer(void *arg)
{
    uct_varuna_responder_t *resp = arg;
    uct_varuna_peer_t *peer;
    ucs_time_t now;
    int is_late;

    /* Answers that arrived while no thread was awake */
    uct_varuna_ctl_progress(resp->ctl);

    /* Without CPU time, silence of others proves nothing */
    now                   = uct_varuna_ctl_now(resp->ctl);
    is_late               = (now - resp->orphan.ticked_at) >
                            (2 * uct_varuna_orphan_period(resp));
    resp->orphan.ticked_at = now;
    kh_foreach_value(&resp->ctl->peers, peer, {
        if (is_late) {
            uct_varuna_peer_heard(peer, now);
        }
        uct_varuna_orphan_check(resp, peer, now);
    });
}

/* Give the clock its job, if ORPHAN_TIMEOUT is not zero. */
static void uct_varuna_orphan_start(uct_varuna_responder_t *resp)
{
    resp->orphan.ticked_at = uct_varuna_ctl_now(resp->ctl);
    uct_varuna_clock_add(&resp->ctl->time.clock, resp->orphan.ticked_at,
                         uct_varuna_orphan_period(resp), uct_varuna_orphan_timer,
                         resp);
}

/* --- Main thread --- */

static void uct_varuna_orphan_destroy_oldest(uct_varuna_responder_t *resp)
{
    uct_varuna_target_t *oldest;

    oldest = ucs_list_extract_head(&resp->targets.orphans, uct_varuna_target_t,
                                   list);
    --resp->stats.orphans;
    uct_varuna_target_destroy(resp, oldest);
}

/* Main thread, lock not held: the target was given up. Its queue pairs go; what
 * its requester could still use, should it live, is kept for a while. */
static void uct_varuna_orphan_keep(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    uct_varuna_gap_end_target(target);
    uct_varuna_target_disconnect(resp, target);
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_target_close_amo(resp, target); /* It has no queue pairs any more */
    uct_varuna_ctl_unlock(resp->ctl);
    ucs_list_add_tail(&resp->targets.orphans, &target->list);
    if (++resp->stats.orphans > UCT_VARUNA_ORPHANS_MAX) {
        uct_varuna_orphan_destroy_oldest(resp);
    }
}

/* Main thread: destroy those which are kept. */
static void uct_varuna_orphans_cleanup(uct_varuna_responder_t *resp)
{
    while (!ucs_list_is_empty(&resp->targets.orphans)) {
        uct_varuna_orphan_destroy_oldest(resp);
    }
}
