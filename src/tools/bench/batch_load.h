/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Batches of operations on one endpoint, as the paper's evaluation has them: a batch is
 * posted, and the next one follows when it is complete. Each operation of a batch has a
 * slot of its own, here and in the other process's memory, and the last word of a slot
 * shows which batch was the last to be executed there.
 */
#ifndef BATCH_LOAD_H
#define BATCH_LOAD_H

#include "cost_uct.h"

#include <time.h>


typedef enum {
    BATCH_PUT,
    BATCH_CAS,
    BATCH_CAS_READ,   /* One compare and swap, then three reads */
    BATCH_LAST
} batch_kind_t;


typedef struct {
    batch_kind_t kind;
    size_t       size;    /* Bytes of an operation; of a compare and swap 8 */
    unsigned     count;   /* Operations of a batch */
    int          each;    /* Whether each put has a completion, or only a batch's last */
    int          watch;   /* Whether the other process counts puts, faults_server.c */
} batch_load_t;


typedef struct batch_ep batch_ep_t;


typedef struct {
    uct_completion_t comp;
    batch_ep_t       *ep;
    uint64_t         result;
    uint64_t         start;     /* When it was posted */
} batch_op_t;


/* Called for each successful completion */
typedef void (*batch_completed_func_t)(batch_op_t *op, uint64_t now);


struct batch_ep {
    cost_uct_t             *uct;
    uct_ep_h               ep;
    const batch_load_t     *load;
    size_t                 offset;     /* Of its slots */
    unsigned               posted;     /* Operations of the present batch */
    unsigned               pending;    /* Completions that it waits for */
    uint64_t               batches;    /* Complete ones */
    uint64_t               start;      /* When the present one began */
    ucs_status_t           status;     /* Of the first operation that failed */
    unsigned long          failed;     /* Operations that ended with an error */
    unsigned long          wrong;      /* Results of compare and swap */
    batch_completed_func_t completed;  /* May be NULL */
    batch_op_t             *ops;
    uct_pending_req_t      waiting;    /* In the endpoint's queue, */
    int                    waits;      /* if this is set */
};


/** @return Nanoseconds since 1970, the clock of UCX's log. */
static inline uint64_t batch_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (now.tv_sec * 1000000000ul) + now.tv_nsec;
}

/**
 * Parse a load, as "put:4096:64": put, cas or casread, bytes, operations of a batch. With
 * ":each" each put has a completion; with ":watch" the other process counts them.
 *
 * @return 0, or -1 with the reason on stderr.
 */
int batch_load_parse(batch_load_t *load, const char *text);

/** @return Bytes of the slots of one endpoint. */
size_t batch_load_bytes(const batch_load_t *load);

/** @return What the last word of a slot contains after that many batches. */
uint64_t batch_load_value(uint64_t batches);

/** Prepare the endpoint's batches. @return 0, or -1 with the reason on stderr. */
int batch_ep_init(batch_ep_t *ep, cost_uct_t *uct, uct_ep_h uct_ep,
                  const batch_load_t *load, size_t offset);

void batch_ep_cleanup(batch_ep_t *ep);

/** Begin the next batch. The last one is complete. */
void batch_ep_start(batch_ep_t *ep);

/** Post what can be posted of the batch. The caller calls progress.
 *  @return Whether the batch is complete, or has failed. */
int batch_ep_post(batch_ep_t *ep);

#endif
