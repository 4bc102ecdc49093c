/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Transitions of queue pairs. See emu_engine.h.
 */

#include "emu_engine.h"
#include "emu_proto.h"
#include "../core/emu_fabric.h"
#include "../core/emu_nic.h"
#include "../core/emu_port.h"
#include "../core/emu_route.h"

#include <errno.h>
#include <string.h>

/* Which states can be reached from which: bit masks by the old state */
#define EMU_S(_state) (1u << IBV_QPS_##_state)
#define EMU_S_ALWAYS  (EMU_S(RESET) | EMU_S(ERR))

static const uint32_t emu_qp_next_states[] = {
    [IBV_QPS_RESET] = EMU_S_ALWAYS | EMU_S(INIT),
    [IBV_QPS_INIT]  = EMU_S_ALWAYS | EMU_S(INIT) | EMU_S(RTR),
    [IBV_QPS_RTR]   = EMU_S_ALWAYS | EMU_S(RTS),
    [IBV_QPS_RTS]   = EMU_S_ALWAYS | EMU_S(RTS) | EMU_S(SQD),
    [IBV_QPS_SQD]   = EMU_S_ALWAYS | EMU_S(RTS) | EMU_S(SQD),
    [IBV_QPS_SQE]   = EMU_S_ALWAYS | EMU_S(RTS),
    [IBV_QPS_ERR]   = EMU_S_ALWAYS
};

/* What must be given for a transition */
static int emu_qp_needed_mask(const emu_qp_t *qp, enum ibv_qp_state to,
                              enum ibv_qp_state from)
{
    if ((to == IBV_QPS_RTR) && (qp->type == EMU_QPT_RC)) {
        return IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    } else if ((to == IBV_QPS_RTR) && (qp->type == EMU_QPT_DCT)) {
        return IBV_QP_PATH_MTU;
    } else if ((to == IBV_QPS_RTS) && (from == IBV_QPS_RTR) &&
               (qp->type == EMU_QPT_RC)) {
        return IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
               IBV_QP_RNR_RETRY;
    }
    return 0;
}

static int emu_qp_check_attr(const emu_qp_t *qp, const struct ibv_qp_attr *attr,
                             int mask)
{
    enum ibv_qp_state from = emu_qp_state(qp);
    enum ibv_qp_state to   = (mask & IBV_QP_STATE) ? attr->qp_state : from;
    int needed             = emu_qp_needed_mask(qp, to, from);

    if ((mask & IBV_QP_CUR_STATE) && (attr->cur_qp_state != from)) {
        return -EINVAL;
    }
    if ((mask & IBV_QP_STATE) &&
        ((to > IBV_QPS_ERR) || !(emu_qp_next_states[from] & (1u << to)) ||
         ((qp->type == EMU_QPT_DCT) && (to == IBV_QPS_RTS)) ||
         ((mask & needed) != needed))) {
        return -EINVAL;
    }
    if ((mask & IBV_QP_PORT) && (attr->port_num != 1)) {
        return -EINVAL;
    }
    if ((mask & IBV_QP_PATH_MTU) &&
        ((attr->path_mtu < IBV_MTU_256) ||
         (attr->path_mtu > emu_port_mtu(&emu_fabric->ports[qp->port])))) {
        return -EINVAL;
    }
    if (((mask & IBV_QP_TIMEOUT) && (attr->timeout > 31)) ||
        ((mask & IBV_QP_RETRY_CNT) && (attr->retry_cnt > 7)) ||
        ((mask & IBV_QP_RNR_RETRY) && (attr->rnr_retry > 7)) ||
        ((mask & IBV_QP_MIN_RNR_TIMER) && (attr->min_rnr_timer > 31)) ||
        ((mask & IBV_QP_MAX_QP_RD_ATOMIC) &&
         (attr->max_rd_atomic > EMU_MAX_RD_ATOMIC)) ||
        ((mask & IBV_QP_MAX_DEST_RD_ATOMIC) &&
         (attr->max_dest_rd_atomic > EMU_MAX_RD_ATOMIC))) {
        return -EINVAL;
    }
    return 0;
}

#define EMU_QP_COPY(_dst, _src, _mask, _flag, _field) \
    do { \
        if ((_mask) & (_flag)) { \
            (_dst)->_field = (_src)->_field; \
        } \
    } while (0)

static void emu_qp_copy_attr(struct ibv_qp_attr *dst,
                             const struct ibv_qp_attr *src, int mask)
{
    EMU_QP_COPY(dst, src, mask, IBV_QP_ACCESS_FLAGS, qp_access_flags);
    EMU_QP_COPY(dst, src, mask, IBV_QP_PKEY_INDEX, pkey_index);
    EMU_QP_COPY(dst, src, mask, IBV_QP_PORT, port_num);
    EMU_QP_COPY(dst, src, mask, IBV_QP_QKEY, qkey);
    EMU_QP_COPY(dst, src, mask, IBV_QP_AV, ah_attr);
    EMU_QP_COPY(dst, src, mask, IBV_QP_PATH_MTU, path_mtu);
    EMU_QP_COPY(dst, src, mask, IBV_QP_TIMEOUT, timeout);
    EMU_QP_COPY(dst, src, mask, IBV_QP_RETRY_CNT, retry_cnt);
    EMU_QP_COPY(dst, src, mask, IBV_QP_RNR_RETRY, rnr_retry);
    EMU_QP_COPY(dst, src, mask, IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
    EMU_QP_COPY(dst, src, mask, IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
    EMU_QP_COPY(dst, src, mask, IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
    EMU_QP_COPY(dst, src, mask, IBV_QP_PATH_MIG_STATE, path_mig_state);
    EMU_QP_COPY(dst, src, mask, IBV_QP_DEST_QPN, dest_qp_num);
}

static void emu_qp_enter(emu_qp_t *qp, const struct ibv_qp_attr *attr, int mask,
                         enum ibv_qp_state from, enum ibv_qp_state to)
{
    if ((mask & IBV_QP_RQ_PSN) && (to == IBV_QPS_RTR)) {
        qp->resp_psn     = attr->rq_psn & EMU_PSN_MASK;
        qp->known_rq_psn = qp->resp_psn;
    }
    if ((to == IBV_QPS_RTS) && (from == IBV_QPS_RTR)) {
        qp->req_psn      = (mask & IBV_QP_SQ_PSN) ?
                        (attr->sq_psn & EMU_PSN_MASK) : 0;
        qp->req_send     = qp->req_una = qp->req_max = qp->req_psn;
        qp->req_retry    = qp->attr.retry_cnt;
        qp->req_rnr      = qp->attr.rnr_retry;
        qp->known_sq_psn = qp->req_psn;
    }

    qp->req_state = to;
    if (qp->type != EMU_QPT_DCI) {
        qp->resp_state = to;
    }
}

/* The device is asked. @return -EIO, or 0; *is_done_p: the driver does not care */
static int emu_qp_command(const emu_qp_t *qp, const struct ibv_qp_attr *attr,
                          int mask, int *is_done_p)
{
    int is_end = (mask & IBV_QP_STATE) && ((attr->qp_state == IBV_QPS_RESET) ||
                                           (attr->qp_state == IBV_QPS_ERR));

    *is_done_p = 0;
    return is_end ? emu_nic_command_end(qp->port, qp->nic_gen, qp->qpn,
                                        is_done_p) :
                    emu_nic_command(qp->port, qp->nic_gen);
}

static void emu_qp_set_path(emu_qp_t *qp, const struct ibv_ah_attr *attr,
                            const uint8_t *rmac)
{
    emu_route_path(attr, &qp->path);
    if (rmac != NULL) {
        /* The command that has it need not say that the rest is there, too */
        qp->path.is_full = 1;
        memcpy(qp->path.rmac, rmac, sizeof(qp->path.rmac));
    }
}

int emu_qp_modify(emu_qp_t *qp, const struct ibv_qp_attr *attr, int mask)
{
    return emu_qp_modify_to(qp, attr, mask, NULL);
}

int emu_qp_modify_to(emu_qp_t *qp, const struct ibv_qp_attr *attr, int mask,
                     const uint8_t *rmac)
{
    enum ibv_qp_state from, to;
    int ret, is_done;

    ret = emu_qp_command(qp, attr, mask, &is_done);
    if ((ret != 0) || is_done) {
        return ret;
    }

    emu_lock(&qp->req_lock);
    emu_lock(&qp->resp_lock);
    from = emu_qp_state(qp);
    to   = (mask & IBV_QP_STATE) ? attr->qp_state : from;
    ret  = emu_qp_check_attr(qp, attr, mask);
    if (ret == 0) {
        if ((mask & IBV_QP_STATE) && (to == IBV_QPS_RESET)) {
            emu_qp_reset(qp);
        } else if ((mask & IBV_QP_STATE) && (to == IBV_QPS_ERR)) {
            emu_qp_fail_locked(qp);
        } else {
            emu_qp_copy_attr(&qp->attr, attr, mask);
            if (mask & IBV_QP_AV) {
                emu_qp_set_path(qp, &attr->ah_attr, rmac);
            }
            if (mask & IBV_QP_STATE) {
                emu_qp_enter(qp, attr, mask, from, to);
            }
        }
    }
    emu_unlock(&qp->resp_lock);
    if ((ret == 0) && (qp->req_state == IBV_QPS_RTS)) {
        emu_req_run(qp);
    }
    emu_unlock(&qp->req_lock);
    emu_run_deferred();
    return ret;
}
