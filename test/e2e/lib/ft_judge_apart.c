/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of puts on a network that may place packets of one queue pair in another
 * order (quirk ooo-all). Within a queue pair, puts and their parts may arrive in any
 * order. All else is as strict as ft_judge.c:
 *
 * - Each put is executed as a whole once. A put that was placed early may be executed
 *   again on another queue pair, if a packet before it never came: the responder has not
 *   accepted it.
 * - A put is executed after a later one only on the same queue pair, or if the later one
 *   was placed early.
 */
#include "ft_judge.h"
#include "ft_judge_apart.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FT_APART_CHUNK   256  /* The smallest MTU */
#define FT_APART_CHUNKS  (FT_AREA_SIZE / FT_APART_CHUNK)
#define FT_APART_LANES   64
#define FT_APART_EARLY   64   /* PSNs that are remembered for a lane */
#define FT_PSN_MASK      0xffffff

/* What the responder's end of a queue pair has accepted */
typedef struct {
    uint32_t qpn;
    int      is_known;
    uint32_t next_psn;
    uint32_t early[FT_APART_EARLY];
    unsigned num_early;
} ft_lane_t;

/* Execution of a put on one queue pair: the first one, or the present one */
typedef struct {
    uint32_t qpn;
    uint32_t psn;        /* Its last packet */
    int      is_early;
    int      is_whole;
} ft_execution_t;

typedef struct {
    ft_execution_t first;
    ft_execution_t now;
    uint8_t        chunks[FT_APART_CHUNKS];
    unsigned       again;
} ft_apart_put_t;

static struct {
    const ft_plan_t *plan;
    ft_verdict_t    *verdict;
    ft_lane_t       lanes[FT_APART_LANES];
    unsigned        num_lanes;
    ft_apart_put_t  puts[FT_MAX_OPS];
} ft_apart;


static void ft_apart_error(unsigned *count, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void ft_apart_error(unsigned *count, const char *format, ...)
{
    ft_verdict_t *verdict = ft_apart.verdict;
    va_list ap;

    ++*count;
    if (verdict->text[0] == '\0') {
        va_start(ap, format);
        vsnprintf(verdict->text, sizeof(verdict->text), format, ap);
        va_end(ap);
    }
}

static int32_t ft_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static ft_lane_t *ft_apart_lane(uint32_t qpn)
{
    unsigned i;

    for (i = 0; i < ft_apart.num_lanes; ++i) {
        if (ft_apart.lanes[i].qpn == qpn) {
            return &ft_apart.lanes[i];
        }
    }

    if (i == FT_APART_LANES) {
        return NULL;
    }

    ++ft_apart.num_lanes;
    ft_apart.lanes[i].qpn = qpn;
    return &ft_apart.lanes[i];
}

/* Take packets that came early, as the responder does */
static void ft_apart_absorb(ft_lane_t *lane)
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

void ft_apart_packet(const ft_entry_t *entry)
{
    ft_lane_t *lane = ft_apart_lane(entry->src_qpn);

    if ((lane == NULL) || entry->is_quirk || entry->duplicate) {
        return;
    }

    if (!entry->is_early) {
        lane->is_known = 1;
        lane->next_psn = (entry->psn + 1) & FT_PSN_MASK;
    } else if (lane->num_early < FT_APART_EARLY) {
        lane->early[lane->num_early++] = entry->psn;
    }

    if (lane->is_known) {
        ft_apart_absorb(lane);
    }
}

void ft_apart_begin(const ft_plan_t *plan, ft_verdict_t *verdict)
{
    memset(&ft_apart, 0, sizeof(ft_apart));
    ft_apart.plan    = plan;
    ft_apart.verdict = verdict;
}

/* Whether the responder has certainly accepted it: all packets before it came too */
static int ft_apart_is_accepted(const ft_execution_t *execution)
{
    const ft_lane_t *lane = ft_apart_lane(execution->qpn);

    return !execution->is_early ||
           ((lane != NULL) && lane->is_known &&
            (ft_psn_diff(execution->psn, lane->next_psn) < 0));
}

/* @return Whether all of the put has arrived on this queue pair. */
static int ft_apart_add(ft_apart_put_t *put, uint32_t start, uint32_t length,
                        uint32_t total)
{
    uint32_t i;

    for (i = start / FT_APART_CHUNK;
         i < (start + length + FT_APART_CHUNK - 1) / FT_APART_CHUNK; ++i) {
        put->chunks[i] = 1;
    }

    for (i = 0; i < (total + FT_APART_CHUNK - 1) / FT_APART_CHUNK; ++i) {
        if (!put->chunks[i]) {
            return 0;
        }
    }

    return 1;
}

static void ft_apart_judge_order(int index, const ft_entry_t *entry)
{
    const ft_execution_t *later;
    unsigned i;

    for (i = index + 1; i < ft_apart.plan->num; ++i) {
        later = &ft_apart.puts[i].now;
        if (later->is_whole && (later->qpn != entry->src_qpn) && !later->is_early) {
            ft_apart_error(&ft_apart.verdict->errors, "put %d was executed after %u"
                           " (entry %" PRIu64 ")", index, i, entry->seq);
            return;
        }
    }
}

void ft_apart_write(int index, uint32_t start, const ft_entry_t *entry)
{
    ft_apart_put_t *put = &ft_apart.puts[index];
    ft_execution_t *now = &put->now;

    if (now->qpn != entry->src_qpn) {
        if (put->first.is_whole) {
            ++put->again;
        }

        memset(now, 0, sizeof(*now));
        memset(put->chunks, 0, sizeof(put->chunks));
        now->qpn = entry->src_qpn;
        now->psn = entry->psn;
    } else if (now->is_whole) {
        ft_apart_error(&ft_apart.verdict->errors, "a part of put %d was written after"
                       " it (entry %" PRIu64 ")", index, entry->seq);
        return;
    }

    now->is_early |= entry->is_early;
    if (ft_psn_diff(entry->psn, now->psn) > 0) {
        now->psn = entry->psn;
    }

    if (!ft_apart_add(put, start, entry->length, ft_apart.plan->ops[index].length)) {
        return;
    }

    now->is_whole = 1;
    ft_apart_judge_order(index, entry);
    if (!put->first.is_whole) {
        put->first = *now;
        ++ft_apart.verdict->executed;
    }
}

void ft_apart_end(void)
{
    const ft_plan_t *plan = ft_apart.plan;
    const ft_apart_put_t *put;
    unsigned i;

    for (i = 0; i < plan->num; ++i) {
        put = &ft_apart.puts[i];
        if (!(ft_kinds[plan->ops[i].kind].flags & FT_KIND_WRITES)) {
            continue;
        }

        if (!put->now.is_whole) {
            ft_apart_error(&ft_apart.verdict->errors, "put %u was %s", i,
                           put->first.is_whole ? "written again in part" :
                           "never executed");
        }

        if ((put->again > 0) && ft_apart_is_accepted(&put->first)) {
            ft_apart_error(&ft_apart.verdict->again, "put %u was executed %u times", i,
                           put->again + 1);
        }
    }
}
