/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The UD queue pair of a bus: starting it, also after a failure, and its events. See
 * varuna_ud_qp.h.
 *
 * A queue pair that has failed is started again. In SQE, where only sends are refused, that
 * takes one command. The kernel's soft-RoCE enters ERR instead, from which only RESET
 * leads: what was sent, received or posted until then is lost, and its senders repeat it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ud_qp.h"

#include <ucs/debug/log.h>
#include <string.h>

static ucs_status_t uct_varuna_ud_to_rts(uct_varuna_ud_qp_t *qp)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state   = IBV_QPS_INIT;
    attr.pkey_index = qp->pkey_index;
    attr.port_num   = qp->port_num;
    attr.qkey       = qp->qkey;
    if (ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                     IBV_QP_QKEY) != 0) {
        goto err;
    }

    attr.qp_state = IBV_QPS_RTR;
    if (ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE) != 0) {
        goto err;
    }

    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn   = 0;
    if (ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN) != 0) {
        goto err;
    }

    return UCS_OK;

err:
    ucs_diag("failed to start the queue pair of a control interface: %m");
    return UCS_ERR_IO_ERROR;
}

ucs_status_t uct_varuna_ud_qp_start(uct_varuna_ud_qp_t *qp)
{
    ucs_status_t status = uct_varuna_ud_to_rts(qp);
    unsigned i;

    for (i = 0; (status == UCS_OK) && (i < qp->num_recvs); ++i) {
        uct_varuna_ud_qp_post_recv(qp, i);
    }

    return status;
}

/* From ERR. After RESET nothing completes any more, so what is in the completion queue then
 * is of the past, and so is every buffer's work request. */
static ucs_status_t uct_varuna_ud_restart(uct_varuna_ud_qp_t *qp)
{
    struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
    struct ibv_wc wcs[UCT_VARUNA_UD_MAX_POLL];
    ucs_status_t status;

    if (ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE) != 0) {
        ucs_debug("failed to reset qp 0x%x of a control interface: %m", qp->qp->qp_num);
        return UCS_ERR_IO_ERROR;
    }

    while (ibv_poll_cq(qp->cq, UCT_VARUNA_UD_MAX_POLL, wcs) > 0);
    qp->completed = qp->posted;
    qp->num_frags = 0;
    memset(qp->left, 0, sizeof(qp->left));

    status = uct_varuna_ud_qp_start(qp);
    if (status == UCS_OK) {
        ucs_debug("qp 0x%x of a control interface was started again", qp->qp->qp_num);
    }

    return status;
}

/* The completion may be seen before the queue pair's new state is, so one that seems to work
 * is looked at again. */
void uct_varuna_ud_qp_repair(uct_varuna_ud_qp_t *qp)
{
    struct ibv_qp_init_attr init_attr;
    struct ibv_qp_attr attr;

    if (ibv_query_qp(qp->qp, &attr, IBV_QP_STATE, &init_attr) != 0) {
        return; /* The NIC is gone */
    }

    if (attr.qp_state == IBV_QPS_SQE) {
        attr.qp_state     = IBV_QPS_RTS;
        attr.cur_qp_state = IBV_QPS_SQE;
        qp->has_failed    = (ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE |
                                                          IBV_QP_CUR_STATE) != 0);
    } else if (attr.qp_state != IBV_QPS_RTS) {
        qp->has_failed    = (uct_varuna_ud_restart(qp) != UCS_OK);
    }
}

ucs_status_t uct_varuna_ud_qp_arm(uct_varuna_ud_qp_t *qp, int again)
{
    unsigned count = 0;
    struct ibv_cq *cq;
    void *context;

    while (ibv_get_cq_event(qp->channel, &cq, &context) == 0) {
        ++count;
    }

    if (count > 0) {
        ibv_ack_cq_events(qp->cq, count);
        return UCS_ERR_BUSY;
    }

    if (again && (ibv_req_notify_cq(qp->cq, 0) != 0)) {
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}
