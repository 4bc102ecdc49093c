/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A client that uses the keys which it was given for more than they are meant for.
 * It opens vQPs as any client does, looks into them for keys and addresses, and uses
 * those on a queue pair of its own: RDMA asks nobody but the NIC.
 *
 *     ft_keys server            prints its address; ends with its input
 *     ft_keys client ADDRESS CHECK
 *
 * Each access is one line, "NAME: done" or "NAME: refused"; what memory holds after it is
 * "NAME: intact" or "NAME: changed" (test/scripts/test_keys.sh).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "ft_uct.h"

#include <uct/ib/varuna/varuna_ctl.h>
#include <uct/ib/varuna/varuna_ep.h>
#include <uct/ib/varuna/varuna_rkey.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FT_TL_NAME  "rc_varuna"
#define FT_RAW_TL   "dc_mlx5"
#define FT_TIMEOUT  60.0
#define FT_FORGED   0x666f726765640000ul

typedef enum {
    FT_READ,
    FT_WRITE,
    FT_CAS
} ft_kind_t;

typedef struct {
    ft_uct_t          uct;       /* rc_varuna */
    ft_uct_t          raw;       /* Its own queue pairs */
    ft_address_t      server;
    uct_rkey_bundle_t memory;    /* What the server has given us a key for */
    uint64_t          *buffer;   /* Registered with raw */
    uct_mem_h         memh;
} ft_client_t;

/* Where and with which key */
typedef struct {
    const uct_varuna_ep_t *ep;   /* The server's address is known to it */
    uint64_t              addr;
    uct_rkey_t            rkey;  /* Outer */
} ft_place_t;

static double ft_now(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec + (ts.tv_nsec * 1e-9);
}

/* --- Server --- */

static int ft_server(void)
{
    static uint64_t words[512] __attribute__((aligned(4096)));
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    uct_mem_h memh;
    ft_uct_t uct;

    ft_uct_open(&uct, FT_TL_NAME);
    memh = ft_uct_reg(&uct, words, sizeof(words));
    ft_uct_print_address(&uct, "ft: address", memh, words);
    fflush(stdout);
    while (poll(&pfd, 1, 1) == 0) {
        while (uct_worker_progress(uct.worker) > 0);
    }

    uct_md_mem_dereg(uct.md, memh);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client: vQPs as any client has them --- */

static void ft_progress(ft_client_t *client, double end, const char *what)
{
    uct_worker_progress(client->uct.worker);
    uct_worker_progress(client->raw.worker);
    if (ft_now() > end) {
        ft_die("%s takes too long", what);
    }
}

static void ft_flush(ft_client_t *client, uct_ep_h ep)
{
    double end = ft_now() + FT_TIMEOUT;

    while (uct_ep_flush(ep, 0, NULL) != UCS_OK) {
        ft_progress(client, end, "a flush");
    }
}

static uct_varuna_ep_t *ft_open(ft_client_t *client)
{
    double end  = ft_now() + FT_TIMEOUT;
    uint64_t us = 1;
    uct_ep_h ep;

    ep = ft_uct_connect(&client->uct, &client->server);
    while (uct_ep_put_short(ep, &us, sizeof(us), client->server.base,
                            client->memory.rkey) == UCS_ERR_NO_RESOURCE) {
        ft_progress(client, end, "opening");
    }

    ft_flush(client, ep);
    return ucs_derived_of(ep, uct_varuna_ep_t);
}

static void ft_close(ft_client_t *client, uct_varuna_ep_t *ep)
{
    ft_flush(client, &ep->super.super);
    uct_ep_destroy(&ep->super.super);
}

/* --- Client: accesses of its own --- */

static void ft_done(uct_completion_t *comp)
{
}

static void ft_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t ft_post(ft_client_t *client, uct_ep_h ep, ft_kind_t kind,
                            uint64_t addr, uct_rkey_t rkey,
                            uct_completion_t *comp)
{
    uct_iov_t iov = {.buffer = client->buffer, .length = sizeof(uint64_t),
                     .memh = client->memh, .stride = 0, .count = 1};

    switch (kind) {
    case FT_READ:
        return uct_ep_get_bcopy(ep, ft_unpack, client->buffer,
                                sizeof(uint64_t), addr, rkey, comp);
    case FT_WRITE:
        return uct_ep_put_zcopy(ep, &iov, 1, addr, rkey, comp);
    default:
        return uct_ep_atomic_cswap64(ep, client->buffer[0], client->buffer[1],
                                     addr, rkey, client->buffer, comp);
    }
}

/* An endpoint for each access, since the NIC's refusal ends it.
 * @return whether the access was executed */
static int ft_access(ft_client_t *client, const ft_place_t *place,
                     ft_kind_t kind)
{
    const uct_varuna_peer_link_t *link = &place->ep->peer->links[0];
    uct_completion_t comp = {.func = ft_done, .count = 1, .status = UCS_OK};
    double end             = ft_now() + FT_TIMEOUT;
    uct_ep_params_t params = {
        .field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                      UCT_EP_PARAM_FIELD_IFACE_ADDR,
        .iface      = client->raw.iface,
        .dev_addr   = link->device_addr,
        .iface_addr = link->dc_addr
    };
    ucs_status_t status;
    uct_ep_h ep;

    if (uct_ep_create(&params, &ep) != UCS_OK) {
        ft_die("cannot make an endpoint of " FT_RAW_TL);
    }

    while ((status = ft_post(client, ep, kind, place->addr,
                             uct_varuna_rkey_inner(place->rkey, link->nic),
                             &comp)) == UCS_ERR_NO_RESOURCE) {
        ft_progress(client, end, "posting");
    }

    if (UCS_STATUS_IS_ERR(status)) {
        ft_die("posting failed: %s", ucs_status_string(status));
    }

    while ((status == UCS_INPROGRESS) && (comp.count > 0)) {
        ft_progress(client, end, "an access");
    }

    uct_ep_destroy(ep);
    return comp.status == UCS_OK;
}

static void ft_tell(const char *name, int is_done)
{
    printf("%s: %s\n", name, is_done ? "done" : "refused");
}

static void ft_write(ft_client_t *client, const char *name,
                     const ft_place_t *place, uint64_t value)
{
    client->buffer[0] = value;
    ft_tell(name, ft_access(client, place, FT_WRITE));
}

static uint64_t ft_peek(ft_client_t *client, const ft_place_t *place)
{
    if (!ft_access(client, place, FT_READ)) {
        ft_die("cannot read 0x%" PRIx64, place->addr);
    }

    return client->buffer[0];
}

static void ft_read(ft_client_t *client, const char *name,
                    const ft_place_t *place)
{
    ft_tell(name, ft_access(client, place, FT_READ));
}

static void ft_cas(ft_client_t *client, const char *name,
                   const ft_place_t *place, uint64_t compare, uint64_t swap)
{
    client->buffer[0] = compare;
    client->buffer[1] = swap;
    ft_tell(name, ft_access(client, place, FT_CAS));
}

static void ft_expect(ft_client_t *client, const char *name,
                      const ft_place_t *place, uint64_t value)
{
    printf("%s: %s\n", name,
           (ft_peek(client, place) == value) ? "intact" : "changed");
}

/* --- Checks --- */

/* An entry of the rings that no request of ours has used */
static ft_place_t ft_ring(const uct_varuna_ep_t *ep)
{
    return (ft_place_t) {
        .ep   = ep,
        .addr = ep->logs_addr + ((UCT_VARUNA_LOG_SIZE / 2) * sizeof(uint64_t)),
        .rkey = ep->log_rkey
    };
}

static void ft_check_rings(ft_client_t *client)
{
    uct_varuna_ep_t *mine   = ft_open(client);
    uct_varuna_ep_t *theirs = ft_open(client);
    ft_place_t own          = ft_ring(mine);
    ft_place_t other        = ft_ring(theirs);
    ft_place_t forged       = other;
    uint64_t value          = ft_peek(client, &other);

    ft_write(client, "own ring, own key", &own, 1);
    ft_cas(client, "own ring, atomic", &own, 1, 2);
    forged.rkey = own.rkey;
    ft_read(client, "other ring, own key, read", &forged);
    ft_write(client, "other ring, own key", &forged, FT_FORGED);
    ft_expect(client, "other ring", &other, value);

    /* The entries in front of the rings and behind them are others', too */
    forged.ep   = mine;
    forged.addr = mine->logs_addr - sizeof(uint64_t);
    ft_write(client, "before own rings", &forged, FT_FORGED);
    forged.addr = mine->logs_addr + (UCT_VARUNA_LOG_COUNT *
                                     UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
    ft_write(client, "behind own rings", &forged, FT_FORGED);
    ft_close(client, mine);
    ft_close(client, theirs);
}

/* The rings of a closed vQP are somebody else's later, but not with its key. Its ep must
 * live until then, since it has the key: another one asks for the CLOSE */
static void ft_check_reuse(ft_client_t *client)
{
    double end              = ft_now() + FT_TIMEOUT;
    uct_varuna_ep_t *first  = ft_open(client);
    ft_place_t old          = ft_ring(first);
    uct_varuna_rkey_t rkey  = *(const uct_varuna_rkey_t*)old.rkey;
    uct_varuna_ep_t *other  = ft_open(client);
    uct_varuna_ep_t *next;
    ft_place_t now;

    ft_write(client, "rings, own key", &old, 1);
    ft_close(client, first);
    do {
        next = ft_open(client);
        now  = ft_ring(next);
        if (now.addr == old.addr) {
            break;
        }

        ft_close(client, next);
    } while (ft_now() < end);

    if (now.addr != old.addr) {
        ft_die("nobody got these rings again");
    }

    ft_write(client, "rings, next key", &now, 2);
    old.ep   = other;
    old.rkey = (uct_rkey_t)&rkey;
    ft_write(client, "rings, last key", &old, FT_FORGED);
    ft_expect(client, "rings", &now, 2);
    ft_close(client, next);
    ft_close(client, other);
}

static const struct {
    const char *name;
    void       (*func)(ft_client_t *client);
} ft_checks[] = {
    {"rings", ft_check_rings},
    {"reuse", ft_check_reuse}
};

static int ft_client(const char *address, const char *check)
{
    static uint64_t buffer[512] __attribute__((aligned(4096)));
    static ft_client_t client;
    unsigned i;

    if (ft_uct_parse_address(address, &client.server) != 0) {
        ft_die("no address: %s", address);
    }

    ft_uct_open(&client.uct, FT_TL_NAME);
    ft_uct_open(&client.raw, FT_RAW_TL);
    client.buffer = buffer;
    client.memh   = ft_uct_reg(&client.raw, buffer, sizeof(buffer));
    if (uct_rkey_unpack(client.uct.component, client.server.rkey,
                        &client.memory) != UCS_OK) {
        ft_die("cannot unpack the key");
    }

    for (i = 0; i < sizeof(ft_checks) / sizeof(ft_checks[0]); ++i) {
        if (!strcmp(ft_checks[i].name, check)) {
            ft_checks[i].func(&client);
            break;
        }
    }

    if (i == sizeof(ft_checks) / sizeof(ft_checks[0])) {
        ft_die("no check '%s'", check);
    }

    uct_rkey_release(client.uct.component, &client.memory);
    uct_md_mem_dereg(client.raw.md, client.memh);
    ft_uct_close(&client.raw);
    ft_uct_close(&client.uct);
    printf("ft: end\n");
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((argc == 2) && !strcmp(argv[1], "server")) {
        return ft_server();
    } else if ((argc == 4) && !strcmp(argv[1], "client")) {
        return ft_client(argv[2], argv[3]);
    }

    fprintf(stderr, "usage: ft_keys server | client ADDRESS CHECK\n");
    return 2;
}
