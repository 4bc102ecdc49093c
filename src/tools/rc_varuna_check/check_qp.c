/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs, see check_nic.h.
 */
#include "check_nic.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_QP_TIMEOUT    14 /* 4.096 us x 2^14 = 67 ms, up to four times that */
#define CHECK_QP_RETRIES    6 /* For busy hosts. Soft-RoCE takes 7 as unlimited */
#define CHECK_CMD_QUERY_QP  0x50b
#define CHECK_QUERY_QPC     24  /* Of QUERY_QP's output, in bytes */
#define CHECK_QPC_RCV_PSN   149 /* next_rcv_psn, three bytes */
#define CHECK_QPC_SIZE      232


int check_qp_create(check_nic_t *nic, int with_srq, check_qp_t *qp)
{
    struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_qp_init_attr init      = {
        .qp_type = IBV_QPT_RC,
        .cap     = {.max_send_wr  = CHECK_SQ_LEN,
                    .max_recv_wr  = with_srq ? 0 : 16,
                    .max_send_sge = 1,
                    .max_recv_sge = 1}
    };
    struct ibv_qp_attr attr = {
        .qp_state        = IBV_QPS_INIT,
        .port_num        = nic->port,
        .qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ
    };
    int ret = 0;

    memset(qp, 0, sizeof(*qp));
    qp->nic = nic;
    qp->cq  = ibv_create_cq(nic->context, 2 * CHECK_SQ_LEN, NULL, NULL, 0);
    if (qp->cq == NULL) {
        return (errno != 0) ? errno : ENOMEM;
    }

    if (with_srq) {
        qp->srq = ibv_create_srq(nic->pd, &srq_attr);
    }

    init.send_cq = qp->cq;
    init.recv_cq = qp->cq;
    init.srq     = qp->srq;
    if (!with_srq || (qp->srq != NULL)) {
        qp->qp = ibv_create_qp(nic->pd, &init);
    }

    if (qp->qp == NULL) {
        ret = (errno != 0) ? errno : ENOMEM;
    } else {
        qp->psn = (uint32_t)random() & 0x7fffff;
        ret     = ibv_modify_qp(qp->qp, &attr,
                                IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                IBV_QP_ACCESS_FLAGS);
    }

    if (ret != 0) {
        check_qp_destroy(qp);
    }
    return ret;
}

int check_qp_connect(check_qp_t *qp, const check_wire_port_t *peer, uint32_t qpn,
                     uint32_t psn)
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

    if (nic->wire.link_layer == IBV_LINK_LAYER_ETHERNET) {
        attr.ah_attr.is_global      = 1;
        attr.ah_attr.grh.hop_limit  = 64;
        attr.ah_attr.grh.sgid_index = nic->gid_index;
        memcpy(attr.ah_attr.grh.dgid.raw, peer->gid, sizeof(peer->gid));
    }

    qp->mtu = 128u << attr.path_mtu;
    ret     = ibv_modify_qp(qp->qp, &attr,
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
    attr.rnr_retry     = 7;
    attr.sq_psn        = qp->psn;
    attr.max_rd_atomic = 1;
    return ibv_modify_qp(qp->qp, &attr,
                         IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                         IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                         IBV_QP_MAX_QP_RD_ATOMIC);
}

int check_qp_modify(check_qp_t *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    return ibv_modify_qp(qp->qp, &attr, IBV_QP_STATE);
}

void check_qp_destroy(check_qp_t *qp)
{
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
    const uint8_t *bytes;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    uint8_t in[16] = {[0] = CHECK_CMD_QUERY_QP >> 8,
                      [1] = CHECK_CMD_QUERY_QP & 0xff};
    uint8_t out[CHECK_QUERY_QPC + CHECK_QPC_SIZE + 16] = {0};
    uint32_t qpn                                       = qp->qp->qp_num;

    memset(psn, 0, sizeof(*psn));
    memset(&attr, 0, sizeof(attr));
    psn->verbs_error = ibv_query_qp(qp->qp, &attr, IBV_QP_RQ_PSN, &init);
    psn->verbs       = attr.rq_psn;

    if (!qp->nic->has_devx) {
        psn->devx_error = EOPNOTSUPP;
        return;
    }

    in[9]  = qpn >> 16;
    in[10] = (qpn >> 8) & 0xff;
    in[11] = qpn & 0xff;
    errno  = 0;
    if (mlx5dv_devx_qp_query(qp->qp, in, sizeof(in), out, sizeof(out)) != 0) {
        psn->devx_error = (errno != 0) ? errno : EIO;
        return;
    }

    bytes     = out + CHECK_QUERY_QPC + CHECK_QPC_RCV_PSN;
    psn->devx = ((uint32_t)bytes[0] << 16) | (bytes[1] << 8) | bytes[2];
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

    ret = ibv_post_send(qp->qp, &wr, &bad);
    if (ret == 0) {
        ++qp->posted;
    }
    return ret;
}

int check_qp_wait(check_qp_t *qp, double seconds)
{
    double end = check_now() + seconds;
    struct ibv_wc wc[16];
    int i, n;

    do {
        n = ibv_poll_cq(qp->cq, 16, wc);
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
