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
#include "ft_atom.h"
#include "ft_child.h"
#include "ft_fabric.h"
#include "ft_trace.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_CLIENTS_MAX 3
#define FT_STEP_TIME   40
#define FT_WARM_TRIES  600
#define FT_WARM_OFFSET 64
#define FT_MAX_EVENTS  400   /* A run cannot have more: the rule is wrong */

typedef struct {
    const char *name;
    uint64_t   first;                  /* What is in the word before */
    const char *atoms[FT_CLIENTS_MAX]; /* Of each client */
} ft_plan_t;

/* An AND or OR which is executed twice shows only if the word has changed
 * meanwhile: so an XOR stands between two of them */
static const ft_plan_t ft_plans[] = {
    {"padd", 5, {"padd:0:1,padd:0:10,padd:0:100", "padd:0:1000,padd:0:10000",
                 "padd:0:100000,padd:0:1000000"}},
    {"pand", 0xffffff, {"pand:0:fffffe,pxor:0:1,pand:0:fffffd",
                        "pand:0:ffffdf,pxor:0:20", "pand:0:fffbff,pxor:0:400"}},
    {"por", 0, {"por:0:1,pxor:0:1,por:0:2", "por:0:20,pxor:0:20",
                "por:0:400,pxor:0:400"}},
    {"pxor", 7, {"pxor:0:1,pxor:0:10,pxor:0:100", "pxor:0:1000,pxor:0:10000",
                 "pxor:0:100000,pxor:0:1000000"}},
    {"fadd", 5, {"fadd:0:1,fadd:0:10,fadd:0:100", "fadd:0:1000,fadd:0:10000",
                 "fadd:0:100000,fadd:0:1000000"}},
    {"fand", 0xffffff, {"fand:0:fffffe,fxor:0:1,fand:0:fffffd",
                        "fand:0:ffffdf,fxor:0:20", "fand:0:fffbff,fxor:0:400"}},
    {"for", 0, {"for:0:1,fxor:0:1,for:0:2", "for:0:20,fxor:0:20",
                "for:0:400,fxor:0:400"}},
    {"fxor", 7, {"fxor:0:1,fxor:0:10,fxor:0:100", "fxor:0:1000,fxor:0:10000",
                 "fxor:0:100000,fxor:0:1000000"}},
    {"swap", 9, {"swap:0:11,swap:0:12,swap:0:13", "swap:0:21,swap:0:22",
                 "swap:0:31,swap:0:32"}},
    {"cswap", 9, {"cswap:9:11,cswap:*:12,cswap:*:13", "cswap:9:21,cswap:*:22",
                  "cswap:9:31,cswap:*:32"}},
    {"cswap_fail", 9, {"cswap:7:11,cswap:8:12,cswap:9:13",
                       "cswap:7:21,cswap:9:22", "cswap:6:31,cswap:9:32"}},
    /* Values return */
    {"cswap_aba", 1, {"cswap:1:2,cswap:2:1,cswap:1:2", "cswap:2:1,cswap:1:2",
                      "cswap:1:2,cswap:2:1"}}
};

/* $S: what is the first client's; $N: the event; $M: the one behind it */
typedef struct {
    const char *name;
    const char *rules[2];
    int        breaks;   /* The first client's link */
    int        is_late;
} ft_fault_t;

static const ft_fault_t ft_faults[] = {
    {"drop", {"packet $S nth=$N drop"}, 0, 0},
    {"silent", {"packet $S nth=$N silent=1:0"}, 1, 0},
    {"down", {"packet $S nth=$N down=1:0"}, 1, 0},
    {"exec_silent", {"exec $S nth=$N silent=1:0"}, 1, 0},
    /* ... and what follows by the other link takes its time: a UID that a flush does
     * not wait for is seen */
    {"exec_slow", {"exec $S nth=$N silent=1:0",
                   "packet host=1 link=1 op=send count=all delay=10ms"}, 1, 0},
    {"exec_down", {"exec $S nth=$N down=1:0"}, 1, 0},
    {"ack_drop", {"ack $S nth=$N drop"}, 0, 0},
    {"ack_silent", {"ack $S nth=$N silent=1:0"}, 1, 0},
    {"ack_down", {"ack $S nth=$N down=1:0"}, 1, 0},
    {"mute", {"ack $S nth=$N count=all drop"}, 0, 0},
    /* It arrives when its requester has given up */
    {"late", {"packet $S nth=$N delay=30ms",
              "packet $S nth=$M count=all drop"}, 0, 1}
};

#define FT_NUM(_array) (sizeof(_array) / sizeof((_array)[0]))

typedef struct {
    /* Options */
    const char  *prefix;
    const char  *job;
    const char  *plugin;
    const char  *name;
    const char  *plans;      /* Comma-separated, or NULL: all */
    const char  *faults;
    unsigned    widths[2];
    unsigned    clients[2];
    const char  *phase;      /* lane: on RC; msg: messages, from the start on DC */
    unsigned    first;
    unsigned    last;
    unsigned    stride;
    double      budget;
    int         verbose;
    /* State */
    ft_fabric_t fabric;
    ft_child_t  server;
    ft_child_t  client[FT_CLIENTS_MAX];
    FILE        *log;
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
} ft_sweep_t;

/* One run */
typedef struct {
    const ft_plan_t  *plan;
    const ft_fault_t *fault;
    unsigned         width;
    unsigned         clients;
    unsigned         n;
} ft_point_t;


/* --- Set-up --- */

static void ft_stop(ft_sweep_t *sweep, const char *text)
{
    fflush(sweep->log);
    ft_fabric_down(&sweep->fabric);
    ft_fatal("%s, see the log", text);
}

/* @return an answer "ok..." without that */
static const char *ft_ok(ft_sweep_t *sweep, ft_child_t *child)
{
    const char *answer = ft_child_answer(child, FT_STEP_TIME);

    if ((answer == NULL) || strncmp(answer, "ok", 2)) {
        fprintf(sweep->log, "%s does not answer or has ended\n", child->name);
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
        ft_stop(sweep, "a process has failed");
    }

    return answer;
}

static void ft_start_job(ft_sweep_t *sweep, ft_child_t *child, const char *role,
                         unsigned host)
{
    char runner[256], host_text[16];
    char *argv[FT_MAX_ARGS] = {sweep->fabric.emu, "exec", "-n",
                               sweep->fabric.name, host_text, "--", runner};
    unsigned argc           = 7;

    if (sweep->plugin != NULL) {
        argv[argc++] = "-l";
        argv[argc++] = (char*)sweep->plugin;
    }

    argv[argc++] = (char*)sweep->job;
    argv[argc++] = (char*)role;
    snprintf(runner, sizeof(runner), "%s/bin/rc_varuna_run", sweep->prefix);
    snprintf(host_text, sizeof(host_text), "%u", host);
    ft_child_start(child, role, sweep->log, argv);
}

static void ft_setup(ft_sweep_t *sweep)
{
    char name[64], connect[FT_ANSWER_MAX + 16];
    const char *answer;
    unsigned i;

    snprintf(name, sizeof(name), "%s%d", sweep->name, getpid());
    ft_fabric_up(&sweep->fabric, sweep->prefix, name, FT_CLIENTS_MAX + 1, 2,
                 "--trace 65536");
    ft_start_job(sweep, &sweep->server, "server", 0);
    answer = ft_child_answer(&sweep->server, FT_STEP_TIME);
    if ((answer == NULL) ||
        (sscanf(answer, "address 0x%" SCNx64, &sweep->base) != 1)) {
        ft_stop(sweep, "the server did not start");
    }

    snprintf(connect, sizeof(connect), "connect %s",
             answer + strlen("address "));
    for (i = 0; i < FT_CLIENTS_MAX; ++i) {
        ft_start_job(sweep, &sweep->client[i], "client", i + 1);
        answer = ft_child_answer(&sweep->client[i], FT_STEP_TIME);
        if ((answer == NULL) || strcmp(answer, "ready")) {
            ft_stop(sweep, "a client did not start");
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

    ft_fabric_down(&sweep->fabric);
}

/* --- One run --- */

static void ft_report(ft_sweep_t *sweep, const ft_point_t *point,
                      const char *text)
{
    ++sweep->failures;
    printf("FAILED: -p %s -s %s -w %u -c %u -f %s -n %u (run %u): %s\n",
           sweep->phase, point->plan->name, point->width, point->clients,
           point->fault->name, point->n, sweep->runs, text);
    fprintf(sweep->log, "FAILED: run %u: %s\n", sweep->runs, text);
}

static char *ft_trace(ft_sweep_t *sweep)
{
    return ft_fabric_run(&sweep->fabric, "trace", "--json --from %" PRIu64,
                         sweep->seq + 1);
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
                ft_stop(sweep, "a client does not come to RC on the first link");
            }
            ft_ask(sweep, &sweep->client[i], "idle 0.005");
        }

        first = (i == 0) ? qpn : first;
    }

    return first;
}

static void ft_format_rule(const ft_point_t *point, const char *rule,
                           uint32_t qpn, char *text)
{
    for (; *rule != '\0'; ++rule) {
        if (*rule != '$') {
            *text++ = *rule;
            continue;
        }

        switch (*++rule) {
        case 'S':
            text += (qpn != 0) ?
                    sprintf(text, "host=1 link=0 qp=0x%x", qpn) :
                    sprintf(text, "host=1 link=0 op=send");
            break;
        case 'N':
            text += sprintf(text, "%u", point->n);
            break;
        default:
            text += sprintf(text, "%u", point->n + 1);
            break;
        }
    }

    *text = '\0';
}

static void ft_arm(ft_sweep_t *sweep, const ft_point_t *point, uint32_t qpn)
{
    char rule[256];
    unsigned i;

    for (i = 0; (i < 2) && (point->fault->rules[i] != NULL); ++i) {
        ft_format_rule(point, point->fault->rules[i], qpn, rule);
        fprintf(sweep->log, "rule: %s\n", rule);
        ft_fabric_do(&sweep->fabric, "fault", "add %s", rule);
    }
}

/* The word is changed by one NIC only, each time from what was left */
static void ft_judge_trace(ft_sweep_t *sweep, const ft_point_t *point)
{
    uint64_t mask   = (point->width == 8) ? UINT64_MAX : UINT32_MAX;
    uint64_t value  = point->plan->first & mask;
    unsigned others = 0, broken = 0;
    char *trace, *text;
    ft_entry_t entry;

    trace = text = ft_trace(sweep);
    while (ft_trace_next(&text, &entry)) {
        sweep->seq = entry.seq;
        if ((entry.host != 0) || (entry.addr != sweep->base) ||
            !entry.is_cas || entry.duplicate) {
            continue;
        }

        others += (entry.link != 0);
        broken += ((entry.data & mask) != value);
        if ((entry.data & mask) == (entry.compare & mask)) {
            value = entry.swap & mask;
        }
    }

    free(trace);
    if (others > 0) {
        ft_report(sweep, point, "trace: not the home NIC");
    } else if (broken > 0) {
        ft_report(sweep, point, "trace: the word has changed otherwise");
    }
}

static void ft_judge(ft_sweep_t *sweep, const ft_point_t *point,
                     ft_atom_t atoms[][FT_ATOM_MAX], const int *counts)
{
    uint64_t mask = (point->width == 8) ? UINT64_MAX : UINT32_MAX;
    char line[FT_ATOM_TEXT_MAX], text[2048];
    size_t length;
    uint64_t last;
    unsigned i;
    int j;

    last = strtoull(ft_ask(sweep, &sweep->server, "get"), NULL, 16);
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

    ft_judge_trace(sweep, point);
}

/* @return whether the fault has hit something */
static int ft_run(ft_sweep_t *sweep, const ft_point_t *point)
{
    ft_atom_t atoms[FT_CLIENTS_MAX][FT_ATOM_MAX];
    int counts[FT_CLIENTS_MAX];
    char text[64];
    const char *answer;
    uint32_t qpn;
    uint64_t fired;
    unsigned i;

    ft_fabric_do(&sweep->fabric, "fault", "clear");
    if (point->fault->breaks) {
        ft_fabric_do(&sweep->fabric, "link", "1:0 up");
    }

    ++sweep->runs;
    fprintf(sweep->log, "--- run %u: %s %u %u %s %u\n", sweep->runs,
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
            ft_stop(sweep, "a run has failed");
        }

        counts[i]        = ft_atoms_parse(answer + 1, atoms[i]);
        sweep->atomics  += counts[i];
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

    fired = ft_fabric_fired(&sweep->fabric, 0);
    ft_judge(sweep, point, atoms, counts);
    if (sweep->verbose) {
        printf("run %u: %s %u %u %s %u: fired %" PRIu64 "\n", sweep->runs,
               point->plan->name, point->width, point->clients,
               point->fault->name, point->n, fired);
    }

    sweep->points += (fired > 0);
    return fired > 0;
}

/* --- All runs --- */

static void ft_series(ft_sweep_t *sweep, ft_point_t *point)
{
    ++sweep->series;
    for (point->n = sweep->first; point->n <= sweep->last;
         point->n += sweep->stride) {
        if ((sweep->budget > 0) &&
            (ft_clock() - sweep->start > sweep->budget)) {
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

static int ft_is_listed(const char *list, const char *name)
{
    size_t length = strlen(name);
    const char *at;

    for (at = list; (at != NULL) && ((at = strstr(at, name)) != NULL);
         at += length) {
        if (((at == list) || (at[-1] == ',')) &&
            ((at[length] == ',') || (at[length] == '\0'))) {
            return 1;
        }
    }

    return list == NULL;
}

static void ft_all(ft_sweep_t *sweep)
{
    unsigned plan, fault, width, clients;
    ft_point_t point;

    for (plan = 0; plan < FT_NUM(ft_plans); ++plan) {
        for (fault = 0; fault < FT_NUM(ft_faults); ++fault) {
            if (!ft_is_listed(sweep->plans, ft_plans[plan].name) ||
                !ft_is_listed(sweep->faults, ft_faults[fault].name)) {
                continue;
            }

            for (width = 0; width < 2; ++width) {
                for (clients = 0; clients < 2; ++clients) {
                    point.plan    = &ft_plans[plan];
                    point.fault   = &ft_faults[fault];
                    point.width   = sweep->widths[width];
                    point.clients = sweep->clients[clients];
                    if ((point.width != 0) && (point.clients != 0)) {
                        ft_series(sweep, &point);
                    }
                }
            }
        }
    }
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
           "  -N NAME      first part of the fabric's name (atoms)\n"
           "  -P FILE      this plugin instead of the installed one\n"
           "  -l FILE      log of all processes (ft_atom_sweep.log)\n"
           "  -v           a line for each run\n"
           "plans:");
    for (i = 0; i < FT_NUM(ft_plans); ++i) {
        printf(" %s", ft_plans[i].name);
    }

    printf("\nfaults:");
    for (i = 0; i < FT_NUM(ft_faults); ++i) {
        printf(" %s", ft_faults[i].name);
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
        if (sscanf(arg, "%u-%u", &sweep->first, &sweep->last) == 1) {
            sweep->last = sweep->first;
        }
        break;
    case 't':
        sweep->stride = atoi(arg);
        break;
    case 'T':
        sweep->budget = atof(arg);
        break;
    case 'N':
        sweep->name = arg;
        break;
    case 'P':
        sweep->plugin = arg;
        break;
    default:
        ft_usage();
    }
}

static void ft_parse(ft_sweep_t *sweep, int argc, char **argv)
{
    const char *log = "ft_atom_sweep.log";
    int c;

    while ((c = getopt(argc, argv, "s:f:w:c:p:n:t:T:N:P:l:vh")) != -1) {
        if (c == 'l') {
            log = optarg;
        } else if (c == 'v') {
            sweep->verbose = 1;
        } else {
            ft_parse_one(sweep, c, optarg);
        }
    }

    if ((argc - optind != 2) || (sweep->stride == 0) || (sweep->first == 0) ||
        (sweep->clients[0] > FT_CLIENTS_MAX)) {
        ft_usage();
    }

    sweep->prefix = argv[optind];
    sweep->job    = argv[optind + 1];
    sweep->log    = fopen(log, "w");
    if (sweep->log == NULL) {
        ft_fatal("cannot write %s", log);
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
        .name    = "atoms"
    };

    ft_parse(&sweep, argc, argv);
    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_setup(&sweep);
    sweep.start = ft_clock();
    ft_all(&sweep);
    printf("swept: %u fault points in %u runs of %u series, %u atomics, %.1f s;"
           " switches %u; series cut by the time limit %u; failures %u\n",
           sweep.points, sweep.runs, sweep.series, sweep.atomics,
           ft_clock() - sweep.start, sweep.switches, sweep.cut, sweep.failures);
    ft_cleanup(&sweep);
    fclose(sweep.log);
    return ((sweep.failures == 0) && (sweep.points > 0)) ? 0 : 1;
}
