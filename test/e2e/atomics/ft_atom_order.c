/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Stories about the order of operations: what a flush completes, and what a fence
 * orders.
 */
#include "ft_atom_order.h"
#include "ft_clock.h"

#include <inttypes.h>
#include <sched.h>
#include <stddef.h>
#include <string.h>

#define FT_ORDER_TIME    100.0 /* Seconds; ends only a hang */
#define FT_ORDER_OPS     4
#define FT_ORDER_FLUSHES 64
#define FT_ORDER_CALLS   1000 /* Maximum calls of a callback */

typedef struct ft_order ft_order_t;

#define FT_ORDER_PLACED 150  /* Rounds */

typedef struct {
    uct_completion_t comp;
    ft_order_t       *order;
    unsigned         must;      /* Of a flush: operations before it */
    uint64_t         result;
} ft_order_op_t;

struct ft_order {
    const ft_atom_load_t *load;
    uint64_t             addr;
    uct_completion_callback_t func; /* Of operations */
    unsigned             posted;
    unsigned             done;
    unsigned             flushes;  /* Posted */
    unsigned             flushed;
    ft_order_op_t        ops[FT_ORDER_OPS];
    ft_order_op_t        flush_ops[FT_ORDER_FLUSHES];
};

static void ft_progress(const ft_order_t *order, double since)
{
    if (uct_worker_progress(order->load->uct->worker) == 0) {
        sched_yield();
    }

    if (order->load->uct->ep_errors > 0) {
        ft_die("the endpoint failed");
    }

    if (ft_now() - since > FT_ORDER_TIME) {
        ft_die("%u of %u operations and %u of %u flushes have completed",
               order->done, order->posted, order->flushed, order->flushes);
    }
}

static void ft_begin(ft_order_t *order, ft_order_op_t *op,
                     uct_completion_callback_t func)
{
    op->order       = order;
    op->comp.func   = func;
    op->comp.count  = 1;
    op->comp.status = UCS_OK;
}

/* --- Flushes --- */

static void ft_flush_done(uct_completion_t *comp);

/* Called in a callback, as by UCP */
static void ft_flush(ft_order_t *order)
{
    ft_order_op_t *op = &order->flush_ops[order->flushes];
    ucs_status_t status;

    if (order->flushes == FT_ORDER_FLUSHES) {
        ft_die("a flush waits for flushes of callbacks");
    }

    ft_begin(order, op, ft_flush_done);
    op->must = order->posted;
    status   = uct_ep_flush(order->load->ep, 0, &op->comp);
    if (status == UCS_INPROGRESS) {
        ++order->flushes;
    } else if ((status != UCS_OK) || (order->done < order->posted)) {
        ft_die("a flush returns %s, and %u of %u operations have completed",
               ucs_status_string(status), order->done, order->posted);
    }
}

static void ft_flush_done(uct_completion_t *comp)
{
    ft_order_op_t *op = (ft_order_op_t*)comp;
    ft_order_t *order = op->order;

    if ((comp->status != UCS_OK) || (order->done < op->must)) {
        ft_die("flush %zu completes with %s, and %u of %u operations have",
               op - order->flush_ops, ucs_status_string(comp->status),
               order->done, op->must);
    }

    ++order->flushed;
    ft_flush(order);
}

static void ft_op_done(uct_completion_t *comp)
{
    ft_order_t *order = ((ft_order_op_t*)comp)->order;

    if (comp->status != UCS_OK) {
        ft_die("an operation completes with %s",
               ucs_status_string(comp->status));
    }

    ++order->done;
    ft_flush(order);
}

static void ft_post_add(ft_order_t *order, unsigned index, uint64_t value)
{
    const ft_atom_t atom = {.op = FT_ATOM_ADD, .fetch = 1, .value = value};
    ft_order_op_t *op    = &order->ops[index];
    double since         = ft_now();
    ucs_status_t status;

    ft_begin(order, op, order->func);
    ++order->posted;
    op->result = 0;
    while ((status = ft_atom_post(order->load->ep, order->load->rkey, &atom,
                                  order->addr + (index * sizeof(uint64_t)),
                                  order->load->width, &op->result, &op->comp)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_progress(order, since);
    }

    if (status != UCS_INPROGRESS) {
        ft_die("an atomic returns %s", ucs_status_string(status));
    }
}

static void ft_unpack(void *arg, const void *data, size_t length)
{
    memcpy(arg, data, length);
}

static void ft_post_get(ft_order_t *order, unsigned index)
{
    ft_order_op_t *op = &order->ops[index];
    double since      = ft_now();
    ucs_status_t status;

    ft_begin(order, op, order->func);
    ++order->posted;
    while ((status = uct_ep_get_bcopy(order->load->ep, ft_unpack, &op->result,
                                      order->load->width,
                                      order->addr + (index * sizeof(uint64_t)),
                                      order->load->rkey, &op->comp)) ==
           UCS_ERR_NO_RESOURCE) {
        ft_progress(order, since);
    }

    if (status != UCS_INPROGRESS) {
        ft_die("a read returns %s", ucs_status_string(status));
    }
}

static void ft_wait(ft_order_t *order)
{
    double since = ft_now();

    while ((order->done < order->posted) || (order->flushed < order->flushes)) {
        ft_progress(order, since);
    }
}

/* Flush in callbacks of atomics, of reads, and of both */
static void ft_order_flushes(ft_order_t *order)
{
    unsigned kinds, i;

    order->func = ft_op_done;
    for (kinds = 0; kinds < 3; ++kinds) {
        memset(&order->posted, 0,
               sizeof(*order) - offsetof(ft_order_t, posted));
        for (i = 0; i < FT_ORDER_OPS; ++i) {
            if ((kinds == 0) || ((kinds == 2) && (i % 2))) {
                ft_post_add(order, i, 1);
            } else {
                ft_post_get(order, i);
            }
        }

        ft_wait(order);
        if (order->flushes == 0) {
            ft_die("no flush was in progress");
        }
    }
}

/* --- Fences --- */

static void ft_count_done(uct_completion_t *comp)
{
    ft_order_t *order = ((ft_order_op_t*)comp)->order;

    if (comp->status != UCS_OK) {
        ft_die("an operation completes with %s",
               ucs_status_string(comp->status));
    }

    ++order->done;
}

static void ft_fence(ft_order_t *order)
{
    if (uct_ep_fence(order->load->ep, 0) != UCS_OK) {
        ft_die("a fence failed");
    }
}

/* @return Whether it was posted. */
static int ft_put(ft_order_t *order, unsigned index, uint64_t value)
{
    ucs_status_t status;

    status = uct_ep_put_short(order->load->ep, &value, order->load->width,
                              order->addr + (index * sizeof(uint64_t)),
                              order->load->rkey);
    if ((status != UCS_OK) && (status != UCS_ERR_NO_RESOURCE)) {
        ft_die("a put returns %s", ucs_status_string(status));
    }

    return status == UCS_OK;
}

static void ft_wait_for_flush(ft_order_t *order)
{
    double since = ft_now();

    while (uct_ep_flush(order->load->ep, 0, NULL) != UCS_OK) {
        ft_progress(order, since);
    }
}

/* The atomic is the first operation after the fence; the put must not pass it */
static void ft_order_read(ft_order_t *order)
{
    double since = ft_now();

    order->func = ft_count_done;
    ft_post_get(order, 0);
    ft_fence(order);
    ft_post_add(order, 1, 1);
    while (!ft_put(order, 0, 2)) {
        ft_progress(order, since);
    }

    ft_wait(order);
    ft_wait_for_flush(order);
    if (order->ops[0].result != 1) {
        ft_die("the put has passed the fence: the read gives %" PRIu64,
               order->ops[0].result);
    }
}

/* Operations posted after an atomic do not delay the atomic at its fence */
static void ft_order_puts(ft_order_t *order)
{
    double since = ft_now();
    uint64_t i   = 0;

    order->func = ft_count_done;
    while (!ft_put(order, 1, ++i)) {
        ft_progress(order, since);
    }

    ft_fence(order);
    ft_post_add(order, 0, 1);
    while (order->done < order->posted) {
        i += ft_put(order, 1, i);
        ft_progress(order, since);
    }

    ft_wait_for_flush(order);
}

/* An atomic after a fence or a flush finds what was put before, and is not overwritten by it */
static void ft_order_placed(ft_order_t *order)
{
    double since = ft_now();
    uint64_t i;

    order->func = ft_count_done;
    for (i = 1; i <= FT_ORDER_PLACED; ++i) {
        while (!ft_put(order, 0, i * 2)) {
            ft_progress(order, since);
        }

        if (i % 3 == 0) {
            ft_fence(order);
            /* In every other one of these rounds another put is the first after the fence */
            while ((i % 2 == 0) && !ft_put(order, 1, i)) {
                ft_progress(order, since);
            }
        } else if (i % 3 == 1) {
            ft_wait_for_flush(order);
        } else {
            while (uct_iface_flush(order->load->uct->iface, 0, NULL) != UCS_OK) {
                ft_progress(order, since);
            }
        }

        ft_post_add(order, 0, 1);
        ft_wait(order);
        if (order->ops[0].result != (i * 2)) {
            ft_die("after %s, an atomic finds %" PRIu64 " instead of %" PRIu64,
                   (i % 3 == 0) ? "a fence" : "a flush", order->ops[0].result,
                   i * 2);
        }

        ft_post_add(order, 0, 0);
        ft_wait(order);
        if (order->ops[0].result != ((i * 2) + 1)) {
            ft_die("an atomic was overwritten: %" PRIu64 " instead of %" PRIu64,
                   order->ops[0].result, (i * 2) + 1);
        }
    }
}

/* --- Invalid atomics --- */

static void ft_must_be(ucs_status_t status, ucs_status_t expected,
                       const char *what, uint64_t addr)
{
    if (status != expected) {
        ft_die("%s at 0x%" PRIx64 " returns %s", what, addr,
               ucs_status_string(status));
    }
}

static void ft_post_unaligned(ft_order_t *order, uint64_t addr)
{
    uct_rkey_t rkey = order->load->rkey;
    uct_ep_h ep     = order->load->ep;
    ft_order_op_t op;

    ft_begin(order, &op, ft_count_done);
    ft_must_be((order->load->width == 8) ?
               uct_ep_atomic64_post(ep, UCT_ATOMIC_OP_ADD, 1, addr, rkey) :
               uct_ep_atomic32_post(ep, UCT_ATOMIC_OP_ADD, 1, addr, rkey),
               UCS_ERR_INVALID_PARAM, "a posted add", addr);
    ft_must_be((order->load->width == 8) ?
               uct_ep_atomic64_fetch(ep, UCT_ATOMIC_OP_ADD, 1, &op.result, addr,
                                     rkey, &op.comp) :
               uct_ep_atomic32_fetch(ep, UCT_ATOMIC_OP_ADD, 1,
                                     (uint32_t*)&op.result, addr, rkey,
                                     &op.comp),
               UCS_ERR_INVALID_PARAM, "an add", addr);
    ft_must_be((order->load->width == 8) ?
               uct_ep_atomic_cswap64(ep, 0, 1, addr, rkey, &op.result,
                                     &op.comp) :
               uct_ep_atomic_cswap32(ep, 0, 1, addr, rkey,
                                     (uint32_t*)&op.result, &op.comp),
               UCS_ERR_INVALID_PARAM, "a compare and swap", addr);
}

static void ft_post_none(ft_order_t *order, unsigned opcode)
{
    uct_rkey_t rkey = order->load->rkey;
    uct_ep_h ep     = order->load->ep;
    ft_order_op_t op;

    ft_begin(order, &op, ft_count_done);
    ft_must_be(uct_ep_atomic64_post(ep, (uct_atomic_op_t)opcode, 1, order->addr,
                                    rkey),
               UCS_ERR_UNSUPPORTED, "an unknown posted operation",
               order->addr);
    ft_must_be(uct_ep_atomic64_fetch(ep, (uct_atomic_op_t)opcode, 1, &op.result,
                                     order->addr, rkey, &op.comp),
               UCS_ERR_UNSUPPORTED, "an unknown operation", order->addr);
}

/* Each fails immediately, without an effect on earlier or later operations */
static void ft_order_refused(ft_order_t *order)
{
    unsigned i;

    order->func = ft_count_done;
    for (i = 0; i < FT_ORDER_OPS; ++i) {
        ft_post_add(order, i, 1);
        ft_post_unaligned(order, order->addr + 1);
        ft_post_unaligned(order, order->addr + (order->load->width / 2));
        ft_post_none(order, UCT_ATOMIC_OP_CSWAP);
        ft_post_none(order, UCT_ATOMIC_OP_LAST);
    }

    ft_wait(order);
    ft_wait_for_flush(order);
    for (i = 0; i < FT_ORDER_OPS; ++i) {
        if (order->ops[i].result != order->ops[0].result) {
            ft_die("word %u was %" PRIu64 ", and word 0 %" PRIu64, i,
                   order->ops[i].result, order->ops[0].result);
        }
    }
}

/* --- Pending requests --- */

typedef struct {
    uct_pending_req_t req;
    unsigned          calls;
    int               is_over;
} ft_pending_t;

static ucs_status_t ft_pending_func(uct_pending_req_t *req)
{
    ft_pending_t *pending = (ft_pending_t*)req;

    if (++pending->calls > FT_ORDER_CALLS) {
        ft_die("a failing pending request is called in a loop");
    }

    return pending->is_over ? UCS_OK : UCS_ERR_IO_ERROR;
}

/* It stays in the queue, and is called again later (uct_pending_callback_t) */
static void ft_order_pending(ft_order_t *order)
{
    double since         = ft_now();
    ft_pending_t pending = {.req.func = ft_pending_func};
    unsigned calls;

    order->func = ft_count_done;
    ft_post_add(order, 0, 0);
    ft_fence(order);
    if (uct_ep_pending_add(order->load->ep, &pending.req, 0) != UCS_OK) {
        ft_die("no request was added to the queue");
    }

    while (pending.calls == 0) {
        ft_progress(order, since);
    }

    pending.is_over = 1;
    calls           = pending.calls;
    while (pending.calls == calls) {
        ft_progress(order, since);
    }

    ft_wait(order);
    ft_wait_for_flush(order);
}

int ft_atom_order(const ft_atom_load_t *load, uint64_t addr, const char *name)
{
    static ft_order_t order;

    memset(&order, 0, sizeof(order));
    order.load = load;
    order.addr = addr;
    if (!strcmp(name, "flushes")) {
        ft_order_flushes(&order);
    } else if (!strcmp(name, "read")) {
        ft_order_read(&order);
    } else if (!strcmp(name, "refused")) {
        ft_order_refused(&order);
    } else if (!strcmp(name, "pending")) {
        ft_order_pending(&order);
    } else if (!strcmp(name, "puts")) {
        ft_order_puts(&order);
    } else if (!strcmp(name, "placed")) {
        ft_order_placed(&order);
    } else {
        return -1;
    }

    return 0;
}
