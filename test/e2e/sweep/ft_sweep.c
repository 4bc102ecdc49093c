/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The driver of the sweep: runs each plan (ft_plan.c) with each fault at its 1st, 2nd,
 * 3rd, ... event, until a run ends without the fault. The processes serve many runs.
 * The driver uses the command mlx5emu, and knows rc_varuna only by its log.
 *
 *     ft_sweep [OPTIONS] PREFIX JOB       -h: help
 */
#include "ft_sweep.h"
#include "ft_clock.h"
#include "ft_quirk.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_MAX_EVENTS  2000  /* A plan with more events has a wrong rule */
#define FT_ANSWER_TIME 120   /* Seconds; jobs limit their runs themselves */
#define FT_STEP_TRIES  6     /* If another link than expected took over */


typedef struct {
    ft_sweep_t       *sweep;
    const char       *plan;
    const ft_point_t *point;
} ft_sweep_point_t;

static int ft_sweep_run_point(void *arg)
{
    ft_sweep_point_t *run = arg;

    return ft_sweep_run(run->sweep, run->plan, run->point);
}

/* Run with ascending event numbers until the fault does not fire. @a event_p is in
 * @a point. */
static void ft_sweep_events(ft_sweep_t *sweep, const char *plan,
                            const ft_point_t *point, unsigned *event_p,
                            unsigned last)
{
    ft_sweep_point_t run = {sweep, plan, point};
    const char *wrong;

    wrong = ft_series_run(&sweep->series, event_p, last, FT_MAX_EVENTS,
                          ft_sweep_run_point, &run);
    if (wrong != NULL) {
        ft_sweep_report(sweep, plan, point, wrong);
    }
}

/* Each second fault once at each step of the list */
static void ft_sweep_steps(ft_sweep_t *sweep, const char *plan,
                           ft_point_t *point)
{
    unsigned i, again;

    ++sweep->series.count;
    for (i = 0; (point->step = ft_step(i)) != NULL; ++i) {
        if (!ft_step_is_listed(point->step, sweep->steps) ||
            !ft_step_has(point)) {
            continue;
        }

        point->n = sweep->series.events[0];
        point->m = 1;
        for (again = 0; ft_sweep_run(sweep, plan, point) < 0; ++again) {
            if (again == FT_STEP_TRIES) {
                ft_sweep_report(sweep, plan, point, "the step was not reached");
                break;
            }
        }
    }
}

/* One plan and one fault at all events, or at some events with each second fault at all
 * later events */
static void ft_sweep_series(ft_sweep_t *sweep, const char *plan,
                            const ft_fault_t *fault, unsigned phase)
{
    ft_point_t point = {.plan = plan, .phase = phase, .fault = fault};
    unsigned i;

    if (sweep->seconds == NULL) {
        point.n = sweep->series.events[0];
        ft_sweep_events(sweep, plan, &point, &point.n, sweep->series.events[1]);
        return;
    }

    for (i = 0; (point.second = ft_second_fault(i)) != NULL; ++i) {
        if (!ft_is_listed(sweep->seconds, point.second->name) ||
            (!strcmp(sweep->seconds, "all") &&
             (point.second->flags &
              (FT_KILLS | ((sweep->steps == NULL) ? FT_STEPS : 0))))) {
            continue;
        }

        if (sweep->steps != NULL) {
            ft_sweep_steps(sweep, plan, &point);
            continue;
        }

        for (point.n = sweep->series.events[0]; point.n <= sweep->series.events[1]; ++point.n) {
            point.m = sweep->second_events[0];
            ft_sweep_events(sweep, plan, &point, &point.m,
                            sweep->second_events[1]);
        }
    }
}

/* --- Options --- */

static void ft_sweep_plan(ft_sweep_t *sweep, const char *plan)
{
    const ft_fault_t *fault;
    unsigned phase, i;

    for (phase = FT_PHASE_RC; phase <= FT_PHASE_DC; phase <<= 1) {
        for (i = 0; (fault = ft_fault(i)) != NULL; ++i) {
            if ((sweep->phases & phase) && (fault->flags & phase) &&
                ft_fault_is_possible(fault) &&
                ft_is_listed(sweep->series.faults, fault->name) &&
                ((sweep->series.faults != NULL) ||
                 !(fault->flags & (FT_SLOW | FT_KILLS)))) {
                ft_sweep_series(sweep, plan, fault, phase);
            }
        }
    }
}

static void ft_sweep_plans(ft_sweep_t *sweep)
{
    char list[1024] = "";
    char *save, *name;
    unsigned n;

    if (sweep->series.plans != NULL) {
        snprintf(list, sizeof(list), "%s", sweep->series.plans);
    } else {
        for (n = 0; ft_plan_name(n) != NULL; ++n) {
            strcat(list, ft_plan_name(n));
            strcat(list, ",");
        }
    }

    for (name = strtok_r(list, ",", &save); name != NULL;
         name = strtok_r(NULL, ",", &save)) {
        ft_sweep_plan(sweep, name);
    }
}

static void ft_usage(void)
{
    unsigned i;

    printf("usage: ft_sweep [OPTIONS] PREFIX JOB\n"
           FT_DRIVER_USAGE("ft_job", "sweep", "ft_sweep.log")
           FT_SERIES_USAGE
           "               mixedN is batch N; faults \"all\": also slow ones and NICs\n"
           "  -p rc|dc     only this phase\n"
           "  -d FAULT,... a second fault (\"all\": all but kills) in recovery\n"
           "  -m N[-M]     only at these events of the recovery\n"
           "  -S STEP,...  only at these steps, each once (\"all\": of the recovery,\n"
           "               \"return\": of a planned return to the first link)\n"
           "  -w SECONDS   limit of a run (60)\n"
           "  -z SECONDS   the server sleeps; runs must end before it wakes, or before it\n"
           "               wakes from a longer sleep (of a minute at most)\n"
           "  -L LINKS     number of links (2)\n"
           "  -q           no stacks if a run does not end\n"
           "plans:");
    for (i = 0; ft_plan_name(i) != NULL; ++i) {
        printf(" %s", ft_plan_name(i));
    }

    ft_faults_print();
    exit(2);
}

int main(int argc, char **argv)
{
    static ft_sweep_t sweep = {
        .series        = {.events = {1, FT_MAX_EVENTS}, .stride = 1},
        .second_events = {1, FT_MAX_EVENTS},
        .links         = 2,
        .run_time      = 60,
        .driver        = {.name = "sweep", .log_name = "ft_sweep.log",
                          .answer_time = FT_ANSWER_TIME}
    };
    const char *phase = NULL;
    const ft_option_t options[] = {
        FT_SERIES_OPTIONS(&sweep.series),
        {'p', FT_OPTION_TEXT, &phase},
        {'d', FT_OPTION_TEXT, &sweep.seconds},
        {'m', FT_OPTION_RANGE, sweep.second_events},
        {'S', FT_OPTION_TEXT, &sweep.steps},
        {'w', FT_OPTION_DOUBLE, &sweep.run_time},
        {'z', FT_OPTION_DOUBLE, &sweep.sleep},
        {'L', FT_OPTION_UNSIGNED, &sweep.links},
        {'q', FT_OPTION_FLAG, &sweep.quiet},
        {0}
    };

    if ((ft_driver_parse(&sweep.driver, argc, argv, options, 0) != 0) ||
        !ft_series_is_valid(&sweep.series)) {
        ft_usage();
    }

    sweep.phases = (phase == NULL) ? (FT_PHASE_RC | FT_PHASE_DC) :
                   strcmp(phase, "rc") ? FT_PHASE_DC : FT_PHASE_RC;
    if (ft_quirk_is_on("no-mlx5dv")) {
        sweep.phases &= ~FT_PHASE_DC;
    }

    ft_sweep_make_memory(&sweep);
    ft_sweep_up(&sweep);
    sweep.series.start = ft_now();
    ft_sweep_plans(&sweep);
    ft_sweep_heal(&sweep);
    printf("swept: %u fault points in %u runs of %u series, %.1f s; switches %u,"
           " without any link %u, ambiguous %u, executed twice because of that"
           " %u; series cut by the time limit %u; failures %u\n",
           sweep.series.points, sweep.series.runs, sweep.series.count,
           ft_now() - sweep.series.start,
           sweep.switches, sweep.waited, sweep.ambiguous, sweep.again,
           sweep.series.cut, sweep.driver.failures);
    ft_sweep_down(&sweep);
    printf("quirks acted: %" PRIu64 "\n", sweep.acted);
    unlink(sweep.memory);
    if (sweep.series.points == 0) {
        ft_driver_report(&sweep.driver, "nothing was tested");
    }

    return ft_driver_close(&sweep.driver);
}
