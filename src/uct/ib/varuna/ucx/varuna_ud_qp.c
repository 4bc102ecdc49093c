/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The UD queue pair of a bus. See varuna_ud_qp.h.
 *
 *     buffers:  send 0, send 1, ...                  a message, and the headers of its
 *                                                    fragments
 *               receive 0, receive 1, ...            GRH, fragment
 *
 * A queue pair that has failed is started again. In SQE, where only sends are refused, that
 * takes one command. The kernel's soft-RoCE enters ERR instead, from which only RESET
 * leads: what was sent, received or posted until then is lost, and its senders repeat it.
 *
 * Sends complete in order, so the buffer of message n is n modulo their number, and a
 * fragment's work request names the message that it is the last of.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ud_qp.h"
#include "varuna_compat.h"
#include <uct/ib/varuna/core/varuna_secret.h>

#include <uct/ib/base/ib_iface.h>
#include <ucs/arch/cpu.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <ucs/type/init_once.h>
#include <fcntl.h>
#include <string.h>

#define UCT_VARUNA_UD_GRH_LEN        UCT_VARUNA_FRAG_GRH_LEN
#define UCT_VARUNA_UD_MAX_POLL       16

/* Work requests of receives; those of sends are numbers of messages */
#define UCT_VARUNA_UD_RECV           UCS_BIT(63)

/* Of all queue pairs of this process */
static uint32_t uct_varuna_ud_qkey;

static ucs_status_t uct_varuna_ud_make_qkey(void)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;
    static ucs_status_t status;
    uint32_t qkey;

    UCS_INIT_ONCE(&once) {
        status = uct_varuna_secret_random(&qkey, sizeof(qkey));
        /* With the highest bit, a sender's own key would be sent */
        uct_varuna_ud_qkey = qkey & UCS_MASK(31);
    }

    return status;
}

static ucs_status_t uct_varuna_ud_alloc(uct_varuna_ud_qp_t *qp, struct ibv_pd *pd,
                                        size_t mtu)
{
    size_t sends = UCT_VARUNA_UD_NUM_SENDS * sizeof(*qp->sends);
    size_t length;

    qp->recv_size = ucs_align_up(UCT_VARUNA_UD_GRH_LEN + mtu, UCS_SYS_CACHE_LINE_SIZE);
    length        = ucs_align_up(sends + (UCT_VARUNA_UD_NUM_RECVS * qp->recv_size),
                                 ucs_get_page_size());
    if (ucs_posix_memalign((void**)&qp->sends, ucs_get_page_size(), length,
                           "varuna_ud") != 0) {
        return UCS_ERR_NO_MEMORY;
    }

    qp->recvs = UCS_PTR_BYTE_OFFSET(qp->sends, sends);
    qp->mr    = ibv_reg_mr(pd, qp->sends, length, IBV_ACCESS_LOCAL_WRITE);
    if (qp->mr == NULL) {
        ucs_error("ibv_reg_mr(length=%zu) of a control interface failed: %m", length);
        ucs_free(qp->sends);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

static ucs_status_t uct_varuna_ud_create_cq(uct_varuna_ud_qp_t *qp,
                                            struct ibv_context *context, int length)
{
    ucs_status_t status;

    qp->channel = ibv_create_comp_channel(context);
    if (qp->channel == NULL) {
        ucs_error("ibv_create_comp_channel() of a control interface failed: %m");
        return UCS_ERR_IO_ERROR;
    }

    status = ucs_sys_fcntl_modfl(qp->channel->fd, O_NONBLOCK, 0);
    if (status != UCS_OK) {
        goto err;
    }

    qp->cq = ibv_create_cq(context, length, NULL, qp->channel, 0);
    if (qp->cq == NULL) {
        ucs_error("ibv_create_cq(cqe=%d) of a control interface failed: %m", length);
        status = UCS_ERR_IO_ERROR;
        goto err;
    }

    return UCS_OK;

err:
    ibv_destroy_comp_channel(qp->channel);
    return status;
}

static ucs_status_t uct_varuna_ud_start(uct_varuna_ud_qp_t *qp)
{
    struct ibv_qp_attr attr;

    memset(&attr, 0, sizeof(attr));
    attr.qp_state   = IBV_QPS_INIT;
    attr.pkey_index = qp->pkey_index;
    attr.port_num   = qp->port_num;
    attr.qkey       = uct_varuna_ud_qkey;
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

/* A NIC that is gone takes none, and sends no completions either. What it does not write
 * of the GRH is 0 (varuna_frag.h). */
static void uct_varuna_ud_post_recv(uct_varuna_ud_qp_t *qp, unsigned index)
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

    memset(qp->recvs + (index * qp->recv_size), 0, UCT_VARUNA_UD_GRH_LEN);
    ret = ibv_post_recv(qp->qp, &wr, &bad);
    if (ret != 0) {
        ucs_debug("ibv_post_recv(qpn=0x%x) failed: %s", qp->qp->qp_num, strerror(ret));
    }
}

static void uct_varuna_ud_post_recvs(uct_varuna_ud_qp_t *qp)
{
    unsigned i;

    for (i = 0; i < UCT_VARUNA_UD_NUM_RECVS; ++i) {
        uct_varuna_ud_post_recv(qp, i);
    }
}

static void uct_varuna_ud_fill_addr(uct_varuna_ud_qp_t *qp)
{
    uint32_t num = qp->qp->qp_num;

    qp->addr.qp_num[0] = num;
    qp->addr.qp_num[1] = num >> 8;
    qp->addr.qp_num[2] = num >> 16;
    memcpy(qp->addr.qkey, &uct_varuna_ud_qkey, sizeof(qp->addr.qkey));
}

/* A port that is down may have none */
static size_t uct_varuna_ud_mtu(uct_ib_iface_t *ib)
{
    enum ibv_mtu mtu = uct_ib_iface_port_attr(ib)->active_mtu;

    return 128u << ucs_max(mtu, IBV_MTU_256);
}

ucs_status_t uct_varuna_ud_qp_create(uct_ib_iface_t *ib, uct_varuna_ud_qp_t *qp)
{
    uct_ib_md_t *md                   = uct_ib_iface_md(ib);
    size_t mtu                        = uct_varuna_ud_mtu(ib);
    struct ibv_qp_init_attr init_attr = {
        .qp_type          = IBV_QPT_UD,
        .cap.max_recv_wr  = UCT_VARUNA_UD_NUM_RECVS,
        .cap.max_recv_sge = 1,
        .cap.max_send_sge = 2
    };
    ucs_status_t status;

    memset(qp, 0, sizeof(*qp));
    qp->room = uct_varuna_frag_room(mtu);
    if (qp->room == 0) {
        ucs_error("an MTU of %zu bytes is too small for control messages", mtu);
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_varuna_ud_make_qkey();
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ud_alloc(qp, md->pd, mtu);
    if (status != UCS_OK) {
        return status;
    }

    init_attr.cap.max_send_wr = UCT_VARUNA_UD_NUM_SENDS *
                                ucs_div_round_up(UCT_VARUNA_FRAG_MAX_MSG, qp->room);
    status = uct_varuna_ud_create_cq(qp, md->dev.ibv_context,
                                     init_attr.cap.max_send_wr +
                                     UCT_VARUNA_UD_NUM_RECVS);
    if (status != UCS_OK) {
        goto err_free;
    }

    init_attr.send_cq = qp->cq;
    init_attr.recv_cq = qp->cq;
    qp->qp            = ibv_create_qp(md->pd, &init_attr);
    if (qp->qp == NULL) {
        ucs_error("ibv_create_qp(UD, send=%u) of a control interface failed: %m",
                  init_attr.cap.max_send_wr);
        status = UCS_ERR_IO_ERROR;
        goto err_destroy_cq;
    }

    qp->pkey_index = ib->pkey_index;
    qp->port_num   = ib->config.port_num;
    status         = uct_varuna_ud_start(qp);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    uct_varuna_ud_fill_addr(qp);
    uct_varuna_ud_post_recvs(qp);
    return UCS_OK;

err_destroy_qp:
    ibv_destroy_qp(qp->qp);
err_destroy_cq:
    ibv_destroy_cq(qp->cq);
    ibv_destroy_comp_channel(qp->channel);
err_free:
    ibv_dereg_mr(qp->mr);
    ucs_free(qp->sends);
    return status;
}

void uct_varuna_ud_qp_destroy(uct_varuna_ud_qp_t *qp)
{
    ibv_destroy_qp(qp->qp);
    ibv_destroy_cq(qp->cq);
    ibv_destroy_comp_channel(qp->channel);
    ibv_dereg_mr(qp->mr);
    ucs_free(qp->sends);
}

uct_varuna_ud_send_t *uct_varuna_ud_qp_get(uct_varuna_ud_qp_t *qp)
{
    return ((qp->posted - qp->completed) == UCT_VARUNA_UD_NUM_SENDS) ? NULL :
           &qp->sends[qp->posted % UCT_VARUNA_UD_NUM_SENDS];
}

/* --- Starting again --- */

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

    status = uct_varuna_ud_start(qp);
    if (status == UCS_OK) {
        uct_varuna_ud_post_recvs(qp);
        ucs_debug("qp 0x%x of a control interface was started again", qp->qp->qp_num);
    }

    return status;
}

/* A send has failed. Its completion may be seen before the queue pair's new state is, so
 * one that seems to work is looked at again. */
static void uct_varuna_ud_repair(uct_varuna_ud_qp_t *qp)
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

ucs_status_t uct_varuna_ud_qp_post(uct_varuna_ud_qp_t *qp, uct_varuna_ud_send_t *send,
                                   uct_varuna_ud_dest_t *dest, uint8_t am_id,
                                   size_t length)
{
    struct ibv_send_wr wrs[UCT_VARUNA_FRAG_MAX];
    struct ibv_sge sges[UCT_VARUNA_FRAG_MAX][2];
    struct ibv_send_wr *bad;
    unsigned count, i;
    uint32_t qkey;
    int ret;

    memcpy(&qkey, dest->addr.qkey, sizeof(qkey));
    memset(wrs, 0, sizeof(wrs));
    count = uct_varuna_frag_cut(send->hdrs, dest->sender, dest->number++, am_id,
                                dest->room, length);
    for (i = 0; i < count; ++i) {
        sges[i][0].addr          = (uintptr_t)&send->hdrs[i];
        sges[i][0].length        = sizeof(send->hdrs[i]);
        sges[i][0].lkey          = qp->mr->lkey;
        sges[i][1].addr          = (uintptr_t)(send->data + send->hdrs[i].offset);
        sges[i][1].length        = send->hdrs[i].size;
        sges[i][1].lkey          = qp->mr->lkey;
        wrs[i].wr_id             = qp->posted;
        wrs[i].next              = &wrs[i + 1];
        wrs[i].sg_list           = sges[i];
        wrs[i].num_sge           = (send->hdrs[i].size == 0) ? 1 : 2;
        wrs[i].opcode            = IBV_WR_SEND;
        wrs[i].wr.ud.ah          = dest->ah;
        wrs[i].wr.ud.remote_qpn  = dest->addr.qp_num[0] | (dest->addr.qp_num[1] << 8) |
                                   (dest->addr.qp_num[2] << 16);
        wrs[i].wr.ud.remote_qkey = qkey;
    }

    wrs[count - 1].next       = NULL;
    wrs[count - 1].send_flags = IBV_SEND_SIGNALED;

    ret = ibv_post_send(qp->qp, wrs, &bad);
    if (ret != 0) {
        /* If some are posted, the others' place in the queue is not needed */
        ucs_debug("ibv_post_send(qpn=0x%x) failed: %s", qp->qp->qp_num, strerror(ret));
        if (qp->has_failed) {
            uct_varuna_ud_repair(qp); /* Starting it again has failed half-way */
        }
        return UCS_ERR_IO_ERROR;
    }

    ++qp->posted;
    return UCS_OK;
}

/* A queue pair whose send has failed sends nothing more until it is asked to. One whose NIC
 * is gone is flushed, and not repaired */
static void uct_varuna_ud_send_completed(uct_varuna_ud_qp_t *qp, const struct ibv_wc *wc)
{
    if (wc->status == IBV_WC_SUCCESS) {
        qp->has_failed = 0;
    } else {
        ucs_debug("a control message was not sent: %s", ibv_wc_status_str(wc->status));
        qp->has_failed |= (wc->status != IBV_WC_WR_FLUSH_ERR);
    }

    /* Fragments that fail are reported one by one */
    qp->completed = (uint32_t)wc->wr_id + 1;
}

static void uct_varuna_ud_received(uct_varuna_ud_qp_t *qp, const struct ibv_wc *wc,
                                   uct_varuna_ud_received_t received, void *arg)
{
    unsigned index  = wc->wr_id & ~UCT_VARUNA_UD_RECV;
    const char *grh = qp->recvs + (index * qp->recv_size);
    uct_varuna_frag_source_t source;
    const void *msg;
    uint8_t am_id;
    size_t length;

    if (wc->status != IBV_WC_SUCCESS) {
        return; /* The queue pair is in ERR: its NIC is gone, or it is repaired */
    }

    uct_varuna_frag_source_init(&source, (wc->wc_flags & IBV_WC_GRH) ? grh : NULL,
                                wc->slid, wc->src_qp);
    if ((wc->byte_len >= UCT_VARUNA_UD_GRH_LEN) &&
        (uct_varuna_frag_take(&qp->frags, &source, grh + UCT_VARUNA_UD_GRH_LEN,
                              wc->byte_len - UCT_VARUNA_UD_GRH_LEN, &am_id, &msg,
                              &length) == UCS_OK)) {
        received(arg, am_id, msg, length);
    }

    uct_varuna_ud_post_recv(qp, index);
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
        uct_varuna_ud_repair(qp);
    }

    return ucs_max(count, 0);
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
