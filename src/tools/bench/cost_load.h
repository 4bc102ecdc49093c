/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The operations whose cost is counted.
 */
#ifndef COST_LOAD_H
#define COST_LOAD_H

#include "atomics_load.h"


/* Bytes of an operation */
#define COST_SIZE_MAX (1ul << 30)


typedef enum {
    COST_OP_PUT,
    COST_OP_GET,
    COST_OP_MESSAGE,
    COST_OP_IDLE,    /* A call of progress with nothing to do */
    COST_OP_ATOMIC,
    COST_OP_LAST
} cost_op_t;


typedef enum {
    COST_LAYOUT_SHORT,
    COST_LAYOUT_BCOPY,
    COST_LAYOUT_ZCOPY,
    COST_LAYOUT_LAST
} cost_layout_t;


typedef struct {
    cost_op_t     op;
    cost_layout_t layout;
    size_t        size;  /* Bytes of one operation */
    unsigned long count; /* Operations */
    const atomics_op_t *atomic; /* If it is one */
} cost_load_t;


/**
 * Parse a load, as "put:short:8:1024": operation, layout, bytes, number. An atomic is short
 * and has 8 bytes.
 *
 * @return 0, or -1 with the reason on stderr.
 */
int cost_load_parse(cost_load_t *load, const char *text);

/** Connect and warm up, once before the first load. A server that will receive no
 *  messages does not call progress. With @a await_rc the client waits until rc_varuna's
 *  endpoint uses RC. */
int cost_load_prepare(cost_uct_t *uct, int fd, int is_client, int progresses,
                      int await_rc);

/** Call progress until what connecting has left to do is done. */
int cost_load_settle(cost_uct_t *uct, int fd, int is_client, int progresses);

/**
 * Run the load as the client, in batches of operations. Each batch is complete before
 * the next one. After a batch of messages, wait for the server, so that it always has
 * buffers.
 *
 * @return 0, or -1 with the reason on stderr.
 */
int cost_load_client(cost_uct_t *uct, const cost_load_t *load, int fd);

/** Serve cost_load_client() of the other process until the load has ended. */
int cost_load_server(cost_uct_t *uct, const cost_load_t *load, int fd);

#endif
