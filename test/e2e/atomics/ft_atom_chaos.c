/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The chaos test of atomics: several clients run all kinds of atomics on the same words
 * of a server (ft_atom_load.c), while links and packets fail at random. In the end some
 * order must explain the history of each word (ft_atom_history.c) and its value after
 * all flushes, as the server's CPU sees it. The changes of a word in the emulator's
 * trace must form one chain.
 *
 *     ft_atom_chaos [OPTIONS] PREFIX JOB      -h: help
 *
 * The processes inherit UCX_RC_VARUNA_ATOMIC_MODE, as all settings of UCX.
 */
#include "ft_atom.h"
#include "ft_atom_chain.h"
#include "ft_clock.h"
#include "ft_atom_history.h"
#include "ft_seeds.h"
#include "ft_storm.h"
#include "ft_trace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_ANSWER_TIME 120   /* Seconds; jobs limit their loads themselves */
#define FT_MAX_TRIES   5     /* Of a seed whose faults hit nothing, each twice as long */
#define FT_NUM_COUNTS  (2 * (FT_ATOM_CSWAP + 1) + 1)

typedef struct {
    /* Options */
    ft_driver_t driver;
    ft_seeds_t  seeds;
    unsigned    width;       /* 0: both, in turn */
    int         home_fails;  /* The server's links fail, too */
    int         kills;       /* ... and NICs die */
    /* State of one seed */
    ft_child_t  server;
    ft_child_t  client[FT_ATOM_LOAD_CLIENTS];
    ft_storm_t  storm;
    int         early;       /* The first client's load ended during a wait */
    unsigned    now_width;
    uint64_t    base;
    uint64_t    trace_seq;
    ft_atom_chain_t words[FT_ATOM_WORDS];  /* From the trace */
    unsigned    num_accesses;
    size_t      num;         /* Operations */
    unsigned    switches;
    /* Of all seeds */
    unsigned    all_moves;   /* Of the server's home NIC */
    size_t      counts[FT_NUM_COUNTS]; /* By kind */
} ft_chaos_t;


/* --- Jobs --- */

static void ft_setup(ft_chaos_t *chaos)
{
    char address[FT_ANSWER_MAX];
    unsigned i;

    ft_driver_up(&chaos->driver, chaos->seeds.clients + 1, chaos->seeds.links,
                 "--trace 2097152");
    ft_driver_start_job(&chaos->driver, &chaos->server, "server", 0, NULL);
    ft_driver_await_server(&chaos->driver, &chaos->server, &chaos->base, address);
    ft_driver_ask(&chaos->driver, &chaos->server, "clear %u", chaos->now_width);
    for (i = 0; i < chaos->seeds.clients; ++i) {
        ft_driver_start_job(&chaos->driver, &chaos->client[i], "client", i + 1,
                            NULL);
    }

    for (i = 0; i < chaos->seeds.clients; ++i) {
        ft_driver_connect(&chaos->driver, &chaos->client[i], address);
        ft_driver_ask(&chaos->driver, &chaos->client[i], "open");
    }
}

static void ft_cleanup(ft_chaos_t *chaos)
{
    unsigned i;

    for (i = 0; i < chaos->seeds.clients; ++i) {
        ft_driver_stop_job(&chaos->driver, &chaos->client[i]);
    }

    ft_driver_stop_job(&chaos->driver, &chaos->server);
    ft_fabric_down(&chaos->driver.fabric);
}

/* --- Judging --- */

/* The word of an access, or NULL. A key for atomics may have another origin, so the
 * wire's address can differ from the word's by some bytes. */
static ft_atom_chain_t *ft_trace_word(ft_chaos_t *chaos,
                                      const ft_entry_t *entry)
{
    uint64_t page = (entry->addr - chaos->base) / FT_ATOM_WORDS_STRIDE;

    return ((entry->host == 0) && entry->is_cas && !entry->duplicate &&
            (page >= 1) && (page <= FT_ATOM_WORDS)) ?
           &chaos->words[page - 1] : NULL;
}

/* Collect the changes of words. The trace may order the entries of several requesters
 * differently than their execution. */
static void ft_read_trace(ft_chaos_t *chaos)
{
    uint64_t mask = (chaos->now_width == 8) ? UINT64_MAX : UINT32_MAX;
    char *trace   = ft_fabric_trace(&chaos->driver.fabric, chaos->trace_seq, "0");
    char *text    = trace;
    ft_atom_chain_t *word;
    ft_entry_t entry;

    while (ft_trace_next(&text, &entry)) {
        chaos->trace_seq = entry.seq;
        word             = ft_trace_word(chaos, &entry);
        if (word != NULL) {
            ++chaos->num_accesses;
            if (((entry.data ^ entry.compare) & mask) == 0) {
                ft_atom_chain_add(word, entry.data & mask, entry.swap & mask);
            }
        }
    }

    free(trace);
}

static const char *ft_count_name(unsigned i, char *name)
{
    static const char *const ops[] = {"add", "and", "or", "xor", "swap",
                                      "cswap"};

    if (i == FT_NUM_COUNTS - 1) {
        return "cswap that failed";
    }

    sprintf(name, "%s%s", (i / 2 >= FT_ATOM_SWAP) ? "" : (i % 2) ? "f" : "p",
            ops[i / 2]);
    return name;
}

static void ft_count(ft_chaos_t *chaos, const ft_atom_t *atom)
{
    if ((atom->op == FT_ATOM_CSWAP) && (atom->result != atom->compare)) {
        ++chaos->counts[FT_NUM_COUNTS - 1];
    } else {
        ++chaos->counts[(2 * atom->op) + !!atom->fetch];
    }
}

static int ft_compare_words(const void *a, const void *b)
{
    const ft_atom_record_t *r1 = a, *r2 = b;

    return (int)r1->word - (int)r2->word;
}

static void ft_judge_words(ft_chaos_t *chaos)
{
    ft_atom_record_t *records;
    const char *words, *wrong;
    size_t begin = 0, end, i;
    unsigned word;
    uint64_t last;
    int length;

    records = ft_seeds_records(&chaos->seeds, &chaos->driver, "ft_atoms",
                               sizeof(*records), &chaos->num);
    for (i = 0; i < chaos->num; ++i) {
        ft_count(chaos, &records[i].atom);
    }

    words = ft_driver_ask(&chaos->driver, &chaos->server, "words");
    qsort(records, chaos->num, sizeof(*records), ft_compare_words);
    for (word = 0; word < FT_ATOM_WORDS; ++word, begin = end) {
        for (end = begin; (end < chaos->num) && (records[end].word == word);
             ++end) {
        }

        sscanf(words, " %" SCNx64 "%n", &last, &length);
        words += length;
        wrong  = ft_atom_history_check(&records[begin], end - begin, last);
        if (wrong != NULL) {
            ft_driver_report(&chaos->driver, "word %u: %s", word, wrong);
        }

        if (ft_atom_is_by_cpu()) {
            wrong = (chaos->words[word].num > 0) ? "a NIC changed it" : NULL;
        } else {
            wrong = ft_atom_chain_check(&chaos->words[word],
                                        ft_atom_word_first(word,
                                                           chaos->now_width),
                                        last);
        }
        if (wrong != NULL) {
            ft_driver_report(&chaos->driver, "word %u, trace: %s", word, wrong);
        }
    }

    free(records);
}

/* --- One seed --- */

/* The server's output was read up to its last answer. */
static void ft_tell_seed(ft_chaos_t *chaos, unsigned failures)
{
    printf("chaos: seed %" PRIu64 ": %u bytes, %g s, %zu atomics, %u accesses"
           " in the trace, %" PRIu64 " faults (%" PRIu64 " rules fired, NICs of"
           " %u hosts died), %u switches, %u moves, %u failures\n",
           chaos->seeds.seed, chaos->now_width, chaos->seeds.seconds,
           chaos->num, chaos->num_accesses, chaos->storm.faults,
           chaos->storm.fired, __builtin_popcount(chaos->storm.dead),
           chaos->switches, chaos->server.moves, failures);
}

static void ft_start_load(ft_chaos_t *chaos)
{
    unsigned i;

    for (i = 0; i < chaos->seeds.clients; ++i) {
        ft_child_send(&chaos->client[i], "load %u %u %" PRIu64
                      " %g ft_atoms.%u", chaos->now_width, i, chaos->seeds.seed,
                      chaos->seeds.seconds, i);
    }
}

static void ft_await_load(ft_chaos_t *chaos)
{
    unsigned i;

    for (i = 0; i < chaos->seeds.clients; ++i) {
        if ((i > 0) || !chaos->early) {
            ft_driver_answer(&chaos->driver, &chaos->client[i]);
        }

        chaos->switches += chaos->client[i].switches;
        if (chaos->client[i].errors > 0) {
            ft_driver_report(&chaos->driver, "client %u logged errors", i);
        }
    }
}

/* Take the server's port down until the server has left this NIC. In modes without
 * NICs, do not wait */
static void ft_move_home(ft_chaos_t *chaos)
{
    double end = ft_now() + FT_ANSWER_TIME;

    ft_storm_link(&chaos->storm, 0, 0, "down");
    do {
        usleep(10000);
        ft_driver_ask(&chaos->driver, &chaos->server, "get"); /* Also reads its log */
    } while ((chaos->server.moves == 0) && !ft_atom_is_by_cpu() &&
             (ft_now() < end));

    if ((chaos->server.moves == 0) && !ft_atom_is_by_cpu()) {
        ft_driver_report(&chaos->driver, "the home NIC did not move");
    }
}

/* The first client's link is certainly in use. Leave it broken until it has switched or
 * ends, even on a slow machine; in mode proxy only for half of the time, because only
 * heartbeats are lost with it */
static void ft_switch(ft_chaos_t *chaos)
{
    double end = ft_now() + (ft_atom_is_by_cpu() ? chaos->seeds.seconds / 2 :
                             FT_ANSWER_TIME);
    const char *answer;

    ft_storm_link(&chaos->storm, 1, 0, "silent");
    while ((chaos->client[0].switches == 0) && !chaos->early &&
           (ft_now() < end)) {
        answer       = ft_child_answer(&chaos->client[0], 0.02);
        chaos->early = (answer != NULL);
        if (chaos->early && strncmp(answer, "ok", 2)) {
            ft_driver_fatal(&chaos->driver, "a client answers: %s", answer);
        }
    }
}

/* @return Whether anything was tested */
static int ft_seed(ft_chaos_t *chaos)
{
    unsigned failures = chaos->driver.failures;
    double end;
    unsigned i;

    chaos->now_width = (chaos->width != 0) ? chaos->width :
                       (chaos->seeds.seed % 2) ? 4 : 8;
    snprintf(chaos->driver.label, sizeof(chaos->driver.label),
             "seed %" PRIu64 ", %u bytes", chaos->seeds.seed, chaos->now_width);
    chaos->switches  = chaos->num_accesses = 0;
    chaos->trace_seq = chaos->early = 0;
    memset(&chaos->server, 0, sizeof(chaos->server));
    memset(chaos->client, 0, sizeof(chaos->client));
    for (i = 0; i < FT_ATOM_WORDS; ++i) {
        ft_atom_chain_clear(&chaos->words[i]);
    }

    fprintf(chaos->driver.log, "--- seed %" PRIu64 "\n", chaos->seeds.seed);
    ft_storm_init(&chaos->storm, &chaos->driver, !chaos->home_fails,
                  chaos->seeds.seed);
    ft_setup(chaos);
    if (chaos->kills) {
        ft_storm_set_kills(&chaos->storm, 1);
    }

    ft_start_load(chaos);
    if (chaos->home_fails) {
        ft_move_home(chaos);
    }

    end = ft_now() + chaos->seeds.seconds;
    ft_switch(chaos);
    while ((ft_now() < end) || ft_storm_owes_kill(&chaos->storm)) {
        ft_storm_blow(&chaos->storm);
    }

    ft_storm_end(&chaos->storm);
    ft_await_load(chaos);
    ft_read_trace(chaos);
    ft_judge_words(chaos);
    ft_cleanup(chaos);
    ft_tell_seed(chaos, chaos->driver.failures - failures);
    chaos->all_moves += chaos->server.moves;
    return (chaos->storm.faults > 0) && (chaos->num > 0) &&
           (ft_atom_is_by_cpu() ||
            ((chaos->num_accesses > 0) && (chaos->switches > 0)));
}

/* On a busy machine the load may end before a fault has hit it, so try again */
static void ft_seed_tested(ft_chaos_t *chaos)
{
    double seconds = chaos->seeds.seconds;
    unsigned i;

    for (i = 0; i < FT_MAX_TRIES; ++i, chaos->seeds.seconds *= 2) {
        if (ft_seed(chaos)) {
            chaos->seeds.seconds = seconds;
            return;
        }
    }

    chaos->seeds.seconds = seconds;
    ft_driver_report(&chaos->driver, "nothing was tested");
}

static void ft_tell(const ft_chaos_t *chaos)
{
    char name[16];
    unsigned i;

    for (i = 0; i < FT_NUM_COUNTS; ++i) {
        if (chaos->counts[i] > 0) {
            printf("checked: %-17s %8zu\n", ft_count_name(i, name),
                   chaos->counts[i]);
        }
    }
}

/* --- Options --- */

static void ft_usage(void)
{
    printf("usage: ft_atom_chaos [OPTIONS] PREFIX JOB\n"
           FT_DRIVER_USAGE("ft_atom_job", "achaos", "ft_atom_chaos.log")
           FT_SEEDS_USAGE("5", "3", "2")
           "  -w 4|8       only this width (odd seeds: 4, even seeds: 8)\n"
           "  -H           the server's links fail, too\n"
           "  -K           the same, and NICs of one link die\n");
    exit(2);
}

int main(int argc, char **argv)
{
    static ft_chaos_t chaos = {
        .driver = {.name = "achaos", .log_name = "ft_atom_chaos.log",
                   .answer_time = FT_ANSWER_TIME},
        .seeds  = {.seed = 1, .num = 1, .seconds = 5, .clients = 3,
                   .links = 2}
    };
    const ft_option_t options[] = {
        FT_SEEDS_OPTIONS(&chaos.seeds),
        {'w', FT_OPTION_UNSIGNED, &chaos.width},
        {'H', FT_OPTION_FLAG, &chaos.home_fails},
        {'K', FT_OPTION_FLAG, &chaos.kills},
        {0}
    };
    unsigned i;

    if ((ft_driver_parse(&chaos.driver, argc, argv, options, 0) != 0) ||
        (chaos.seeds.clients - 1 >= FT_ATOM_LOAD_CLIENTS) ||
        ((chaos.width != 0) && (chaos.width != 4) && (chaos.width != 8))) {
        ft_usage();
    }

    chaos.home_fails |= chaos.kills;
    for (i = 0; i < chaos.seeds.num; ++i, ++chaos.seeds.seed) {
        ft_seed_tested(&chaos);
    }

    ft_tell(&chaos);
    printf("the home NIC has moved %u times\n", chaos.all_moves);
    return ft_driver_close(&chaos.driver);
}
