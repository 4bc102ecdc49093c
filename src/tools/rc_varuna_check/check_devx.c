/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs by commands of the device, see check_devx.h. All that the device reads and
 * writes is in one piece of memory:
 *
 *     send queue | completion queue | doorbell record of each
 */
#include "check_devx.h"
#include "check_prm.h"

#include <errno.h>
#include <infiniband/mlx5dv.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_DEVX_BB      64
#define CHECK_DEVX_CQ_LEN  (2 * CHECK_SQ_LEN)
#define CHECK_DEVX_CQ      (CHECK_SQ_LEN * CHECK_DEVX_BB)
#define CHECK_DEVX_CQ_DBR  (CHECK_DEVX_CQ + (CHECK_DEVX_CQ_LEN * CHECK_DEVX_BB))
#define CHECK_DEVX_QP_DBR  (CHECK_DEVX_CQ_DBR + CHECK_DEVX_BB)
#define CHECK_DEVX_SIZE    (CHECK_DEVX_CQ_DBR + 4096)
#define CHECK_DEVX_STRONG  (3 << 5) /* Fence mode of a control segment: after all before */

struct check_devx {
    struct mlx5dv_devx_uar           *uar;
    struct mlx5dv_devx_umem          *umem;
    struct mlx5dv_devx_obj           *cq;
    struct mlx5dv_devx_obj           *qp;
    struct mlx5dv_devx_event_channel *events;
    char                             *mem;
    uint32_t                         ci; /* Polled entries of the completion queue */
    uint16_t                         pi; /* Posted basic blocks of the send queue */
};


/* The program's errno, or that of a command which the device has refused */
static int check_devx_errno(void)
{
    return (errno != 0) ? errno : EIO;
}

static int check_devx_pdn(const check_nic_t *nic, uint32_t *pdn_p)
{
    struct mlx5dv_pd pd;
    struct mlx5dv_obj obj = {.pd = {.in = nic->pd, .out = &pd}};

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_PD) != 0) {
        return check_devx_errno();
    }

    *pdn_p = pd.pdn;
    return 0;
}

/* Memory and a doorbell register */
static int check_devx_alloc(check_nic_t *nic, check_devx_t *devx)
{
    struct mlx5_cqe64 *cqe;
    unsigned i;

    if (posix_memalign((void**)&devx->mem, 4096, CHECK_DEVX_SIZE) != 0) {
        return ENOMEM;
    }

    memset(devx->mem, 0, CHECK_DEVX_SIZE);
    for (i = 0; i < CHECK_DEVX_CQ_LEN; ++i) {
        cqe         = (struct mlx5_cqe64*)(devx->mem + CHECK_DEVX_CQ) + i;
        cqe->op_own = (MLX5_CQE_INVALID << 4) | MLX5_CQE_OWNER_MASK;
    }

    errno      = 0;
    devx->umem = mlx5dv_devx_umem_reg(nic->context, devx->mem, CHECK_DEVX_SIZE,
                                      IBV_ACCESS_LOCAL_WRITE);
    devx->uar  = mlx5dv_devx_alloc_uar(nic->context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_NC);
    if (devx->uar == NULL) {
        devx->uar = mlx5dv_devx_alloc_uar(nic->context, MLX5_IB_UAPI_UAR_ALLOC_TYPE_BF);
    }

    return ((devx->umem == NULL) || (devx->uar == NULL)) ? check_devx_errno() : 0;
}

static int check_devx_create_cq(check_nic_t *nic, check_devx_t *devx, uint32_t *cqn_p)
{
    uint8_t in[CHECK_CQ_IN]   = {0};
    uint8_t out[CHECK_CMD_OUT] = {0};
    uint8_t *cqc              = in + CHECK_CQ_CQC;
    uint32_t eqn;

    errno = 0;
    if (mlx5dv_devx_query_eqn(nic->context, 0, &eqn) != 0) {
        return check_devx_errno();
    }

    check_prm_set(in, CHECK_CMD_OPCODE, CHECK_CMD_CREATE_CQ);
    check_prm_set(in, CHECK_CQ_UMEM_ID, devx->umem->umem_id);
    check_prm_set64(in, CHECK_CQ_UMEM_OFFSET, CHECK_DEVX_CQ);
    check_prm_set(cqc, CHECK_CQC_DBR_UMEM_ID, devx->umem->umem_id);
    check_prm_set64(cqc, CHECK_CQC_DBR_ADDR, CHECK_DEVX_CQ_DBR);
    check_prm_set(cqc, CHECK_CQC_LOG_SIZE, __builtin_ctz(CHECK_DEVX_CQ_LEN));
    check_prm_set(cqc, CHECK_CQC_UAR_PAGE, devx->uar->page_id);
    check_prm_set(cqc, CHECK_CQC_EQN, eqn);
    devx->cq = mlx5dv_devx_obj_create(nic->context, in, sizeof(in), out, sizeof(out));
    if (devx->cq == NULL) {
        return check_devx_errno();
    }

    *cqn_p = check_prm_get(out, CHECK_CMD_OBJ);
    return 0;
}

static int check_devx_srqn(struct ibv_srq *srq, uint32_t *srqn_p)
{
    struct mlx5dv_srq dv  = {.comp_mask = MLX5DV_SRQ_MASK_SRQN};
    struct mlx5dv_obj obj = {.srq = {.in = srq, .out = &dv}};

    errno = 0;
    if ((mlx5dv_init_obj(&obj, MLX5DV_OBJ_SRQ) != 0) ||
        !(dv.comp_mask & MLX5DV_SRQ_MASK_SRQN)) {
        return check_devx_errno();
    }

    *srqn_p = dv.srqn;
    return 0;
}

static int check_devx_create_qp(check_qp_t *qp, uint32_t pdn, uint32_t cqn)
{
    check_devx_t *devx         = qp->devx;
    uint8_t in[CHECK_QP_IN]    = {0};
    uint8_t out[CHECK_CMD_OUT] = {0};
    uint8_t *qpc               = in + CHECK_QP_QPC;
    uint32_t srqn;
    int ret;

    ret = check_devx_srqn(qp->srq, &srqn);
    if (ret != 0) {
        return ret;
    }

    check_prm_set(in, CHECK_CMD_OPCODE, CHECK_CMD_CREATE_QP);
    check_prm_set(in, CHECK_QP_UMEM_ID, devx->umem->umem_id);
    check_prm_set(qpc, CHECK_QPC_PM_STATE, CHECK_QPC_PM_MIGRATED);
    check_prm_set(qpc, CHECK_QPC_PD, pdn);
    check_prm_set(qpc, CHECK_QPC_UAR_PAGE, devx->uar->page_id);
    check_prm_set(qpc, CHECK_QPC_RQ_TYPE, CHECK_QPC_RQ_SRQ);
    check_prm_set(qpc, CHECK_QPC_SRQN, srqn);
    check_prm_set(qpc, CHECK_QPC_CQN_SND, cqn);
    check_prm_set(qpc, CHECK_QPC_CQN_RCV, cqn);
    check_prm_set(qpc, CHECK_QPC_LOG_SQ_SIZE, __builtin_ctz(CHECK_SQ_LEN));
    check_prm_set(qpc, CHECK_QPC_DBR_UMEM_ID, devx->umem->umem_id);
    check_prm_set64(qpc, CHECK_QPC_DBR_ADDR, CHECK_DEVX_QP_DBR);
    errno    = 0;
    devx->qp = mlx5dv_devx_obj_create(qp->nic->context, in, sizeof(in), out, sizeof(out));
    if (devx->qp == NULL) {
        return check_devx_errno();
    }

    qp->qpn = check_prm_get(out, CHECK_CMD_OBJ);
    return 0;
}

/* Give a command that changes the queue pair; @a in has its context already */
static int check_devx_change(check_qp_t *qp, uint8_t *in, unsigned opcode)
{
    uint8_t out[CHECK_CMD_OUT] = {0};

    check_prm_set(in, CHECK_CMD_OPCODE, opcode);
    check_prm_set(in, CHECK_CMD_OBJ, qp->qpn);
    errno = 0;
    return (mlx5dv_devx_obj_modify(qp->devx->qp, in, CHECK_QP_IN, out, sizeof(out)) == 0) ?
           0 : check_devx_errno();
}

static void check_devx_allow(uint8_t *qpc)
{
    check_prm_set(qpc, CHECK_QPC_RRE, 1);
    check_prm_set(qpc, CHECK_QPC_RWE, 1);
}

static int check_devx_init(check_qp_t *qp)
{
    uint8_t in[CHECK_QP_IN] = {0};
    uint8_t *qpc            = in + CHECK_QP_QPC;

    check_prm_set(qpc, CHECK_QPC_PM_STATE, CHECK_QPC_PM_MIGRATED);
    check_prm_set(qpc, CHECK_QPC_PORT, qp->nic->port);
    check_prm_set(qpc, CHECK_QPC_PKEY_INDEX, qp->nic->pkey_index);
    check_devx_allow(qpc);
    return check_devx_change(qp, in, CHECK_CMD_RST2INIT);
}

int check_devx_create(check_qp_t *qp)
{
    uint32_t pdn, cqn;
    int ret;

    qp->devx = calloc(1, sizeof(*qp->devx));
    if (qp->devx == NULL) {
        return ENOMEM;
    }

    if (((ret = check_devx_pdn(qp->nic, &pdn)) == 0) &&
        ((ret = check_devx_alloc(qp->nic, qp->devx)) == 0) &&
        ((ret = check_devx_create_cq(qp->nic, qp->devx, &cqn)) == 0) &&
        ((ret = check_devx_create_qp(qp, pdn, cqn)) == 0)) {
        ret = check_devx_init(qp);
    }

    return ret;
}

/* RoCE: the kernel finds the peer's Ethernet address when an address handle is made */
static int check_devx_set_roce(check_qp_t *qp, const struct ibv_ah_attr *attr,
                               uint8_t *qpc)
{
    struct ibv_ah_attr ah_attr = *attr;
    struct mlx5dv_ah dv;
    struct mlx5dv_obj obj      = {.ah = {.out = &dv}};
    int ret                    = 0;

    errno     = 0;
    obj.ah.in = ibv_create_ah(qp->nic->pd, &ah_attr);
    if (obj.ah.in == NULL) {
        return check_devx_errno();
    }

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_AH) != 0) {
        ret = check_devx_errno();
    } else {
        memcpy(qpc + CHECK_QPC_RMAC_BYTE, dv.av->rmac, sizeof(dv.av->rmac));
        check_prm_set(qpc, CHECK_QPC_UDP_SPORT, 0xc000);
    }

    ibv_destroy_ah(obj.ah.in);
    return ret;
}

static int check_devx_set_path(check_qp_t *qp, const struct ibv_ah_attr *attr,
                               uint8_t *qpc)
{
    if (attr->is_global) {
        check_prm_set(qpc, CHECK_QPC_SGID_INDEX, attr->grh.sgid_index);
        check_prm_set(qpc, CHECK_QPC_HOP_LIMIT, attr->grh.hop_limit);
        memcpy(qpc + CHECK_QPC_RGID_BYTE, &attr->grh.dgid, sizeof(attr->grh.dgid));
    }

    check_prm_set(qpc, CHECK_QPC_PORT, attr->port_num);
    if (qp->nic->wire.link_layer == IBV_LINK_LAYER_ETHERNET) {
        return check_devx_set_roce(qp, attr, qpc);
    }

    check_prm_set(qpc, CHECK_QPC_GRH, attr->is_global);
    check_prm_set(qpc, CHECK_QPC_RLID, attr->dlid);
    check_prm_set(qpc, CHECK_QPC_SL, attr->sl);
    return 0;
}

int check_devx_connect(check_qp_t *qp, const struct ibv_qp_attr *rtr, int is_ordered)
{
    uint8_t in[CHECK_QP_IN]     = {0};
    uint8_t to_rts[CHECK_QP_IN] = {0};
    uint8_t *qpc                = in + CHECK_QP_QPC;
    int ret;

    check_prm_set(qpc, CHECK_QPC_MTU, rtr->path_mtu);
    check_prm_set(qpc, CHECK_QPC_LOG_MSG_MAX, CHECK_QPC_LOG_MSG);
    check_prm_set(qpc, CHECK_QPC_REMOTE_QPN, rtr->dest_qp_num);
    check_prm_set(qpc, CHECK_QPC_RCV_PSN, rtr->rq_psn);
    check_prm_set(qpc, CHECK_QPC_MIN_RNR, rtr->min_rnr_timer);
    check_prm_set(qpc, CHECK_QPC_ORDER_FORCE, !!is_ordered);
    check_prm_set(in, CHECK_QP_OPT_MASK, CHECK_QP_OPT_RIGHTS);
    check_devx_allow(qpc);
    ret = check_devx_set_path(qp, &rtr->ah_attr, qpc);
    if (ret == 0) {
        ret = check_devx_change(qp, in, CHECK_CMD_INIT2RTR);
    }

    if (ret != 0) {
        return ret;
    }

    qpc = to_rts + CHECK_QP_QPC;
    check_prm_set(qpc, CHECK_QPC_SND_PSN, qp->psn);
    check_prm_set(qpc, CHECK_QPC_ACK_TIMEOUT, CHECK_QP_TIMEOUT);
    check_prm_set(qpc, CHECK_QPC_RETRY_COUNT, CHECK_QP_RETRIES);
    check_prm_set(qpc, CHECK_QPC_RNR_RETRY, CHECK_QP_RNR_RETRIES);
    return check_devx_change(qp, to_rts, CHECK_CMD_RTR2RTS);
}

int check_devx_modify(check_qp_t *qp, enum ibv_qp_state state)
{
    uint8_t in[CHECK_QP_IN] = {0};

    return check_devx_change(qp, in, (state == IBV_QPS_ERR) ? CHECK_CMD_2ERR :
                                                              CHECK_CMD_2RST);
}

int check_devx_query(const check_qp_t *qp, uint8_t *qpc)
{
    uint8_t in[CHECK_CMD_OUT]                       = {0};
    uint8_t out[CHECK_QP_QPC + CHECK_QPC_SIZE + 16] = {0};
    int ret;

    check_prm_set(in, CHECK_CMD_OPCODE, CHECK_CMD_QUERY_QP);
    check_prm_set(in, CHECK_CMD_OBJ, qp->qpn);
    errno = 0;
    ret   = (qp->devx != NULL) ?
            mlx5dv_devx_obj_query(qp->devx->qp, in, sizeof(in), out, sizeof(out)) :
            mlx5dv_devx_qp_query(qp->qp, in, sizeof(in), out, sizeof(out));
    if (ret != 0) {
        return check_devx_errno();
    }

    memcpy(qpc, out + CHECK_QP_QPC, CHECK_QPC_SIZE);
    return 0;
}

static volatile uint32_t *check_devx_dbrec(const check_devx_t *devx, unsigned offset)
{
    return (volatile uint32_t*)(devx->mem + offset);
}

int check_devx_write(check_qp_t *qp, const struct ibv_send_wr *wr, int is_strong)
{
    check_devx_t *devx              = qp->devx;
    char *wqe                       = devx->mem +
                                      ((devx->pi % CHECK_SQ_LEN) * CHECK_DEVX_BB);
    struct mlx5_wqe_raddr_seg *addr = (struct mlx5_wqe_raddr_seg*)
                                      (wqe + sizeof(struct mlx5_wqe_ctrl_seg));

    mlx5dv_set_ctrl_seg((struct mlx5_wqe_ctrl_seg*)wqe, devx->pi, MLX5_OPCODE_RDMA_WRITE,
                        0, qp->qpn, MLX5_WQE_CTRL_CQ_UPDATE |
                        (is_strong ? CHECK_DEVX_STRONG : 0), 3, 0, 0);
    addr->raddr    = htobe64(wr->wr.rdma.remote_addr);
    addr->rkey     = htobe32(wr->wr.rdma.rkey);
    addr->reserved = 0;
    mlx5dv_set_data_seg((struct mlx5_wqe_data_seg*)(addr + 1), wr->sg_list->length,
                        wr->sg_list->lkey, wr->sg_list->addr);

    ++devx->pi;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    check_devx_dbrec(devx, CHECK_DEVX_QP_DBR)[MLX5_SND_DBR] = htobe32(devx->pi);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    *(volatile uint64_t*)devx->uar->reg_addr = *(const uint64_t*)wqe;
    return 0;
}

static enum ibv_wc_status check_devx_status(const struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *err = (const struct mlx5_err_cqe*)cqe;

    if ((cqe->op_own >> 4) == MLX5_CQE_REQ) {
        return IBV_WC_SUCCESS;
    }

    switch (err->syndrome) {
    case MLX5_CQE_SYNDROME_WR_FLUSH_ERR:
        return IBV_WC_WR_FLUSH_ERR;
    case MLX5_CQE_SYNDROME_TRANSPORT_RETRY_EXC_ERR:
        return IBV_WC_RETRY_EXC_ERR;
    case MLX5_CQE_SYNDROME_LOCAL_QP_OP_ERR:
        return IBV_WC_LOC_QP_OP_ERR;
    case MLX5_CQE_SYNDROME_REMOTE_ACCESS_ERR:
        return IBV_WC_REM_ACCESS_ERR;
    default:
        return IBV_WC_GENERAL_ERR;
    }
}

int check_devx_poll(check_qp_t *qp, int max, struct ibv_wc *wc)
{
    check_devx_t *devx = qp->devx;
    const struct mlx5_cqe64 *cqe;
    uint8_t op_own;
    int n;

    for (n = 0; n < max; ++n) {
        cqe    = (const struct mlx5_cqe64*)(devx->mem + CHECK_DEVX_CQ) +
                 (devx->ci % CHECK_DEVX_CQ_LEN);
        op_own = __atomic_load_n(&cqe->op_own, __ATOMIC_ACQUIRE);
        if (((op_own >> 4) == MLX5_CQE_INVALID) ||
            ((op_own & MLX5_CQE_OWNER_MASK) != !!(devx->ci & CHECK_DEVX_CQ_LEN))) {
            break;
        }

        memset(&wc[n], 0, sizeof(wc[n]));
        wc[n].status = check_devx_status(cqe);
        wc[n].wr_id  = be16toh(cqe->wqe_counter);
        ++devx->ci;
    }

    if (n > 0) {
        check_devx_dbrec(devx, CHECK_DEVX_CQ_DBR)[0] = htobe32(devx->ci & 0xffffff);
    }
    return n;
}

int check_devx_watch_last_wqe(check_qp_t *qp)
{
    uint16_t events[] = {CHECK_EVENT_LAST_WQE};

    errno            = 0;
    qp->devx->events = mlx5dv_devx_create_event_channel(
            qp->nic->context, MLX5_IB_UAPI_DEVX_CR_EV_CH_FLAGS_OMIT_DATA);
    if ((qp->devx->events == NULL) ||
        (mlx5dv_devx_subscribe_devx_event(qp->devx->events, qp->devx->qp, sizeof(events),
                                          events, 1) != 0)) {
        return check_devx_errno();
    }

    return 0;
}

int check_devx_has_last_wqe(check_qp_t *qp)
{
    struct mlx5dv_devx_async_event_hdr event;
    struct pollfd pfd = {.fd = qp->devx->events->fd, .events = POLLIN};

    return (poll(&pfd, 1, 0) == 1) &&
           (mlx5dv_devx_get_event(qp->devx->events, &event, sizeof(event)) > 0);
}

void check_devx_destroy(check_qp_t *qp)
{
    check_devx_t *devx = qp->devx;

    if (devx->qp != NULL) {
        mlx5dv_devx_obj_destroy(devx->qp);
    }
    if (devx->events != NULL) {
        mlx5dv_devx_destroy_event_channel(devx->events);
    }
    if (devx->cq != NULL) {
        mlx5dv_devx_obj_destroy(devx->cq);
    }
    if (devx->uar != NULL) {
        mlx5dv_devx_free_uar(devx->uar);
    }
    if (devx->umem != NULL) {
        mlx5dv_devx_umem_dereg(devx->umem);
    }
    free(devx->mem);
    free(devx);
}

/* --- DC targets --- */

static int check_devx_query_dct(struct mlx5dv_devx_obj *dct, uint32_t dctn,
                                check_order_bits_t *order_p)
{
    uint8_t in[CHECK_CMD_OUT]  = {0};
    uint8_t out[CHECK_DCT_LEN] = {0};
    uint8_t *dctc              = out + CHECK_DCT_DCTC;

    check_prm_set(in, CHECK_CMD_OPCODE, CHECK_CMD_QUERY_DCT);
    check_prm_set(in, CHECK_CMD_OBJ, dctn);
    errno = 0;
    if (mlx5dv_devx_obj_query(dct, in, sizeof(in), out, sizeof(out)) != 0) {
        return check_devx_errno();
    }

    order_p->placement = check_prm_get(dctc, CHECK_DCTC_ORDER_0) |
                         (check_prm_get(dctc, CHECK_DCTC_ORDER_1) << 1);
    order_p->is_forced = check_prm_get(dctc, CHECK_DCTC_ORDER_FORCE);
    return 0;
}

static int check_devx_make_dct(check_nic_t *nic, struct ibv_cq *cq, struct ibv_srq *srq,
                               check_order_bits_t *order_p)
{
    uint8_t in[CHECK_DCT_LEN]   = {0};
    uint8_t out[CHECK_CMD_OUT]  = {0};
    uint8_t *dctc               = in + CHECK_DCT_DCTC;
    struct mlx5dv_cq dv         = {0};
    struct mlx5dv_obj obj       = {.cq = {.in = cq, .out = &dv}};
    struct mlx5dv_devx_obj *dct = NULL;
    uint32_t pdn, srqn;
    int ret;

    if (((ret = check_devx_pdn(nic, &pdn)) != 0) ||
        ((ret = check_devx_srqn(srq, &srqn)) != 0)) {
        return ret;
    }

    if (mlx5dv_init_obj(&obj, MLX5DV_OBJ_CQ) != 0) {
        return check_devx_errno();
    }

    check_prm_set(in, CHECK_CMD_OPCODE, CHECK_CMD_CREATE_DCT);
    check_prm_set(dctc, CHECK_DCTC_PD, pdn);
    check_prm_set(dctc, CHECK_DCTC_CQN, dv.cqn);
    check_prm_set(dctc, CHECK_DCTC_SRQN, srqn);
    check_prm_set(dctc, CHECK_DCTC_PORT, nic->port);
    check_prm_set(dctc, CHECK_DCTC_PKEY_INDEX, nic->pkey_index);
    check_prm_set(dctc, CHECK_DCTC_SGID_INDEX, nic->gid_index);
    check_prm_set(dctc, CHECK_DCTC_HOP_LIMIT, 255);
    check_prm_set(dctc, CHECK_DCTC_MTU, nic->wire.mtu);
    check_prm_set(dctc, CHECK_DCTC_RWE, 1);
    errno = 0;
    dct   = mlx5dv_devx_obj_create(nic->context, in, sizeof(in), out, sizeof(out));
    if (dct == NULL) {
        return check_devx_errno();
    }

    ret = check_devx_query_dct(dct, check_prm_get(out, CHECK_CMD_OBJ), order_p);
    mlx5dv_devx_obj_destroy(dct);
    return ret;
}

int check_devx_dct(check_nic_t *nic, check_order_bits_t *order_p)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_cq *cq             = ibv_create_cq(nic->context, 16, NULL, NULL, 0);
    struct ibv_srq *srq           = ibv_create_srq(nic->pd, &attr);
    int ret                       = ENOMEM;

    if ((cq != NULL) && (srq != NULL)) {
        ret = check_devx_make_dct(nic, cq, srq, order_p);
    }

    if (srq != NULL) {
        ibv_destroy_srq(srq);
    }
    if (cq != NULL) {
        ibv_destroy_cq(cq);
    }
    return ret;
}
