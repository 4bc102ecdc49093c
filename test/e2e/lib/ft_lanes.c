/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Lanes of a trace, see ft_lanes.h.
 */
#include "ft_lanes.h"
#include "ft_child.h"

#include <stdlib.h>
#include <string.h>

#define FT_LANE_EARLY 64   /* PSNs that are remembered for a lane */
#define FT_PSN_MASK   0xffffff

struct ft_lane {
    int      is_known;     /* A packet came in its turn */
    uint32_t next_psn;     /* Then: the first one that was not accepted */
    uint32_t early[FT_LANE_EARLY];
    unsigned num_early;
};

/* One entry of the trace */
typedef struct {
    uint64_t qp;
    uint64_t request;
    uint64_t seq;
    uint32_t psn;
    int      is_early;
    size_t   lane;         /* Index */
} ft_packet_t;

static struct {
    ft_packet_t *packets;  /* By queue pair, request and PSN */
    size_t      num_packets, max_packets;
    ft_lane_t   *lanes;
    size_t      num_lanes;
} ft_lanes;


static void *ft_lanes_resize(void *memory, size_t count, size_t size)
{
    memory = realloc(memory, (count + 1) * size);
    if (memory == NULL) {
        ft_fatal("out of memory");
    }

    return memory;
}

static int ft_lanes_has(const ft_entry_t *entry)
{
    return !entry->is_quirk && !entry->duplicate;
}

static void ft_lanes_add(const ft_entry_t *entry)
{
    ft_packet_t *packet;

    if (ft_lanes.num_packets == ft_lanes.max_packets) {
        ft_lanes.max_packets = (2 * ft_lanes.max_packets) + 64;
        ft_lanes.packets     = ft_lanes_resize(ft_lanes.packets, ft_lanes.max_packets,
                                               sizeof(*ft_lanes.packets));
    }

    packet           = &ft_lanes.packets[ft_lanes.num_packets++];
    packet->qp       = entry->qp_id;
    packet->request  = entry->request;
    packet->seq      = entry->seq;
    packet->psn      = entry->psn;
    packet->is_early = entry->is_early;
}

static void ft_lanes_read(const char *trace, unsigned host)
{
    char *copy = strdup(trace);
    char *text = copy;
    ft_entry_t entry;

    if (copy == NULL) {
        ft_fatal("out of memory");
    }

    while (ft_trace_next(&text, &entry)) {
        if ((entry.host == host) && ft_lanes_has(&entry)) {
            ft_lanes_add(&entry);
        }
    }

    free(copy);
}

/* In the order in which they were posted */
static int ft_lanes_compare(const void *a, const void *b)
{
    const ft_packet_t *p1 = a, *p2 = b;

    if (p1->qp != p2->qp) {
        return (p1->qp < p2->qp) ? -1 : 1;
    } else if (p1->request != p2->request) {
        return (p1->request < p2->request) ? -1 : 1;
    }

    return ft_psn_diff(p1->psn, p2->psn);
}

static int ft_lanes_compare_seq(const void *a, const void *b)
{
    const ft_packet_t *p1 = *(const ft_packet_t *const*)a;
    const ft_packet_t *p2 = *(const ft_packet_t *const*)b;

    return (p1->seq < p2->seq) ? -1 : (p1->seq > p2->seq);
}

/* Whether the queue pair was reset in between, so that PSNs do not advance */
static int ft_lanes_is_reset(const ft_packet_t *last, const ft_packet_t *packet)
{
    return (packet->request != last->request) &&
           (ft_psn_diff(packet->psn, last->psn) <= 0);
}

static void ft_lanes_divide(void)
{
    ft_packet_t *packet, *last = NULL;
    size_t i;

    qsort(ft_lanes.packets, ft_lanes.num_packets, sizeof(*ft_lanes.packets),
          ft_lanes_compare);
    ft_lanes.num_lanes = 0;
    for (i = 0; i < ft_lanes.num_packets; ++i, last = packet) {
        packet = &ft_lanes.packets[i];
        if ((last == NULL) || (packet->qp != last->qp) ||
            ft_lanes_is_reset(last, packet)) {
            ++ft_lanes.num_lanes;
        }

        packet->lane = ft_lanes.num_lanes - 1;
    }

    ft_lanes.lanes = ft_lanes_resize(ft_lanes.lanes, ft_lanes.num_lanes,
                                     sizeof(*ft_lanes.lanes));
    memset(ft_lanes.lanes, 0, ft_lanes.num_lanes * sizeof(*ft_lanes.lanes));
}

/* Accept packets that came early, as the responder does */
static void ft_lane_absorb(ft_lane_t *lane)
{
    unsigned i = 0;

    while (i < lane->num_early) {
        if (ft_psn_diff(lane->early[i], lane->next_psn) > 0) {
            ++i;
            continue;
        }

        if (lane->early[i] == lane->next_psn) {
            lane->next_psn = (lane->next_psn + 1) & FT_PSN_MASK;
        }

        lane->early[i] = lane->early[--lane->num_early];
        i              = 0;
    }
}

static void ft_lane_receive(ft_lane_t *lane, const ft_packet_t *packet)
{
    if (!packet->is_early) {
        lane->is_known = 1;
        lane->next_psn = (packet->psn + 1) & FT_PSN_MASK;
    } else if (lane->num_early < FT_LANE_EARLY) {
        lane->early[lane->num_early++] = packet->psn;
    }

    if (lane->is_known) {
        ft_lane_absorb(lane);
    }
}

/* All lanes receive their packets in the order of the trace */
static void ft_lanes_receive(void)
{
    ft_packet_t **order = ft_lanes_resize(NULL, ft_lanes.num_packets, sizeof(*order));
    size_t i;

    for (i = 0; i < ft_lanes.num_packets; ++i) {
        order[i] = &ft_lanes.packets[i];
    }

    qsort(order, ft_lanes.num_packets, sizeof(*order), ft_lanes_compare_seq);
    for (i = 0; i < ft_lanes.num_packets; ++i) {
        ft_lane_receive(&ft_lanes.lanes[order[i]->lane], order[i]);
    }

    free(order);
}

void ft_lanes_learn(const char *trace, unsigned host)
{
    ft_lanes.num_packets = 0;
    ft_lanes_read(trace, host);
    ft_lanes_divide();
    ft_lanes_receive();
}

void ft_lanes_forget(void)
{
    free(ft_lanes.packets);
    free(ft_lanes.lanes);
    memset(&ft_lanes, 0, sizeof(ft_lanes));
}

const ft_lane_t *ft_lanes_find(const ft_entry_t *entry)
{
    const ft_packet_t key = {.qp = entry->qp_id, .request = entry->request,
                             .psn = entry->psn};
    const ft_packet_t *found;

    found = ft_lanes_has(entry) && (ft_lanes.num_packets > 0) ?
            bsearch(&key, ft_lanes.packets, ft_lanes.num_packets, sizeof(key),
                    ft_lanes_compare) : NULL;
    return (found == NULL) ? NULL : &ft_lanes.lanes[found->lane];
}

int ft_lane_has_accepted(const ft_lane_t *lane, uint32_t psn)
{
    return lane->is_known && (ft_psn_diff(psn, lane->next_psn) < 0);
}
