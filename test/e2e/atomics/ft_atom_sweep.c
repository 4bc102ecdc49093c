/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The sweep of atomics: each operation, of both widths, by one client and by
 * several which contend, is run with each fault at the 1st, 2nd, 3rd, ... event of
 * the first client, until a run ends untouched. Judged are the results and what the
 * server's CPU finds behind the clients' flushes, for which there must be one order
 * of operations which were executed once each (so a UID that stays is found, too);
 * and the trace: all changes of the word went through one NIC, and each found what
 * the one before had left.
 *
 *     ft_atom_sweep [OPTIONS] PREFIX JOB      -h tells the options
 *
 * UCX_RC_VARUNA_ATOMIC_MODE is for the processes, as all of UCX's settings.
 */
#include "ft_atom_chain.h"
#include "ft_clock.h"
#include "ft_atom_history.h"
#include "ft_atom_plan.h"
#include "ft_driver.h"
#include "ft_trace.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FT_CLIENTS_MAX FT_ATOM_CLIENTS_MAX
#define FT_STEP_TIME   40
#define FT_WARM_TRIES  600
#define FT_WARM_OFFSET 64
#define FT_MAX_EVENTS  400   /* A run cannot have more: the rule is wrong */

#define FT_PLANS_MAX   16

/* What was done of a plan */
typedef struct {
    unsigned runs;
    unsigned points;
    unsigned atomics;
} ft_count_t;

typedef struct {
    /* Options */
    ft_driver_t driver;
    const char  *plans;      /* Comma-separated, or NULL: all */
    const char  *faults;
    unsigned    widths[2];
    unsigned    clients[2];
    const char  *phase;      /* lane: on RC; msg: messages, from the start on DC */
    unsigned    first;
    unsigned    last;
    unsigned    stride;
    double      budget;
    unsigned    delay;       /* Milliseconds, of "exec_slow" */
    int         verbose;
    /* State */
    ft_child_t  server;
    ft_child_t  client[FT_CLIENTS_MAX];
    uint64_t    base;
    uint64_t    seq;
    double      start;
    /* Results */
    unsigned    runs;
    unsigned    points;
    unsigned    series;
    unsigned    cut;
    unsigned    switches;
    unsigned    atomics;
    unsigned    failures;
    ft_count_t  counts[FT_PLANS_MAX];
} ft_sweep_t;

/* One run */
typedef struct {
    const ft_atom_plan_t  *plan;
    const ft_atom_fault_t *fault;
    ft_count_t            *count;
    unsigned              width;
    unsigned              clients;
    unsigned              n;
} ft_point_t;


/* --- Set-up --- */

/* @return an answer "ok..." without that */
static const char *ft_ok(ft_sweep_t *sweep, ft_child_t *child)
{
    const char *answer = ft_child_answer(child, FT_STEP_TIME);

    if ((answer == NULL) || strncmp(answer, "ok", 2)) {
        fprintf(sweep->driver.log, "%s does not answer or has ended\n",
                child->name);
        return NULL;
    }

    return answer + 2;
}

static const char *ft_ask(ft_sweep_t *sweep, ft_child_t *child,
                          const char *text)
{
    const char *answer;

    ft_child_send(child, "%s", text);
    answer = ft_ok(sweep, child);
    if (answer == NULL) {
        ft_driver_fatal(&sweep->driver, "a process has failed");
    }

    return answer;
}

static void ft_setup(ft_sweep_t *sweep)
{
    char connect[FT_ANSWER_MAX + 16];
    const char *answer;
    unsigned i;

    ft_driver_up(&sweep->driver, FT_CLIENTS_MAX + 1, 2, "--trace 65536");
    ft_driver_start_job(&sweep->driver, &sweep->server, "server", 0, NULL);
    answer = ft_child_answer(&sweep->server, FT_STEP_TIME);
    if ((answer == NULL) ||
        (sscanf(answer, "address 0x%" SCNx64, &sweep->base) != 1)) {
        ft_driver_fatal(&sweep->driver, "the server did not start");
    }

    snprintf(connect, sizeof(connect), "connect %s",
             answer + strlen("address "));
    for (i = 0; i < FT_CLIENTS_MAX; ++i) {
        ft_driver_start_job(&sweep->driver, &sweep->client[i], "client", i + 1,
                            NULL);
        answer = ft_child_answer(&sweep->client[i], FT_STEP_TIME);
        if ((answer == NULL) || strcmp(answer, "ready")) {
            ft_driver_fatal(&sweep->driver, "a client did not start");
        }

        ft_ask(sweep, &sweep->client[i], connect);
    }
}

static void ft_cleanup(ft_sweep_t *sweep)
{
    unsigned i;

    for (i = 0; i < FT_CLIENTS_MAX; ++i) {
        if (ft_child_stop(&sweep->client[i]) != 0) {
            printf("FAILED: a client did not end well\n");
            ++sweep->failures;
        }
    }

    if (ft_child_stop(&sweep->server) != 0) {
        printf("FAILED: the server did not end well\n");
        ++sweep->failures;
    }

    ft_fabric_down(&sweep->driver.fabric);
}

/* --- One run --- */

static void ft_report(ft_sweep_t *sweep, const ft_point_t *point,
                      const char *text)
{
    ++sweep->failures;
    printf("FAILED: -p %s -s %s -w %u -c %u -f %s -n %u (run %u): %s\n",
           sweep->phase, point->plan->name, point->width, point->clients,
           point->fault->name, point->n, sweep->runs, text);
    fprintf(sweep->driver.log, "FAILED: run %u: %s\n", sweep->runs, text);
}

static char *ft_trace(ft_sweep_t *sweep)
{
    return ft_fabric_run(&sweep->driver.fabric, "trace", "--json --from %"
                         PRIu64, sweep->seq + 1);
}

/* Touch the other word. @return the client's queue pair, if it did so by RC, on the
 * first link; or 0 */
static uint32_t ft_warm_once(ft_sweep_t *sweep, unsigned i)
{
    uint32_t qpn = 0;
    ft_entry_t entry;
    char *trace, *text;

    ft_ask(sweep, &sweep->client[i], "warm");
    trace = text = ft_trace(sweep);
    while (ft_trace_next(&text, &entry)) {
        sweep->seq = entry.seq;
        if ((entry.addr == sweep->base + FT_WARM_OFFSET) && entry.is_rc &&
            (entry.src_host == i + 1) && (entry.link == 0)) {
            qpn = entry.src_qpn;
        }
    }

    free(trace);
    return qpn;
}

/* New endpoints; on RC, if that is what shall fail. @return its queue pair */
static uint32_t ft_open(ft_sweep_t *sweep, const ft_point_t *point)
{
    uint32_t first = 0, qpn;
    unsigned i, tries;

    for (i = 0; i < point->clients; ++i) {
        ft_ask(sweep, &sweep->client[i], "open");
        ft_ask(sweep, &sweep->client[i], "warm");
        if (strcmp(sweep->phase, "lane")) {
            continue;
        }

        for (tries = 0; (qpn = ft_warm_once(sweep, i)) == 0; ++tries) {
            if (tries == FT_WARM_TRIES) {
                ft_driver_fatal(&sweep->driver, "a client does not come to RC"
                                " on the first link");
            }
            ft_ask(sweep, &sweep->client[i], "idle 0.005");
        }

        first = (i == 0) ? qpn : first;
    }

    return first;
}

static void ft_arm(ft_sweep_t *sweep, const ft_point_t *point, uint32_t qpn)
{
    char rule[256];
    unsigned i;

    for (i = 0; (i < 2) && (point->fault->rules[i] != NULL); ++i) {
        ft_atom_format_rule(point->fault->rules[i], qpn, point->n,
                            sweep->delay, rule);
        fprintf(sweep->driver.log, "rule: %s\n", rule);
        ft_fabric_do(&sweep->driver.fabric, "fault", "add %s", rule);
    }
}

/* The word is changed by one NIC only, and its changes are one chain. Nothing but the
 * word is changed by a compare and swap in its page; on the wire its address may be
 * some bytes beside, as a key for atomics may have an origin of its own. */
static void ft_judge_trace(ft_sweep_t *sweep, const ft_point_t *point,
                           uint64_t last)
{
    uint64_t mask         = (point->width == 8) ? UINT64_MAX : UINT32_MAX;
    char *trace           = ft_trace(sweep);
    char *text            = trace;
    unsigned others       = 0;
    ft_atom_chain_t chain = {0};
    const char *wrong;
    ft_entry_t entry;

    while (ft_trace_next(&text, &entry)) {
        sweep->seq = entry.seq;
        if ((entry.host != 0) || !entry.is_cas || entry.duplicate ||
            (entry.addr - sweep->base >= FT_ATOM_WORDS_STRIDE)) {
            continue;
        }

        others += (entry.link != 0);
        if (((entry.data ^ entry.compare) & mask) == 0) {
            ft_atom_chain_add(&chain, entry.data & mask, entry.swap & mask);
        }
    }

    free(trace);
    if (others > 0) {
        ft_report(sweep, point, "trace: not the home NIC");
    } else if (chain.num == 0) {
        ft_report(sweep, point, "trace: nothing has changed the word");
    } else if ((wrong = ft_atom_chain_check(&chain, point->plan->first & mask,
                                            last & mask)) != NULL) {
        ft_report(sweep, point, wrong);
    }

    ft_atom_chain_clear(&chain);
}

static void ft_judge(ft_sweep_t *sweep, const ft_point_t *point,
                     ft_atom_t atoms[][FT_ATOM_MAX], const int *counts,
                     uint64_t last)
{
    uint64_t mask = (point->width == 8) ? UINT64_MAX : UINT32_MAX;
    char line[FT_ATOM_TEXT_MAX], text[2048];
    size_t length;
    unsigned i;
    int j;

    if (!ft_atoms_explain(atoms, counts, point->clients, point->plan->first,
                          last & mask, point->width) ||
        ((last & ~mask) != 0)) {
        length = snprintf(text, sizeof(text), "%" PRIx64 " is left of",
                          last);
        for (i = 0; i < point->clients; ++i) {
            for (j = 0; j < counts[i]; ++j) {
                ft_atom_format(&atoms[i][j], line);
                length += snprintf(text + length, sizeof(text) - length,
                                   "%s%s", (j > 0) ? "," : " ", line);
            }
        }
        ft_report(sweep, point, text);
    }

    ft_judge_trace(sweep, point, last);
}

/* @return whether the fault has hit something */
static int ft_run(ft_sweep_t *sweep, const ft_point_t *point)
{
    ft_atom_t atoms[FT_CLIENTS_MAX][FT_ATOM_MAX];
    int counts[FT_CLIENTS_MAX];
    char text[64];
    const char *answer;
    uint32_t qpn;
    uint64_t fired, last;
    unsigned i;

    ft_fabric_do(&sweep->driver.fabric, "fault", "clear");
    if (point->fault->breaks) {
        ft_fabric_do(&sweep->driver.fabric, "link", "1:0 up");
    }

    ++sweep->runs;
    ++point->count->runs;
    fprintf(sweep->driver.log, "--- run %u: %s %u %u %s %u\n", sweep->runs,
            point->plan->name, point->width, point->clients,
            point->fault->name, point->n);
    qpn = ft_open(sweep, point);
    snprintf(text, sizeof(text), "set %" PRIx64, point->plan->first);
    ft_ask(sweep, &sweep->server, text);
    ft_arm(sweep, point, qpn);
    for (i = 0; i < point->clients; ++i) {
        ft_child_send(&sweep->client[i], "run %u %" PRIx64 " %s", point->width,
                      point->plan->first, point->plan->atoms[i]);
    }

    for (i = 0; i < point->clients; ++i) {
        answer = ft_ok(sweep, &sweep->client[i]);
        if (answer == NULL) {
            snprintf(text, sizeof(text), "client %u: %.40s", i + 1,
                     sweep->client[i].answer);
            ft_report(sweep, point, text);
            ft_driver_fatal(&sweep->driver, "a run has failed");
        }

        counts[i]        = ft_atoms_parse(answer + 1, atoms[i]);
        sweep->atomics  += counts[i];
        point->count->atomics += counts[i];
        sweep->switches += sweep->client[i].switches;
        sweep->client[i].switches = 0;
        if (sweep->client[i].errors > 0) {
            sweep->client[i].errors = 0;
            ft_report(sweep, point, "errors were logged");
        }
    }

    if (point->fault->is_late) {
        ft_ask(sweep, &sweep->client[0], "idle 0.05");
    }

    /* At once: a UID that a flush did not wait for would be gone soon */
    last  = strtoull(ft_ask(sweep, &sweep->server, "get"), NULL, 16);
    fired = ft_fabric_fired(&sweep->driver.fabric, 0);
    ft_judge(sweep, point, atoms, counts, last);
    if (sweep->verbose) {
        printf("run %u: %s %u %u %s %u: fired %" PRIu64 "\n", sweep->runs,
               point->plan->name, point->width, point->clients,
               point->fault->name, point->n, fired);
    }

    sweep->points        += (fired > 0);
    point->count->points += (fired > 0);
    return fired > 0;
}

/* --- All runs --- */

static void ft_series(ft_sweep_t *sweep, ft_point_t *point)
{
    ++sweep->series;
    for (point->n = sweep->first; point->n <= sweep->last;
         point->n += sweep->stride) {
        if ((sweep->budget > 0) &&
            (ft_now() - sweep->start > sweep->budget)) {
            ++sweep->cut;
            return;
        }

        if (!ft_run(sweep, point)) {
            return;
        }

        if (point->n > FT_MAX_EVENTS) {
            ft_report(sweep, point, "there is no end of events");
            return;
        }
    }
}

static void ft_plan_and_fault(ft_sweep_t *sweep, ft_point_t *point)
{
    unsigned width, clients;

    for (width = 0; width < 2; ++width) {
        for (clients = 0; clients < 2; ++clients) {
            point->width   = sweep->widths[width];
            point->clients = sweep->clients[clients];
            if ((point->width != 0) && (point->clients != 0)) {
                ft_series(sweep, point);
            }
        }
    }
}

static void ft_all(ft_sweep_t *sweep)
{
    unsigned plan, fault;
    ft_point_t point;

    for (plan = 0; (point.plan = ft_atom_plan(plan)) != NULL; ++plan) {
        point.count = &sweep->counts[plan];
        for (fault = 0; (point.fault = ft_atom_fault(fault)) != NULL; ++fault) {
            if (ft_is_listed(sweep->plans, point.plan->name) &&
                ft_is_listed(sweep->faults, point.fault->name)) {
                ft_plan_and_fault(sweep, &point);
            }
        }
    }
}

static void ft_tell(const ft_sweep_t *sweep)
{
    const ft_count_t *count;
    unsigned plan;

    for (plan = 0; ft_atom_plan(plan) != NULL; ++plan) {
        count = &sweep->counts[plan];
        if (count->runs > 0) {
            printf("%-11s %5u fault points, %5u runs, %6u atomics\n",
                   ft_atom_plan(plan)->name, count->points, count->runs,
                   count->atomics);
        }
    }

    printf("swept: %u fault points in %u runs of %u series, %u atomics, %.1f s;"
           " switches %u; series cut by the time limit %u; failures %u\n",
           sweep->points, sweep->runs, sweep->series, sweep->atomics,
           ft_now() - sweep->start, sweep->switches, sweep->cut,
           sweep->failures);
}

/* --- Options --- */

static void ft_usage(void)
{
    unsigned i;

    printf("usage: ft_atom_sweep [OPTIONS] PREFIX JOB\n"
           "  PREFIX       where mlx5emu and rc_varuna_run are installed\n"
           "  JOB          path of ft_atom_job\n"
           "  -s PLAN,...  only these plans\n"
           "  -f FAULT,... only these faults\n"
           "  -w 4|8       only this width\n"
           "  -c 1|2|3     only so many clients (1 and 3)\n"
           "  -p lane|msg  faults hit what is on RC (lane), or messages\n"
           "  -n N[-M]     only these events\n"
           "  -t N         every N-th event\n"
           "  -T SECONDS   time limit; what it leaves out is told\n"
           "  -d MS        delay of what follows an \"exec_slow\" (15)\n"
           "  -N NAME      first part of the fabric's name (atoms)\n"
           "  -P FILE      this plugin instead of the installed one\n"
           "  -l FILE      log of all processes (ft_atom_sweep.log)\n"
           "  -v           a line for each run\n"
           "plans:");
    for (i = 0; ft_atom_plan(i) != NULL; ++i) {
        printf(" %s", ft_atom_plan(i)->name);
    }

    printf("\nfaults:");
    for (i = 0; ft_atom_fault(i) != NULL; ++i) {
        printf(" %s", ft_atom_fault(i)->name);
    }
    printf("\n");
    exit(2);
}

static void ft_parse_one(ft_sweep_t *sweep, int c, const char *arg)
{
    switch (c) {
    case 's':
        sweep->plans = arg;
        break;
    case 'f':
        sweep->faults = arg;
        break;
    case 'w':
        sweep->widths[0] = atoi(arg);
        sweep->widths[1] = 0;
        break;
    case 'c':
        sweep->clients[0] = atoi(arg);
        sweep->clients[1] = 0;
        break;
    case 'p':
        sweep->phase = arg;
        break;
    case 'n':
        ft_parse_range(arg, &sweep->first, &sweep->last);
        break;
    case 't':
        sweep->stride = atoi(arg);
        break;
    case 'T':
        sweep->budget = atof(arg);
        break;
    case 'd':
        sweep->delay = atoi(arg);
        break;
    case 'v':
        sweep->verbose = 1;
        break;
    default:
        if (!ft_driver_option(&sweep->driver, c, arg)) {
            ft_usage();
        }
        break;
    }
}

static void ft_parse(ft_sweep_t *sweep, int argc, char **argv)
{
    int c;

    while ((c = getopt(argc, argv, FT_DRIVER_OPTIONS "s:f:w:c:p:n:t:T:d:vh"))
           != -1) {
        ft_parse_one(sweep, c, optarg);
    }

    if ((sweep->stride == 0) || (sweep->first == 0) ||
        (sweep->clients[0] > FT_CLIENTS_MAX) ||
        (ft_driver_open(&sweep->driver, argc, argv, optind) != 0)) {
        ft_usage();
    }
}

int main(int argc, char **argv)
{
    static ft_sweep_t sweep = {
        .widths  = {4, 8},
        .clients = {1, FT_CLIENTS_MAX},
        .phase   = "lane",
        .first   = 1,
        .last    = UINT32_MAX / 2,
        .stride  = 1,
        .delay   = 15,
        .driver  = {.name = "atoms", .log_name = "ft_atom_sweep.log"}
    };

    ft_parse(&sweep, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_setup(&sweep);
    sweep.start = ft_now();
    ft_all(&sweep);
    ft_tell(&sweep);
    ft_cleanup(&sweep);
    fclose(sweep.driver.log);
    return ((sweep.failures == 0) && (sweep.points > 0)) ? 0 : 1;
}
