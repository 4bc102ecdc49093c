/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What must be known of the insides of rc_mlx5 and dc_mlx5, except for posting
 * (varuna_mlx5.inl) and grants (varuna_mlx5_grant.c). No other file knows them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5.h"
#include "varuna_compat.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include "varuna_mlx5.inl"
#include "varuna_mlx5_ep.h"
#include <uct/ib/mlx5/dv/ib_mlx5_ifc.h>
#include <ucs/type/init_once.h>
#include <errno.h>
#include <dlfcn.h>
#include <ucs/debug/log.h>

int uct_varuna_mlx5_is_drained(uct_ep_h tl_ep, unsigned kind)
{
    const uct_varuna_mlx5_rc_ep_t *rc_ep =
            ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    const uct_dc_mlx5_ep_t *dc_ep = ucs_derived_of(tl_ep, uct_dc_mlx5_ep_t);

    return (kind == UCT_VARUNA_LANE_RC) ?
           (rc_ep->super.txqp.available == rc_ep->tx.wq.bb_max) :
           (dc_ep->dci == UCT_DC_MLX5_EP_NO_DCI);
}

int uct_varuna_mlx5_drain(uct_ep_h tl_ep, unsigned kind)
{
    if (!uct_varuna_mlx5_is_drained(tl_ep, kind) &&
        (kind == UCT_VARUNA_LANE_RC)) {
        /* Requests that completed silently before the QP entered ERR have no completion
         * of their own: a NOP after them has one */
        (void)uct_ep_flush(tl_ep, UCT_FLUSH_FLAG_CANCEL, NULL);
    }

    return uct_varuna_mlx5_is_drained(tl_ep, kind);
}

int uct_varuna_mlx5_get_mark(uct_ep_h tl_ep, unsigned kind, uint16_t *mark_p)
{
    const uct_ib_mlx5_txwq_t *wq;
    const uct_rc_txqp_t *txqp;

    if (uct_varuna_mlx5_is_drained(tl_ep, kind)) {
        return 0;
    }

    if (kind == UCT_VARUNA_LANE_RC) {
        wq   = &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq;
        txqp = &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->super.txqp;
    } else {
        wq   = &uct_varuna_mlx5_dci(ucs_derived_of(tl_ep,
                                                   uct_dc_mlx5_ep_t))->txwq;
        txqp = &uct_varuna_mlx5_dci(ucs_derived_of(tl_ep,
                                                   uct_dc_mlx5_ep_t))->txqp;
    }

    /* Posting takes from the one what it adds to the other */
    *mark_p = wq->sw_pi + txqp->available;
    return 1;
}

/* PSNs of an RC QP, as the device reports them. */
typedef struct uct_varuna_mlx5_psns {
    uint32_t                   rq_psn;  /* Next expected */
    uint32_t                   sq_psn;  /* Next to send */
    uint32_t                   mtu;     /* Bytes */
} uct_varuna_mlx5_psns_t;

static ucs_status_t uct_varuna_mlx5_query_verbs(const uct_ib_mlx5_qp_t *qp,
                                                uct_varuna_mlx5_psns_t *psns)
{
    struct ibv_qp_init_attr init_attr;
    struct ibv_qp_attr attr;
    int mask = IBV_QP_STATE | IBV_QP_RQ_PSN | IBV_QP_SQ_PSN | IBV_QP_PATH_MTU;

    if (ibv_query_qp(qp->verbs.qp, &attr, mask, &init_attr) != 0) {
        ucs_debug("ibv_query_qp(qpn=0x%x) failed: %m", qp->qp_num);
        return UCS_ERR_IO_ERROR;
    }

    psns->rq_psn = attr.rq_psn;
    psns->sq_psn = attr.sq_psn;
    psns->mtu    = 128u << attr.path_mtu;
    return UCS_OK;
}

/* A QP that UCX has created through DEVX has no verbs handle to query; the device's own
 * command returns the same (PRM, QUERY_QP). */
static ucs_status_t uct_varuna_mlx5_query_devx(const uct_ib_mlx5_qp_t *qp,
                                               uct_varuna_mlx5_psns_t *psns)
{
#if HAVE_DEVX
    char in[UCT_IB_MLX5DV_ST_SZ_BYTES(query_qp_in)]   = {};
    char out[UCT_IB_MLX5DV_ST_SZ_BYTES(query_qp_out)] = {};

    UCT_IB_MLX5DV_SET(query_qp_in, in, opcode, UCT_IB_MLX5_CMD_OP_QUERY_QP);
    UCT_IB_MLX5DV_SET(query_qp_in, in, qpn, qp->qp_num);
    if (mlx5dv_devx_obj_query(qp->devx.obj, in, sizeof(in), out,
                              sizeof(out)) != 0) {
        ucs_debug("QUERY_QP(qpn=0x%x) failed, syndrome 0x%x: %m", qp->qp_num,
                  UCT_IB_MLX5DV_GET(query_qp_out, out, syndrome));
        return UCS_ERR_IO_ERROR;
    }

    psns->rq_psn = UCT_IB_MLX5DV_GET(query_qp_out, out, qpc.next_rcv_psn);
    psns->sq_psn = UCT_IB_MLX5DV_GET(query_qp_out, out, qpc.next_send_psn);
    psns->mtu    = 128u << UCT_IB_MLX5DV_GET(query_qp_out, out, qpc.mtu);
    return UCS_OK;
#else
    return UCS_ERR_UNSUPPORTED;
#endif
}

static ucs_status_t uct_varuna_mlx5_ep_query(uct_ep_h tl_ep,
                                             uct_varuna_mlx5_psns_t *psns)
{
    const uct_ib_mlx5_qp_t *qp =
            &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq.super;

    switch (qp->type) {
    case UCT_IB_MLX5_OBJ_TYPE_VERBS:
        return uct_varuna_mlx5_query_verbs(qp, psns);
    case UCT_IB_MLX5_OBJ_TYPE_DEVX:
        return uct_varuna_mlx5_query_devx(qp, psns);
    default:
        return UCS_ERR_UNSUPPORTED;
    }
}

ucs_status_t uct_varuna_mlx5_ep_query_epsn(uct_ep_h ep, uint32_t *epsn_p)
{
    uct_varuna_mlx5_psns_t psns;
    ucs_status_t status;

    status = uct_varuna_mlx5_ep_query(ep, &psns);
    if (status == UCS_OK) {
        *epsn_p = psns.rq_psn;
    }

    return status;
}

ucs_status_t uct_varuna_mlx5_ep_query_sq(uct_ep_h ep, uint32_t *psn_p,
                                         uint32_t *mtu_p)
{
    uct_varuna_mlx5_psns_t psns;
    ucs_status_t status;

    status = uct_varuna_mlx5_ep_query(ep, &psns);
    if (status == UCS_OK) {
        *psn_p = psns.sq_psn;
        *mtu_p = psns.mtu;
    }

    return status;
}

unsigned uct_varuna_mlx5_am_overhead(void)
{
    return sizeof(uct_rc_mlx5_hdr_t);
}

int uct_varuna_mlx5_is_md_dead(uct_md_h md)
{
    const uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    struct ibv_port_attr attr;
    int ret;

    /* The device answers this, not its driver's memory. Other errors, such as a time-out, do
     * not prove that it is at rest */
    ret = ibv_query_port(dev->ibv_context, dev->first_port, &attr);
    return (ret == EIO) || (ret == ENODEV);
}

/* dc_mlx5's table, with the function below in it; and its own one */
static uct_rc_iface_ops_t uct_varuna_mlx5_dc_ops;
static uct_ib_iface_handle_failure_func_t uct_varuna_mlx5_dc_handle_failure;

/* Its function resets the queue pair, and ends the process if that fails */
static void uct_varuna_mlx5_dc_failure(uct_ib_iface_t *iface, void *arg,
                                       ucs_status_t status)
{
    const uct_ib_device_t *dev = uct_ib_iface_device(iface);

    if (uct_varuna_mlx5_is_md_dead(iface->super.md)) {
        ucs_diag("%s: a completion with an error (%s) comes from a NIC that is "
                 "dead by now: dropped", dev->ibv_context->device->name,
                 ucs_status_string(status));
        return;
    }

    uct_varuna_mlx5_dc_handle_failure(iface, arg, status);
}

ucs_status_t uct_varuna_mlx5_guard_dc(uct_iface_h tl_iface)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;
    uct_ib_iface_t *iface       = ucs_derived_of(tl_iface, uct_ib_iface_t);

    UCS_INIT_ONCE(&once) {
        uct_varuna_mlx5_dc_ops =
                *ucs_derived_of(iface->ops, uct_rc_iface_ops_t);
        uct_varuna_mlx5_dc_handle_failure =
                uct_varuna_mlx5_dc_ops.super.handle_failure;
        uct_varuna_mlx5_dc_ops.super.handle_failure =
                uct_varuna_mlx5_dc_failure;
    }

    ucs_assert(iface->ops->handle_failure == uct_varuna_mlx5_dc_handle_failure);
    iface->ops = &uct_varuna_mlx5_dc_ops.super;
    return UCS_OK;
}

ucs_status_t uct_varuna_mlx5_allocate_tx(uct_iface_h iface)
{
    void *desc = ucs_mpool_get(&ucs_derived_of(iface, uct_rc_iface_t)->tx.mp);

    if (desc == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    ucs_mpool_put(desc);
    return UCS_OK;
}

int uct_varuna_mlx5_has_rx(uct_iface_h tl_iface)
{
    const uct_rc_iface_t *iface = ucs_derived_of(tl_iface, uct_rc_iface_t);

    return iface->rx.srq.available < iface->super.config.rx_max_batch;
}

/* For messages alone, rc_mlx5 arms its queue for those that are "solicited", and does
 * not mark a zcopy message with a completion as such. Its peers have endpoints and poll;
 * ours may be asleep. Where send completions are waited for as well, flow control makes
 * it arm for all messages; nothing else in this call looks at whether there is any. */
ucs_status_t uct_varuna_mlx5_event_arm(uct_iface_h inner, unsigned events)
{
    uct_rc_iface_t *iface = ucs_derived_of(inner, uct_rc_iface_t);
    int fc_enabled        = iface->config.fc_enabled;
    ucs_status_t status;

    if (!(events & UCT_EVENT_RECV)) {
        return uct_iface_event_arm(inner, events);
    }

    iface->config.fc_enabled = 1;
    status = uct_iface_event_arm(inner, events | UCT_EVENT_SEND_COMP);
    iface->config.fc_enabled = fc_enabled;
    return status;
}

/* --- Two work requests with one doorbell, posted by UCX's functions --- */

/* The register's stand-in is in DB mode: one 8-byte store to wherever it points.
 * BlueFlame would copy the second WQE alone, which is not the next in line. */
static uct_ib_mlx5_mmio_reg_t *
uct_varuna_mlx5_bell_stand_in(uct_varuna_mlx5_bell_t *bell)
{
    UCS_STATIC_ASSERT(sizeof(bell->stand_in) >= sizeof(uct_ib_mlx5_mmio_reg_t));
    return (uct_ib_mlx5_mmio_reg_t*)bell->stand_in;
}

int uct_varuna_mlx5_bell_hold(uct_ep_h tl_ep, unsigned kind,
                              uct_varuna_mlx5_bell_t *bell)
{
    uct_ib_mlx5_mmio_reg_t *stand = uct_varuna_mlx5_bell_stand_in(bell);
    const uct_dc_mlx5_ep_t *dc_ep = ucs_derived_of(tl_ep, uct_dc_mlx5_ep_t);
    uct_ib_mlx5_txwq_t *wq;

    if (kind == UCT_VARUNA_LANE_RC) {
        wq = &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq;
    } else if (dc_ep->dci == UCT_DC_MLX5_EP_NO_DCI) {
        return 0;
    } else {
        wq = &uct_varuna_mlx5_dci(dc_ep)->txwq; /* It keeps that until all is complete */
    }

    stand->mode     = UCT_IB_MLX5_MMIO_MODE_DB;
    stand->addr.ptr = &bell->sink;
    bell->wq        = wq;
    bell->reg       = wq->reg;
    bell->ctrl      = wq->curr;
    wq->reg         = stand;
    return 1;
}

void uct_varuna_mlx5_bell_join(uct_varuna_mlx5_bell_t *bell)
{
    uct_ib_mlx5_mmio_reg_t *stand = uct_varuna_mlx5_bell_stand_in(bell);
    uct_ib_mlx5_mmio_reg_t *reg   = bell->reg;
    uct_ib_mlx5_txwq_t *wq        = bell->wq;

    if (uct_varuna_mlx5_reg_is_locked(reg)) {
        wq->reg = reg; /* It rings by one 8-byte store, under its lock */
    } else {
        stand->addr = reg->addr;
    }
}

void uct_varuna_mlx5_bell_restore(uct_varuna_mlx5_bell_t *bell, int ring)
{
    uct_ib_mlx5_txwq_t *wq      = bell->wq;
    uct_ib_mlx5_mmio_reg_t *reg = bell->reg;

    wq->reg = reg;
    if (ucs_unlikely(ring)) {
        uct_varuna_mlx5_reg_ring(reg, bell->ctrl);
    }

    /* The two halves of the register take turns */
    reg->addr.uint ^= UCT_IB_MLX5_BF_REG_SIZE;
}

/* --- Polling completion queues --- */

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_MLX5_POLL_FLAG_HAS_EP         UCT_IB_MLX5_POLL_FLAG_HAS_EP
#  define UCT_VARUNA_MLX5_POLL_FLAG_LINKED_LIST    UCT_IB_MLX5_POLL_FLAG_LINKED_LIST
#else
#  define UCT_VARUNA_MLX5_POLL_FLAG_HAS_EP         UCT_RC_MLX5_POLL_FLAG_HAS_EP
#  define UCT_VARUNA_MLX5_POLL_FLAG_LINKED_LIST    UCT_RC_MLX5_POLL_FLAG_LINKED_LIST
#endif

/* Whether the NIC compresses completions in such a way that their owner is elsewhere */
static UCS_F_ALWAYS_INLINE int uct_varuna_mlx5_cq_is_zip(const uct_ib_mlx5_cq_t *cq)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return cq->zip;
#else
    return 0;
#endif
}

/* The next completion of a queue, which may be the NIC's still */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_varuna_mlx5_cq_next(uct_ib_mlx5_cq_t *cq, int is_zip, int *is_ready_p)
{
    struct mlx5_cqe64 *cqe = uct_ib_mlx5_get_cqe(cq, cq->cq_ci);

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    *is_ready_p = !uct_ib_mlx5_cqe_is_hw_owned(cq, cqe, cq->cq_ci, is_zip ?
                                               UCT_IB_MLX5_POLL_FLAG_CQE_ZIP : 0);
#else
    *is_ready_p = !uct_ib_mlx5_cqe_is_hw_owned(cqe->op_own, cq->cq_ci, cq->cq_length);
#endif
    return cqe;
}

static UCS_F_ALWAYS_INLINE int uct_varuna_mlx5_cq_has_cqe(uct_ib_mlx5_cq_t *cq)
{
    int is_ready;

    uct_varuna_mlx5_cq_next(cq, uct_varuna_mlx5_cq_is_zip(cq), &is_ready);
    return is_ready;
}

int uct_varuna_mlx5_has_completions(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return uct_varuna_mlx5_cq_has_cqe(&iface->cq[UCT_IB_DIR_TX]);
}

int uct_varuna_mlx5_has_input(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return uct_varuna_mlx5_cq_has_cqe(&iface->cq[UCT_IB_DIR_RX]) ||
           uct_varuna_mlx5_cq_has_cqe(&iface->cq[UCT_IB_DIR_TX]);
}

/* A queue pair that enters ERR in the middle of a message holds a receive buffer, which
 * completes as flushed. UCX ignores that completion, so neither this buffer nor those that
 * follow it in the cycle would be posted again. */
static void uct_varuna_mlx5_release_flushed(uct_rc_mlx5_iface_common_t *iface,
                                            struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *ecqe = (const struct mlx5_err_cqe*)cqe;
    uint16_t wqe_ctr                = ntohs(ecqe->wqe_counter);

    if (((ecqe->op_own >> 4) != MLX5_CQE_RESP_ERR) ||
        (ecqe->syndrome != MLX5_CQE_SYNDROME_WR_FLUSH_ERR)) {
        return;
    }

    uct_rc_mlx5_iface_release_srq_seg(iface,
                                      uct_ib_mlx5_srq_get_wqe(&iface->rx.srq, wqe_ctr),
                                      cqe, wqe_ctr, UCS_OK, 0, NULL,
                                      (iface->config.srq_topo ==
                                       UCT_RC_MLX5_SRQ_TOPO_LIST) ?
                                      UCT_VARUNA_MLX5_POLL_FLAG_LINKED_LIST : 0);
}

/* UCX's function is asked first, and what it has taken is looked at then: it may find a
 * completion that was not there before. The NIC writes to that place again only after the
 * queue's whole length. UCX takes one; others may have been taken by users' callbacks that
 * call progress. */
unsigned uct_varuna_mlx5_progress(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface = ucs_derived_of(tl_iface,
                                                       uct_rc_mlx5_iface_common_t);
    uct_ib_mlx5_cq_t *cq              = &iface->cq[UCT_IB_DIR_RX];
    unsigned ci                       = cq->cq_ci;
    unsigned count                    = uct_iface_progress(tl_iface);

    if (UCT_RC_MLX5_TM_ENABLED(iface) || UCT_RC_MLX5_MP_ENABLED(iface)) {
        return count; /* These have buffers of other kinds */
    }

    if (ci != cq->cq_ci) {
        uct_varuna_mlx5_release_flushed(iface, uct_ib_mlx5_get_cqe(cq, ci));
        count = ucs_max(count, 1); /* UCX does not count errors, behind which there may be more */
    }

    return count;
}

/* Whether UCX's function would post receive buffers */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_wants_buffers(const uct_rc_mlx5_iface_common_t *iface)
{
    return iface->super.rx.srq.available >= iface->super.super.config.rx_max_batch;
}

unsigned uct_varuna_mlx5_refill(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return ucs_unlikely(uct_varuna_mlx5_wants_buffers(iface)) ?
           uct_varuna_mlx5_progress(tl_iface) : 0;
}

/* UCX polls, if there is anything */
static unsigned uct_varuna_mlx5_poll_any(uct_iface_h iface)
{
    return uct_varuna_mlx5_has_input(iface) ? uct_varuna_mlx5_progress(iface) : 0;
}

/* uct_rc_ep_process_pending() and uct_rc_mlx5_iface_srq_post_recv() of the library that has
 * rc_mlx5. UCX loads that without adding its symbols to the global scope. */
static ucs_arbiter_callback_t uct_varuna_mlx5_process_pending;
static unsigned (*uct_varuna_mlx5_post_recv)(uct_rc_mlx5_iface_common_t *iface);

/* A message. UCX's functions handle what is an error, or compressed */
static UCS_F_NOINLINE unsigned
uct_varuna_mlx5_received(uct_rc_mlx5_iface_common_t *iface, struct mlx5_cqe64 *cqe)
{
    unsigned length, flags;
    void *hdr;

    if (ucs_unlikely(uct_ib_mlx5_cqe_is_error_or_zipped(cqe->op_own))) {
        return uct_varuna_mlx5_progress(&iface->super.super.super.super);
    }

    ++iface->cq[UCT_IB_DIR_RX].cq_ci;
    ucs_memory_cpu_load_fence();
    length = ntohl(cqe->byte_cnt);
    hdr    = uct_rc_mlx5_iface_common_data(iface, cqe, length, &flags);
    uct_rc_mlx5_iface_common_am_handler(iface, cqe, hdr, flags, length,
                                        UCT_VARUNA_MLX5_POLL_FLAG_HAS_EP);
    uct_ib_mlx5_update_db_cq_ci(&iface->cq[UCT_IB_DIR_RX]);
    if (ucs_unlikely(uct_varuna_mlx5_wants_buffers(iface))) {
        uct_varuna_mlx5_post_recv(iface);
    }

    return 1;
}

/* All that was posted on a queue pair up to this is complete */
static UCS_F_NOINLINE unsigned
uct_varuna_mlx5_sent(uct_rc_mlx5_iface_common_t *iface, struct mlx5_cqe64 *cqe)
{
    uct_rc_iface_t *rc = &iface->super;
    uct_varuna_mlx5_rc_ep_t *ep;
    uct_rc_txqp_t *txqp;
    unsigned qp_num;
    uint16_t hw_ci, num_bb;

    if (ucs_unlikely(uct_ib_mlx5_cqe_is_error_or_zipped(cqe->op_own))) {
        return uct_varuna_mlx5_progress(&rc->super.super.super);
    }

    ++iface->cq[UCT_IB_DIR_TX].cq_ci;
    ucs_memory_cpu_load_fence();
    hw_ci  = ntohs(cqe->wqe_counter);
    qp_num = ntohl(cqe->sop_drop_qpn) & UCS_MASK(UCT_IB_QPN_ORDER);
    ep     = ucs_derived_of(uct_rc_iface_lookup_ep(rc, qp_num),
                            uct_varuna_mlx5_rc_ep_t);
    if (ucs_unlikely(ep == NULL)) {
        /* Of a queue pair that was destroyed before it was drained. UCX has returned its
         * credits then */
        uct_ib_mlx5_update_db_cq_ci(&iface->cq[UCT_IB_DIR_TX]);
        return 1;
    }

    txqp   = &ep->super.txqp;
    uct_rc_mlx5_txqp_process_tx_cqe(txqp, cqe, hw_ci);
    ucs_arbiter_group_schedule(&rc->tx.arbiter, &ep->super.arb_group);

    num_bb = uct_ib_mlx5_txwq_update_bb(&ep->tx.wq, hw_ci) - txqp->available;
    uct_rc_txqp_available_add(txqp, num_bb);
    uct_rc_iface_update_reads(rc);
    uct_rc_iface_add_cq_credits(rc, num_bb);
    ucs_arbiter_dispatch(&rc->tx.arbiter, 1, uct_varuna_mlx5_process_pending, NULL);
    uct_ib_mlx5_update_db_cq_ci(&iface->cq[UCT_IB_DIR_TX]);
    return 1;
}

static unsigned uct_varuna_mlx5_poll_rc(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface = ucs_derived_of(tl_iface,
                                                       uct_rc_mlx5_iface_common_t);
    struct mlx5_cqe64 *cqe;
    int is_ready;

    cqe = uct_varuna_mlx5_cq_next(&iface->cq[UCT_IB_DIR_RX], 0, &is_ready);
    if (is_ready) {
        return uct_varuna_mlx5_received(iface, cqe);
    }

    cqe = uct_varuna_mlx5_cq_next(&iface->cq[UCT_IB_DIR_TX], 0, &is_ready);
    if (is_ready) {
        return uct_varuna_mlx5_sent(iface, cqe);
    }

    return 0;
}

/* Find what we need of the library that has rc_mlx5 */
static int uct_varuna_mlx5_poll_init(uct_iface_h iface)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;

    UCS_INIT_ONCE(&once) {
        uct_varuna_mlx5_process_pending = (ucs_arbiter_callback_t)
                uct_varuna_ib_symbol(iface, "uct_rc_ep_process_pending");
        uct_varuna_mlx5_post_recv       =
                uct_varuna_ib_symbol(iface, "uct_rc_mlx5_iface_srq_post_recv");
    }

    return (uct_varuna_mlx5_process_pending != NULL) &&
           (uct_varuna_mlx5_post_recv != NULL);
}

/* Whether it is polled as by default: the receive queue is a cycle, and the NIC neither
 * matches tags nor moves the owner of completions */
static int uct_varuna_mlx5_is_plain(uct_iface_h tl_iface)
{
    const uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return !UCT_RC_MLX5_TM_ENABLED(iface) && !UCT_RC_MLX5_MP_ENABLED(iface) &&
           (iface->config.srq_topo == UCT_RC_MLX5_SRQ_TOPO_CYCLIC) &&
           !uct_varuna_mlx5_cq_is_zip(&iface->cq[UCT_IB_DIR_RX]) &&
           !uct_varuna_mlx5_cq_is_zip(&iface->cq[UCT_IB_DIR_TX]) &&
           !iface->super.config.tx_poll_always;
}

uct_varuna_tl_poll_func_t uct_varuna_mlx5_poll_func(uct_iface_h iface, unsigned kind)
{
    return ((kind == UCT_VARUNA_LANE_RC) && uct_varuna_mlx5_is_plain(iface) &&
            uct_varuna_mlx5_poll_init(iface)) ?
           uct_varuna_mlx5_poll_rc : uct_varuna_mlx5_poll_any;
}

/* --- Functions by name --- */

/* Finds functions in the library of an inner interface. */

void *uct_varuna_ib_symbol(uct_iface_h iface, const char *name)
{
    void *symbol = NULL;
    Dl_info info;
    void *lib;

    if ((dladdr((void*)iface->ops.ep_am_short, &info) != 0) &&
        ((lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) != NULL)) {
        symbol = dlsym(lib, name);
        dlclose(lib); /* It stays open: the interface is of it */
    }

    return symbol;
}

/* --- Stopping a queue pair --- */

void uct_varuna_mlx5_ep_last_wqe(uct_ep_h tl_ep, uct_varuna_last_wqe_t *event)
{
    uct_varuna_mlx5_rc_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_ep->iface, uct_rc_mlx5_iface_common_t);

    event->dev        = uct_ib_iface_device(&iface->super.super);
    event->qp_num     = ep->tx.wq.super.qp_num;
    event->channel_fd = -1;
#if HAVE_DEVX
    if (iface->event_channel != NULL) {
        event->channel_fd = iface->event_channel->fd;
    }
#endif
}

/* What has not been posted since the last RESET is not to be sent after the next INIT. */
static void uct_varuna_mlx5_clear_doorbell(uct_ib_mlx5_txwq_t *wq)
{
    *wq->dbrec = 0;
    ucs_memory_cpu_store_fence();
}

#if HAVE_DEVX
static int uct_varuna_mlx5_modify_devx(const uct_ib_mlx5_qp_t *qp, unsigned opcode,
                                       uint8_t port)
{
    char in[UCT_IB_MLX5DV_ST_SZ_BYTES(rst2init_qp_in)] = {};
    char out[UCT_IB_MLX5DV_ST_SZ_BYTES(modify_qp_out)] = {};
    size_t length                                      = sizeof(in);
    void *qpc;

    UCT_IB_MLX5DV_SET(modify_qp_in, in, opcode, opcode);
    UCT_IB_MLX5DV_SET(modify_qp_in, in, qpn, qp->qp_num);
    if (opcode == UCT_IB_MLX5_CMD_OP_RST2INIT_QP) {
        qpc = UCT_IB_MLX5DV_ADDR_OF(rst2init_qp_in, in, qpc);
        UCT_IB_MLX5DV_SET(qpc, qpc, pm_state, UCT_IB_MLX5_QPC_PM_STATE_MIGRATED);
        UCT_IB_MLX5DV_SET(qpc, qpc, primary_address_path.vhca_port_num, port);
    } else {
        length = UCT_IB_MLX5DV_ST_SZ_BYTES(modify_qp_in);
    }

    return mlx5dv_devx_obj_modify(qp->devx.obj, in, length, out, sizeof(out));
}
#endif

static int uct_varuna_mlx5_modify_verbs(const uct_ib_mlx5_qp_t *qp,
                                        enum ibv_qp_state state, uint8_t port)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask                = IBV_QP_STATE;

    if (state == IBV_QPS_INIT) {
        attr.port_num = port;
        mask         |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    }

    return ibv_modify_qp(qp->verbs.qp, &attr, mask);
}

/* Without the warning of UCX's function: a NIC which refuses is no surprise here. */
static ucs_status_t uct_varuna_mlx5_modify(uct_ep_h tl_ep, enum ibv_qp_state state)
{
    const uct_ib_mlx5_qp_t *qp =
            &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq.super;
    uint8_t port = ucs_derived_of(tl_ep->iface, uct_ib_iface_t)->config.port_num;
    int ret;

    switch (qp->type) {
    case UCT_IB_MLX5_OBJ_TYPE_VERBS:
        ret = uct_varuna_mlx5_modify_verbs(qp, state, port);
        break;
#if HAVE_DEVX
    case UCT_IB_MLX5_OBJ_TYPE_DEVX:
        ret = uct_varuna_mlx5_modify_devx(qp, (state == IBV_QPS_RESET) ?
                                          UCT_IB_MLX5_CMD_OP_2RST_QP :
                                          (state == IBV_QPS_INIT) ?
                                          UCT_IB_MLX5_CMD_OP_RST2INIT_QP :
                                          UCT_IB_MLX5_CMD_OP_2ERR_QP, port);
        break;
#endif
    default:
        return UCS_ERR_UNSUPPORTED;
    }

    if (ret != 0) {
        ucs_debug("failed to move qp 0x%x to state %d: %m", qp->qp_num, state);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_mlx5_ep_reset(uct_ep_h tl_ep)
{
    uct_varuna_mlx5_rc_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    ucs_status_t status;

    /* Nothing may be posted in RESET when messages of before are polled */
    status = uct_varuna_mlx5_grants_stop(tl_ep);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_mlx5_modify(tl_ep, IBV_QPS_RESET);
    if (status != UCS_OK) {
        uct_varuna_mlx5_grants_forget(tl_ep);
        return status;
    }

    uct_varuna_mlx5_clear_doorbell(&ep->tx.wq);
    return UCS_OK;
}

/* Work requests among so many basic blocks. Those of flow control have one block each,
 * if UCX does not count them. */
static uint16_t uct_varuna_mlx5_num_posted(uct_iface_h iface,
                                           const uct_ib_mlx5_txwq_t *wq,
                                           uint16_t outstanding)
{
    uint16_t (*num_posted)(const uct_ib_mlx5_txwq_t*, uint16_t);

    num_posted = uct_varuna_ib_symbol(iface, "uct_ib_mlx5_txwq_num_posted_wqes");
    return (num_posted == NULL) ? outstanding : num_posted(wq, outstanding);
}

/* RESET leaves the completion queue as it is (libmlx5 cleans no queue that its user
 * polls). What the queue pair has completed before is taken while UCX knows its number.
 * Messages must not keep UCX from that, however many come. */
static void uct_varuna_mlx5_poll_completed(uct_iface_h tl_iface)
{
    uct_rc_iface_t *iface  = ucs_derived_of(tl_iface, uct_rc_iface_t);
    unsigned max_polls     = iface->config.tx_cq_len;
    uint8_t tx_poll_always = iface->config.tx_poll_always;

    iface->config.tx_poll_always = 1;
    while (uct_varuna_mlx5_has_completions(tl_iface) && (max_polls-- > 0)) {
        uct_varuna_mlx5_progress(tl_iface);
    }
    iface->config.tx_poll_always = tx_poll_always;
}

void uct_varuna_mlx5_ep_end_reset(uct_ep_h tl_ep)
{
    uct_varuna_mlx5_rc_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    uct_rc_iface_t *iface       = ucs_derived_of(tl_ep->iface, uct_rc_iface_t);
    uct_ib_mlx5_txwq_t *wq      = &ep->tx.wq;
    uct_varuna_last_wqe_t event;
    uint16_t outstanding;

    uct_varuna_mlx5_poll_completed(tl_ep->iface);
    uct_varuna_mlx5_grants_forget(tl_ep);
    if (uct_varuna_mlx5_modify(tl_ep, IBV_QPS_INIT) == UCS_OK) {
        uct_varuna_mlx5_ep_last_wqe(tl_ep, &event);
        uct_varuna_last_wqe_forget(&event);
    }

    /* What is left has no completion: credits of flow control, which nobody waits for */
    outstanding = wq->bb_max - ep->super.txqp.available;
    if (outstanding > 0) {
        iface->tx.cq_available += uct_varuna_mlx5_num_posted(tl_ep->iface, wq,
                                                             outstanding);
        uct_rc_txqp_available_set(&ep->super.txqp, wq->bb_max);
#if UCS_ENABLE_ASSERT
        wq->hw_ci = wq->prev_sw_pi;
#endif
    }
}
