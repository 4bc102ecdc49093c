/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The client's counters and reports: progress lines, a summary for users, and one for
 * programs.
 */
#ifndef DEMO_REPORT_H
#define DEMO_REPORT_H

#include "demo_oob.h"


typedef struct {
    uint64_t posted;
    uint64_t completed;
    uint64_t bytes;
} demo_count_t;


typedef struct {
    demo_count_t ops[DEMO_OP_LAST];
    uint64_t     posted;       /* All kinds together */
    uint64_t     completed;
    uint64_t     failed;       /* Completed with an error */
    uint64_t     doubled;      /* Completed more than once */
    uint64_t     bad_contents; /* Gets which returned wrong data */
    char         error[DEMO_TEXT_LEN]; /* The first error */

    uint64_t     start;        /* Of the load */
    uint64_t     start_wall;   /* The same since 1970, as in UCX's log */
    uint64_t     busy_since;   /* Last completion, or first post after idling */
    uint64_t     pause;        /* Longest time without a completion */
    uint64_t     pause_at;     /* Start of that pause */

    uint64_t     tick;         /* Time of the last progress line */
    uint64_t     tick_completed;
    uint64_t     tick_bytes;
    uint64_t     tick_pause;   /* Longest pause since then */
} demo_stats_t;


void demo_stats_start(demo_stats_t *stats);

/** Count a post of @a length bytes. */
void demo_stats_posted(demo_stats_t *stats, demo_op_kind_t kind,
                       size_t length);

/** Count a completion, and the pause before it. */
void demo_stats_completed(demo_stats_t *stats, demo_op_kind_t kind,
                          size_t length);

/** Remember the first error. */
void demo_stats_error(demo_stats_t *stats, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

/** Print a progress line, each half second. */
void demo_report_tick(demo_stats_t *stats, uint64_t now);

/**
 * Print both summaries.
 *
 * @param [in] verdict  The server's verdict, or NULL if there is none.
 * @param [in] path     A file for the summary line, or NULL.
 *
 * @return Nonzero if there was no error.
 */
int demo_report_summary(const demo_stats_t *stats,
                        const demo_verdict_t *verdict, const char *path);

#endif
