/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * usage: varuna_faults server|client SOCKET TL DEVICE EPS LOAD CONNECT LIMIT
 *
 * The client posts batches (LOAD, see batch_load.h) on EPS endpoints to the server, while
 * links fail; both get the same arguments. Transports have CONNECT milliseconds to connect in
 * the background, or until the line "go"; then it prints "ready" and begins. Its next line
 * of input is "stop", which begins no batch and waits for those in flight, or
 * "count", which waits for nothing. It runs for at most LIMIT milliseconds. Its output has, in
 * nanoseconds since 1970:
 *
 *     ready TIME
 *     stopped TIME PENDING                completions missing at "stop" or "count"
 *     inflight EP POSTED EXECUTED START   batches that were not complete at the end, and
 *                                         what the server's memory has of them
 *     words EP EQUAL LESS MORE            words of compare and swap at the end: expected,
 *                                         a swap was lost, one was executed twice
 *     batch EP START END
 *     bin MS OPERATIONS                   completions since "ready", if the load has
 *                                         "each"
 *     latency N P50 P99 MAX               of operations, in microseconds
 *     ep EP STATUS WRONG FAILED BATCHES POSTED PENDING
 *     end
 *
 * With "watch" in the load the server prints, every few milliseconds,
 *
 *     executed TIME PUTS                  in its memory so far; one that is repeated
 *                                         counts once
 */
#include "cost_oob.h"
#include "faults_roles.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>


enum {
    FAULTS_ARG_ROLE = 1,
    FAULTS_ARG_SOCKET,
    FAULTS_ARG_TL,
    FAULTS_ARG_DEVICE,
    FAULTS_ARG_EPS,
    FAULTS_ARG_LOAD,
    FAULTS_ARG_CONNECT,
    FAULTS_ARG_LIMIT,
    FAULTS_NUM_ARGS
};


int main(int argc, char **argv)
{
    faults_args_t args;
    int is_client, fd, ret;

    if ((argc != FAULTS_NUM_ARGS) ||
        (batch_load_parse(&args.load, argv[FAULTS_ARG_LOAD]) != 0) ||
        (atoi(argv[FAULTS_ARG_EPS]) < 1) ||
        (atoi(argv[FAULTS_ARG_EPS]) > FAULTS_EPS_MAX)) {
        fprintf(stderr, "usage: %s server|client SOCKET TL DEVICE EPS LOAD WARM-UP "
                "LIMIT\n", argv[0]);
        return EXIT_FAILURE;
    }

    args.tl         = argv[FAULTS_ARG_TL];
    args.device     = argv[FAULTS_ARG_DEVICE];
    args.num_eps    = atoi(argv[FAULTS_ARG_EPS]);
    args.connect_ms = atoi(argv[FAULTS_ARG_CONNECT]);
    args.limit_ms   = atoi(argv[FAULTS_ARG_LIMIT]);

    setvbuf(stdin, NULL, _IONBF, 0); /* It is polled */
    setvbuf(stdout, NULL, _IOLBF, 0); /* UCX's log, which is read meanwhile, too */
    is_client = !strcmp(argv[FAULTS_ARG_ROLE], "client");
    fd        = is_client ? cost_oob_connect(argv[FAULTS_ARG_SOCKET]) :
                            cost_oob_accept(argv[FAULTS_ARG_SOCKET]);
    if (fd < 0) {
        return EXIT_FAILURE;
    }

    ret = is_client ? faults_run(&args, fd) : faults_serve(&args, fd);
    fflush(stdout);
    _exit((ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE); /* Endpoints may have failed */
}
