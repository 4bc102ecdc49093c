/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_mlx5_dev.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_dev.h"

#include <uct/ib/base/ib_iface.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/time/time.h>
#include <string.h>

/* The NIC's own timer, 4.096 us x 2^12: there is no network */
#define UCT_VARUNA_READBACK_TIMEOUT  12

struct uct_varuna_readback {
    struct ibv_cq              *cq;
    struct ibv_qp              *qp;
    struct ibv_mr              *mr;
    uint64_t                   word;
};

static ucs_status_t uct_varuna_readback_connect(uct_ib_iface_t *ib, struct ibv_qp *qp)
{
    uct_varuna_mlx5_addr_t addr;
    struct ibv_qp_attr attr;

    uct_varuna_mlx5_addr_get(&ib->super.super, &addr);
    memset(&attr, 0, sizeof(attr));
    attr.qp_state           = IBV_QPS_INIT;
    attr.pkey_index         = ib->pkey_index;
    attr.port_num           = ib->config.port_num;
    attr.qp_access_flags    = IBV_ACCESS_REMOTE_READ;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                 IBV_QP_ACCESS_FLAGS) != 0) {
        goto err;
    }

    attr.qp_state           = IBV_QPS_RTR;
    attr.path_mtu           = IBV_MTU_256;
    attr.dest_qp_num        = qp->qp_num;
    attr.max_dest_rd_atomic = 1;
    attr.ah_attr.port_num   = ib->config.port_num;
    attr.ah_attr.sl         = ib->config.sl;
    attr.ah_attr.dlid       = addr.lid;
    if (!addr.is_ib || ib->config.force_global_addr) {
        attr.ah_attr.is_global      = 1;
        attr.ah_attr.grh.sgid_index = addr.gid_index;
        attr.ah_attr.grh.hop_limit  = ib->config.hop_limit;
        memcpy(&attr.ah_attr.grh.dgid, addr.gid, sizeof(addr.gid));
    }
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                 IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) != 0) {
        goto err;
    }

    attr.qp_state           = IBV_QPS_RTS;
    attr.timeout            = UCT_VARUNA_READBACK_TIMEOUT;
    attr.retry_cnt          = 1;
    attr.max_rd_atomic      = 1;
    if (ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                 IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                                 IBV_QP_MAX_QP_RD_ATOMIC) != 0) {
        goto err;
    }

    return UCS_OK;

err:
    ucs_debug("failed to connect a queue pair to itself: %m");
    return UCS_ERR_IO_ERROR;
}

ucs_status_t uct_varuna_readback_open(uct_iface_h inner, uct_varuna_readback_t **readback_p)
{
    uct_ib_iface_t *ib = ucs_derived_of(inner, uct_ib_iface_t);
    struct ibv_pd *pd  = uct_ib_iface_md(ib)->pd;
    struct ibv_qp_init_attr attr;
    uct_varuna_readback_t *readback;
    ucs_status_t status;

    readback = ucs_calloc(1, sizeof(*readback), "varuna_readback");
    if (readback == NULL) {
        return UCS_ERR_NO_MEMORY;
    }

    memset(&attr, 0, sizeof(attr));
    attr.qp_type          = IBV_QPT_RC;
    attr.cap.max_send_wr  = 1;
    attr.cap.max_send_sge = 1;
    attr.cap.max_recv_wr  = 1;
    attr.cap.max_recv_sge = 1;
    readback->mr          = ibv_reg_mr(pd, &readback->word, sizeof(readback->word),
                                       IBV_ACCESS_LOCAL_WRITE);
    readback->cq          = ibv_create_cq(pd->context, 1, NULL, NULL, 0);
    attr.send_cq          = readback->cq;
    attr.recv_cq          = readback->cq;
    if ((readback->mr != NULL) && (readback->cq != NULL)) {
        readback->qp = ibv_create_qp(pd, &attr);
    }

    status = (readback->qp == NULL) ? UCS_ERR_IO_ERROR :
             uct_varuna_readback_connect(ib, readback->qp);
    if (status != UCS_OK) {
        uct_varuna_readback_close(readback);
        return status;
    }

    *readback_p = readback;
    return UCS_OK;
}

void uct_varuna_readback_close(uct_varuna_readback_t *readback)
{
    if (readback->qp != NULL) {
        ibv_destroy_qp(readback->qp);
    }
    if (readback->cq != NULL) {
        ibv_destroy_cq(readback->cq);
    }
    if (readback->mr != NULL) {
        ibv_dereg_mr(readback->mr);
    }
    ucs_free(readback);
}

ucs_status_t uct_varuna_readback_run(uct_varuna_readback_t *readback, uint64_t address,
                                     uct_rkey_t rkey, ucs_time_t until)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)&readback->word,
        .length = 1,
        .lkey   = readback->mr->lkey
    };
    struct ibv_send_wr wr = {
        .sg_list             = &sge,
        .num_sge             = 1,
        .opcode              = IBV_WR_RDMA_READ,
        .send_flags          = IBV_SEND_SIGNALED,
        .wr.rdma.remote_addr = address,
        .wr.rdma.rkey        = (uint32_t)rkey /* ib has another key above it */
    };
    struct ibv_send_wr *bad_wr;
    struct ibv_wc wc;
    int count;

    if (ibv_post_send(readback->qp, &wr, &bad_wr) != 0) {
        return UCS_ERR_IO_ERROR;
    }

    do {
        count = ibv_poll_cq(readback->cq, 1, &wc);
    } while ((count == 0) && (ucs_get_time() < until));

    return ((count == 1) && (wc.status == IBV_WC_SUCCESS)) ? UCS_OK : UCS_ERR_IO_ERROR;
}
