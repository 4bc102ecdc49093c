/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Invariants of a store. The transactions that clients have committed, whatever their order,
 * say what the memory of each replica must be.
 */
#include "store_report.h"
#include "store_def.h"
#include "store_files.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>


typedef enum {
    STORE_MONEY,      /* Sums of payments, and balances */
    STORE_STOCK,      /* Quantities of items */
    STORE_IDS,        /* Each order once, and no gap between ids */
    STORE_LOGS,       /* Each transaction in its terminal's log */
    STORE_EQUAL,      /* Replicas have equal content */
    STORE_LOCKS,      /* Nothing is locked at the end */
    STORE_VALUES,     /* No transaction has read a value that cannot be */
    STORE_INVARIANTS
} store_invariant_t;


static const char *store_invariants[STORE_INVARIANTS] = {
    [STORE_MONEY]  = "money",
    [STORE_STOCK]  = "stock",
    [STORE_IDS]    = "ids",
    [STORE_LOGS]   = "logs",
    [STORE_EQUAL]  = "replicas",
    [STORE_LOCKS]  = "locks",
    [STORE_VALUES] = "values"
};


typedef struct {
    store_memory_t  *replicas[STORE_REPLICAS];
    store_history_t *clients[STORE_CLIENTS];
    store_memory_t  *expected;
    uint64_t        broken[STORE_INVARIANTS];   /* Records */
} store_report_t;


static void *store_report_read(const char *dir, const char *name, unsigned index,
                               size_t length)
{
    size_t found = 0;
    void *data   = store_file_read(dir, name, index, &found);

    if ((data == NULL) || (found != length)) {
        fprintf(stderr, "varuna_store: there is no %s/%s.%u of %zu bytes\n", dir, name, index,
                length);
        free(data);
        return NULL;
    }
    return data;
}

static void store_report_free(store_report_t *report)
{
    unsigned i;

    for (i = 0; i < STORE_REPLICAS; ++i) {
        free(report->replicas[i]);
    }
    for (i = 0; i < STORE_CLIENTS; ++i) {
        free(report->clients[i]);
    }
    free(report->expected);
}

static int store_report_load(store_report_t *report, const char *dir, int has_replicas)
{
    unsigned i;

    memset(report, 0, sizeof(*report));
    for (i = 0; i < STORE_CLIENTS; ++i) {
        report->clients[i] = store_report_read(dir, "history", i, sizeof(store_history_t));
        if ((report->clients[i] == NULL) || (report->clients[i]->count > STORE_COMMITS)) {
            return -1;
        }
    }

    for (i = 0; has_replicas && (i < STORE_REPLICAS); ++i) {
        report->replicas[i] = store_report_read(dir, "memory", i, sizeof(store_memory_t));
        if (report->replicas[i] == NULL) {
            return -1;
        }
    }

    report->expected = calloc(1, sizeof(*report->expected));
    return (report->expected == NULL) ? -1 : 0;
}

static void store_report_use(store_record_t *record, uint64_t amount)
{
    record->left  -= amount;
    record->used  += amount;
    record->count += 1;
}

static void store_report_order(store_report_t *report, const store_log_t *entry)
{
    store_order_t *order;
    unsigned i;

    ++report->expected->next[entry->target];
    for (i = 0; i < STORE_LINES; ++i) {
        store_report_use(&report->expected->items[entry->lines[i].item],
                         entry->lines[i].quantity);
    }

    order                    = &report->expected->orders[entry->target][entry->id - 1];
    report->broken[STORE_IDS] += (order->id != 0);   /* Another one has this id, too */
    order->id                = entry->id;
    order->owner             = entry->owner;
    memcpy(order->lines, entry->lines, sizeof(order->lines));
}

/* What the memory of a replica must be */
static void store_report_expect(store_report_t *report)
{
    uint64_t logged[STORE_CLIENTS * STORE_TERMINALS] = {};
    const store_log_t *entry;
    unsigned client, i;
    uint64_t n;

    for (i = 0; i < STORE_ITEMS; ++i) {
        report->expected->items[i].left = STORE_QUANTITY;
    }
    for (i = 0; i < STORE_CUSTOMERS; ++i) {
        report->expected->customers[i].left = STORE_BALANCE;
    }

    for (client = 0; client < STORE_CLIENTS; ++client) {
        report->broken[STORE_VALUES] += report->clients[client]->strange;
        for (n = 0; n < report->clients[client]->count; ++n) {
            entry = &report->clients[client]->commits[n].entry;
            i     = store_owner_terminal(entry->owner);
            report->expected->log[i][logged[i]++ % STORE_LOG] = *entry;
            if (entry->kind == STORE_NEW_ORDER) {
                store_report_order(report, entry);
            } else {
                report->expected->paid[store_customer_district(entry->target)] += entry->amount;
                store_report_use(&report->expected->customers[entry->target],
                                 entry->amount);
            }
        }
    }
}

/* Count the elements that differ, from "skip" bytes of each element on */
static void store_report_compare(store_report_t *report, store_invariant_t invariant,
                                 const void *one, const void *other, size_t count,
                                 size_t size, size_t skip)
{
    const char *a = one;
    const char *b = other;
    size_t i;

    for (i = 0; i < count; ++i, a += size, b += size) {
        report->broken[invariant] += (memcmp(a + skip, b + skip, size - skip) != 0);
    }
}

#define STORE_COMPARE(_report, _invariant, _one, _other, _field, _count, _skip) \
    store_report_compare(_report, _invariant, &(_one)->_field, &(_other)->_field, _count, \
                         sizeof((_one)->_field) / (_count), _skip)

/* A difference from another replica breaks the invariant that they are equal; one from what
 * is expected breaks the invariant of its field */
static void store_report_judge(store_report_t *report, const store_memory_t *memory,
                               const store_memory_t *expected, int is_replica)
{
    const size_t values = offsetof(store_record_t, left);

#define STORE_JUDGE(_invariant, _field, _count, _skip) \
    STORE_COMPARE(report, is_replica ? STORE_EQUAL : (_invariant), memory, expected, _field, \
                  _count, _skip)
    STORE_JUDGE(STORE_MONEY, paid, STORE_DISTRICTS, 0);
    STORE_JUDGE(STORE_MONEY, customers, STORE_CUSTOMERS, values);
    STORE_JUDGE(STORE_STOCK, items, STORE_ITEMS, values);
    STORE_JUDGE(STORE_IDS, next, STORE_DISTRICTS, 0);
    STORE_JUDGE(STORE_IDS, orders, STORE_DISTRICTS * STORE_ORDERS, 0);
    STORE_JUDGE(STORE_LOGS, log, STORE_CLIENTS * STORE_TERMINALS * STORE_LOG, 0);
#undef STORE_JUDGE
}

static void store_report_locks(store_report_t *report, const store_memory_t *memory)
{
    unsigned i;

    for (i = 0; i < STORE_ITEMS; ++i) {
        report->broken[STORE_LOCKS] += (memory->items[i].lock != 0);
    }
    for (i = 0; i < STORE_CUSTOMERS; ++i) {
        report->broken[STORE_LOCKS] += (memory->customers[i].lock != 0);
    }
}

static int store_report_print(const store_report_t *report)
{
    int is_broken = 0;
    unsigned i;

    for (i = 0; i < STORE_CLIENTS; ++i) {
        printf("client %u ended=%lu commits=%lu conflicts=%lu abandoned=%lu\n", i,
               report->clients[i]->ended, report->clients[i]->count,
               report->clients[i]->conflicts, report->clients[i]->abandoned);
    }

    for (i = 0; i < STORE_INVARIANTS; ++i) {
        printf("broken %s %lu\n", store_invariants[i], report->broken[i]);
        is_broken |= (report->broken[i] != 0);
    }
    return is_broken ? 3 : 0;
}

int store_report_check(const char *dir)
{
    store_report_t report;
    unsigned i;
    int ret = 1;

    if (store_report_load(&report, dir, 1) == 0) {
        store_report_expect(&report);
        for (i = 0; i < STORE_REPLICAS; ++i) {
            store_report_judge(&report, report.replicas[i], report.expected, 0);
            store_report_locks(&report, report.replicas[i]);
            if (i > 0) {
                store_report_judge(&report, report.replicas[i], report.replicas[0], 1);
            }
        }
        ret = store_report_print(&report);
    }

    store_report_free(&report);
    return ret;
}

int store_report_history(const char *dir)
{
    const store_commit_t *commit;
    store_report_t report;
    int ret = 1;
    unsigned i;
    uint64_t n;

    if (store_report_load(&report, dir, 0) == 0) {
        for (i = 0; i < STORE_CLIENTS; ++i) {
            for (n = 0; n < report.clients[i]->count; ++n) {
                commit = &report.clients[i]->commits[n];
                printf("commit %u %lu %lu\n", i, commit->end, commit->end - commit->start);
            }
        }
        ret = 0;
    }

    store_report_free(&report);
    return ret;
}

void store_report_layout(void)
{
    printf("money %zu\n", offsetof(store_memory_t, paid[7]));
    printf("balance %zu\n", offsetof(store_memory_t, customers[3].left));
    printf("stock %zu\n", offsetof(store_memory_t, items[5].used));
    printf("next %zu\n", offsetof(store_memory_t, next[1]));
    printf("order %zu\n", offsetof(store_memory_t, orders[0][2].lines));
    printf("log %zu\n", offsetof(store_memory_t, log[1][0].id));
    printf("lock %zu\n", offsetof(store_memory_t, items[5].lock));
}
