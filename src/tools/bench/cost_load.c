/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The operations, and the two loops around them, see cost_load.h.
 *
 * The processes never poll in a loop of unknown length: the emulated NIC executes an
 * operation while its doorbell is rung, and everything else is a blocking read. Each
 * batch has the same number of progress calls over any transport, and time may pass with
 * these calls (cost_clock.h). So the number of instructions does not depend on the
 * machine's load.
 *
 * A profiler collects only in the functions cost_measured_*, and writes a profile
 * whenever cost_phase_ended() returns: one for each load, in both processes.
 */
#include "cost_load.h"
#include "cost_clock.h"
#include "cost_lane.h"
#include "cost_oob.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>


/* Operations before a flush; less than the receive buffers of any transport */
#define COST_BATCH 32

/* ... and of atomics: the number of rc_varuna's slots for an endpoint */
#define COST_ATOMICS_BATCH 16

/* Progress calls after a batch: a transport polls one completion per call, and more
 * calls find the flush's completion and the peer's messages */
#define COST_BATCH_CALLS (COST_BATCH + 8)

/* A transport may connect in the background: it gets the same time and the same number
 * of calls in each run. After that, it is asked whether it has.
 */
#define COST_WARMUP_CALLS    100
#define COST_WARMUP_SLEEP_US 5000
#define COST_WARMUP_MAX      20000

/* Calls of progress after that: a transport looks more often for some time after it has
 * received something */
#define COST_SETTLE_CALLS    2048

/* Instead of a number of messages: the client has finished the load */
#define COST_LOAD_END        UINT64_MAX

/* A profiler finds it by its name, so it must not be inlined or cloned */
#ifdef __clang__ /* It makes no clones */
#  define COST_PROFILED __attribute__((noinline, used))
#else
#  define COST_PROFILED __attribute__((noinline, noclone, used))
#endif


typedef struct {
    uct_completion_t super;
    int              pending;
} cost_completion_t;


static void cost_load_completed(uct_completion_t *self)
{
    cost_completion_t *comp = (cost_completion_t*)self;

    comp->pending = 0;
}

/* All calls of progress */
static void cost_progress(cost_uct_t *uct)
{
    cost_clock_step();
    uct_worker_progress(uct->worker);
}

static size_t cost_load_pack(void *dest, void *arg)
{
    const cost_load_t *load = arg;

    memset(dest, COST_FILL, load->size);
    return load->size;
}

static void cost_load_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static ucs_status_t cost_load_put(cost_uct_t *uct, const cost_load_t *load,
                                  const uct_iov_t *iov, uct_completion_t *comp)
{
    ssize_t packed;

    switch (load->layout) {
    case COST_LAYOUT_SHORT:
        return uct_ep_put_short(uct->ep, uct->buffer, load->size, uct->remote,
                                uct->rkey.rkey);
    case COST_LAYOUT_BCOPY:
        packed = uct_ep_put_bcopy(uct->ep, cost_load_pack, (void*)load,
                                  uct->remote, uct->rkey.rkey);
        return (packed < 0) ? (ucs_status_t)packed : UCS_OK;
    default:
        return uct_ep_put_zcopy(uct->ep, iov, 1, uct->remote, uct->rkey.rkey,
                                comp);
    }
}

static ucs_status_t cost_load_message(cost_uct_t *uct, const cost_load_t *load,
                                      const uct_iov_t *iov,
                                      uct_completion_t *comp)
{
    ssize_t packed;

    switch (load->layout) {
    case COST_LAYOUT_SHORT:
        return uct_ep_am_short(uct->ep, COST_AM_ID, 0,
                               UCS_PTR_BYTE_OFFSET(uct->buffer, 8),
                               load->size - 8);
    case COST_LAYOUT_BCOPY:
        packed = uct_ep_am_bcopy(uct->ep, COST_AM_ID, cost_load_pack,
                                 (void*)load, 0);
        return (packed < 0) ? (ucs_status_t)packed : UCS_OK;
    default:
        return uct_ep_am_zcopy(uct->ep, COST_AM_ID, NULL, 0, iov, 1, 0, comp);
    }
}

static ucs_status_t cost_load_get(cost_uct_t *uct, const cost_load_t *load,
                                  const uct_iov_t *iov, uct_completion_t *comp)
{
    return (load->layout == COST_LAYOUT_BCOPY) ?
           uct_ep_get_bcopy(uct->ep, cost_load_unpack, uct->buffer, load->size,
                            uct->remote, uct->rkey.rkey, comp) :
           uct_ep_get_zcopy(uct->ep, iov, 1, uct->remote, uct->rkey.rkey, comp);
}

/* The flush after it waits for its result */
static ucs_status_t cost_load_atomic(cost_uct_t *uct, const cost_load_t *load)
{
    static atomics_words_t words;
    static unsigned long number;
    ucs_status_t status;

    if (number == 0) {
        atomics_words_init(&words);
    }

    words.op = load->atomic;
    status   = atomics_post(uct, &words, number);
    number  += !UCS_STATUS_IS_ERR(status);
    if (words.wrong > 0) {
        return UCS_ERR_IO_ERROR;
    }

    return (status == UCS_INPROGRESS) ? UCS_OK : status;
}

static ucs_status_t cost_load_post(cost_uct_t *uct, const cost_load_t *load,
                                   uct_completion_t *comp)
{
    uct_iov_t iov = {
        .buffer = uct->buffer,
        .length = load->size,
        .memh   = uct->memh,
        .count  = 1
    };

    switch (load->op) {
    case COST_OP_PUT:
        return cost_load_put(uct, load, &iov, comp);
    case COST_OP_GET:
        return cost_load_get(uct, load, &iov, comp);
    case COST_OP_ATOMIC:
        return cost_load_atomic(uct, load);
    default:
        return cost_load_message(uct, load, &iov, comp);
    }
}

void cost_measured_calls(cost_uct_t *uct, unsigned long count);
int cost_measured_batch(cost_uct_t *uct, const cost_load_t *load, unsigned count,
                        cost_completion_t *comp);
void cost_phase_ended(void);

static void cost_calls(cost_uct_t *uct, unsigned long count)
{
    unsigned long i;

    for (i = 0; i < count; ++i) {
        cost_progress(uct);
    }
}

void COST_PROFILED cost_measured_calls(cost_uct_t *uct, unsigned long count)
{
    cost_calls(uct, count);
}

void COST_PROFILED cost_phase_ended(void)
{
    __asm__ volatile("" ::: "memory");
}

static int cost_batch(cost_uct_t *uct, const cost_load_t *load, unsigned count,
                      cost_completion_t *comp)
{
    unsigned calls = COST_BATCH_CALLS;
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < count; ++i) {
        while ((status = cost_load_post(uct, load, &comp->super)) ==
               UCS_ERR_NO_RESOURCE) {
            cost_progress(uct);
            calls -= (calls > 0);
        }

        if (status == UCS_INPROGRESS) {
            ++comp->super.count;
        } else if (status != UCS_OK) {
            fprintf(stderr, "an operation could not be posted: %s\n",
                    ucs_status_string(status));
            return -1;
        }
    }

    while ((status = uct_ep_flush(uct->ep, 0, &comp->super)) ==
           UCS_ERR_NO_RESOURCE) {
        cost_progress(uct);
        calls -= (calls > 0);
    }

    if (status == UCS_OK) {
        /* The completed flush does not call back: release its count */
        comp->pending = (--comp->super.count > 0);
    } else if (status != UCS_INPROGRESS) {
        fprintf(stderr, "flush: %s\n", ucs_status_string(status));
        return -1;
    }

    cost_calls(uct, calls);
    return 0;
}

int COST_PROFILED cost_measured_batch(cost_uct_t *uct, const cost_load_t *load,
                                      unsigned count, cost_completion_t *comp)
{
    return cost_batch(uct, load, count, comp);
}

static int cost_load_batch(cost_uct_t *uct, const cost_load_t *load,
                           unsigned count, int measured)
{
    cost_completion_t comp = {
        .super   = {.func = cost_load_completed, .count = 1},
        .pending = 1
    };

    if ((measured ? cost_measured_batch(uct, load, count, &comp) :
                    cost_batch(uct, load, count, &comp)) != 0) {
        return -1;
    }

    while (comp.pending) {
        cost_progress(uct);
    }

    if (comp.super.status != UCS_OK) {
        fprintf(stderr, "an operation failed: %s\n",
                ucs_status_string(comp.super.status));
        return -1;
    }

    return 0;
}

/* As the client, wait until the server has received this number of messages in total */
static int cost_load_barrier(int fd, uint64_t messages)
{
    return (cost_oob_send(fd, &messages, sizeof(messages)) == 0) ?
           cost_oob_recv(fd, &messages, sizeof(messages)) : -1;
}

static int cost_load_meet(int fd, int is_client)
{
    uint64_t ready = 0;

    if (is_client) {
        return cost_load_barrier(fd, ready);
    }

    return (cost_oob_recv(fd, &ready, sizeof(ready)) == 0) ?
           cost_oob_send(fd, &ready, sizeof(ready)) : -1;
}

static int cost_load_await_rc(cost_uct_t *uct)
{
    int i;

    for (i = 0; (cost_lane_count_rc() == 0); ++i) {
        if (i == COST_WARMUP_MAX) {
            fprintf(stderr, "the endpoint does not change to RC\n");
            return -1;
        }

        cost_progress(uct);
        usleep(COST_WARMUP_SLEEP_US);
    }

    return 0;
}

int cost_load_prepare(cost_uct_t *uct, int fd, int is_client, int progresses,
                      int await_rc)
{
    static const cost_load_t load = {
        .op     = COST_OP_PUT,
        .layout = COST_LAYOUT_SHORT,
        .size   = 8
    };
    int i;

    if (is_client && (cost_load_batch(uct, &load, COST_BATCH, 0) != 0)) {
        return -1;
    }

    for (i = 0; progresses && (i < COST_WARMUP_CALLS); ++i) {
        cost_progress(uct);
        usleep(COST_WARMUP_SLEEP_US);
    }

    if (is_client && await_rc && (cost_load_await_rc(uct) != 0)) {
        return -1;
    }

    return cost_load_meet(fd, is_client);
}

int cost_load_settle(cost_uct_t *uct, int fd, int is_client, int progresses)
{
    cost_calls(uct, progresses ? COST_SETTLE_CALLS : 0);
    return cost_load_meet(fd, is_client);
}

/* The first batch is not measured: it grows pools, and fills caches of keys and address
 * handles */
static int cost_load_batches(cost_uct_t *uct, const cost_load_t *load, int fd)
{
    unsigned long most  = (load->op == COST_OP_ATOMIC) ? COST_ATOMICS_BATCH :
                          COST_BATCH;
    unsigned long count = load->count + most;
    unsigned long done  = 0;
    unsigned long batch;

    while (done < count) {
        batch = count - done;
        batch = (batch < most) ? batch : most;
        if (cost_load_batch(uct, load, batch, done > 0) != 0) {
            return -1;
        }

        done += batch;
        if ((load->op == COST_OP_MESSAGE) &&
            (cost_load_barrier(fd, uct->messages + done) != 0)) {
            return -1;
        }
    }

    uct->messages += (load->op == COST_OP_MESSAGE) ? done : 0;
    return 0;
}

int cost_load_client(cost_uct_t *uct, const cost_load_t *load, int fd)
{
    int ret = 0;

    if (load->op == COST_OP_IDLE) {
        cost_measured_calls(uct, load->count);
    } else {
        ret = cost_load_batches(uct, load, fd);
    }

    cost_phase_ended();
    return (ret == 0) ? cost_load_barrier(fd, COST_LOAD_END) : -1;
}

int cost_load_server(cost_uct_t *uct, const cost_load_t *load, int fd)
{
    int measured = 0;
    uint64_t messages;

    for (;; measured = 1) {
        if (cost_oob_recv(fd, &messages, sizeof(messages)) != 0) {
            return -1;
        }

        if (messages == COST_LOAD_END) {
            break;
        }

        if (measured) {
            cost_measured_calls(uct, COST_BATCH_CALLS);
        }

        while (uct->messages < messages) {
            cost_progress(uct);
        }

        if (cost_oob_send(fd, &messages, sizeof(messages)) != 0) {
            return -1;
        }
    }

    cost_phase_ended();
    return cost_oob_send(fd, &messages, sizeof(messages));
}

static unsigned cost_load_find(const char *const *names, unsigned count,
                               const char *name)
{
    unsigned i;

    for (i = 0; (i < count) && (strcmp(names[i], name) != 0); ++i);
    return i;
}

int cost_load_parse(cost_load_t *load, const char *text)
{
    static const char *ops[COST_OP_ATOMIC]       = {"put", "get", "message",
                                                    "idle"};
    static const char *layouts[COST_LAYOUT_LAST] = {"short", "bcopy", "zcopy"};
    char op[16], layout[16], end;

    if (sscanf(text, "%15[a-z]:%15[a-z]:%zu:%lu%c", op, layout, &load->size,
               &load->count, &end) != 4) {
        fprintf(stderr, "\"%s\" is not OPERATION:LAYOUT:SIZE:COUNT\n", text);
        return -1;
    }

    load->atomic = atomics_op_find(op);
    load->op     = (load->atomic != NULL) ? COST_OP_ATOMIC :
                   cost_load_find(ops, COST_OP_ATOMIC, op);
    load->layout = cost_load_find(layouts, COST_LAYOUT_LAST, layout);
    if ((load->atomic != NULL) &&
        ((load->layout != COST_LAYOUT_SHORT) || (load->size != sizeof(uint64_t)))) {
        fprintf(stderr, "\"%s\": an atomic must be short and have 8 bytes\n", text);
        return -1;
    }

    if (((load->op == COST_OP_ATOMIC) && (load->atomic == NULL)) || (load->op == COST_OP_LAST) || (load->layout == COST_LAYOUT_LAST) ||
        ((load->op == COST_OP_GET) && (load->layout == COST_LAYOUT_SHORT))) {
        fprintf(stderr, "\"%s\": unknown operation or layout\n", text);
        return -1;
    }

    /* A message has an 8-byte header in its short form */
    if ((load->size < 8) || (load->size > COST_SIZE_MAX) || (load->count < 1)) {
        fprintf(stderr, "\"%s\": size or number is out of range\n", text);
        return -1;
    }

    return 0;
}
