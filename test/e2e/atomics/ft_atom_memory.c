/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics by the target's CPU on memory that changes meanwhile: it is deregistered,
 * even inside munmap() by a memory hook, or unmapped, or the application blocks the
 * async context. Each round has its own page. The server never calls progress while
 * atomics arrive, so its async thread executes them.
 *
 *     ft_atom_memory server FILE STORY ROUNDS
 *     ft_atom_memory client FILE
 *
 * FILE is shared memory of both. The server publishes the address and the key of a
 * page; the client adds 1 to its first word, 8 atomics at a time, until one is refused.
 * The page must contain the sum of the others. Stories:
 *
 *   dereg      the page is deregistered
 *   blocked    the same, while the application blocks the async context
 *   hook       munmap() of the page, and an event handler of UCM deregisters it
 *   unmapped, readonly, none, truncated
 *              the page vanishes, or cannot be written; it returns with the same key
 *   asleep     the async context is blocked for two seconds, in which no
 *              atomic is executed, and none fails
 */
#include <config.h>

#include "ft_uct.h"
#include "ft_clock.h"

#include <ucm/api/ucm.h>
#include <ucs/async/async.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_PAGE    4096
#define FT_DEPTH   8
#define FT_TIME    60.0  /* Seconds until a process counts as stuck */
#define FT_SOME    20u   /* Atomics that show that the page is in use */

/* Written by the server, except for members of the client. The address is written
 * before the version, and not while the client uses it */
typedef struct {
    volatile uint32_t version;  /* Of the page, from 1; 0: there is none yet */
    volatile uint32_t is_over;
    ft_address_t      address;
    volatile uint32_t settled;  /* Client: no atomic of this version is left */
    volatile uint64_t executed; /* Client: results of the present version */
    volatile int32_t  status;   /* Client: of the refused ones */
} ft_shared_t;

typedef struct {
    ft_uct_t    uct;
    ft_shared_t *shared;
    int         fd;         /* Of the page */
    uint64_t    *page;      /* Registered, and the client's */
    uint64_t    *view;      /* The same memory, for us */
    uct_mem_h   memh;
    uint64_t    last;       /* What the word was when its page was deregistered */
    unsigned    num_hooks;
} ft_server_t;

static ft_shared_t *ft_share(const char *path)
{
    int fd         = open(path, O_RDWR);
    ft_shared_t *s = (fd < 0) ? MAP_FAILED :
                     mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED,
                          fd, 0);

    if (s == MAP_FAILED) {
        ft_die("%s: %m", path);
    }

    close(fd);
    return s;
}

/* While one waits, the other and the async thread need the CPU */
static void ft_check_time(double since, const char *what)
{
    usleep(20);
    if (ft_now() - since > FT_TIME) {
        ft_die("nothing happens: %s", what);
    }
}

/* --- Server --- */

static void *ft_map(void *place, int fd, int prot)
{
    void *ptr = mmap(place, FT_PAGE, prot,
                     MAP_SHARED | ((place == NULL) ? 0 : MAP_FIXED), fd, 0);

    if (ptr == MAP_FAILED) {
        ft_die("mmap: %m");
    }

    return ptr;
}

static void ft_publish(ft_server_t *server)
{
    __sync_synchronize();
    server->shared->version = server->shared->version + 1;
}

static void ft_page_create(ft_server_t *server)
{
    server->fd = memfd_create("ft_atom_memory", 0);
    if ((server->fd < 0) || (ftruncate(server->fd, FT_PAGE) != 0)) {
        ft_die("memfd: %m");
    }

    server->page = ft_map(NULL, server->fd, PROT_READ | PROT_WRITE);
    server->view = ft_map(NULL, server->fd, PROT_READ | PROT_WRITE);
    server->memh = ft_uct_reg(&server->uct, server->page, FT_PAGE);
    ft_uct_own_address(&server->uct, server->memh, server->page,
                       &server->shared->address);
    ft_publish(server);
}

static void ft_page_dereg(ft_server_t *server)
{
    if (uct_md_mem_dereg(server->uct.md, server->memh) != UCS_OK) {
        ft_die("mem_dereg failed");
    }

    server->memh = NULL;
    server->last = server->view[0];
}

static void ft_page_destroy(ft_server_t *server)
{
    munmap(server->view, FT_PAGE);
    close(server->fd);
}

/* As in a registration cache */
static void ft_unmapped(ucm_event_type_t type, ucm_event_t *event, void *arg)
{
    ft_server_t *server = arg;

    if ((event->vm_unmapped.address == server->page) && (server->memh != NULL)) {
        ++server->num_hooks;
        ft_page_dereg(server);
    }
}

/* Wait for this number of results */
static void ft_await_some(const ft_server_t *server)
{
    const ft_shared_t *shared = server->shared;
    uint64_t before           = shared->executed;
    double since              = ft_now();

    while ((shared->executed < (before + FT_SOME)) &&
           (shared->settled < shared->version)) {
        ft_check_time(since, "no atomic is executed");
    }

    if (shared->settled == shared->version) {
        ft_die("an atomic was refused: %s",
               ucs_status_string((ucs_status_t)shared->status));
    }
}

/* Until the client has stopped, with this status */
static void ft_await_refused(const ft_server_t *server, ucs_status_t status)
{
    const ft_shared_t *shared = server->shared;
    double since              = ft_now();

    while (shared->settled < shared->version) {
        ft_check_time(since, "no atomic is refused");
    }

    if (shared->status != status) {
        ft_die("an atomic was refused with %s",
               ucs_status_string((ucs_status_t)shared->status));
    }
}

static void ft_expect(const ft_server_t *server, uint64_t value)
{
    if (value != server->shared->executed) {
        ft_die("version %u: %lu were executed, but %lu results arrived",
               server->shared->version, value, server->shared->executed);
    }
}

static void ft_story_dereg(ft_server_t *server, const char *name)
{
    int is_blocked = !strcmp(name, "blocked");

    ft_page_create(server);
    ft_await_some(server);
    if (!strcmp(name, "hook")) {
        munmap(server->page, FT_PAGE);
        if (server->memh != NULL) {
            ft_die("munmap() has called no event handler");
        }
    } else {
        if (is_blocked) {
            UCS_ASYNC_BLOCK(server->uct.async);
        }
        ft_page_dereg(server);
        munmap(server->page, FT_PAGE);
        if (is_blocked) {
            UCS_ASYNC_UNBLOCK(server->uct.async);
        }
    }

    ft_await_refused(server, UCS_ERR_REJECTED);
    ft_expect(server, server->last);
    ft_page_destroy(server);
}

static void ft_break(ft_server_t *server, const char *name)
{
    int ret = 0;

    if (!strcmp(name, "unmapped")) {
        ret = munmap(server->page, FT_PAGE);
    } else if (!strcmp(name, "truncated")) {
        ret = ftruncate(server->fd, 0);
    } else if (!strcmp(name, "readonly")) {
        ret = mprotect(server->page, FT_PAGE, PROT_READ);
    } else if (!strcmp(name, "none")) {
        ret = mprotect(server->page, FT_PAGE, PROT_NONE);
    } else {
        ft_die("no story %s", name);
    }

    if (ret != 0) {
        ft_die("%s: %m", name);
    }
}

static void ft_story_fault(ft_server_t *server, const char *name)
{
    uint64_t before;

    ft_page_create(server);
    ft_await_some(server);
    ft_break(server, name);
    ft_await_refused(server, UCS_ERR_INVALID_ADDR);
    if (!strcmp(name, "truncated")) {
        /* A new page of zeros */
        if (ftruncate(server->fd, FT_PAGE) != 0) {
            ft_die("ftruncate: %m");
        }
    } else {
        ft_expect(server, server->view[0]);
        ft_map(server->page, server->fd, PROT_READ | PROT_WRITE);
    }

    /* Nothing else has failed: the same key is valid again */
    before = server->view[0];
    ft_publish(server);
    ft_await_some(server);
    ft_page_dereg(server);
    ft_await_refused(server, UCS_ERR_REJECTED);
    ft_expect(server, server->last - before);
    munmap(server->page, FT_PAGE);
    ft_page_destroy(server);
}

static void ft_story_asleep(ft_server_t *server)
{
    uint64_t before;

    ft_page_create(server);
    ft_await_some(server);
    UCS_ASYNC_BLOCK(server->uct.async);
    before = server->view[0];
    sleep(2);
    if (server->view[0] != before) {
        ft_die("an atomic was executed while the application had blocked it");
    }

    UCS_ASYNC_UNBLOCK(server->uct.async);
    ft_await_some(server);
    ft_page_dereg(server);
    ft_await_refused(server, UCS_ERR_REJECTED);
    ft_expect(server, server->last);
    munmap(server->page, FT_PAGE);
    ft_page_destroy(server);
}

static int ft_server(ft_shared_t *shared, const char *story, unsigned rounds)
{
    static ft_server_t server;
    double since;
    unsigned i;

    server.shared = shared;
    ft_uct_open(&server.uct, "rc_varuna");
    if (!strcmp(story, "hook") &&
        (ucm_set_event_handler(UCM_EVENT_VM_UNMAPPED, -100, ft_unmapped,
                               &server) != UCS_OK)) {
        ft_die("no event handler");
    }

    for (i = 0; i < rounds; ++i) {
        if (!strcmp(story, "dereg") || !strcmp(story, "blocked") ||
            !strcmp(story, "hook")) {
            ft_story_dereg(&server, story);
        } else if (!strcmp(story, "asleep")) {
            ft_story_asleep(&server);
        } else {
            ft_story_fault(&server, story);
        }
    }

    ucm_unset_event_handler(UCM_EVENT_VM_UNMAPPED, ft_unmapped, &server);
    shared->is_over = 1;
    for (since = ft_now(); shared->is_over == 1;) {
        uct_worker_progress(server.uct.worker);
        ft_check_time(since, "the client does not exit");
    }

    ft_uct_close(&server.uct);
    printf("ft: ok %u rounds, %u hooks\n", rounds, server.num_hooks);
    return 0;
}

/* --- Client --- */

typedef struct ft_client ft_client_t;

typedef struct {
    uct_completion_t comp;
    ft_client_t      *client;
    uint64_t         result;
    int              is_busy;
} ft_add_t;

struct ft_client {
    ft_uct_t          uct;
    ft_shared_t       *shared;
    uct_ep_h          ep;
    uct_rkey_bundle_t rkey;
    ft_add_t          adds[FT_DEPTH];
    unsigned          in_flight;
    uint64_t          executed;
    ucs_status_t      status;
};

static void ft_added(uct_completion_t *comp)
{
    ft_add_t *add       = (ft_add_t*)comp;
    ft_client_t *client = add->client;

    add->is_busy = 0;
    --client->in_flight;
    if (comp->status == UCS_OK) {
        client->shared->executed = ++client->executed;
    } else {
        client->status = comp->status;
    }
}

static void ft_add(ft_client_t *client, ft_add_t *add)
{
    ucs_status_t status;

    add->comp.func   = ft_added;
    add->comp.count  = 1;
    add->comp.status = UCS_OK;
    add->client      = client;
    status           = uct_ep_atomic64_fetch(client->ep, UCT_ATOMIC_OP_ADD, 1,
                                             &add->result,
                                             client->shared->address.base,
                                             client->rkey.rkey, &add->comp);
    if (status == UCS_INPROGRESS) {
        add->is_busy = 1;
        ++client->in_flight;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        ft_die("fetch and add: %s", ucs_status_string(status));
    }
}

/* One page: until an atomic is refused, and all are complete */
static void ft_use_page(ft_client_t *client, uint32_t version)
{
    double since = ft_now();
    unsigned i;

    if (uct_rkey_unpack(client->uct.component, client->shared->address.rkey,
                        &client->rkey) != UCS_OK) {
        ft_die("rkey_unpack");
    }

    client->executed         = 0;
    client->shared->executed = 0;
    client->status           = UCS_OK;
    while ((client->status == UCS_OK) || (client->in_flight > 0)) {
        for (i = 0; (i < FT_DEPTH) && (client->status == UCS_OK); ++i) {
            if (!client->adds[i].is_busy) {
                ft_add(client, &client->adds[i]);
            }
        }

        if (uct_worker_progress(client->uct.worker) == 0) {
            ft_check_time(since, "atomics are not answered");
        }

        if (client->uct.ep_errors > 0) {
            ft_die("the endpoint failed");
        }
    }

    uct_rkey_release(client->uct.component, &client->rkey);
    client->shared->status  = client->status;
    __sync_synchronize();
    client->shared->settled = version;
}

static int ft_client(ft_shared_t *shared)
{
    static ft_client_t client;
    double since = ft_now();

    client.shared = shared;
    ft_uct_open(&client.uct, "rc_varuna");
    while (shared->version == 0) {
        ft_check_time(since, "no server");
    }

    client.ep = ft_uct_connect(&client.uct, &shared->address);
    while (!shared->is_over) {
        if (shared->settled < shared->version) {
            ft_use_page(&client, shared->version);
            since = ft_now();
        }

        uct_worker_progress(client.uct.worker);
        ft_check_time(since, "no page");
    }

    uct_ep_destroy(client.ep);
    ft_uct_close(&client.uct);
    shared->is_over = 2;
    printf("ft: ok\n");
    return 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    if ((argc == 5) && !strcmp(argv[1], "server")) {
        return ft_server(ft_share(argv[2]), argv[3], atoi(argv[4]));
    } else if ((argc == 3) && !strcmp(argv[1], "client")) {
        return ft_client(ft_share(argv[2]));
    }

    ft_die("usage: ft_atom_memory server FILE STORY ROUNDS | client FILE");
}
