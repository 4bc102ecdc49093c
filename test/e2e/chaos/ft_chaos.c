/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The chaos test: several clients read and write registers of several servers
 * (ft_registers.c) while links and packets fail at random. In the end every operation
 * must have completed once and without an error, the history of each register must be
 * linearizable (ft_history.c), messages must have arrived once and in order, and the
 * emulator's trace must contain each write once, in the order in which its client
 * posted it. Writes in the gap of a lane without a PSN (docs/RECOVERY.md, "Ambiguous")
 * may be executed twice, at most as often as clients report; they count as two writes.
 *
 *     ft_chaos [OPTIONS] PREFIX JOB       -h: help
 */
#include "ft_driver.h"
#include "ft_clock.h"
#include "ft_history.h"
#include "ft_plan.h"
#include "ft_quirk.h"
#include "ft_seeds.h"
#include "ft_storm.h"
#include "ft_trace.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_MAX_JOBS    (FT_CHAOS_SERVERS + FT_CHAOS_CLIENTS)
#define FT_MAX_TRIES   5     /* Of a seed whose faults do not fire, each twice as long */
#define FT_MAX_WRITES  (1u << 20)
#define FT_ANSWER_TIME 120   /* Seconds; jobs limit their runs themselves */

typedef struct {
    /* Options */
    ft_driver_t driver;
    ft_seeds_t  seeds;
    unsigned    servers;
    int         kills;       /* NICs die */
    /* State of one seed */
    ft_child_t  jobs[FT_MAX_JOBS];   /* By host: servers, then clients */
    ft_shared_t *shared[FT_CHAOS_SERVERS];
    char        addresses[FT_CHAOS_SERVERS][FT_ANSWER_MAX];
    uint64_t    base[FT_CHAOS_SERVERS];
    ft_storm_t  storm;
    uint64_t    trace_seq;
    uint8_t     *executed[FT_CHAOS_CLIENTS];  /* Executions of each write */
    uint64_t    newest[FT_CHAOS_CLIENTS][FT_CHAOS_SERVERS];
    uint64_t    again;
    uint64_t    ambiguous;
    uint64_t    doubtful;    /* Of these, repeated, */
    uint64_t    equal;       /* and the others */
    uint64_t    covered;     /* Of these, not executed, but a later write to its place */
    uint64_t    switches;
    uint64_t    operations;
} ft_chaos_t;


/* --- Jobs --- */

static void ft_chaos_memory_name(unsigned server, char *name, size_t max)
{
    snprintf(name, max, "ft_chaos.%d.%u", getpid(), server);
}

static void ft_chaos_make_memory(ft_chaos_t *chaos, unsigned server)
{
    char name[64];
    int fd;

    ft_chaos_memory_name(server, name, sizeof(name));
    fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
    if ((fd < 0) || (ftruncate(fd, sizeof(ft_shared_t)) != 0)) {
        ft_fatal("cannot make %s", name);
    }

    chaos->shared[server] = mmap(NULL, sizeof(ft_shared_t),
                                 PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (chaos->shared[server] == MAP_FAILED) {
        ft_fatal("cannot map %s", name);
    }
}

static void ft_chaos_start_job(ft_chaos_t *chaos, unsigned host)
{
    int server = (host < chaos->servers);
    char memory[64];

    ft_chaos_memory_name(server ? host : 0, memory, sizeof(memory));
    ft_driver_start_job(&chaos->driver, &chaos->jobs[host],
                        server ? "server" : "client", host, memory);
}

static void ft_chaos_setup(ft_chaos_t *chaos)
{
    unsigned hosts = chaos->servers + chaos->seeds.clients;
    unsigned host, i;

    ft_driver_up(&chaos->driver, hosts, chaos->seeds.links, "--trace 262144");
    for (host = 0; host < hosts; ++host) {
        if (host < chaos->servers) {
            ft_chaos_make_memory(chaos, host);
        }
        ft_chaos_start_job(chaos, host);
    }

    for (host = 0; host < chaos->servers; ++host) {
        ft_driver_await_server(&chaos->driver, &chaos->jobs[host], &chaos->base[host],
                               chaos->addresses[host]);
    }

    for (; host < hosts; ++host) {
        ft_driver_await_client(&chaos->driver, &chaos->jobs[host]);
        for (i = 0; i < chaos->servers; ++i) {
            ft_driver_ask(&chaos->driver, &chaos->jobs[host], "server %u %s", i,
                          chaos->addresses[i]);
        }
    }
}

static void ft_chaos_cleanup(ft_chaos_t *chaos)
{
    unsigned host, i;
    char name[64];

    for (i = 0; i < chaos->servers + chaos->seeds.clients; ++i) {
        host = chaos->servers + chaos->seeds.clients - 1 - i; /* Clients first */
        ft_driver_stop_job(&chaos->driver, &chaos->jobs[host]);
    }

    for (i = 0; i < chaos->servers; ++i) {
        munmap(chaos->shared[i], sizeof(ft_shared_t));
        ft_chaos_memory_name(i, name, sizeof(name));
        unlink(name);
    }

    ft_fabric_down(&chaos->driver.fabric);
}

/* --- Judging --- */

static void ft_chaos_judge_entry(ft_chaos_t *chaos, const ft_entry_t *entry)
{
    unsigned client = (entry->data >> 56) - 1;
    uint64_t number = entry->data & ((1ull << 56) - 1);

    if (entry->duplicate || !entry->is_write) {
        return;
    }

    if ((client >= chaos->seeds.clients) || (number >= FT_MAX_WRITES) ||
        (entry->length != sizeof(uint64_t))) {
        ft_driver_report(&chaos->driver, "entry %" PRIu64 " of the trace: unknown write"
                         " 0x%" PRIx64, entry->seq, entry->data);
        return;
    }

    if (chaos->executed[client][number] < UINT8_MAX) {
        ++chaos->executed[client][number];
    }

    if (chaos->executed[client][number] > 1) {
        ++chaos->again;
        fprintf(chaos->driver.log, "again: client %u, write %" PRIu64
                ", entry %" PRIu64 "\n", client, number, entry->seq);
    }

    if (number < chaos->newest[client][entry->host]) {
        ft_driver_report(&chaos->driver, "entry %" PRIu64 " of the trace: write %"
                         PRIu64 " of client %u came after %" PRIu64, entry->seq,
                         number, client, chaos->newest[client][entry->host]);
    }

    chaos->newest[client][entry->host] = number;
}

static void ft_chaos_judge_trace(ft_chaos_t *chaos)
{
    char *trace = ft_fabric_trace(&chaos->driver.fabric, chaos->trace_seq, "");
    char *text  = trace;
    ft_entry_t entry;

    while (ft_trace_next(&text, &entry)) {
        chaos->trace_seq = entry.seq;
        if ((entry.host < chaos->servers) &&
            (entry.addr >= chaos->base[entry.host]) &&
            (entry.addr < chaos->base[entry.host] +
                          (FT_CHAOS_REGISTERS * FT_CHAOS_STRIDE))) {
            ft_chaos_judge_entry(chaos, &entry);
        }
    }

    free(trace);
}

static uint64_t ft_chaos_number(const ft_record_t *record)
{
    return record->value & ((1ull << 56) - 1);
}

static int ft_chaos_compare_registers(const void *a, const void *b)
{
    const ft_record_t *r1 = a, *r2 = b;

    return ((r1->server * FT_CHAOS_REGISTERS) + r1->reg) -
           ((r2->server * FT_CHAOS_REGISTERS) + r2->reg);
}

/* Without a PSN, on a network that may be unordered, a write also counts as executed if a
 * later one has written its place (docs/RECOVERY.md). The order is unknown on NICs that
 * have only verbs. */
static int ft_chaos_is_covered(ft_chaos_t *chaos, const ft_record_t *records, size_t num,
                               const ft_record_t *covered)
{
    size_t i;

    if (!ft_quirk_is_on("no-mlx5dv") || (chaos->covered == chaos->equal)) {
        return 0;
    }

    for (i = 0; i < num; ++i) {
        if (records[i].write && (records[i].client == covered->client) &&
            (records[i].value > covered->value) &&
            !ft_chaos_compare_registers(&records[i], covered) &&
            (chaos->executed[records[i].client][ft_chaos_number(&records[i])] > 0)) {
            ++chaos->covered;
            return 1;
        }
    }

    return 0;
}

static void ft_chaos_judge_history(ft_chaos_t *chaos)
{
    ft_record_t *records;
    size_t num, i, end;
    const char *wrong;
    uint64_t number;
    unsigned count;

    chaos->covered = 0;
    records = ft_seeds_records(&chaos->seeds, &chaos->driver, "ft_records",
                               sizeof(*records), &num);
    chaos->operations = num;
    for (i = 0; i < num; ++i) {
        if (!records[i].write) {
            continue;
        }

        number = ft_chaos_number(&records[i]);
        count  = chaos->executed[records[i].client][number];
        if ((count == 0) && !ft_chaos_is_covered(chaos, records, num, &records[i])) {
            ft_driver_report(&chaos->driver, "write %" PRIu64 " of client %u was never"
                             " executed", number, records[i].client);
        }

        /* Another client may have written it in between. ft_chaos_seed() counts
         * these */
        records[i].again = (count > 1);
    }

    qsort(records, num, sizeof(*records), ft_chaos_compare_registers);
    for (i = 0; i < num; i = end) {
        for (end = i + 1; (end < num) &&
                          !ft_chaos_compare_registers(&records[i],
                                                      &records[end]); ++end) {
        }

        wrong = ft_history_check(&records[i], end - i);
        if (wrong != NULL) {
            ft_driver_report(&chaos->driver, "register %u of server %u is not"
                             " linearizable: %s", records[i].reg,
                             records[i].server, wrong);
        }
    }

    free(records);
}

static void ft_chaos_judge_messages(ft_chaos_t *chaos, const uint64_t sent[][2])
{
    unsigned server, client;

    for (server = 0; server < chaos->servers; ++server) {
        if (chaos->shared[server]->chaos_errors > 0) {
            ft_driver_report(&chaos->driver, "%u messages at server %u were duplicates or"
                             " out of order", chaos->shared[server]->chaos_errors,
                             server);
        }

        for (client = 0; client < chaos->seeds.clients; ++client) {
            if (chaos->shared[server]->chaos_next[client] !=
                sent[client][server]) {
                ft_driver_report(&chaos->driver, "%" PRIu64 " messages of client %u"
                                 " arrived at server %u, %" PRIu64 " were sent",
                                 chaos->shared[server]->chaos_next[client],
                                 client, server, sent[client][server]);
            }
        }
    }
}

/* --- One seed --- */

static void ft_chaos_start_load(ft_chaos_t *chaos)
{
    unsigned client;

    for (client = 0; client < chaos->seeds.clients; ++client) {
        ft_child_send(&chaos->jobs[chaos->servers + client],
                      "chaos %u %u %u %" PRIu64 " %g ft_records.%u", client,
                      chaos->seeds.clients, chaos->servers, chaos->seeds.seed,
                      chaos->seeds.seconds, client);
    }
}

static void ft_chaos_break(ft_chaos_t *chaos)
{
    double end = ft_now() + chaos->seeds.seconds;

    while ((ft_now() < end) || ft_storm_owes_kill(&chaos->storm)) {
        ft_storm_blow(&chaos->storm);
        ft_chaos_judge_trace(chaos);
    }

    ft_storm_end(&chaos->storm);
}

static void ft_chaos_await_load(ft_chaos_t *chaos, uint64_t sent[][2])
{
    ft_child_t *job;
    const char *answer;
    unsigned client;

    for (client = 0; client < chaos->seeds.clients; ++client) {
        job    = &chaos->jobs[chaos->servers + client];
        answer = ft_child_answer(job, FT_ANSWER_TIME);
        if ((answer != NULL) &&
            (sscanf(answer, "sent %" SCNu64 " %" SCNu64, &sent[client][0],
                    &sent[client][1]) == 2)) {
            answer = ft_child_answer(job, FT_ANSWER_TIME);
        }

        if (answer == NULL) {
            ft_driver_fatal(&chaos->driver, "client %u does not answer or has ended",
                            client);
        } else if (strncmp(answer, "ok", 2)) {
            ft_driver_report(&chaos->driver, "client %u: %s", client, answer);
        }

        chaos->ambiguous += job->ambiguous;
        chaos->doubtful  += job->ambiguous - job->equal;
        chaos->equal     += job->equal;
        chaos->switches  += job->switches;
        if ((job->errors > 0) ||
            ((chaos->storm.dead == 0) && (job->nic_errors > 0))) {
            ft_driver_report(&chaos->driver, "client %u logged errors", client);
        }
    }
}

static void ft_chaos_seed(ft_chaos_t *chaos)
{
    uint64_t sent[FT_CHAOS_CLIENTS][2] = {{0}};
    unsigned failures                     = chaos->driver.failures;
    unsigned client;

    snprintf(chaos->driver.label, sizeof(chaos->driver.label), "seed %" PRIu64,
             chaos->seeds.seed);
    ft_storm_init(&chaos->storm, &chaos->driver, 0, chaos->seeds.seed);
    chaos->trace_seq = chaos->again = chaos->ambiguous = chaos->switches = 0;
    chaos->operations = chaos->doubtful = chaos->equal = 0;
    memset(chaos->newest, 0, sizeof(chaos->newest));
    for (client = 0; client < chaos->seeds.clients; ++client) {
        chaos->executed[client] = calloc(FT_MAX_WRITES, 1);
        if (chaos->executed[client] == NULL) {
            ft_fatal("out of memory");
        }
    }

    fprintf(chaos->driver.log, "--- seed %" PRIu64 "\n", chaos->seeds.seed);
    ft_chaos_setup(chaos);
    if (chaos->kills) {
        ft_storm_set_kills(&chaos->storm, chaos->servers);
    }

    ft_chaos_start_load(chaos);
    ft_chaos_break(chaos);
    ft_chaos_await_load(chaos, sent);
    usleep(100000); /* Wait for delayed packets */
    ft_chaos_judge_trace(chaos);
    ft_chaos_judge_history(chaos);
    ft_chaos_judge_messages(chaos, sent);
    if (chaos->again > chaos->doubtful) {
        ft_driver_report(&chaos->driver, "%" PRIu64 " writes were executed again, %"
                         PRIu64 " were ambiguous", chaos->again,
                         chaos->doubtful);
    }

    ft_chaos_cleanup(chaos);
    for (client = 0; client < chaos->seeds.clients; ++client) {
        free(chaos->executed[client]);
    }

    printf("chaos: seed %" PRIu64 ": %g s, %" PRIu64 " operations, %" PRIu64
           " faults (%" PRIu64 " rules fired), %u NICs dead, %" PRIu64
           " switches, %" PRIu64
           " ambiguous (%" PRIu64 " repeated), %" PRIu64 " executed again, %u"
           " failures\n",
           chaos->seeds.seed, chaos->seeds.seconds, chaos->operations,
           chaos->storm.faults, chaos->storm.fired,
           __builtin_popcount(chaos->storm.dead), chaos->switches,
           chaos->ambiguous, chaos->doubtful, chaos->again,
           chaos->driver.failures - failures);
}

/* On a busy machine no fault may fire within the time, so try again */
static void ft_chaos_seed_tested(ft_chaos_t *chaos)
{
    double seconds = chaos->seeds.seconds;
    unsigned i;

    for (i = 0; i < FT_MAX_TRIES; ++i, chaos->seeds.seconds *= 2) {
        ft_chaos_seed(chaos);
        if ((chaos->switches > 0) && (chaos->operations > 0)) {
            chaos->seeds.seconds = seconds;
            return;
        }
    }

    chaos->seeds.seconds = seconds;
    ft_driver_report(&chaos->driver, "nothing was tested");
}

/* --- Options --- */

static void ft_usage(void)
{
    printf("usage: ft_chaos [OPTIONS] PREFIX JOB\n"
           FT_DRIVER_USAGE("ft_job", "chaos", "ft_chaos.log")
           FT_SEEDS_USAGE("10", "2", "3")
           "  -S SERVERS   at most 2 (2)\n"
           "  -k           NICs of one link die, too\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static ft_chaos_t chaos = {
        .driver  = {.name = "chaos", .log_name = "ft_chaos.log",
                    .answer_time = FT_ANSWER_TIME},
        .seeds   = {.seed = 1, .num = 1, .seconds = 10, .clients = 2,
                    .links = 3},
        .servers = 2
    };
    const ft_option_t options[] = {
        FT_SEEDS_OPTIONS(&chaos.seeds),
        {'S', FT_OPTION_UNSIGNED, &chaos.servers},
        {'k', FT_OPTION_FLAG, &chaos.kills},
        {0}
    };
    unsigned i;

    if ((ft_driver_parse(&chaos.driver, argc, argv, options, 0) != 0) ||
        (chaos.seeds.clients - 1 >= FT_CHAOS_CLIENTS) ||
        (chaos.servers - 1 >= FT_CHAOS_SERVERS)) {
        ft_usage();
    }

    for (i = 0; i < chaos.seeds.num; ++i, ++chaos.seeds.seed) {
        ft_chaos_seed_tested(&chaos);
    }

    return ft_driver_close(&chaos.driver);
}
