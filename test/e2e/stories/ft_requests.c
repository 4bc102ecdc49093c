/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The life cycle of requests in rc_varuna. These tests depend on the order of calls.
 * Run by test/e2e/stories/test_requests.sh, with a server's address on stdin:
 *
 *     ft_requests nested   the callback of a flush posts and flushes again, while later
 *                          requests are being completed
 *     ft_requests listed   endpoints are created and destroyed while another thread
 *                          lists them and reads their counters
 *     ft_requests released a remote key is released right after a put that must be
 *                          repeated
 *     ft_requests released_atomics  the same after atomics, without a failure
 *     ft_requests empty    parts of an operation that are empty have no memory handle, but
 *                          what was in memory before
 *     ft_requests owed     the NIC's queues are so short that they have room for a put
 *                          but not for its log entry
 */
#include "ft_uct.h"
#include "ft_vfs.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define FT_MEMORY  4096
#define FT_ROUNDS  64
#define FT_MAX_OPS 256
#define FT_EPS     64
#define FT_ATOMIC_ROUNDS 50
#define FT_TIMEOUT 120   /* Seconds; it only ends a hang */

static struct {
    ft_uct_t          uct;
    ft_address_t      server;
    uct_rkey_bundle_t rkey;
    uct_mem_h         memh;
    uct_ep_h          ep;
    char              memory[FT_MEMORY] __attribute__((aligned(8)));
    time_t            end;
} ft;

static void ft_progress(const char *what)
{
    uct_worker_progress(ft.uct.worker);
    if (time(NULL) > ft.end) {
        ft_die("%s does not complete", what);
    }

    if (ft.uct.ep_errors > 0) {
        ft_die("the endpoint failed");
    }
}

static void ft_put_short(uint64_t value)
{
    ucs_status_t status;

    while ((status = uct_ep_put_short(ft.ep, &value, sizeof(value),
                                      ft.server.base, ft.rkey.rkey)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_progress("put_short");
    }

    if (status != UCS_OK) {
        ft_die("put_short: %s", ucs_status_string(status));
    }
}

static ucs_status_t ft_put_zcopy(uct_completion_t *comp)
{
    uct_iov_t iov = {ft.memory, sizeof(uint64_t), ft.memh, 0, 1};

    return uct_ep_put_zcopy(ft.ep, &iov, 1, ft.server.base, ft.rkey.rkey, comp);
}

static void ft_count_done(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("a request ended with %s", ucs_status_string(comp->status));
    }
}

static void ft_open(void)
{
    uct_completion_t comp = {ft_count_done, 1, UCS_OK};
    ucs_status_t status;

    ft.end = time(NULL) + FT_TIMEOUT;
    ft_uct_open(&ft.uct, "rc_varuna");
    ft.memh = ft_uct_reg(&ft.uct, ft.memory, sizeof(ft.memory));
    ft_uct_read_address(&ft.uct, &ft.server, &ft.rkey);

    ft.ep = ft_uct_connect(&ft.uct, &ft.server);
    while ((status = ft_put_zcopy(&comp)) == UCS_ERR_NO_RESOURCE) {
        ft_progress("the first put");
    }

    while ((status == UCS_INPROGRESS) && (comp.count > 0)) {
        ft_progress("the first put");
    }
}

static void ft_close(void)
{
    ft_uct_leave(&ft.uct, ft.ep, &ft.rkey, ft.memh);
}

static void ft_wait(ucs_status_t status, uct_completion_t *comp, const char *what)
{
    if (UCS_STATUS_IS_ERR(status)) {
        ft_die("%s: %s", what, ucs_status_string(status));
    }

    while ((status == UCS_INPROGRESS) && (comp->count > 0)) {
        ft_progress(what);
    }
}

/* --- Nested flushes --- */

static struct {
    uct_completion_t outer, inner;
    unsigned         outer_done, inner_asked, inner_done;
} ft_nested;

static void ft_inner_done(uct_completion_t *comp)
{
    ft_count_done(comp);
    ++ft_nested.inner_done;
}

static void ft_outer_done(uct_completion_t *comp)
{
    ft_count_done(comp);
    ++ft_nested.outer_done;
    ft_nested.inner = (uct_completion_t){ft_inner_done, 1, UCS_OK};
    /* Something is on the lane again, so the flush must wait */
    if ((uct_ep_check(ft.ep, 0, NULL) == UCS_OK) &&
        (uct_ep_flush(ft.ep, 0, &ft_nested.inner) == UCS_INPROGRESS)) {
        ++ft_nested.inner_asked;
    }
}

/* One flush between two puts. When the second is posted, the first is complete for the
 * NIC, but its callback was not called yet. */
static void ft_run_nested(void)
{
    ucs_status_t status;
    unsigned round, i;

    for (round = 1; round <= FT_ROUNDS; ++round) {
        ft_put_short(round);
        for (i = 0; i < 16; ++i) {
            ft_progress("nothing");
        }

        ft_nested.outer = (uct_completion_t){ft_outer_done, 1, UCS_OK};
        status          = uct_ep_flush(ft.ep, 0, &ft_nested.outer);
        if (status == UCS_OK) {
            continue;
        } else if (status != UCS_INPROGRESS) {
            ft_die("flush: %s", ucs_status_string(status));
        }

        ft_put_short(round);
        while ((ft_nested.outer.count > 0) ||
               (ft_nested.inner_done < ft_nested.inner_asked)) {
            ft_progress("a flush");
        }
    }

    printf("ft: %u flushes, %u nested\n", ft_nested.outer_done,
           ft_nested.inner_done);
    if (ft_nested.inner_done == 0) {
        ft_die("no flush was nested");
    }
}

/* --- Owed log entries --- */

static void ft_run_owed(void)
{
    static uct_completion_t comps[FT_MAX_OPS];
    uint64_t posted, logged, owed = 0;
    uct_completion_t flushed;
    ucs_status_t status;
    unsigned round, num, i;

    for (round = 0; round < FT_ROUNDS; ++round) {
        posted = ft_vfs_sum("posted");
        logged = ft_vfs_sum("logged");
        for (i = 0; i < (round % 8); ++i) {
            ft_put_short(i);
        }

        for (num = 0; num < FT_MAX_OPS; ++num) {
            comps[num] = (uct_completion_t){ft_count_done, 1, UCS_OK};
            if (ft_put_zcopy(&comps[num]) != UCS_INPROGRESS) {
                break;
            }
        }

        for (i = 0; i < num; ++i) {
            while (comps[i].count > 0) {
                ft_progress("a put");
            }
        }

        /* The next round must not post entries for short puts of this one */
        flushed = (uct_completion_t){ft_count_done, 1, UCS_OK};
        while ((status = uct_ep_flush(ft.ep, 0, &flushed)) == UCS_ERR_NO_RESOURCE) {
            ft_progress("a flush");
        }
        ft_wait(status, &flushed, "a flush");

        /* These calls post the log entries that are still owed */
        for (i = 0; i < 16; ++i) {
            ft_progress("nothing");
        }

        posted = ft_vfs_sum("posted") - posted;
        logged = ft_vfs_sum("logged") - logged;
        if (logged > posted) {
            ft_die("%" PRIu64 " log entries for %" PRIu64 " puts", logged,
                   posted);
        }
        owed += posted - logged;
    }

    printf("ft: %" PRIu64 " log entries were owed, and not needed\n", owed);
    if (owed == 0) {
        ft_die("each put has a log entry, even those that were complete before");
    }
}

/* --- Endpoints listed by another thread --- */

static struct {
    volatile int stop;
    unsigned     files;      /* Files of endpoints that were read */
    unsigned     listings;
} ft_listed;

static void ft_count_file(const char *path, const char *text, void *arg)
{
    (void)text;
    (void)arg;
    ft_listed.files += (strstr(path, "/vqp/") != NULL);
}

static void *ft_list(void *arg)
{
    (void)arg;
    while (!ft_listed.stop) {
        ft_vfs_read("/uct", ft_count_file, NULL);
        ++ft_listed.listings;
    }

    return NULL;
}

static void ft_run_listed(void)
{
    static uct_ep_h eps[FT_EPS];
    pthread_t thread;
    unsigned round, i;

    if (pthread_create(&thread, NULL, ft_list, NULL) != 0) {
        ft_die("pthread_create");
    }

    for (round = 0; (round < FT_ROUNDS) || (ft_listed.listings < 8); ++round) {
        for (i = 0; i < FT_EPS; ++i) {
            eps[i] = ft_uct_connect(&ft.uct, &ft.server);
        }

        ft_progress("listing");
        for (i = 0; i < FT_EPS; ++i) {
            uct_ep_destroy(eps[i]);
        }
    }

    ft_listed.stop = 1;
    pthread_join(thread, NULL);
    printf("ft: %u listings, %u files of endpoints\n", ft_listed.listings,
           ft_listed.files);
    if (ft_listed.files == 0) {
        ft_die("no endpoint was listed");
    }

    /* Destroyed endpoints are in no list any more */
    ft_listed.files = 0;
    ft_vfs_read("/uct", ft_count_file, NULL);
    i = ft_listed.files;
    eps[0] = ft_uct_connect(&ft.uct, &ft.server);
    ft_listed.files = 0;
    ft_vfs_read("/uct", ft_count_file, NULL);
    uct_ep_destroy(eps[0]);
    if (ft_listed.files != 2 * i) {
        ft_die("%u files of one endpoint, %u of two", i, ft_listed.files);
    }
}

/* --- Empty parts --- */

/* Until one of the puts was repeated */
static void ft_run_empty(void)
{
    uct_mem_h garbage = (uct_mem_h)0x5a5a5a5a5a5a5a58ul;
    uct_iov_t iov[2]  = {{ft.memory, 0, garbage, 0, 1},
                         {ft.memory, sizeof(uint64_t), ft.memh, 0, 1}};
    uct_completion_t comp;
    ucs_status_t status;

    do {
        ft_progress("a failure"); /* Wait for it */
        ++*(uint64_t*)ft.memory; /* A lost put differs from what is there */
        comp = (uct_completion_t){ft_count_done, 1, UCS_OK};
        while ((status = uct_ep_put_zcopy(ft.ep, iov, 2, ft.server.base, ft.rkey.rkey,
                                          &comp)) == UCS_ERR_NO_RESOURCE) {
            ft_progress("a put");
        }
        ft_wait(status, &comp, "a put");
    } while (ft_vfs_sum("repeated") == 0);
    printf("ft: a put with empty parts was repeated\n");
}


/* --- Keys --- */

/* By UCT's definition, a short put does not need its key after it has returned */
static void ft_run_released(void)
{
    uint64_t *values = (uint64_t*)ft.memory;
    uct_iov_t iov    = {ft.memory, 16 * sizeof(*values), ft.memh, 0, 1};
    uct_completion_t comp;
    uct_rkey_bundle_t rkey;
    ucs_status_t status;
    unsigned round, i;
    uint64_t value;

    for (round = 1; ft_vfs_sum("repeated") == 0; ++round) {
        ft_progress("a failure"); /* Wait for it */
        ft_wait(uct_rkey_unpack(ft.uct.component, ft.server.rkey, &rkey), NULL,
                "rkey_unpack");
        for (i = 0; i < 16; ++i) {
            value = round + i;
            while ((status = uct_ep_put_short(ft.ep, &value, sizeof(value),
                                              ft.server.base + (i * sizeof(value)),
                                              rkey.rkey)) == UCS_ERR_NO_RESOURCE) {
                ft_progress("put_short");
            }
        }

        uct_rkey_release(ft.uct.component, &rkey);
        comp = (uct_completion_t){ft_count_done, 1, UCS_OK};
        ft_wait(uct_ep_flush(ft.ep, 0, &comp), &comp, "a flush");
    }

    comp = (uct_completion_t){ft_count_done, 1, UCS_OK};
    while ((status = uct_ep_get_zcopy(ft.ep, &iov, 1, ft.server.base, ft.rkey.rkey,
                                      &comp)) == UCS_ERR_NO_RESOURCE) {
        ft_progress("a get");
    }

    ft_wait(status, &comp, "a get");
    printf("ft: puts of round %u were repeated without their key\n", round - 1);
    for (i = 0; i < 16; ++i) {
        if (values[i] != (round - 1 + i)) {
            ft_die("put %u was %u, the memory has %" PRIu64, i, round - 1 + i,
                   values[i]);
        }
    }
}

/* Nor does an atomic without a result. Most of these are queued when the key is
 * released. */
static void ft_run_released_atomics(void)
{
    uint64_t *values = (uint64_t*)ft.memory;
    uct_iov_t iov    = {ft.memory, 16 * sizeof(*values), ft.memh, 0, 1};
    uint64_t before  = 0;
    uct_completion_t comp;
    uct_rkey_bundle_t rkey;
    ucs_status_t status;
    unsigned round, i;

    for (round = 0; round <= FT_ATOMIC_ROUNDS; ++round) {
        comp = (uct_completion_t){ft_count_done, 1, UCS_OK};
        while ((status = uct_ep_get_zcopy(ft.ep, &iov, 1, ft.server.base, ft.rkey.rkey,
                                          &comp)) == UCS_ERR_NO_RESOURCE) {
            ft_progress("a get");
        }
        ft_wait(status, &comp, "a get");
        if ((round > 0) && (values[0] != (before + 16))) {
            ft_die("16 additions changed %" PRIu64 " to %" PRIu64, before, values[0]);
        }

        before = values[0];
        ft_wait(uct_rkey_unpack(ft.uct.component, ft.server.rkey, &rkey), NULL,
                "rkey_unpack");
        for (i = 0; i < 16; ++i) {
            while ((status = uct_ep_atomic64_post(ft.ep, UCT_ATOMIC_OP_ADD, 1,
                                                  ft.server.base, rkey.rkey)) ==
                   UCS_ERR_NO_RESOURCE) {
                ft_progress("atomic_post");
            }
            ft_wait(status, NULL, "atomic_post");
        }

        uct_rkey_release(ft.uct.component, &rkey);
        comp = (uct_completion_t){ft_count_done, 1, UCS_OK};
        ft_wait(uct_ep_flush(ft.ep, 0, &comp), &comp, "a flush");
    }

    printf("ft: atomics of %u rounds did without their key\n", FT_ATOMIC_ROUNDS);
}

static const struct {
    const char *name;
    void       (*run)(void);
} ft_cases[] = {
    {"empty",  ft_run_empty},
    {"listed", ft_run_listed},
    {"nested", ft_run_nested},
    {"owed",   ft_run_owed},
    {"released", ft_run_released},
    {"released_atomics", ft_run_released_atomics},
    {NULL}
};

int main(int argc, char **argv)
{
    unsigned i = 0;

    while ((ft_cases[i].name != NULL) &&
           ((argc != 2) || strcmp(argv[1], ft_cases[i].name))) {
        ++i;
    }

    if (ft_cases[i].name == NULL) {
        ft_die("usage: ft_requests empty | listed | nested | owed | released[_atomics]");
    }

    setvbuf(stdout, NULL, _IOLBF, 0);
    ft_open();
    ft_cases[i].run();
    ft_close();
    return 0;
}
