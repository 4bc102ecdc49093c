/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Transactions in the style of TPC-C. Each terminal has one at a time:
 *
 *   1. lock the records at the primary by compare and swap; if one is locked, unlock the
 *      others and begin again later
 *   2. read them there; an order also gets its id by fetch and add
 *   3. write a log entry to all replicas, and wait until it is there
 *   4. write the new values to all replicas, and wait until they are there
 *   5. unlock by writing 0
 */
#ifndef STORE_TX_H
#define STORE_TX_H

#include "store_ucp.h"


typedef enum {
    STORE_STEP_BEGIN,
    STORE_STEP_LOCKED,     /* The results of compare and swap are there */
    STORE_STEP_READ,
    STORE_STEP_LOGGED,
    STORE_STEP_WRITTEN,
    STORE_STEP_UNLOCKED,
    STORE_STEP_RELEASED    /* After a conflict */
} store_step_t;


typedef struct {
    store_replica_t replicas[STORE_REPLICAS];
    store_history_t *history;
    unsigned        number;                 /* Of the terminal, of all clients */
    uint64_t        random;
    store_wait_t    wait;
    store_step_t    step;
    uint64_t        transactions;           /* Begun so far */
    uint64_t        logged;                 /* Entries of its log */
    uint64_t        start;                  /* Of the present transaction */
    uint64_t        pause;                  /* When to begin again, or 0 */
    unsigned        tries;
    store_log_t     entry;
    unsigned        num_records;
    size_t          offsets[STORE_LINES];   /* Of the records */
    uint64_t        locks[STORE_LINES];     /* Results of compare and swap */
    store_record_t  records[STORE_LINES];
    uint64_t        id;                     /* Result of fetch and add */
    store_order_t   order;
} store_terminal_t;


/** Go on with the transaction, as far as nothing is pending.
 *
 * @param [in] is_last  Begin no more transactions.
 *
 * @return Whether the terminal has ended. */
int store_tx_progress(store_terminal_t *terminal, int is_last);

#endif
