/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What must be known of the insides of rc_verbs. No other file knows them. UCX posts all
 * requests itself.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_verbs.h"
#include <uct/ib/varuna/core/varuna_def.h>

#include <uct/ib/rc/verbs/rc_verbs.h>
#include "varuna_mlx5.h"
#include <uct/ib/rc/verbs/rc_verbs_impl.h>
#include <ucs/debug/log.h>
#include <infiniband/verbs.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/type/init_once.h>
#include <pthread.h>

static const uct_rc_verbs_iface_t *uct_varuna_verbs_iface(uct_iface_h iface)
{
    return ucs_derived_of(iface, uct_rc_verbs_iface_t);
}

static uct_rc_verbs_ep_t *uct_varuna_verbs_ep(uct_ep_h ep)
{
    return ucs_derived_of(ep, uct_rc_verbs_ep_t);
}

int uct_varuna_verbs_is_drained(uct_ep_h tl_ep, unsigned kind)
{
    return uct_varuna_verbs_ep(tl_ep)->super.txqp.available ==
           (int)uct_varuna_verbs_iface(tl_ep->iface)->config.tx_max_wr;
}

/* As uct_ep_flush() does it, which expects that the queue pair is not in ERR */
static void uct_varuna_verbs_post_empty(uct_ep_h tl_ep)
{
    uct_rc_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_rc_iface_t);
    uct_rc_verbs_ep_t *ep = uct_varuna_verbs_ep(tl_ep);
    struct ibv_send_wr wr = {
        .wr_id      = ep->txcnt.pi + 1,
        .opcode     = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE
    };
    struct ibv_send_wr *bad;

    if ((ibv_post_send(ep->qp, &wr, &bad) == 0)) {
        ++ep->txcnt.pi;
        uct_rc_txqp_posted(&ep->super.txqp, iface, 1, IBV_SEND_SIGNALED);
    }
}

int uct_varuna_verbs_drain(uct_ep_h tl_ep, unsigned kind)
{
    uct_rc_iface_t *iface = ucs_derived_of(tl_ep->iface, uct_rc_iface_t);
    uct_rc_verbs_ep_t *ep = uct_varuna_verbs_ep(tl_ep);

    if (uct_varuna_verbs_is_drained(tl_ep, kind)) {
        return 1;
    }

    /* Requests that completed silently before the QP entered ERR have no completion of
     * their own: what is posted after them has one. Its error is nobody's concern. */
    ep->super.flags |= UCT_RC_EP_FLAG_FLUSH_CANCEL;
    if ((uct_rc_txqp_unsignaled(&ep->super.txqp) != 0) &&
        (uct_rc_txqp_available(&ep->super.txqp) > 0) &&
        uct_rc_iface_have_tx_cqe_avail(iface)) {
        uct_varuna_verbs_post_empty(tl_ep);
    }

    return 0;
}

int uct_varuna_verbs_get_mark(uct_ep_h tl_ep, unsigned kind, uint16_t *mark_p)
{
    if (uct_varuna_verbs_is_drained(tl_ep, kind)) {
        return 0;
    }

    *mark_p = uct_varuna_verbs_ep(tl_ep)->txcnt.ci;
    return 1;
}

int uct_varuna_verbs_has_completions(uct_iface_h iface)
{
    return 0;
}

int uct_varuna_verbs_has_input(uct_iface_h iface)
{
    return 1;
}

unsigned uct_varuna_verbs_refill(uct_iface_h iface)
{
    return 0;
}

static ucs_status_t uct_varuna_verbs_query(uct_ep_h ep, struct ibv_qp_attr *attr)
{
    struct ibv_qp *qp = uct_varuna_verbs_ep(ep)->qp;
    struct ibv_qp_init_attr init_attr;

    if (ibv_query_qp(qp, attr, IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN |
                               IBV_QP_PATH_MTU, &init_attr) != 0) {
        ucs_debug("ibv_query_qp(qpn=0x%x) failed: %m", qp->qp_num);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_verbs_query_epsn(uct_ep_h ep, uint32_t *epsn_p)
{
    struct ibv_qp_attr attr;
    ucs_status_t status;

    status = uct_varuna_verbs_query(ep, &attr);
    if (status == UCS_OK) {
        *epsn_p = attr.rq_psn;
    }

    return status;
}

ucs_status_t uct_varuna_verbs_query_sq(uct_ep_h ep, uint32_t *psn_p, uint32_t *mtu_p)
{
    struct ibv_qp_attr attr;
    ucs_status_t status;

    status = uct_varuna_verbs_query(ep, &attr);
    if (status == UCS_OK) {
        *psn_p = attr.sq_psn;
        *mtu_p = 128u << attr.path_mtu;
    }

    return status;
}

unsigned uct_varuna_verbs_am_overhead(void)
{
    return sizeof(uct_rc_hdr_t);
}

/* If the newest requests are unsignaled, UCX posts an empty write after them, which takes a
 * packet as any other */
ucs_status_t uct_varuna_verbs_flush(uct_ep_h tl_ep, uct_completion_t *comp,
                                    unsigned *num_psns_p)
{
    const uct_rc_verbs_ep_t *ep = uct_varuna_verbs_ep(tl_ep);
    uint16_t pi                 = ep->txcnt.pi;
    ucs_status_t status         = uct_ep_flush(tl_ep, 0, comp);

    *num_psns_p = (uint16_t)(ep->txcnt.pi - pi);
    return status;
}

/* --- Fences --- */

/* Stopping queue pairs of rc_verbs.
 *
 * RESET is given on the thread of the NIC, while the main thread may compute. Libraries of
 * devices remove the completions of a queue pair that is reset. So what the receive queue
 * contains is copied before that (a completion queue has a lock of its own), and the main
 * thread handles the copies. A responder's queue pair sends nothing: flow control is off. */

/* Completions that are copied at once */
#define UCT_VARUNA_VERBS_COPY_BATCH  32

/* Some completions of received messages, in the order of their queue. */
typedef struct uct_varuna_verbs_copy {
    ucs_list_link_t            list;
    const uct_rc_iface_t       *iface;     /* Whose queue they were in */
    int                        count;
    struct ibv_wc              wcs[UCT_VARUNA_VERBS_COPY_BATCH];
} uct_varuna_verbs_copy_t;

static struct {
    pthread_mutex_t            lock;       /* Never held during a command to a NIC */
    ucs_list_link_t            copies;     /* uct_varuna_verbs_copy_t */
    unsigned                   num_copies; /* Looked at without the lock */
    uct_rc_iface_ops_t         ops;        /* rc_verbs' table, with functions of ours, */
    uct_rc_iface_ops_t         inner;      /* and as it was */
} uct_varuna_verbs_fences = {
    .lock   = PTHREAD_MUTEX_INITIALIZER,
    .copies = UCS_LIST_INITIALIZER(&uct_varuna_verbs_fences.copies,
                                   &uct_varuna_verbs_fences.copies)
};

static uct_rc_verbs_ep_t *uct_varuna_verbs_fence_ep(uct_ep_h ep)
{
    return ucs_derived_of(ep, uct_rc_verbs_ep_t);
}


/* --- Copies of completions --- */

static void uct_varuna_verbs_copy_free(uct_varuna_verbs_copy_t *copy)
{
    ucs_list_del(&copy->list);
    __atomic_store_n(&uct_varuna_verbs_fences.num_copies,
                     uct_varuna_verbs_fences.num_copies - 1, __ATOMIC_RELAXED);
    ucs_free(copy);
}

/* Take what the receive queue contains. Lock held. */
static ucs_status_t uct_varuna_verbs_copy_received(const uct_rc_iface_t *iface)
{
    uct_varuna_verbs_copy_t *copy;
    int count;

    do {
        copy = ucs_malloc(sizeof(*copy), "varuna_verbs_copy");
        if (copy == NULL) {
            ucs_diag("failed to allocate room for completions of received messages");
            return UCS_ERR_NO_MEMORY;
        }

        count       = ibv_poll_cq(iface->super.cq[UCT_IB_DIR_RX],
                                  UCT_VARUNA_VERBS_COPY_BATCH, copy->wcs);
        copy->iface = iface;
        copy->count = count;
        if (count <= 0) {
            ucs_free(copy);
            continue;
        }

        ucs_list_add_tail(&uct_varuna_verbs_fences.copies, &copy->list);
        __atomic_store_n(&uct_varuna_verbs_fences.num_copies,
                         uct_varuna_verbs_fences.num_copies + 1, __ATOMIC_RELAXED);
    } while (count > 0);

    return (count == 0) ? UCS_OK : UCS_ERR_IO_ERROR;
}

/* The oldest copy of an interface. Lock held. */
static uct_varuna_verbs_copy_t *
uct_varuna_verbs_copy_first(const uct_rc_iface_t *iface)
{
    uct_varuna_verbs_copy_t *copy;

    ucs_list_for_each(copy, &uct_varuna_verbs_fences.copies, list) {
        if (copy->iface == iface) {
            return copy;
        }
    }

    return NULL;
}

/* As UCX does it with what it has polled itself. It posts the buffers that have become
 * free, and looks after the queue, when it is called next. */
static unsigned uct_varuna_verbs_copy_handle(uct_rc_iface_t *iface,
                                             const uct_varuna_verbs_copy_t *copy)
{
    uct_ib_iface_recv_desc_t *desc;
    const struct ibv_wc *wc;

    for (wc = copy->wcs; wc < (copy->wcs + copy->count); ++wc) {
        desc = (uct_ib_iface_recv_desc_t*)(uintptr_t)wc->wr_id;
        if (wc->status == IBV_WC_SUCCESS) {
            uct_rc_verbs_iface_handle_am(iface,
                                         uct_ib_iface_recv_desc_hdr(&iface->super, desc),
                                         wc->wr_id, wc->qp_num, wc->byte_len,
                                         wc->imm_data, wc->slid);
        } else {
            ucs_debug("qp 0x%x: receive buffer completed with status %d", wc->qp_num,
                      wc->status);
            ucs_mpool_put(desc);
        }
    }

    iface->rx.srq.available += copy->count;
    return copy->count;
}

/* A user's function may call this again, or destroy endpoints: a copy is nobody's while its
 * messages are handled. */
static unsigned uct_varuna_verbs_copies_handle(uct_rc_iface_t *iface)
{
    unsigned count = 0;
    uct_varuna_verbs_copy_t *copy, taken;

    for (;;) {
        pthread_mutex_lock(&uct_varuna_verbs_fences.lock);
        copy = uct_varuna_verbs_copy_first(iface);
        if (copy != NULL) {
            taken = *copy;
            uct_varuna_verbs_copy_free(copy);
        }
        pthread_mutex_unlock(&uct_varuna_verbs_fences.lock);
        if (copy == NULL) {
            return count;
        }

        count += uct_varuna_verbs_copy_handle(iface, &taken);
    }
}

unsigned uct_varuna_verbs_progress(uct_iface_h iface)
{
    unsigned count = 0;

    if (ucs_unlikely(__atomic_load_n(&uct_varuna_verbs_fences.num_copies,
                                     __ATOMIC_RELAXED) > 0)) {
        count = uct_varuna_verbs_copies_handle(ucs_derived_of(iface, uct_rc_iface_t));
    }

    return count + uct_iface_progress(iface);
}

uct_varuna_tl_poll_func_t uct_varuna_verbs_poll_func(uct_iface_h iface, unsigned kind)
{
    return uct_varuna_verbs_progress;
}

/* In one piece: what is copied after the queue was armed raises an event, and what was
 * copied before that is found here */
ucs_status_t uct_varuna_verbs_event_arm(uct_iface_h iface, unsigned events)
{
    ucs_status_t status;

    pthread_mutex_lock(&uct_varuna_verbs_fences.lock);
    status = uct_varuna_mlx5_event_arm(iface, events);
    if ((status == UCS_OK) &&
        (uct_varuna_verbs_copy_first(ucs_derived_of(iface, uct_rc_iface_t)) != NULL)) {
        status = UCS_ERR_BUSY;
    }
    pthread_mutex_unlock(&uct_varuna_verbs_fences.lock);
    return status;
}


/* --- States --- */

static ucs_status_t uct_varuna_verbs_modify(uct_ep_h tl_ep, enum ibv_qp_state state)
{
    struct ibv_qp *qp       = uct_varuna_verbs_fence_ep(tl_ep)->qp;
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask                = IBV_QP_STATE;

    if (state == IBV_QPS_INIT) {
        attr.port_num = ucs_derived_of(tl_ep->iface, uct_ib_iface_t)->config.port_num;
        mask         |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    }

    if (ibv_modify_qp(qp, &attr, mask) != 0) {
        ucs_debug("failed to move qp 0x%x to state %d: %m", qp->qp_num, state);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_verbs_stop(uct_ep_h ep)
{
    /* The errors of what is unfinished are expected, so that UCX must not log them. A
     * responder's end, which another thread stops, has sent nothing */
    if (!uct_varuna_verbs_is_drained(ep, UCT_VARUNA_LANE_VERBS)) {
        uct_varuna_verbs_fence_ep(ep)->super.flags |= UCT_RC_EP_FLAG_FLUSH_CANCEL;
    }

    return uct_varuna_verbs_modify(ep, IBV_QPS_ERR);
}

void uct_varuna_verbs_last_wqe(uct_ep_h ep, uct_varuna_last_wqe_t *event)
{
    event->dev        = uct_ib_iface_device(ucs_derived_of(ep->iface, uct_ib_iface_t));
    event->qp_num     = uct_varuna_verbs_fence_ep(ep)->qp->qp_num;
    event->channel_fd = -1;
}

ucs_status_t uct_varuna_verbs_reset(uct_ep_h ep)
{
    ucs_status_t status;

    pthread_mutex_lock(&uct_varuna_verbs_fences.lock);
    status = uct_varuna_verbs_copy_received(ucs_derived_of(ep->iface, uct_rc_iface_t));
    pthread_mutex_unlock(&uct_varuna_verbs_fences.lock);
    return (status == UCS_OK) ? uct_varuna_verbs_modify(ep, IBV_QPS_RESET) : status;
}

void uct_varuna_verbs_end_reset(uct_ep_h ep)
{
    uct_varuna_last_wqe_t event;

    if (uct_varuna_verbs_modify(ep, IBV_QPS_INIT) == UCS_OK) {
        uct_varuna_verbs_last_wqe(ep, &event);
        uct_varuna_last_wqe_forget(&event);
    }
}


/* --- Functions of rc_verbs that are replaced --- */

static void uct_varuna_verbs_failure(uct_ib_iface_t *iface, void *arg,
                                     ucs_status_t status)
{
    const struct ibv_wc *wc = arg;

    uct_varuna_verbs_fences.inner.super.handle_failure(
            iface, arg, (wc->status == IBV_WC_LOC_QP_OP_ERR) ? UCS_ERR_UNREACHABLE :
                        status);
}

/* The interface is being destroyed, after its endpoints. */
static void uct_varuna_verbs_cleanup_rx(uct_rc_iface_t *iface)
{
    uct_varuna_verbs_copy_t *copy;

    pthread_mutex_lock(&uct_varuna_verbs_fences.lock);
    while ((copy = uct_varuna_verbs_copy_first(iface)) != NULL) {
        uct_varuna_verbs_copy_free(copy);
    }
    pthread_mutex_unlock(&uct_varuna_verbs_fences.lock);
    uct_varuna_verbs_fences.inner.cleanup_rx(iface);
}

ucs_status_t uct_varuna_verbs_guard(uct_iface_h tl_iface)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;
    uct_ib_iface_t *iface       = ucs_derived_of(tl_iface, uct_ib_iface_t);
    uct_rc_iface_ops_t *ops     = &uct_varuna_verbs_fences.ops;

    UCS_INIT_ONCE(&once) {
        uct_varuna_verbs_fences.inner = *ucs_derived_of(iface->ops, uct_rc_iface_ops_t);
        *ops                          = uct_varuna_verbs_fences.inner;
        ops->super.handle_failure     = uct_varuna_verbs_failure;
        ops->cleanup_rx               = uct_varuna_verbs_cleanup_rx;
    }

    ucs_assert(iface->ops->handle_failure ==
               uct_varuna_verbs_fences.inner.super.handle_failure);
    iface->ops = &ops->super;
    return UCS_OK;
}

void uct_varuna_verbs_fence_forked(void)
{
    pthread_mutex_init(&uct_varuna_verbs_fences.lock, NULL);
    ucs_list_head_init(&uct_varuna_verbs_fences.copies);
    uct_varuna_verbs_fences.num_copies = 0;
}
