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
#include <ucs/debug/log.h>
#include <infiniband/verbs.h>

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
