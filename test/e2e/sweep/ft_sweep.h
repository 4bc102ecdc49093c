/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The sweep: its state, and what one run of it takes (ft_sweep_run.c).
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
    unsigned    second_first;
    unsigned    second_last;
    const char  *steps;      /* Of these, or NULL: any event */
    unsigned    links;
    double      run_time;    /* Seconds for a run */
    double      sleep;       /* Seconds: of the server, in each run; or 0 */
    int         quiet;       /* That a run does not end is what is looked for */
    /* State */
    ft_child_t  server;
    ft_child_t  client;
    ft_shared_t *shared;
    char        memory[256]; /* File */
    uint64_t    base;
    uint64_t    seq;         /* Trace entries up to here are judged */
    uint32_t    run;
    int         stuck;       /* A run did not end */
    int         links_bad;   /* They are to be brought up */
    int         may_kill;    /* A rule of the last run would kill one */
    int         nics_bad;    /* Nothing can be done without new ones */
    /* Results */
    unsigned    waited;      /* Runs which went on when the links returned */
    unsigned    switches;
    unsigned    ambiguous;
    unsigned    again;       /* Puts executed twice, explained by these */
} ft_sweep_t;

/** Make the server's memory, a file. */
void ft_sweep_make_memory(ft_sweep_t *sweep);

/** Make a fabric, start both processes, and let the client connect. */
void ft_sweep_up(ft_sweep_t *sweep);

/** End them, which must end well, and the fabric. */
void ft_sweep_down(ft_sweep_t *sweep);

/** Bring back what the last run has broken. */
void ft_sweep_heal(ft_sweep_t *sweep);

/** Tell a failure, and how to repeat it. */
void ft_sweep_report(ft_sweep_t *sweep, const char *plan,
                     const ft_point_t *point, const char *text);

/** One run. @return whether the (second) fault hit something; -1: it is to be
 *  repeated, as the lane was another one than expected */
int ft_sweep_run(ft_sweep_t *sweep, const char *plan, const ft_point_t *point);

#endif
