/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Two processes that put, get, send messages and add atomically to each other without a
 * pause, while one of them retires and restores links. Run by
 * test/e2e/stories/test_maintenance.sh:
 *
 *     ft_maintain EPS CYCLES   prints its address, reads the other one's from stdin. With
 *                              CYCLES > 0 it marks the link FT_LINK down and up again so
 *                              often, and waits each time until no endpoint of either
 *                              process is on it, or all are. It starts at the next line
 *     ft_maintain EPS 0        loads until the other process says that this is the end
 *
 * Each goes on until its stdin ends, because the other one may need it until then.
 *
 * Each number that a process puts, sends or reads is the next one, so a repeated or lost
 * operation is found: puts are read back, messages come in order, and each atomic returns
 * what the one before it left. It prints the counters of its endpoints in the end.
 */
#include "ft_clock.h"
#include "ft_symbol.h"
#include "ft_uct.h"
#include "ft_vfs.h"

#include <rc_varuna.h>

#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FT_TL_NAME "rc_varuna"
#define FT_LINK    "mlx5_0:1"
#define FT_AM_ID   3
#define FT_MAX_EPS 64
#define FT_TIMEOUT 120    /* Seconds that traffic may take to move: ends a hang */
#define FT_LOOK    0.01   /* Seconds between two looks at the lanes */

/* What one endpoint of the other process writes */
typedef struct {
    uint64_t number;
    uint64_t sum;
    uint64_t unused[14]; /* A get by zcopy has more than 64 bytes */
} ft_slot_t;

typedef enum {
    FT_BETWEEN,
    FT_LEFT,   /* No endpoint is on FT_LINK */
    FT_BACK,   /* All are */
    FT_ENDED   /* Nothing more is sent */
} ft_where_t;

typedef struct {
    uct_ep_h         ep;
    uct_completion_t put, get, add;
    int              reading;           /* The put has completed */
    uint64_t         number;            /* Last put */
    ft_slot_t        seen;              /* Read back */
    uint64_t         sum, old;
    uint64_t         sent;
} ft_ep_t;

static struct {
    ft_uct_t          uct;
    ft_address_t      peer;
    uct_rkey_bundle_t rkey;
    uct_mem_h         memh, eps_memh;
    ft_slot_t         slots[FT_MAX_EPS]; /* The other process writes here */
    ft_ep_t           eps[FT_MAX_EPS];
    unsigned          num_eps;
    uint64_t          next[FT_MAX_EPS];  /* Messages */
    uint64_t          operations;
    ft_where_t        here, there;
    double            look_at;
} ft;


static ucs_status_t ft_am(void *arg, void *data, size_t length, unsigned flags)
{
    uint64_t header;
    unsigned ep;

    memcpy(&header, data, sizeof(header));
    ep = header >> 56;
    if ((length != sizeof(header)) || (ep >= FT_MAX_EPS) ||
        (ft.next[ep] != ((header << 8) >> 16))) {
        ft_die("message 0x%lx is not number %lu", header, ft.next[ep]);
    }

    ++ft.next[ep];
    if (ep == 0) {
        ft.there = (ft_where_t)(header & 0xff);
    }
    return UCS_OK;
}

static void ft_done(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("an operation failed: %s", ucs_status_string(comp->status));
    }
}

/* Before it is posted; its count is 0 when it has completed */
static uct_completion_t *ft_start(uct_completion_t *comp)
{
    comp->func   = ft_done;
    comp->count  = 1;
    comp->status = UCS_OK;
    return comp;
}

/* @return whether it was taken: only a lack of resources may prevent that */
static int ft_taken(uct_completion_t *comp, ucs_status_t status)
{
    if (status != UCS_INPROGRESS) {
        comp->count = 0;
    }

    if (status == UCS_ERR_NO_RESOURCE) {
        return 0;
    } else if ((status != UCS_OK) && (status != UCS_INPROGRESS)) {
        ft_die("an operation is refused: %s", ucs_status_string(status));
    }

    ++ft.operations;
    return 1;
}

/* A put, then a get that must find it */
static void ft_step_put(ft_ep_t *ep, uint64_t remote)
{
    uct_iov_t iov = {.length = sizeof(uint64_t), .memh = ft.eps_memh, .count = 1};

    if ((ep->put.count > 0) || (ep->get.count > 0)) {
        return;
    }

    if (ep->reading == 1) {
        iov.buffer  = &ep->seen;
        iov.length  = sizeof(ep->seen);
        ep->reading = ft_taken(&ep->get,
                               uct_ep_get_zcopy(ep->ep, &iov, 1, remote, ft.rkey.rkey,
                                                ft_start(&ep->get))) ? 2 : 1;
        return;
    }

    if ((ep->reading == 2) && (ep->seen.number != ep->number)) {
        ft_die("put %lu is not there: %lu", ep->number, ep->seen.number);
    }

    if (ft.here == FT_ENDED) {
        return;
    }

    iov.buffer = &ep->number;
    ++ep->number;
    if (ft_taken(&ep->put, uct_ep_put_zcopy(ep->ep, &iov, 1, remote, ft.rkey.rkey,
                                            ft_start(&ep->put)))) {
        ep->reading = 1;
    } else {
        --ep->number;
        ep->reading = 0;
    }
}

static void ft_step_add(ft_ep_t *ep, uint64_t remote)
{
    if (ep->add.count > 0) {
        return;
    }

    if ((ep->sum > 0) && (ep->old != ep->sum - 1)) {
        ft_die("atomic %lu found %lu", ep->sum, ep->old);
    }

    if (ft.here != FT_ENDED) {
        ep->sum += ft_taken(&ep->add,
                            uct_ep_atomic64_fetch(ep->ep, UCT_ATOMIC_OP_ADD, 1, &ep->old,
                                                  remote, ft.rkey.rkey,
                                                  ft_start(&ep->add)));
    }
}

static void ft_send(unsigned i, ft_where_t where)
{
    ft_ep_t *ep = &ft.eps[i];

    if (uct_ep_am_short(ep->ep, FT_AM_ID, ((uint64_t)i << 56) | (ep->sent << 8) | where,
                        NULL, 0) == UCS_OK) {
        ++ep->sent;
        ++ft.operations;
    }
}

static void ft_look_at(const char *path, const char *text, void *arg)
{
    unsigned *count = arg;

    if (strstr(path, "/vqp/") && !strcmp(strrchr(path, '/'), "/lane")) {
        ++count[0];
        count[1] += !!strstr(text, FT_LINK);
        count[2] += !strncmp(text, "rc ", 3);
    }
}

static void ft_look(void)
{
    unsigned count[3] = {0};
    double now        = ft_now();

    if ((now < ft.look_at) || (ft.here == FT_ENDED)) {
        return;
    }

    ft.look_at = now + FT_LOOK;
    ft_vfs_read("/uct", ft_look_at, count);
    ft.here = (count[2] < count[0]) ? FT_BETWEEN :
              (count[1] == 0)       ? FT_LEFT :
              (count[1] == count[0]) ? FT_BACK : FT_BETWEEN;
}

static void ft_step(void)
{
    uint64_t remote;
    unsigned i;

    for (i = 0; i < ft.num_eps; ++i) {
        remote = ft.peer.base + (i * sizeof(ft_slot_t));
        ft_step_put(&ft.eps[i], remote + offsetof(ft_slot_t, number));
        ft_step_add(&ft.eps[i], remote + offsetof(ft_slot_t, sum));
        if (ft.here != FT_ENDED) {
            ft_send(i, ft.here);
        }
        uct_worker_progress(ft.uct.worker);
    }
    ft_look();
    if (ft.uct.ep_errors > 0) {
        ft_die("%d endpoints failed", ft.uct.ep_errors);
    }
}

static double ft_until(ft_where_t where)
{
    double start = ft_now();

    while ((ft.here != where) || (ft.there != where)) {
        ft_step();
        if (ft_now() > start + FT_TIMEOUT) {
            ft_die("traffic does not move: here %d, there %d, not %d", ft.here, ft.there,
                   where);
        }
    }

    return ft_now() - start;
}

/* Until there is a line on stdin, or stdin has ended */
static void ft_until_input(void (*step)(void))
{
    struct pollfd pfd = {.fd = STDIN_FILENO, .events = POLLIN};
    char line[16];

    do {
        step();
    } while (poll(&pfd, 1, 0) <= 0);
    (void)fgets(line, sizeof(line), stdin);
}

static void ft_cycles(unsigned count)
{
    int (*link_set)(const char *name, rc_varuna_link_state_t state);
    double left = 0, back = 0;
    unsigned i;

    link_set = ft_symbol("rc_varuna_link_set");
    if (link_set == NULL) {
        ft_die("there is no rc_varuna_link_set");
    }

    ft_until(FT_BACK);
    printf("ft: loaded\n");
    ft_until_input(ft_step);
    for (i = 0; i < count; ++i) {
        if (link_set(FT_LINK, RC_VARUNA_LINK_DOWN) != 0) {
            ft_die("marking the link down");
        }
        left += ft_until(FT_LEFT);
        if (link_set(FT_LINK, RC_VARUNA_LINK_UP) != 0) {
            ft_die("marking the link up");
        }
        back += ft_until(FT_BACK);
    }

    printf("ft: cycles %u left_ms %.1f back_ms %.1f\n", count, left * 1e3 / count,
           back * 1e3 / count);
}

static void ft_progress(void)
{
    uct_worker_progress(ft.uct.worker);
}

/* All that was posted has completed */
static void ft_finish(void)
{
    double end = ft_now() + FT_TIMEOUT;
    int told   = 0;
    unsigned i, busy;

    ft.here = FT_ENDED;
    do {
        ft_step();
        busy = (ft.there != FT_ENDED);
        for (i = 0; i < ft.num_eps; ++i) {
            busy += (ft.eps[i].put.count > 0) || (ft.eps[i].get.count > 0) ||
                    (ft.eps[i].add.count > 0) || (ft.eps[i].reading == 1);
        }
        if ((busy == 0) && told) {
            continue; /* One more message would not be flushed */
        } else if (busy <= 1) {
            ft_send(0, FT_ENDED);
            told = (ft.there == FT_ENDED);
        }
    } while (((busy > 0) || (uct_iface_flush(ft.uct.iface, 0, NULL) != UCS_OK)) &&
             (ft_now() < end));
    if (busy > 0) {
        ft_die("%u operations don't end", busy);
    }

    /* The other one may not have flushed its last message yet */
    printf("ft: finished\n");
    ft_until_input(ft_progress);
}

static void ft_open(void)
{
    unsigned i;

    ft_uct_open(&ft.uct, FT_TL_NAME);
    if (uct_iface_set_am_handler(ft.uct.iface, FT_AM_ID, ft_am, NULL, 0) != UCS_OK) {
        ft_die("set_am_handler");
    }

    ft.memh     = ft_uct_reg(&ft.uct, ft.slots, sizeof(ft.slots));
    ft.eps_memh = ft_uct_reg(&ft.uct, ft.eps, sizeof(ft.eps));
    ft_uct_print_address(&ft.uct, "ft: address", ft.memh, ft.slots);
    ft_uct_read_address(&ft.uct, &ft.peer, &ft.rkey);
    for (i = 0; i < ft.num_eps; ++i) {
        ft.eps[i].ep = ft_uct_connect(&ft.uct, &ft.peer);
    }
}

int main(int argc, char **argv)
{
    static const char *counters[] = {
        "repeated", "lost", "ambiguous", "switches", "moves", "rebuilds",
        "rebuild_reads", "rebuild_messages"
    };
    unsigned cycles, i;

    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* We poll it */
    cycles     = (argc == 3) ? atoi(argv[2]) : 0;
    ft.num_eps = (argc == 3) ? atoi(argv[1]) : 0;
    if ((ft.num_eps == 0) || (ft.num_eps > FT_MAX_EPS)) {
        ft_die("usage: ft_maintain EPS CYCLES");
    }

    ft_open();
    if (cycles > 0) {
        ft_cycles(cycles);
    } else {
        while (ft.there != FT_ENDED) {
            ft_step();
        }
    }

    ft_finish();
    printf("ft: operations %lu\n", ft.operations);
    for (i = 0; i < sizeof(counters) / sizeof(counters[0]); ++i) {
        printf("ft: counter %s %lu\n", counters[i], ft_vfs_sum(counters[i]));
    }

    for (i = 0; i < ft.num_eps; ++i) {
        uct_ep_destroy(ft.eps[i].ep);
    }
    uct_rkey_release(ft.uct.component, &ft.rkey);
    uct_md_mem_dereg(ft.uct.md, ft.eps_memh);
    uct_md_mem_dereg(ft.uct.md, ft.memh);
    ft_uct_close(&ft.uct);
    return 0;
}
