/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Commands of receive memory pools, which are shared receive queues made by
 * DEVX: linked lists, or rings whose entries are taken in the order of their
 * indices. Each entry starts with 16 bytes which a list uses as its link.
 * Called by emu_devx_cmd.c.
 */

#include "emu_devx.h"

#define EMU_DEVX_RMP_DBREC_SIZE 4


int emu_devx_create_rmp(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd)
{
    const void *rmpc        = (const uint8_t*)cmd->in + EMU_RMP_CMD_RMPC;
    unsigned wq_type        = emu_ifc_get(rmpc, EMU_RMPC_WQ_TYPE);
    emu_srq_user_attr_t attr;
    emu_pd_t *pd;
    int ret;

    /* No striding queues, no signatures, no entries without the link */
    if ((emu_ifc_get(rmpc, EMU_RMPC_STATE) != EMU_RMPC_STATE_RDY) ||
        ((wq_type != EMU_RMPC_WQ_LIST) && (wq_type != EMU_RMPC_WQ_CYCLIC)) ||
        emu_ifc_get(rmpc, EMU_RMPC_WQ_SIGNATURE) ||
        emu_ifc_get(rmpc, EMU_RMPC_BASIC_CYCLIC)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    attr.cyclic  = (wq_type == EMU_RMPC_WQ_CYCLIC);
    attr.stride  = 1u << emu_ifc_get(rmpc, EMU_RMPC_LOG_STRIDE);
    attr.wqe_cnt = 1u << emu_ifc_get(rmpc, EMU_RMPC_LOG_SIZE);
    pd           = emu_devx_find_pd(cmd->context,
                                    emu_ifc_get(rmpc, EMU_RMPC_PD));
    attr.buf     = emu_umem_get(cmd->context,
                                emu_ifc_get(rmpc, EMU_RMPC_WQ_UMEM_ID),
                                emu_ifc_get(rmpc, EMU_RMPC_WQ_UMEM_OFFSET),
                                (uint64_t)attr.wqe_cnt * attr.stride,
                                &obj->umems[0]);
    attr.dbrec   = emu_umem_get(cmd->context,
                                emu_ifc_get(rmpc, EMU_RMPC_DBR_UMEM_ID),
                                emu_ifc_get(rmpc, EMU_RMPC_DBR_ADDR),
                                EMU_DEVX_RMP_DBREC_SIZE, &obj->umems[1]);
    if ((pd == NULL) || (attr.buf == NULL) || (attr.dbrec == NULL)) {
        return EMU_CMD_ST_BAD_RES;
    }

    if (((uintptr_t)attr.buf % 16) ||
        ((uintptr_t)attr.dbrec % EMU_DEVX_RMP_DBREC_SIZE)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    ret = emu_srq_create_user(pd, &attr, &obj->srq);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    obj->num = obj->srq->srqn;
    return EMU_CMD_ST_OK;
}

int emu_devx_query_rmp(const emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd)
{
    void *rmpc           = (uint8_t*)cmd->out + EMU_RMP_CMD_RMPC;
    const emu_srq_t *srq = obj->srq;

    if (cmd->outlen < EMU_RMP_CMD_LEN) {
        return EMU_CMD_ST_BAD_OUTP_LEN;
    }

    emu_ifc_set(rmpc, EMU_RMPC_STATE, EMU_RMPC_STATE_RDY);
    emu_ifc_set(rmpc, EMU_RMPC_WQ_TYPE, srq->cyclic ? EMU_RMPC_WQ_CYCLIC :
                                                      EMU_RMPC_WQ_LIST);
    emu_ifc_set(rmpc, EMU_RMPC_PD, srq->pd);
    emu_ifc_set(rmpc, EMU_RMPC_LOG_STRIDE, __builtin_ctz(srq->stride));
    emu_ifc_set(rmpc, EMU_RMPC_LOG_SIZE, __builtin_ctz(srq->wqe_cnt));
    emu_ifc_set(rmpc, EMU_RMPC_HW_COUNTER, srq->taken);
    emu_ifc_set(rmpc, EMU_RMPC_SW_COUNTER, be32toh(srq->dbrec[0]) & 0xffff);
    return EMU_CMD_ST_OK;
}
