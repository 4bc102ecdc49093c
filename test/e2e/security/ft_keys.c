/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A client that abuses the keys that it was given. It opens vQPs as any client does,
 * reads keys and addresses from them, and uses these on its own queue pair, where only
 * the NIC checks accesses.
 *
 *     ft_keys server            prints its address, and keys that no client gets;
 *                               exits at the end of its input
 *     ft_keys client ADDRESS KEYS CHECK
 *
 * Each access prints one line, "NAME: done" or "NAME: refused"; the memory after it is
 * "NAME: intact" or "NAME: changed" (test/e2e/security/test_keys.sh).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "ft_keys.h"
#include "ft_clock.h"

#include <uct/ib/varuna/ctl/varuna_peer.h>

#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME  "rc_varuna"
#define FT_RAW_TL   "dc_mlx5"

typedef enum {
    FT_READ,
    FT_WRITE,
    FT_CAS
} ft_kind_t;

/* The server's two pages */
typedef struct {
    uint64_t known[FT_WORDS];
    uint64_t secret[FT_WORDS];
} ft_memory_t;

/* --- Server --- */

static void ft_fill(ft_memory_t *memory)
{
    uint32_t i;

    for (i = 0; i < FT_WORDS; ++i) {
        memory->known[i]  = ft_uid(i);
        memory->secret[i] = ft_uid(i);
    }
}

static int ft_is_full(const ft_memory_t *memory)
{
    uint32_t i;

    for (i = 0; i < FT_WORDS; ++i) {
        if (((const volatile uint64_t*)memory->secret)[i] != ft_uid(i)) {
            return 0;
        }
    }

    return 1;
}

/* Keys have 32 bits, so a client can guess them. Print what it would find, without
 * packing the key. */
static void ft_print_guess(ft_uct_t *uct, uct_mem_h tl_memh)
{
    const uct_varuna_md_t *md   = ucs_derived_of(uct->md, uct_varuna_md_t);
    const uct_varuna_mem_t *mem = tl_memh;
    uint64_t key;
    unsigned nic;

    printf("ft: secret");
    for (nic = 0; nic < md->num_nics; ++nic) {
        key = UCT_INVALID_RKEY;
        if ((mem->inner[nic] != NULL) &&
            (uct_md_mkey_pack(md->nics[nic].md, mem->inner[nic], &key) !=
             UCS_OK)) {
            ft_die("cannot pack a key");
        }
        printf(" 0x%" PRIx64, key);
    }
    printf("\n");
}

static int ft_server(void)
{
    static ft_memory_t memory __attribute__((aligned(4096)));
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    uct_mem_h known, secret;
    ft_uct_t uct;

    ft_uct_open(&uct, FT_TL_NAME);
    ft_fill(&memory);
    known  = ft_uct_reg(&uct, memory.known, sizeof(memory.known));
    secret = ft_uct_reg(&uct, memory.secret, sizeof(memory.secret));
    ft_print_guess(&uct, secret);
    ft_uct_print_address(&uct, "ft: address", known, &memory);
    fflush(stdout);
    while (poll(&pfd, 1, 1) == 0) {
        while (uct_worker_progress(uct.worker) > 0);
    }

    printf("secret: %s\n", ft_is_full(&memory) ? "intact" : "changed");
    uct_md_mem_dereg(uct.md, secret);
    uct_md_mem_dereg(uct.md, known);
    ft_uct_close(&uct);
    return 0;
}

/* --- Client: vQPs as in any client --- */

void ft_progress(ft_client_t *client, double end, const char *what)
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

uct_varuna_ep_t *ft_open(ft_client_t *client)
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

void ft_close(ft_client_t *client, uct_varuna_ep_t *ep)
{
    ft_flush(client, &ep->super.super);
    uct_ep_destroy(&ep->super.super);
}

/* --- Client: raw accesses --- */

static void ft_done(uct_completion_t *comp)
{
}

static void ft_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t ft_post(ft_client_t *client, uct_ep_h ep, ft_kind_t kind,
                            uint64_t addr, uct_rkey_t rkey, size_t length,
                            uct_completion_t *comp)
{
    uct_iov_t iov = {.buffer = client->buffer, .length = length,
                     .memh = client->memh, .stride = 0, .count = 1};

    switch (kind) {
    case FT_READ:
        return uct_ep_get_bcopy(ep, ft_unpack, client->buffer, length,
                                addr, rkey, comp);
    case FT_WRITE:
        return uct_ep_put_zcopy(ep, &iov, 1, addr, rkey, comp);
    default:
        return uct_ep_atomic_cswap64(ep, client->buffer[0], client->buffer[1],
                                     addr, rkey, client->buffer, comp);
    }
}

/* Each access has its own endpoint, because it fails if the NIC refuses the access.
 * @return Whether the access was executed */
static int ft_access_bytes(ft_client_t *client, const ft_place_t *place,
                           ft_kind_t kind, size_t length)
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
                             length, &comp)) == UCS_ERR_NO_RESOURCE) {
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

static int ft_access(ft_client_t *client, const ft_place_t *place,
                     ft_kind_t kind)
{
    return ft_access_bytes(client, place, kind, sizeof(uint64_t));
}

int ft_write_bytes(ft_client_t *client, const ft_place_t *place, size_t length)
{
    return ft_access_bytes(client, place, FT_WRITE, length);
}

void ft_tell(const char *name, int is_done)
{
    printf("%s: %s\n", name, is_done ? "done" : "refused");
}

void ft_write(ft_client_t *client, const char *name,
                     const ft_place_t *place, uint64_t value)
{
    client->buffer[0] = value;
    ft_tell(name, ft_access(client, place, FT_WRITE));
}

uint64_t ft_peek(ft_client_t *client, const ft_place_t *place)
{
    if (!ft_access(client, place, FT_READ)) {
        ft_die("cannot read 0x%" PRIx64, place->addr);
    }

    return client->buffer[0];
}

void ft_read(ft_client_t *client, const char *name,
                    const ft_place_t *place)
{
    ft_tell(name, ft_access(client, place, FT_READ));
}

void ft_cas(ft_client_t *client, const char *name,
                   const ft_place_t *place, uint64_t compare, uint64_t swap)
{
    client->buffer[0] = compare;
    client->buffer[1] = swap;
    ft_tell(name, ft_access(client, place, FT_CAS));
}

void ft_expect(ft_client_t *client, const char *name,
                      const ft_place_t *place, uint64_t value)
{
    printf("%s: %s\n", name,
           (ft_peek(client, place) == value) ? "intact" : "changed");
}

/* As uct_rkey_unpack() would do */
static void ft_guess(ft_client_t *client, char *keys)
{
    unsigned nic;
    char *save;

    client->secret  = client->server.base + offsetof(ft_memory_t, secret);
    client->guessed = *(const uct_varuna_rkey_t*)client->memory.rkey;
    for (nic = 0; nic < client->guessed.num_keys; ++nic) {
        client->guessed.inner[nic].rkey =
                strtoull(strtok_r((nic == 0) ? keys : NULL, " ", &save), NULL,
                         0);
    }
}

static int ft_client(const char *address, char *keys, const char *name)
{
    static uint64_t buffer[512] __attribute__((aligned(4096)));
    static ft_client_t client;
    const ft_check_t *check;

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

    ft_guess(&client, keys);
    for (check = ft_checks; check->name != NULL; ++check) {
        if (!strcmp(check->name, name)) {
            check->func(&client);
            break;
        }
    }

    if (check->name == NULL) {
        ft_die("no check '%s'", name);
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
    } else if ((argc == 5) && !strcmp(argv[1], "client")) {
        return ft_client(argv[2], argv[3], argv[4]);
    }

    fprintf(stderr, "usage: ft_keys server | client ADDRESS KEYS CHECK\n");
    return 2;
}
