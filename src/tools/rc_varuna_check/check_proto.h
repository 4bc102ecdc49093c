/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The TCP protocol of the two hosts: the server answers each request of the client. A
 * host with another byte order receives a wrong magic number.
 */
#ifndef CHECK_PROTO_H_
#define CHECK_PROTO_H_

#include <stdint.h>

#define CHECK_MAGIC     0x72637663u
#define CHECK_VERSION   2
#define CHECK_MAX_PORTS 8
#define CHECK_MAX_BODY  65536
#define CHECK_TCP_PORT  "18520"
#define CHECK_MEM_SIZE  (1u << 20) /* Of the server, per port */
#define CHECK_LOG       (CHECK_MEM_SIZE - 8192) /* Offset of the log entries */
#define CHECK_LOG_LEN   1024       /* Entries */

typedef enum check_msg {
    CHECK_MSG_HELLO,  /* check_hello_t */
    CHECK_MSG_ROWS,   /* Answer: an array of check_wire_row_t */
    CHECK_MSG_OPEN,   /* check_open_t */
    CHECK_MSG_QUERY,  /* Answer: check_psn_t */
    CHECK_MSG_FENCE,  /* The same, after the queue pair is in ERR */
    CHECK_MSG_RESET,  /* Answer: check_reply_t */
    CHECK_MSG_SCAN,   /* check_scan_t */
    CHECK_MSG_WATCH,  /* check_scan_t; the server watches until the next request */
    CHECK_MSG_SEEN,   /* Answer: check_seen_t */
    CHECK_MSG_LAST
} check_msg_t;

typedef struct check_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t length; /* Of the body */
    int32_t  error;  /* In answers: 0 or errno; then there is no body */
} check_head_t;

typedef struct check_wire_port {
    char     name[64];
    uint8_t  gid[16];
    uint16_t lid;
    uint8_t  link_layer; /* IBV_LINK_LAYER_x */
    uint8_t  mtu;        /* Of paths from it; enum ibv_mtu */
    uint8_t  is_active;
    uint8_t  flags;      /* CHECK_PORT_x */
    uint16_t pkey;       /* That UCX takes; 0: it takes none */
} check_wire_port_t;

enum {
    CHECK_PORT_DEVX   = 1, /* UCX makes queue pairs by DEVX */
    CHECK_PORT_GLOBAL = 2  /* UCX sends a GRH within the subnet, too */
};

typedef struct check_hello {
    uint32_t          num_ports;
    uint32_t          is_quick;
    check_wire_port_t ports[CHECK_MAX_PORTS];
} check_hello_t;

typedef struct check_wire_row {
    char    name[24];
    char    where[72];
    char    text[240];
    uint8_t status;
    uint8_t is_remote;
    uint8_t pad[6];
} check_wire_row_t;

typedef struct check_open {
    uint32_t port;      /* Of the server */
    uint32_t peer_port; /* Of the client */
    uint32_t qpn;
    uint32_t psn;
    uint32_t how;       /* CHECK_OPEN_x */
} check_open_t;

/* Otherwise queue pairs are made as UCX makes them */
enum {
    CHECK_OPEN_VERBS   = 1, /* By verbs */
    CHECK_OPEN_ORDERED = 2  /* By DEVX, forced to the order of the specification */
};

typedef struct check_opened {
    uint64_t addr;
    uint32_t rkey;
    uint32_t qpn;
} check_opened_t;

typedef struct check_psn {
    int32_t  verbs_error;
    int32_t  devx_error;
    uint32_t verbs;
    uint32_t devx;
    uint64_t hash;  /* Of the memory, right after ERR */
} check_psn_t;

/* Slots of size bytes, from the start of the memory. All words of slot i are base + i
 * after it was written. */
typedef struct check_scan {
    uint32_t count;
    uint32_t size;
    uint64_t base;
} check_scan_t;

typedef struct check_scanned {
    uint32_t whole;   /* Written slots */
    uint32_t prefix;  /* ... before the first one that is not written */
    uint64_t hash;    /* Of all of them */
} check_scanned_t;

typedef struct check_seen {
    uint32_t entries; /* Log entries that appeared */
    uint32_t early;   /* ... before all of their data */
} check_seen_t;

typedef struct check_reply {
    int32_t error;
    int32_t pad;
} check_reply_t;

#endif
