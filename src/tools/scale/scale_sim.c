/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Events in the order of their times, and the network.
 */
#include "scale_sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int scale_is_before(const scale_event_t *a, const scale_event_t *b)
{
    return (a->time < b->time) || ((a->time == b->time) && (a->order < b->order));
}

void scale_sim_add(scale_sim_t *sim, ucs_time_t time, const scale_event_t *event)
{
    size_t i = sim->num_events++;
    scale_event_t added;

    if (sim->num_events > sim->max_events) {
        sim->max_events = 2 * sim->num_events;
        sim->heap       = realloc(sim->heap, sim->max_events * sizeof(*sim->heap));
        if (sim->heap == NULL) {
            fprintf(stderr, "varuna_scale: there is no memory\n");
            exit(2);
        }
    }

    added       = *event;
    added.time  = time;
    added.order = sim->order++;
    for (; (i > 0) && scale_is_before(&added, &sim->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        sim->heap[i] = sim->heap[(i - 1) / 2];
    }
    sim->heap[i] = added;
}

static scale_event_t scale_sim_take(scale_sim_t *sim)
{
    scale_event_t first = sim->heap[0];
    scale_event_t last  = sim->heap[--sim->num_events];
    size_t i            = 0;
    size_t child;

    while ((child = (2 * i) + 1) < sim->num_events) {
        if ((child + 1 < sim->num_events) &&
            scale_is_before(&sim->heap[child + 1], &sim->heap[child])) {
            ++child;
        }
        if (!scale_is_before(&sim->heap[child], &last)) {
            break;
        }
        sim->heap[i] = sim->heap[child];
        i            = child;
    }
    sim->heap[i] = last;
    return first;
}

/* The same sequence on all machines (splitmix64, S. Vigna, public domain) */
unsigned scale_sim_random(scale_sim_t *sim, unsigned limit)
{
    uint64_t x = (sim->random += 0x9e3779b97f4a7c15ul);

    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
    return (x ^ (x >> 31)) % limit;
}

int scale_sim_is_cut(const scale_sim_t *sim, uint32_t host, unsigned link)
{
    return sim->is_cut && (link == 0) && (host < sim->options.attached);
}

static void scale_sim_count(scale_sim_t *sim, scale_message_t message, ucs_time_t time)
{
    unsigned bin;

    if (time >= sim->cut_at) {
        bin = ucs_time_to_sec(time - sim->cut_at) / SCALE_BIN;
        if (bin < sim->num_bins) {
            ++sim->sent[bin][message];
        }
    }
}

void scale_sim_send(scale_sim_t *sim, uint32_t from, uint32_t to, unsigned link,
                    scale_message_t message, uint32_t ep, uint32_t number,
                    ucs_time_t time)
{
    scale_event_t event = {
        .type    = SCALE_ARRIVAL,
        .message = message,
        .subject = to,
        .from    = ((message == SCALE_PING) || (message == SCALE_PONG) ||
                    (message == SCALE_PORTS)) ? from : ep,
        .number  = number,
        .link    = link
    };

    scale_sim_count(sim, message, time);
    if (!scale_sim_is_cut(sim, from, link) && !scale_sim_is_cut(sim, to, link)) {
        scale_sim_add(sim, time + ucs_time_from_sec(SCALE_WIRE), &event);
    }
}

/* The switch dies, or is back: ports that can see it raise an event. */
static void scale_sim_switch(scale_sim_t *sim, int is_up)
{
    uint32_t host;

    sim->is_cut = !is_up;
    for (host = 0; (host < sim->options.attached) && !sim->options.is_silent; ++host) {
        scale_host_port(sim, host, is_up);
    }
}

static void scale_sim_dispatch(scale_sim_t *sim, const scale_event_t *event)
{
    switch (event->type) {
    case SCALE_CUT:
    case SCALE_RETURN:
        scale_sim_switch(sim, event->type == SCALE_RETURN);
        break;
    case SCALE_TICK:
        scale_host_tick(sim, event->subject, event->number);
        break;
    case SCALE_STEP:
        sim->eps[event->subject].is_stepping = 0;
        scale_ep_step(sim, event->subject);
        break;
    case SCALE_ARRIVAL:
        scale_host_arrival(sim, event);
        break;
    case SCALE_HANDLED:
        scale_host_handled(sim, event);
        break;
    default:
        break;
    }
}

static int scale_sim_is_over(const scale_sim_t *sim)
{
    unsigned finished = (sim->options.outage > 0) ? sim->num_returned : sim->num_rebuilt;
    unsigned i, affected = 0;

    if (sim->now > sim->cut_at + ucs_time_from_sec(sim->options.limit)) {
        return 1;
    }

    if ((finished == 0) || (sim->now <= sim->cut_at)) {
        return 0;
    }

    for (i = 0; i < sim->options.eps; ++i) {
        affected += (sim->eps[i].epoch > 0);
    }
    return finished >= affected;
}

void scale_sim_run(scale_sim_t *sim)
{
    scale_event_t event = {};
    unsigned count      = 0;
    uint32_t i;

    sim->random   = sim->options.seed;
    sim->cut_at   = ucs_time_from_sec(1.0);
    sim->num_bins = sim->options.limit / SCALE_BIN;
    for (i = 0; i < sim->options.hosts; ++i) {
        scale_host_init(sim, i);
    }

    event.type = SCALE_CUT;
    scale_sim_add(sim, sim->cut_at, &event);
    if (sim->options.outage > 0) {
        event.type = SCALE_RETURN;
        scale_sim_add(sim, sim->cut_at + ucs_time_from_sec(sim->options.outage), &event);
    }

    while ((sim->num_events > 0) && (((++count % 4096) != 0) || !scale_sim_is_over(sim))) {
        event    = scale_sim_take(sim);
        sim->now = event.time;
        scale_sim_dispatch(sim, &event);
    }
}
