/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * usage: varuna_cost server|client SOCKET TL DEVICE LOAD...
 *
 * Runs the loads from the client to the server, one after the other; both get the same
 * arguments. LOAD is OPERATION:LAYOUT:SIZE:COUNT, where OPERATION is put, get, message,
 * idle or an atomic's name (atomics_load.c), LAYOUT is short, bcopy or zcopy. SOCKET is
 * a path. Exit status 0 if all operations completed. It prints nothing: a profiler or
 * the NIC counts (contrib/bench/run.sh).
 */
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


static int cost_run(char **argv, int is_client, const cost_load_t *loads,
                    int num_loads, size_t size)
{
    int progresses = is_client;
    int ret        = 0;
    cost_uct_t uct;
    int fd, i;

    fd = is_client ? cost_oob_connect(argv[COST_ARG_SOCKET]) :
                     cost_oob_accept(argv[COST_ARG_SOCKET]);
    if (fd < 0) {
        return -1;
    }

    for (i = 0; i < num_loads; ++i) {
        progresses |= (loads[i].op == COST_OP_MESSAGE);
    }

    if ((cost_uct_open(&uct, argv[COST_ARG_TL], argv[COST_ARG_DEVICE], size, fd,
                       is_client) != 0) ||
        (cost_load_prepare(&uct, fd, is_client, progresses) != 0)) {
        return -1; /* The process exits without cleaning up */
    }

    for (i = 0; (ret == 0) && (i < num_loads); ++i) {
        ret = is_client ? cost_load_client(&uct, &loads[i], fd) :
                          cost_load_server(&uct, &loads[i], fd);
    }

    cost_uct_close(&uct);
    close(fd);
    return ret;
}

int main(int argc, char **argv)
{
    int num_loads = argc - COST_ARG_LOADS;
    size_t size   = ATOMICS_WORDS * sizeof(uint64_t);
    cost_load_t loads[COST_LOADS_MAX];
    int is_client, i;

    if ((num_loads < 1) || (num_loads > COST_LOADS_MAX)) {
        fprintf(stderr, "usage: %s server|client SOCKET TL DEVICE LOAD...\n",
                argv[0]);
        return EXIT_FAILURE;
    }

    is_client = !strcmp(argv[COST_ARG_ROLE], "client");
    if (!is_client && strcmp(argv[COST_ARG_ROLE], "server")) {
        fprintf(stderr, "\"%s\": expected server or client\n",
                argv[COST_ARG_ROLE]);
        return EXIT_FAILURE;
    }

    for (i = 0; i < num_loads; ++i) {
        if (cost_load_parse(&loads[i], argv[COST_ARG_LOADS + i]) != 0) {
            return EXIT_FAILURE;
        }

        size = (loads[i].size > size) ? loads[i].size : size;
    }

    return (cost_run(argv, is_client, loads, num_loads, size) == 0) ?
           EXIT_SUCCESS : EXIT_FAILURE;
}
