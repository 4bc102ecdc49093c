/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Limits and kinds of operations that all files of the demo share.
 */
#ifndef DEMO_DEF_H
#define DEMO_DEF_H

#include <stddef.h>
#include <stdint.h>


#define DEMO_PROGRAM       "varuna_demo"
#define DEMO_MAX_EPS       64   /* Width of the endpoint field in a word */
#define DEMO_MAX_WORKERS   8    /* Of one side; 8 x 8 = DEMO_MAX_EPS */
#define DEMO_MAX_MSG       1048576
#define DEMO_AM_ID         1
#define DEMO_TEXT_LEN      256
#define DEMO_NSEC          1000000000ull

#define demo_min(_a, _b)          (((_a) < (_b)) ? (_a) : (_b))
#define demo_max(_a, _b)          (((_a) > (_b)) ? (_a) : (_b))


/**
 * The client's operations.
 */
typedef enum {
    DEMO_OP_PUT,      /* Into the next slot of a size class */
    DEMO_OP_GET,      /* From the server's constant source region */
    DEMO_OP_READBACK, /* Get of a slot right after a put to it and a fence */
    DEMO_OP_AM,       /* Active message, eager or rendezvous */
    DEMO_OP_LAST
} demo_op_kind_t;


/**
 * The header of each active message. The last one of an endpoint has no payload, and is
 * not an operation of the load.
 */
typedef struct {
    uint32_t magic;
    uint32_t ep;     /* Endpoint index */
    uint64_t seq;    /* 1, 2, 3, ... on each endpoint */
    uint64_t length; /* Of the payload */
} demo_am_hdr_t;

#define DEMO_AM_MAGIC 0x56414d31u

#endif
