/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The job's part in the benchmark of atomics.
 */
#include "ft_atom_batch.h"
#include "ft_clock.h"

#include <inttypes.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#define FT_BATCH_TIME 100e9 /* Nanoseconds; ends only a hang */

static void ft_done(uct_completion_t *comp)
{
    if (comp->status != UCS_OK) {
        ft_die("an atomic completed with %s", ucs_status_string(comp->status));
    }
}

static void ft_progress(const ft_atom_load_t *load, double since)
{
    if (uct_worker_progress(load->uct->worker) == 0) {
        sched_yield();
    }

    if (load->uct->ep_errors > 0) {
        ft_die("the endpoint failed");
    }

    if (ft_now_ns() - since > FT_BATCH_TIME) {
        ft_die("a batch did not end");
    }
}

/* Post one atomic, without a completion if @a atom has no result */
static void ft_post(const ft_atom_load_t *load, const ft_atom_t *atom,
                    uint64_t addr, uint64_t *result, uct_completion_t *comp)
{
    double since = ft_now_ns();
    ucs_status_t status;

    comp->func   = ft_done;
    comp->count  = 1;
    comp->status = UCS_OK;
    for (;;) {
        status = ft_atom_post(load->ep, load->rkey, atom, addr, load->width,
                              result, comp);
        if (status != UCS_ERR_NO_RESOURCE) {
            break;
        }
        ft_progress(load, since);
    }

    if (UCS_STATUS_IS_ERR(status)) {
        ft_die("an atomic failed: %s", ucs_status_string(status));
    }

    comp->count = atom->fetch && (status == UCS_INPROGRESS);
}

static void ft_flush(const ft_atom_load_t *load)
{
    double since = ft_now_ns();

    while (uct_ep_flush(load->ep, 0, NULL) != UCS_OK) {
        ft_progress(load, since);
    }
}

static int ft_compare_times(const void *a, const void *b)
{
    const double *t1 = a, *t2 = b;

    return (*t1 > *t2) - (*t1 < *t2);
}

double ft_atom_time(const ft_atom_load_t *load, const ft_atom_t *atom,
                    uint64_t addr, unsigned count, int alone,
                    double *shortest_p)
{
    double *times   = calloc(count, sizeof(*times));
    ft_atom_t next  = *atom;
    uint64_t result = 0;
    uct_completion_t comp;
    double begin, median;
    unsigned i;

    if (times == NULL) {
        ft_die("out of memory");
    }

    for (i = 0; i < count; ++i) {
        begin = ft_now_ns();
        ft_post(load, &next, addr, &result, &comp);
        while (comp.count > 0) {
            ft_progress(load, begin);
        }

        if (!atom->fetch) {
            ft_flush(load); /* Posted atomics have no other completion */
        }

        times[i] = ft_now_ns() - begin;
        if (alone) {
            ft_flush(load);
        }

        /* Alternate between two values, so that each atomic changes the word */
        if (atom->op >= FT_ATOM_SWAP) {
            next.compare = (i % 2) ? atom->compare : atom->value;
            next.value   = (i % 2) ? atom->value : atom->compare;
        }
    }

    ft_flush(load);
    qsort(times, count, sizeof(*times), ft_compare_times);
    median      = times[count / 2];
    *shortest_p = times[0];
    free(times);
    return median;
}

void ft_atom_batch(const ft_atom_load_t *load, unsigned num, uint64_t *words,
                   uint64_t value)
{
    uct_completion_t comps[FT_ATOM_BATCH_MAX];
    ft_atom_t atom = {.op = FT_ATOM_CSWAP, .fetch = 1};
    uint64_t results[FT_ATOM_BATCH_MAX] = {0};
    double since   = ft_now_ns();
    unsigned i;

    for (i = 0; i < num; ++i) {
        atom.compare = words[i];
        atom.value   = value + i;
        ft_post(load, &atom, load->base + FT_ATOM_BATCH_OFFSET(i), &results[i],
                &comps[i]);
    }

    for (i = 0; i < num; ++i) {
        while (comps[i].count > 0) {
            ft_progress(load, since);
        }
        words[i] = results[i];
    }

    ft_flush(load);
}

void ft_atom_many(const ft_atom_load_t *load, unsigned num)
{
    uct_completion_t comps[FT_ATOM_MANY_MAX];
    uint64_t results[FT_ATOM_MANY_MAX];
    ft_atom_t atom = {.op = FT_ATOM_ADD, .fetch = 1, .value = 1};
    double since   = ft_now_ns();
    unsigned i;

    if (num > FT_ATOM_MANY_MAX) {
        ft_die("%u words are too many", num);
    }

    for (i = 0; i < num; ++i) {
        ft_post(load, &atom, load->base + (i * sizeof(uint64_t)), &results[i],
                &comps[i]);
    }

    for (i = 0; i < num; ++i) {
        while (comps[i].count > 0) {
            ft_progress(load, since);
        }
    }

    ft_flush(load);
}

static void ft_fence(const ft_atom_load_t *load)
{
    if (uct_ep_fence(load->ep, 0) != UCS_OK) {
        ft_die("a fence failed");
    }
}

static void ft_put(const ft_atom_load_t *load, uint64_t addr, uint64_t value)
{
    double since = ft_now_ns();
    ucs_status_t status;

    while ((status = uct_ep_put_short(load->ep, &value, load->width, addr,
                                      load->rkey)) == UCS_ERR_NO_RESOURCE) {
        ft_progress(load, since);
    }

    if (status != UCS_OK) {
        ft_die("a put failed: %s", ucs_status_string(status));
    }
}

/* Adding 0 is the read. Two adds follow each other, so the second one has not started
 * when the put after the fence is posted. Every other time it has no result, so that
 * only the fence waits for it. (No other client may use the word: a NIC need not order
 * its atomics with puts of another queue pair.) */
void ft_atom_fenced(const ft_atom_load_t *load, uint64_t addr, unsigned count)
{
    ft_atom_t read = {.op = FT_ATOM_ADD, .fetch = 1, .value = 0};
    ft_atom_t add  = {.op = FT_ATOM_ADD, .value = 1};
    ft_atom_t first = {.op = FT_ATOM_ADD, .fetch = 1, .value = 1};
    uint64_t before = 0, results[3];
    uct_completion_t comps[3];
    double since;
    unsigned i;

    for (i = 1; i <= count; ++i) {
        since      = ft_now_ns();
        add.fetch  = i % 2;
        memset(results, 0, sizeof(results));
        ft_post(load, &first, addr, &results[2], &comps[2]);
        ft_post(load, &add, addr, &results[0], &comps[0]);
        ft_fence(load);
        ft_put(load, addr, (uint64_t)i << 8);
        ft_fence(load);
        ft_post(load, &read, addr, &results[1], &comps[1]);
        while ((comps[0].count > 0) || (comps[1].count > 0) ||
               (comps[2].count > 0)) {
            ft_progress(load, since);
        }

        if ((results[2] != before) ||
            (add.fetch && (results[0] != (before + 1))) ||
            (results[1] != (uint64_t)i << 8)) {
            ft_die("round %u: a fence was passed: 0x%" PRIx64 ", 0x%" PRIx64 ", 0x%"
                   PRIx64, i, results[2], results[0], results[1]);
        }

        before = results[1];
    }

    ft_flush(load);
}
