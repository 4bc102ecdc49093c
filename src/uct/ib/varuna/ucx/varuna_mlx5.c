/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What must be known of the insides of rc_mlx5 and dc_mlx5, except for posting
 * (varuna_mlx5_post.inl). No other file knows them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5.h"
#include "varuna_compat.h"
#include <uct/ib/varuna/core/varuna_def.h>

#include "varuna_mlx5_ep.h"
#include <uct/ib/mlx5/dv/ib_mlx5_ifc.h>
#include <ucs/type/init_once.h>
#include <errno.h>

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

void uct_varuna_mlx5_guard_dc(uct_iface_h tl_iface)
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
