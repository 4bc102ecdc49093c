/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fetch-and-adds of 1 through UCP on words of one process: by the process itself, by one that
 * shares its memory, and by one on another host, each over the transport that UCP selects.
 *
 *     ft_ucp_add owner FILE COUNT PAUSE    maps the words, writes its address to FILE, adds,
 *                                          and prints the words at the end of its input
 *     ft_ucp_add other FILE COUNT PAUSE    adds
 *
 * It prints "ft: ready" when its endpoint works, and begins when there is a file FILE.go. It
 * prints "ft: begun" after its first operation on each word, and goes on when there is a file
 * FILE.all, so that none ends before all have begun, whichever gets a CPU.
 * After each operation it sleeps for PAUSE microseconds.
 * Each one of COUNT operations is on the word of 8 bytes, the next on that of 4 bytes, and
 * prints "fadd WIDTH RESULT". "ft: " lines tell the endpoint's lanes. The owner also
 * adds by its own instructions: "cpu WIDTH RESULT".
 */
#include "ft_ucp.h"

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    ft_ucp_t  ucp;
    ucp_mem_h memh;
    uint64_t  *words;
} ft_add_t;

/* UCP allocates the words where other processes of the host can map them */
static void ft_own(ft_add_t *add, const char *path)
{
    ucp_mem_map_params_t params = {
        .field_mask = UCP_MEM_MAP_PARAM_FIELD_LENGTH |
                      UCP_MEM_MAP_PARAM_FIELD_FLAGS,
        .length     = 4096,
        .flags      = UCP_MEM_MAP_ALLOCATE
    };
    ucp_mem_attr_t attr         = {.field_mask = UCP_MEM_ATTR_FIELD_ADDRESS};

    ft_check_status(ucp_mem_map(add->ucp.context, &params, &add->memh), "ucp_mem_map");
    ft_check_status(ucp_mem_query(add->memh, &attr), "ucp_mem_query");
    add->words = attr.address;
    memset(add->words, 0, 4096);
    ft_ucp_publish(&add->ucp, add->memh, add->words, path);
}

static uint64_t ft_fetch_add(ft_add_t *add, unsigned width, uint64_t value)
{
    uint64_t result           = 0;
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_DATATYPE |
                        UCP_OP_ATTR_FIELD_REPLY_BUFFER,
        .datatype     = ucp_dt_make_contig(width),
        .reply_buffer = &result
    };

    ft_ucp_wait(&add->ucp,
                ucp_atomic_op_nbx(add->ucp.ep, UCP_ATOMIC_OP_ADD, &value, 1,
                                  add->ucp.owner.address + ((width == 4) ? 64 : 0),
                                  add->ucp.rkey, &param), "fetch and add");
    return result;
}

/* Say it, and wait for the others */
static void ft_meet(ft_add_t *add, const char *what, const char *path, const char *suffix)
{
    char name[512];

    printf("ft: %s\n", what);
    fflush(stdout);
    snprintf(name, sizeof(name), "%s.%s", path, suffix);
    while (access(name, F_OK) != 0) {
        ucp_worker_progress(add->ucp.worker);
        usleep(100);
    }
}

static void ft_cpu_add(ft_add_t *add, unsigned width)
{
    uint32_t *word32 = (uint32_t*)&add->words[8];
    uint64_t result;

    result = (width == 8) ?
             __atomic_fetch_add(&add->words[0], 1, __ATOMIC_SEQ_CST) :
             __atomic_fetch_add(word32, 1, __ATOMIC_SEQ_CST);
    printf("cpu %u %" PRIu64 "\n", width, result);
}

static void ft_serve(ft_add_t *add)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};

    while (poll(&pfd, 1, 1) == 0) {
        while (ucp_worker_progress(add->ucp.worker) > 0);
    }

    printf("word 8 %" PRIu64 "\n", add->words[0]);
    printf("word 4 %" PRIu64 "\n", add->words[8]);
}

int main(int argc, char **argv)
{
    int is_owner, count, pause, i;
    unsigned width;
    static ft_add_t add;

    if ((argc != 5) || (strcmp(argv[1], "owner") && strcmp(argv[1], "other"))) {
        printf("usage: ft_ucp_add owner|other FILE COUNT PAUSE\n");
        return 2;
    }

    is_owner = !strcmp(argv[1], "owner");
    count    = atoi(argv[3]);
    pause    = atoi(argv[4]);
    ft_ucp_open(&add.ucp, 0);
    if (is_owner) {
        ft_own(&add, argv[2]);
    }

    ft_ucp_connect(&add.ucp, argv[2]);
    ft_fetch_add(&add, 8, 0);
    ft_meet(&add, "ready", argv[2], "go");
    for (i = 0; i < count; ++i) {
        width = (i % 2) ? 4 : 8;
        printf("fadd %u %" PRIu64 "\n", width, ft_fetch_add(&add, width, 1));
        if (is_owner) {
            ft_cpu_add(&add, width);
        }

        if (i == 1) {
            ft_meet(&add, "begun", argv[2], "all");
        } else if (pause > 0) {
            usleep(pause);
        }
    }

    ucp_ep_print_info(add.ucp.ep, stdout);
    fflush(stdout);
    if (is_owner) {
        ft_serve(&add);
    }

    ucp_rkey_destroy(add.ucp.rkey);
    if (is_owner) {
        ucp_mem_unmap(add.ucp.context, add.memh);
    }

    ft_ucp_close(&add.ucp);
    printf("ft: ok\n");
    return 0;
}
