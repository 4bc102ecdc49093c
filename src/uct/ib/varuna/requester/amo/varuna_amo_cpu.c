/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy: the peer's CPU executes atomics (varuna_cpu.c). They are numbered when
 * they are sent, all that wait in one message. The peer executes them in the order of
 * their numbers and keeps the results of a window of them. Requests that are not
 * answered are sent again, over another link.
 *
 *       all:    | sent, not answered     | not sent yet (ready) |
 *               ^ acknowledged before    ^ proxy_seq + 1
 *
 * An atomic after a flush or a fence waits until what was posted before is in the
 * peer's memory. The acknowledgement of a write does not prove that, and the atomic
 * does not come over the same queue pair: a read on the lane does.
 *
 * Main thread only.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_priv.h"
#include "varuna_amo.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/requester/varuna_ep_ctl.h>
#include <uct/ib/varuna/requester/varuna_placed.h>

#include <ucs/debug/log.h>

/* While others are under way, new ones wait for an answer, or until there are this many */
#define UCT_VARUNA_AMO_BATCH         16

typedef struct uct_varuna_amo_msg {
    uct_varuna_ctl_atomic_req_t req;
    uct_varuna_ctl_atomic_op_t  ops[UCT_VARUNA_AMO_WINDOW];
} uct_varuna_amo_msg_t;

UCT_VARUNA_STATIC_ASSERT((sizeof(uct_varuna_amo_msg_t) +
                          sizeof(uct_varuna_ctl_hdr_t) +
                          UCT_VARUNA_CTL_MAX_FROM) <= UCT_VARUNA_CTL_MAX_MSG);


/* --- Order after what was posted on the lane --- */

static void uct_varuna_amo_cpu_read_completion(uct_completion_t *comp)
{
    uct_varuna_amo_t *amo = ucs_container_of(comp, uct_varuna_amo_t, comp);
    uct_varuna_ep_t *ep   = amo->ep;

    if (comp->status == UCS_OK) {
        ep->amo.order.placed = ep->amo.order.reading;
    }

    ep->amo.order.reading = 0;
    uct_varuna_ep_add_work(ep);
}

/* When this read is complete, all earlier writes are in memory. */
static ucs_status_t uct_varuna_amo_cpu_read(uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    ucs_status_t status;

    amo->comp.func   = uct_varuna_amo_cpu_read_completion;
    amo->comp.count  = 1;
    amo->comp.status = UCS_OK;
    status           = uct_varuna_ep_read_back(ep, &amo->comp);
    if (status == UCS_OK) {
        ep->amo.order.reading = ep->stats.posted;
    }

    return status;
}

/* @return UCS_OK if it may be sent, UCS_ERR_BUSY if an event will say when to check
 * again, UCS_ERR_NO_RESOURCE to check again; otherwise the lane failed. */
static ucs_status_t uct_varuna_amo_cpu_check(uct_varuna_amo_t *amo)
{
    uct_varuna_ep_t *ep = amo->ep;
    ucs_status_t status;

    /* Requests after a fence only wait until all atomics before it are decided */
    if (amo->fence && (&amo->all != ep->amo.all.next)) {
        return UCS_ERR_BUSY;
    }

    if (amo->order > ep->amo.order.placed) {
        if (ep->amo.order.reading != 0) {
            return UCS_ERR_BUSY;
        }

        status = uct_varuna_amo_cpu_read(amo);
        return (status == UCS_OK) ? UCS_ERR_BUSY : status;
    }

    if (amo->fence && (ep->hot.num_reqs > 0)) {
        uct_varuna_ep_signal(ep); /* The requests in the way may have no completion */
        return UCS_ERR_NO_RESOURCE;
    }

    uct_varuna_amo_pass_fence(amo);
    return UCS_OK;
}


/* --- Sending --- */

/* All results before this number have arrived. */
static uint64_t uct_varuna_amo_cpu_acked(const uct_varuna_ep_t *ep)
{
    const uct_varuna_amo_t *oldest;

    if (ep->amo.num_sent == 0) {
        return ep->amo.seq + 1;
    }

    oldest = ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all);
    ucs_assert(oldest->number != 0);
    return oldest->number;
}

static void uct_varuna_amo_cpu_add_op(uct_varuna_amo_msg_t *msg,
                                      const uct_varuna_amo_t *amo)
{
    uct_varuna_ctl_atomic_op_t *op = &msg->ops[msg->req.count];

    if (msg->req.count == 0) {
        msg->req.first = amo->number;
    }

    ucs_assert(amo->number == (msg->req.first + msg->req.count));
    memset(op, 0, sizeof(*op));
    op->addr    = amo->sm.addr;
    op->token   = amo->key.token;
    op->compare = amo->sm.compare;
    op->value   = amo->sm.value;
    op->op      = amo->sm.op;
    op->width   = amo->sm.width;
    ++msg->req.count;
}

static void uct_varuna_amo_cpu_post(uct_varuna_ep_t *ep,
                                    uct_varuna_amo_msg_t *msg, uint64_t acked)
{
    if (msg->req.count == 0) {
        return;
    }

    msg->req.acked = acked;
    uct_varuna_ep_ctl_send(ep, ep->amo.retry.link, UCT_VARUNA_CTL_ATOMIC_REQ,
                           ep->lanes.epoch, msg, sizeof(msg->req) +
                           (msg->req.count * sizeof(*msg->ops)));
    msg->req.count = 0;
}

static int uct_varuna_amo_cpu_may_send(const uct_varuna_ep_t *ep)
{
    unsigned num_ready = ep->hot.num_amos - ep->amo.num_sent;

    return !ep->amo.holding &&
           ((ep->amo.num_sent == 0) || (num_ready >= UCT_VARUNA_AMO_BATCH));
}

/* @return As uct_varuna_amo_cpu_check(), of the first that is not sent. */
static ucs_status_t uct_varuna_amo_cpu_send(uct_varuna_ep_t *ep)
{
    uint64_t acked      = uct_varuna_amo_cpu_acked(ep);
    ucs_status_t status = UCS_OK;
    uct_varuna_amo_msg_t msg;
    uct_varuna_amo_t *amo;

    memset(&msg.req, 0, sizeof(msg.req));
    while (!ucs_list_is_empty(&ep->amo.ready) && (status == UCS_OK)) {
        amo = ucs_list_head(&ep->amo.ready, uct_varuna_amo_t, ready);
        if ((ep->amo.seq + 1) >= (acked + UCT_VARUNA_AMO_WINDOW)) {
            break; /* The peer cannot keep more results */
        }

        status = uct_varuna_amo_cpu_check(amo);
        if (status != UCS_OK) {
            break;
        }

        if (ep->amo.num_sent == 0) {
            uct_varuna_amo_retry_start(ep);
            uct_varuna_amo_retry_next(ep);
        }

        ucs_list_del(&amo->ready);
        amo->is_ready = 0;
        amo->number   = ++ep->amo.seq;
        ++ep->amo.num_sent;
        ++ep->amo.stats.proxied;
        uct_varuna_amo_cpu_add_op(&msg, amo);
    }

    uct_varuna_amo_cpu_post(ep, &msg, acked);
    return status;
}

/* Requests in between that are answered are not sent again: their numbers are missing. */
static void uct_varuna_amo_cpu_repeat(uct_varuna_ep_t *ep)
{
    uint64_t acked  = uct_varuna_amo_cpu_acked(ep);
    uint64_t number = 0;
    uct_varuna_amo_msg_t msg;
    uct_varuna_amo_t *amo;

    if (!uct_varuna_amo_retry_is_due(ep)) {
        return;
    }

    uct_varuna_amo_retry_next(ep);
    memset(&msg.req, 0, sizeof(msg.req));
    ucs_list_for_each(amo, &ep->amo.all, all) {
        if (amo->number == 0) {
            break;
        }

        if (amo->number != (number + 1)) {
            uct_varuna_amo_cpu_post(ep, &msg, acked);
        }

        uct_varuna_amo_cpu_add_op(&msg, amo);
        number = amo->number;
    }

    uct_varuna_amo_cpu_post(ep, &msg, acked);
}

static int uct_varuna_amo_cpu_progress(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_status_t status       = UCS_OK;
    uct_varuna_post_t why;

    if (!ucs_list_is_empty(&ep->amo.ready) && uct_varuna_amo_cpu_may_send(ep)) {
        why = uct_varuna_amo_lane_check(iface, ep);
        if (why == UCT_VARUNA_POST_OK) {
            status = uct_varuna_amo_cpu_send(ep);
        } else {
            uct_varuna_ep_raise_post(ep, why);
            status = UCS_ERR_NO_RESOURCE;
        }

        if (UCS_STATUS_IS_ERR(status) && (status != UCS_ERR_NO_RESOURCE) &&
            (status != UCS_ERR_BUSY)) {
            uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
        }
    }

    if (ep->amo.num_sent > 0) {
        uct_varuna_amo_cpu_repeat(ep);
        return 1;
    }

    return status == UCS_ERR_NO_RESOURCE;
}


/* --- Results --- */

static uct_varuna_amo_t *uct_varuna_amo_cpu_find(const uct_varuna_ep_t *ep,
                                                 uint64_t number)
{
    uct_varuna_amo_t *amo;

    ucs_list_for_each(amo, &ep->amo.all, all) {
        if ((amo->number == number) || (amo->number == 0)) {
            return (amo->number == 0) ? NULL : amo;
        }
    }

    return NULL;
}

static void
uct_varuna_amo_cpu_result(uct_varuna_ep_t *ep, uct_varuna_amo_t *amo,
                          const uct_varuna_ctl_atomic_result_t *result)
{
    ucs_status_t status = (ucs_status_t)result->status;

    if (status != UCS_OK) {
        uct_varuna_amo_refused(amo, (status < 0) ? status : UCS_ERR_IO_ERROR);
        return;
    }

    uct_varuna_amo_sm_executed(&amo->sm, result->value);
    uct_varuna_amo_advance(amo);
}

void uct_varuna_amo_handle_results(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_atomic_rep_t *rep)
{
    const uct_varuna_ctl_atomic_result_t *results =
            (const uct_varuna_ctl_atomic_result_t*)(rep + 1);
    uct_varuna_amo_t *amo;
    unsigned i;

    /* Atomics that users post in their callbacks are sent in one message */
    ep->amo.holding = 1;
    for (i = 0; (i < rep->count) && (ep->hot.state != UCT_VARUNA_EP_FAILED); ++i) {
        amo = uct_varuna_amo_cpu_find(ep, rep->first + i);
        if (amo == NULL) {
            continue; /* A repeated answer */
        }

        --ep->amo.num_sent;
        uct_varuna_amo_cpu_result(ep, amo, &results[i]);
    }

    ep->amo.holding = 0;
    if (ep->hot.state == UCT_VARUNA_EP_FAILED) {
        return;
    }

    uct_varuna_amo_retry_start(ep);
    uct_varuna_amo_retry_next(ep); /* The answer restarts the interval */
    if (uct_varuna_amo_cpu_progress(ep)) {
        uct_varuna_ep_add_work(ep);
    }
    uct_varuna_ep_finish_done(ep);
}

static void uct_varuna_amo_cpu_fail_all(uct_varuna_ep_t *ep,
                                        ucs_status_t status)
{
    ep->amo.num_sent = 0;
    uct_varuna_amo_fail_all(ep, status);
}


/* --- The table --- */

static ucs_status_t
uct_varuna_amo_cpu_start(uct_varuna_ep_t *ep,
                         const uct_varuna_amo_args_t *args)
{
    return uct_varuna_amo_start(ep, args, 0);
}

static ucs_status_t uct_varuna_amo_cpu_open(uct_varuna_ep_t *ep,
                                            const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_amo_learn_home(ep, rep->home_nic, rep->home_epoch);
    return UCS_OK;
}

static void uct_varuna_amo_cpu_query(uct_iface_attr_t *attr)
{
    /* The CPU executes them, whatever the NICs can do */
    attr->cap.atomic32.fop_flags |= UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    attr->cap.atomic64.fop_flags |= UCS_BIT(UCT_ATOMIC_OP_CSWAP);
    uct_varuna_amo_query_all_ops(attr);
    attr->cap.flags &= ~UCT_IFACE_FLAG_ATOMIC_DEVICE;
    attr->cap.flags |= UCT_IFACE_FLAG_ATOMIC_CPU;
}

const uct_varuna_amo_ops_t uct_varuna_amo_cpu_ops = {
    .start      = uct_varuna_amo_cpu_start,
    .open       = uct_varuna_amo_cpu_open,
    .close      = uct_varuna_amo_native_close,
    .learn_home = uct_varuna_amo_learn_home,
    .progress   = uct_varuna_amo_cpu_progress,
    .collect    = uct_varuna_amo_native_collect,
    .executed   = uct_varuna_amo_native_executed,
    .fail_all   = uct_varuna_amo_cpu_fail_all,
    .query      = uct_varuna_amo_cpu_query,
    .has_home   = 1
};
