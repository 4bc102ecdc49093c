/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sends pings, answers them, and decides what their absence means. The verdicts on
 * paths are in varuna_alive.c; here they are compared over all peers:
 *
 *   silent                             what it means
 *   one path of a peer, others of it   the way to the peer on that link, or its
 *   answer                             port (it says so itself, if it is down)
 *   that link to peers behind several  the link: suspected for all of them
 *   ports, and no peer answers on it
 *   all paths of a peer                the peer: nothing is switched
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_heartbeat.h"
#include "varuna_ctl.h"
#include "varuna_ports.h"
#include "varuna_bus.h"
#include "varuna_peer.h"
#include "varuna_witness.h"

#include <ucs/debug/log.h>
#include <string.h>

/* A path is in use for this time after it was last seen to be (the background
 * scan needs as long for thousands of endpoints), or for two intervals */
#define UCT_VARUNA_HEARTBEAT_USE_TIME 1.0 /* seconds */

/* How many peers are asked at once about a silent one */
#define UCT_VARUNA_HEARTBEAT_MAX_WITNESSES 4

/* Pings of which an answer may still come */
#define UCT_VARUNA_HEARTBEAT_RECENT   1024u


static unsigned uct_varuna_heartbeat_used(const uct_varuna_ctl_t *ctl,
                                          const uct_varuna_peer_t *peer,
                                          ucs_time_t now)
{
    ucs_time_t use_time = ucs_max(2 * ctl->hb.interval,
                                  ucs_time_from_sec(
                                          UCT_VARUNA_HEARTBEAT_USE_TIME));
    unsigned used       = 0;
    ucs_time_t used_at;
    unsigned link;

    ucs_for_each_bit(link, peer->link_map) {
        used_at = __atomic_load_n(&peer->hb.used_at[link], __ATOMIC_RELAXED);
        /* Another thread may have used it since @a now */
        if ((used_at != 0) && ((used_at + use_time) > now)) {
            used |= UCS_BIT(link);
        }
    }

    return used;
}

static int uct_varuna_ping_now(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned link,
                               ucs_time_t now);
static void uct_varuna_ping_due(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned links);

int uct_varuna_heartbeat_probe(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                               unsigned link)
{
    int asked;

    uct_varuna_ctl_lock(ctl);
    asked = uct_varuna_ping_now(ctl, peer, link, uct_varuna_ctl_now(ctl));
    uct_varuna_ctl_reap_eps(ctl, 0);
    uct_varuna_ctl_unlock(ctl);
    return asked;
}

/* --- Verdicts --- */

static void
uct_varuna_heartbeat_apply(uct_varuna_crowd_t *crowd, uct_varuna_peer_t *peer,
                           const uct_varuna_alive_verdict_t *verdict)
{
    if (verdict->dead != 0) {
        peer->hb.dead |= verdict->dead;
        uct_varuna_peer_notify(crowd->ctl, peer);
    }

    if (verdict->spoke) {
        ucs_info("rc_varuna: heartbeat: peer 0x%lx answers again", peer->uuid);
    }

    uct_varuna_witness_explain(crowd, peer, verdict->dead, verdict->became_silent);
}

/* Compare the peers. A link is suspected if peers behind several ports are silent on it
 * and none answers; the first answer ends that. If all silent peers are behind one port,
 * that port may be at fault. */
static void uct_varuna_heartbeat_judge_link(uct_varuna_ctl_t *ctl,
                                            unsigned link, ucs_time_t now)
{
    unsigned num_dead = uct_varuna_witness_count_dead(ctl, link);
    int answered;

    if (!(ctl->hb.suspects & UCS_BIT(link)) && (num_dead == 0)) {
        return;
    }

    answered = uct_varuna_witness_anybody(ctl, link, now);
    if (!answered && !(ctl->hb.suspects & UCS_BIT(link))) {
        ucs_info("rc_varuna: heartbeat: link %s is suspected: %u peers behind "
                 "several ports are silent on it, and none answers",
                 uct_varuna_link_name(ctl->iface, link), num_dead);
        ctl->hb.suspects |= UCS_BIT(link);
        ctl->hb.down_map |= UCS_BIT(link);
        ctl->hb.up_map   &= ~UCS_BIT(link);
        uct_varuna_ctl_notify(ctl);
    } else if (answered && (ctl->hb.suspects & UCS_BIT(link))) {
        ctl->hb.suspects &= ~UCS_BIT(link);
        ctl->hb.up_map   |= UCS_BIT(link);
        uct_varuna_ctl_notify(ctl);
    }
}

/* --- Witnesses, async context --- */

/* Ask a peer on a path that it may not use: then its silence is not counted. */
static void uct_varuna_heartbeat_ask(uct_varuna_ctl_t *ctl,
                                     uct_varuna_peer_t *peer, unsigned link,
                                     ucs_time_t now)
{
    int was_asked = peer->hb.alive.paths[link].asked;

    if (uct_varuna_ping_now(ctl, peer, link, now) && !was_asked) {
        uct_varuna_alive_unask(&peer->hb.alive, link);
    }
}

/*
 * A peer is silent on @a link. Other peers show whether it is our fault, even without
 * traffic to them: ask some of them, and others at the next tick. At most once in a tick
 * for each link, however many peers are silent.
 */
static void uct_varuna_heartbeat_ask_others(uct_varuna_ctl_t *ctl, unsigned link,
                                            ucs_time_t now)
{
    khiter_t end   = kh_end(&ctl->peers);
    unsigned asked = 0;
    uct_varuna_peer_t *other;
    khiter_t i, iter;

    for (i = 0; (i < end) && (asked < UCT_VARUNA_HEARTBEAT_MAX_WITNESSES); ++i) {
        iter = (ctl->hb.first + i) % end;
        if (!kh_exist(&ctl->peers, iter)) {
            continue;
        }

        other = kh_val(&ctl->peers, iter);
        if ((other->link_map & UCS_BIT(link)) && !other->hb.alive.silent &&
            !other->hb.alive.paths[link].asked &&
            !other->hb.alive.paths[link].condemned &&
            !uct_varuna_witness_is_inside(ctl, other, link)) {
            uct_varuna_heartbeat_ask(ctl, other, link, now);
            ++asked;
        }
    }
}

/* --- Processes which are gone, async context --- */

/* Ports, switches and cables work up to the peer's host, and it alone is silent.
 * Neighbours are asked even if nothing is sent to them. */
static int uct_varuna_heartbeat_ask_neighbours(uct_varuna_crowd_t *crowd,
                                               const uct_varuna_peer_t *peer)
{
    unsigned asked = 0;
    uct_varuna_peer_t *other;
    unsigned link, pos;

    ucs_for_each_bit(link, peer->link_map) {
        pos = 0;
        while ((other = uct_varuna_crowd_neighbour(crowd, peer, link, &pos)) != NULL) {
            if (uct_varuna_witness_is_recent(crowd->ctl, other, link, crowd->now)) {
                return 1;
            }

            if (!other->hb.alive.silent &&
                (asked++ < UCT_VARUNA_HEARTBEAT_MAX_WITNESSES)) {
                uct_varuna_heartbeat_ask(crowd->ctl, other, link, crowd->now);
            }
        }
    }

    return 0;
}

/* An interval which we have slept through is not counted: add up what we saw */
static void uct_varuna_heartbeat_count_gone(uct_varuna_crowd_t *crowd,
                                            uct_varuna_peer_t *peer, int is_late)
{
    ucs_time_t gone_time = peer->hb.gone_time;

    if (!peer->hb.alive.silent) {
        gone_time = 0;
    } else if (!is_late && uct_varuna_heartbeat_ask_neighbours(crowd, peer)) {
        gone_time += crowd->ctl->hb.interval;
    }

    __atomic_store_n(&peer->hb.gone_time, gone_time, __ATOMIC_RELAXED);
}

/* --- Timer, async context --- */

/* It had to wait for its turn (varuna_heartbeat.h): an answer has half an interval at least.
 * Later pings of the same interval, such as probes of endpoints, do not prolong that. */
static int uct_varuna_heartbeat_is_young(const uct_varuna_ctl_t *ctl,
                                         const uct_varuna_alive_path_t *path,
                                         ucs_time_t now)
{
    return path->asked && ((now - path->first_at) < (ctl->hb.interval / 2));
}

static void uct_varuna_heartbeat_tick_peer(uct_varuna_crowd_t *crowd,
                                           uct_varuna_peer_t *peer, int is_late)
{
    uct_varuna_ctl_t *ctl     = crowd->ctl;
    ucs_time_t now            = crowd->now;
    uct_varuna_alive_t *alive = &peer->hb.alive;
    unsigned used             = uct_varuna_heartbeat_used(ctl, peer, now);
    unsigned link, renew;
    uct_varuna_alive_verdict_t verdict;

    renew = __atomic_exchange_n(&peer->hb.renew, 0, __ATOMIC_RELAXED);
    ucs_for_each_bit(link, (used & ~peer->hb.used) | renew) {
        uct_varuna_alive_reset(alive, link);
    }
    peer->hb.used = used;

    /* To see a suspected link come back, and to find out whose fault it is */
    ucs_for_each_bit(link, (ctl->hb.suspects | peer->hb.unexplained) &
                           peer->link_map) {
        used |= alive->paths[link].condemned ? UCS_BIT(link) : 0;
    }

    if (used == 0) {
        uct_varuna_ping_due(ctl, peer, 0);
        return;
    }

    ucs_for_each_bit(link, peer->link_map) {
        if (is_late) {
            uct_varuna_alive_unask(alive, link);
        } else if (uct_varuna_heartbeat_is_young(ctl, &alive->paths[link], now)) {
            uct_varuna_alive_hold(alive, link);
        }
    }

    uct_varuna_alive_tick(alive, peer->link_map, used, peer->hb.far_down,
                          ctl->hb.max_misses, &verdict);
    uct_varuna_heartbeat_apply(crowd, peer, &verdict);
    uct_varuna_heartbeat_count_gone(crowd, peer, is_late);
    ucs_for_each_bit(link, verdict.ping) {
        ctl->hb.missing |= (alive->paths[link].misses > 0) ? UCS_BIT(link) : 0;
    }
    uct_varuna_ping_due(ctl, peer, verdict.ping);
}

/* Each time from another peer on: what is left for doubtful ones (varuna_ctl_ep.c)
 * is not enough for all of them */
static void uct_varuna_heartbeat_tick_peers(uct_varuna_ctl_t *ctl, int is_late,
                                            ucs_time_t now)
{
    khiter_t end   = kh_end(&ctl->peers);
    khiter_t first = (end == 0) ? 0 : (++ctl->hb.first % end);
    uct_varuna_crowd_t crowd;
    khiter_t i, iter;

    uct_varuna_crowd_init(&crowd, ctl, now);
    for (i = 0; i < end; ++i) {
        iter = (first + i) % end;
        if (kh_exist(&ctl->peers, iter)) {
            uct_varuna_heartbeat_tick_peer(&crowd, kh_val(&ctl->peers, iter), is_late);
        }
    }
    uct_varuna_crowd_cleanup(&crowd);
}

static void uct_varuna_heartbeat_timer(void *arg)
{
    uct_varuna_ctl_t *ctl = arg;
    ucs_time_t now;
    unsigned link;
    int is_late;

    /* Answers that arrived while no thread was awake */
    uct_varuna_ctl_progress(ctl);

    /* Without CPU time, silence of others proves nothing */
    now              = uct_varuna_ctl_now(ctl);
    is_late          = (now - ctl->hb.ticked_at) > (2 * ctl->hb.interval);
    ctl->hb.ticked_at = now;
    ctl->hb.missing   = 0;
    uct_varuna_heartbeat_tick_peers(ctl, is_late, now);
    uct_varuna_ping_go_on(ctl);

    ucs_for_each_bit(link, ctl->hb.missing) {
        uct_varuna_heartbeat_ask_others(ctl, link, now);
    }

    for (link = 0; link < ctl->num_links; ++link) {
        uct_varuna_heartbeat_judge_link(ctl, link, now);
    }
    uct_varuna_ctl_reap_eps(ctl, 0);
}

/* --- Messages, lock held --- */

int uct_varuna_heartbeat_has_asked(uct_varuna_ctl_t *ctl, uint64_t uuid,
                                   const uct_varuna_ctl_hdr_t *hdr)
{
    uct_varuna_peer_t *peer = uct_varuna_peer_find(ctl, uuid, hdr->secret);
    uint32_t newest;

    if ((peer == NULL) || (hdr->vqp >= ctl->num_links)) {
        return 0;
    }

    newest = peer->hb.alive.paths[hdr->vqp].seq;
    return (newest - hdr->epoch) < ucs_min(newest, UCT_VARUNA_HEARTBEAT_RECENT);
}

static void uct_varuna_heartbeat_handle_ping(void *arg, unsigned link,
                                             const uct_varuna_ctl_hdr_t *hdr,
                                             const void *body)
{
    uct_varuna_ctl_t *ctl      = arg;
    uct_varuna_peer_t *peer    = uct_varuna_peer_find(ctl, hdr->uuid, hdr->secret);
    uct_varuna_ctl_pong_t pong = {
        .ports = uct_varuna_ports_get(ctl),
        .beat  = __atomic_load_n(&ctl->iface->app_beat, __ATOMIC_RELAXED)
    };

    if ((peer == NULL) || !(peer->link_map & UCS_BIT(link))) {
        ucs_debug("dropped PING of 0x%lx, which we don't know", hdr->uuid);
        return;
    }

    uct_varuna_ctl_reply(ctl, peer, link, hdr, UCT_VARUNA_CTL_PONG, &pong,
                         sizeof(pong));
}

static void uct_varuna_heartbeat_handle_pong(void *arg, unsigned came_over,
                                             const uct_varuna_ctl_hdr_t *hdr,
                                             const void *body)
{
    uct_varuna_ctl_t *ctl             = arg;
    const uct_varuna_ctl_pong_t *pong = body;
    uct_varuna_peer_t *peer           = uct_varuna_peer_find(ctl, hdr->uuid,
                                                             hdr->secret);
    unsigned link                     = hdr->vqp;

    if ((peer == NULL) || (link >= ctl->num_links)) {
        ucs_debug("dropped PONG %u of 0x%lx, which nobody here asked for",
                  hdr->epoch, hdr->uuid);
        return;
    }

    /* Before its time: a reader of the time sees the beat of that time, or a newer one */
    __atomic_store_n(&peer->hb.app_beat, pong->beat, __ATOMIC_RELAXED);
    if (!uct_varuna_alive_pong(&peer->hb.alive, link, hdr->epoch,
                               uct_varuna_ctl_now(ctl))) {
        ucs_debug("dropped PONG %u of 0x%lx, which was not asked for",
                  hdr->epoch, hdr->uuid);
        return;
    }

    uct_varuna_ports_learn(ctl, peer, link, &pong->ports);
}

static const uct_varuna_bus_reg_t uct_varuna_heartbeat_rows[] = {
    {UCT_VARUNA_CTL_PING, UCT_VARUNA_BUS_ASYNC, uct_varuna_heartbeat_handle_ping},
    {UCT_VARUNA_CTL_PONG, UCT_VARUNA_BUS_ASYNC, uct_varuna_heartbeat_handle_pong}
};

void uct_varuna_heartbeat_start(uct_varuna_ctl_t *ctl)
{
    ctl->hb.interval   = ctl->iface->config.heartbeat_interval;
    ctl->hb.max_misses = ctl->iface->config.heartbeat_misses;
    ctl->hb.ticked_at  = uct_varuna_ctl_now(ctl);
    uct_varuna_bus_register(&ctl->bus, uct_varuna_heartbeat_rows,
                            ucs_static_array_size(uct_varuna_heartbeat_rows), ctl);
    uct_varuna_ports_init(ctl);
    uct_varuna_clock_add(&ctl->time.clock, ctl->hb.ticked_at, ctl->hb.interval,
                         uct_varuna_heartbeat_timer, ctl);
}

/* --- Pings --- */

/* Sends pings as resources allow. Called by the heartbeat, and by the
 * progress of the control plane. */

/* Pings on each link in one call: completions of the next ones call again */
#define UCT_VARUNA_PING_MAX_BURST    64


void uct_varuna_ping_init(uct_varuna_ctl_t *ctl)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        ucs_list_head_init(&ctl->hb.due[link]);
    }
}

/* Ask at once or not at all. What waited in the queue of messages would measure nothing.
 * A ping that fails for another reason than resources counts as asked: no answer will
 * come.
 *
 * @return Whether the peer was asked. */
static int uct_varuna_ping_now(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned link,
                               ucs_time_t now)
{
    struct {
        uct_varuna_ctl_hdr_t   hdr;
        char                   from[UCT_VARUNA_CTL_MAX_FROM];
    } UCS_S_PACKED ping;
    size_t length;

    memset(&ping.hdr, 0, sizeof(ping.hdr));
    ping.hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
    ping.hdr.version = UCT_VARUNA_WIRE_VERSION;
    ping.hdr.type    = UCT_VARUNA_CTL_PING;
    ping.hdr.dest    = peer->uuid;
    ping.hdr.uuid    = ctl->iface->uuid;
    ping.hdr.secret  = peer->secret;
    ping.hdr.moves   = peer->moves.known;
    ping.hdr.vqp     = link;
    ping.hdr.epoch   = uct_varuna_alive_next(&peer->hb.alive, link);
    length           = sizeof(ping.hdr) +
                       uct_varuna_ctl_append_from(ctl, link, &ping.hdr);

    if (uct_varuna_ctl_post(ctl, peer, link, &ping, length) == UCS_ERR_NO_RESOURCE) {
        return 0;
    }

    /* Also if it was held back, since the peer is doubtful there (varuna_ctl_ep.c), and
     * if there is no route to its port */
    (void)uct_varuna_alive_ping(&peer->hb.alive, link, now);
    return 1;
}

/* Ask the peer on exactly these links, as soon as there are resources, after all who are
 * due already. It keeps its turn where it is due. */
static void uct_varuna_ping_due(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned links)
{
    unsigned link;

    ucs_for_each_bit(link, peer->hb.due & ~links) {
        ucs_list_del(&peer->hb.due_list[link]);
    }

    ucs_for_each_bit(link, links & ~peer->hb.due) {
        ucs_list_add_tail(&ctl->hb.due[link], &peer->hb.due_list[link]);
    }

    peer->hb.due = links;
}

static uct_varuna_peer_t *uct_varuna_ping_first(uct_varuna_ctl_t *ctl, unsigned link)
{
    return ucs_container_of(ctl->hb.due[link].next - link, uct_varuna_peer_t,
                            hb.due_list[0]);
}

static void uct_varuna_ping_go_on_link(uct_varuna_ctl_t *ctl, unsigned link,
                                       ucs_time_t now)
{
    unsigned count = 0;
    uct_varuna_peer_t *peer;

    while ((count < UCT_VARUNA_PING_MAX_BURST) && !ucs_list_is_empty(&ctl->hb.due[link])) {
        peer = uct_varuna_ping_first(ctl, link);
        if (!(peer->link_map & UCS_BIT(link))) {
            /* It is of no interest any more */
        } else if (uct_varuna_ping_now(ctl, peer, link, now)) {
            ++count;
        } else if (!(peer->sought & UCS_BIT(link))) {
            return; /* No resources, for anybody */
        }

        /* An address may take a second to be resolved: the next ticks try again */
        uct_varuna_ping_due(ctl, peer, peer->hb.due & ~UCS_BIT(link));
    }
}

void uct_varuna_ping_go_on(uct_varuna_ctl_t *ctl)
{
    unsigned link;
    ucs_time_t now;

    for (link = 0; link < ctl->num_links; ++link) {
        if (!ucs_list_is_empty(&ctl->hb.due[link])) {
            now = uct_varuna_ctl_now(ctl);
            uct_varuna_ping_go_on_link(ctl, link, now);
        }
    }
}
