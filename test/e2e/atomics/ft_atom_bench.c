/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The benchmark of atomics (contrib/bench/atomics.sh), between two emulated hosts.
 *
 *     ft_atom_bench [-n COUNT] cost MODE PREFIX JOB
 *     ft_atom_bench [-n COUNT] [-s SEED] cas MODE PREFIX JOB
 *     ft_atom_bench [-n COUNT] until|many|fenced MODE PREFIX JOB
 *
 * cost: COUNT atomics, one after the other. Prints for each operation its time,
 * messages on the wire, and round trips (from the time when each request is delayed by
 * FT_DELAY).
 *
 * cas: COUNT batches of compare and swap, one on each of 16 words. In each batch the
 * link fails at a random compare and swap; answers to some earlier ones are lost.
 * Prints how many were executed but not answered, by the emulator's trace; how many of
 * these returned their result without a second execution; and errors.
 *
 * For tests: "until": the server's CPU polls a word while the client adds to it COUNT
 * times; prints the number of UIDs that it saw. "many": COUNT times 64 concurrent
 * atomics, each of which needs a slot, of 4 and of 8 bytes. "fenced": COUNT times an
 * atomic, a put and an atomic of one word with fences between, of 4 and of 8 bytes.
 */
#include "ft_atom_batch.h"
#include "ft_clock.h"
#include "ft_atom_chain.h"
#include "ft_driver.h"
#include "ft_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FT_ANSWER_TIME 120   /* Seconds */
#define FT_WARM_TIME   60    /* Seconds; ends only a hang */
#define FT_WARM_OFFSET 64
#define FT_DELAY       5     /* Milliseconds */
#define FT_DELAYED     20    /* Atomics */
#define FT_UID         (1ul << 63)

typedef struct {
    ft_driver_t driver;
    const char  *mode;
    unsigned    count;
    uint64_t    random;
    ft_child_t  server;
    ft_child_t  client;
    uint64_t    base;
    uint64_t    seq;
    /* Of all batches */
    unsigned    posted;
    unsigned    executed;    /* ... at the failure, but not answered */
    unsigned    recovered;
    unsigned    repeated;
    unsigned    errors;
    unsigned    failures;    /* Batches in which the link has failed */
} ft_bench_t;

/* The trace of one word in one batch */
typedef struct {
    ft_atom_chain_t chain;
    unsigned        occupied;
    unsigned        unanswered;
} ft_word_t;


/* @return The number of requests executed since the last call */
static unsigned ft_count_trace(ft_bench_t *bench)
{
    char *trace  = ft_fabric_trace(&bench->driver.fabric, bench->seq, "");
    char *text   = trace;
    unsigned num = 0;
    ft_entry_t entry;

    while (ft_trace_next(&text, &entry)) {
        bench->seq = entry.seq;
        ++num;
    }

    free(trace);
    return num;
}

/* Access a word until RC on the first link is used. @return Its queue pair */
static uint32_t ft_warm(ft_bench_t *bench)
{
    double end   = ft_now() + FT_WARM_TIME;
    uint32_t qpn = 0;
    char *trace, *text;
    ft_entry_t entry;

    while ((qpn == 0) && (ft_now() < end)) {
        ft_driver_ask(&bench->driver, &bench->client, "idle 0.005");
        ft_driver_ask(&bench->driver, &bench->client, "warm");
        trace = text = ft_fabric_trace(&bench->driver.fabric, bench->seq, "");
        while (ft_trace_next(&text, &entry)) {
            bench->seq = entry.seq;
            if ((entry.host == 0) && (entry.link == 0) && entry.is_rc &&
                (entry.src_host == 1)) {
                qpn = entry.src_qpn;
            }
        }
        free(trace);
    }

    if (qpn == 0) {
        ft_driver_fatal(&bench->driver, "RC is not connected");
    }

    return qpn;
}

static void ft_setup(ft_bench_t *bench)
{
    char address[FT_ANSWER_MAX];

    ft_driver_up(&bench->driver, 2, 2, "--trace 1048576");
    ft_driver_start_job(&bench->driver, &bench->server, "server", 0, NULL);
    ft_driver_await_server(&bench->driver, &bench->server, &bench->base, address);
    ft_driver_start_job(&bench->driver, &bench->client, "client", 1, NULL);
    ft_driver_connect(&bench->driver, &bench->client, address);
    ft_driver_ask(&bench->driver, &bench->client, "open");
    if (strcmp(bench->mode, "proxy")) {
        ft_warm(bench);
    } else {
        /* Its atomics never use RC, so no event shows that it is connected */
        ft_driver_ask(&bench->driver, &bench->client, "warm");
        ft_driver_ask(&bench->driver, &bench->client, "idle 0.5");
    }
}

/* --- Cost --- */

/* @return The median, or the shortest time */
static double ft_time(ft_bench_t *bench, unsigned count, int alone,
                      const char *atom, int shortest)
{
    double median, minimum;

    sscanf(ft_driver_ask(&bench->driver, &bench->client, "time 8 %u %d %s", count,
                         alone, atom), "%lf %lf", &median, &minimum);
    return shortest ? minimum : median;
}

static void ft_cost_of(ft_bench_t *bench, const char *name, int alone,
                       const char *atom)
{
    const ft_fabric_t *fabric = &bench->driver.fabric;
    double ns, delayed, messages;

    ft_driver_ask(&bench->driver, &bench->server, "set 1");
    ft_time(bench, FT_DELAYED, alone, atom, 0);
    ft_driver_ask(&bench->driver, &bench->server, "set 1");
    ft_count_trace(bench);
    ns       = ft_time(bench, bench->count, alone, atom, 0);
    messages = (double)ft_count_trace(bench) / bench->count;
    ft_driver_ask(&bench->driver, &bench->server, "set 1");
    ft_fabric_do(fabric, "fault", "add packet host=1 count=all delay=%ums",
                 FT_DELAY);
    delayed  = ft_time(bench, FT_DELAYED, alone, atom, 1);
    ft_fabric_do(fabric, "fault", "clear");
    printf("%s %s %.2f %.2f %.1f\n", bench->mode, name, ns / 1000, messages,
           delayed / (FT_DELAY * 1e6));
}

static void ft_cost(ft_bench_t *bench)
{
    ft_cost_of(bench, "cswap", 0, "cswap:1:2");
    ft_cost_of(bench, "cswap-fails", 0, "cswap:5:5");
    ft_cost_of(bench, "fadd", 0, "fadd:0:1");
    ft_cost_of(bench, "fadd-alone", 1, "fadd:0:1");
    ft_cost_of(bench, "swap-alone", 1, "swap:8:7");
    ft_cost_of(bench, "add-and-flush", 0, "padd:0:1");
}

/* --- Batches that fail --- */

static void ft_read_words(ft_bench_t *bench, ft_word_t *words)
{
    char *trace = ft_fabric_trace(&bench->driver.fabric, bench->seq, "");
    char *text  = trace;
    ft_entry_t entry;
    uint64_t i;

    while (ft_trace_next(&text, &entry)) {
        bench->seq = entry.seq;
        i = (entry.addr - bench->base - FT_ATOM_WORDS_STRIDE) /
            (FT_ATOM_WORDS_STRIDE / 2);
        if ((entry.host != 0) || !entry.is_cas || entry.duplicate ||
            (i >= FT_ATOM_BATCH_MAX) || (entry.data != entry.compare)) {
            continue;
        }

        ft_atom_chain_add(&words[i].chain, entry.data, entry.swap);
        if (!(entry.data & FT_UID)) {
            ++words[i].occupied; /* Or executed by the proxy in one step */
            words[i].unanswered += !entry.acked;
        }
    }

    free(trace);
}

static void ft_judge_batch(ft_bench_t *bench, ft_word_t *words,
                           const char *results, uint64_t before, uint64_t value)
{
    const char *last = ft_driver_ask(&bench->driver, &bench->server, "batch 16");
    uint64_t result, left, first;
    unsigned i;
    int length;

    for (i = 0; i < FT_ATOM_BATCH_MAX; ++i) {
        first = (before == 0) ? 0 : before + i;
        sscanf(results, " %" SCNx64 "%n", &result, &length);
        results += length;
        sscanf(last, " %" SCNx64 "%n", &left, &length);
        last    += length;
        ++bench->posted;
        bench->executed += (words[i].unanswered > 0);
        bench->repeated += (words[i].unanswered == 0);
        if ((result != first) || (left != value + i) ||
            (words[i].occupied != 1) ||
            (ft_atom_chain_check(&words[i].chain, first, left) != NULL)) {
            ++bench->errors;
        } else {
            bench->recovered += (words[i].unanswered > 0);
        }
    }
}

static void ft_batch(ft_bench_t *bench, uint64_t before, uint64_t value)
{
    const ft_fabric_t *fabric          = &bench->driver.fabric;
    ft_word_t words[FT_ATOM_BATCH_MAX] = {{{0}}};
    unsigned fails_at                  = 1 + ft_random(&bench->random,
                                                       2 * FT_ATOM_BATCH_MAX);
    unsigned mute_from                 = 1 + ft_random(&bench->random, fails_at);
    char results[FT_ANSWER_MAX];
    unsigned i;
    uint32_t qpn;

    ft_fabric_do(fabric, "fault", "clear");
    ft_fabric_do(fabric, "link", "1:0 up");
    qpn = ft_warm(bench);
    ft_fabric_do(fabric, "fault", "add exec host=1 link=0 qp=0x%x nth=%u"
                 " silent=1:0", qpn, fails_at);
    ft_fabric_do(fabric, "fault", "add ack host=1 link=0 qp=0x%x nth=%u"
                 " count=all drop", qpn, mute_from);
    snprintf(results, sizeof(results), "%s",
             ft_driver_ask(&bench->driver, &bench->client, "batch %u %" PRIx64,
                           FT_ATOM_BATCH_MAX, value));
    bench->failures += (ft_fabric_fired(fabric, 0) > 0);
    ft_read_words(bench, words);
    ft_judge_batch(bench, words, results, before, value);
    for (i = 0; i < FT_ATOM_BATCH_MAX; ++i) {
        ft_atom_chain_clear(&words[i].chain);
    }
}

static void ft_cas(ft_bench_t *bench)
{
    uint64_t before = 0, value;
    unsigned i;

    for (i = 0; i < bench->count; ++i) {
        value = (i + 1) * 0x100;
        ft_batch(bench, before, value);
        before = value;
    }

    printf("%s batches %u failures %u posted %u executed %u recovered %u"
           " others %u errors %u\n", bench->mode, bench->count,
           bench->failures, bench->posted, bench->executed, bench->recovered,
           bench->repeated, bench->errors);
}

/* --- Tests --- */

static void ft_until(ft_bench_t *bench)
{
    const char *answer;

    ft_driver_ask(&bench->driver, &bench->server, "set 0");
    ft_child_send(&bench->server, "until %x", bench->count);
    ft_time(bench, bench->count, 0, "fadd:0:1", 0);
    answer = ft_child_answer(&bench->server, FT_ANSWER_TIME);
    if ((answer == NULL) || strncmp(answer, "ok ", 3)) {
        ft_driver_fatal(&bench->driver, "the server does not see the value");
    }

    printf("%s until: UIDs %s\n", bench->mode, answer + 3);
}

static void ft_many(ft_bench_t *bench)
{
    static const unsigned widths[] = {8, 4};
    unsigned long value;
    const char *answer;
    unsigned i, j;
    int length;

    for (i = 0; i < 2; ++i) {
        ft_driver_ask(&bench->driver, &bench->client, "many %u %u %u", widths[i],
                      FT_ATOM_MANY_MAX, bench->count);
        answer = ft_driver_ask(&bench->driver, &bench->server, "many %u",
                               FT_ATOM_MANY_MAX);
        for (j = 0; j < FT_ATOM_MANY_MAX; ++j) {
            sscanf(answer, " %lu%n", &value, &length);
            answer        += length;
            bench->errors += (value != (i + 1) * bench->count);
        }
    }

    printf("%s many: errors %u\n", bench->mode, bench->errors);
}

/* Delay the results of some atomics; otherwise they would complete before the put after
 * the fence is posted. */
static void ft_fenced(ft_bench_t *bench)
{
    unsigned width;

    ft_fabric_do(&bench->driver.fabric, "fault", "add %s prob=0.1 count=all delay=1ms",
                 strcmp(bench->mode, "proxy") ? "ack op=cas" :
                 "packet host=1 op=send");
    for (width = 4; width <= 8; width += 4) {
        ft_driver_ask(&bench->driver, &bench->server, "set 0");
        ft_driver_ask(&bench->driver, &bench->client, "fenced %u %u", width,
                      bench->count);
    }

    ft_fabric_do(&bench->driver.fabric, "fault", "list --check");
    ft_fabric_do(&bench->driver.fabric, "fault", "clear");
    printf("%s fenced: ok\n", bench->mode);
}

static void ft_usage(void)
{
    printf("usage: ft_atom_bench [-n COUNT] [-s SEED] [-N NAME]"
           " cost|cas|until|many|fenced MODE PREFIX JOB\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static ft_bench_t bench = {
        .driver = {.name = "atombench", .log_name = "ft_atom_bench.log",
                   .answer_time = FT_ANSWER_TIME},
        .count  = 100
    };
    static const struct {
        const char *name;
        void       (*run)(ft_bench_t *bench);
    } kinds[] = {{"cost", ft_cost}, {"cas", ft_cas}, {"until", ft_until},
                 {"many", ft_many}, {"fenced", ft_fenced}};
    const unsigned num_kinds = sizeof(kinds) / sizeof(kinds[0]);
    const ft_option_t options[] = {
        {'n', FT_OPTION_UNSIGNED, &bench.count},
        {'s', FT_OPTION_U64, &bench.random},
        {0}
    };
    unsigned i;

    if (ft_driver_parse(&bench.driver, argc, argv, options, 2) != 0) {
        ft_usage();
    }

    for (i = 0; (i < num_kinds) && strcmp(argv[optind], kinds[i].name); ++i) {
    }

    if ((i == num_kinds) || (bench.count == 0)) {
        ft_usage();
    }

    bench.random = (bench.random + 1) * 0x9e3779b97f4a7c15ul;
    bench.mode = argv[optind + 1];
    setenv("UCX_RC_VARUNA_ATOMIC_MODE", bench.mode, 1);
    ft_setup(&bench);
    kinds[i].run(&bench);
    ft_child_stop(&bench.client);
    ft_child_stop(&bench.server);
    ft_fabric_down(&bench.driver.fabric);
    return (bench.errors == 0) ? 0 : 1;
}
