/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The operations, and the two loops around them, see cost_load.h.
 *
 * What has to be waited for is either there at the first look (the emulated
 * NIC executes an operation while its doorbell is rung), or is awaited in a
 * blocking read. So the instructions do not depend on who gets the processor.
 */
#include "cost_load.h"
#include "cost_oob.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>


/* Less than the receive buffers of any transport, and a power of two */
#define COST_BATCH 16

/* A transport may connect in the background: it is given as much time, and as
 * many calls, in every run. The server sleeps meanwhile.
 */
#define COST_WARMUP_CALLS    100
#define COST_WARMUP_SLEEP_US 5000

/* In place of a number of messages: the client is done */
#define COST_LOAD_END        UINT64_MAX


typedef struct {
    uct_completion_t super;
    int              pending;
} cost_completion_t;


static void cost_load_completed(uct_completion_t *self)
{
    cost_completion_t *comp = (cost_completion_t*)self;

    comp->pending = 0;
}

static size_t cost_load_pack(void *dest, void *arg)
{
    const cost_load_t *load = arg;

    memset(dest, 0x5a, load->size);
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
    default:
        return cost_load_message(uct, load, &iov, comp);
    }
}

static void cost_load_wait(cost_uct_t *uct, cost_completion_t *comp)
{
    while (comp->pending) {
        uct_worker_progress(uct->worker);
    }
}

static int cost_load_batch(cost_uct_t *uct, const cost_load_t *load,
                           unsigned count)
{
    cost_completion_t comp = {
        .super   = {.func = cost_load_completed, .count = 1},
        .pending = 1
    };
    ucs_status_t status;
    unsigned i;

    for (i = 0; i < count; ++i) {
        while ((status = cost_load_post(uct, load, &comp.super)) ==
               UCS_ERR_NO_RESOURCE) {
            uct_worker_progress(uct->worker);
        }

        if (status == UCS_INPROGRESS) {
            ++comp.super.count;
        } else if (status != UCS_OK) {
            fprintf(stderr, "an operation could not be posted: %s\n",
                    ucs_status_string(status));
            return -1;
        }
    }

    while ((status = uct_ep_flush(uct->ep, 0, &comp.super)) ==
           UCS_ERR_NO_RESOURCE) {
        uct_worker_progress(uct->worker);
    }

    if (status == UCS_OK) {
        /* Nobody else takes away the flush's share */
        comp.pending = (--comp.super.count > 0);
    } else if (status != UCS_INPROGRESS) {
        fprintf(stderr, "flush: %s\n", ucs_status_string(status));
        return -1;
    }

    cost_load_wait(uct, &comp);
    if (comp.super.status != UCS_OK) {
        fprintf(stderr, "an operation failed: %s\n",
                ucs_status_string(comp.super.status));
        return -1;
    }

    return 0;
}

/* Returns when the server has taken in so many messages in all */
static int cost_load_barrier(int fd, uint64_t messages)
{
    return (cost_oob_send(fd, &messages, sizeof(messages)) == 0) ?
           cost_oob_recv(fd, &messages, sizeof(messages)) : -1;
}

static void cost_load_warm_up(cost_uct_t *uct)
{
    int i;

    for (i = 0; i < COST_WARMUP_CALLS; ++i) {
        uct_worker_progress(uct->worker);
        usleep(COST_WARMUP_SLEEP_US);
    }
}

int cost_load_client(cost_uct_t *uct, const cost_load_t *load, int fd)
{
    int messages       = (load->op == COST_OP_MESSAGE);
    unsigned long done = 0;
    unsigned long batch;

    if (cost_load_batch(uct, load, COST_BATCH) != 0) {
        return -1;
    }

    cost_load_warm_up(uct);
    while (done < load->count) {
        batch = load->count - done;
        batch = (batch < COST_BATCH) ? batch : COST_BATCH;
        if (cost_load_batch(uct, load, batch) != 0) {
            return -1;
        }

        done += batch;
        if (messages && (cost_load_barrier(fd, done + COST_BATCH) != 0)) {
            return -1;
        }
    }

    return cost_load_barrier(fd, COST_LOAD_END);
}

int cost_load_server(cost_uct_t *uct, int fd)
{
    uint64_t messages;

    do {
        if (cost_oob_recv(fd, &messages, sizeof(messages)) != 0) {
            return -1;
        }

        while ((messages != COST_LOAD_END) && (uct->messages < messages)) {
            uct_worker_progress(uct->worker);
        }

        if (cost_oob_send(fd, &messages, sizeof(messages)) != 0) {
            return -1;
        }
    } while (messages != COST_LOAD_END);

    return 0;
}

int cost_load_parse(cost_load_t *load, const char *op, const char *layout)
{
    static const char *ops[COST_OP_LAST]         = {"put", "get", "message"};
    static const char *layouts[COST_LAYOUT_LAST] = {"short", "bcopy", "zcopy"};

    for (load->op = 0; load->op < COST_OP_LAST; ++load->op) {
        if (strcmp(ops[load->op], op) == 0) {
            break;
        }
    }

    for (load->layout = 0; load->layout < COST_LAYOUT_LAST; ++load->layout) {
        if (strcmp(layouts[load->layout], layout) == 0) {
            break;
        }
    }

    if ((load->op == COST_OP_LAST) || (load->layout == COST_LAYOUT_LAST)) {
        fprintf(stderr, "\"%s %s\": unknown operation or layout\n", op,
                layout);
        return -1;
    }

    if ((load->op == COST_OP_GET) && (load->layout == COST_LAYOUT_SHORT)) {
        fprintf(stderr, "there is no short get\n");
        return -1;
    }

    return 0;
}
