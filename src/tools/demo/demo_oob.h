/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Out-of-band channel over TCP: addresses and keys before the load, totals and verdict
 * after it, and a message if a side fails. Both sides are assumed to have the same byte
 * order.
 */
#ifndef DEMO_OOB_H
#define DEMO_OOB_H

#include "demo_def.h"


#define DEMO_OOB_MAX_LENGTH (4u << 20)


typedef enum {
    DEMO_OOB_HELLO,   /* client: demo_hello_t */
    DEMO_OOB_WELCOME, /* server: demo_welcome_t, addresses, key */
    DEMO_OOB_TOTALS,  /* client: demo_totals_t for each endpoint + slots */
    DEMO_OOB_VERDICT, /* server: demo_verdict_t */
    DEMO_OOB_FAILED,  /* any: text of the reason */
    DEMO_OOB_BYE,     /* client: its endpoints are closed */
    DEMO_OOB_LAST
} demo_oob_type_t;


typedef struct {
    uint32_t magic;
    uint32_t type;
    uint64_t length;
} demo_oob_hdr_t;


typedef struct {
    uint32_t num_workers; /* Of the client */
    uint32_t num_slots;   /* The layouts must agree */
} demo_hello_t;


/* Followed by: for each worker, 8-byte length and address; then the key */
typedef struct {
    uint32_t num_workers; /* Of the server */
    uint32_t key_length;
    uint64_t base;        /* Address of the server's memory */
} demo_welcome_t;


/* Followed by one 64-bit sequence number for each slot, 0 if none */
typedef struct {
    uint64_t messages;
    uint64_t message_bytes;
} demo_totals_t;


typedef struct {
    uint64_t messages;    /* Received, with contents checked */
    uint64_t duplicates;  /* Duplicate messages */
    uint64_t missing;     /* Messages that did not arrive in time */
    uint64_t bad_contents;
    uint64_t slots;       /* Slots of memory checked */
    uint64_t bad_slots;
    char     error[DEMO_TEXT_LEN]; /* The first error */
} demo_verdict_t;


typedef struct {
    int            fd;
    demo_oob_hdr_t hdr;     /* Header of the message being received */
    size_t         got;     /* Its bytes so far, including the header */
    char           *payload;
} demo_oob_t;


/** Accept one client; @a port_file (if any) receives the port. */
int demo_oob_accept(demo_oob_t *oob, const char *port, const char *port_file);

/** Connect to the server, which may not be ready yet. */
int demo_oob_connect(demo_oob_t *oob, const char *host, const char *port);

void demo_oob_close(demo_oob_t *oob);

int demo_oob_send(demo_oob_t *oob, demo_oob_type_t type, const void *payload,
                  size_t length);

/**
 * Receive data that has arrived, without waiting.
 *
 * @param [out] type_p    Type of the message.
 * @param [out] length_p  Length of its payload, which is at oob->payload, followed by a
 *                       zero, until the next call.
 *
 * @return 1 if a message is complete, 0 if not yet, -1 if the other side has
 *         closed the connection or sent invalid data (see @a error_p).
 */
int demo_oob_poll(demo_oob_t *oob, demo_oob_type_t *type_p, size_t *length_p,
                  char error_p[DEMO_TEXT_LEN]);

#endif
