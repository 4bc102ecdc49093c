/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Commands of DC targets. One is active from its creation on, until it is
 * drained: then it accepts nothing any more. Called by emu_devx_cmd.c.
 */

#include "emu_devx.h"


static unsigned emu_devx_dct_access(const void *dctc)
{
    return (emu_ifc_get(dctc, EMU_DCTC_RRE) ? IBV_ACCESS_REMOTE_READ : 0) |
           (emu_ifc_get(dctc, EMU_DCTC_RWE) ? IBV_ACCESS_REMOTE_WRITE : 0) |
           (emu_ifc_get(dctc, EMU_DCTC_RAE) ? IBV_ACCESS_REMOTE_ATOMIC : 0);
}

static int emu_devx_dct_activate(emu_qp_t *qp, const void *dctc)
{
    struct ibv_qp_attr attr;
    int ret;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state        = IBV_QPS_INIT;
    attr.port_num        = emu_ifc_get(dctc, EMU_DCTC_PORT);
    attr.pkey_index      = emu_ifc_get(dctc, EMU_DCTC_PKEY_INDEX);
    attr.qp_access_flags = emu_devx_dct_access(dctc);
    ret                  = emu_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
                                         IBV_QP_PKEY_INDEX |
                                         IBV_QP_ACCESS_FLAGS);
    if (ret != 0) {
        return ret;
    }

    attr.qp_state      = IBV_QPS_RTR;
    attr.path_mtu      = emu_ifc_get(dctc, EMU_DCTC_MTU);
    attr.min_rnr_timer = emu_ifc_get(dctc, EMU_DCTC_MIN_RNR_NAK);
    attr.ah_attr.port_num       = attr.port_num;
    attr.ah_attr.grh.sgid_index = emu_ifc_get(dctc, EMU_DCTC_MY_ADDR_INDEX);
    return emu_qp_modify(qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MTU |
                                    IBV_QP_MIN_RNR_TIMER | IBV_QP_AV);
}

int emu_devx_create_dct(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd)
{
    const void *dctc        = (const uint8_t*)cmd->in + EMU_DCT_CMD_DCTC;
    emu_qp_init_attr_t init = {};
    int ret;

    if (emu_ifc_get(dctc, EMU_DCTC_OFFLOAD_TYPE)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    init.type    = EMU_QPT_DCT;
    init.pd      = emu_devx_find_pd(cmd->context,
                                    emu_ifc_get(dctc, EMU_DCTC_PD));
    init.recv_cq = emu_devx_find_cq(cmd->context,
                                    emu_ifc_get(dctc, EMU_DCTC_CQN));
    init.srq     = emu_devx_find_srq(cmd->context,
                                     emu_ifc_get(dctc, EMU_DCTC_SRQN));
    if ((init.pd == NULL) || (init.recv_cq == NULL) || (init.srq == NULL)) {
        return EMU_CMD_ST_BAD_RES;
    }

    init.dc_key      = emu_ifc_get(dctc, EMU_DCTC_KEY);
    init.cqe_uidx    = emu_ifc_get(dctc, EMU_DCTC_USER_INDEX);
    init.scatter_cqe = (emu_ifc_get(dctc, EMU_DCTC_CS_RES) != 0);
    init.cookie      = obj->cookie;
    init.no_async    = 1;
    init.order       = emu_ifc_get(dctc, EMU_DCTC_ORDER_0) |
                       (emu_ifc_get(dctc, EMU_DCTC_ORDER_1) << 1);
    init.order_forced = emu_ifc_get(dctc, EMU_DCTC_ORDER_FORCE);
    ret              = emu_qp_create(emu_vctx(cmd->context)->ctx, &init,
                                     &obj->qp);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    ret = emu_devx_dct_activate(obj->qp, dctc);
    if (ret != 0) {
        emu_qp_destroy(obj->qp);
        return emu_devx_status(ret);
    }

    obj->num = obj->qp->qpn;
    return EMU_CMD_ST_OK;
}

int emu_devx_drain_dct(emu_qp_t *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

    return emu_devx_status(emu_qp_modify(qp, &attr, IBV_QP_STATE));
}

int emu_devx_query_dct(emu_qp_t *qp, const emu_devx_cmd_t *cmd)
{
    void *dctc = (uint8_t*)cmd->out + EMU_DCT_CMD_DCTC;
    struct ibv_qp_attr attr;
    unsigned access;
    int ret;

    if (cmd->outlen < EMU_DCT_CMD_LEN) {
        return EMU_CMD_ST_BAD_OUTP_LEN;
    }

    ret = emu_qp_read(qp, &attr);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    access = attr.qp_access_flags;
    emu_ifc_set(dctc, EMU_DCTC_STATE,
                (attr.qp_state == IBV_QPS_RTR) ? EMU_DCTC_STATE_ACTIVE :
                                                 EMU_DCTC_STATE_DRAINED);
    emu_ifc_set(dctc, EMU_DCTC_ORDER_0, emu_qp_order(qp) & 1);
    emu_ifc_set(dctc, EMU_DCTC_ORDER_1, emu_qp_order(qp) >> 1);
    emu_ifc_set(dctc, EMU_DCTC_ORDER_FORCE, qp->order_forced);
    emu_ifc_set(dctc, EMU_DCTC_USER_INDEX, qp->cqe_uidx);
    emu_ifc_set(dctc, EMU_DCTC_CQN, qp->recv_cq->cqn);
    emu_ifc_set(dctc, EMU_DCTC_SRQN, qp->srq->srqn);
    emu_ifc_set(dctc, EMU_DCTC_PD, qp->pd);
    emu_ifc_set(dctc, EMU_DCTC_KEY, qp->dc_key);
    emu_ifc_set(dctc, EMU_DCTC_MTU, attr.path_mtu);
    emu_ifc_set(dctc, EMU_DCTC_PORT, attr.port_num);
    emu_ifc_set(dctc, EMU_DCTC_PKEY_INDEX, attr.pkey_index);
    emu_ifc_set(dctc, EMU_DCTC_MIN_RNR_NAK, attr.min_rnr_timer);
    emu_ifc_set(dctc, EMU_DCTC_MY_ADDR_INDEX, attr.ah_attr.grh.sgid_index);
    emu_ifc_set(dctc, EMU_DCTC_RRE, !!(access & IBV_ACCESS_REMOTE_READ));
    emu_ifc_set(dctc, EMU_DCTC_RWE, !!(access & IBV_ACCESS_REMOTE_WRITE));
    emu_ifc_set(dctc, EMU_DCTC_RAE, !!(access & IBV_ACCESS_REMOTE_ATOMIC));
    return EMU_CMD_ST_OK;
}
