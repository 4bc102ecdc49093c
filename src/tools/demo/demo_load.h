/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The load: operations of the client on its endpoints, their buffers, their
 * completions. Driven by demo_client.c.
 */
#ifndef DEMO_LOAD_H
#define DEMO_LOAD_H

#include "demo_layout.h"
#include "demo_report.h"
#include "demo_ucp.h"

#include <stdio.h>


typedef struct demo_op      demo_op_t;
typedef struct demo_load    demo_load_t;
typedef struct demo_load_ep demo_load_ep_t;


/* A place for an operation, reused after its completion */
struct demo_op {
    demo_op_t      *next;    /* In the free list of its endpoint and class */
    demo_load_ep_t *ep;
    char           *buffer;
    uint64_t       serial;   /* Distinguishes operations in the same place */
    uint64_t       expected; /* First word of what a get should return */
    demo_op_kind_t kind;
    unsigned       cls;
    int            posted;
    demo_am_hdr_t  hdr;
};


struct demo_load_ep {
    demo_load_t   *load;
    unsigned      index;
    ucp_worker_h  worker;
    ucp_ep_h      ep;
    ucp_rkey_h    rkey;
    uint64_t      put_seq;
    uint64_t      am_seq;
    uint64_t      am_bytes;
    demo_am_hdr_t last;   /* Of its last message */
    uint64_t      *slots; /* Sequence of the last put into each slot */
    unsigned      next_slot[DEMO_NUM_CLASSES];
    demo_op_t     *free_ops[DEMO_NUM_CLASSES];
};


struct demo_load {
    demo_load_ep_t eps[DEMO_MAX_EPS];
    unsigned       num_eps;
    char           *buffers; /* Of all operations */
    demo_op_t      *ops;
    unsigned       num_ops;
    uint64_t       base;     /* Address of the server's memory */
    uint64_t       serial;
    uint64_t       random;
    uint64_t       rate;     /* Operations per second, 0: no limit */
    uint64_t       max_ops;
    FILE           *ledger;
    demo_stats_t   stats;
};


/**
 * Allocate operations and buffers for @a load->num_eps endpoints; the caller has set
 * ucp, base, num_eps, and each endpoint's worker, ep and rkey.
 */
int demo_load_init(demo_load_t *load, const demo_opts_t *opts);

void demo_load_cleanup(demo_load_t *load);

/** Post operations on each endpoint once, within the windows and the rate. */
void demo_load_post(demo_load_t *load);

/** @return Whether the load must end after an error. */
int demo_load_failed(const demo_load_t *load);

/** @return The number of operations in flight. */
uint64_t demo_load_in_flight(const demo_load_t *load);

#endif
