/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of puts. Each word that a put writes identifies the put, so the first word
 * of a trace entry does. A message that was cut ("partial", and no last part) was not
 * executed, but no part of it may arrive after the put's execution on another lane.
 * On a network that does not keep the order, ft_judge_apart.c judges the executions.
 */
#include "ft_judge.h"
#include "ft_judge_apart.h"
#include "ft_quirk.h"
#include "ft_trace.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Parts of the put that have arrived on one queue pair, from the put's start */
typedef struct {
    uint32_t src_qpn;
    uint32_t length;
} ft_parts_t;

typedef struct {
    uint64_t        base;
    uint32_t        run;
    const ft_plan_t *plan;
    ft_verdict_t    *verdict;
    unsigned        executed[FT_MAX_OPS];
    ft_parts_t      parts[FT_MAX_OPS];
    int             newest;   /* Highest put that was executed */
    int             is_apart; /* The network keeps no order */
} ft_judge_t;


static void ft_judge_error(ft_verdict_t *verdict, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void ft_judge_error(ft_verdict_t *verdict, const char *format, ...)
{
    va_list ap;

    if (verdict->text[0] == '\0') {
        va_start(ap, format);
        vsnprintf(verdict->text, sizeof(verdict->text), format, ap);
        va_end(ap);
    }
}

static void ft_judge_lane(ft_verdict_t *verdict, const ft_entry_t *entry)
{
    if (verdict->qpn == 0) {
        verdict->qpn   = entry->src_qpn;
        verdict->link  = entry->link;
        verdict->is_rc = entry->is_rc;
    }
}

static void ft_judge_executed(ft_judge_t *judge, int index, uint64_t seq)
{
    ft_verdict_t *verdict = judge->verdict;

    if (++judge->executed[index] == 1) {
        ++verdict->executed;
    } else {
        ++verdict->again;
        ft_judge_error(verdict, "put %d was executed %u times (entry %" PRIu64
                       ")", index, judge->executed[index], seq);
    }

    if (index < judge->newest) {
        ++verdict->errors;
        ft_judge_error(verdict, "put %d was executed after %d (entry %" PRIu64
                       ")", index, judge->newest, seq);
    }

    judge->newest = index;
}

/* A part of a message, or all of it */
static void ft_judge_part(ft_judge_t *judge, const ft_entry_t *entry,
                          int index)
{
    const ft_op_t *op = &judge->plan->ops[index];
    ft_parts_t *parts = &judge->parts[index];
    uint32_t start    = entry->addr - judge->base - op->offset;

    if (!entry->partial && !entry->last) {
        if ((start == 0) && (entry->length == op->length)) {
            ft_judge_executed(judge, index, entry->seq);
            return;
        }
    } else if (start == 0) {
        parts->src_qpn = entry->src_qpn;
        parts->length  = entry->length;
        if (judge->executed[index] > 0) {
            /* After the put's execution: this overwrites newer data */
            ++judge->verdict->again;
            ft_judge_error(judge->verdict, "put %d was written again (entry %"
                           PRIu64 ")", index, entry->seq);
        }
        return;
    } else if ((entry->src_qpn == parts->src_qpn) &&
               (start == parts->length)) {
        parts->length += entry->length;
        if (parts->length == op->length) {
            parts->src_qpn = 0;
            ft_judge_executed(judge, index, entry->seq);
        } else if (judge->executed[index] > 0) {
            ++judge->verdict->errors;
            ft_judge_error(judge->verdict, "a part of put %d was written after"
                           " it (entry %" PRIu64 ")", index, entry->seq);
        }
        return;
    }

    ++judge->verdict->errors;
    ft_judge_error(judge->verdict, "put %d: bytes %u to %" PRIu64 " of %u were"
                   " written alone (entry %" PRIu64 ")", index, start,
                   start + entry->length, op->length, entry->seq);
}

static void ft_judge_write(ft_judge_t *judge, const ft_entry_t *entry)
{
    int index  = ft_word_index(entry->data);
    uint32_t k = ft_word_k(entry->data);
    const ft_op_t *op;

    if (entry->duplicate) {
        ++judge->verdict->duplicates;
        return;
    }

    op = &judge->plan->ops[index];
    if ((ft_word_run(entry->data) != (judge->run & 0xfffff)) || (index < 0) ||
        (index >= (int)judge->plan->num) ||
        !(ft_kinds[op->kind].flags & FT_KIND_WRITES) ||
        (entry->addr != judge->base + op->offset + (k * sizeof(uint64_t)))) {
        ++judge->verdict->errors;
        ft_judge_error(judge->verdict, "entry %" PRIu64 " is no put of this"
                       " run: 0x%" PRIx64 " at offset %" PRIu64 " (run %u, put"
                       " %d)", entry->seq, entry->data,
                       entry->addr - judge->base, ft_word_run(entry->data),
                       index);
        return;
    }

    ft_judge_lane(judge->verdict, entry);
    if (judge->is_apart) {
        ft_apart_write(index, k * sizeof(uint64_t), entry);
    } else {
        ft_judge_part(judge, entry, index);
    }
}

/* Whether a later put has written all its bytes */
static int ft_judge_is_covered(const ft_judge_t *judge, unsigned index)
{
    const ft_op_t *ops = judge->plan->ops;
    int writer         = ft_plan_writer(judge->plan, index, judge->plan->num);

    return (writer > (int)index) && (judge->executed[writer] > 0) &&
           (ops[writer].length >= ops[index].length);
}

static int ft_judge_concerns(const ft_entry_t *entry, uint64_t base,
                             uint64_t size)
{
    return (entry->host == 0) && !entry->is_quirk && (entry->addr >= base) &&
           (entry->addr < base + size);
}

void ft_judge_run(char *trace, uint64_t base, uint32_t run,
                  const ft_plan_t *plan, ft_verdict_t *verdict)
{
    ft_judge_t judge = {
        .base     = base,
        .run      = run,
        .plan     = plan,
        .verdict  = verdict,
        .newest   = -1,
        .is_apart = ft_quirk_has_no_order()
    };
    ft_entry_t entry;
    unsigned i;

    memset(verdict, 0, sizeof(*verdict));
    if (judge.is_apart) {
        ft_apart_begin(plan, trace, verdict);
    }

    while (ft_trace_next(&trace, &entry)) {
        verdict->last_seq = entry.seq;
        if (ft_judge_concerns(&entry, base, FT_AREA_SIZE)) {
            if (entry.is_write) {
                ft_judge_write(&judge, &entry);
            } else {
                ft_judge_lane(verdict, &entry);
            }
        }
    }

    if (judge.is_apart) {
        ft_apart_end();
        return;
    }

    for (i = 0; i < plan->num; ++i) {
        if (!(ft_kinds[plan->ops[i].kind].flags & FT_KIND_WRITES) ||
            (judge.executed[i] > 0)) {
            continue;
        }

        if (ft_judge_is_covered(&judge, i)) {
            ++verdict->covered;
        } else {
            ++verdict->errors;
            ft_judge_error(verdict, "put %u was never executed", i);
        }
    }
}

int ft_judge_warm(char *trace, uint64_t base, uint32_t number,
                  ft_verdict_t *verdict)
{
    int found = 0;
    ft_entry_t entry;

    memset(verdict, 0, sizeof(*verdict));
    while (ft_trace_next(&trace, &entry)) {
        verdict->last_seq = entry.seq;
        if (ft_judge_concerns(&entry, base + FT_WARM_OFFSET, FT_WARM_SIZE) &&
            (entry.data == number)) {
            verdict->qpn = 0;
            ft_judge_lane(verdict, &entry);
            found = 1;
        }
    }

    return found;
}
