/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of puts on a network that may place packets of one queue pair in another
 * order (quirk ooo-all). Within a lane (ft_lanes.h), puts and their parts may arrive in
 * any order. All else is as strict as ft_judge.c:
 *
 * - Each put is executed as a whole once. A put that was placed early may be executed
 *   again by another request, on the same queue pair after a reset or on another one,
 *   if a packet before it never came: the responder has not accepted it.
 * - A put is executed after a later one only on the same lane, or if the later one was
 *   placed early.
 * - Once a request was executed, nothing of it or of an older one of its queue pair
 *   comes.
 */
#include "ft_judge.h"
#include "ft_judge_apart.h"
#include "ft_lanes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FT_APART_CHUNK      256  /* The smallest MTU */
#define FT_APART_CHUNKS     (FT_AREA_SIZE / FT_APART_CHUNK)
#define FT_APART_EXECUTIONS 16   /* Of one put */

/* Execution of a put by one request */
typedef struct {
    const ft_lane_t *lane;
    uint64_t        qp_id;
    uint64_t        request;
    uint32_t        psn;        /* Its last packet */
    int             is_early;
    int             is_whole;
} ft_execution_t;

/* All executions except for the last one are whole */
typedef struct {
    ft_execution_t executions[FT_APART_EXECUTIONS];
    unsigned       num;
    uint8_t        chunks[FT_APART_CHUNKS];
} ft_apart_put_t;

static struct {
    const ft_plan_t *plan;
    ft_verdict_t    *verdict;
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

void ft_apart_begin(const ft_plan_t *plan, const char *trace, ft_verdict_t *verdict)
{
    memset(&ft_apart, 0, sizeof(ft_apart));
    ft_apart.plan    = plan;
    ft_apart.verdict = verdict;
    ft_lanes_learn(trace, 0);
}

static int ft_apart_is_accepted(const ft_execution_t *execution)
{
    return !execution->is_early ||
           ft_lane_has_accepted(execution->lane, execution->psn);
}

/* @return Whether all of the put has arrived by this request. */
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

/* @return The last one, or NULL. */
static ft_execution_t *ft_apart_last(ft_apart_put_t *put)
{
    return (put->num == 0) ? NULL : &put->executions[put->num - 1];
}

static void ft_apart_judge_order(int index, const ft_entry_t *entry,
                                 const ft_lane_t *lane)
{
    const ft_execution_t *later;
    unsigned i;

    for (i = index + 1; i < ft_apart.plan->num; ++i) {
        later = ft_apart_last(&ft_apart.puts[i]);
        if ((later != NULL) && later->is_whole && (later->lane != lane) &&
            !later->is_early) {
            ft_apart_error(&ft_apart.verdict->errors, "put %d was executed after %u"
                           " (entry %" PRIu64 ")", index, i, entry->seq);
            return;
        }
    }
}

/* A part of what has ended */
static int ft_apart_is_late(const ft_execution_t *last, const ft_entry_t *entry)
{
    return (last->qp_id == entry->qp_id) &&
           ((entry->request < last->request) ||
            ((entry->request == last->request) && last->is_whole));
}

/* @return The execution to which the entry belongs, or NULL after an error. */
static ft_execution_t *ft_apart_execution(int index, const ft_entry_t *entry)
{
    ft_apart_put_t *put  = &ft_apart.puts[index];
    ft_execution_t *last = ft_apart_last(put);

    if (last != NULL) {
        if (ft_apart_is_late(last, entry)) {
            ft_apart_error(&ft_apart.verdict->errors, "a part of put %d was written"
                           " after it (entry %" PRIu64 ")", index, entry->seq);
            return NULL;
        }

        if ((last->qp_id == entry->qp_id) && (last->request == entry->request)) {
            return last;
        }

        /* A request that was cut is no execution */
        put->num -= !last->is_whole;
    }

    if (put->num == FT_APART_EXECUTIONS) {
        ft_apart_error(&ft_apart.verdict->again, "put %d was executed %u times",
                       index, put->num + 1);
        return NULL;
    }

    last = &put->executions[put->num++];
    memset(last, 0, sizeof(*last));
    memset(put->chunks, 0, sizeof(put->chunks));
    last->lane    = ft_lanes_find(entry);
    last->qp_id   = entry->qp_id;
    last->request = entry->request;
    last->psn     = entry->psn;
    return last;
}

void ft_apart_write(int index, uint32_t start, const ft_entry_t *entry)
{
    ft_execution_t *now = ft_apart_execution(index, entry);
    ft_apart_put_t *put = &ft_apart.puts[index];

    if (now == NULL) {
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
    ft_apart_judge_order(index, entry, now->lane);
    ft_apart.verdict->executed += (put->num == 1);
}

/* Each execution but the last must have been in vain */
static void ft_apart_judge_again(unsigned index)
{
    const ft_apart_put_t *put = &ft_apart.puts[index];
    unsigned i;

    for (i = 0; i + 1 < put->num; ++i) {
        if (ft_apart_is_accepted(&put->executions[i])) {
            ft_apart_error(&ft_apart.verdict->again, "put %u was executed %u times",
                           index, put->num);
            return;
        }
    }
}

void ft_apart_end(void)
{
    const ft_plan_t *plan = ft_apart.plan;
    const ft_execution_t *last;
    unsigned i;

    for (i = 0; i < plan->num; ++i) {
        if (!(ft_kinds[plan->ops[i].kind].flags & FT_KIND_WRITES)) {
            continue;
        }

        last = ft_apart_last(&ft_apart.puts[i]);
        if ((last != NULL) && last->is_whole) {
            /* As it should be */
        } else if (ft_apart.puts[i].num > 1) {
            ft_apart_error(&ft_apart.verdict->errors,
                           "put %u was written again in part", i);
        } else {
            ft_apart_error(&ft_apart.verdict->errors,
                           "put %u was never executed", i);
        }

        ft_apart_judge_again(i);
    }

    ft_lanes_forget();
}
