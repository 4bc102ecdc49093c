/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Common code of sweeps, which repeat a run with a fault at the first, second, third,
 * ... event, until a run ends before its fault fires. Used by ft_sweep.c and
 * ft_atom_sweep.c.
 */
#ifndef FT_SERIES_H_
#define FT_SERIES_H_

typedef struct {
    /* Options */
    const char *plans;   /* Comma-separated, or NULL: all */
    const char *faults;
    unsigned   events[2]; /* From, to */
    unsigned   stride;
    double     budget;   /* Seconds; 0: no limit */
    int        verbose;
    /* State and results */
    double     start;    /* ft_now() */
    unsigned   count;    /* Series */
    unsigned   runs;
    unsigned   points;   /* Runs in which the fault fired */
    unsigned   cut;      /* Series which the time limit ended */
} ft_series_t;

#define FT_SERIES_USAGE \
    "  -s PLAN,...  only these plans\n" \
    "  -f FAULT,... only these faults\n" \
    "  -n N[-M]     only these events\n" \
    "  -t N         every N-th event\n" \
    "  -T SECONDS   time limit; the summary counts the series that it ended\n" \
    "  -v           a line for each run\n"

/* Rows of ft_option_t */
#define FT_SERIES_OPTIONS(_series) \
    {'s', FT_OPTION_TEXT, &(_series)->plans}, \
    {'f', FT_OPTION_TEXT, &(_series)->faults}, \
    {'n', FT_OPTION_RANGE, (_series)->events}, \
    {'t', FT_OPTION_UNSIGNED, &(_series)->stride}, \
    {'T', FT_OPTION_DOUBLE, &(_series)->budget}, \
    {'v', FT_OPTION_FLAG, &(_series)->verbose}

/** @return Whether the options are valid. */
int ft_series_is_valid(const ft_series_t *series);

/** @return 1 if the fault of this run fired, 0 if not, -1 to repeat the run. */
typedef int (*ft_series_func_t)(void *arg);

/** Call @a run with ascending *event_p until the fault does not fire, or up to event
 *  @a last. @a max: no run has more events.
 *  @return NULL, or what is wrong. */
const char *ft_series_run(ft_series_t *series, unsigned *event_p, unsigned last,
                          unsigned max, ft_series_func_t run, void *arg);

#endif
