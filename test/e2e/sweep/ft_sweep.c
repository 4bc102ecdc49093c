/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The sweep: each plan (ft_plan.c) is run with each fault at its 1st, 2nd, 3rd, ...
 * event, until a run ends untouched. The processes live on; a run takes a new
 * endpoint only where that is its point. Driver: knows the emulator's command, and
 * nothing of rc_varuna but what it logs.
 *
 *     ft_sweep [OPTIONS] PREFIX JOB      -h tells the options
 */
#include "ft_sweep.h"
#include "ft_clock.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_MAX_EVENTS  2000  /* A plan cannot have more: the rule is wrong */
#define FT_STEP_TRIES  6     /* The link that took over was another one */


/* Run with an event number that grows until nothing is hit: @a event_p is in
 * @a point */
static void ft_sweep_events(ft_sweep_t *sweep, const char *plan,
                            const ft_point_t *point, unsigned *event_p,
                            unsigned last)
{
    unsigned again = 0;
    int ret;

    ++sweep->series;
    while (*event_p <= last) {
        if ((sweep->budget > 0) &&
            (ft_now() - sweep->start > sweep->budget)) {
            ++sweep->cut;
            return;
        }

        ret = ft_sweep_run(sweep, plan, point);
        if (ret == 0) {
            return;
        } else if (ret > 0) {
            *event_p += sweep->stride;
            again     = 0;
        } else if (++again > 10) {
            ft_sweep_report(sweep, plan, point,
                            "the lane changes all the time");
            return;
        }

        if (*event_p > FT_MAX_EVENTS) {
            ft_sweep_report(sweep, plan, point, "there is no end of events");
            return;
        }
    }
}

/* Each second fault once at each step that is asked for */
static void ft_sweep_steps(ft_sweep_t *sweep, const char *plan,
                           ft_point_t *point)
{
    unsigned i, again;

    ++sweep->series;
    for (i = 0; (point->step = ft_step(i)) != NULL; ++i) {
        if (!ft_step_is_listed(point->step, sweep->steps) ||
            !ft_step_has(point)) {
            continue;
        }

        point->n = sweep->first;
        point->m = 1;
        for (again = 0; ft_sweep_run(sweep, plan, point) < 0; ++again) {
            if (again == FT_STEP_TRIES) {
                ft_sweep_report(sweep, plan, point, "the step did not come");
                break;
            }
        }
    }
}

/* One plan and one fault, at all events; or at some, and then each second fault
 * at all events */
static void ft_sweep_series(ft_sweep_t *sweep, const char *plan,
                            const ft_fault_t *fault, unsigned phase)
{
    ft_point_t point = {.plan = plan, .phase = phase, .fault = fault};
    unsigned i;

    if (sweep->seconds == NULL) {
        point.n = sweep->first;
        ft_sweep_events(sweep, plan, &point, &point.n, sweep->last);
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

        for (point.n = sweep->first; point.n <= sweep->last; ++point.n) {
            point.m = sweep->second_first;
            ft_sweep_events(sweep, plan, &point, &point.m,
                            sweep->second_last);
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
                ft_is_listed(sweep->faults, fault->name) &&
                ((sweep->faults != NULL) ||
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

    if (sweep->plans != NULL) {
        snprintf(list, sizeof(list), "%s", sweep->plans);
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
           "  PREFIX       where mlx5emu and rc_varuna_run are installed\n"
           "  JOB          path of ft_job\n"
           "  -s PLAN,...  only these plans (mixedN: batch N)\n"
           "  -f FAULT,... only these faults (\"all\": slow ones and NICs, too)\n"
           "  -p rc|dc     only this phase\n"
           "  -n N[-M]     only these events\n"
           "  -d FAULT,... a second fault (\"all\": each but kills) in recovery\n"
           "  -m N[-M]     only at these of its events\n"
           "  -S STEP,...  only at these steps, each once (\"all\": of the recovery,\n"
           "               \"return\": of a planned return to the first link)\n"
           "  -t N         every N-th event\n"
           "  -T SECONDS   time limit; what it leaves out is told\n"
           "  -w SECONDS   that a run may take (20)\n"
           "  -z SECONDS   the server sleeps so long; runs must end before\n"
           "  -L LINKS     number of links (2)\n"
           "  -N NAME      first part of the fabric's name (sweep)\n"
           "  -P FILE      this plugin instead of the installed one\n"
           "  -l FILE      log of all processes (ft_sweep.log)\n"
           "  -v           a line for each run\n"
           "  -q           no stacks of a run that does not end\n"
           "plans:");
    for (i = 0; ft_plan_name(i) != NULL; ++i) {
        printf(" %s", ft_plan_name(i));
    }

    ft_faults_print();
    exit(2);
}

static void ft_sweep_parse(ft_sweep_t *sweep, int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, FT_DRIVER_OPTIONS
                       "s:f:p:n:d:m:S:t:T:w:z:L:vqh")) != -1) {
        switch (c) {
        case 's':
            sweep->plans = optarg;
            break;
        case 'f':
            sweep->faults = optarg;
            break;
        case 'p':
            sweep->phases = strcmp(optarg, "rc") ? FT_PHASE_DC : FT_PHASE_RC;
            break;
        case 'n':
            ft_parse_range(optarg, &sweep->first, &sweep->last);
            break;
        case 'd':
            sweep->seconds = optarg;
            break;
        case 'm':
            ft_parse_range(optarg, &sweep->second_first, &sweep->second_last);
            break;
        case 'S':
            sweep->steps = optarg;
            break;
        case 't':
            sweep->stride = atoi(optarg);
            break;
        case 'T':
            sweep->budget = atof(optarg);
            break;
        case 'w':
            sweep->run_time = atof(optarg);
            break;
        case 'z':
            sweep->sleep = atof(optarg);
            break;
        case 'L':
            sweep->links = atoi(optarg);
            break;
        case 'v':
            sweep->verbose = 1;
            break;
        case 'q':
            sweep->quiet = 1;
            break;
        default:
            if (!ft_driver_option(&sweep->driver, c, optarg)) {
                ft_usage();
            }
            break;
        }
    }

    if ((sweep->stride == 0) || (sweep->first == 0) ||
        (ft_driver_open(&sweep->driver, argc, argv, optind) != 0)) {
        ft_usage();
    }
}

int main(int argc, char **argv)
{
    static ft_sweep_t sweep = {
        .phases       = FT_PHASE_RC | FT_PHASE_DC,
        .first        = 1,
        .last         = FT_MAX_EVENTS,
        .second_first = 1,
        .second_last  = FT_MAX_EVENTS,
        .stride       = 1,
        .links        = 2,
        .run_time     = 20,
        .driver       = {.name = "sweep", .log_name = "ft_sweep.log"}
    };

    ft_sweep_parse(&sweep, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_sweep_make_memory(&sweep);
    ft_sweep_up(&sweep);
    sweep.start = ft_now();
    ft_sweep_plans(&sweep);
    ft_sweep_heal(&sweep);
    printf("swept: %u fault points in %u runs of %u series, %.1f s; switches %u,"
           " without any link %u, ambiguous %u, executed twice because of that"
           " %u; series cut by the time limit %u; failures %u\n",
           sweep.points, sweep.runs, sweep.series, ft_now() - sweep.start,
           sweep.switches, sweep.waited, sweep.ambiguous, sweep.again,
           sweep.cut, sweep.failures);
    ft_sweep_down(&sweep);
    unlink(sweep.memory);
    fclose(sweep.driver.log);
    return (sweep.failures == 0) && (sweep.points > 0) ? 0 : 1;
}
