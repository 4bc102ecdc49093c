/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One run of the sweep: find the lane, arm the fault, run the plan, judge it. Called by
 * ft_sweep.c.
 */
#include "ft_sweep.h"
#include "ft_clock.h"
#include "ft_quirk.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_WARM_TIME   60    /* Seconds; ends only a hang */
#define FT_HEAL_TIME   0.4   /* If no link is left, links return after this */
#define FT_LATE_TIME   0.05
#define FT_STEP_RUNS   40    /* Maximum runs until a step of the recovery */
/* Seconds between them: RC is connected in the background, which needs a CPU meanwhile */
#define FT_STEP_IDLE      0.01
#define FT_STEP_IDLE_SLOW 0.3
#define FT_SLEEP_MAX   64    /* Seconds; no right run takes as long as that */
#define FT_CLIENT      1     /* Host */
#define FT_SERVER      0
#define FT_ANY_LINK    UINT_MAX


/* --- Set-up --- */

void ft_sweep_make_memory(ft_sweep_t *sweep)
{
    int fd;

    snprintf(sweep->memory, sizeof(sweep->memory), "ft_memory.%d", getpid());
    fd = open(sweep->memory, O_RDWR | O_CREAT | O_EXCL, 0600);
    if ((fd < 0) || (ftruncate(fd, sizeof(ft_shared_t)) != 0)) {
        ft_fatal("cannot make %s", sweep->memory);
    }

    close(fd);
}

/* @return Whether the client answered "ok" */
static int ft_sweep_ok(ft_sweep_t *sweep)
{
    const char *answer = ft_child_answer(&sweep->client, sweep->driver.answer_time);

    if ((answer != NULL) && !strncmp(answer, "ok", 2)) {
        return 1;
    }

    if ((answer == NULL) || strncmp(answer, "fail", 4)) {
        ft_driver_fatal(&sweep->driver, "the client %s",
                        (answer == NULL) ? "does not answer or has ended" :
                        answer);
    }

    return 0;
}

/* Create a fabric, start both processes, and connect the client */
void ft_sweep_up(ft_sweep_t *sweep)
{
    char address[FT_ANSWER_MAX];

    ft_driver_up(&sweep->driver, 2, sweep->links, "--trace 65536");
    ft_driver_start_job(&sweep->driver, &sweep->server, "server", FT_SERVER,
                        sweep->memory);
    ft_driver_start_job(&sweep->driver, &sweep->client, "client", FT_CLIENT,
                        sweep->memory);
    ft_driver_await_server(&sweep->driver, &sweep->server, &sweep->base, address);
    ft_driver_connect(&sweep->driver, &sweep->client, address);
    ft_driver_ask(&sweep->driver, &sweep->client, "timeout %f", sweep->run_time);
    ft_driver_ask(&sweep->driver, &sweep->client, "open");
}

void ft_sweep_down(ft_sweep_t *sweep)
{
    ft_driver_stop_job(&sweep->driver, &sweep->client);
    ft_driver_stop_job(&sweep->driver, &sweep->server);
    sweep->acted += ft_fabric_quirks_acted(&sweep->driver.fabric);
    ft_fabric_down(&sweep->driver.fabric);
}

/* --- One run --- */

static void ft_sweep_links_up(ft_sweep_t *sweep)
{
    const ft_fabric_t *fabric = &sweep->driver.fabric;
    unsigned link;

    for (link = 0; link < sweep->links; ++link) {
        ft_fabric_do(fabric, "link", "%u:%u up", FT_SERVER, link);
        ft_fabric_do(fabric, "link", "%u:%u up", FT_CLIENT, link);
    }
}

/* A rule may have fired after the end of its run */
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

/* New processes on a new fabric. The old ones must exit with status 0 in spite of dead
 * NICs. */
static void ft_sweep_revive(ft_sweep_t *sweep)
{
    ft_sweep_down(sweep);
    ft_sweep_up(sweep);
    sweep->nics_bad = 0;
    sweep->seq      = 0;
}

void ft_sweep_heal(ft_sweep_t *sweep)
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

/* Put a word, and find the lane that it used */
static int ft_sweep_warm_once(ft_sweep_t *sweep, ft_verdict_t *verdict)
{
    static uint32_t number;
    char *trace;
    int found;

    ft_child_send(&sweep->client, "warm %u", ++number);
    if (!ft_sweep_ok(sweep)) {
        return 0;
    }

    trace = ft_fabric_trace(&sweep->driver.fabric, sweep->seq, "");
    found = ft_judge_warm(trace, sweep->base, number, verdict);
    free(trace);
    if (verdict->last_seq != 0) {
        sweep->seq = verdict->last_seq;
    }

    return found;
}

/* Find a lane for the fault, on any link or on the given one. @return Whether there is
 * one. */
static int ft_sweep_warm(ft_sweep_t *sweep, unsigned phase, unsigned link,
                         ft_verdict_t *verdict)
{
    double end = ft_now() + FT_WARM_TIME;

    do {
        if (phase == FT_PHASE_DC) {
            ft_driver_ask(&sweep->driver, &sweep->client, "open");
        }

        if (!ft_sweep_warm_once(sweep, verdict)) {
            return 0;
        }

        if ((verdict->is_rc || (phase == FT_PHASE_DC)) &&
            ((link == FT_ANY_LINK) || (link == verdict->link))) {
            return 1;
        }

        ft_driver_ask(&sweep->driver, &sweep->client, "idle 0.005");
    } while (ft_now() < end);

    return 0;
}

static int ft_sweep_returns(const ft_point_t *point)
{
    return (point->step != NULL) && (point->step->flags & FT_STEP_RETURN);
}

/* Add the rules of the first fault, of both, or of a second fault that must be added
 * later */
static void ft_sweep_arm(ft_sweep_t *sweep, const ft_point_t *point,
                         const ft_verdict_t *lane, int is_late)
{
    unsigned first = is_late ? ft_fault_num_rules(point->fault) : 0;
    char rules[2 * FT_MAX_RULES][FT_RULE_MAX];
    unsigned num, i;

    num = ft_faults_format(point, lane->link, lane->qpn, rules);
    if (!is_late && ft_sweep_returns(point)) {
        num = ft_fault_num_rules(point->fault);
    }

    for (i = first; i < num; ++i) {
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

void ft_sweep_report(ft_sweep_t *sweep, const char *plan,
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

    ++sweep->driver.failures;
    printf("FAILED: -L %u -p %s -s %s -f %s -n %u%s (run %u): %s\n",
           sweep->links, ft_phase_name(point->phase), plan,
           point->fault->name, point->n, second, sweep->run, text);
    fprintf(sweep->driver.log, "FAILED: run %u: %s\n", sweep->run, text);
    fflush(stdout);
    fflush(sweep->driver.log);
}

/* Without a PSN, on a network that may be unordered, a put also counts as executed if a
 * later one has written its place (docs/RECOVERY.md). The order is unknown on NICs that
 * have only verbs. */
static unsigned ft_sweep_may_be_covered(const ft_sweep_t *sweep)
{
    return ft_quirk_is_on("no-mlx5dv") ? sweep->client.equal : 0;
}

/* Only what rc_varuna calls ambiguous may have been executed twice, and nothing is
 * ambiguous when RC fails, if its PSN can be queried and its packets stay in order. (The
 * lane that takes over may fail too, even without a second fault: its link may still be
 * held down since the last run.) */
static void ft_sweep_judge(ft_sweep_t *sweep, const char *name,
                           const ft_point_t *point, ft_verdict_t *verdict)
{
    int on_rc   = (point->phase == FT_PHASE_RC) && (point->second == NULL) &&
                  !(point->fault->flags & (FT_SPREADS | FT_NO_PSN)) &&
                  !ft_quirk_has_no_psn() && !ft_quirk_has_no_order();
    char *trace = ft_fabric_trace(&sweep->driver.fabric, sweep->seq, "");
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
    } else if (verdict->covered > ft_sweep_may_be_covered(sweep)) {
        ft_sweep_report(sweep, name, point, "a put was never executed");
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

/* Wait until delayed packets have arrived */
static void ft_sweep_linger(ft_sweep_t *sweep, const ft_point_t *point)
{
    if ((point->fault->flags & FT_LATE) && !sweep->stuck) {
        ft_driver_ask(&sweep->driver, &sweep->client, "idle %g", FT_LATE_TIME);
    }
}

/* If no link is left, bring the links up so that the run can end. Repeat this, because
 * on a busy machine the second fault may fire after that. @return The answer, or
 * NULL. */
static const char *ft_sweep_heal_links(ft_sweep_t *sweep)
{
    double end = ft_now() + sweep->driver.answer_time;
    int first  = 1;
    const char *answer;

    do {
        answer = ft_child_answer(&sweep->client, FT_HEAL_TIME);
        if (answer != NULL) {
            return answer;
        }

        fprintf(sweep->driver.log, "links return\n");
        ft_sweep_links_up(sweep);
        sweep->waited += first;
        first          = 0;
    } while (ft_now() < end);

    return NULL;
}

/* Wait for the client's answer */
static void ft_sweep_await(ft_sweep_t *sweep, const char *plan,
                           const ft_point_t *point)
{
    const char *answer = NULL;

    if (sweep->links_bad) {
        answer = ft_sweep_heal_links(sweep);
        if ((answer != NULL) && !strncmp(answer, "ok", 2)) {
            return;
        }
    }

    if (((answer == NULL) && !ft_sweep_ok(sweep)) ||
        (answer != NULL)) {
        ft_sweep_report(sweep, plan, point, sweep->client.answer + 4);
        sweep->stuck = (strstr(sweep->client.answer, "did not end") != NULL);
    }
}

/* A run that does not end makes all later ones meaningless */
static void ft_sweep_end_stuck(ft_sweep_t *sweep)
{
    char *text = ft_fabric_run(&sweep->driver.fabric, "status", "--qps");

    fprintf(sweep->driver.log, "%s\n", text);
    free(text);
    if (!sweep->quiet) {
        ft_child_stacks(&sweep->server);
        ft_child_stacks(&sweep->client);
    }

    fflush(sweep->driver.log);
    ft_child_kill(&sweep->client);
    ft_child_kill(&sweep->server);
    ft_fabric_down(&sweep->driver.fabric);
    unlink(sweep->memory);
    ft_fatal("a run did not end; the other runs were skipped");
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

/* @return Whether all rules of the second fault, which follow those of the first, have
 * fired. */
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

/* Run the plan again, after this time */
static void ft_sweep_again(ft_sweep_t *sweep, const char *plan,
                           const ft_point_t *point, double idle)
{
    ++sweep->run;
    ft_driver_ask(&sweep->driver, &sweep->client, "idle %g", idle);
    ft_child_send(&sweep->client, "run %u %s 0", sweep->run, plan);
    ft_sweep_await(sweep, plan, point);
}

/* Prepare a planned return: take the first link down, in case it is only silent, and
 * wait until RC is connected on the next one. Then bring the link up; the second fault
 * hits the return. */
static void ft_sweep_begin_return(ft_sweep_t *sweep, const char *plan,
                                  const ft_point_t *point,
                                  const ft_verdict_t *lane)
{
    const ft_fabric_t *fabric = &sweep->driver.fabric;
    ft_verdict_t verdict;

    ft_sweep_judge(sweep, plan, point, &verdict);
    ft_sweep_reset_counts(sweep);
    ft_fabric_do(fabric, "link", "%u:%u down", FT_CLIENT, lane->link);
    if (!ft_sweep_warm(sweep, FT_PHASE_RC, 1, &verdict)) {
        ft_sweep_report(sweep, plan, point, "no RC on the second link");
        ft_sweep_end_stuck(sweep);
    }

    ft_sweep_arm(sweep, point, lane, 1);
    ft_sweep_links_up(sweep);
    ft_sweep_again(sweep, plan, point, FT_STEP_IDLE);
}

/* A step may come after the run, because RC is connected in the background. Repeat the
 * run, and judge it, until the step comes. Then run once more, to detect and recover
 * what the fault has broken. @return Whether the step came. */
static int ft_sweep_until_step(ft_sweep_t *sweep, const char *plan,
                               const ft_point_t *point,
                               const ft_verdict_t *lane)
{
    ft_verdict_t verdict;
    unsigned i;

    if (ft_sweep_returns(point) && !sweep->stuck) {
        ft_sweep_begin_return(sweep, plan, point, lane);
    }

    for (i = 0; !sweep->stuck && !ft_sweep_has_fired(sweep, point); ++i) {
        if (i == FT_STEP_RUNS) {
            return 0;
        }

        ft_sweep_judge(sweep, plan, point, &verdict);
        ft_sweep_reset_counts(sweep);
        ft_sweep_again(sweep, plan, point, (i < FT_STEP_RUNS / 2) ? FT_STEP_IDLE :
                       FT_STEP_IDLE_SLOW);
    }

    if (!sweep->stuck) {
        ft_sweep_judge(sweep, plan, point, &verdict);
        ft_sweep_reset_counts(sweep);
        ft_sweep_again(sweep, plan, point, FT_STEP_IDLE);
    }

    return 1;
}

/* Whether a run that began then has waited for the sleeping server. It cannot be told from
 * one that had no CPU for so long, so the server sleeps longer, and the run is repeated:
 * one that waits for the server takes longer, too. @return 1: yes, -1: repeat it. */
static int ft_sweep_has_waited(ft_sweep_t *sweep, double begin)
{
    if ((sweep->sleep == 0) || (ft_now() - begin <= sweep->sleep * 0.9)) {
        return 0;
    } else if (sweep->sleep >= FT_SLEEP_MAX) {
        return 1;
    }

    sweep->sleep = (sweep->sleep * 4 < FT_SLEEP_MAX) ? sweep->sleep * 4 : FT_SLEEP_MAX;
    return -1;
}

/* One run. @return Whether the (second) fault fired; -1: repeat the run, because it
 * used another lane than expected. */
int ft_sweep_run(ft_sweep_t *sweep, const char *plan, const ft_point_t *point)
{
    uint64_t fired[2] = {0, 0};
    ft_verdict_t lane, verdict;
    double begin;
    int hit, came, waited;

    ft_sweep_heal(sweep);
    if (!ft_sweep_warm(sweep, point->phase,
                       ft_sweep_returns(point) ? 0 : FT_ANY_LINK, &lane)) {
        ft_sweep_report(sweep, plan, point, "no lane of this kind");
        ft_sweep_end_stuck(sweep);
    }

    ++sweep->series.runs;
    ++sweep->run;
    fprintf(sweep->driver.log, "--- run %u: %s %s %u %s %u\n", sweep->run, plan,
            point->fault->name, point->n,
            (point->second != NULL) ? point->second->name : "", point->m);
    ft_sweep_reset_counts(sweep);
    ft_sweep_arm(sweep, point, &lane, 0);
    if (sweep->sleep > 0) {
        ft_driver_ask(&sweep->driver, &sweep->server, "sleep %g", sweep->sleep);
    }

    begin = ft_now();
    ft_child_send(&sweep->client, "run %u %s %u", sweep->run, plan,
                  ((point->phase == FT_PHASE_DC) ? 1 : 0) |
                  ((point->n % 2) ? 0 : 2));
    ft_sweep_await(sweep, plan, point);
    waited = ft_sweep_has_waited(sweep, begin);
    if (waited > 0) {
        ft_sweep_report(sweep, plan, point, "the run waited for the server");
    }

    ft_sweep_linger(sweep, point);
    came     = (point->step == NULL) ||
               ft_sweep_until_step(sweep, plan, point, &lane);
    if (sweep->stuck) {
        ft_sweep_end_stuck(sweep);
    }

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
    if (sweep->series.verbose) {
        ft_sweep_tell(sweep, plan, point, fired, &verdict);
    }

    /* The trace does not show the lane of messages. If a first fault that must fire did
     * not, they used another lane. */
    if ((fired[0] == 0) && (verdict.qpn != lane.qpn) &&
        ((verdict.qpn != 0) || (point->second != NULL))) {
        return -1;
    }

    if ((fired[0] == 0) && (point->second != NULL)) {
        ft_sweep_report(sweep, plan, point, "the first fault did not fire");
    }

    if (!came || (waited < 0)) {
        return -1;
    }

    sweep->series.points += hit;
    return hit;
}
