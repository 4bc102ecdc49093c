/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCP's wire-up: a server that only progresses, and a client that connects to it.
 *
 *     ft_wireup server FILE MODE   writes its address to FILE, and progresses until its
 *                                  input ends. MODE: poll, or sleep until there is an event
 *     ft_wireup client FILE        prints "ft: open" when its endpoint works. At the next
 *                                  line of its input it sends a message for which UCP needs
 *                                  an endpoint of the server's, and so an answer of the
 *                                  server's UCP: "ft: answered". Then it waits to be ended
 */
#include "ft_ucp.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FT_MESSAGE 7

static int ft_input_is_ready(void)
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};

    return poll(&pfd, 1, 0) > 0;
}

static ucs_status_t ft_receive(void *arg, const void *header, size_t header_length,
                               void *data, size_t length,
                               const ucp_am_recv_param_t *param)
{
    printf("ft: message\n");
    fflush(stdout);
    return UCS_OK;
}

/* Until there is an event, or input */
static void ft_sleep(ft_ucp_t *ucp)
{
    struct pollfd pfds[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};

    ft_check_status(ucp_worker_get_efd(ucp->worker, &pfds[1].fd), "ucp_worker_get_efd");
    if (ucp_worker_arm(ucp->worker) == UCS_OK) {
        poll(pfds, 2, -1);
    }
}

static void ft_serve(ft_ucp_t *ucp, const char *path, int sleeps)
{
    ucp_am_handler_param_t handler = {
        .field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB,
        .id         = FT_MESSAGE,
        .cb         = ft_receive
    };

    ft_check_status(ucp_worker_set_am_recv_handler(ucp->worker, &handler),
                    "ucp_worker_set_am_recv_handler");
    ft_ucp_publish(ucp, NULL, NULL, path);
    while (!ft_input_is_ready()) {
        if ((ucp_worker_progress(ucp->worker) == 0) && sleeps) {
            ft_sleep(ucp);
        }
    }
}

static void ft_send(ft_ucp_t *ucp, uint32_t flags)
{
    ucp_request_param_t param = {
        .op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS,
        .flags        = UCP_AM_SEND_FLAG_EAGER | flags
    };
    uint64_t header           = 1;

    ft_ucp_wait(ucp, ucp_am_send_nbx(ucp->ep, FT_MESSAGE, &header, sizeof(header), NULL, 0,
                                     &param), "send");
    param.op_attr_mask = 0;
    ft_ucp_wait(ucp, ucp_ep_flush_nbx(ucp->ep, &param), "flush");
}

static void ft_call(ft_ucp_t *ucp, const char *path)
{
    ft_ucp_connect(ucp, path);
    ft_send(ucp, 0);
    printf("ft: open\n");
    fflush(stdout);
    while (!ft_input_is_ready()) {
        ucp_worker_progress(ucp->worker);
    }

    ft_send(ucp, UCP_AM_SEND_FLAG_REPLY);
    printf("ft: answered\n");
    fflush(stdout);
    while (1) {
        ucp_worker_progress(ucp->worker);
    }
}

int main(int argc, char **argv)
{
    static ft_ucp_t ucp;
    int sleeps;

    if ((argc == 3) && !strcmp(argv[1], "client")) {
        ft_ucp_open(&ucp, UCP_FEATURE_AM);
        ft_call(&ucp, argv[2]);
    } else if ((argc != 4) || strcmp(argv[1], "server")) {
        printf("usage: ft_wireup server FILE poll|sleep, ft_wireup client FILE\n");
        return 2;
    }

    sleeps = !strcmp(argv[3], "sleep");
    ft_ucp_open(&ucp, UCP_FEATURE_AM | (sleeps ? UCP_FEATURE_WAKEUP : 0));
    ft_serve(&ucp, argv[2], sleeps);
    ft_ucp_close(&ucp);
    printf("ft: ok\n");
    return 0;
}
