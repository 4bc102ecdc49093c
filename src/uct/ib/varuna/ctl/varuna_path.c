/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Paths to peers, damped as links are. No event reports that a path works again, so it
 * is probed; and a peer may report its ports (varuna_ports.c).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_peer.h"
#include "varuna_ctl.h"
#include "varuna_heartbeat.h"
#include <uct/ib/varuna/lanes/varuna_lanes.h>

#include <ucs/debug/log.h>
#include <ucs/sys/math.h>

/* A path which is down is asked after this part of the time that it has been down */
#define UCT_VARUNA_PATH_PATIENCE     8

/* This many probes in a row without an answer begin the hold-down anew: together they
 * take less time than a flapping port is down */
#define UCT_VARUNA_PATH_MISSES       2

void uct_varuna_peer_path_down(uct_varuna_iface_t *iface,
                               uct_varuna_peer_t *peer, unsigned link,
                               const char *reason)
{
    const uct_varuna_damp_times_t *times = &iface->link_table.times;
    uct_varuna_path_t *path              = &peer->paths[link];
    ucs_time_t now                       = uct_varuna_ctl_now(iface->ctl);

    if (uct_varuna_damp_fail(&path->damp, times, now)) {
        path->reason    = reason;
        path->probed_at = 0;
        path->tried_at  = 0;
        ++path->generation;
        uct_varuna_link_raise(iface);
        ucs_debug("rc_varuna: the path to peer 0x%lx over %s is down: %s",
                  peer->uuid, uct_varuna_link_name(iface, link), reason);
    }

    path->retry_at = now + uct_varuna_damp_hold_time(&path->damp, times);
}

void uct_varuna_peer_path_good(uct_varuna_iface_t *iface,
                               uct_varuna_peer_t *peer, unsigned link)
{
    uct_varuna_path_t *path = &peer->paths[link];

    if (uct_varuna_damp_good(&path->damp, &iface->link_table.times,
                             uct_varuna_ctl_now(iface->ctl))) {
        path->probed_at = 0;
        path->tried_at  = 0;
        path->misses    = 0;
        ucs_debug("rc_varuna: the path to peer 0x%lx over %s is good again, and can "
                  "be used in %.3f s", peer->uuid,
                  uct_varuna_link_name(iface, link),
                  ucs_time_to_sec(path->damp.usable_at - path->damp.changed));
    }
}

unsigned uct_varuna_peer_usable_links(const uct_varuna_peer_t *peer)
{
    unsigned usable = 0;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map) {
        if (peer->paths[link].damp.state == UCT_VARUNA_DAMP_UP) {
            usable |= UCS_BIT(link);
        }
    }

    return usable;
}

unsigned uct_varuna_peer_returnable_links(const uct_varuna_iface_t *iface,
                                          const uct_varuna_peer_t *peer,
                                          ucs_time_t now)
{
    unsigned links = uct_varuna_peer_usable_links(peer);
    unsigned link;

    ucs_for_each_bit(link, links) {
        if ((now - peer->paths[link].damp.changed) <
            iface->link_table.return_delay) {
            links &= ~UCS_BIT(link);
        }
    }

    return links;
}

static int uct_varuna_path_answers(const uct_varuna_peer_t *peer, unsigned link)
{
    const uct_varuna_path_t *path = &peer->paths[link];

    return (path->probed_at != 0) &&
           (uct_varuna_heartbeat_answered_at(peer, link) >= path->probed_at);
}

static void uct_varuna_path_probe(uct_varuna_iface_t *iface,
                                  uct_varuna_peer_t *peer, unsigned link,
                                  ucs_time_t now)
{
    uct_varuna_path_t *path = &peer->paths[link];

    /* A PING that cannot be sent is not missed, but it takes its interval: a NIC that
     * hangs refuses each one */
    path->tried_at  = now;
    path->probed_at = uct_varuna_heartbeat_probe(iface->ctl, peer, link) ? now : 0;
}

/* Down: ask now and then, less often if that takes long. */
static void uct_varuna_path_step_down(uct_varuna_iface_t *iface,
                                      uct_varuna_peer_t *peer, unsigned link,
                                      ucs_time_t now, ucs_time_t interval)
{
    uct_varuna_path_t *path = &peer->paths[link];

    if (uct_varuna_path_answers(peer, link)) {
        uct_varuna_peer_path_good(iface, peer, link);
        return;
    }

    interval = ucs_max(interval, ucs_min((now - path->damp.changed) /
                                         UCT_VARUNA_PATH_PATIENCE,
                                         iface->link_table.times.hold_max /
                                         UCT_VARUNA_PATH_PATIENCE));
    if (now >= (ucs_max(path->tried_at, path->damp.changed) + interval)) {
        uct_varuna_path_probe(iface, peer, link, now);
    }
}

/* Hold-down: it is over when the path has answered all the time. Late answers to
 * earlier questions will do, or a slow peer would never be good again. */
static void uct_varuna_path_step_hold(uct_varuna_iface_t *iface,
                                      uct_varuna_peer_t *peer, unsigned link,
                                      ucs_time_t now, ucs_time_t interval)
{
    uct_varuna_path_t *path = &peer->paths[link];
    int answers             = uct_varuna_path_answers(peer, link);

    path->misses = answers ? 0 : path->misses;
    if (answers && uct_varuna_damp_is_over(&path->damp, now)) {
        uct_varuna_damp_up(&path->damp, now);
        uct_varuna_heartbeat_renew(peer, link);
        ucs_debug("rc_varuna: the path to peer 0x%lx over %s can be used again",
                  peer->uuid, uct_varuna_link_name(iface, link));
        return;
    }

    if ((path->tried_at != 0) && ((now - path->tried_at) < interval)) {
        return;
    }

    if ((path->probed_at != 0) && !answers &&
        (++path->misses >= UCT_VARUNA_PATH_MISSES)) {
        path->misses = 0;
        uct_varuna_damp_again(&path->damp, &iface->link_table.times, now);
    }
    uct_varuna_path_probe(iface, peer, link, now);
}

void uct_varuna_peer_probe_paths(uct_varuna_iface_t *iface,
                                 uct_varuna_peer_t *peer, ucs_time_t now)
{
    ucs_time_t interval = iface->config.ctl_timeout;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map) {
        if (iface->link_table.links[link].damp.state != UCT_VARUNA_DAMP_UP) {
            continue; /* Ours is in the way, and no news of the path */
        }

        switch (peer->paths[link].damp.state) {
        case UCT_VARUNA_DAMP_DOWN:
            uct_varuna_path_step_down(iface, peer, link, now, 2 * interval);
            break;
        case UCT_VARUNA_DAMP_HOLD:
            uct_varuna_path_step_hold(iface, peer, link, now, interval);
            break;
        default:
            break;
        }
    }
}

/* --- What the async context found --- */

/* What the heartbeat and the peers' reports have found, applied in the main thread: paths
 * that are dead or good again, and links that are suspected. */

typedef struct uct_varuna_peer_event {
    unsigned                   dead;      /* Paths */
    unsigned                   told_down; /* ... by their owner */
    unsigned                   told_up;
    unsigned                   retired;
} uct_varuna_peer_event_t;

/* Take one peer's event. @return NULL if there is none, else a reference. */
static uct_varuna_peer_t *
uct_varuna_peer_event_next(uct_varuna_ctl_t *ctl, uct_varuna_peer_event_t *event)
{
    uct_varuna_peer_t *peer = NULL;

    uct_varuna_ctl_lock(ctl);
    if (!ucs_list_is_empty(&ctl->hb.events)) {
        peer               = ucs_list_extract_head(&ctl->hb.events,
                                                   uct_varuna_peer_t, hb.list);
        event->dead        = peer->hb.dead;
        event->told_down   = peer->hb.told_down;
        event->told_up     = peer->hb.told_up;
        event->retired     = peer->hb.far_retired;
        peer->hb.queued    = 0;
        peer->hb.dead      = 0;
        peer->hb.told_down = 0;
        peer->hb.told_up   = 0;
        ++peer->refcount;
    }
    uct_varuna_ctl_unlock(ctl);
    return peer;
}

/* What is on such a path works, and moves as planned. */
static void uct_varuna_peer_event_retire(uct_varuna_iface_t *iface,
                                         uct_varuna_peer_t *peer, unsigned retired)
{
    if (peer->retired == retired) {
        return;
    }

    ucs_info("rc_varuna: peer 0x%lx has retired its ends of links 0x%x", peer->uuid,
             retired);
    peer->retired = retired;
    uct_varuna_link_raise(iface);
}

static void uct_varuna_peer_event_apply(uct_varuna_iface_t *iface,
                                        uct_varuna_peer_t *peer,
                                        const uct_varuna_peer_event_t *event)
{
    unsigned link;

    ucs_for_each_bit(link, event->dead) {
        uct_varuna_peer_path_down(iface, peer, link, "heartbeat lost");
    }

    /* Where there is no other path, nothing is better than to wait on this one */
    ucs_for_each_bit(link, event->told_down) {
        if (uct_varuna_peer_usable_links(peer) & ~UCS_BIT(link)) {
            uct_varuna_peer_path_down(iface, peer, link,
                                      "the peer's port is down");
        }
    }

    ucs_for_each_bit(link, event->told_up) {
        uct_varuna_peer_path_good(iface, peer, link);
    }

    uct_varuna_peer_event_retire(iface, peer, event->retired);
}

int uct_varuna_peer_has_events(uct_varuna_ctl_t *ctl)
{
    return !ucs_list_is_empty(&ctl->hb.events) || (ctl->hb.down_map != 0) ||
           (ctl->hb.up_map != 0);
}

unsigned uct_varuna_peer_events_dispatch(uct_varuna_ctl_t *ctl)
{
    unsigned count = 0;
    uct_varuna_peer_event_t event;
    unsigned link, down_map, up_map;
    uct_varuna_peer_t *peer;

    while ((peer = uct_varuna_peer_event_next(ctl, &event)) != NULL) {
        uct_varuna_peer_event_apply(ctl->iface, peer, &event);
        uct_varuna_peer_put(ctl, peer);
        ++count;
    }

    uct_varuna_ctl_lock(ctl);
    down_map         = ctl->hb.down_map;
    up_map           = ctl->hb.up_map;
    ctl->hb.down_map = 0;
    ctl->hb.up_map   = 0;
    uct_varuna_ctl_unlock(ctl);

    ucs_for_each_bit(link, down_map) {
        uct_varuna_link_down(ctl->iface, link, UCT_VARUNA_LINK_CAUSE_HEARTBEAT,
                             "nobody answers on it");
        ++count;
    }
    ucs_for_each_bit(link, up_map) {
        uct_varuna_link_up(ctl->iface, link, UCT_VARUNA_LINK_CAUSE_HEARTBEAT);
        ++count;
    }

    return count;
}
