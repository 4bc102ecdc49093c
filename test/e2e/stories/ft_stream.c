/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A stream of numbered messages of 64 bytes to a receiver that computes between its polls. Run
 * by test/e2e/stories/test_messages.sh:
 *
 *     ft_stream server MSEC   prints its address; after each poll of all that is there, at
 *                             most 1024 calls of progress, it computes for so long. Prints
 *                             how many there were; ends when stdin does
 *     ft_stream client        reads the address from stdin, and sends until it reads another
 *                             line; says when it has started, and how many it has sent
 */
#include "ft_uct.h"

#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME   "rc_varuna"
#define FT_AM_ID     3
#define FT_MAX_POLLS 1024
#define FT_STARTED   10000  /* Messages: more than wait for an endpoint to be opened */

typedef struct {
    uint64_t is_last;       /* What UCT calls the header */
    uint64_t number;
    uint64_t padding[6];
} ft_message_t;

typedef struct {
    uint64_t num;
    int      ended;
} ft_received_t;


static ucs_status_t ft_on_message(void *arg, void *data, size_t length, unsigned flags)
{
    const ft_message_t *message = data;
    ft_received_t *received     = arg;

    (void)flags;
    if ((length != sizeof(*message)) || received->ended ||
        (message->number != received->num)) {
        ft_die("message %lu of %zu bytes came, instead of %lu",
               (unsigned long)message->number, length, (unsigned long)received->num);
    }

    ++received->num;
    received->ended = (message->is_last != 0);
    if (received->ended) {
        printf("ft: received %lu\n", (unsigned long)received->num);
    }
    return UCS_OK;
}

static int ft_server(unsigned msec)
{
    struct pollfd pfd      = {.fd = STDIN_FILENO, .events = POLLIN};
    ft_received_t received = {0};
    static char memory[4096] __attribute__((aligned(4096)));
    ft_uct_t uct;
    uct_mem_h memh;
    unsigned polls;

    ft_uct_open(&uct, FT_TL_NAME);
    uct_iface_set_am_handler(uct.iface, FT_AM_ID, ft_on_message, &received, 0);
    memh = ft_uct_reg(&uct, memory, sizeof(memory));
    ft_uct_print_address(&uct, "ft: address", memh, memory);
    do {
        for (polls = 0; (polls < FT_MAX_POLLS) &&
                        (uct_worker_progress(uct.worker) > 0); ++polls) {
        }
        usleep(msec * 1000);
    } while (!received.ended || (poll(&pfd, 1, 0) <= 0));

    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

static int ft_client(void)
{
    struct pollfd pfd    = {.fd = STDIN_FILENO, .events = POLLIN};
    ft_message_t message = {0};
    ft_address_t server;
    uct_rkey_bundle_t rkey;
    ucs_status_t status;
    ft_uct_t uct;
    uct_ep_h ep;

    ft_uct_open(&uct, FT_TL_NAME);
    ft_uct_read_address(&uct, &server, &rkey);
    ep = ft_uct_connect(&uct, &server);
    while (!message.is_last) {
        message.is_last = (poll(&pfd, 1, 0) > 0);
        do {
            status = uct_ep_am_short(ep, FT_AM_ID, message.is_last, &message.number,
                                     sizeof(message) - sizeof(message.is_last));
            uct_worker_progress(uct.worker);
        } while ((status == UCS_ERR_NO_RESOURCE) && (uct.ep_errors == 0));

        if (status != UCS_OK) {
            ft_die("message %lu: %s", (unsigned long)message.number,
                   ucs_status_string(status));
        }
        if (++message.number == FT_STARTED) {
            printf("ft: started\n");
        }
    }

    do {
        uct_worker_progress(uct.worker);
        status = uct_ep_flush(ep, 0, NULL);
    } while (((status == UCS_INPROGRESS) || (status == UCS_ERR_NO_RESOURCE)) &&
             (uct.ep_errors == 0));

    printf("ft: sent %lu\n", (unsigned long)message.number);
    ft_uct_leave(&uct, ep, &rkey, NULL);
    return uct.ep_errors != 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* We poll it */
    if ((argc == 3) && !strcmp(argv[1], "server")) {
        return ft_server(strtoul(argv[2], NULL, 0));
    } else if ((argc == 2) && !strcmp(argv[1], "client")) {
        return ft_client();
    }

    ft_die("usage: ft_stream server MSEC | client");
}
