/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Post the operations of a plan and check the results.
 */
#include "ft_ops.h"
#include "ft_clock.h"
#include "ft_quirk.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FT_IDLE_CALLS  64   /* Progress calls without work before a nap */
#define FT_NAP_US      30
#define FT_SETTLE      200  /* Calls after the end, to detect duplicates */
#define FT_LATE_WAIT   60   /* Seconds until a late write must be in memory */


static void ft_fail(ft_client_t *client, const char *format, ...)
        __attribute__((format(printf, 2, 3)));

static void ft_fail(ft_client_t *client, const char *format, ...)
{
    va_list ap;

    if (client->error[0] != '\0') {
        return;
    }

    va_start(ap, format);
    vsnprintf(client->error, sizeof(client->error), format, ap);
    va_end(ap);
}

void ft_client_progress(ft_client_t *client)
{
    static unsigned idle;

    if (client->pace > 0) {
        usleep(client->pace * 1e6);
        uct_worker_progress(client->uct.worker);
    } else if (uct_worker_progress(client->uct.worker) > 0) {
        idle = 0;
    } else if (++idle > FT_IDLE_CALLS) {
        usleep(FT_NAP_US);
    }
}

void ft_client_init(ft_client_t *client, ft_shared_t *shared)
{
    client->shared  = shared;
    client->timeout = 120;
    client->local   = mmap(NULL, FT_LOCAL_SIZE, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (client->local == MAP_FAILED) {
        ft_die("out of memory");
    }

    client->memh = ft_uct_reg(&client->uct, client->local, FT_LOCAL_SIZE);
}

void ft_client_cleanup(ft_client_t *client)
{
    if (client->ep != NULL) {
        uct_ep_destroy(client->ep);
    }
    if (client->rkey.handle != NULL || client->rkey.rkey != 0) {
        uct_rkey_release(client->uct.component, &client->rkey);
    }
    uct_md_mem_dereg(client->uct.md, client->memh);
    munmap(client->local, FT_LOCAL_SIZE);
}

void ft_client_reopen(ft_client_t *client)
{
    if (client->ep != NULL) {
        uct_ep_destroy(client->ep);
    }

    client->ep = ft_uct_connect(&client->uct, &client->server);
}

/* --- Completions --- */

/* Acknowledged data may still be in the NIC (quirk late-write). The NIC places it without
 * any call of ours. */
static void ft_await_memory(int (*is_there)(void *arg), void *arg)
{
    double end = ft_now() + FT_LATE_WAIT;

    while ((ft_quirk_late_time() > 0) && !is_there(arg) && (ft_now() < end)) {
        usleep(100);
    }
}

typedef struct {
    uint32_t          run;
    volatile uint64_t *word;
    int               want;
} ft_wanted_t;

/* The word is of this put, or of a later one */
static int ft_is_wanted(void *arg)
{
    const ft_wanted_t *wanted = arg;
    uint64_t value            = *wanted->word;

    return (ft_word_run(value) == (wanted->run & 0xfffff)) &&
           (ft_word_index(value) >= wanted->want);
}

/* When a flush up to operation @a end has completed, each slot contains the data of the
 * last put before it, or of a later one. */
static void ft_check_flushed(ft_client_t *client, unsigned end)
{
    const ft_plan_t *plan = &client->plan;
    ft_wanted_t wanted    = {.run = client->run};
    unsigned i;

    for (i = 0; i < end; ++i) {
        if (!(ft_kinds[plan->ops[i].kind].flags & FT_KIND_WRITES)) {
            continue;
        }

        wanted.word = (uint64_t*)(client->shared->area + plan->ops[i].offset +
                                  plan->ops[i].length) - 1;
        wanted.want = ft_plan_writer(plan, i, end);
        ft_await_memory(ft_is_wanted, &wanted);
        if (!ft_is_wanted(&wanted)) {
            ft_fail(client, "the flush after %u has completed, but put %d is"
                    " not there: 0x%lx (%d)", end, wanted.want, (long)*wanted.word,
                    ft_word_index(*wanted.word));
        }
    }
}

/* In mode extended, a read of one word completes as an atomic does: when its value is
 * resolved (docs/ATOMICS.md). A flush waits for those before it */
static int ft_completes_in_order(const ft_client_t *client, unsigned index)
{
    const char *mode = getenv("UCX_RC_VARUNA_ATOMIC_MODE");
    const ft_op_t *op;

    if ((index >= client->plan.num) || (mode == NULL) || strcmp(mode, "extended")) {
        return 1;
    }

    op = &client->plan.ops[index];
    return (op->kind != FT_FLUSH) &&
           (!(ft_kinds[op->kind].flags & FT_KIND_READS) || (op->length > 8));
}

static void ft_completed(ft_done_t *done, ucs_status_t status)
{
    ft_client_t *client = done->client;

    ++done->completed;
    ++client->num_completed;
    if (done->completed > 1) {
        ft_fail(client, "operation %u completed %u times", done->index,
                done->completed);
        return;
    }

    if (status != UCS_OK) {
        ft_fail(client, "operation %u completed with: %s", done->index,
                ucs_status_string(status));
        return;
    }

    if (ft_completes_in_order(client, done->index)) {
        if ((int)done->index < client->last_completed) {
            ft_fail(client, "operation %u (%s) completed after %d", done->index,
                    (done->index < client->plan.num) ?
                    ft_kinds[client->plan.ops[done->index].kind].name : "flush",
                    client->last_completed);
        }

        client->last_completed = done->index;
    }

    if ((done->index == client->plan.num) ||
        (client->plan.ops[done->index].kind == FT_FLUSH)) {
        ft_check_flushed(client, done->index);
    }
}

static void ft_comp_func(uct_completion_t *self)
{
    ft_completed((ft_done_t*)((char*)self - offsetof(ft_done_t, comp)),
                 self->status);
}

/* Post once. @return UCS_ERR_NO_RESOURCE if it is to be tried again. */
static ucs_status_t ft_try(ft_client_t *client, ft_done_t *done)
{
    const ft_op_t *op = &client->plan.ops[done->index];
    ft_kind_t kind;
    ucs_status_t status;

    kind   = (done->index == client->plan.num) ? FT_FLUSH : op->kind;
    status = ft_op_post(client, kind, op, done);
    if (status == UCS_ERR_NO_RESOURCE) {
        return status;
    }

    done->posted = 1;
    if (UCS_STATUS_IS_ERR(status)) {
        ft_fail(client, "operation %u (%s): %s", done->index,
                ft_kinds[kind].name, ucs_status_string(status));
    } else if ((status == UCS_OK) &&
               (ft_kinds[kind].flags & FT_KIND_COMPLETES)) {
        ft_completed(done, UCS_OK);
    }

    return UCS_OK;
}

static ucs_status_t ft_pending_func(uct_pending_req_t *self)
{
    ft_done_t *done = (ft_done_t*)((char*)self - offsetof(ft_done_t, pending));

    return ft_try(done->client, done);
}

static int ft_over(ft_client_t *client, double end, const char *what)
{
    if (client->error[0] != '\0') {
        return 1;
    }

    if (ft_now() > end) {
        ft_fail(client, "%s did not end: %u completed, the last one %d", what,
                client->num_completed, client->last_completed);
        return 1;
    }

    ft_client_progress(client);
    return 0;
}

/* A flush does not cover requests in the pending queue. UCP frees its requests when the
 * flush completes. */
static void ft_check_pending(ft_client_t *client, const ft_done_t *done)
{
    if (done->posted) {
        return;
    }

    if (uct_iface_flush(client->uct.iface, 0, NULL) == UCS_OK) {
        ft_fail(client, "the interface is flushed, and operation %u is pending",
                done->index);
    } else if (client->num_completed == done->index) {
        printf("ft: note operation %u is pending alone\n", done->index);
    }
}

static void ft_post(ft_client_t *client, ft_done_t *done, int pending,
                    double end)
{
    char what[64];

    snprintf(what, sizeof(what), "posting operation %u", done->index);
    while (ft_try(client, done) == UCS_ERR_NO_RESOURCE) {
        if (pending && (uct_ep_pending_add(client->ep, &done->pending, 0) ==
                        UCS_OK)) {
            ft_check_pending(client, done);
            while (!done->posted && !ft_over(client, end, what)) {
            }
            return;
        }

        if (ft_over(client, end, what)) {
            return;
        }
    }
}

/* --- A run --- */

static void ft_prepare_op(ft_client_t *client, unsigned index, size_t *local)
{
    const ft_op_t *op = &client->plan.ops[index];
    ft_done_t *done   = &client->done[index];

    memset(done, 0, sizeof(*done));
    done->client       = client;
    done->index        = index;
    done->local        = client->local + *local;
    done->comp.func    = ft_comp_func;
    done->comp.count   = 1;
    done->comp.status  = UCS_OK;
    done->pending.func = ft_pending_func;
    if (index == client->plan.num) {
        return;
    }

    if (ft_kinds[op->kind].flags & FT_KIND_READS) {
        memset(done->local, 0xee, op->length);
    } else {
        ft_fill(done->local, op->length, client->run, index);
    }

    *local += (op->length + 63) & ~63ul;
    if (*local > FT_LOCAL_SIZE) {
        ft_die("the plan is too large");
    }
}

static void ft_prepare(ft_client_t *client)
{
    size_t local = 0;
    unsigned i;

    client->num_completed    = 0;
    client->last_completed   = -1;
    client->shared->am_count = 0;
    for (i = 0; i < client->plan.num; ++i) {
        ft_fill(client->shared->area + client->plan.ops[i].offset,
                client->plan.ops[i].length, client->run, -1);
    }

    for (i = 0; i <= client->plan.num; ++i) {
        ft_prepare_op(client, i, &local);
    }
}

static unsigned ft_num_messages(const ft_plan_t *plan)
{
    unsigned num = 0;
    unsigned i;

    for (i = 0; i < plan->num; ++i) {
        num += !!(ft_kinds[plan->ops[i].kind].flags & FT_KIND_MESSAGE);
    }

    return num;
}

/* Completions and messages of the last run that arrived after its end */
static void ft_check_last_run(ft_client_t *client)
{
    unsigned i;

    if ((client->run != 0) &&
        (client->shared->am_count != ft_num_messages(&client->plan))) {
        ft_fail(client, "of the run before %u messages arrived instead of %u",
                client->shared->am_count, ft_num_messages(&client->plan));
    }

    for (i = 0; (client->run != 0) && (i <= client->plan.num); ++i) {
        if (client->done[i].completed > 1) {
            ft_fail(client, "operation %u of the run before completed %u"
                    " times", i, client->done[i].completed);
        }
    }
}

static void ft_wait_messages(ft_client_t *client, double end)
{
    unsigned want = ft_num_messages(&client->plan);
    unsigned i;

    while ((client->shared->am_count < want) &&
           !ft_over(client, end, "receiving messages")) {
    }

    for (i = 0; i < FT_SETTLE; ++i) {
        uct_worker_progress(client->uct.worker);
    }

    if (client->shared->am_count != want) {
        ft_fail(client, "%u messages arrived instead of %u",
                client->shared->am_count, want);
    }
}

static void ft_check_messages(ft_client_t *client)
{
    const ft_am_t *am = client->shared->am;
    const ft_op_t *op;
    unsigned i;

    for (i = 0; i < client->plan.num; ++i) {
        op = &client->plan.ops[i];
        if (!(ft_kinds[op->kind].flags & FT_KIND_MESSAGE)) {
            continue;
        }

        if ((am->run != (client->run & 0xfffff)) || (am->index != i) ||
            (am->length != op->length) || !am->good) {
            ft_fail(client, "message %u of run %u arrived (%u bytes, %s) where"
                    " %u of %u should", am->index, am->run, am->length,
                    am->good ? "good" : "damaged", i, client->run);
            return;
        }

        ++am;
    }
}

/* Whether all slots contain what was written last */
static int ft_is_memory_good(void *arg)
{
    const ft_client_t *client = arg;
    const ft_plan_t *plan     = &client->plan;
    const ft_op_t *op;
    unsigned i;

    for (i = 0; i < plan->num; ++i) {
        op = &plan->ops[i];
        if ((ft_kinds[op->kind].flags & (FT_KIND_READS | FT_KIND_WRITES)) &&
            !ft_check(client->shared->area + op->offset, op->length, client->run,
                      ft_plan_writer(plan, i, plan->num))) {
            return 0;
        }
    }

    return 1;
}

/* Late writes: everything is in memory, and nothing older comes after it */
static void ft_await_results(ft_client_t *client)
{
    if (ft_quirk_late_time() > 0) {
        ft_await_memory(ft_is_memory_good, client);
        usleep(2e6 * ft_quirk_late_time());
    }
}

static void ft_check_results(ft_client_t *client)
{
    const ft_plan_t *plan = &client->plan;
    const ft_op_t *op;
    unsigned i, flags;
    int writer;

    for (i = 0; i < plan->num; ++i) {
        op    = &plan->ops[i];
        flags = ft_kinds[op->kind].flags;
        if ((flags & FT_KIND_COMPLETES) && (client->done[i].completed != 1)) {
            ft_fail(client, "operation %u completed %u times", i,
                    client->done[i].completed);
        }

        if ((flags & FT_KIND_READS) &&
            !ft_check(client->done[i].local, op->length, client->run,
                      op->value_of)) {
            ft_fail(client, "operation %u read 0x%lx, which is not of %d", i,
                    *(long*)client->done[i].local, op->value_of);
        }

        writer = ft_plan_writer(plan, i, plan->num);
        if ((flags & (FT_KIND_READS | FT_KIND_WRITES)) &&
            !ft_check(client->shared->area + op->offset, op->length,
                      client->run, writer)) {
            ft_fail(client, "the memory at %u has 0x%lx, which is not of %d",
                    op->offset, *(long*)(client->shared->area + op->offset),
                    writer);
        }
    }
}

/* No progress until a line is read; before that, with FT_RUN_LOOK, progress until another
 * one is */
static void ft_compute(ft_client_t *client, unsigned flags)
{
    if (flags & FT_RUN_LOOK) {
        while ((ft_line_read(client->input, 0) == NULL) && !client->input->eof) {
            ft_client_progress(client);
        }
    }

    printf("ft: note computes\n");
    (void)ft_line_read(client->input, -1);
}

int ft_client_run(ft_client_t *client, uint32_t run, const char *plan,
                  unsigned flags)
{
    double end = ft_now() + client->timeout;
    int errors = client->uct.ep_errors;
    unsigned i;

    client->error[0] = '\0';
    ft_check_last_run(client);
    client->run = run;
    if (ft_plan_make(plan, &client->plan) != 0) {
        ft_die("there is no plan %s", plan);
    }

    ft_prepare(client);
    if (flags & FT_RUN_FRESH) {
        ft_client_reopen(client);
    }

    for (i = 0; i <= client->plan.num; ++i) {
        ft_post(client, &client->done[i], flags & FT_RUN_PENDING, end);
    }

    if (flags & FT_RUN_COMPUTE) {
        ft_compute(client, flags);
    }

    while (!client->done[client->plan.num].completed &&
           !ft_over(client, end, "the final flush")) {
    }

    ft_wait_messages(client, end);
    ft_check_messages(client);
    ft_await_results(client);
    ft_check_results(client);
    if (client->uct.ep_errors != errors) {
        ft_fail(client, "the endpoint failed");
    }

    return (client->error[0] == '\0') ? 0 : -1;
}

static void ft_warm_func(uct_completion_t *self)
{
}

int ft_client_warm(ft_client_t *client, uint32_t number)
{
    uint32_t slot         = number % (FT_WARM_SIZE / sizeof(uint64_t));
    uint64_t address      = client->server.base + FT_WARM_OFFSET +
                            (slot * sizeof(uint64_t));
    uint64_t word         = number;
    uct_completion_t comp = {.func = ft_warm_func, .count = 1};
    double end            = ft_now() + client->timeout;
    ucs_status_t status;

    client->error[0] = '\0';
    do {
        status = uct_ep_put_short(client->ep, &word, sizeof(word), address,
                                  client->rkey.rkey);
    } while ((status == UCS_ERR_NO_RESOURCE) &&
             !ft_over(client, end, "the first put"));

    if (status != UCS_OK) {
        ft_fail(client, "the first put: %s", ucs_status_string(status));
        return -1;
    }

    do {
        status = uct_ep_flush(client->ep, 0, &comp);
    } while ((status == UCS_ERR_NO_RESOURCE) &&
             !ft_over(client, end, "the first flush"));

    while ((status == UCS_INPROGRESS) && (comp.count > 0) &&
           !ft_over(client, end, "the first flush")) {
    }

    if (UCS_STATUS_IS_ERR(status)) {
        ft_fail(client, "the first flush: %s", ucs_status_string(status));
    }

    return (client->error[0] == '\0') ? 0 : -1;
}
