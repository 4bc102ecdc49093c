/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs, see check_nic.h.
 */
#include "check_nic.h"
#include "check_devx.h"
#include "check_prm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>


/* To state INIT */
static int check_qp_init(check_qp_t *qp)
{
    const check_nic_t *nic  = qp->nic;
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .pkey_index      = nic->pkey_index,
        .port_num        = nic->port,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ
    };

    return ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                        IBV_QP_ACCESS_FLAGS);
}

static int check_qp_create_verbs(check_qp_t *qp, int with_srq)
{
    struct ibv_qp_init_attr init = {
        .qp_type = IBV_QPT_RC,
        .srq     = qp->srq,
        .cap     = {.max_send_wr  = CHECK_SQ_LEN,
                    .max_recv_wr  = with_srq ? 0 : 16,
                    .max_send_sge = 1,
                    .max_recv_sge = 1}
    };

    qp->cq = ibv_create_cq(qp->nic->context, 2 * CHECK_SQ_LEN, NULL, NULL, 0);
    if (qp->cq != NULL) {
        init.send_cq = qp->cq;
        init.recv_cq = qp->cq;
        qp->qp       = ibv_create_qp(qp->nic->pd, &init);
    }

    if (qp->qp == NULL) {
        return (errno != 0) ? errno : ENOMEM;
    }

    qp->qpn = qp->qp->qp_num;
    return check_qp_init(qp);
}

int check_qp_create(check_nic_t *nic, check_qp_kind_t kind, check_qp_t *qp)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    int ret;

    memset(qp, 0, sizeof(*qp));
    qp->nic = nic;
    qp->psn = (uint32_t)random() & 0x7fffff;
    errno   = 0;
    if (kind != CHECK_QP_RQ) {
        qp->srq = ibv_create_srq(nic->pd, &srq_attr);
        if (qp->srq == NULL) {
            return (errno != 0) ? errno : ENOMEM;
        }
    }

    ret = ((kind == CHECK_QP_UCX) && (nic->wire.flags & CHECK_PORT_DEVX)) ?
          check_devx_create(qp) : check_qp_create_verbs(qp, kind != CHECK_QP_RQ);
    if (ret != 0) {
        check_qp_destroy(qp);
    }
    return ret;
}

/* Where UCX sends a GRH: to another subnet, or always if either side says so */
static int check_qp_needs_grh(const check_nic_t *nic, const check_wire_port_t *peer)
{
    return (nic->wire.link_layer == IBV_LINK_LAYER_ETHERNET) ||
           ((nic->wire.flags | peer->flags) & CHECK_PORT_GLOBAL) ||
           memcmp(nic->wire.gid, peer->gid, sizeof(peer->gid) / 2);
}

int check_qp_connect(check_qp_t *qp, const check_wire_port_t *peer, uint32_t qpn,
                     uint32_t psn, int is_ordered)
{
    check_nic_t *nic        = qp->nic;
    struct ibv_qp_attr attr = {
        .qp_state           = IBV_QPS_RTR,
        .path_mtu           = (peer->mtu < nic->wire.mtu) ? peer->mtu :
                                                            nic->wire.mtu,
        .dest_qp_num        = qpn,
        .rq_psn             = psn,
        .max_dest_rd_atomic = 1,
        .min_rnr_timer      = 12,
        .ah_attr            = {.dlid = peer->lid, .port_num = nic->port}
    };
    int ret;

    if (check_qp_needs_grh(nic, peer)) {
        attr.ah_attr.is_global      = 1;
        attr.ah_attr.grh.hop_limit  = 255;
        attr.ah_attr.grh.sgid_index = nic->gid_index;
        memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
    }

    qp->mtu = 128u << attr.path_mtu;
    if (qp->devx != NULL) {
        return check_devx_connect(qp, &attr, is_ordered);
    }

    if (is_ordered) {
        return EOPNOTSUPP;
    }

    ret = ibv_modify_qp(qp->qp, &attr,
                            IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                            IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (ret != 0) {
        return ret;
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_state      = IBV_QPS_RTS;
    attr.timeout       = CHECK_QP_TIMEOUT;
    attr.retry_cnt     = CHECK_QP_RETRIES;
    attr.rnr_retry     = CHECK_QP_RNR_RETRIES;
    attr.sq_psn        = qp->psn;
    attr.max_rd_atomic = 1;
    return ibv_modify_qp(qp->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC);
}

int check_qp_connect_self(check_qp_t *qp)
{
    return check_qp_connect(qp, &qp->nic->wire, qp->qpn, qp->psn, 0);
}

int check_qp_modify(check_qp_t *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    return (qp->devx != NULL) ? check_devx_modify(qp, state) :
           ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

void check_qp_destroy(check_qp_t *qp)
{
    if (qp->devx != NULL) {
        check_devx_destroy(qp);
    }
    if (qp->qp != NULL) {
        ibv_destroy_qp(qp->qp);
    }
    if (qp->srq != NULL) {
        ibv_destroy_srq(qp->srq);
    }
    if (qp->cq != NULL) {
        ibv_destroy_cq(qp->cq);
    }
    memset(qp, 0, sizeof(*qp));
}

void check_qp_psn(const check_qp_t *qp, check_psn_t *psn)
{
    uint8_t qpc[CHECK_QPC_SIZE] = {0};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;

    memset(psn, 0, sizeof(*psn));
    memset(&attr, 0, sizeof(attr));
    psn->verbs_error = (qp->devx != NULL) ? EOPNOTSUPP :
                       ibv_query_qp(qp->qp, &attr, IBV_QP_RQ_PSN, &init);
    psn->verbs       = attr.rq_psn;
    psn->devx_error  = qp->nic->has_devx ? check_devx_query(qp, qpc) : EOPNOTSUPP;
    psn->devx        = check_prm_get(qpc, CHECK_QPC_RCV_PSN);
}

uint32_t check_qp_psn_value(const check_psn_t *psn)
{
    return (psn->verbs_error == EOPNOTSUPP) ? psn->devx : psn->verbs;
}

int check_qp_order(const check_qp_t *qp, check_order_bits_t *order_p)
{
    uint8_t qpc[CHECK_QPC_SIZE];
    int ret;

    if (!qp->nic->has_devx) {
        return EOPNOTSUPP;
    }

    ret = check_devx_query(qp, qpc);
    if (ret == 0) {
        order_p->placement = check_prm_get(qpc, CHECK_QPC_ORDER_0) |
                             (check_prm_get(qpc, CHECK_QPC_ORDER_1) << 1);
        order_p->is_forced = check_prm_get(qpc, CHECK_QPC_ORDER_FORCE);
    }

    return ret;
}

int check_qp_write(check_qp_t *qp, uint32_t local, uint32_t length,
                   uint32_t remote)
{
    struct ibv_sge sge     = {.addr   = (uintptr_t)qp->nic->mem + local,
                              .length = length,
                              .lkey   = qp->nic->mr->lkey};
    struct ibv_send_wr wr  = {.wr_id      = qp->posted,
                              .sg_list    = &sge,
                              .num_sge    = 1,
                              .opcode     = IBV_WR_RDMA_WRITE,
                              .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;
    int ret;

    wr.wr.rdma.remote_addr = qp->remote_addr + remote;
    wr.wr.rdma.rkey        = qp->rkey;
    while (qp->posted - qp->done - qp->failed >= CHECK_SQ_LEN) {
        if (check_qp_wait(qp, 0) == EIO) {
            return EIO;
        }
    }

    ret = (qp->devx != NULL) ? check_devx_write(qp, &wr, qp->is_strong) :
          ibv_post_send(qp->qp, &wr, &bad);
    if (ret == 0) {
        ++qp->posted;
    }
    return ret;
}

int check_qp_poll(check_qp_t *qp, int max, struct ibv_wc *wc)
{
    return (qp->devx != NULL) ? check_devx_poll(qp, max, wc) : ibv_poll_cq(qp->cq, max, wc);
}

int check_qp_wait(check_qp_t *qp, double seconds)
{
    double end = check_now() + seconds;
    struct ibv_wc wc[16];
    int i, n;

    do {
        n = check_qp_poll(qp, 16, wc);
        for (i = 0; i < n; ++i) {
            if (wc[i].status == IBV_WC_SUCCESS) {
                ++qp->done;
            } else if (qp->failed++ == 0) {
                qp->status = wc[i].status;
            }
        }

        if ((n < 0) || (qp->failed > 0)) {
            return EIO;
        }

        if (qp->done == qp->posted) {
            return 0;
        }
    } while (check_now() < end);

    return ETIMEDOUT;
}
