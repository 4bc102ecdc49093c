/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A replicated store: what each replica has in its memory, and what clients record of their
 * transactions. Clients access replicas only by one-sided operations.
 */
#ifndef STORE_DEF_H
#define STORE_DEF_H

#include <stdint.h>
#include <time.h>


#define STORE_REPLICAS   3     /* Number 0 is the primary, which has the locks */
#define STORE_CLIENTS    2
#define STORE_TERMINALS  8     /* Of a client; each has one transaction at a time */
#define STORE_DISTRICTS  10
#define STORE_CUSTOMERS  64
#define STORE_ITEMS      64
#define STORE_LINES      3     /* Items of an order */
#define STORE_ORDERS     8192  /* Of a district */
#define STORE_LOG        1024  /* Entries of a terminal's log, a ring */
#define STORE_COMMITS    65536 /* Of a client */

#define STORE_QUANTITY   1000000000ul /* Of each item, initially */
#define STORE_BALANCE    1000000000ul /* Of each customer, initially */


/* An item or a customer: a client that holds its lock reads and replaces the values */
typedef struct {
    uint64_t lock;       /* 0, or its owner. Of the primary only */
    uint64_t left;       /* Quantity of an item, balance of a customer */
    uint64_t used;       /* What was sold of the item, or was paid by the customer */
    uint64_t count;      /* Transactions */
} store_record_t;


typedef struct {
    uint32_t item;
    uint32_t quantity;
} store_line_t;


typedef struct {
    uint64_t     id;     /* From 1; 0: there is none */
    uint64_t     owner;  /* store_owner() of the transaction */
    store_line_t lines[STORE_LINES];
    uint64_t     reserved[3];
} store_order_t;


typedef enum {
    STORE_NEW_ORDER = 1,
    STORE_PAYMENT   = 2
} store_kind_t;


typedef struct {
    uint64_t     owner;
    uint32_t     kind;
    uint32_t     target;   /* District, or customer */
    uint64_t     id;       /* Of an order */
    uint64_t     amount;   /* Of a payment */
    store_line_t lines[STORE_LINES];
    uint64_t     reserved;
} store_log_t;


/* Memory of a replica. Clients change the first two fields by atomic operations only */
typedef struct {
    uint64_t       paid[STORE_DISTRICTS];    /* Sum of payments, of a district */
    uint64_t       next[STORE_DISTRICTS];    /* Orders of a district */
    store_record_t items[STORE_ITEMS];
    store_record_t customers[STORE_CUSTOMERS];
    store_order_t  orders[STORE_DISTRICTS][STORE_ORDERS];
    store_log_t    log[STORE_CLIENTS * STORE_TERMINALS][STORE_LOG];
} store_memory_t;


/* A committed transaction, in the file of its client */
typedef struct {
    uint64_t    start;     /* Nanoseconds since 1970 */
    uint64_t    end;
    store_log_t entry;
} store_commit_t;


typedef struct {
    uint64_t       conflicts;    /* A record was locked, so the transaction began again */
    uint64_t       abandoned;    /* Transactions, after too many conflicts */
    uint64_t       strange;      /* A value that the store cannot have */
    uint64_t       ended;        /* 1 at the orderly end */
    uint64_t       count;
    store_commit_t commits[STORE_COMMITS];
} store_history_t;


/** @return The district of a customer. */
static inline unsigned store_customer_district(unsigned customer)
{
    return customer % STORE_DISTRICTS;
}

/** @return What identifies a transaction, never 0: of a terminal (of all clients) its
 *          number, from 1. */
static inline uint64_t store_owner(unsigned terminal, uint64_t number)
{
    return ((uint64_t)(terminal + 1) << 48) | number;
}

static inline unsigned store_owner_terminal(uint64_t owner)
{
    return (owner >> 48) - 1;
}

static inline uint64_t store_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec * 1000000000ul) + now.tv_nsec;
}

#endif
