/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The judge of the trace ("trace --check"). It checks what a reliable transport promises
 * for each work request, whatever was lost on the way:
 *
 *   - it is executed once at most, as a whole and each part of it;
 *   - its parts follow each other without a gap or an overlap;
 *   - those of a queue pair are executed in the order of their posting;
 *   - what is called a duplicate was executed before: a part of a message as soon as
 *     that part was.
 *
 * Datagrams promise none of this: they are counted.
 *
 * Of parts that were placed out of order (quirk ooo) only the bytes are counted.
 *
 * Requests are identified by their number, which is unique in a fabric. If a program
 * posts the same operation twice, these are two requests; only a test of that program
 * can judge that. Called by ctl_trace.c.
 *
 * If entries are missing, requests that may have begun or been executed in the gap cannot
 * be judged: since a queue pair executes one request after the other, these are the first
 * one that it executes after the gap, and those before it.
 */

#include "ctl_trace_check.h"

#include <inttypes.h>
#include <stdlib.h>

#define CTL_CHECK_MAX_SHOWN 10          /* all are counted */
#define CTL_CHECK_QP(_id)   ((_id) >> EMU_QP_OPS_BITS)
#define CTL_CHECK_FMT       "%" PRIu64 ".%" PRIu64
#define CTL_CHECK_ARG(_id)  CTL_CHECK_QP(_id), \
                            (_id) & ((1ul << EMU_QP_OPS_BITS) - 1)

/** A work request, or (in its own table) a queue pair. */
typedef struct ctl_check_item {
    uint64_t key;         /* 0: free */
    uint64_t done;        /* bytes executed; queue pair: newest request */
    uint64_t end;         /* address after them; queue pair: first request after
                             the last gap */
    uint32_t gaps;        /* of the trace, when it was seen last */
    uint8_t  whole;
    uint8_t  unjudged;    /* counted as such */
    uint8_t  is_ooo;      /* some of its parts were placed out of order */
} ctl_check_item_t;

/** Open addressing, at most half full. */
typedef struct ctl_check_map {
    ctl_check_item_t *items;
    uint64_t         size;   /* a power of two */
    uint64_t         count;
} ctl_check_map_t;

struct ctl_check {
    ctl_check_map_t ops;
    ctl_check_map_t qps;
    uint64_t        entries;
    uint64_t        whole;
    uint64_t        duplicates;
    uint64_t        acks_lost;
    uint64_t        errors;
    uint64_t        unjudged;    /* requests */
    uint64_t        missing;     /* entries */
    uint32_t        gaps;
    int             lost;        /* some are missing although none was to be dropped */
    int             no_memory;
};


static ctl_check_item_t *ctl_check_slot(const ctl_check_map_t *map,
                                        uint64_t key)
{
    uint64_t i = (key * 0x9e3779b97f4a7c15ul) >> 20;

    for (i &= map->size - 1; (map->items[i].key != 0) &&
                             (map->items[i].key != key);
         i = (i + 1) & (map->size - 1)) {
    }

    return &map->items[i];
}

static int ctl_check_grow(ctl_check_map_t *map)
{
    ctl_check_map_t bigger = {.size = map->size ? map->size * 2 : 1024};
    uint64_t i;

    bigger.items = calloc(bigger.size, sizeof(*bigger.items));
    if (bigger.items == NULL) {
        return -1;
    }

    for (i = 0; i < map->size; ++i) {
        if (map->items[i].key != 0) {
            *ctl_check_slot(&bigger, map->items[i].key) = map->items[i];
        }
    }

    bigger.count = map->count;
    free(map->items);
    *map = bigger;
    return 0;
}

/* @return The item of a key, made if there was none; NULL without memory */
static ctl_check_item_t *ctl_check_get(ctl_check_map_t *map, uint64_t key)
{
    ctl_check_item_t *item;

    if ((map->count * 2 >= map->size) && ctl_check_grow(map)) {
        return NULL;
    }

    item = ctl_check_slot(map, key);
    if (item->key == 0) {
        item->key = key;
        ++map->count;
    }

    return item;
}

static void ctl_check_error(ctl_check_t *check, const emu_trace_entry_t *entry,
                            const char *what)
{
    if (++check->errors <= CTL_CHECK_MAX_SHOWN) {
        ctl_fail("entry %" PRIu64 ": request " CTL_CHECK_FMT " (%s, %u bytes,"
                 " queue pair 0x%06x) %s", entry->seq, CTL_CHECK_ARG(entry->id),
                 emu_trace_op_names[entry->op % EMU_TRACE_LAST], entry->length,
                 entry->src_qpn, what);
    }
}

/* A finding about a request may be due to missing entries */
static void ctl_check_unjudged(ctl_check_t *check, ctl_check_item_t *op)
{
    check->unjudged += !op->unjudged;
    op->unjudged     = 1;
}

/* @return May an earlier entry of the request be missing? */
static int ctl_check_may_miss(const ctl_check_t *check,
                              const ctl_check_item_t *qp, uint64_t id)
{
    return (check->gaps > 0) && ((qp->gaps != check->gaps) || (id <= qp->end));
}

static void ctl_check_order(ctl_check_t *check, ctl_check_item_t *qp,
                            const emu_trace_entry_t *entry)
{
    if (entry->id >= qp->done) {
        qp->done = entry->id;
    } else if (!(entry->flags & EMU_TRACE_FLAG_OOO)) {
        ctl_check_error(check, entry, "was executed after a later one of its"
                        " queue pair");
    }
}

/* A part of a request whose parts may come in any order: they are counted. A
 * queue pair's next request is in order again only when all have come. */
static void ctl_check_ooo_part(ctl_check_t *check, ctl_check_item_t *op,
                               const emu_trace_entry_t *entry, int may_miss)
{
    int is_atomic  = (entry->op == EMU_TRACE_CAS) ||
                     (entry->op == EMU_TRACE_FAA);
    uint64_t total = is_atomic ? entry->length : entry->arg[1];

    op->is_ooo = 1;
    op->done  += entry->length;
    if (may_miss || op->unjudged) {
        ctl_check_unjudged(check, op);
    } else if (op->done > total) {
        ctl_check_error(check, entry, "had a part executed again");
    }

    op->whole     = (op->done >= total);
    check->whole += op->whole;
}

/* The entry is one of several parts, the last or the only one */
static void ctl_check_part(ctl_check_t *check, ctl_check_item_t *op,
                           const emu_trace_entry_t *entry, int may_miss)
{
    if ((op->done == 0) && (entry->flags & EMU_TRACE_FLAG_LAST)) {
        if (may_miss) {
            ctl_check_unjudged(check, op);
        } else {
            ctl_check_error(check, entry, "was ended without its beginning");
        }
    } else if ((op->done != 0) && (op->gaps != check->gaps)) {
        ctl_check_unjudged(check, op);
    } else if ((op->done != 0) && (entry->addr != 0) &&
               (entry->addr < op->end)) {
        ctl_check_error(check, entry, "had a part executed again");
    } else if ((op->done != 0) && (entry->addr > op->end)) {
        ctl_check_error(check, entry, "has a gap");
    }

    op->gaps  = check->gaps;
    op->done += entry->length;
    op->end   = entry->addr + entry->length;
}

static void ctl_check_executed(ctl_check_t *check, ctl_check_item_t *op,
                               ctl_check_item_t *qp,
                               const emu_trace_entry_t *entry)
{
    int has_parts = (entry->flags & (EMU_TRACE_FLAG_PARTIAL |
                                     EMU_TRACE_FLAG_LAST));
    int may_miss;

    if (op->whole) {
        ctl_check_error(check, entry, "was executed again");
        return;
    }

    if (qp->gaps != check->gaps) {
        qp->gaps = check->gaps;
        qp->end  = entry->id;
    }

    may_miss = ctl_check_may_miss(check, qp, entry->id);
    if (op->is_ooo || (entry->flags & EMU_TRACE_FLAG_OOO)) {
        ctl_check_ooo_part(check, op, entry, may_miss);
        ctl_check_order(check, qp, entry);
        return;
    }

    ctl_check_part(check, op, entry, may_miss);
    op->whole = !(entry->flags & EMU_TRACE_FLAG_PARTIAL);
    check->whole += op->whole;
    if (op->whole && has_parts && (op->done != entry->arg[1]) &&
        !op->unjudged) {
        if (may_miss) {
            ctl_check_unjudged(check, op);
        } else {
            ctl_check_error(check, entry, "was not executed with all its bytes");
        }
    }

    ctl_check_order(check, qp, entry);
}

/* Whether a part of a message that has not ended was executed. Where packets take time
 * a part is acknowledged by itself, and comes again if that is lost. */
static int ctl_check_has_part(const ctl_check_item_t *op,
                              const emu_trace_entry_t *entry)
{
    return (op->done > 0) &&
           (op->is_ooo || (entry->addr == 0) ||
            (entry->addr + entry->length <= op->end));
}

static void ctl_check_duplicate(ctl_check_t *check, ctl_check_item_t *op,
                                const ctl_check_item_t *qp,
                                const emu_trace_entry_t *entry)
{
    ++check->duplicates;
    if (op->whole || ((entry->flags & EMU_TRACE_FLAG_PARTIAL) &&
                      ctl_check_has_part(op, entry))) {
        return;
    }

    if (ctl_check_may_miss(check, qp, entry->id)) {
        ctl_check_unjudged(check, op);
    } else {
        ctl_check_error(check, entry, "is called a duplicate and was never"
                        " executed");
    }
}

ctl_check_t *ctl_check_create(void)
{
    return calloc(1, sizeof(ctl_check_t));
}

void ctl_check_entry(ctl_check_t *check, const emu_trace_entry_t *entry)
{
    ctl_check_item_t *op, *qp;

    ++check->entries;
    if (entry->op == EMU_TRACE_QUIRK) {
        return; /* nothing was executed */
    }

    op                = ctl_check_get(&check->ops, entry->id);
    qp                = ctl_check_get(&check->qps, CTL_CHECK_QP(entry->id));
    check->acks_lost += (entry->ack == EMU_TRACE_ACK_LOST);
    if ((op == NULL) || (qp == NULL)) {
        check->no_memory = 1;
    } else if (entry->qp_type == EMU_QPT_UD) {
        check->whole += !op->whole;
        op->whole     = 1;
    } else if (entry->flags & EMU_TRACE_FLAG_DUP) {
        ctl_check_duplicate(check, op, qp, entry);
    } else {
        ctl_check_executed(check, op, qp, entry);
    }
}

void ctl_check_lost(ctl_check_t *check, uint64_t num)
{
    ctl_check_left_out(check, num);
    check->lost = 1;
}

void ctl_check_left_out(ctl_check_t *check, uint64_t num)
{
    check->missing += num;
    ++check->gaps;
}

/* How much of it could be judged */
static void ctl_check_tell_missing(const ctl_check_t *check)
{
    if (check->missing == 0) {
        return;
    }

    printf("%" PRIu64 " entries are missing and not judged; because of them %"
           PRIu64 " of the requests could not be judged as a whole\n",
           check->missing, check->unjudged);
}

int ctl_check_finish(ctl_check_t *check, int json)
{
    const char *format = json ?
            "{\"entries\":%" PRIu64 ",\"requests\":%" PRIu64 ",\"whole\":%"
            PRIu64 ",\"duplicates\":%" PRIu64 ",\"acks_lost\":%" PRIu64
            ",\"errors\":%" PRIu64 ",\"missing\":%" PRIu64
            ",\"unjudged\":%" PRIu64 "}\n" :
            "%" PRIu64 " entries: %" PRIu64 " requests, %" PRIu64 " executed as"
            " a whole, %" PRIu64 " duplicates suppressed, %" PRIu64 " answers"
            " lost, %" PRIu64 " errors\n";
    int status = CTL_OK;

    printf(format, check->entries, check->ops.count, check->whole,
           check->duplicates, check->acks_lost, check->errors, check->missing,
           check->unjudged);
    if (!json) {
        ctl_check_tell_missing(check);
    }

    if (check->no_memory) {
        status = ctl_fail("out of memory");
    } else if (check->errors > 0) {
        status = CTL_FAILED;
    } else if (check->lost) {
        status = CTL_INCOMPLETE;
    }

    free(check->ops.items);
    free(check->qps.items);
    free(check);
    return status;
}
