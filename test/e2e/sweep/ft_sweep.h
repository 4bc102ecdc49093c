/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The state of the sweep, and one run of it (ft_sweep_run.c).
 */
#ifndef FT_SWEEP_H_
#define FT_SWEEP_H_

#include "ft_driver.h"
#include "ft_faults.h"
#include "ft_judge.h"
#include "ft_series.h"

typedef struct {
    /* Options */
    ft_driver_t driver;
    ft_series_t series;
    unsigned    phases;
    const char  *seconds;    /* Second faults, or NULL: none */
    unsigned    second_events[2]; /* From, to */
    const char  *steps;      /* ... at these steps, or NULL: any event */
    unsigned    links;
    double      run_time;    /* Seconds for a run */
    double      sleep;       /* Seconds that the server sleeps in a run */
    int         quiet;       /* Runs that do not end are expected */
    /* State */
    ft_child_t  server;
    ft_child_t  client;
    ft_shared_t *shared;
    char        memory[256]; /* File */
    uint64_t    base;
    uint64_t    seq;         /* Last trace entry that was judged */
    uint32_t    run;
    int         stuck;       /* A run did not end */
    int         links_bad;   /* Links must be brought up */
    int         may_kill;    /* A rule of the last run may kill a NIC */
    int         nics_bad;    /* NICs are dead: the next run needs a new fabric */
    /* Results */
    uint64_t    acted;       /* How often the fabrics' quirks did */
    unsigned    waited;      /* Runs that waited for the links to return */
    unsigned    switches;
    unsigned    ambiguous;
    unsigned    again;       /* Puts executed twice because they were ambiguous */
} ft_sweep_t;

/** Make the server's memory, a file. */
void ft_sweep_make_memory(ft_sweep_t *sweep);

/** Create a fabric, start both processes, and connect the client. */
void ft_sweep_up(ft_sweep_t *sweep);

/** Stop both processes, which must exit with status 0, and remove the fabric. */
void ft_sweep_down(ft_sweep_t *sweep);

/** Repair the faults of the last run. */
void ft_sweep_heal(ft_sweep_t *sweep);

/** Report a failure, and how to repeat it. */
void ft_sweep_report(ft_sweep_t *sweep, const char *plan,
                     const ft_point_t *point, const char *text);

/** One run. @return Whether the (second) fault fired; -1: repeat the run, because it
 *  used another lane than expected. */
int ft_sweep_run(ft_sweep_t *sweep, const char *plan, const ft_point_t *point);

#endif
