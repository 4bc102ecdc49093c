/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * usage: varuna_cost server|client SOCKET TL DEVICE OPERATION LAYOUT SIZE COUNT
 *
 * Does COUNT operations from the client to the server, both of which are given
 * the same arguments: OPERATION is put, get or message, LAYOUT is short, bcopy
 * or zcopy, SOCKET is a path. Exit status 0 if all of them completed. It prints
 * nothing: a profiler or the NIC counts (contrib/bench/run.sh).
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
    COST_ARG_OP,
    COST_ARG_LAYOUT,
    COST_ARG_SIZE,
    COST_ARG_COUNT,
    COST_ARG_LAST
};


/* A message carries an 8-byte header in its short form */
#define COST_SIZE_MIN 8
#define COST_SIZE_MAX (1ul << 30)


static int cost_number(const char *text, unsigned long min, unsigned long max,
                       unsigned long *value_p)
{
    char *end;

    *value_p = strtoul(text, &end, 10);
    if ((*text < '0') || (*text > '9') || (*end != '\0') || (*value_p < min) ||
        (*value_p > max)) {
        fprintf(stderr, "\"%s\": expected a number from %lu to %lu\n", text,
                min, max);
        return -1;
    }

    return 0;
}

static int cost_run(char **argv, int is_client, const cost_load_t *load)
{
    cost_uct_t uct;
    int fd, ret;

    fd = is_client ? cost_oob_connect(argv[COST_ARG_SOCKET]) :
                     cost_oob_accept(argv[COST_ARG_SOCKET]);
    if (fd < 0) {
        return -1;
    }

    if (cost_uct_open(&uct, argv[COST_ARG_TL], argv[COST_ARG_DEVICE],
                      load->size, fd, is_client) != 0) {
        return -1; /* The process ends, and takes everything along */
    }

    ret = is_client ? cost_load_client(&uct, load, fd) :
                      cost_load_server(&uct, fd);
    cost_uct_close(&uct);
    close(fd);
    return ret;
}

int main(int argc, char **argv)
{
    unsigned long size;
    cost_load_t load;
    int is_client;

    if (argc != COST_ARG_LAST) {
        fprintf(stderr, "usage: %s server|client SOCKET TL DEVICE "
                "put|get|message short|bcopy|zcopy SIZE COUNT\n", argv[0]);
        return EXIT_FAILURE;
    }

    is_client = !strcmp(argv[COST_ARG_ROLE], "client");
    if (!is_client && strcmp(argv[COST_ARG_ROLE], "server")) {
        fprintf(stderr, "\"%s\": expected server or client\n",
                argv[COST_ARG_ROLE]);
        return EXIT_FAILURE;
    }

    if ((cost_load_parse(&load, argv[COST_ARG_OP],
                         argv[COST_ARG_LAYOUT]) != 0) ||
        (cost_number(argv[COST_ARG_SIZE], COST_SIZE_MIN, COST_SIZE_MAX,
                     &size) != 0) ||
        (cost_number(argv[COST_ARG_COUNT], 1, 1ul << 40, &load.count) != 0)) {
        return EXIT_FAILURE;
    }

    load.size = size;
    return (cost_run(argv, is_client, &load) == 0) ? EXIT_SUCCESS :
                                                     EXIT_FAILURE;
}
