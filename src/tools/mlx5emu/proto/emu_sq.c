/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Entries of a send queue: what was posted, and what is known of it. Everything here
 * runs with req_lock held.
 */

#include "emu_proto.h"
#include "../core/emu_mr.h"

#include <infiniband/mlx5dv.h>

/* Checks keys, and replaces the addresses of WQEs by those of memory */
static int emu_sq_check_local(const emu_qp_t *qp, emu_op_t *op)
{
    unsigned access = ((op->kind == EMU_OP_READ) || (op->kind == EMU_OP_CAS) ||
                       (op->kind == EMU_OP_FAA)) ? IBV_ACCESS_LOCAL_WRITE : 0;
    emu_sge_t *sge;
    emu_mr_t *mr;
    unsigned i;

    for (i = 0; i < op->num_sge; i++) {
        sge = &op->sge[i];
        if ((sge->inl != NULL) || (sge->length == 0)) {
            continue;
        }

        mr = emu_mr_check(sge->lkey, sge->addr, sge->length, access, qp->pd,
                          qp->port);
        if (mr == NULL) {
            return MLX5_CQE_SYNDROME_LOCAL_PROT_ERR;
        }
        sge->addr += mr->addr - mr->iova;
    }

    return 0;
}

int emu_sq_load(emu_qp_t *qp, uint16_t index, emu_op_t *op_p)
{
    int has_av = (qp->type == EMU_QPT_UD) || (qp->type == EMU_QPT_DCI);
    int ret;

    ret = emu_wqe_parse(qp->sq_buf, qp->sq_bb_cnt, index, has_av, op_p);
    if (emu_unlikely(ret != 0)) {
        return ret;
    }

    return emu_sq_check_local(qp, op_p);
}

int emu_sq_reload(emu_qp_t *qp, uint16_t index, emu_op_t *op_p)
{
    const emu_sqe_t *sqe = emu_sq_entry(qp, index);
    int ret              = emu_sq_load(qp, index, op_p);

    if ((ret == 0) && ((op_p->opcode != sqe->opcode) || (op_p->length != sqe->length) ||
                       (op_p->num_bb != sqe->num_bb))) {
        return MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR;
    }
    return ret;
}

void emu_sq_rewind(emu_qp_t *qp, uint32_t psn)
{
    uint16_t index = qp->sq_ci;
    emu_sqe_t *sqe;

    while (index != qp->sq_new) {
        sqe = emu_sq_entry(qp, index);
        if (emu_psn_diff(psn, emu_psn_add(sqe->psn, sqe->num_psn)) < 0) {
            break;
        }
        index += sqe->num_bb;
    }

    qp->sq_send  = index;
    qp->req_send = psn;
}
