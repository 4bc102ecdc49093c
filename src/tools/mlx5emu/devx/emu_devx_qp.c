/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Commands of queue pairs: RC and DC initiators. Called by emu_devx_cmd.c, also
 * for queue pairs that were made by verbs.
 *
 * Layout of a queue pair's buffer: receive queue, if it has one of its own,
 * then the send queue from the next basic block on.
 */

#include "emu_devx.h"

#define EMU_DEVX_DBREC_SIZE 8


static const void *emu_devx_in_qpc(const emu_devx_cmd_t *cmd)
{
    return (const uint8_t*)cmd->in + EMU_QP_CMD_QPC;
}

/* Type, and everything that refers to other objects */
static int emu_devx_qp_init_objs(const emu_devx_cmd_t *cmd,
                                 emu_qp_init_attr_t *init)
{
    const void *qpc  = emu_devx_in_qpc(cmd);
    unsigned rq_type = emu_ifc_get(qpc, EMU_QPC_RQ_TYPE);
    uint32_t srqn    = emu_ifc_get(qpc, EMU_QPC_SRQN);

    switch (emu_ifc_get(qpc, EMU_QPC_ST)) {
    case EMU_QPC_ST_RC:
        init->type = EMU_QPT_RC;
        break;
    case EMU_QPC_ST_DCI:
        init->type = EMU_QPT_DCI;
        break;
    default:
        return EMU_CMD_ST_BAD_PARAM;
    }

    init->pd      = emu_devx_find_pd(cmd->context,
                                     emu_ifc_get(qpc, EMU_QPC_PD));
    init->send_cq = emu_devx_find_cq(cmd->context,
                                     emu_ifc_get(qpc, EMU_QPC_CQN_SND));
    init->recv_cq = emu_devx_find_cq(cmd->context,
                                     emu_ifc_get(qpc, EMU_QPC_CQN_RCV));
    if ((init->pd == NULL) || (init->send_cq == NULL) ||
        (init->recv_cq == NULL) ||
        (emu_ifc_get(qpc, EMU_QPC_UAR_PAGE) != EMU_DEVX_UAR_PAGE)) {
        return EMU_CMD_ST_BAD_RES;
    }

    if (rq_type == EMU_QPC_RQ_TYPE_SRQ) {
        init->srq = emu_devx_find_srq(cmd->context, srqn);
        if (init->srq == NULL) {
            return EMU_CMD_ST_BAD_RES;
        }
    } else if ((rq_type != EMU_QPC_RQ_TYPE_REGULAR) &&
               (rq_type != EMU_QPC_RQ_TYPE_NONE)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    return EMU_CMD_ST_OK;
}

/* Queues and doorbell record, which are in umems */
static int emu_devx_qp_init_mem(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd,
                                emu_qp_init_attr_t *init)
{
    const void *qpc  = emu_devx_in_qpc(cmd);
    uint32_t stride  = 16u << emu_ifc_get(qpc, EMU_QPC_LOG_RQ_STRIDE);
    uint64_t rq_size = 0;
    uint8_t *buf;

    /* A queue pair without send queue is for offloads only */
    if (emu_ifc_get(qpc, EMU_QPC_NO_SQ) ||
        emu_ifc_get(qpc, EMU_QPC_OFFLOAD_TYPE)) {
        return EMU_CMD_ST_BAD_PARAM;
    }

    init->sq_bb_cnt = 1u << emu_ifc_get(qpc, EMU_QPC_LOG_SQ_SIZE);
    if ((init->type == EMU_QPT_RC) &&
        (emu_ifc_get(qpc, EMU_QPC_RQ_TYPE) == EMU_QPC_RQ_TYPE_REGULAR)) {
        init->rq_wqe_cnt = 1u << emu_ifc_get(qpc, EMU_QPC_LOG_RQ_SIZE);
        init->rq_max_sge = stride / 16;
        rq_size          = ((uint64_t)init->rq_wqe_cnt * stride +
                            EMU_SEND_BB - 1) & ~(EMU_SEND_BB - 1ul);
    }

    buf = emu_umem_get(cmd->context,
                       emu_ifc_get(cmd->in, EMU_QP_CMD_WQ_UMEM_ID),
                       emu_ifc_get(cmd->in, EMU_QP_CMD_WQ_UMEM_OFFSET),
                       rq_size + (uint64_t)init->sq_bb_cnt * EMU_SEND_BB,
                       &obj->umems[0]);
    if (buf == NULL) {
        return EMU_CMD_ST_BAD_RES;
    }

    init->user_rq    = buf;
    init->user_sq    = buf + rq_size;
    init->user_dbrec = emu_umem_get(cmd->context,
                                    emu_ifc_get(qpc, EMU_QPC_DBR_UMEM_ID),
                                    emu_ifc_get(qpc, EMU_QPC_DBR_ADDR),
                                    EMU_DEVX_DBREC_SIZE, &obj->umems[1]);
    if (init->user_dbrec == NULL) {
        return EMU_CMD_ST_BAD_RES;
    }

    return (((uintptr_t)buf % EMU_SEND_BB) ||
            ((uintptr_t)init->user_dbrec % EMU_DEVX_DBREC_SIZE)) ?
           EMU_CMD_ST_BAD_PARAM : EMU_CMD_ST_OK;
}

static void emu_devx_qp_get_order(const void *qpc, uint8_t *order_p, uint8_t *forced_p)
{
    *order_p  = emu_ifc_get(qpc, EMU_QPC_ORDER_0) |
                (emu_ifc_get(qpc, EMU_QPC_ORDER_1) << 1);
    *forced_p = emu_ifc_get(qpc, EMU_QPC_ORDER_FORCE);
}

int emu_devx_create_qp(emu_devx_obj_t *obj, const emu_devx_cmd_t *cmd)
{
    emu_qp_init_attr_t init = {};
    const void *qpc         = emu_devx_in_qpc(cmd);
    int status, ret;

    status = emu_devx_qp_init_objs(cmd, &init);
    if (status == EMU_CMD_ST_OK) {
        status = emu_devx_qp_init_mem(obj, cmd, &init);
    }
    if (status != EMU_CMD_ST_OK) {
        return status;
    }

    init.cqe_uidx    = emu_ifc_get(qpc, EMU_QPC_USER_INDEX);
    init.scatter_cqe = (emu_ifc_get(qpc, EMU_QPC_CS_RES) != 0);
    init.cookie      = obj->cookie;
    init.no_async    = 1; /* Until the program subscribes */
    emu_devx_qp_get_order(qpc, &init.order, &init.order_forced);
    ret              = emu_qp_create(emu_vctx(cmd->context)->ctx, &init,
                                     &obj->qp);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    obj->num = obj->qp->qpn;
    return EMU_CMD_ST_OK;
}

/* Rights of the responder: all at the first transitions, later those of the
 * mask */
static unsigned emu_devx_qp_access(const emu_qp_t *qp, const void *qpc,
                                   uint32_t opt_mask, int is_first)
{
    static const struct {
        uint32_t opt;
        unsigned bit;
        unsigned access;
    } rights[] = {
        {EMU_QP_OPT_RRE, 0x490, IBV_ACCESS_REMOTE_READ},
        {EMU_QP_OPT_RWE, 0x491, IBV_ACCESS_REMOTE_WRITE},
        {EMU_QP_OPT_RAE, 0x492, IBV_ACCESS_REMOTE_ATOMIC}
    };
    unsigned access = qp->attr.qp_access_flags;
    unsigned i;

    for (i = 0; i < sizeof(rights) / sizeof(rights[0]); ++i) {
        if (is_first || (opt_mask & rights[i].opt)) {
            access &= ~rights[i].access;
            if (emu_ifc_get(qpc, rights[i].bit, 1)) {
                access |= rights[i].access;
            }
        }
    }

    return access;
}

static int emu_devx_qp_is_roce(const emu_qp_t *qp)
{
    return emu_port_is_roce(&emu_fabric->ports[qp->port]);
}

/* RoCE has a UDP port and a priority where InfiniBand has LID and service level: as
 * in an address handle */
static void emu_devx_qp_get_path(const emu_qp_t *qp, const void *qpc,
                                 struct ibv_ah_attr *ah)
{
    int is_roce = emu_devx_qp_is_roce(qp);

    ah->dlid              = is_roce ? emu_ifc_get(qpc, EMU_QPC_UDP_SPORT) :
                                      emu_ifc_get(qpc, EMU_QPC_RLID);
    ah->sl                = is_roce ? emu_ifc_get(qpc, EMU_QPC_ETH_PRIO) :
                                      emu_ifc_get(qpc, EMU_QPC_SL);
    ah->src_path_bits     = emu_ifc_get(qpc, EMU_QPC_MLID);
    ah->static_rate       = emu_ifc_get(qpc, EMU_QPC_STAT_RATE);
    ah->is_global         = emu_ifc_get(qpc, EMU_QPC_GRH);
    ah->port_num          = emu_ifc_get(qpc, EMU_QPC_PORT);
    ah->grh.flow_label    = emu_ifc_get(qpc, EMU_QPC_FLOW_LABEL);
    ah->grh.sgid_index    = emu_ifc_get(qpc, EMU_QPC_SRC_ADDR_INDEX);
    ah->grh.hop_limit     = emu_ifc_get(qpc, EMU_QPC_HOP_LIMIT);
    ah->grh.traffic_class = emu_ifc_get(qpc, EMU_QPC_TCLASS);
    memcpy(&ah->grh.dgid, (const uint8_t*)qpc + EMU_QPC_RGID_BYTE,
           sizeof(ah->grh.dgid));
}

static int emu_devx_qp_to_init(const void *qpc, struct ibv_qp_attr *attr)
{
    attr->qp_state   = IBV_QPS_INIT;
    attr->port_num   = emu_ifc_get(qpc, EMU_QPC_PORT);
    attr->pkey_index = emu_ifc_get(qpc, EMU_QPC_PKEY_INDEX);
    return IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
}

static int emu_devx_qp_to_rtr(const emu_qp_t *qp, const void *qpc,
                              struct ibv_qp_attr *attr)
{
    attr->qp_state           = IBV_QPS_RTR;
    attr->path_mtu           = emu_ifc_get(qpc, EMU_QPC_MTU);
    attr->dest_qp_num        = emu_ifc_get(qpc, EMU_QPC_REMOTE_QPN);
    attr->rq_psn             = emu_ifc_get(qpc, EMU_QPC_NEXT_RCV_PSN);
    attr->min_rnr_timer      = emu_ifc_get(qpc, EMU_QPC_MIN_RNR_NAK);
    attr->max_dest_rd_atomic = 1u << emu_ifc_get(qpc, EMU_QPC_LOG_RRA_MAX);
    emu_devx_qp_get_path(qp, qpc, &attr->ah_attr);
    return IBV_QP_STATE | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
           IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_AV;
}

static int emu_devx_qp_to_rts(const void *qpc, struct ibv_qp_attr *attr)
{
    attr->qp_state      = IBV_QPS_RTS;
    attr->sq_psn        = emu_ifc_get(qpc, EMU_QPC_NEXT_SEND_PSN);
    attr->timeout       = emu_ifc_get(qpc, EMU_QPC_ACK_TIMEOUT);
    attr->retry_cnt     = emu_ifc_get(qpc, EMU_QPC_RETRY_COUNT);
    attr->rnr_retry     = emu_ifc_get(qpc, EMU_QPC_RNR_RETRY);
    attr->max_rd_atomic = 1u << emu_ifc_get(qpc, EMU_QPC_LOG_SRA_MAX);
    return IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
           IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
}

/* What the command says, as verbs say it; the state that it demands goes to
 * from_p, negative where any will do */
static int emu_devx_qp_modify_attr(const emu_qp_t *qp,
                                   const emu_devx_cmd_t *cmd,
                                   struct ibv_qp_attr *attr, int *from_p)
{
    const void *qpc  = emu_devx_in_qpc(cmd);
    uint32_t options = 0;
    int is_first     = 0;
    int mask;

    *from_p = -1;
    switch (emu_ifc_get(cmd->in, EMU_CMD_OPCODE)) {
    case EMU_CMD_2ERR_QP:
        attr->qp_state = IBV_QPS_ERR;
        return IBV_QP_STATE;
    case EMU_CMD_2RST_QP:
        attr->qp_state = IBV_QPS_RESET;
        return IBV_QP_STATE;
    case EMU_CMD_RST2INIT_QP:
        *from_p  = IBV_QPS_RESET;
        mask     = emu_devx_qp_to_init(qpc, attr);
        is_first = 1;
        break;
    case EMU_CMD_INIT2INIT_QP:
        *from_p = IBV_QPS_INIT;
        mask    = emu_devx_qp_to_init(qpc, attr);
        break;
    case EMU_CMD_INIT2RTR_QP:
        *from_p = IBV_QPS_INIT;
        mask    = emu_devx_qp_to_rtr(qp, qpc, attr);
        break;
    case EMU_CMD_RTR2RTS_QP:
        *from_p = IBV_QPS_RTR;
        mask    = emu_devx_qp_to_rts(qpc, attr);
        break;
    default:
        *from_p        = IBV_QPS_RTS;
        attr->qp_state = IBV_QPS_RTS;
        mask           = IBV_QP_STATE;
        break;
    }

    options               = emu_ifc_get(cmd->in, EMU_QP_CMD_OPT_MASK);
    attr->qp_access_flags = emu_devx_qp_access(qp, qpc, options, is_first);
    return mask | IBV_QP_ACCESS_FLAGS;
}

/* Whether the command has no context, but a header alone */
static int emu_devx_qp_is_short(const emu_devx_cmd_t *cmd)
{
    unsigned opcode = emu_ifc_get(cmd->in, EMU_CMD_OPCODE);

    return (opcode == EMU_CMD_2ERR_QP) || (opcode == EMU_CMD_2RST_QP);
}

int emu_devx_modify_qp(emu_qp_t *qp, const emu_devx_cmd_t *cmd)
{
    struct ibv_qp_attr attr, now;
    const uint8_t *rmac;
    int mask, from, ret;

    if (!emu_devx_qp_is_short(cmd) && (cmd->inlen < EMU_QP_CMD_LEN)) {
        return EMU_CMD_ST_BAD_INP_LEN;
    }

    memset(&attr, 0, sizeof(attr));
    mask = emu_devx_qp_modify_attr(qp, cmd, &attr, &from);
    if (from >= 0) {
        ret = emu_qp_read(qp, &now);
        if (ret != 0) {
            return emu_devx_status(ret);
        }

        if ((int)now.qp_state != from) {
            return EMU_CMD_ST_BAD_QP_STATE;
        }
    }

    if (emu_ifc_get(cmd->in, EMU_CMD_OPCODE) == EMU_CMD_INIT2RTR_QP) {
        emu_devx_qp_get_order(emu_devx_in_qpc(cmd), &qp->order, &qp->order_forced);
    }

    rmac = ((mask & IBV_QP_AV) && emu_devx_qp_is_roce(qp)) ?
           ((const uint8_t*)emu_devx_in_qpc(cmd) + EMU_QPC_RMAC_BYTE) : NULL;
    return emu_devx_status(emu_qp_modify_to(qp, &attr, mask, rmac));
}

static unsigned emu_devx_qp_state(enum ibv_qp_state state)
{
    static const uint8_t states[] = {
        [IBV_QPS_RESET] = EMU_QPC_STATE_RST,
        [IBV_QPS_INIT]  = EMU_QPC_STATE_INIT,
        [IBV_QPS_RTR]   = EMU_QPC_STATE_RTR,
        [IBV_QPS_RTS]   = EMU_QPC_STATE_RTS,
        [IBV_QPS_SQD]   = EMU_QPC_STATE_SQD,
        [IBV_QPS_SQE]   = EMU_QPC_STATE_SQER,
        [IBV_QPS_ERR]   = EMU_QPC_STATE_ERR
    };

    return states[state];
}

static unsigned emu_devx_log2(unsigned value)
{
    return (value <= 1) ? 0 : (31 - __builtin_clz(value));
}

static void emu_devx_qp_put_path(void *qpc, const emu_qp_t *qp,
                                 const struct ibv_qp_attr *attr)
{
    const struct ibv_ah_attr *ah = &attr->ah_attr;

    emu_ifc_set(qpc, EMU_QPC_PKEY_INDEX, attr->pkey_index);
    emu_ifc_set(qpc, EMU_QPC_ACK_TIMEOUT, attr->timeout);
    emu_ifc_set(qpc, EMU_QPC_PORT, attr->port_num);
    if (emu_devx_qp_is_roce(qp)) {
        emu_ifc_set(qpc, EMU_QPC_UDP_SPORT, ah->dlid);
        emu_ifc_set(qpc, EMU_QPC_ETH_PRIO, ah->sl);
        memcpy((uint8_t*)qpc + EMU_QPC_RMAC_BYTE, qp->path.rmac,
               sizeof(qp->path.rmac));
    } else {
        emu_ifc_set(qpc, EMU_QPC_RLID, ah->dlid);
        emu_ifc_set(qpc, EMU_QPC_SL, ah->sl);
    }
    emu_ifc_set(qpc, EMU_QPC_MLID, ah->src_path_bits);
    emu_ifc_set(qpc, EMU_QPC_STAT_RATE, ah->static_rate);
    emu_ifc_set(qpc, EMU_QPC_GRH, ah->is_global);
    emu_ifc_set(qpc, EMU_QPC_FLOW_LABEL, ah->grh.flow_label);
    emu_ifc_set(qpc, EMU_QPC_SRC_ADDR_INDEX, ah->grh.sgid_index);
    emu_ifc_set(qpc, EMU_QPC_HOP_LIMIT, ah->grh.hop_limit);
    emu_ifc_set(qpc, EMU_QPC_TCLASS, ah->grh.traffic_class);
    memcpy((uint8_t*)qpc + EMU_QPC_RGID_BYTE, &ah->grh.dgid,
           sizeof(ah->grh.dgid));
}

/* What was said at creation */
static void emu_devx_qp_put_constant(void *qpc, const emu_qp_t *qp)
{
    emu_ifc_set(qpc, EMU_QPC_ST, (qp->type == EMU_QPT_DCI) ? EMU_QPC_ST_DCI :
                                                             EMU_QPC_ST_RC);
    emu_ifc_set(qpc, EMU_QPC_PM_STATE, EMU_QPC_PM_MIGRATED);
    emu_ifc_set(qpc, EMU_QPC_PD, qp->pd);
    emu_ifc_set(qpc, EMU_QPC_LOG_MSG_MAX, EMU_QPC_LOG_MSG);
    emu_ifc_set(qpc, EMU_QPC_LOG_SQ_SIZE, emu_devx_log2(qp->sq_bb_cnt));
    emu_ifc_set(qpc, EMU_QPC_UAR_PAGE, EMU_DEVX_UAR_PAGE);
    emu_ifc_set(qpc, EMU_QPC_ORDER_0, emu_qp_order(qp) & 1);
    emu_ifc_set(qpc, EMU_QPC_ORDER_1, emu_qp_order(qp) >> 1);
    emu_ifc_set(qpc, EMU_QPC_ORDER_FORCE, qp->order_forced);
    emu_ifc_set(qpc, EMU_QPC_USER_INDEX, qp->cqe_uidx);
    emu_ifc_set(qpc, EMU_QPC_CQN_SND, qp->send_cq->cqn);
    emu_ifc_set(qpc, EMU_QPC_CQN_RCV, qp->recv_cq->cqn);
    if (qp->srq != NULL) {
        emu_ifc_set(qpc, EMU_QPC_RQ_TYPE, EMU_QPC_RQ_TYPE_SRQ);
        emu_ifc_set(qpc, EMU_QPC_SRQN, qp->srq->srqn);
    } else if (qp->rq_wqe_cnt == 0) {
        emu_ifc_set(qpc, EMU_QPC_RQ_TYPE, EMU_QPC_RQ_TYPE_NONE);
    } else {
        emu_ifc_set(qpc, EMU_QPC_LOG_RQ_SIZE, emu_devx_log2(qp->rq_wqe_cnt));
        emu_ifc_set(qpc, EMU_QPC_LOG_RQ_STRIDE,
                    emu_devx_log2(qp->rq_stride / 16));
    }
}

int emu_devx_query_qp(emu_qp_t *qp, const emu_devx_cmd_t *cmd)
{
    void *qpc = (uint8_t*)cmd->out + EMU_QP_CMD_QPC;
    struct ibv_qp_attr attr;
    int ret;

    if (cmd->outlen < EMU_QP_CMD_LEN) {
        return EMU_CMD_ST_BAD_OUTP_LEN;
    }

    ret = emu_qp_query(qp, &attr);
    if (ret != 0) {
        return emu_devx_status(ret);
    }

    emu_devx_qp_put_constant(qpc, qp);
    emu_devx_qp_put_path(qpc, qp, &attr);
    emu_ifc_set(qpc, EMU_QPC_STATE, emu_devx_qp_state(attr.qp_state));
    emu_ifc_set(qpc, EMU_QPC_MTU, attr.path_mtu);
    emu_ifc_set(qpc, EMU_QPC_REMOTE_QPN, attr.dest_qp_num);
    emu_ifc_set(qpc, EMU_QPC_LOG_SRA_MAX, emu_devx_log2(attr.max_rd_atomic));
    emu_ifc_set(qpc, EMU_QPC_LOG_RRA_MAX,
                emu_devx_log2(attr.max_dest_rd_atomic));
    emu_ifc_set(qpc, EMU_QPC_RETRY_COUNT, attr.retry_cnt);
    emu_ifc_set(qpc, EMU_QPC_RNR_RETRY, attr.rnr_retry);
    emu_ifc_set(qpc, EMU_QPC_MIN_RNR_NAK, attr.min_rnr_timer);
    emu_ifc_set(qpc, EMU_QPC_NEXT_SEND_PSN, attr.sq_psn);
    emu_ifc_set(qpc, EMU_QPC_NEXT_RCV_PSN, attr.rq_psn);
    emu_ifc_set(qpc, EMU_QPC_LAST_ACKED_PSN, qp->req_una);
    emu_ifc_set(qpc, EMU_QPC_HW_SQ_COUNTER, qp->sq_ci);
    emu_ifc_set(qpc, EMU_QPC_SW_SQ_COUNTER, qp->sq_pi);
    emu_ifc_set(qpc, EMU_QPC_RRE,
                !!(attr.qp_access_flags & IBV_ACCESS_REMOTE_READ));
    emu_ifc_set(qpc, EMU_QPC_RWE,
                !!(attr.qp_access_flags & IBV_ACCESS_REMOTE_WRITE));
    emu_ifc_set(qpc, EMU_QPC_RAE,
                !!(attr.qp_access_flags & IBV_ACCESS_REMOTE_ATOMIC));
    return EMU_CMD_ST_OK;
}
