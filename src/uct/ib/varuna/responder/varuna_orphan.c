/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A requester that is killed sends no CLOSE, and its targets would stay here, each with
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
 * messages are refused one by one, and its log ring and its slots for atomics are not
 * given to another requester while the target is kept.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_orphan.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ctl_progress.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include "varuna_target.h"
#include "varuna_gap.h"
#include <uct/ib/varuna/responder/proxy/varuna_proxy.h>

#include <ucs/debug/log.h>

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
    unsigned usable                  = peer->link_map & ~resp->ctl->ports_down;
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

void uct_varuna_orphan_start(uct_varuna_responder_t *resp)
{
    resp->orphan.ticked_at = uct_varuna_ctl_now(resp->ctl);
    uct_varuna_clock_add(&resp->ctl->clock, uct_varuna_orphan_period(resp),
                         uct_varuna_orphan_timer, resp);
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

void uct_varuna_orphan_keep(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    target->broken      = 1;
    uct_varuna_retry_start(&target->gap.retry, 0, 0);
    uct_varuna_target_disconnect(resp, target);
    /* Rule 7 of docs/ATOMICS.md: without queue pairs it can't occupy any more, so
     * what it has left is swept, and its slots serve others */
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_proxy_close_client(resp->proxy, &target->client);
    uct_varuna_cpu_client_cleanup(&target->cpu); /* Nobody asks for results any more */
    uct_varuna_ctl_unlock(resp->ctl);
    ucs_list_add_tail(&resp->targets.orphans, &target->list);
    if (++resp->stats.orphans > UCT_VARUNA_ORPHANS_MAX) {
        uct_varuna_orphan_destroy_oldest(resp);
    }
}

void uct_varuna_orphan_message(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target)
{
    uct_varuna_gap_tell(resp, target, uct_varuna_ctl_now(resp->ctl));
}

void uct_varuna_orphans_cleanup(uct_varuna_responder_t *resp)
{
    while (!ucs_list_is_empty(&resp->targets.orphans)) {
        uct_varuna_orphan_destroy_oldest(resp);
    }
}
