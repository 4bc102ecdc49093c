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
#include "ft_driver.h"
#include "ft_faults.h"
#include "ft_judge.h"

#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_MAX_EVENTS  2000  /* A plan cannot have more: the rule is wrong */
#define FT_WARM_TRIES  400
#define FT_STEP_TIME   60    /* Seconds for an answer: a job ends runs itself */
#define FT_HEAL_TIME   0.4   /* No link is left? Then they return so late */
#define FT_LATE_TIME   0.05
#define FT_STEP_RUNS   40    /* Until a step of the recovery has come */
#define FT_STEP_TRIES  6     /* The link that took over was another one */
#define FT_CLIENT      1     /* Host */
#define FT_SERVER      0
typedef struct {
    /* Options */
    ft_driver_t driver;
    const char  *plans;      /* Comma-separated, or NULL: all */
    const char  *faults;
    unsigned    phases;
    unsigned    first;       /* Event */
    unsigned    last;
    const char  *seconds;    /* Second faults, or NULL: none */
    unsigned    second_first;
    unsigned    second_last;
    const char  *steps;      /* Of these, or NULL: any event */
    unsigned    stride;
    unsigned    links;
    double      run_time;    /* Seconds for a run */
    double      sleep;       /* Seconds: of the server, in each run; or 0 */
    double      budget;      /* Seconds; 0: no limit */
    int         verbose;
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
    double      start;
    /* Results */
    unsigned    points;      /* Faults that fired */
    unsigned    runs;
    unsigned    series;
    unsigned    cut;         /* Series which the time limit ended */
    unsigned    waited;      /* Runs which went on when the links returned */
    unsigned    switches;
    unsigned    ambiguous;
    unsigned    again;       /* Puts executed twice, explained by these */
    unsigned    failures;
} ft_sweep_t;


/* --- Set-up --- */

static void ft_sweep_make_memory(ft_sweep_t *sweep)
{
    int fd;

    snprintf(sweep->memory, sizeof(sweep->memory), "ft_memory.%d", getpid());
    fd = open(sweep->memory, O_RDWR | O_CREAT | O_EXCL, 0600);
    if ((fd < 0) || (ftruncate(fd, sizeof(ft_shared_t)) != 0)) {
        ft_fatal("cannot make %s", sweep->memory);
    }

    close(fd);
}

/* An answer, which has to be "ok" unless @a fail_ok. @return whether it is */
static int ft_sweep_ok(ft_sweep_t *sweep, ft_child_t *child, int fail_ok)
{
    const char *answer = ft_child_answer(child, FT_STEP_TIME);

    if ((answer != NULL) && !strncmp(answer, "ok", 2)) {
        return 1;
    }

    if ((answer == NULL) || !fail_ok || strncmp(answer, "fail", 4)) {
        ft_driver_fatal(&sweep->driver, "the %s %s", child->name,
                        (answer == NULL) ? "does not answer or has ended" :
                        answer);
    }

    return 0;
}

/* Make a fabric, start both, and let the client connect */
static void ft_sweep_up(ft_sweep_t *sweep)
{
    char text[FT_ANSWER_MAX];
    const char *answer;

    ft_driver_up(&sweep->driver, 2, sweep->links, "--trace 65536");
    ft_driver_start_job(&sweep->driver, &sweep->server, "server", FT_SERVER,
                        sweep->memory);
    answer = ft_child_answer(&sweep->server, FT_STEP_TIME);
    if ((answer == NULL) || (sscanf(answer, "address 0x%" SCNx64,
                                    &sweep->base) != 1)) {
        ft_driver_fatal(&sweep->driver, "the server did not start");
    }

    snprintf(text, sizeof(text), "%s", answer + strlen("address"));
    ft_driver_start_job(&sweep->driver, &sweep->client, "client", FT_CLIENT,
                        sweep->memory);
    answer = ft_child_answer(&sweep->client, FT_STEP_TIME);
    if ((answer == NULL) || strncmp(answer, "ready", 5)) {
        ft_driver_fatal(&sweep->driver, "the client did not start");
    }

    ft_child_send(&sweep->client, "connect%s", text);
    ft_sweep_ok(sweep, &sweep->client, 0);
    ft_child_send(&sweep->client, "timeout %f", sweep->run_time);
    ft_sweep_ok(sweep, &sweep->client, 0);
    ft_child_send(&sweep->client, "open");
    ft_sweep_ok(sweep, &sweep->client, 0);
}

static void ft_sweep_down(ft_sweep_t *sweep)
{
    if (ft_child_stop(&sweep->client) != 0) {
        printf("FAILED: the client did not end well\n");
        ++sweep->failures;
    }

    if (ft_child_stop(&sweep->server) != 0) {
        printf("FAILED: the server did not end well\n");
        ++sweep->failures;
    }

    ft_fabric_down(&sweep->driver.fabric);
}

/* --- One run --- */

static char *ft_sweep_trace(ft_sweep_t *sweep)
{
    return ft_fabric_run(&sweep->driver.fabric, "trace", "--json --from %"
                         PRIu64, sweep->seq + 1);
}

static void ft_sweep_links_up(ft_sweep_t *sweep)
{
    const ft_fabric_t *fabric = &sweep->driver.fabric;
    unsigned link;

    for (link = 0; link < sweep->links; ++link) {
        ft_fabric_do(fabric, "link", "%u:%u up", FT_SERVER, link);
        ft_fabric_do(fabric, "link", "%u:%u up", FT_CLIENT, link);
    }
}

/* A rule may have fired behind the end of its run */
static int ft_sweep_is_nic_dead(ft_sweep_t *sweep)
{
    char *text;
    int found;

    if (!sweep->may_kill) {
        return 0;
    }

    text  = ft_fabric_run(&sweep->driver.fabric, "status", "%s", "");
    found = (strstr(text, " dead ") != NULL);
    free(text);
    sweep->may_kill = 0;
    return found;
}

/* New processes on a new fabric. What is left of dead NICs must not keep the old ones
 * from ending well. */
static void ft_sweep_revive(ft_sweep_t *sweep)
{
    ft_sweep_down(sweep);
    ft_sweep_up(sweep);
    sweep->nics_bad = 0;
    sweep->seq      = 0;
}

static void ft_sweep_heal(ft_sweep_t *sweep)
{
    ft_fabric_do(&sweep->driver.fabric, "fault", "clear");
    if (sweep->links_bad) {
        ft_sweep_links_up(sweep);
        sweep->links_bad = 0;
    }

    if (sweep->nics_bad || ft_sweep_is_nic_dead(sweep)) {
        ft_sweep_revive(sweep);
    }
}

/* Put a word and look which lane it took */
static int ft_sweep_warm_once(ft_sweep_t *sweep, ft_verdict_t *verdict)
{
    static uint32_t number;
    char *trace;
    int found;

    ft_child_send(&sweep->client, "warm %u", ++number);
    if (!ft_sweep_ok(sweep, &sweep->client, 1)) {
        return 0;
    }

    trace = ft_sweep_trace(sweep);
    found = ft_judge_warm(trace, sweep->base, number, verdict);
    free(trace);
    if (verdict->last_seq != 0) {
        sweep->seq = verdict->last_seq;
    }

    return found;
}

/* Get the lane that the fault is for. @return whether there is one */
static int ft_sweep_warm(ft_sweep_t *sweep, unsigned phase,
                         ft_verdict_t *verdict)
{
    unsigned i;

    if (phase == FT_PHASE_DC) {
        ft_child_send(&sweep->client, "open");
        ft_sweep_ok(sweep, &sweep->client, 0);
        return ft_sweep_warm_once(sweep, verdict);
    }

    for (i = 0; i < FT_WARM_TRIES; ++i) {
        if (!ft_sweep_warm_once(sweep, verdict)) {
            return 0;
        }

        if (verdict->is_rc) {
            return 1;
        }

        ft_child_send(&sweep->client, "idle 0.005");
        ft_sweep_ok(sweep, &sweep->client, 0);
    }

    return 0;
}

static void ft_sweep_arm(ft_sweep_t *sweep, const ft_point_t *point,
                         const ft_verdict_t *lane)
{
    char rules[2 * FT_MAX_RULES][FT_RULE_MAX];
    unsigned num, i;

    num = ft_faults_format(point, lane->link, lane->qpn, rules);
    for (i = 0; i < num; ++i) {
        fprintf(sweep->driver.log, "rule: %s\n", rules[i]);
        ft_fabric_do(&sweep->driver.fabric, "fault", "add %s", rules[i]);
    }

    sweep->links_bad |= (point->fault->flags & FT_LINKS) ||
                        (point->second != NULL);
    sweep->may_kill  = (point->fault->flags & FT_KILLS) ||
                       ((point->second != NULL) &&
                        (point->second->flags & FT_KILLS));
}

static const char *ft_phase_name(unsigned phase)
{
    return (phase == FT_PHASE_RC) ? "rc" : "dc";
}

static void ft_sweep_report(ft_sweep_t *sweep, const char *plan,
                            const ft_point_t *point, const char *text)
{
    char second[96] = "";

    if (point->step != NULL) {
        snprintf(second, sizeof(second), " -d %s -S %s", point->second->name,
                 point->step->name);
    } else if (point->second != NULL) {
        snprintf(second, sizeof(second), " -d %s -m %u", point->second->name,
                 point->m);
    }

    ++sweep->failures;
    printf("FAILED: -L %u -p %s -s %s -f %s -n %u%s (run %u): %s\n",
           sweep->links, ft_phase_name(point->phase), plan,
           point->fault->name, point->n, second, sweep->run, text);
    fprintf(sweep->driver.log, "FAILED: run %u: %s\n", sweep->run, text);
    fflush(stdout);
    fflush(sweep->driver.log);
}

/* Only what rc_varuna calls ambiguous may have been executed twice, and nothing is
 * ambiguous when RC fails. (The lane that takes over may fail as well, even if nobody has
 * asked for that: the other link may still be held down after the run before.) */
static void ft_sweep_judge(ft_sweep_t *sweep, const char *name,
                           const ft_point_t *point, ft_verdict_t *verdict)
{
    int on_rc   = (point->phase == FT_PHASE_RC) && (point->second == NULL) &&
                  !(point->fault->flags & (FT_SPREADS | FT_NO_PSN));
    char *trace = ft_sweep_trace(sweep);
    ft_plan_t plan;

    ft_plan_make(name, &plan);
    ft_judge_run(trace, sweep->base, sweep->run, &plan, verdict);
    free(trace);
    if (verdict->last_seq != 0) {
        sweep->seq = verdict->last_seq;
    }

    sweep->switches  += sweep->client.switches;
    sweep->ambiguous += sweep->client.ambiguous;
    if ((verdict->errors > 0) ||
        (verdict->again > sweep->client.ambiguous - sweep->client.equal -
                          sweep->client.different)) {
        ft_sweep_report(sweep, name, point, verdict->text);
    } else {
        sweep->again += verdict->again;
    }

    if (on_rc && (sweep->client.rc_ambiguous > 0)) {
        ft_sweep_report(sweep, name, point, "ambiguous, though on RC");
    }

    if ((sweep->client.errors > 0) ||
        (!sweep->nics_bad && (sweep->client.nic_errors > 0))) {
        ft_sweep_report(sweep, name, point, "errors were logged");
    }
}

/* Let arrive what is late */
static void ft_sweep_linger(ft_sweep_t *sweep, const ft_point_t *point)
{
    if ((point->fault->flags & FT_LATE) && !sweep->stuck) {
        ft_child_send(&sweep->client, "idle %g", FT_LATE_TIME);
        ft_sweep_ok(sweep, &sweep->client, 0);
    }
}

/* The client's answer. Where no link is left, the run goes on when they return. */
static void ft_sweep_await(ft_sweep_t *sweep, const char *plan,
                           const ft_point_t *point)
{
    const char *answer = NULL;

    if (sweep->links_bad) {
        answer = ft_child_answer(&sweep->client, FT_HEAL_TIME);
        if (answer == NULL) {
            fprintf(sweep->driver.log, "links return\n");
            ft_sweep_links_up(sweep);
            ++sweep->waited;
        } else if (!strncmp(answer, "ok", 2)) {
            return;
        }
    }

    if (((answer == NULL) && !ft_sweep_ok(sweep, &sweep->client, 1)) ||
        (answer != NULL)) {
        ft_sweep_report(sweep, plan, point, sweep->client.answer + 4);
        sweep->stuck = (strstr(sweep->client.answer, "did not end") != NULL);
    }
}

/* Nothing can be said of what comes behind a run that does not end */
static void ft_sweep_end_stuck(ft_sweep_t *sweep)
{
    char *text = ft_fabric_run(&sweep->driver.fabric, "status", "--qps");

    fprintf(sweep->driver.log, "%s\n", text);
    free(text);
    ft_child_stacks(&sweep->server);
    ft_child_stacks(&sweep->client);
    fflush(sweep->driver.log);
    ft_child_kill(&sweep->client);
    ft_child_kill(&sweep->server);
    ft_fabric_down(&sweep->driver.fabric);
    unlink(sweep->memory);
    ft_fatal("a run did not end, and so no other one was begun");
}

static void ft_sweep_tell(const ft_sweep_t *sweep, const char *plan,
                          const ft_point_t *point, const uint64_t *fired,
                          const ft_verdict_t *verdict)
{
    printf("%s %s %s %u: fired %" PRIu64, ft_phase_name(point->phase), plan,
           point->fault->name, point->n, fired[0]);
    if (point->second != NULL) {
        printf(" %s %s %u: fired %" PRIu64, point->second->name,
               (point->step != NULL) ? point->step->name : "", point->m,
               fired[1]);
    }

    printf(" switches %u ambiguous %u executed %u duplicates %u\n",
           sweep->client.switches, sweep->client.ambiguous,
           verdict->executed, verdict->duplicates);
}

static void ft_sweep_reset_counts(ft_sweep_t *sweep)
{
    sweep->client.switches     = 0;
    sweep->client.ambiguous    = 0;
    sweep->client.rc_ambiguous = 0;
    sweep->client.equal        = 0;
    sweep->client.different    = 0;
    sweep->client.errors       = 0;
    sweep->client.nic_errors   = 0;
}

/* All rules of the second fault, which are behind those of the first, have fired. */
static int ft_sweep_has_fired(const ft_sweep_t *sweep, const ft_point_t *point)
{
    unsigned first = ft_fault_num_rules(point->fault);
    unsigned i;

    for (i = 0; i < ft_fault_num_rules(point->second); ++i) {
        if (ft_fabric_fired(&sweep->driver.fabric, first + i) == 0) {
            return 0;
        }
    }

    return 1;
}

/* A step may come when the run is over, as RC is connected in the background: the same
 * once more, and again, which the trace and the client judge as they do the first.
 * @return whether it came. */
static int ft_sweep_until_step(ft_sweep_t *sweep, const char *plan,
                               const ft_point_t *point)
{
    ft_verdict_t verdict;
    unsigned i;

    for (i = 0; !sweep->stuck && !ft_sweep_has_fired(sweep, point); ++i) {
        if (i == FT_STEP_RUNS) {
            return 0;
        }

        ft_sweep_judge(sweep, plan, point, &verdict);
        ft_sweep_reset_counts(sweep);
        ++sweep->run;
        ft_child_send(&sweep->client, "idle 0.01");
        ft_sweep_ok(sweep, &sweep->client, 0);
        ft_child_send(&sweep->client, "run %u %s 0", sweep->run, plan);
        ft_sweep_await(sweep, plan, point);
    }

    return 1;
}

/* One run. @return whether the (second) fault hit something; -1: it is to be
 * repeated, as the lane was another one than expected */
static int ft_sweep_run(ft_sweep_t *sweep, const char *plan,
                        const ft_point_t *point)
{
    uint64_t fired[2] = {0, 0};
    ft_verdict_t lane, verdict;
    double begin;
    int hit, came;

    ft_sweep_heal(sweep);
    if (!ft_sweep_warm(sweep, point->phase, &lane)) {
        ft_sweep_report(sweep, plan, point, "no lane of this kind");
        ft_sweep_end_stuck(sweep);
    }

    ++sweep->runs;
    ++sweep->run;
    fprintf(sweep->driver.log, "--- run %u: %s %s %u %s %u\n", sweep->run, plan,
            point->fault->name, point->n,
            (point->second != NULL) ? point->second->name : "", point->m);
    ft_sweep_reset_counts(sweep);
    ft_sweep_arm(sweep, point, &lane);
    if (sweep->sleep > 0) {
        ft_child_send(&sweep->server, "sleep %g", sweep->sleep);
        ft_sweep_ok(sweep, &sweep->server, 0);
    }

    begin = ft_clock();
    ft_child_send(&sweep->client, "run %u %s %u", sweep->run, plan,
                  ((point->phase == FT_PHASE_DC) ? 1 : 0) |
                  ((point->n % 2) ? 0 : 2));
    ft_sweep_await(sweep, plan, point);
    if ((sweep->sleep > 0) && (ft_clock() - begin > sweep->sleep * 0.9)) {
        ft_sweep_report(sweep, plan, point, "the run has waited for the server");
    }

    ft_sweep_linger(sweep, point);
    came     = (point->step == NULL) || ft_sweep_until_step(sweep, plan, point);
    fired[0] = ft_fabric_fired(&sweep->driver.fabric, 0);
    hit      = (fired[0] > 0);
    if (point->second != NULL) {
        fired[1] = ft_fabric_fired(&sweep->driver.fabric,
                                   ft_fault_num_rules(point->fault));
        hit      = (fired[1] > 0);
    }

    sweep->nics_bad = (fired[0] && (point->fault->flags & FT_KILLS)) ||
                      (fired[1] && (point->second->flags & FT_KILLS));
    ft_sweep_judge(sweep, plan, point, &verdict);
    if (sweep->verbose) {
        ft_sweep_tell(sweep, plan, point, fired, &verdict);
    }

    if (sweep->stuck) {
        ft_sweep_end_stuck(sweep);
    }

    if ((fired[0] == 0) && (verdict.qpn != 0) && (verdict.qpn != lane.qpn)) {
        return -1;
    }

    if ((fired[0] == 0) && (point->second != NULL)) {
        ft_sweep_report(sweep, plan, point, "the first fault hit nothing");
    }

    if (!came) {
        return -1;
    }

    sweep->points += hit;
    return hit;
}

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
            (ft_clock() - sweep->start > sweep->budget)) {
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
        if (!ft_is_listed(sweep->steps, point->step->name) ||
            !ft_step_has(point->step, point->second)) {
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
    ft_point_t point = {.phase = phase, .fault = fault};
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
           "  -S STEP,...  only at these steps of the recovery, each once (\"all\")\n"
           "  -t N         every N-th event\n"
           "  -T SECONDS   time limit; what it leaves out is told\n"
           "  -w SECONDS   that a run may take (20)\n"
           "  -z SECONDS   the server sleeps so long; runs must end before\n"
           "  -L LINKS     number of links (2)\n"
           "  -N NAME      first part of the fabric's name (sweep)\n"
           "  -P FILE      this plugin instead of the installed one\n"
           "  -l FILE      log of all processes (ft_sweep.log)\n"
           "  -v           a line for each run\n"
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
                       "s:f:p:n:d:m:S:t:T:w:z:L:vh")) != -1) {
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
    sweep.start = ft_clock();
    ft_sweep_plans(&sweep);
    ft_sweep_heal(&sweep);
    printf("swept: %u fault points in %u runs of %u series, %.1f s; switches %u,"
           " without any link %u, ambiguous %u, executed twice because of that"
           " %u; series cut by the time limit %u; failures %u\n",
           sweep.points, sweep.runs, sweep.series, ft_clock() - sweep.start,
           sweep.switches, sweep.waited, sweep.ambiguous, sweep.again,
           sweep.cut, sweep.failures);
    ft_sweep_down(&sweep);
    unlink(sweep.memory);
    fclose(sweep.driver.log);
    return (sweep.failures == 0) && (sweep.points > 0) ? 0 : 1;
}
