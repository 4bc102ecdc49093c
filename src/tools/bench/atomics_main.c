/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * usage: varuna_atomics server|client SOCKET ROUNDS COUNT WINDOW [paused] WAY...
 *                       OPERATION...
 *
 * Times 8-byte atomics from the client to the server over several ways in turn, so that
 * all are measured under the same conditions; both get the same arguments. WAY is
 * TL/DEVICE, TL/DEVICE/MODE with the mode of rc_varuna's atomics, or
 * TL/DEVICE/MODE/computes: then the server computes, otherwise it polls. OPERATION is
 * fadd, fand, for, fxor, swap, cswap, add, and, or, xor; the last four are posted, and
 * each window of them is flushed.
 *
 * In each of ROUNDS, each way executes each operation COUNT times, with WINDOW in
 * flight. The client prints "WAY OPERATION ROUND NANOSECONDS", the time of one.
 * contrib/bench/atomics.sh makes a table of these.
 *
 * "paused": it prints "warm" before the first round, and "turn WAY OPERATION" after each
 * turn of a way. After each of these lines it waits for a line, so that its caller can
 * count what was sent in between.
 */
#include "atomics_load.h"
#include "cost_lane.h"
#include "cost_oob.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>


enum {
    ATOMICS_ARG_ROLE = 1,
    ATOMICS_ARG_SOCKET,
    ATOMICS_ARG_ROUNDS,
    ATOMICS_ARG_COUNT,
    ATOMICS_ARG_WINDOW,
    ATOMICS_ARG_FIRST
};


#define ATOMICS_WAYS_MAX   8
#define ATOMICS_OPS_MAX    16
#define ATOMICS_ROUNDS_MAX 64

/* Between looks of the server at the client's socket */
#define ATOMICS_CALLS      256

/* Operations of each way, at least once, before the first round: rc_varuna connects RC in
 * the background */
#define ATOMICS_WARMUP     256

/* Until RC is connected */
#define ATOMICS_RC_NS      60000000000ul

#define ATOMICS_VARUNA     "rc_varuna/"
#define ATOMICS_MODE       "UCX_RC_VARUNA_ATOMIC_MODE"


typedef struct {
    const char      *name;
    int             computes;   /* The server */
    cost_uct_t      uct;
    atomics_words_t words;
} atomics_way_t;


typedef struct {
    int                fd;
    int                is_client;
    unsigned           rounds;
    unsigned long      count;
    unsigned           window;
    int                is_paused;
    unsigned           num_ways;
    unsigned           num_ops;
    atomics_way_t      ways[ATOMICS_WAYS_MAX];
    const atomics_op_t *ops[ATOMICS_OPS_MAX];
    uint64_t           times[ATOMICS_WAYS_MAX][ATOMICS_OPS_MAX][ATOMICS_ROUNDS_MAX];
} atomics_t;


static uint64_t atomics_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec * 1000000000ul) + now.tv_nsec;
}

/* --- Server --- */

static int atomics_has_message(int fd)
{
    struct pollfd entry = {.fd = fd, .events = POLLIN};

    return poll(&entry, 1, 0) != 0;
}

/* Until the client has finished this way */
static int atomics_serve(atomics_t *atomics, atomics_way_t *way)
{
    volatile uint64_t work = 0;
    uint64_t token         = 0;
    unsigned i;

    if (cost_oob_send(atomics->fd, &token, sizeof(token)) != 0) {
        return -1;
    }

    while (!atomics_has_message(atomics->fd)) {
        for (i = 0; i < ATOMICS_CALLS; ++i) {
            if (way->computes) {
                work = (work * 1103515245) + 12345;
            } else {
                uct_worker_progress(way->uct.worker);
            }
        }
    }

    return cost_oob_recv(atomics->fd, &token, sizeof(token));
}

/* --- Client --- */

static int atomics_check(const atomics_way_t *way, ucs_status_t status)
{
    if (UCS_STATUS_IS_ERR(status) && (status != UCS_ERR_NO_RESOURCE)) {
        fprintf(stderr, "%s: %s: %s\n", way->name, way->words.op->name,
                ucs_status_string(status));
        return -1;
    }

    if (way->words.wrong > 0) {
        fprintf(stderr, "%s: %s: a result is wrong\n", way->name,
                way->words.op->name);
        return -1;
    }

    return 0;
}

static int atomics_flush(atomics_way_t *way)
{
    ucs_status_t status;

    while (((status = uct_ep_flush(way->uct.ep, 0, NULL)) == UCS_ERR_NO_RESOURCE) ||
           (status == UCS_INPROGRESS)) {
        uct_worker_progress(way->uct.worker);
    }

    return atomics_check(way, status);
}

static int atomics_run(atomics_t *atomics, atomics_way_t *way, unsigned long count)
{
    unsigned window = atomics->window;
    unsigned long i = 0;
    ucs_status_t status;

    while ((i < count) || (way->words.pending > 0)) {
        status = UCS_ERR_NO_RESOURCE;
        if ((i < count) && (way->words.pending < window)) {
            status = atomics_post(&way->uct, &way->words, i);
            i     += !UCS_STATUS_IS_ERR(status);
        }

        if (atomics_check(way, status) != 0) {
            return -1;
        }

        if (way->words.op->is_posted && !UCS_STATUS_IS_ERR(status)) {
            if (((i % window) == 0) && (atomics_flush(way) != 0)) {
                return -1;
            }
        } else if (UCS_STATUS_IS_ERR(status) || (way->words.pending == window)) {
            uct_worker_progress(way->uct.worker);
        }
    }

    return atomics_flush(way);
}

/* @param [out] ns_p  Time of all of them */
static int atomics_turn(atomics_t *atomics, atomics_way_t *way,
                        const atomics_op_t *op, unsigned long count, uint64_t *ns_p)
{
    uint64_t token = 0;
    uint64_t start;

    way->words.op = op;
    if (cost_oob_recv(atomics->fd, &token, sizeof(token)) != 0) {
        return -1;
    }

    start = atomics_now();
    if (atomics_run(atomics, way, count) != 0) {
        return -1;
    }

    *ns_p = atomics_now() - start;
    return cost_oob_send(atomics->fd, &token, sizeof(token));
}

static int atomics_warm_up(atomics_t *atomics, atomics_way_t *way)
{
    uint64_t ns;

    return atomics->is_client ?
           atomics_turn(atomics, way, atomics->ops[0], ATOMICS_WARMUP, &ns) :
           atomics_serve(atomics, way);
}

/* Whether the client's endpoints of rc_varuna use RC. The client knows */
static int atomics_is_warm(const atomics_t *atomics, uint64_t *is_warm_p)
{
    unsigned num_rc = 0;
    unsigned i;

    if (!atomics->is_client) {
        return cost_oob_recv(atomics->fd, is_warm_p, sizeof(*is_warm_p));
    }

    for (i = 0; i < atomics->num_ways; ++i) {
        num_rc += !strncmp(atomics->ways[i].name, ATOMICS_VARUNA,
                           strlen(ATOMICS_VARUNA));
    }

    *is_warm_p = cost_lane_count_rc() >= num_rc;
    return cost_oob_send(atomics->fd, is_warm_p, sizeof(*is_warm_p));
}

static int atomics_warm_up_all(atomics_t *atomics)
{
    uint64_t end     = atomics_now() + ATOMICS_RC_NS;
    uint64_t is_warm = 0;
    unsigned i;

    while (!is_warm) {
        for (i = 0; i < atomics->num_ways; ++i) {
            if (atomics_warm_up(atomics, &atomics->ways[i]) != 0) {
                return -1;
            }
        }

        if (atomics_is_warm(atomics, &is_warm) != 0) {
            return -1;
        } else if (!is_warm && (atomics_now() > end)) {
            fprintf(stderr, "an endpoint does not change to RC\n");
            return -1;
        }
    }

    return 0;
}

/* Print a line, and wait for one */
static int atomics_pause(const atomics_t *atomics, const char *what, const char *way,
                         const char *op)
{
    char line[16];

    if (!atomics->is_paused || !atomics->is_client) {
        return 0;
    }

    printf("%s %s %s\n", what, way, op);
    fflush(stdout);
    return (fgets(line, sizeof(line), stdin) != NULL) ? 0 : -1;
}

static int atomics_round(atomics_t *atomics, unsigned round)
{
    unsigned way, op;
    int ret;

    for (op = 0; op < atomics->num_ops; ++op) {
        for (way = 0; way < atomics->num_ways; ++way) {
            if (!atomics_op_is_offered(&atomics->ways[way].uct, atomics->ops[op])) {
                continue;
            }

            ret = atomics->is_client ?
                  atomics_turn(atomics, &atomics->ways[way], atomics->ops[op],
                               atomics->count, &atomics->times[way][op][round]) :
                  atomics_serve(atomics, &atomics->ways[way]);
            if ((ret != 0) ||
                (atomics_pause(atomics, "turn", atomics->ways[way].name,
                               atomics->ops[op]->name) != 0)) {
                return -1;
            }
        }
    }

    return 0;
}

/* --- Both --- */

static void atomics_print(atomics_t *atomics)
{
    unsigned way, op, round;

    for (way = 0; way < atomics->num_ways; ++way) {
        for (op = 0; op < atomics->num_ops; ++op) {
            for (round = 0; round < atomics->rounds; ++round) {
                printf("%s %s %u %.1f\n", atomics->ways[way].name,
                       atomics->ops[op]->name, round,
                       (double)atomics->times[way][op][round] / atomics->count);
            }
        }
    }
}

/* WAY as in the usage */
static int atomics_open(atomics_t *atomics, atomics_way_t *way)
{
    char text[128], *tl, *device, *mode, *target, *next;

    snprintf(text, sizeof(text), "%s", way->name);
    tl     = strtok_r(text, "/", &next);
    device = strtok_r(NULL, "/", &next);
    mode   = strtok_r(NULL, "/", &next);
    target = strtok_r(NULL, "/", &next);
    if ((tl == NULL) || (device == NULL) ||
        ((target != NULL) && strcmp(target, "computes"))) {
        fprintf(stderr, "\"%s\" is not TL/DEVICE/MODE/computes\n", way->name);
        return -1;
    }

    unsetenv(ATOMICS_MODE);
    if (mode != NULL) {
        setenv(ATOMICS_MODE, mode, 1);
    }

    way->computes = (target != NULL);
    atomics_words_init(&way->words);
    return cost_uct_open(&way->uct, tl, device, ATOMICS_WORDS * sizeof(uint64_t),
                         atomics->fd, atomics->is_client);
}

static int atomics_parse(atomics_t *atomics, int argc, char **argv)
{
    int i;

    atomics->is_client = !strcmp(argv[ATOMICS_ARG_ROLE], "client");
    atomics->rounds    = atoi(argv[ATOMICS_ARG_ROUNDS]);
    atomics->count     = strtoul(argv[ATOMICS_ARG_COUNT], NULL, 0);
    atomics->window    = atoi(argv[ATOMICS_ARG_WINDOW]);
    if ((atomics->rounds < 1) || (atomics->rounds > ATOMICS_ROUNDS_MAX) ||
        (atomics->count < 1) || (atomics->window < 1) ||
        (atomics->window > ATOMICS_WORDS) ||
        (!atomics->is_client && strcmp(argv[ATOMICS_ARG_ROLE], "server"))) {
        return -1;
    }

    for (i = ATOMICS_ARG_FIRST; i < argc; ++i) {
        if ((strchr(argv[i], '/') != NULL) &&
            (atomics->num_ways < ATOMICS_WAYS_MAX)) {
            atomics->ways[atomics->num_ways++].name = argv[i];
        } else if (!strcmp(argv[i], "paused")) {
            atomics->is_paused = 1;
        } else if ((atomics_op_find(argv[i]) != NULL) &&
                   (atomics->num_ops < ATOMICS_OPS_MAX)) {
            atomics->ops[atomics->num_ops++] = atomics_op_find(argv[i]);
        } else {
            return -1;
        }
    }

    return ((atomics->num_ways > 0) && (atomics->num_ops > 0)) ? 0 : -1;
}

static int atomics_all(atomics_t *atomics, const char *path)
{
    unsigned i;

    atomics->fd = atomics->is_client ? cost_oob_connect(path) : cost_oob_accept(path);
    if (atomics->fd < 0) {
        return -1;
    }

    for (i = 0; i < atomics->num_ways; ++i) {
        if (atomics_open(atomics, &atomics->ways[i]) != 0) {
            return -1; /* The process exits without cleaning up */
        }
    }

    if ((atomics_warm_up_all(atomics) != 0) ||
        (atomics_pause(atomics, "warm", "", "") != 0)) {
        return -1;
    }

    for (i = 0; i < atomics->rounds; ++i) {
        if (atomics_round(atomics, i) != 0) {
            return -1;
        }
    }

    for (i = 0; i < atomics->num_ways; ++i) {
        cost_uct_close(&atomics->ways[i].uct);
    }

    close(atomics->fd);
    return 0;
}

int main(int argc, char **argv)
{
    static atomics_t atomics;

    if ((argc <= ATOMICS_ARG_FIRST) || (atomics_parse(&atomics, argc, argv) != 0)) {
        fprintf(stderr, "usage: %s server|client SOCKET ROUNDS COUNT WINDOW "
                "[paused] WAY... OPERATION...\n", argv[0]);
        return EXIT_FAILURE;
    }

    if (atomics_all(&atomics, argv[ATOMICS_ARG_SOCKET]) != 0) {
        return EXIT_FAILURE;
    }

    if (atomics.is_client) {
        atomics_print(&atomics);
    }

    return EXIT_SUCCESS;
}
