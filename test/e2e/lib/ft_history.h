/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Check whether a history of reads and writes of registers is linearizable. Pure. All
 * writes have different values, which makes the check cheap.
 */
#ifndef FT_HISTORY_H_
#define FT_HISTORY_H_

#include <stddef.h>
#include <stdint.h>

#define FT_CHAOS_SERVERS   2
#define FT_CHAOS_CLIENTS   4    /* At most */
#define FT_CHAOS_REGISTERS 16   /* Of a server; see ft_chaos_writer() */
#define FT_CHAOS_AM_ID     4
#define FT_CHAOS_STRIDE    64   /* Between registers */

/* One operation, in a client's file */
typedef struct {
    uint8_t  write;      /* 0: read */
    uint8_t  client;
    uint8_t  server;
    uint8_t  reg;
    uint32_t again;      /* A write that was executed twice */
    uint64_t start;      /* Before it was posted, ns */
    uint64_t end;        /* After its completion */
    uint64_t value;      /* 0: the initial value */
} ft_record_t;

/** The value of the n-th write of a client. */
static inline uint64_t ft_chaos_value(unsigned client, uint64_t n)
{
    return ((uint64_t)(client + 1) << 56) | n;
}

/** @return The client that writes a register, or -1: all clients. */
static inline int ft_chaos_writer(unsigned reg, unsigned num_clients)
{
    return (reg < FT_CHAOS_REGISTERS / 2) ? (int)(reg % num_clients) : -1;
}

/** Check the history of one register, and sort the records. A write that was executed
 *  twice counts as two writes of one value, each between its start and its end.
 *  @return NULL if it is linearizable, otherwise the reason (static). */
const char *ft_history_check(ft_record_t *records, size_t num);

#endif
