/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The sweep of atomics: runs each operation, of both widths, by one client and by
 * several contending clients, with each fault at the 1st, 2nd, 3rd, ... event of the
 * first client, until a run ends without the fault. One order of operations, each
 * executed once, must explain the results and the word that the server's CPU finds
 * after the clients' flushes (so a UID that remains is found, too). In the trace, one
 * NIC has made all changes of the word, and each change replaced the value of the
 * previous one.
 *
 *     ft_atom_sweep [OPTIONS] PREFIX JOB      -h: help
 *
 * The processes inherit UCX_RC_VARUNA_ATOMIC_MODE, as all settings of UCX.
 */
#include "ft_atom.h"
#include "ft_atom_chain.h"
#include "ft_clock.h"
#include "ft_atom_history.h"
#include "ft_atom_plan.h"
#include "ft_driver.h"
#include "ft_series.h"
#include "ft_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FT_CLIENTS_MAX FT_ATOM_CLIENTS_MAX
#define FT_STEP_TIME   150   /* More than ft_atom_job gives a run */
#define FT_WARM_TIME   60    /* Seconds; ends only a hang */
#define FT_WARM_OFFSET 64
#define FT_MAX_EVENTS  400   /* A run with more events has a wrong rule */

#define FT_PLANS_MAX   16

/* Results of a plan */
typedef struct {
    unsigned runs;
    unsigned points;
    unsigned atomics;
} ft_count_t;

typedef struct {
    /* Options */
    ft_driver_t driver;
    ft_series_t series;
    unsigned    widths[2];
    unsigned    clients[2];
    const char  *phase;      /* lane: on RC; msg: messages, from the start on DC */
    unsigned    delay;       /* Milliseconds, for "exec_slow" */
    /* State */
    ft_child_t  server;
    ft_child_t  client[FT_CLIENTS_MAX];
    uint64_t    base;
    uint64_t    seq;
    /* Results */
    unsigned    switches;
    unsigned    atomics;
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

typedef struct {
    ft_sweep_t *sweep;
    ft_point_t *point;
} ft_sweep_point_t;


/* --- Set-up --- */

static void ft_setup(ft_sweep_t *sweep)
{
    char address[FT_ANSWER_MAX];
    unsigned i;

    ft_driver_up(&sweep->driver, FT_CLIENTS_MAX + 1, 2, "--trace 65536");
    ft_driver_start_job(&sweep->driver, &sweep->server, "server", 0, NULL);
    ft_driver_await_server(&sweep->driver, &sweep->server, &sweep->base, address);
    if (strcmp(sweep->phase, "lane") && !ft_atom_is_by_cpu()) {
        /* Nor has it a queue pair for RC (test_atomics_sweep.sh) */
        ft_driver_ask(&sweep->driver, &sweep->server, "computes");
    }
    for (i = 0; i < FT_CLIENTS_MAX; ++i) {
        ft_driver_start_job(&sweep->driver, &sweep->client[i], "client", i + 1,
                            NULL);
        ft_driver_connect(&sweep->driver, &sweep->client[i], address);
    }
}

static void ft_cleanup(ft_sweep_t *sweep)
{
    unsigned i;

    sweep->driver.label[0] = '\0';
    for (i = 0; i < FT_CLIENTS_MAX; ++i) {
        ft_driver_stop_job(&sweep->driver, &sweep->client[i]);
    }

    ft_driver_stop_job(&sweep->driver, &sweep->server);
    ft_fabric_down(&sweep->driver.fabric);
}

/* --- One run --- */

static void ft_report(ft_sweep_t *sweep, const char *text)
{
    ft_driver_report(&sweep->driver, "%s", text);
    fprintf(sweep->driver.log, "FAILED: run %u: %s\n", sweep->series.runs, text);
}

/* Access the other word. @return The client's queue pair if it is RC on the first link,
 * or 0 */
static uint32_t ft_warm_once(ft_sweep_t *sweep, unsigned i)
{
    uint32_t qpn = 0;
    ft_entry_t entry;
    char *trace, *text;

    ft_driver_ask(&sweep->driver, &sweep->client[i], "warm");
    trace = text = ft_fabric_trace(&sweep->driver.fabric, sweep->seq, "");
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

/* Create endpoints, and wait for RC if it is to fail. @return Its queue pair */
static uint32_t ft_open(ft_sweep_t *sweep, const ft_point_t *point)
{
    uint32_t first = 0, qpn;
    double end;
    unsigned i;

    for (i = 0; i < point->clients; ++i) {
        ft_driver_ask(&sweep->driver, &sweep->client[i], "open");
        ft_driver_ask(&sweep->driver, &sweep->client[i], "warm");
        if (strcmp(sweep->phase, "lane")) {
            continue;
        }

        end = ft_now() + FT_WARM_TIME;
        while ((qpn = ft_warm_once(sweep, i)) == 0) {
            if (ft_now() > end) {
                ft_driver_fatal(&sweep->driver, "a client does not get RC"
                                " on the first link");
            }
            ft_driver_ask(&sweep->driver, &sweep->client[i], "idle 0.005");
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

/* Only one NIC, or only the CPU, changes the word, and the changes form one chain. No
 * other word in the page is changed by a compare and swap. The wire's address can
 * differ from the word's by some bytes, because a key for atomics may have another
 * origin. */
static void ft_judge_trace(ft_sweep_t *sweep, const ft_point_t *point,
                           uint64_t last)
{
    uint64_t mask         = (point->width == 8) ? UINT64_MAX : UINT32_MAX;
    char *trace           = ft_fabric_trace(&sweep->driver.fabric, sweep->seq, "");
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
    if (ft_atom_is_by_cpu()) {
        if ((others > 0) || (chain.num > 0)) {
            ft_report(sweep, "trace: a NIC changed the word");
        }
    } else if (others > 0) {
        ft_report(sweep, "trace: not the home NIC");
    } else if (chain.num == 0) {
        ft_report(sweep, "trace: no NIC changed the word");
    } else if ((wrong = ft_atom_chain_check(&chain, point->plan->first & mask,
                                            last & mask)) != NULL) {
        ft_report(sweep, wrong);
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
        length = snprintf(text, sizeof(text), "%" PRIx64 " is the final value of",
                          last);
        for (i = 0; i < point->clients; ++i) {
            for (j = 0; j < counts[i]; ++j) {
                ft_atom_format(&atoms[i][j], line);
                length += snprintf(text + length, sizeof(text) - length,
                                   "%s%s", (j > 0) ? "," : " ", line);
            }
        }
        ft_report(sweep, text);
    }

    ft_judge_trace(sweep, point, last);
}

/* @return Whether the fault has fired */
static int ft_run(ft_sweep_t *sweep, const ft_point_t *point)
{
    ft_atom_t atoms[FT_CLIENTS_MAX][FT_ATOM_MAX];
    int counts[FT_CLIENTS_MAX];
    const char *answer;
    uint32_t qpn;
    uint64_t fired, last;
    unsigned i;

    ft_fabric_do(&sweep->driver.fabric, "fault", "clear");
    if (point->fault->breaks) {
        ft_fabric_do(&sweep->driver.fabric, "link", "1:0 up");
    }

    ++sweep->series.runs;
    ++point->count->runs;
    snprintf(sweep->driver.label, sizeof(sweep->driver.label),
             "-p %s -s %s -w %u -c %u -f %s -n %u (run %u)", sweep->phase,
             point->plan->name, point->width, point->clients, point->fault->name,
             point->n, sweep->series.runs);
    fprintf(sweep->driver.log, "--- %s\n", sweep->driver.label);
    qpn = ft_open(sweep, point);
    ft_driver_ask(&sweep->driver, &sweep->server, "set %" PRIx64,
                  point->plan->first);
    ft_arm(sweep, point, qpn);
    for (i = 0; i < point->clients; ++i) {
        ft_child_send(&sweep->client[i], "run %u %" PRIx64 " %s", point->width,
                      point->plan->first, point->plan->atoms[i]);
    }

    for (i = 0; i < point->clients; ++i) {
        answer = ft_driver_answer(&sweep->driver, &sweep->client[i]);
        counts[i]        = ft_atoms_parse(answer + 1, atoms[i]);
        sweep->atomics  += counts[i];
        point->count->atomics += counts[i];
        sweep->switches += sweep->client[i].switches;
        sweep->client[i].switches = 0;
        if (sweep->client[i].errors > 0) {
            sweep->client[i].errors = 0;
            ft_report(sweep, "errors were logged");
        }
    }

    if (point->fault->is_late) {
        ft_driver_ask(&sweep->driver, &sweep->client[0], "idle 0.05");
    }

    /* Immediately, because a UID for which a flush did not wait disappears soon */
    answer = ft_driver_ask(&sweep->driver, &sweep->server, "get");
    last   = strtoull(answer, NULL, 16);
    fired  = ft_fabric_fired(&sweep->driver.fabric, 0);
    ft_judge(sweep, point, atoms, counts, last);
    if (sweep->series.verbose) {
        printf("%s: fired %" PRIu64 "\n", sweep->driver.label, fired);
    }

    sweep->series.points        += (fired > 0);
    point->count->points += (fired > 0);
    return fired > 0;
}

/* --- All runs --- */

static int ft_run_point(void *arg)
{
    ft_sweep_point_t *run = arg;

    return ft_run(run->sweep, run->point);
}

static void ft_run_series(ft_sweep_t *sweep, ft_point_t *point)
{
    ft_sweep_point_t run = {sweep, point};
    const char *wrong;

    point->n = sweep->series.events[0];
    wrong    = ft_series_run(&sweep->series, &point->n, sweep->series.events[1],
                             FT_MAX_EVENTS, ft_run_point, &run);
    if (wrong != NULL) {
        ft_report(sweep, wrong);
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
                ft_run_series(sweep, point);
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
            if (ft_is_listed(sweep->series.plans, point.plan->name) &&
                ft_is_listed(sweep->series.faults, point.fault->name)) {
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
           sweep->series.points, sweep->series.runs, sweep->series.count,
           sweep->atomics, ft_now() - sweep->series.start, sweep->switches,
           sweep->series.cut, sweep->driver.failures);
}

/* --- Options --- */

static void ft_usage(void)
{
    unsigned i;

    printf("usage: ft_atom_sweep [OPTIONS] PREFIX JOB\n"
           FT_DRIVER_USAGE("ft_atom_job", "atoms", "ft_atom_sweep.log")
           FT_SERIES_USAGE
           "  -w 4|8       only this width\n"
           "  -c 1|2|3     only this number of clients (1 and 3)\n"
           "  -p lane|msg  faults hit RC (lane), or messages\n"
           "  -d MS        delay of operations after an \"exec_slow\" (15)\n"
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

int main(int argc, char **argv)
{
    static ft_sweep_t sweep = {
        .widths  = {4, 8},
        .clients = {1, FT_CLIENTS_MAX},
        .phase   = "lane",
        .series  = {.events = {1, UINT32_MAX / 2}, .stride = 1},
        .delay   = 15,
        .driver  = {.name = "atoms", .log_name = "ft_atom_sweep.log",
                    .answer_time = FT_STEP_TIME}
    };
    const ft_option_t options[] = {
        FT_SERIES_OPTIONS(&sweep.series),
        {'w', FT_OPTION_ONLY, sweep.widths},
        {'c', FT_OPTION_ONLY, sweep.clients},
        {'p', FT_OPTION_TEXT, &sweep.phase},
        {'d', FT_OPTION_UNSIGNED, &sweep.delay},
        {0}
    };

    if ((ft_driver_parse(&sweep.driver, argc, argv, options, 0) != 0) ||
        !ft_series_is_valid(&sweep.series) || (sweep.clients[0] > FT_CLIENTS_MAX)) {
        ft_usage();
    }

    ft_setup(&sweep);
    sweep.series.start = ft_now();
    ft_all(&sweep);
    ft_tell(&sweep);
    ft_cleanup(&sweep);
    if (sweep.series.points == 0) {
        ft_driver_report(&sweep.driver, "nothing was tested");
    }

    return ft_driver_close(&sweep.driver);
}
