/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * What the commands of all objects need.
 */

#include "emu_devx.h"


int emu_devx_status(int error)
{
    switch (error) {
    case 0:
        return EMU_CMD_ST_OK;
    case -EINVAL:
        return EMU_CMD_ST_BAD_PARAM;
    case -EBUSY:
        return EMU_CMD_ST_RES_BUSY;
    case -ENOMEM:
    case -ENOSPC:
        return EMU_CMD_ST_NO_RES;
    default:
        return EMU_CMD_ST_INT_ERR;
    }
}

emu_pd_t *emu_devx_find_pd(struct ibv_context *context, uint32_t pdn)
{
    emu_pd_t *pd;

    if (pdn >= EMU_MAX_PDS) {
        return NULL;
    }

    pd = &emu_fabric->pds[pdn];
    return ((pd->used == 1) && (pd->proc == emu_self->index) &&
            (pd->ctx == emu_vctx(context)->ctx->index)) ? pd : NULL;
}

emu_cq_t *emu_devx_find_cq(struct ibv_context *context, uint32_t cqn)
{
    emu_cq_t *cq = emu_cq_find(cqn);

    return ((cq != NULL) && (cq->proc == emu_self->index) &&
            (cq->ctx == emu_vctx(context)->ctx->index)) ? cq : NULL;
}

emu_srq_t *emu_devx_find_srq(struct ibv_context *context, uint32_t srqn)
{
    emu_srq_t *srq = emu_srq_find(srqn);

    return ((srq != NULL) && (srq->proc == emu_self->index) &&
            (srq->ctx == emu_vctx(context)->ctx->index)) ? srq : NULL;
}
