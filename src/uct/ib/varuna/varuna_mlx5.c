/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The only file which knows the insides of rc_mlx5 and dc_mlx5.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5.h"

#include <uct/ib/dc/dc_mlx5.h>
#include <uct/ib/dc/dc_mlx5_ep.h>
#include <uct/ib/rc/accel/rc_mlx5.h>

int uct_varuna_mlx5_rc_is_drained(uct_ep_h tl_ep)
{
    const uct_rc_mlx5_ep_t *ep = ucs_derived_of(tl_ep, uct_rc_mlx5_ep_t);

    return ep->super.txqp.available == ep->tx.wq.bb_max;
}

int uct_varuna_mlx5_dc_is_drained(uct_ep_h tl_ep)
{
    const uct_dc_mlx5_ep_t *ep = ucs_derived_of(tl_ep, uct_dc_mlx5_ep_t);

    return ep->dci == UCT_DC_MLX5_EP_NO_DCI;
}

static ucs_status_t
uct_varuna_mlx5_ep_query(uct_ep_h tl_ep, int mask, struct ibv_qp_attr *attr)
{
    uct_rc_mlx5_ep_t *ep = ucs_derived_of(tl_ep, uct_rc_mlx5_ep_t);
    struct ibv_qp_init_attr init_attr;

    if (ep->tx.wq.super.type != UCT_IB_MLX5_OBJ_TYPE_VERBS) {
        return UCS_ERR_UNSUPPORTED; /* DEVX QP: no verbs handle to ask */
    }

    if (ibv_query_qp(ep->tx.wq.super.verbs.qp, attr, mask, &init_attr) != 0) {
        ucs_debug("ibv_query_qp(qpn=0x%x) failed: %m",
                  ep->tx.wq.super.qp_num);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_mlx5_ep_query_epsn(uct_ep_h ep, uint32_t *epsn_p)
{
    struct ibv_qp_attr attr;
    ucs_status_t status;

    status = uct_varuna_mlx5_ep_query(ep, IBV_QP_STATE | IBV_QP_RQ_PSN, &attr);
    if (status != UCS_OK) {
        return status;
    }

    if (attr.qp_state != IBV_QPS_ERR) {
        return UCS_ERR_BUSY; /* Still moving: proves nothing */
    }

    *epsn_p = attr.rq_psn;
    return UCS_OK;
}

ucs_status_t uct_varuna_mlx5_ep_query_sq(uct_ep_h ep, uint32_t *psn_p,
                                         uint32_t *mtu_p)
{
    struct ibv_qp_attr attr;
    ucs_status_t status;

    status = uct_varuna_mlx5_ep_query(ep, IBV_QP_SQ_PSN | IBV_QP_PATH_MTU,
                                      &attr);
    if (status != UCS_OK) {
        return status;
    }

    *psn_p = attr.sq_psn;
    *mtu_p = 128u << attr.path_mtu;
    return UCS_OK;
}

unsigned uct_varuna_mlx5_am_overhead(void)
{
    return sizeof(uct_rc_mlx5_hdr_t);
}
