/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Bursts of atomics. See ft_atom_burst.h.
 */
#include "ft_atom_burst.h"
#include "ft_clock.h"

#include <inttypes.h>
#include <sched.h>
#include <string.h>

#define FT_BURST_TIME 600 /* Seconds, which only end a hang */

typedef struct {
    uct_completion_t uct;
    uint64_t         result;
} ft_burst_add_t;

static struct {
    ft_uct_t       *uct;
    uct_rkey_t     rkey;
    uint64_t       base;
    unsigned       count;      /* Endpoints */
    uint64_t       executed;   /* Additions of each */
    uct_ep_h       eps[FT_ATOM_BURST_MAX];
    ft_burst_add_t adds[FT_ATOM_BURST_MAX][FT_ATOM_BURST_DEPTH];
} ft_burst;

static void ft_burst_done(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("an addition completed with %s", ucs_status_string(comp->status));
    }
}

static void ft_burst_progress(double since)
{
    if (uct_worker_progress(ft_burst.uct->worker) == 0) {
        sched_yield();
    }

    if (ft_now() - since > FT_BURST_TIME) {
        ft_die("a burst did not end");
    }
}

static void ft_burst_post(unsigned ep, unsigned i)
{
    ft_burst_add_t *add = &ft_burst.adds[ep][i];
    double since        = ft_now();
    ucs_status_t status;

    add->uct.func   = ft_burst_done;
    add->uct.count  = 1;
    add->uct.status = UCS_OK;
    while ((status = uct_ep_atomic64_fetch(ft_burst.eps[ep], UCT_ATOMIC_OP_ADD, ep + 1,
                                           &add->result,
                                           ft_burst.base + (ep * sizeof(uint64_t)),
                                           ft_burst.rkey, &add->uct)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_burst_progress(since);
    }

    if (status == UCS_OK) {
        add->uct.count = 0;
    } else if (status != UCS_INPROGRESS) {
        ft_die("an addition failed: %s", ucs_status_string(status));
    }
}

/* Endpoint @a ep has posted @a depth additions, which may be executed in any order: each
 * result is that of another one */
static void ft_burst_check(unsigned ep, unsigned depth)
{
    int seen[FT_ATOM_BURST_DEPTH] = {0};
    uint64_t place;
    unsigned i;

    for (i = 0; i < depth; ++i) {
        place = (ft_burst.adds[ep][i].result / (ep + 1)) - ft_burst.executed;
        if (((ft_burst.adds[ep][i].result % (ep + 1)) != 0) || (place >= depth) ||
            seen[place]) {
            ft_die("endpoint %u got %" PRIu64 " after %" PRIu64 " additions of %u", ep,
                   ft_burst.adds[ep][i].result, ft_burst.executed, ep + 1);
        }
        seen[place] = 1;
    }
}

static void ft_burst_round(unsigned depth)
{
    double since = ft_now();
    unsigned ep, i;

    for (ep = 0; ep < ft_burst.count; ++ep) {
        for (i = 0; i < depth; ++i) {
            ft_burst_post(ep, i);
        }
    }

    for (ep = 0; ep < ft_burst.count; ++ep) {
        for (i = 0; i < depth; ++i) {
            while (ft_burst.adds[ep][i].uct.count > 0) {
                ft_burst_progress(since);
            }
        }
        ft_burst_check(ep, depth);
    }

    ft_burst.executed += depth;
}

void ft_atom_burst_open(ft_uct_t *uct, const ft_address_t *server, uct_rkey_t rkey,
                        uint64_t base, unsigned count)
{
    unsigned ep;

    if (count > FT_ATOM_BURST_MAX) {
        ft_die("burst: %u endpoints are too many", count);
    }

    memset(&ft_burst, 0, sizeof(ft_burst));
    ft_burst.uct   = uct;
    ft_burst.rkey  = rkey;
    ft_burst.base  = base;
    ft_burst.count = count;
    for (ep = 0; ep < count; ++ep) {
        ft_burst.eps[ep] = ft_uct_connect(uct, server);
    }
    ft_burst_round(1);
}

void ft_atom_burst_run(unsigned rounds)
{
    unsigned ep;

    while (rounds-- > 0) {
        ft_burst_round(FT_ATOM_BURST_DEPTH);
    }

    for (ep = 0; ep < ft_burst.count; ++ep) {
        uct_ep_destroy(ft_burst.eps[ep]);
    }
}
