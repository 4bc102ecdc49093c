/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The plans of fault tests: named lists of operations, the contents of each, and the
 * memory that the client and the server share. Pure: the client, the server and the
 * judge compute the same.
 */
#ifndef FT_PLAN_H_
#define FT_PLAN_H_

#include <stddef.h>
#include <stdint.h>

#define FT_MAX_OPS     128
#define FT_AREA_SIZE   (256 * 1024)   /* Operations access this */
#define FT_WARM_OFFSET FT_AREA_SIZE   /* Then words that show which lane is used */
#define FT_WARM_SIZE   4096
#define FT_AM_LOG_SIZE 8192
#define FT_AM_ID       3

/* To add a kind: add it here, to ft_kinds (ft_plan.c), to ft_op_post() (ft_post.c), and to
 * a row of ft_short_plans. */
typedef enum {
    FT_PUT_SHORT,
    FT_PUT_BCOPY,
    FT_PUT_ZCOPY,
    FT_GET_BCOPY,
    FT_GET_ZCOPY,
    FT_AM_SHORT,
    FT_AM_BCOPY,
    FT_AM_ZCOPY,
    FT_FLUSH,
    FT_FENCE,
    FT_KIND_LAST
} ft_kind_t;

enum {
    FT_KIND_WRITES   = 1 << 0,  /* Changes memory: must appear in the trace once */
    FT_KIND_READS    = 1 << 1,
    FT_KIND_MESSAGE  = 1 << 2,
    FT_KIND_COMPLETES = 1 << 3  /* Has its own completion */
};

typedef struct {
    const char *name;
    unsigned   flags;
} ft_kind_info_t;

extern const ft_kind_info_t ft_kinds[FT_KIND_LAST];

typedef struct {
    ft_kind_t kind;
    uint32_t  offset;    /* In the area; local buffers have the same layout */
    uint32_t  length;    /* A multiple of 8 */
    int       value_of;  /* Of a read: index of the put that it must see, or -1 */
} ft_op_t;

typedef struct {
    unsigned num;
    ft_op_t  ops[FT_MAX_OPS];
} ft_plan_t;

/* One received message, written by the server */
typedef struct {
    uint32_t run;
    uint32_t index;
    uint32_t length;
    uint32_t good;      /* The payload is correct */
} ft_am_t;

/* The server's memory. The client maps it too, to check the effect of a flush or
 * fence. */
typedef struct {
    volatile uint32_t am_count;
    volatile uint32_t chaos_errors; /* Messages out of order, see ft_registers.c */
    volatile uint64_t chaos_next[8]; /* Next number of each client */
    uint32_t          reserved[1006];
    ft_am_t           am[FT_AM_LOG_SIZE];
    uint8_t           area[FT_AREA_SIZE + FT_WARM_SIZE];
} ft_shared_t;

/** Build the plan with this name, see ft_plan_name().
 *  @return 0, or -1 if there is no such plan. */
int ft_plan_make(const char *name, ft_plan_t *plan);

/** @return The n-th name, or NULL. */
const char *ft_plan_name(unsigned n);

/** Word @a k of the contents of operation @a index of run @a run; index -1: of the
 *  memory before the run. */
static inline uint64_t ft_word(uint32_t run, int index, uint32_t k)
{
    return ((uint64_t)(run & 0xfffff) << 44) |
           ((uint64_t)((index + 1) & 0xfff) << 32) | k;
}

static inline uint32_t ft_word_run(uint64_t word)
{
    return word >> 44;
}

static inline int ft_word_index(uint64_t word)
{
    return (int)((word >> 32) & 0xfff) - 1;
}

static inline uint32_t ft_word_k(uint64_t word)
{
    return (uint32_t)word;
}

/** Fill @a buffer with the contents of an operation. */
void ft_fill(void *buffer, uint32_t length, uint32_t run, int index);

/** @return Whether @a buffer has the contents of that operation. */
int ft_check(const void *buffer, uint32_t length, uint32_t run, int index);

/** @return The last put before operation @a end to the slot of operation @a index, or
 *  -1. */
int ft_plan_writer(const ft_plan_t *plan, unsigned index, unsigned end);

#endif
