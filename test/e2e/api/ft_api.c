/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An external detector in the application: the functions of rc_varuna.h. Run by
 * test/e2e/api/test_api.sh with the address of a server (ft_load.c).
 *
 *     ft_api wrong           invalid arguments
 *     ft_api mark LINK       mark the link down, then open an interface; put; mark it
 *                            up; mark it down; open another interface; put
 *     ft_api threads LINK    two threads call everything while a third one puts
 *
 * And functions of UCT:
 *
 *     ft_api invalidate -    invalidate the endpoint; put before and after
 *                            its failure is reported
 */
#include "ft_symbol.h"
#include "ft_clock.h"
#include "ft_uct.h"

#include <rc_varuna.h>
#include <uct/api/v2/uct_v2.h>
#include <uct/base/uct_iface.h>  /* uct_ep_invalidate(), before 1.22 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME "rc_varuna"
#define FT_LINE    4096
#define FT_STATUS  4096
#define FT_CALLS   60
#define FT_TIMEOUT 80.0 /* Seconds; ends only a hang */
#define FT_SLOTS   32
#define FT_SLOT    16    /* Words, as reads have a minimum; one is used */

static struct {
    int (*link_set)(const char *name, rc_varuna_link_state_t state);
    int (*failover)(rc_varuna_failover_t action);
    size_t (*status)(char *buffer, size_t size);
} ft_api;

typedef struct {
    ft_uct_t          uct;
    uct_rkey_bundle_t rkey;
    uct_mem_h         memh;
    uint64_t          *words;
    uct_ep_h          ep;
    uct_completion_t  comp;
    uint64_t          puts, completed;
} ft_user_t;

static ft_address_t ft_server;

static void ft_expect(int ret, int expected, const char *what)
{
    if (ret != expected) {
        ft_die("%s: %d instead of %d", what, ret, expected);
    }
}

static void *ft_function(const char *name)
{
    void *function = ft_symbol(name);

    if (function == NULL) {
        ft_die("there is no %s", name);
    }

    return function;
}

/* Make UCX load its plugins */
static void ft_initialize(void)
{
    uct_component_h *components;
    unsigned num;

    ft_expect(uct_query_components(&components, &num), UCS_OK, "components");
    uct_release_component_list(components);
    ft_api.link_set = ft_function("rc_varuna_link_set");
    ft_api.failover = ft_function("rc_varuna_failover");
    ft_api.status   = ft_function("rc_varuna_status");
}

/* --- Putting --- */

static void ft_user_open(ft_user_t *user)
{
    memset(user, 0, sizeof(*user));
    ft_uct_open(&user->uct, FT_TL_NAME);
    user->words = calloc(FT_SLOTS * FT_SLOT, sizeof(*user->words));
    user->memh  = ft_uct_reg(&user->uct, user->words,
                             FT_SLOTS * FT_SLOT * sizeof(*user->words));
    if (uct_rkey_unpack(user->uct.component, ft_server.rkey, &user->rkey) !=
        UCS_OK) {
        ft_die("rkey_unpack");
    }

    user->ep = ft_uct_connect(&user->uct, &ft_server);
}

static void ft_user_close(ft_user_t *user)
{
    ft_uct_leave(&user->uct, user->ep, &user->rkey, user->memh);
    free(user->words);
}

static void ft_completed(uct_completion_t *self)
{
    ft_user_t *user = (ft_user_t*)((char*)self - offsetof(ft_user_t, comp));

    ++user->completed;
}

typedef ucs_status_t (*ft_zcopy_func_t)(uct_ep_h ep, const uct_iov_t *iov,
                                        size_t iovcnt, uint64_t remote_addr,
                                        uct_rkey_t rkey,
                                        uct_completion_t *comp);

/* One put or get of a slot, until its completion, which must come only once */
static void ft_user_do(ft_user_t *user, ft_zcopy_func_t func, unsigned slot)
{
    uct_iov_t iov        = {.buffer = &user->words[slot],
                            .length = FT_SLOT * sizeof(*user->words),
                            .memh = user->memh, .count = 1};
    double end           = ft_now() + FT_TIMEOUT;
    uint64_t completed   = user->completed;
    ucs_status_t status;

    user->comp.func   = ft_completed;
    user->comp.count  = 1;
    user->comp.status = UCS_OK;
    do {
        status = func(user->ep, &iov, 1, ft_server.base +
                      (slot * sizeof(uint64_t)), user->rkey.rkey, &user->comp);
        uct_worker_progress(user->uct.worker);
    } while ((status == UCS_ERR_NO_RESOURCE) && (ft_now() < end));

    if (status == UCS_OK) {
        ++user->completed;
    }

    while ((status == UCS_INPROGRESS) && (user->completed == completed) &&
           (ft_now() < end)) {
        uct_worker_progress(user->uct.worker);
    }

    if (UCS_STATUS_IS_ERR(status) || (user->comp.status != UCS_OK) ||
        (user->completed != completed + 1)) {
        ft_die("an operation ended with %s, and completed %lu times",
               ucs_status_string(UCS_STATUS_IS_ERR(status) ? status :
                                 user->comp.status),
               user->completed - completed);
    }
}

/* Put the next number, and sometimes read it back */
static void ft_user_put(ft_user_t *user)
{
    unsigned slot = (++user->puts % FT_SLOTS) * FT_SLOT;
    uint64_t word = user->puts;

    user->words[slot] = word;
    ft_user_do(user, (ft_zcopy_func_t)uct_ep_put_zcopy, slot);
    if (word % 5) {
        return;
    }

    user->words[slot] = 0;
    ft_user_do(user, (ft_zcopy_func_t)uct_ep_get_zcopy, slot);
    if (user->words[slot] != word) {
        ft_die("word %u holds %lu instead of %lu", slot, user->words[slot],
               word);
    }
}

/* Put until the status has a line with this text */
static void ft_user_until(ft_user_t *user, const char *link, const char *text)
{
    double end = ft_now() + FT_TIMEOUT;
    char key[64], status[FT_STATUS];
    const char *line, *found;

    snprintf(key, sizeof(key), "link=%s ", link);
    do {
        ft_user_put(user);
        ft_api.status(status, sizeof(status));
        line  = strstr(status, key);
        found = (line == NULL) ? NULL : strstr(line, text);
        if ((found != NULL) && (memchr(line, '\n', found - line) == NULL)) {
            printf("ft: %.*s\n", (int)strcspn(line, "\n"), line);
            return;
        }
    } while (ft_now() < end);

    ft_die("%s is not \"%s\": %s", link, text, status);
}

/* --- Tests --- */

static void ft_wrong(void)
{
    char text[8];

    ft_expect(ft_api.link_set(NULL, RC_VARUNA_LINK_UP), -EINVAL, "no name");
    ft_expect(ft_api.link_set("", RC_VARUNA_LINK_UP), -EINVAL, "empty name");
    ft_expect(ft_api.link_set("mlx5_0:1", (rc_varuna_link_state_t)7), -EINVAL,
              "no state");
    ft_expect(ft_api.failover((rc_varuna_failover_t)7), -EINVAL, "no action");
    memset(text, 'x', sizeof(text));
    if ((ft_api.status(NULL, 0) != 0) || (ft_api.status(text, 1) != 0) ||
        (text[0] != '\0') || (text[1] != 'x')) {
        ft_die("the status of nothing is \"%s\"", text);
    }
}

/* A status that does not fit is cut off and terminated; the result is its full
 * length */
static void ft_check_cut(void)
{
    char whole[FT_STATUS], cut[16];
    size_t length = ft_api.status(whole, sizeof(whole));

    memset(cut, 'x', sizeof(cut));
    if ((length != strlen(whole)) ||
        (ft_api.status(cut, sizeof(cut) - 1) != length) ||
        (strlen(cut) != sizeof(cut) - 2) || (cut[sizeof(cut) - 1] != 'x') ||
        strncmp(cut, whole, sizeof(cut) - 2)) {
        ft_die("a status of %zu bytes: %s, cut off: %s", length, whole, cut);
    }
}

static double ft_user_overhead(const ft_user_t *user, uct_ep_operation_t op)
{
    uct_perf_attr_t perf = {
        .field_mask = UCT_PERF_ATTR_FIELD_OPERATION |
                      UCT_PERF_ATTR_FIELD_SEND_PRE_OVERHEAD,
        .operation  = op
    };

    if (uct_iface_estimate_perf(user->uct.iface, &perf) != UCS_OK) {
        ft_die("estimate_perf");
    }

    return perf.send_pre_overhead;
}

/* The interface's current attributes of speed. A put has a log entry, a get has
 * none. */
static void ft_user_print_speed(const ft_user_t *user)
{
    uct_iface_attr_t attr;

    if (uct_iface_query(user->uct.iface, &attr) != UCS_OK) {
        ft_die("query");
    }

    printf("ft: speed %.0f %.0f %.0f log %.0f\n",
           attr.bandwidth.shared / 1e6, attr.latency.c * 1e9,
           attr.overhead * 1e9,
           (ft_user_overhead(user, UCT_EP_OP_PUT_BCOPY) -
            ft_user_overhead(user, UCT_EP_OP_GET_BCOPY)) * 1e9);
}

static void ft_mark(const char *link)
{
    ft_user_t first, second;

    ft_expect(ft_api.link_set(link, RC_VARUNA_LINK_DOWN), 0, "marking");
    ft_user_open(&first);
    ft_user_until(&first, link, "state=down down_by=admin");
    ft_user_print_speed(&first);
    ft_check_cut();
    ft_expect(ft_api.link_set("mlx5_77:1", RC_VARUNA_LINK_DOWN), -ENODEV,
              "an unknown link");
    ft_expect(ft_api.link_set(link, RC_VARUNA_LINK_UP), 0, "marking");
    ft_user_until(&first, link, "state=up down_by=-");
    ft_user_print_speed(&first);
    ft_expect(ft_api.link_set(link, RC_VARUNA_LINK_DOWN), 0, "marking");
    ft_user_close(&first);

    /* The interface is closed, but the mark remains */
    ft_user_open(&second);
    ft_user_until(&second, link, "state=down down_by=admin");
    ft_expect(ft_api.failover(RC_VARUNA_FAILOVER_REVOKE), 0, "revoking");
    ft_user_until(&second, link, "state=up down_by=-");
    ft_user_close(&second);
}

static const char *ft_link;
static uint64_t ft_puts_done;

/* Until interfaces have acted on the last call, whose progress call is in a put that has
 * begun after it: the second one to end from now on */
static void ft_call_acted(void)
{
    uint64_t before = __atomic_load_n(&ft_puts_done, __ATOMIC_ACQUIRE);

    do {
        usleep(5000);
    } while (__atomic_load_n(&ft_puts_done, __ATOMIC_ACQUIRE) < before + 2);
}

static void *ft_call_links(void *arg)
{
    unsigned i;

    for (i = 0; i < FT_CALLS; ++i) {
        ft_expect(ft_api.link_set(ft_link, (i % 2) ? RC_VARUNA_LINK_UP :
                                  RC_VARUNA_LINK_DOWN), 0, "marking");
        ft_call_acted();
    }

    __atomic_add_fetch((int*)arg, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void *ft_call_failover(void *arg)
{
    char status[FT_STATUS];
    unsigned i;

    for (i = 0; i < FT_CALLS; ++i) {
        ft_expect(ft_api.failover((i % 3) ? RC_VARUNA_FAILOVER_REVOKE :
                                  RC_VARUNA_FAILOVER_FORCE), 0, "failover");
        if (ft_api.status(status, sizeof(status)) == 0) {
            ft_die("there are no links");
        }
        ft_call_acted();
    }

    ft_expect(ft_api.failover(RC_VARUNA_FAILOVER_REVOKE), 0, "revoking");
    __atomic_add_fetch((int*)arg, 1, __ATOMIC_RELEASE);
    return NULL;
}

static void ft_threads(const char *link)
{
    int ended = 0;
    pthread_t threads[2];
    ft_user_t user;

    ft_link = link;
    ft_user_open(&user);
    ft_user_put(&user);
    /* Once for certain: the threads may undo each other's calls before they are seen */
    ft_expect(ft_api.link_set(link, RC_VARUNA_LINK_DOWN), 0, "marking");
    ft_user_until(&user, link, "state=down down_by=admin");
    if (pthread_create(&threads[0], NULL, ft_call_links, &ended) ||
        pthread_create(&threads[1], NULL, ft_call_failover, &ended)) {
        ft_die("pthread_create");
    }

    while (__atomic_load_n(&ended, __ATOMIC_ACQUIRE) < 2) {
        ft_user_put(&user);
        __atomic_add_fetch(&ft_puts_done, 1, __ATOMIC_RELEASE);
    }

    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    ft_user_until(&user, link, "state=up down_by=-");
    printf("ft: puts %lu, errors %d\n", user.puts, user.uct.ep_errors);
    ft_user_close(&user);
}

/* --- Failing --- */

static ucs_status_t ft_invalidated_put(ft_user_t *user)
{
    return uct_ep_put_short(user->ep, user->words, sizeof(*user->words),
                            ft_server.base, user->rkey.rkey);
}

typedef struct {
    uct_pending_req_t super;
    ft_user_t         *user;
} ft_pending_t;

/* Before UCX 1.14 it may be called: that is how UCP's messages of the wire-up get the error */
static ucs_status_t ft_invalidated_pending(uct_pending_req_t *self)
{
    ucs_status_t status = ft_invalidated_put(((ft_pending_t*)self)->user);

    ft_expect(status, UCS_ERR_NO_RESOURCE, "put of a pending request");
    return status;
}

static void ft_invalidated_purge(uct_pending_req_t *self, void *arg)
{
    ++*(int*)arg;
}

/* Until its error handler is called, a failing endpoint reports that it is busy, so
 * that users do not retry in a loop. Pending requests are purged. */
static void ft_invalidate(void)
{
    ft_user_t user;
    ft_pending_t pending = {
        .super = {.func = ft_invalidated_pending},
        .user  = &user
    };
    int purged           = 0;
    double end           = ft_now() + FT_TIMEOUT;

    ft_user_open(&user);
    ft_user_put(&user);
    ft_expect(uct_ep_invalidate(user.ep, 0), UCS_OK, "invalidating");
    ft_expect(ft_invalidated_put(&user), UCS_ERR_NO_RESOURCE, "put before");
    ft_expect(uct_ep_pending_add(user.ep, &pending.super, 0), UCS_OK, "waiting");
    while ((user.uct.ep_errors == 0) && (ft_now() < end)) {
        ft_expect(ft_invalidated_put(&user), UCS_ERR_NO_RESOURCE, "put before");
        uct_worker_progress(user.uct.worker);
    }

    ft_expect(ft_invalidated_put(&user), UCS_ERR_CONNECTION_RESET, "put after");
    uct_ep_pending_purge(user.ep, ft_invalidated_purge, &purged);
    ft_expect(purged, 1, "purged requests");
    printf("ft: errors %d\n", user.uct.ep_errors);
    ft_user_close(&user);
}

int main(int argc, char **argv)
{
    static char line[FT_LINE];

    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_initialize();
    if ((argc == 2) && !strcmp(argv[1], "wrong")) {
        ft_wrong();
        return 0;
    } else if ((argc != 3) || (fgets(line, sizeof(line), stdin) == NULL) ||
               (ft_uct_parse_address(line, &ft_server) != 0)) {
        ft_die("usage: ft_api wrong, or: ft_api mark|threads|invalidate LINK"
               " <ADDRESS");
    }

    if (!strcmp(argv[1], "mark")) {
        ft_mark(argv[2]);
    } else if (!strcmp(argv[1], "invalidate")) {
        ft_invalidate();
    } else {
        ft_threads(argv[2]);
    }

    return 0;
}
