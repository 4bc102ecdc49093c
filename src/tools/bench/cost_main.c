/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * usage: varuna_cost server|client SOCKET TL DEVICE [rc] [held] LOAD...
 *
 * Runs the loads from the client to the server, one after the other; both get the same
 * arguments. LOAD is OPERATION:LAYOUT:SIZE:COUNT, where OPERATION is put, get, message,
 * idle or an atomic's name (atomics_load.c), LAYOUT is short, bcopy or zcopy. SOCKET is
 * a path. "rc": before the first load, the client waits until rc_varuna's endpoint uses
 * RC. "held": during the loads, time passes only with calls of progress. Exit status 0 if all operations completed. It prints nothing: a profiler or
 * the NIC counts (contrib/bench/run.sh).
 */
#include "cost_clock.h"
#include "cost_load.h"
#include "cost_oob.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


enum {
    COST_ARG_ROLE = 1,
    COST_ARG_SOCKET,
    COST_ARG_TL,
    COST_ARG_DEVICE,
    COST_ARG_LOADS
};


#define COST_LOADS_MAX 32


typedef struct {
    int         is_client;
    int         await_rc;
    int         hold;
    int         num_loads;
    cost_load_t loads[COST_LOADS_MAX];
} cost_opts_t;


static int cost_run_loads(cost_uct_t *uct, int fd, const cost_opts_t *opts,
                          int progresses)
{
    int i, ret;

    if (opts->hold) {
        cost_clock_hold();
    }

    ret = cost_load_settle(uct, fd, opts->is_client, progresses);
    for (i = 0; (ret == 0) && (i < opts->num_loads); ++i) {
        ret = opts->is_client ? cost_load_client(uct, &opts->loads[i], fd) :
                                cost_load_server(uct, &opts->loads[i], fd);
    }

    if (opts->hold) {
        cost_clock_release();
    }

    return ret;
}

static int cost_run(char **argv, const cost_opts_t *opts)
{
    int is_client  = opts->is_client;
    int progresses = is_client;
    size_t size    = ATOMICS_WORDS * sizeof(uint64_t);
    cost_uct_t uct;
    int fd, i, ret;

    fd = is_client ? cost_oob_connect(argv[COST_ARG_SOCKET]) :
                     cost_oob_accept(argv[COST_ARG_SOCKET]);
    if (fd < 0) {
        return -1;
    }

    for (i = 0; i < opts->num_loads; ++i) {
        progresses |= (opts->loads[i].op == COST_OP_MESSAGE);
        size        = (opts->loads[i].size > size) ? opts->loads[i].size : size;
    }

    if ((cost_uct_open(&uct, argv[COST_ARG_TL], argv[COST_ARG_DEVICE], size, fd,
                       is_client) != 0) ||
        (cost_load_prepare(&uct, fd, is_client, progresses, opts->await_rc) != 0)) {
        return -1; /* The process exits without cleaning up */
    }

    ret = cost_run_loads(&uct, fd, opts, progresses);
    cost_uct_close(&uct);
    close(fd);
    return ret;
}

/* @return 0, or -1 if the usage is wrong or the reason is on stderr */
static int cost_parse(cost_opts_t *opts, int argc, char **argv)
{
    int i;

    opts->is_client = !strcmp(argv[COST_ARG_ROLE], "client");
    if (!opts->is_client && strcmp(argv[COST_ARG_ROLE], "server")) {
        fprintf(stderr, "\"%s\": expected server or client\n",
                argv[COST_ARG_ROLE]);
        return -1;
    }

    for (i = COST_ARG_LOADS; i < argc; ++i) {
        if (!strcmp(argv[i], "rc")) {
            opts->await_rc = 1;
        } else if (!strcmp(argv[i], "held")) {
            opts->hold = 1;
        } else if (opts->num_loads == COST_LOADS_MAX) {
            fprintf(stderr, "too many loads\n");
            return -1;
        } else if (cost_load_parse(&opts->loads[opts->num_loads++], argv[i]) != 0) {
            return -1;
        }
    }

    return 0;
}

int main(int argc, char **argv)
{
    static cost_opts_t opts;

    if (argc <= COST_ARG_LOADS) {
        fprintf(stderr, "usage: %s server|client SOCKET TL DEVICE [rc] [held] LOAD...\n",
                argv[0]);
        return EXIT_FAILURE;
    }

    return ((cost_parse(&opts, argc, argv) == 0) && (cost_clock_check() == 0) &&
            (cost_run(argv, &opts) == 0)) ?
           EXIT_SUCCESS : EXIT_FAILURE;
}
