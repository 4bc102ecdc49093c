/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One process of a fault test: a server whose memory clients write, or a client. It
 * uses only UCT, and reads commands from standard input, one per line:
 *
 *     ft_job server|client FILE     FILE: the server's memory, made by the caller
 *
 *   server   sleep SECONDS          without progress
 *            compute                no progress until the next line is read
 *            doze                   from now on, wait for events of the interface
 *   client   connect ADDRESS        as the server printed it
 *            open                   a new endpoint
 *            warm NUMBER            one put outside of the plans' memory, flushed
 *            run NUMBER PLAN FLAGS  a plan, see ft_plan.c and FT_RUN_...
 *            check                  the endpoint, as UCX's keepalive does
 *            idle SECONDS           progress
 *            server INDEX ADDRESS   of the chaos test
 *            chaos CLIENT CLIENTS SERVERS SEED SECONDS FILE   see ft_registers.c
 *            timeout SECONDS        that a run may take
 *            pace SECONDS           between two calls of progress
 *
 * It answers each with one line, "ft: ok" or "ft: fail REASON".
 */
#include "ft_clock.h"
#include "ft_device.h"
#include "ft_line.h"
#include "ft_ops.h"
#include "ft_registers.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_TL_NAME "rc_varuna"

static ft_shared_t *ft_map(const char *path)
{
    int fd = open(path, O_RDWR);
    void *ptr;

    if (fd < 0) {
        ft_die("cannot open %s", path);
    }

    ptr = mmap(NULL, sizeof(ft_shared_t), PROT_READ | PROT_WRITE, MAP_SHARED,
               fd, 0);
    close(fd);
    if (ptr == MAP_FAILED) {
        ft_die("cannot map %s", path);
    }

    return ptr;
}

/* --- Server --- */

static ucs_status_t ft_server_am(void *arg, void *data, size_t length,
                                 unsigned flags)
{
    static uint64_t copy[FT_AREA_SIZE / sizeof(uint64_t)];
    ft_shared_t *shared = arg;
    ft_am_t *am         = &shared->am[shared->am_count % FT_AM_LOG_SIZE];

    memcpy(copy, data, (length < sizeof(copy)) ? length : sizeof(copy));
    am->run    = ft_word_run(copy[0]);
    am->index  = ft_word_index(copy[0]);
    am->length = length;
    am->good   = ft_check(copy, length, am->run, am->index);
    __sync_synchronize();
    ++shared->am_count;
    return UCS_OK;
}

/* Messages of the chaos test. Each client numbers its messages. */
static ucs_status_t ft_server_chaos_am(void *arg, void *data, size_t length,
                                       unsigned flags)
{
    ft_shared_t *shared = arg;
    unsigned client;
    uint64_t header;

    memcpy(&header, data, sizeof(header));
    client = (header >> 56) - 1;
    if ((client >= FT_CHAOS_CLIENTS) ||
        (header != ft_chaos_value(client, shared->chaos_next[client]))) {
        printf("ft: note message 0x%lx instead of 0x%lx\n", (long)header,
               (long)ft_chaos_value(client % FT_CHAOS_CLIENTS,
                                    shared->chaos_next[client %
                                                       FT_CHAOS_CLIENTS]));
        ++shared->chaos_errors;
        return UCS_OK;
    }

    ++shared->chaos_next[client];
    return UCS_OK;
}

/* Sleep until there is an event of the interface or a command. There is no timeout, so
 * a missing event makes the test fail. */
static void ft_server_doze(ft_uct_t *uct)
{
    struct pollfd pfds[2] = {{.events = POLLIN},
                             {.fd = STDIN_FILENO, .events = POLLIN}};
    ucs_status_t status;

    if (uct_iface_event_fd_get(uct->iface, &pfds[0].fd) != UCS_OK) {
        ft_die("event_fd_get");
    }

    status = uct_iface_event_arm(uct->iface, UCT_EVENT_RECV);
    if (status == UCS_OK) {
        (void)poll(pfds, 2, -1);
    } else if (status != UCS_ERR_BUSY) {
        ft_die("event_arm: %s", ucs_status_string(status));
    }
}

static void ft_server_command(ft_line_t *input, const char *line, int *dozes_p)
{
    double seconds;

    if (!strcmp(line, "doze")) {
        *dozes_p = 1;
        printf("ft: ok\n");
    } else if (!strcmp(line, "compute")) {
        printf("ft: ok\n");
        (void)ft_line_read(input, -1);
        printf("ft: ok\n");
    } else if (sscanf(line, "sleep %lf", &seconds) == 1) {
        printf("ft: ok\n");
        usleep((useconds_t)(seconds * 1e6));
    } else {
        ft_die("unknown command: %s", line);
    }
}

static int ft_server(ft_shared_t *shared)
{
    ft_uct_t uct;
    ft_line_t input = {.length = 0};
    unsigned idle   = 0;
    int dozes       = 0;
    const char *line;
    uct_mem_h memh;

    ft_uct_open(&uct, FT_TL_NAME);
    if ((uct_iface_set_am_handler(uct.iface, FT_AM_ID, ft_server_am, shared,
                                  0) != UCS_OK) ||
        (uct_iface_set_am_handler(uct.iface, FT_CHAOS_AM_ID,
                                  ft_server_chaos_am, shared, 0) != UCS_OK)) {
        ft_die("set_am_handler");
    }

    memh = ft_uct_reg(&uct, shared->area, sizeof(shared->area));
    ft_uct_print_address(&uct, "ft: address", memh, shared->area);
    while (!input.eof) {
        if (uct_worker_progress(uct.worker) > 0) {
            idle = 0;
        } else if (dozes) {
            idle = 0;
            ft_server_doze(&uct);
        } else if (++idle > 16) {
            usleep(200);
        }

        if (((idle % 8) == 0) && ((line = ft_line_read(&input, 0)) != NULL)) {
            ft_server_command(&input, line, &dozes);
        }
    }

    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client --- */

static void ft_client_idle(ft_client_t *client, double seconds)
{
    double end = ft_now() + seconds;

    do {
        ft_client_progress(client);
    } while (ft_now() < end);
}

/* Servers of the chaos test */
static ft_address_t ft_servers[FT_CHAOS_SERVERS];

static void ft_client_add_server(const char *text)
{
    unsigned index;
    int length;

    if ((sscanf(text, "%u%n", &index, &length) != 1) ||
        (index >= FT_CHAOS_SERVERS) ||
        (ft_uct_parse_address(text + length, &ft_servers[index]) != 0)) {
        ft_die("not an address: %s", text);
    }
}

static int ft_client_check(ft_client_t *client)
{
    ucs_status_t status = uct_ep_check(client->ep, 0, NULL);

    if (status != UCS_OK) {
        snprintf(client->error, sizeof(client->error), "check: %s",
                 ucs_status_string(status));
        return -1;
    }

    return 0;
}

static void ft_client_command(ft_client_t *client, const char *line)
{
    ft_regs_params_t load;
    unsigned number, flags;
    double seconds;
    char plan[64];
    int ret = 0;

    client->error[0] = '\0';
    if (!strncmp(line, "connect ", 8)) {
        ft_uct_use_address(&client->uct, line + 8, &client->server,
                           &client->rkey);
    } else if (!strcmp(line, "open")) {
        ft_client_reopen(client);
    } else if (sscanf(line, "warm %u", &number) == 1) {
        ret = ft_client_warm(client, number);
    } else if (sscanf(line, "run %u %63s %u", &number, plan, &flags) == 3) {
        ret = ft_client_run(client, number, plan, flags);
    } else if (!strcmp(line, "check")) {
        ret = ft_client_check(client);
    } else if (sscanf(line, "idle %lf", &seconds) == 1) {
        ft_client_idle(client, seconds);
    } else if (!strncmp(line, "server ", 7)) {
        ft_client_add_server(line + 7);
    } else if (sscanf(line, "chaos %u %u %u %lu %lf %255s", &load.client,
                      &load.num_clients, &load.num_servers, &load.seed,
                      &load.seconds, load.path) == 6) {
        ret = ft_regs_run(&client->uct, ft_servers, &load, client->error,
                          sizeof(client->error));
    } else if (sscanf(line, "timeout %lf", &seconds) == 1) {
        client->timeout = seconds;
    } else if (sscanf(line, "pace %lf", &seconds) == 1) {
        client->pace = seconds;
    } else {
        ft_die("unknown command: %s", line);
    }

    if (ret == 0) {
        printf("ft: ok\n");
    } else {
        printf("ft: fail %s\n", client->error);
    }
}

static int ft_client(ft_shared_t *shared)
{
    static ft_client_t client;
    ft_line_t input = {.length = 0};
    const char *line;

    ft_uct_open(&client.uct, FT_TL_NAME);
    ft_client_init(&client, shared);
    client.input = &input;
    printf("ft: ready\n");
    while (!input.eof) {
        ft_client_progress(&client);
        if ((line = ft_line_read(&input, 0)) != NULL) {
            ft_client_command(&client, line);
        }
    }

    ft_client_cleanup(&client);
    ft_uct_close(&client.uct);
    return 0;
}

int main(int argc, char **argv)
{
    ft_shared_t *shared;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (argc != 3) {
        ft_die("usage: ft_job server|client FILE");
    }

    shared = ft_map(argv[2]);
    ft_device_use(!strcmp(argv[1], "server"));
    return !strcmp(argv[1], "server") ? ft_server(shared) : ft_client(shared);
}
