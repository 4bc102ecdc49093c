/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Closes an endpoint at a command, and then stays without calling progress. Run by
 * test/e2e/peers/test_close.sh, with a server's address on stdin:
 *
 *     ft_close used    the endpoint has posted something, and RC is connected
 *     ft_close new     the endpoint was just created, and has no answer yet
 *
 * Each further line starts the next step: close the endpoint; exit.
 */
#include "ft_uct.h"
#include "ft_vfs.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define FT_TIMEOUT 120

/* Then the server has a queue pair for it */
static void ft_use(ft_uct_t *uct, uct_ep_h ep, uint64_t address, uct_rkey_t rkey)
{
    time_t end    = time(NULL) + FT_TIMEOUT;
    uint64_t word = 1;
    ucs_status_t status;

    do {
        status = uct_ep_put_short(ep, &word, sizeof(word), address, rkey);
        uct_worker_progress(uct->worker);
        if (((status != UCS_OK) && (status != UCS_ERR_NO_RESOURCE)) ||
            (time(NULL) > end)) {
            ft_die("not on RC: %s", ucs_status_string(status));
        }
    } while (ft_vfs_count_rc() == 0);

    while (uct_ep_flush(ep, 0, NULL) != UCS_OK) {
        uct_worker_progress(uct->worker);
    }
}

static void ft_await_line(void)
{
    char line[16];

    if (fgets(line, sizeof(line), stdin) == NULL) {
        ft_die("standard input ended before the next step");
    }
}

int main(int argc, char **argv)
{
    uct_rkey_bundle_t rkey;
    ft_address_t server;
    ft_uct_t uct;
    uct_ep_h ep;

    if ((argc != 2) || (strcmp(argv[1], "used") && strcmp(argv[1], "new"))) {
        ft_die("usage: ft_close used | new");
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0);
    ft_uct_open(&uct, "rc_varuna");
    ft_uct_read_address(&uct, &server, &rkey);

    ep = ft_uct_connect(&uct, &server);
    if (!strcmp(argv[1], "used")) {
        ft_use(&uct, ep, server.base, rkey.rkey);
    }

    printf("ft: open\n");
    ft_await_line();
    uct_ep_destroy(ep);
    printf("ft: closed\n");
    ft_await_line();
    uct_rkey_release(uct.component, &rkey);
    ft_uct_close(&uct);
    return 0;
}
