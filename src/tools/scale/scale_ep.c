/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An endpoint: the plugin's state machine, with its requests to the responder.
 */
#include "scale_sim.h"

#include <ucs/sys/math.h>

#define SCALE_CONNECT_BACKOFF 6

static scale_peer_t *scale_ep_peer(const scale_sim_t *sim, const scale_ep_t *ep)
{
    return &sim->hosts[ep->host].peers[ep->peer];
}

static void scale_ep_raise(scale_ep_t *ep, uct_varuna_ep_event_t event)
{
    uct_varuna_ep_state_t state = uct_varuna_sm_next((uct_varuna_ep_state_t)ep->state,
                                                     event);

    if (state != UCT_VARUNA_EP_STATE_LAST) {
        ep->state = state;
    }
}

static void scale_ep_add_step(scale_sim_t *sim, uint32_t index, double after)
{
    scale_event_t event = {.type = SCALE_STEP, .subject = index};

    if (!sim->eps[index].is_stepping) {
        sim->eps[index].is_stepping = 1;
        scale_sim_add(sim, sim->now + ucs_time_from_sec(after), &event);
    }
}

int scale_ep_is_stale(const scale_sim_t *sim, const scale_ep_t *ep)
{
    const scale_host_t *host = &sim->hosts[ep->host];
    const scale_peer_t *peer = scale_ep_peer(sim, ep);

    return (host->links.links[ep->link].generation != ep->link_gen) ||
           (peer->path_gen[ep->link] != ep->path_gen) ||
           (host->links.links[ep->link].damp.state == UCT_VARUNA_DAMP_DOWN) ||
           (peer->path[ep->link].state == UCT_VARUNA_DAMP_DOWN);
}

static void scale_ep_set_lane(const scale_sim_t *sim, scale_ep_t *ep, unsigned link,
                              int is_rc)
{
    ep->link     = link;
    ep->is_rc    = is_rc;
    ep->link_gen = sim->hosts[ep->host].links.links[link].generation;
    ep->path_gen = scale_ep_peer(sim, ep)->path_gen[link];
}

/* Links whose path to the peer is good */
static unsigned scale_ep_usable(const scale_sim_t *sim, const scale_ep_t *ep)
{
    const scale_peer_t *peer = scale_ep_peer(sim, ep);
    unsigned usable          = 0;
    unsigned link;

    for (link = 0; link < SCALE_NUM_LINKS; ++link) {
        usable |= (peer->path[link].state == UCT_VARUNA_DAMP_UP) ? UCS_BIT(link) : 0;
    }
    return usable;
}

static unsigned scale_ep_select(const scale_sim_t *sim, const scale_ep_t *ep)
{
    return uct_varuna_link_select(&sim->hosts[ep->host].links, ep->link,
                                  scale_ep_usable(sim, ep));
}

static void scale_ep_drop_next(scale_sim_t *sim, scale_ep_t *ep)
{
    if (ep->next_link != UCT_VARUNA_LINK_NONE) {
        --scale_ep_peer(sim, ep)->connecting;
        ep->next_link = UCT_VARUNA_LINK_NONE;
        uct_varuna_retry_stop(&ep->connect);
    }
}

/* The lane has failed: its queue pair goes to ERR, which takes the NIC's time. */
static void scale_ep_fail(scale_sim_t *sim, uint32_t index)
{
    scale_ep_t *ep  = &sim->eps[index];
    ucs_time_t *nic = &sim->hosts[ep->host].nic_until[ep->link];

    scale_ep_drop_next(sim, ep);
    scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_LANE_FAILED);
    ++ep->epoch;
    *nic           = ucs_max(*nic, sim->now) + ucs_time_from_sec(SCALE_COMMAND);
    ep->at_rest_at = *nic + ucs_time_from_sec(SCALE_FLUSH);
    ep->ask        = (uct_varuna_retry_t){};
    scale_ep_add_step(sim, index, ucs_time_to_sec(ep->at_rest_at - sim->now));
}

/* FENCE: ask the responder, again and again, over one link after the other. */
static void scale_ep_ask(scale_sim_t *sim, uint32_t index)
{
    scale_ep_t *ep                         = &sim->eps[index];
    scale_peer_t *peer                     = scale_ep_peer(sim, ep);
    const uct_varuna_retry_policy_t policy = {
        .interval = ucs_time_from_sec(SCALE_CTL_TIMEOUT)
    };
    unsigned map                           = UCS_MASK(SCALE_NUM_LINKS);
    unsigned link;

    if (!ep->ask.is_active) {
        uct_varuna_retry_start(&ep->ask, 0, 0);
    } else if (uct_varuna_retry_check(&ep->ask, &policy, sim->now, 0) !=
               UCT_VARUNA_RETRY_SEND) {
        return;
    }

    if (!ep->is_counted) {
        if (peer->asking >= UCT_VARUNA_MAX_ASKING) {
            return;
        }
        ep->is_counted = 1;
        ++peer->asking;
    }

    if (sim->hosts[ep->host].links.links[0].causes & UCT_VARUNA_LINK_CAUSE_PORT) {
        map &= ~UCS_BIT(0);
    }
    link = uct_varuna_retry_next(&ep->ask, &policy, scale_ep_select(sim, ep), map,
                                 sim->now);
    scale_sim_send(sim, ep->host, peer->host, link, SCALE_FENCE_REQ, index, ep->epoch,
                   sim->now);
}

/* The evidence is there: what was lost is repeated on DC, over the link that works. */
static void scale_ep_decided(scale_sim_t *sim, uint32_t index)
{
    scale_ep_t *ep = &sim->eps[index];
    unsigned link  = scale_ep_select(sim, ep);

    ep->is_counted = 0;
    --scale_ep_peer(sim, ep)->asking;
    uct_varuna_retry_stop(&ep->ask);
    scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_DECIDED);
    scale_ep_set_lane(sim, ep, (link == UCT_VARUNA_LINK_NONE) ? ep->link : link, 0);
    scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_POSTED);
    if ((ep->moved_at == 0) && !scale_ep_is_stale(sim, ep)) {
        ep->moved_at = sim->now;
        ++sim->num_moved;
    }
}

static void scale_ep_send_connect(scale_sim_t *sim, uint32_t index)
{
    const uct_varuna_retry_policy_t policy = {
        .interval = ucs_time_from_sec(4 * SCALE_CTL_TIMEOUT),
        .backoff  = SCALE_CONNECT_BACKOFF
    };
    scale_ep_t *ep                         = &sim->eps[index];

    uct_varuna_retry_next(&ep->connect, &policy, ep->next_link, UCS_BIT(ep->next_link),
                          sim->now);
    scale_sim_send(sim, ep->host, scale_ep_peer(sim, ep)->host, ep->next_link,
                   SCALE_CONNECT_REQ, index, ep->epoch, sim->now);
}

/* ACTIVE: connect RC where it is wanted, at the pace of the host. */
static void scale_ep_rebuild(scale_sim_t *sim, uint32_t index)
{
    scale_ep_t *ep     = &sim->eps[index];
    scale_host_t *host = &sim->hosts[ep->host];
    scale_peer_t *peer = scale_ep_peer(sim, ep);
    unsigned link;

    if (ep->next_link != UCT_VARUNA_LINK_NONE) {
        if (sim->now >= ep->connect.due) {
            scale_ep_send_connect(sim, index);
        }
        return;
    }

    link = scale_ep_select(sim, ep);
    if ((link == UCT_VARUNA_LINK_NONE) || ((link == ep->link) && ep->is_rc) ||
        (peer->connecting >= UCT_VARUNA_MAX_CONNECTING) ||
        !uct_varuna_pace_take(&host->pace, sim->now)) {
        return;
    }

    ++peer->connecting;
    ep->next_link = link;
    uct_varuna_retry_start(&ep->connect, sim->now, sim->now);
    /* Creating it takes the host's thread */
    host->busy_until = ucs_max(host->busy_until, sim->now) +
                       ucs_time_from_sec(SCALE_CREATE);
    uct_varuna_pace_spent(&host->pace, ucs_time_from_sec(SCALE_CREATE));
    scale_ep_send_connect(sim, index);
}

static void scale_ep_connected(scale_sim_t *sim, scale_ep_t *ep)
{
    unsigned link = ep->next_link;

    scale_ep_drop_next(sim, ep);
    scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_NEXT_READY);
    scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_SWAPPED);
    scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_POSTED);
    scale_ep_set_lane(sim, ep, link, 1);
    if ((link != 0) && (ep->rebuilt_at == 0)) {
        ep->rebuilt_at = sim->now;
        ++sim->num_rebuilt;
    } else if ((link == 0) && (ep->epoch > 0) && (ep->returned_at == 0)) {
        ep->returned_at = sim->now;
        ++sim->num_returned;
    }
}

void scale_ep_answer(scale_sim_t *sim, const scale_event_t *event)
{
    scale_ep_t *ep = &sim->eps[event->from];

    if (event->number != ep->epoch) {
        return; /* Of an earlier incarnation */
    }

    if ((event->message == SCALE_FENCE_REP) && (ep->state == UCT_VARUNA_EP_FENCE)) {
        scale_ep_decided(sim, event->from);
    } else if ((event->message == SCALE_CONNECT_REP) &&
               (ep->state == UCT_VARUNA_EP_ACTIVE) &&
               (ep->next_link == event->link)) {
        scale_ep_connected(sim, ep);
    }
}

void scale_ep_step(scale_sim_t *sim, uint32_t index)
{
    scale_ep_t *ep = &sim->eps[index];

    if ((ep->state == UCT_VARUNA_EP_DRAIN) && (sim->now >= ep->at_rest_at)) {
        scale_ep_raise(ep, UCT_VARUNA_EP_EVENT_AT_REST);
    }
    if (ep->state == UCT_VARUNA_EP_FENCE) {
        scale_ep_ask(sim, index);
    }
}

/* The background scan, or a failure: is there something to do? */
void scale_ep_look(scale_sim_t *sim, uint32_t index)
{
    scale_ep_t *ep = &sim->eps[index];

    if (ep->state == UCT_VARUNA_EP_ACTIVE) {
        if (scale_ep_is_stale(sim, ep)) {
            scale_ep_fail(sim, index);
        } else {
            scale_ep_rebuild(sim, index);
        }
    } else {
        scale_ep_step(sim, index);
    }
}
