/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages of the UD queue pair of a bus: posting and polling; starting the queue pair, also
 * after a failure, and its events. See varuna_ud.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ud.h"

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/sys/compiler.h>
#include <ucs/sys/math.h>
#include <errno.h>
#include <string.h>

/* Those of one message, and where they go */
typedef struct uct_varuna_ud_wrs {
    struct ibv_send_wr         wrs[UCT_VARUNA_FRAG_MAX];
    struct ibv_sge             sges[UCT_VARUNA_FRAG_MAX][2];
} uct_varuna_ud_wrs_t;


uct_varuna_ud_send_t *uct_varuna_ud_qp_get(uct_varuna_ud_qp_t *qp)
{
    return ((qp->posted - qp->completed) == UCT_VARUNA_UD_NUM_SENDS) ? NULL :
           &qp->sends[qp->posted % UCT_VARUNA_UD_NUM_SENDS];
}

static void uct_varuna_ud_fill_wr(const uct_varuna_ud_qp_t *qp,
                                  const uct_varuna_ud_send_t *send,
                                  const uct_varuna_ud_dest_t *dest, unsigned index,
                                  uct_varuna_ud_wrs_t *msg)
{
    struct ibv_send_wr *wr = &msg->wrs[index];
    struct ibv_sge *sge    = msg->sges[index];

    sge[0].addr          = (uintptr_t)&send->hdrs[index];
    sge[0].length        = sizeof(send->hdrs[index]);
    sge[0].lkey          = qp->mr->lkey;
    sge[1].addr          = (uintptr_t)(send->data + send->hdrs[index].offset);
    sge[1].length        = send->hdrs[index].size;
    sge[1].lkey          = qp->mr->lkey;
    memset(wr, 0, sizeof(*wr));
    wr->wr_id            = qp->posted;
    wr->next             = wr + 1;
    wr->sg_list          = sge;
    wr->num_sge          = 2;
    wr->opcode           = IBV_WR_SEND;
    wr->wr.ud.ah         = dest->ah;
    wr->wr.ud.remote_qpn = dest->addr.qp_num[0] | (dest->addr.qp_num[1] << 8) |
                           (dest->addr.qp_num[2] << 16);
    memcpy(&wr->wr.ud.remote_qkey, dest->addr.qkey, sizeof(dest->addr.qkey));
}

/* @return How many of @a count work requests the NIC has, or may have: a driver that fails
 * after it has queued all names none. */
static unsigned uct_varuna_ud_num_posted(const struct ibv_send_wr *wrs, unsigned count,
                                         int ret, const struct ibv_send_wr *bad)
{
    return ((ret == 0) || (bad == NULL)) ? count : (bad - wrs);
}

static void uct_varuna_ud_qp_repair(uct_varuna_ud_qp_t *qp);

static ucs_status_t uct_varuna_ud_refused(uct_varuna_ud_qp_t *qp, int ret,
                                          unsigned num_posted, unsigned count)
{
    ucs_debug("ibv_post_send(qpn=0x%x) failed after %u of %u: %s", qp->qp->qp_num,
              num_posted, count, strerror(ret));
    if (qp->has_failed) {
        uct_varuna_ud_qp_repair(qp); /* Starting it again has failed half-way */
    }

    /* Of a queue that is full although we count, completions make room */
    return ((ret == ENOMEM) && (qp->num_frags > 0)) ? UCS_ERR_NO_RESOURCE :
           UCS_ERR_IO_ERROR;
}

ucs_status_t uct_varuna_ud_qp_post(uct_varuna_ud_qp_t *qp, uct_varuna_ud_send_t *send,
                                   uct_varuna_ud_dest_t *dest, uint8_t am_id,
                                   size_t length)
{
    unsigned count          = uct_varuna_frag_count(dest->room, length);
    struct ibv_send_wr *bad = NULL;
    uct_varuna_ud_wrs_t msg;
    unsigned num_posted, i;
    int ret;

    if ((qp->num_frags + count) > qp->max_frags) {
        return UCS_ERR_NO_RESOURCE;
    }

    uct_varuna_frag_cut(send->hdrs, send->data, dest->sender, dest->number++, am_id,
                        dest->room, length);
    for (i = 0; i < count; ++i) {
        uct_varuna_ud_fill_wr(qp, send, dest, i, &msg);
    }

    msg.wrs[count - 1].next = NULL;

    ret        = ibv_post_send(qp->qp, msg.wrs, &bad);
    num_posted = uct_varuna_ud_num_posted(msg.wrs, count, ret, bad);
    if (num_posted > 0) {
        qp->left[qp->posted % UCT_VARUNA_UD_NUM_SENDS] = num_posted;
        qp->num_frags                                 += num_posted;
        dest->last                                     = ++qp->posted;
    }

    return (ret == 0) ? UCS_OK : uct_varuna_ud_refused(qp, ret, num_posted, count);
}

/* A queue pair whose send has failed sends nothing more until it is asked to. One whose NIC
 * is gone is flushed, and not repaired */
static void uct_varuna_ud_send_completed(uct_varuna_ud_qp_t *qp, const struct ibv_wc *wc)
{
    uint32_t number = wc->wr_id;
    uint8_t *left   = &qp->left[number % UCT_VARUNA_UD_NUM_SENDS];

    if (wc->status == IBV_WC_SUCCESS) {
        qp->has_failed = 0;
    } else {
        ucs_debug("a control message was not sent: %s", ibv_wc_status_str(wc->status));
        qp->has_failed |= (wc->status != IBV_WC_WR_FLUSH_ERR);
    }

    ucs_assert((*left > 0) && (qp->num_frags > 0));
    --qp->num_frags;
    if (--(*left) == 0) {
        qp->completed = number + 1;
    }
}

/* A NIC that is gone takes none, and sends no completions either. What it does not write
 * of the GRH is 0 (varuna_frag.h). */
static void uct_varuna_ud_qp_post_recv(uct_varuna_ud_qp_t *qp, unsigned index)
{
    struct ibv_sge sge = {
        .addr   = (uintptr_t)(qp->recvs + (index * qp->recv_size)),
        .length = qp->recv_size,
        .lkey   = qp->mr->lkey
    };
    struct ibv_recv_wr wr = {
        .wr_id   = UCT_VARUNA_UD_RECV | index,
        .sg_list = &sge,
        .num_sge = 1
    };
    struct ibv_recv_wr *bad;
    int ret;

    memset(qp->recvs + (index * qp->recv_size), 0, UCT_VARUNA_FRAG_GRH_LEN);
    ret = ibv_post_recv(qp->qp, &wr, &bad);
    if (ret != 0) {
        ucs_debug("ibv_post_recv(qpn=0x%x) failed: %s", qp->qp->qp_num, strerror(ret));
    }
}

static void uct_varuna_ud_received(uct_varuna_ud_qp_t *qp, const struct ibv_wc *wc,
                                   uct_varuna_ud_received_t received, void *arg)
{
    unsigned index  = wc->wr_id & ~UCT_VARUNA_UD_RECV;
    char *grh       = qp->recvs + (index * qp->recv_size);
    uct_varuna_frag_source_t source;
    ucs_status_t status;
    void *msg;
    uint8_t am_id;
    size_t length;

    if (wc->status != IBV_WC_SUCCESS) {
        return; /* The queue pair is in ERR: its NIC is gone, or it is repaired */
    }

    uct_varuna_frag_source_init(&source, (wc->wc_flags & IBV_WC_GRH) ? grh : NULL,
                                wc->slid, wc->src_qp);
    if (wc->byte_len >= UCT_VARUNA_FRAG_GRH_LEN) {
        status = uct_varuna_frag_take(&qp->frags, &source, grh + UCT_VARUNA_FRAG_GRH_LEN,
                                      wc->byte_len - UCT_VARUNA_FRAG_GRH_LEN, &am_id,
                                      &msg, &length);
        if (status == UCS_OK) {
            received(arg, am_id, msg, length);
        } else if (status != UCS_INPROGRESS) {
            ucs_debug("dropped a datagram of qp 0x%x: %s", wc->src_qp,
                      (status == UCS_ERR_IO_ERROR) ?
                      "its message is not as it was sent" : ucs_status_string(status));
        }
    }

    uct_varuna_ud_qp_post_recv(qp, index);
}

unsigned uct_varuna_ud_qp_progress(uct_varuna_ud_qp_t *qp,
                                   uct_varuna_ud_received_t received, void *arg)
{
    struct ibv_wc wcs[UCT_VARUNA_UD_MAX_POLL];
    int i, count;

    count = ibv_poll_cq(qp->cq, UCT_VARUNA_UD_MAX_POLL, wcs);
    for (i = 0; i < count; ++i) {
        if (wcs[i].wr_id & UCT_VARUNA_UD_RECV) {
            uct_varuna_ud_received(qp, &wcs[i], received, arg);
        } else {
            uct_varuna_ud_send_completed(qp, &wcs[i]);
        }
    }

    if (ucs_unlikely(qp->has_failed) && (count > 0)) {
        uct_varuna_ud_qp_repair(qp);
    }

    return ucs_max(count, 0);
}

/* --- Starting --- */

/* A queue pair that has failed is started again. In SQE, where only sends are refused, that
 * takes one command. The kernel's soft-RoCE enters ERR instead, from which only RESET
 * leads: what was sent, received or posted until then is lost, and its senders repeat it. */

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
static void uct_varuna_ud_qp_repair(uct_varuna_ud_qp_t *qp)
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
