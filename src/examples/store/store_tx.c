/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Transactions, see store_tx.h.
 */
#include "store_tx.h"

#include <stddef.h>
#include <string.h>


#define STORE_TRIES_MAX 50
#define STORE_PAUSE     4000000 /* At most, after a conflict, in nanoseconds */
#define STORE_VALUES    offsetof(store_record_t, left)
#define STORE_PRIMARY   0


static const uint64_t store_zero = 0;
static const uint64_t store_one  = 1;


static uint64_t store_random(store_terminal_t *terminal, uint64_t count)
{
    /* splitmix64 */
    uint64_t z = terminal->random += 0x9e3779b97f4a7c15ul;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
    return (z ^ (z >> 31)) % count;
}

static size_t store_item_offset(unsigned item)
{
    return offsetof(store_memory_t, items) + (item * sizeof(store_record_t));
}

static void store_tx_choose_lines(store_terminal_t *terminal)
{
    store_log_t *entry = &terminal->entry;
    unsigned first     = store_random(terminal, STORE_ITEMS);
    unsigned i;

    /* Different items, because the steps are coprime to their number or small */
    for (i = 0; i < STORE_LINES; ++i) {
        entry->lines[i].item     = (first + (i * 7)) % STORE_ITEMS;
        entry->lines[i].quantity = 1 + store_random(terminal, 10);
        terminal->offsets[i]     = store_item_offset(entry->lines[i].item);
    }
    terminal->num_records = STORE_LINES;
}

static void store_tx_choose(store_terminal_t *terminal)
{
    store_log_t *entry = &terminal->entry;

    memset(entry, 0, sizeof(*entry));
    entry->owner    = store_owner(terminal->number, ++terminal->transactions);
    entry->kind     = store_random(terminal, 2) ? STORE_NEW_ORDER : STORE_PAYMENT;
    terminal->start = store_now();
    terminal->tries = 0;
    if (entry->kind == STORE_NEW_ORDER) {
        entry->target = store_random(terminal, STORE_DISTRICTS);
        store_tx_choose_lines(terminal);
        return;
    }

    entry->target         = store_random(terminal, STORE_CUSTOMERS);
    entry->amount         = 1 + store_random(terminal, 1000);
    terminal->num_records = 1;
    terminal->offsets[0]  = offsetof(store_memory_t, customers) +
                            (entry->target * sizeof(store_record_t));
}

static void store_tx_lock(store_terminal_t *terminal)
{
    unsigned i;

    for (i = 0; i < terminal->num_records; ++i) {
        terminal->locks[i] = terminal->entry.owner;
        store_cswap(&terminal->replicas[STORE_PRIMARY], terminal->offsets[i], &store_zero,
                    &terminal->locks[i], &terminal->wait);
    }
}

/* @return Number of records that this transaction has locked */
static unsigned store_tx_num_locked(const store_terminal_t *terminal)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < terminal->num_records; ++i) {
        count += (terminal->locks[i] == 0);
    }
    return count;
}

static void store_tx_unlock(store_terminal_t *terminal)
{
    store_replica_t *primary = &terminal->replicas[STORE_PRIMARY];
    unsigned i;

    for (i = 0; i < terminal->num_records; ++i) {
        if (terminal->locks[i] == 0) {
            store_put(primary, terminal->offsets[i], &store_zero, sizeof(store_zero),
                      &terminal->wait);
        }
    }
    store_flush(primary, &terminal->wait);
}

static void store_tx_read(store_terminal_t *terminal)
{
    store_replica_t *primary = &terminal->replicas[STORE_PRIMARY];
    unsigned i;

    for (i = 0; i < terminal->num_records; ++i) {
        store_get(primary, terminal->offsets[i] + STORE_VALUES, &terminal->records[i].left,
                  sizeof(store_record_t) - STORE_VALUES, &terminal->wait);
    }

    if (terminal->entry.kind == STORE_NEW_ORDER) {
        store_add(primary, offsetof(store_memory_t, next) +
                  (terminal->entry.target * sizeof(uint64_t)), &store_one, &terminal->id,
                  &terminal->wait);
    }
}

/* Everything that was put to replicas is executed when the pending flushes are complete */
static void store_tx_flush(store_terminal_t *terminal)
{
    unsigned i;

    for (i = 0; i < STORE_REPLICAS; ++i) {
        store_flush(&terminal->replicas[i], &terminal->wait);
    }
}

static void store_tx_log(store_terminal_t *terminal)
{
    size_t offset = offsetof(store_memory_t, log) +
                    (((terminal->number * STORE_LOG) + (terminal->logged % STORE_LOG)) *
                     sizeof(store_log_t));
    unsigned i;

    ++terminal->logged;
    if (terminal->entry.kind == STORE_NEW_ORDER) {
        if (terminal->id >= STORE_ORDERS) {
            store_fatal("district %u has no room for order %lu", terminal->entry.target,
                        terminal->id);
        }
        terminal->entry.id = terminal->id + 1;
    }

    for (i = 0; i < STORE_REPLICAS; ++i) {
        store_put(&terminal->replicas[i], offset, &terminal->entry,
                  sizeof(terminal->entry), &terminal->wait);
    }
    store_tx_flush(terminal);
}

static void store_tx_compute(store_terminal_t *terminal)
{
    const store_log_t *entry = &terminal->entry;
    uint64_t amount, initial;
    store_record_t *record;
    unsigned i;

    for (i = 0; i < terminal->num_records; ++i) {
        record  = &terminal->records[i];
        amount  = (entry->kind == STORE_PAYMENT) ? entry->amount : entry->lines[i].quantity;
        initial = (entry->kind == STORE_PAYMENT) ? STORE_BALANCE : STORE_QUANTITY;
        terminal->history->strange += (record->left + record->used != initial);
        record->left               -= amount;
        record->used               += amount;
        record->count              += 1;
    }
}

static void store_tx_write_order(store_terminal_t *terminal, unsigned index)
{
    const store_log_t *entry = &terminal->entry;
    store_replica_t *replica = &terminal->replicas[index];
    store_order_t *order     = &terminal->order;

    memset(order, 0, sizeof(*order));
    order->id    = entry->id;
    order->owner = entry->owner;
    memcpy(order->lines, entry->lines, sizeof(order->lines));
    store_put(replica, offsetof(store_memory_t, orders) +
              (((entry->target * STORE_ORDERS) + terminal->id) * sizeof(*order)), order,
              sizeof(*order), &terminal->wait);
    if (index != STORE_PRIMARY) {
        store_add(replica, offsetof(store_memory_t, next) +
                  (entry->target * sizeof(uint64_t)), &store_one, NULL, &terminal->wait);
    }
}

static void store_tx_write(store_terminal_t *terminal)
{
    unsigned replica, i;

    store_tx_compute(terminal);
    for (replica = 0; replica < STORE_REPLICAS; ++replica) {
        for (i = 0; i < terminal->num_records; ++i) {
            store_put(&terminal->replicas[replica], terminal->offsets[i] + STORE_VALUES,
                      &terminal->records[i].left, sizeof(store_record_t) - STORE_VALUES,
                      &terminal->wait);
        }

        if (terminal->entry.kind == STORE_NEW_ORDER) {
            store_tx_write_order(terminal, replica);
        } else {
            store_add(&terminal->replicas[replica], offsetof(store_memory_t, paid) +
                      (store_customer_district(terminal->entry.target) *
                       sizeof(uint64_t)), &terminal->entry.amount, NULL, &terminal->wait);
        }
    }
    store_tx_flush(terminal);
}

static void store_tx_commit(store_terminal_t *terminal)
{
    store_history_t *history = terminal->history;
    store_commit_t *commit   = &history->commits[history->count];

    if (history->count == STORE_COMMITS) {
        store_fatal("there is no room for more transactions");
    }

    commit->start = terminal->start;
    commit->end   = store_now();
    commit->entry = terminal->entry;
    ++history->count;
}

/* Wait for the locks of others; after many conflicts do something else */
static store_step_t store_tx_after_conflict(store_terminal_t *terminal)
{
    ++terminal->history->conflicts;
    if (++terminal->tries >= STORE_TRIES_MAX) {
        ++terminal->history->abandoned;
        return STORE_STEP_BEGIN;
    }

    terminal->pause = store_now() + store_random(terminal, STORE_PAUSE);
    return STORE_STEP_RELEASED;
}

/* @return The next step, when what was begun here is no longer pending */
static store_step_t store_tx_step(store_terminal_t *terminal)
{
    switch (terminal->step) {
    case STORE_STEP_BEGIN:
        store_tx_choose(terminal);
        store_tx_lock(terminal);
        return STORE_STEP_LOCKED;
    case STORE_STEP_LOCKED:
        if (store_tx_num_locked(terminal) < terminal->num_records) {
            store_tx_unlock(terminal);
            return store_tx_after_conflict(terminal);
        }
        store_tx_read(terminal);
        return STORE_STEP_READ;
    case STORE_STEP_READ:
        store_tx_log(terminal);
        return STORE_STEP_LOGGED;
    case STORE_STEP_LOGGED:
        store_tx_write(terminal);
        return STORE_STEP_WRITTEN;
    case STORE_STEP_WRITTEN:
        store_tx_unlock(terminal);
        return STORE_STEP_UNLOCKED;
    case STORE_STEP_UNLOCKED:
        store_tx_commit(terminal);
        return STORE_STEP_BEGIN;
    case STORE_STEP_RELEASED:
        terminal->pause = 0;
        store_tx_lock(terminal);
        return STORE_STEP_LOCKED;
    }
    return terminal->step;
}

int store_tx_progress(store_terminal_t *terminal, int is_last)
{
    while (terminal->wait.pending == 0) {
        if ((terminal->step == STORE_STEP_BEGIN) && is_last) {
            return 1;
        }

        if ((terminal->step == STORE_STEP_RELEASED) && (store_now() < terminal->pause)) {
            return 0;
        }

        terminal->step = store_tx_step(terminal);
    }
    return 0;
}
