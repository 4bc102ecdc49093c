/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * usage: varuna_steady server|client SOCKET THREADS ROUNDS MS WAY... LOAD...
 *
 * Times batches (LOAD, see batch_load.h) from the client to the server, without failures,
 * over several ways in turn, so that all are measured under the same conditions; both get
 * the same arguments. WAY is NAME=TL/DEVICE[,OPTION=VALUE...] with options of UCX.
 *
 * In each of ROUNDS, THREADS threads, each with a worker and an endpoint of its own, run
 * each load over each way for MS milliseconds. The client prints for each of them
 *
 *     WAY LOAD ROUND BATCHES NANOSECONDS
 *
 * The server only sleeps, so that the client's threads have its CPU.
 */
#include "batch_load.h"
#include "cost_oob.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


enum {
    STEADY_ARG_ROLE = 1,
    STEADY_ARG_SOCKET,
    STEADY_ARG_THREADS,
    STEADY_ARG_ROUNDS,
    STEADY_ARG_MS,
    STEADY_ARG_FIRST
};


#define STEADY_WAYS_MAX    8
#define STEADY_LOADS_MAX   32
#define STEADY_THREADS_MAX 16

/* For a transport to connect in the background */
#define STEADY_WARMUP_MS   100

#define STEADY_SLEEP_MS    1


/* Loads that compare need words of their own; others share memory */
typedef struct {
    batch_load_t load;
    const char   *name;
    size_t       offset;
} steady_load_t;


typedef struct {
    pthread_t           thread;
    cost_uct_t          uct;
    const steady_load_t *load;
    uint64_t            end;
    uint64_t            batches;                 /* Of this run */
    uint64_t            before[STEADY_LOADS_MAX]; /* Of all runs of a load before it */
    uint64_t            *before_p;
    int                 ret;
} steady_thread_t;


typedef struct {
    const char      *name;
    steady_thread_t threads[STEADY_THREADS_MAX];
} steady_way_t;


typedef struct {
    int          fd;
    int          is_client;
    unsigned     num_threads, rounds, ms;
    unsigned     num_ways, num_loads;
    size_t       bytes;                       /* Of all loads */
    steady_way_t ways[STEADY_WAYS_MAX];
    steady_load_t loads[STEADY_LOADS_MAX];
} steady_t;


static void *steady_thread(void *arg)
{
    steady_thread_t *thread = arg;
    batch_ep_t ep;

    thread->ret = batch_ep_init(&ep, &thread->uct, thread->uct.ep, &thread->load->load,
                                thread->load->offset);
    if (thread->ret != 0) {
        return NULL;
    }

    ep.batches = *thread->before_p;

    do {
        batch_ep_start(&ep);
        while (!batch_ep_post(&ep)) {
            uct_worker_progress(thread->uct.worker);
        }
    } while ((ep.status == UCS_OK) && (batch_now() < thread->end));

    thread->batches   = ep.batches - *thread->before_p;
    *thread->before_p = ep.batches;
    if ((ep.status != UCS_OK) || (ep.wrong > 0)) {
        fprintf(stderr, "%s: %s, %lu wrong results\n", thread->load->name,
                ucs_status_string(ep.status), ep.wrong);
        thread->ret = -1;
    }

    batch_ep_cleanup(&ep);
    return NULL;
}

/* @return Batches, or 0 after a failure */
static uint64_t steady_run(steady_t *steady, steady_way_t *way, unsigned load,
                           unsigned ms, uint64_t *ns_p)
{
    uint64_t start   = batch_now();
    uint64_t batches = 0;
    steady_thread_t *thread;
    unsigned i;

    for (i = 0; i < steady->num_threads; ++i) {
        thread           = &way->threads[i];
        thread->load     = &steady->loads[load];
        thread->before_p = &thread->before[load];
        thread->end      = start + (ms * 1000000ul);
        if (pthread_create(&thread->thread, NULL, steady_thread, thread) != 0) {
            fprintf(stderr, "cannot create a thread\n");
            exit(EXIT_FAILURE);
        }
    }

    for (i = 0; i < steady->num_threads; ++i) {
        pthread_join(way->threads[i].thread, NULL);
        if (way->threads[i].ret != 0) {
            exit(EXIT_FAILURE);
        }

        batches += way->threads[i].batches;
    }

    *ns_p = batch_now() - start;
    return batches;
}

static int steady_client(steady_t *steady)
{
    uint64_t token = 0;
    unsigned round, way, load;
    uint64_t batches, ns;

    for (way = 0; way < steady->num_ways; ++way) {
        steady_run(steady, &steady->ways[way], 0, STEADY_WARMUP_MS, &ns);
    }

    for (round = 0; round < steady->rounds; ++round) {
        for (load = 0; load < steady->num_loads; ++load) {
            for (way = 0; way < steady->num_ways; ++way) {
                batches = steady_run(steady, &steady->ways[way], load, steady->ms, &ns);
                printf("%.*s %s %u %" PRIu64 " %" PRIu64 "\n",
                       (int)strcspn(steady->ways[way].name, "="),
                       steady->ways[way].name, steady->loads[load].name, round, batches,
                       ns);
            }
        }
    }

    return cost_oob_send(steady->fd, &token, sizeof(token));
}

static int steady_server(steady_t *steady)
{
    struct pollfd entry = {.fd = steady->fd, .events = POLLIN};
    unsigned way, i;

    while (poll(&entry, 1, STEADY_SLEEP_MS) == 0) {
        for (way = 0; way < steady->num_ways; ++way) {
            for (i = 0; i < steady->num_threads; ++i) {
                uct_worker_progress(steady->ways[way].threads[i].uct.worker);
            }
        }
    }

    return 0;
}

/* Options hold while the way is opened. @return 0, or -1 */
static int steady_open(steady_t *steady, steady_way_t *way)
{
    char text[256], *tl, *device, *option, *value, *next, *next_option;
    unsigned i;
    int ret = 0;

    snprintf(text, sizeof(text), "%s", way->name);
    strtok_r(text, "=", &next);
    tl     = strtok_r(NULL, "/", &next);
    device = strtok_r(NULL, ",", &next);
    if ((tl == NULL) || (device == NULL)) {
        fprintf(stderr, "\"%s\" is not NAME=TL/DEVICE[,OPTION=VALUE...]\n", way->name);
        return -1;
    }

    for (option = strtok_r(NULL, ",", &next); option != NULL;
         option = strtok_r(NULL, ",", &next)) {
        option = strtok_r(option, "=", &next_option);
        value  = strtok_r(NULL, "", &next_option);
        setenv(option, (value == NULL) ? "" : value, 1);
    }

    for (i = 0; (ret == 0) && (i < steady->num_threads); ++i) {
        ret = cost_uct_open(&way->threads[i].uct, tl, device, steady->bytes, steady->fd,
                            steady->is_client);
    }

    snprintf(text, sizeof(text), "%s", way->name);
    strtok_r(text, ",", &next);
    for (option = strtok_r(NULL, ",", &next); option != NULL;
         option = strtok_r(NULL, ",", &next)) {
        unsetenv(strtok_r(option, "=", &next_option));
    }

    return ret;
}

static int steady_add_load(steady_t *steady, const char *name)
{
    steady_load_t *load = &steady->loads[steady->num_loads];

    if ((steady->num_loads == STEADY_LOADS_MAX) ||
        (batch_load_parse(&load->load, name) != 0)) {
        return -1;
    }

    load->name = name;
    ++steady->num_loads;
    return 0;
}

/* The memory of all puts, and the words of each other load */
static void steady_place(steady_t *steady)
{
    size_t bytes;
    unsigned i;

    for (i = 0; i < steady->num_loads; ++i) {
        bytes = batch_load_bytes(&steady->loads[i].load);
        if ((steady->loads[i].load.kind == BATCH_PUT) && (bytes > steady->bytes)) {
            steady->bytes = bytes;
        }
    }

    for (i = 0; i < steady->num_loads; ++i) {
        if (steady->loads[i].load.kind != BATCH_PUT) {
            steady->loads[i].offset = steady->bytes;
            steady->bytes          += batch_load_bytes(&steady->loads[i].load);
        }
    }
}

static int steady_parse(steady_t *steady, int argc, char **argv)
{
    int i;

    steady->is_client   = !strcmp(argv[STEADY_ARG_ROLE], "client");
    steady->num_threads = atoi(argv[STEADY_ARG_THREADS]);
    steady->rounds      = atoi(argv[STEADY_ARG_ROUNDS]);
    steady->ms          = atoi(argv[STEADY_ARG_MS]);
    if ((steady->num_threads < 1) || (steady->num_threads > STEADY_THREADS_MAX) ||
        (steady->rounds < 1) || (steady->ms < 1)) {
        return -1;
    }

    for (i = STEADY_ARG_FIRST; i < argc; ++i) {
        if (strchr(argv[i], '=') == NULL) {
            if (steady_add_load(steady, argv[i]) != 0) {
                return -1;
            }
        } else if (steady->num_ways < STEADY_WAYS_MAX) {
            steady->ways[steady->num_ways++].name = argv[i];
        } else {
            return -1;
        }
    }

    steady_place(steady);
    return ((steady->num_ways > 0) && (steady->num_loads > 0)) ? 0 : -1;
}

int main(int argc, char **argv)
{
    static steady_t steady;
    unsigned i;
    int ret;

    if ((argc <= STEADY_ARG_FIRST) || (steady_parse(&steady, argc, argv) != 0)) {
        fprintf(stderr, "usage: %s server|client SOCKET THREADS ROUNDS MS WAY... "
                "LOAD...\n", argv[0]);
        return EXIT_FAILURE;
    }

    steady.fd = steady.is_client ? cost_oob_connect(argv[STEADY_ARG_SOCKET]) :
                                   cost_oob_accept(argv[STEADY_ARG_SOCKET]);
    if (steady.fd < 0) {
        return EXIT_FAILURE;
    }

    for (i = 0; i < steady.num_ways; ++i) {
        if (steady_open(&steady, &steady.ways[i]) != 0) {
            return EXIT_FAILURE;
        }
    }

    ret = steady.is_client ? steady_client(&steady) : steady_server(&steady);
    fflush(stdout);
    _exit((ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE);
}
