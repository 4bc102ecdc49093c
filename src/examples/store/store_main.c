/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * varuna_store: a replicated store over plain UCP, see store_tx.h. It knows nothing about
 * failures of links.
 */
#include "store_files.h"
#include "store_report.h"
#include "store_tx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>


static int store_usage(void)
{
    fprintf(stderr,
            "usage: varuna_store replica DIR INDEX   until DIR/end exists (INDEX 0 to %d)\n"
            "       varuna_store client DIR INDEX    from DIR/go to DIR/stop (0 to %d)\n"
            "       varuna_store check DIR           then: are all invariants true?\n"
            "       varuna_store history DIR         print the client, the end (ns since\n"
            "                                        1970) and the duration (ns) of each\n"
            "                                        transaction\n"
            "       varuna_store layout              where a replica's file has what\n",
            STORE_REPLICAS - 1, STORE_CLIENTS - 1);
    return 2;
}

static void store_init_records(store_record_t *records, unsigned count, uint64_t left)
{
    unsigned i;

    for (i = 0; i < count; ++i) {
        records[i].left = left;
    }
}

static int store_replica(const char *dir, unsigned index)
{
    store_memory_t *memory;
    store_ucp_t ucp;
    ucp_mem_h memh;
    int ret;

    store_ucp_init(&ucp);
    memory = mmap(NULL, sizeof(*memory), PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        store_fatal("there is no memory");
    }

    store_init_records(memory->items, STORE_ITEMS, STORE_QUANTITY);
    store_init_records(memory->customers, STORE_CUSTOMERS, STORE_BALANCE);
    memh = store_ucp_publish(&ucp, memory, dir, index);
    while (!store_file_exists(dir, "end")) {
        store_ucp_progress(&ucp);
    }

    ret = store_file_write(dir, "memory", index, memory, sizeof(*memory));
    ucp_mem_unmap(ucp.context, memh);
    store_ucp_cleanup(&ucp);
    munmap(memory, sizeof(*memory));
    return (ret == 0) ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Begin with every connection complete */
static void store_client_warm_up(store_ucp_t *ucp, store_terminal_t *terminals)
{
    uint64_t words[STORE_TERMINALS][STORE_REPLICAS];
    unsigned i, replica;

    for (i = 0; i < STORE_TERMINALS; ++i) {
        for (replica = 0; replica < STORE_REPLICAS; ++replica) {
            store_get(&terminals[i].replicas[replica], 0, &words[i][replica],
                      sizeof(uint64_t), &terminals[i].wait);
        }
    }

    for (i = 0; i < STORE_TERMINALS; ++i) {
        while (terminals[i].wait.pending > 0) {
            store_ucp_progress(ucp);
        }
    }
}

static void store_client_run(store_ucp_t *ucp, const char *dir, store_terminal_t *terminals)
{
    uint64_t next_look = 0;
    int is_last        = 0;
    unsigned i, ended;

    do {
        store_ucp_progress(ucp);
        for (i = 0, ended = 0; i < STORE_TERMINALS; ++i) {
            ended += store_tx_progress(&terminals[i], is_last);
        }

        if (!is_last && (store_now() >= next_look)) {
            is_last   = store_file_exists(dir, "stop");
            next_look = store_now() + 5000000;
        }
    } while (ended < STORE_TERMINALS);
}

static int store_client(const char *dir, unsigned index)
{
    store_terminal_t terminals[STORE_TERMINALS] = {};
    store_history_t *history;
    store_ucp_t ucp;
    unsigned i, replica;

    history = store_file_map(dir, "history", index, sizeof(*history));
    if (history == NULL) {
        return EXIT_FAILURE;
    }

    store_ucp_init(&ucp);
    for (i = 0; i < STORE_TERMINALS; ++i) {
        terminals[i].history = history;
        terminals[i].number  = (index * STORE_TERMINALS) + i;
        terminals[i].random  = terminals[i].number;
        for (replica = 0; replica < STORE_REPLICAS; ++replica) {
            store_ucp_connect(&ucp, dir, replica, &terminals[i].replicas[replica]);
        }
    }

    store_client_warm_up(&ucp, terminals);
    if (store_file_write(dir, "ready", index, "", 0) != 0) {
        return EXIT_FAILURE;
    }

    while (!store_file_exists(dir, "go")) {
        store_ucp_progress(&ucp);
    }

    store_client_run(&ucp, dir, terminals);
    history->ended = 1;
    for (i = 0; i < STORE_TERMINALS; ++i) {
        for (replica = 0; replica < STORE_REPLICAS; ++replica) {
            store_ucp_disconnect(&ucp, &terminals[i].replicas[replica]);
        }
    }
    store_ucp_cleanup(&ucp);
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const char *verb = (argc > 1) ? argv[1] : "";
    unsigned index   = (argc == 4) ? strtoul(argv[3], NULL, 10) : 0;

    if ((argc == 4) && !strcmp(verb, "replica") && (index < STORE_REPLICAS)) {
        return store_replica(argv[2], index);
    } else if ((argc == 4) && !strcmp(verb, "client") && (index < STORE_CLIENTS)) {
        return store_client(argv[2], index);
    } else if ((argc == 3) && !strcmp(verb, "check")) {
        return store_report_check(argv[2]);
    } else if ((argc == 3) && !strcmp(verb, "history")) {
        return store_report_history(argv[2]);
    } else if ((argc == 2) && !strcmp(verb, "layout")) {
        store_report_layout();
        return EXIT_SUCCESS;
    }
    return store_usage();
}
