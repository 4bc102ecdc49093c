/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A host: its timer, its ports, its heartbeat, and the messages that it handles.
 */
#include "scale_sim.h"

#include <ucs/sys/math.h>

void scale_host_init(scale_sim_t *sim, uint32_t index)
{
    scale_host_t *host  = &sim->hosts[index];
    scale_event_t event = {.type = SCALE_TICK, .subject = index};

    uct_varuna_link_table_init(&host->links, SCALE_NUM_LINKS, 0,
                               ucs_time_from_sec(SCALE_HOLD_MIN),
                               ucs_time_from_sec(SCALE_HOLD_MAX));
    uct_varuna_pace_init(&host->pace, UCT_VARUNA_REBUILD_RATE);
    /* Timers of hosts are not in phase */
    scale_sim_add(sim, ucs_time_from_sec(SCALE_HEARTBEAT *
                                         (scale_sim_random(sim, 10000) / 10000.0)),
                  &event);
}

static void scale_host_look_at_all(scale_sim_t *sim, scale_host_t *host)
{
    unsigned i;

    /* Another one is the first each time, as in the plugin's scan */
    for (i = 0; i < host->num_eps; ++i) {
        scale_ep_look(sim, host->eps[(host->first + i) % host->num_eps]);
    }
    host->first += (host->num_eps > 0);
}

/* The peers that send to a host learn of its ports, over the other network. */
static void scale_host_announce(scale_sim_t *sim, uint32_t index, int is_up)
{
    uint32_t other;
    unsigned i;

    for (other = 0; other < sim->options.hosts; ++other) {
        for (i = 0; i < sim->hosts[other].num_peers; ++i) {
            if (sim->hosts[other].peers[i].host == index) {
                scale_sim_send(sim, index, other, 1, SCALE_PORTS, 0, is_up, sim->now);
            }
        }
    }
}

void scale_host_port(scale_sim_t *sim, uint32_t index, int is_up)
{
    scale_host_t *host = &sim->hosts[index];

    scale_host_announce(sim, index, is_up);

    if (is_up) {
        uct_varuna_link_remove_cause(&host->links, 0, UCT_VARUNA_LINK_CAUSE_PORT,
                                     sim->now);
    } else {
        uct_varuna_link_add_cause(&host->links, 0, UCT_VARUNA_LINK_CAUSE_PORT, sim->now);
        scale_host_look_at_all(sim, host);
    }
}

/* Links to a peer that carry traffic, or are asked for other reasons */
static unsigned scale_host_used_links(const scale_sim_t *sim, const scale_host_t *host,
                                      const scale_peer_t *peer, unsigned index)
{
    unsigned used = 0;
    const scale_ep_t *ep;
    unsigned i;

    for (i = 0; i < host->num_eps; ++i) {
        ep = &sim->eps[host->eps[i]];
        if (ep->peer == index) {
            used |= UCS_BIT(ep->link);
        }
    }

    /* A dead path is pinged until it answers again */
    for (i = 0; i < SCALE_NUM_LINKS; ++i) {
        used |= peer->alive.paths[i].condemned ? UCS_BIT(i) : 0;
    }
    return used;
}

static void scale_host_heartbeat(scale_sim_t *sim, uint32_t index)
{
    scale_host_t *host = &sim->hosts[index];
    uct_varuna_alive_verdict_t verdict;
    scale_peer_t *peer;
    unsigned i, link;

    for (i = 0; i < host->num_peers; ++i) {
        peer = &host->peers[i];
        uct_varuna_alive_tick(&peer->alive, UCS_MASK(SCALE_NUM_LINKS),
                              scale_host_used_links(sim, host, peer, i), 0, SCALE_MISSES,
                              &verdict);
        ucs_for_each_bit(link, verdict.dead) {
            peer->path_gen[link] += uct_varuna_damp_fail(&peer->path[link],
                                                         &host->links.times, sim->now);
        }
        ucs_for_each_bit(link, verdict.ping) {
            scale_sim_send(sim, index, peer->host, link, SCALE_PING, 0,
                           uct_varuna_alive_ping(&peer->alive, link, sim->now), sim->now);
        }
    }
}

/* Paths and links that are good again may be used after their hold-down. */
static void scale_host_end_hold_downs(scale_sim_t *sim, scale_host_t *host)
{
    unsigned i, link;

    uct_varuna_link_tick(&host->links, sim->now);
    for (i = 0; i < host->num_peers; ++i) {
        for (link = 0; link < SCALE_NUM_LINKS; ++link) {
            if (uct_varuna_damp_is_over(&host->peers[i].path[link], sim->now)) {
                uct_varuna_damp_up(&host->peers[i].path[link], sim->now);
            }
        }
    }
}

void scale_host_tick(scale_sim_t *sim, uint32_t index, unsigned number)
{
    scale_event_t event = {.type = SCALE_TICK, .subject = index, .number = number + 1};

    if ((number % (unsigned)(SCALE_HEARTBEAT / SCALE_TICK_TIME)) == 0) {
        scale_host_heartbeat(sim, index);
    }
    scale_host_end_hold_downs(sim, &sim->hosts[index]);
    scale_host_look_at_all(sim, &sim->hosts[index]);
    scale_sim_add(sim, sim->now + ucs_time_from_sec(SCALE_TICK_TIME), &event);
}

/* Handling a message needs the host's thread, and some also a command of a NIC. */
void scale_host_arrival(scale_sim_t *sim, const scale_event_t *event)
{
    scale_host_t *host    = &sim->hosts[event->subject];
    scale_event_t handled = *event;
    ucs_time_t *nic       = &host->nic_until[event->link];
    ucs_time_t done;

    done             = ucs_max(host->busy_until, sim->now) +
                       ucs_time_from_sec(SCALE_HANDLE);
    host->busy_until = done;
    if ((event->message == SCALE_FENCE_REQ) || (event->message == SCALE_CONNECT_REQ)) {
        *nic = ucs_max(*nic, done) +
               ucs_time_from_sec((event->message == SCALE_FENCE_REQ) ? SCALE_COMMAND :
                                 SCALE_CREATE);
        done = *nic;
    }

    ++host->messages;
    handled.type = SCALE_HANDLED;
    scale_sim_add(sim, done, &handled);
}

static scale_peer_t *scale_host_find_peer(scale_host_t *host, uint32_t index)
{
    unsigned i;

    for (i = 0; i < host->num_peers; ++i) {
        if (host->peers[i].host == index) {
            return &host->peers[i];
        }
    }

    return NULL;
}

static void scale_host_pong(scale_sim_t *sim, const scale_event_t *event)
{
    scale_host_t *host = &sim->hosts[event->subject];
    scale_peer_t *peer = scale_host_find_peer(host, event->from);

    if (peer != NULL) {
        uct_varuna_alive_pong(&peer->alive, event->link, event->number, sim->now);
        uct_varuna_damp_good(&peer->path[event->link], &host->links.times, sim->now);
    }
}

static void scale_host_learn_ports(scale_sim_t *sim, const scale_event_t *event)
{
    scale_host_t *host = &sim->hosts[event->subject];
    scale_peer_t *peer = scale_host_find_peer(host, event->from);

    if (peer == NULL) {
        return;
    }

    if (event->number) {
        uct_varuna_damp_good(&peer->path[0], &host->links.times, sim->now);
    } else {
        peer->path_gen[0] += uct_varuna_damp_fail(&peer->path[0], &host->links.times,
                                                  sim->now);
        scale_host_look_at_all(sim, host);
    }
}

void scale_host_handled(scale_sim_t *sim, const scale_event_t *event)
{
    switch (event->message) {
    case SCALE_PING:
        scale_sim_send(sim, event->subject, event->from, event->link, SCALE_PONG, 0,
                       event->number, sim->now);
        break;
    case SCALE_PONG:
        scale_host_pong(sim, event);
        break;
    case SCALE_PORTS:
        scale_host_learn_ports(sim, event);
        break;
    case SCALE_FENCE_REQ:
    case SCALE_CONNECT_REQ:
        scale_sim_send(sim, event->subject, sim->eps[event->from].host, event->link,
                       (event->message == SCALE_FENCE_REQ) ? SCALE_FENCE_REP :
                       SCALE_CONNECT_REP, event->from, event->number, sim->now);
        break;
    default:
        scale_ep_answer(sim, event);
        break;
    }
}
