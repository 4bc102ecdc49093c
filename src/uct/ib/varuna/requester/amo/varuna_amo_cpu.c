/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode proxy: the peer's CPU executes atomics (varuna_cpu.c). They are numbered when
 * they are sent, all that wait in one message. The peer executes them in the order of
 * their numbers and keeps the results of a window of them. Requests that are not
 * answered are sent again, over another link.
 *
 *       all:    | sent, not answered     | not sent yet (ready) |
 *               ^ acknowledged before    ^ seq + 1
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
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/requester/varuna.inl>
#include <uct/ib/varuna/requester/varuna_requester.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
#include <uct/ib/varuna/requester/varuna_ep.h>

#include <ucs/debug/log.h>

/* While others are under way, new ones wait for an answer, or until there are this many */
#define UCT_VARUNA_AMO_BATCH         16

/* An atomic of this mode */
typedef struct uct_varuna_amo_cpu {
    uct_varuna_amo_t           super;
    uint64_t                   addr;
    uint64_t                   token;
    uint64_t                   compare;
    uint64_t                   value;
    uint64_t                   number;    /* 0 until it is sent */
    uint64_t                   order;     /* Posted requests before it that must be in
                                             memory */
    uint8_t                    op;        /* uct_atomic_op_t */
    uint8_t                    width;
} uct_varuna_amo_cpu_t;

/* This mode's part of an endpoint */
typedef struct uct_varuna_ep_cpu {
    uct_varuna_amo_home_t      home;
    uint8_t                    holding;   /* New ones wait for each other */
    uint8_t                    num_sent;  /* Not answered yet */
    uint32_t                   flush_beat; /* Of the requester, last seen */
    uint64_t                   seq;       /* Newest number given */
    uint64_t                   reading;   /* Posted requests before a read under way, 0:
                                             there is none, */
    uint64_t                   placed;    /* and those in memory for certain */
} uct_varuna_ep_cpu_t;

UCT_VARUNA_STATIC_ASSERT(sizeof(uct_varuna_ep_cpu_t) <=
                         sizeof(((uct_varuna_ep_amo_t*)NULL)->part));

typedef struct uct_varuna_amo_msg {
    uct_varuna_ctl_atomic_req_t req;
    uct_varuna_ctl_atomic_op_t  ops[UCT_VARUNA_AMO_WINDOW];
} uct_varuna_amo_msg_t;

UCT_VARUNA_STATIC_ASSERT((sizeof(uct_varuna_amo_msg_t) +
                          sizeof(uct_varuna_ctl_hdr_t) +
                          UCT_VARUNA_CTL_MAX_FROM) <= UCT_VARUNA_CTL_MAX_MSG);


static uct_varuna_ep_cpu_t *uct_varuna_ep_cpu(uct_varuna_ep_t *ep)
{
    return (uct_varuna_ep_cpu_t*)ep->amo.part;
}

static uct_varuna_amo_cpu_t *uct_varuna_amo_cpu(uct_varuna_amo_t *amo)
{
    return ucs_derived_of(amo, uct_varuna_amo_cpu_t);
}

/* --- Order after what was posted on the lane --- */

static void uct_varuna_amo_cpu_read_completion(uct_completion_t *comp)
{
    uct_varuna_amo_t *amo    = ucs_container_of(comp, uct_varuna_amo_t, comp);
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(amo->ep);

    if (comp->status == UCS_OK) {
        cpu->placed = cpu->reading;
    }

    cpu->reading = 0;
    uct_varuna_ep_add_work(amo->ep);
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
        uct_varuna_ep_cpu(ep)->reading = ep->stats.posted;
    }

    return status;
}

/* @return UCS_OK if it may be sent, UCS_ERR_BUSY if an event will say when to check
 * again, UCS_ERR_NO_RESOURCE to check again; otherwise the lane failed. */
static ucs_status_t uct_varuna_amo_cpu_check(uct_varuna_amo_cpu_t *amo)
{
    uct_varuna_ep_t *ep      = amo->super.ep;
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(ep);
    ucs_status_t status;

    /* Requests after a fence only wait until all atomics before it are decided */
    if (amo->super.fence && (&amo->super.all != ep->amo.all.next)) {
        return UCS_ERR_BUSY;
    }

    if (amo->order > cpu->placed) {
        if (cpu->reading != 0) {
            return UCS_ERR_BUSY;
        }

        status = uct_varuna_amo_cpu_read(&amo->super);
        return (status == UCS_OK) ? UCS_ERR_BUSY : status;
    }

    if (amo->super.fence && (ep->hot.num_reqs > 0)) {
        uct_varuna_ep_signal(ep); /* The requests in the way may have no completion */
        return UCS_ERR_NO_RESOURCE;
    }

    uct_varuna_amo_pass_fence(&amo->super);
    return UCS_OK;
}


/* --- Sending --- */

/* All results before this number have arrived. */
static uint64_t uct_varuna_amo_cpu_acked(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(ep);
    const uct_varuna_amo_cpu_t *oldest;

    if (cpu->num_sent == 0) {
        return cpu->seq + 1;
    }

    oldest = ucs_list_head(&ep->amo.all, uct_varuna_amo_cpu_t, super.all);
    ucs_assert(oldest->number != 0);
    return oldest->number;
}

static void uct_varuna_amo_cpu_add_op(uct_varuna_amo_msg_t *msg,
                                      const uct_varuna_amo_cpu_t *amo)
{
    uct_varuna_ctl_atomic_op_t *op = &msg->ops[msg->req.count];

    if (msg->req.count == 0) {
        msg->req.first = amo->number;
    }

    ucs_assert(amo->number == (msg->req.first + msg->req.count));
    memset(op, 0, sizeof(*op));
    op->addr    = amo->addr;
    op->token   = amo->token;
    op->compare = amo->compare;
    op->value   = amo->value;
    op->op      = amo->op;
    op->width   = amo->width;
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

static int uct_varuna_amo_cpu_may_send(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(ep);
    unsigned num_ready       = ep->hot.num_amos - cpu->num_sent;

    return !cpu->holding && ((cpu->num_sent == 0) || (num_ready >= UCT_VARUNA_AMO_BATCH));
}

/* @return As uct_varuna_amo_cpu_check(), of the first that is not sent. */
static ucs_status_t uct_varuna_amo_cpu_send(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(ep);
    uint64_t acked           = uct_varuna_amo_cpu_acked(ep);
    ucs_status_t status      = UCS_OK;
    uct_varuna_amo_msg_t msg;
    uct_varuna_amo_cpu_t *amo;

    memset(&msg.req, 0, sizeof(msg.req));
    while (!ucs_list_is_empty(&ep->amo.ready) && (status == UCS_OK)) {
        amo = ucs_list_head(&ep->amo.ready, uct_varuna_amo_cpu_t, super.ready);
        if ((cpu->seq + 1) >= (acked + UCT_VARUNA_AMO_WINDOW)) {
            break; /* The peer cannot keep more results */
        }

        status = uct_varuna_amo_cpu_check(amo);
        if (status != UCS_OK) {
            break;
        }

        if (cpu->num_sent == 0) {
            uct_varuna_amo_retry_start(ep);
            uct_varuna_amo_retry_next(ep);
        }

        ucs_list_del(&amo->super.ready);
        amo->super.is_ready = 0;
        amo->number         = ++cpu->seq;
        ++cpu->num_sent;
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
    uct_varuna_amo_cpu_t *amo;

    if (!uct_varuna_amo_retry_is_due(ep)) {
        return;
    }

    uct_varuna_amo_retry_next(ep);
    memset(&msg.req, 0, sizeof(msg.req));
    ucs_list_for_each(amo, &ep->amo.all, super.all) {
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

    if (uct_varuna_ep_cpu(ep)->num_sent > 0) {
        uct_varuna_amo_cpu_repeat(ep);
        return 1;
    }

    return status == UCS_ERR_NO_RESOURCE;
}

/* Flushes wait for resources, too. Users are called, but not where one of them posts */
static int uct_varuna_amo_cpu_step(uct_varuna_ep_t *ep)
{
    int is_waiting = uct_varuna_amo_cpu_progress(ep);

    if (ucs_unlikely(!ucs_queue_is_empty(&ep->amo.flushes))) {
        is_waiting |= uct_varuna_amo_retry_flushes(ep);
    }

    return is_waiting;
}


/* --- Results --- */

static uct_varuna_amo_cpu_t *uct_varuna_amo_cpu_find(uct_varuna_ep_t *ep, uint64_t number)
{
    uct_varuna_amo_cpu_t *amo;

    ucs_list_for_each(amo, &ep->amo.all, super.all) {
        if ((amo->number == number) || (amo->number == 0)) {
            return (amo->number == 0) ? NULL : amo;
        }
    }

    return NULL;
}

/* The peer has refused to execute it, and nothing else fails: the user gets @a status. If
 * nobody waits for it, the endpoint fails. */
static void uct_varuna_amo_cpu_refused(uct_varuna_amo_cpu_t *amo, ucs_status_t status)
{
    uct_varuna_ep_t *ep = amo->super.ep;

    ucs_diag("ep %p: the peer has not executed an atomic at 0x%lx: %s", ep, amo->addr,
             ucs_status_string(status));
    if (amo->super.user_comp == NULL) {
        uct_varuna_ep_raise_fatal(ep, status);
        return; /* It is finished with all others */
    }

    uct_varuna_amo_tell(&amo->super, status, NULL, 0);
    uct_varuna_amo_end(&amo->super, UCS_OK, NULL, 0);
}

static void
uct_varuna_amo_cpu_result(uct_varuna_amo_cpu_t *amo,
                          const uct_varuna_ctl_atomic_result_t *result)
{
    ucs_status_t status = (ucs_status_t)result->status;
    uint64_t value      = result->value;

    if (status != UCS_OK) {
        uct_varuna_amo_cpu_refused(amo, (status < 0) ? status : UCS_ERR_IO_ERROR);
        return;
    }

    uct_varuna_amo_end(&amo->super, UCS_OK, &value, amo->width);
}

/* Results of atomics that the peer's CPU has executed */
static void uct_varuna_amo_cpu_handle_results(uct_varuna_ep_t *ep,
                                              const uct_varuna_ctl_atomic_rep_t *rep)
{
    const uct_varuna_ctl_atomic_result_t *results =
            (const uct_varuna_ctl_atomic_result_t*)(rep + 1);
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(ep);
    uct_varuna_amo_cpu_t *amo;
    unsigned i;

    /* Atomics that users post in their callbacks are sent in one message */
    cpu->holding = 1;
    for (i = 0; (i < rep->count) && (ep->hot.state != UCT_VARUNA_EP_FAILED); ++i) {
        amo = uct_varuna_amo_cpu_find(ep, rep->first + i);
        if (amo == NULL) {
            continue; /* A repeated answer */
        }

        --cpu->num_sent;
        uct_varuna_amo_cpu_result(amo, &results[i]);
    }

    cpu->holding = 0;
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

static void uct_varuna_amo_cpu_answer(void *arg, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr, const void *body)
{
    uct_varuna_ep_t *ep = uct_varuna_answer_opened_ep(arg, hdr);

    if (ep != NULL) {
        uct_varuna_amo_cpu_handle_results(ep, body);
    }
}

static void uct_varuna_amo_cpu_fail_all(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_ep_cpu(ep)->num_sent = 0;
    while (!ucs_list_is_empty(&ep->amo.all)) {
        uct_varuna_amo_end(ucs_list_head(&ep->amo.all, uct_varuna_amo_t, all), status,
                           NULL, 0);
    }
    uct_varuna_amo_finish_flushes(ep, status); /* Those that no atomic precedes */
}


/* --- The table --- */

/* What must be in memory before it */
static void uct_varuna_amo_cpu_set_order(uct_varuna_ep_t *ep, uct_varuna_amo_cpu_t *amo)
{
    uint32_t flush_beat      = uct_varuna_ep_requester(ep)->beats.flush;
    uct_varuna_ep_cpu_t *cpu = uct_varuna_ep_cpu(ep);

    if ((cpu->flush_beat != flush_beat) || amo->super.fence) {
        cpu->flush_beat = flush_beat;
        ep->amo.flushed = ep->stats.posted;
    }

    amo->order = ep->amo.flushed;
}

static ucs_status_t
uct_varuna_amo_cpu_start(uct_varuna_ep_t *ep, const uct_varuna_amo_args_t *args)
{
    uct_varuna_amo_t *base = uct_varuna_amo_take(uct_varuna_ep_iface(ep), ep, args);
    uint64_t mask          = (args->width == sizeof(uint64_t)) ? UINT64_MAX : UINT32_MAX;
    uct_varuna_amo_cpu_t *amo;

    if (base == NULL) {
        return uct_varuna_ep_unavailable(ep);
    }

    amo          = uct_varuna_amo_cpu(base);
    amo->addr    = args->remote_addr;
    amo->token   = ((const uct_varuna_rkey_t*)args->rkey)->token;
    amo->compare = args->compare & mask;
    amo->value   = args->value & mask;
    amo->number  = 0;
    amo->op      = args->op;
    amo->width   = args->width;
    uct_varuna_amo_cpu_set_order(ep, amo);
    ++ep->amo.stats.started;

    uct_varuna_amo_add_ready(base);
    if (uct_varuna_amo_cpu_progress(ep)) {
        uct_varuna_ep_add_work(ep);
    }

    return uct_varuna_req_infos[args->type].has_answer ? UCS_INPROGRESS : UCS_OK;
}

static void uct_varuna_amo_cpu_init(uct_varuna_ep_t *ep)
{
    uct_varuna_ep_cpu(ep)->home.nic = UCT_VARUNA_HOME_NONE;
}

static void
uct_varuna_amo_cpu_learn_home(uct_varuna_ep_t *ep, uint8_t nic, uint32_t epoch)
{
    uct_varuna_amo_home_learn(ep, &uct_varuna_ep_cpu(ep)->home, nic, epoch);
}

static int uct_varuna_amo_cpu_is_away(uct_varuna_ep_t *ep)
{
    return ep->hot.far_nic != uct_varuna_ep_cpu(ep)->home.nic;
}

static ucs_status_t uct_varuna_amo_cpu_open(uct_varuna_ep_t *ep,
                                            const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_amo_cpu_learn_home(ep, rep->home_nic, rep->home_epoch);
    return UCS_OK;
}

static void uct_varuna_amo_cpu_listen(uct_varuna_requester_t *requester)
{
    static const uct_varuna_bus_reg_t row = {
        UCT_VARUNA_CTL_ATOMIC_REP, UCT_VARUNA_BUS_MAIN, uct_varuna_amo_cpu_answer
    };

    uct_varuna_bus_register(&requester->super.ctl->bus, &row, 1, &requester->super);
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
    .init       = uct_varuna_amo_cpu_init,
    .listen     = uct_varuna_amo_cpu_listen,
    .open       = uct_varuna_amo_cpu_open,
    .close      = uct_varuna_amo_native_close,
    .learn_home = uct_varuna_amo_cpu_learn_home,
    .is_away    = uct_varuna_amo_cpu_is_away,
    .progress   = uct_varuna_amo_cpu_step,
    .collect    = uct_varuna_amo_native_collect,
    .executed   = uct_varuna_amo_native_executed,
    .fail_all   = uct_varuna_amo_cpu_fail_all,
    .query      = uct_varuna_amo_cpu_query,
    .size       = sizeof(uct_varuna_amo_cpu_t)
};
