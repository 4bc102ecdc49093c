/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCP objects of both sides: a context, several workers, registered memory.
 */
#ifndef DEMO_UCP_H
#define DEMO_UCP_H

#include "demo_opts.h"

#include <ucp/api/ucp.h>


typedef struct {
    ucp_context_h context;
    ucp_worker_h  workers[DEMO_MAX_WORKERS];
    int           event_fds[DEMO_MAX_WORKERS];
    unsigned      num_workers;
    unsigned      idle;     /* Consecutive rounds without an event */
    int           wakeup;
} demo_ucp_t;


typedef struct {
    void      *address;
    size_t    length;
    ucp_mem_h memh;
} demo_mem_t;


int demo_ucp_init(demo_ucp_t *ucp, const demo_opts_t *opts);

void demo_ucp_cleanup(demo_ucp_t *ucp);

/**
 * Progress all workers once. After many rounds without an event, yield the CPU, which
 * both sides may share.
 *
 * @return Number of events.
 */
unsigned demo_ucp_progress(demo_ucp_t *ucp);

/** Allocate registered memory, filled with zeros. */
int demo_ucp_mem_alloc(demo_ucp_t *ucp, size_t length, demo_mem_t *mem_p);

void demo_ucp_mem_free(demo_ucp_t *ucp, demo_mem_t *mem);

/** Monotonic time in nanoseconds. */
uint64_t demo_now(void);

/** Nanoseconds since 1970. */
uint64_t demo_wall_now(void);

/** Print an error to standard error, with the program's name. */
void demo_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
