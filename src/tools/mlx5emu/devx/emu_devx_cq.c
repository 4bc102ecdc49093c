/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Commands of completion queues, and the event queues that those name. The
 * program polls and arms a queue as one that verbs made: by entries, doorbell
 * record and doorbell. Its events come by an event channel. Called by
 * emu_devx_cmd.c and by programs.
 */

#include "emu_devx.h"

#define EMU_DEVX_CQ_DBREC_SIZE 8


int mlx5dv_devx_query_eqn(struct ibv_context *context, uint32_t vector,
                          uint32_t *eqn)
{
    if ((context == NULL) || !emu_vctx_is_mine(context) || (eqn == NULL) ||
        (vector >= EMU_VERBS_COMP_VECTORS)) {
        return emu_verbs_error(EINVAL);
    }

    if (emu_vctx_refuses_dv(context, __func__)) {
        return EOPNOTSUPP;
    }

    if (emu_fabric->cfg.no_devx) {
        return emu_refuse(__func__, "DEVX is, by --no-devx,");
    }

    *eqn = EMU_DEVX_EQN + vector;
    return 0;
}

/* Neither collapsed queues nor compressed entries are announced */
static int emu_devx_cq_check(const void *cqc)
{
    unsigned cqe_sz = emu_ifc_get(cqc, EMU_CQC_CQE_SZ);
    unsigned eqn    = emu_ifc_get(cqc, EMU_CQC_EQN);

    if (emu_ifc_get(cqc, EMU_CQC_COLLAPSED) ||
        emu_ifc_get(cqc, EMU_CQC_COMPRESS) ||
        emu_ifc_get(cqc, EMU_CQC_PAGE_OFFSET) ||
        ((cqe_sz != EMU_CQC_CQE_SZ_64) && (cqe_sz != EMU_CQC_CQE_SZ_128))) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    return ((emu_ifc_get(cqc, EMU_CQC_UAR_PAGE) != EMU_DEVX_UAR_PAGE) ||
            (eqn < EMU_DEVX_EQN) ||
            (eqn >= EMU_DEVX_EQN + EMU_VERBS_COMP_VECTORS)) ?
           EMU_CMD_ST_BAD_RES : EMU_CMD_ST_OK;
}

int emu_devx_create_cq(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd)
{
    const void *cqc = (const uint8_t*)cmd->in + EMU_CQ_CMD_CQC;
    emu_cq_user_attr_t attr;
    int status, ret;

    status = emu_devx_cq_check(cqc);
    if (status != EMU_CMD_ST_OK) {
        return status;
    }

    attr.cqe_cnt        = 1u << emu_ifc_get(cqc, EMU_CQC_LOG_SIZE);
    attr.cqe_size       = (emu_ifc_get(cqc, EMU_CQC_CQE_SZ) ==
                           EMU_CQC_CQE_SZ_128) ? 128 : 64;
    attr.ignore_overrun = emu_ifc_get(cqc, EMU_CQC_IGNORE_OVERRUN);
    attr.buf            = emu_umem_get(cmd->context,
                                       emu_ifc_get(cmd->in, EMU_CQ_CMD_UMEM_ID),
                                       emu_ifc_get(cmd->in,
                                                   EMU_CQ_CMD_UMEM_OFFSET),
                                       (uint64_t)attr.cqe_cnt * attr.cqe_size,
                                       &obj->umems[0]);
    attr.dbrec          = emu_umem_get(cmd->context,
                                       emu_ifc_get(cqc, EMU_CQC_DBR_UMEM_ID),
                                       emu_ifc_get(cqc, EMU_CQC_DBR_ADDR),
                                       EMU_DEVX_CQ_DBREC_SIZE, &obj->umems[1]);
    if ((attr.buf == NULL) || (attr.dbrec == NULL)) {
        return EMU_CMD_ST_BAD_RES;
    }

    if (((uintptr_t)attr.buf % 64) ||
        ((uintptr_t)attr.dbrec % EMU_DEVX_CQ_DBREC_SIZE)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    ret = emu_cq_create_user(emu_vctx(cmd->context)->ctx, &attr, obj->cookie,
                             &obj->cq);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    obj->num = obj->cq->cqn;
    return EMU_CMD_ST_OK;
}

int emu_devx_query_cq(emu_cq_t *cq, const emu_devx_cmd_t *cmd)
{
    void *cqc = (uint8_t*)cmd->out + EMU_CQ_CMD_CQC;

    if (cmd->outlen < EMU_CQ_CMD_LEN) {
        return EMU_CMD_ST_BAD_OUTP_LEN;
    }

    emu_ifc_set(cqc, EMU_CQC_CQE_SZ, (cq->cqe_size == 128) ?
                EMU_CQC_CQE_SZ_128 : EMU_CQC_CQE_SZ_64);
    emu_ifc_set(cqc, EMU_CQC_LOG_SIZE, __builtin_ctz(cq->cqe_cnt));
    emu_ifc_set(cqc, EMU_CQC_UAR_PAGE, EMU_DEVX_UAR_PAGE);
    emu_ifc_set(cqc, EMU_CQC_EQN, EMU_DEVX_EQN);
    emu_ifc_set(cqc, EMU_CQC_CONSUMER, be32toh(cq->dbrec[0]) & 0xffffff);
    emu_lock(&cq->lock);
    emu_ifc_set(cqc, EMU_CQC_IGNORE_OVERRUN, cq->ignore_overrun);
    emu_ifc_set(cqc, EMU_CQC_STATUS, cq->failed ? EMU_CQC_STATUS_OVERFLOW : 0);
    emu_ifc_set(cqc, EMU_CQC_STATE, (cq->armed == 1) ? EMU_CQC_STATE_ARMED :
                                    (cq->armed == 2) ?
                                    EMU_CQC_STATE_SOLICITED :
                                    EMU_CQC_STATE_FIRED);
    emu_ifc_set(cqc, EMU_CQC_PRODUCER, cq->pi & 0xffffff);
    emu_unlock(&cq->lock);
    return EMU_CMD_ST_OK;
}
