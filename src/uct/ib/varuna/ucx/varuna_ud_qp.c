/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The UD queue pair of a bus. See varuna_ud_qp.h.
 *
 *     buffers:  send 0, send 1, ...                  a message, and the headers of its
 *                                                    fragments
 *               receive 0, receive 1, ...            GRH, fragment
 *
 * Sends complete in order, so the buffer of message n is n modulo their number. Each
 * fragment completes and names its message: the buffer is free when all have that were
 * posted, so that the NIC never sends what was written for another message.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ud_qp.h"
#include "varuna_compat.h"
#include <uct/ib/varuna/core/varuna_secret.h>

#include <uct/ib/base/ib_iface.h>
#include <ucs/arch/cpu.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/sys.h>
#include <ucs/type/init_once.h>
#include <fcntl.h>
#include <string.h>

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

/* @return How many datagrams the longest message has, in paths of our own MTU. Peers may
 * have shorter ones. */
static unsigned uct_varuna_ud_max_frags(const uct_varuna_ud_qp_t *qp,
                                        const uct_ib_iface_t *ib)
{
    size_t room = uct_varuna_frag_room(128u << ib->config.path_mtu);

    return uct_varuna_frag_count((room == 0) ? qp->room : ucs_min(room, qp->room),
                                 UCT_VARUNA_FRAG_MAX_MSG);
}

static ucs_status_t uct_varuna_ud_alloc(uct_varuna_ud_qp_t *qp, struct ibv_pd *pd,
                                        size_t mtu)
{
    size_t sends = UCT_VARUNA_UD_NUM_SENDS * sizeof(*qp->sends);
    size_t length;

    qp->recv_size = ucs_align_up(UCT_VARUNA_FRAG_GRH_LEN + mtu, UCS_SYS_CACHE_LINE_SIZE);
    length        = ucs_align_up(sends + (qp->num_recvs * qp->recv_size),
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

static void uct_varuna_ud_fill_addr(uct_varuna_ud_qp_t *qp)
{
    uint32_t num = qp->qp->qp_num;

    qp->addr.qp_num[0] = num;
    qp->addr.qp_num[1] = num >> 8;
    qp->addr.qp_num[2] = num >> 16;
    memcpy(qp->addr.qkey, &qp->qkey, sizeof(qp->addr.qkey));
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
        .sq_sig_all       = 1,
        .cap.max_recv_sge = 1,
        .cap.max_send_sge = 2
    };
    ucs_status_t status;
    unsigned frags;

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

    frags         = uct_varuna_ud_max_frags(qp, ib);
    qp->max_frags = UCT_VARUNA_UD_NUM_SENDS * frags;
    qp->num_recvs = ucs_min(UCT_VARUNA_UD_NUM_RECVS * frags, UCT_VARUNA_UD_MAX_RECVS);
    status        = uct_varuna_frags_init(&qp->frags);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ud_alloc(qp, md->pd, mtu);
    if (status != UCS_OK) {
        goto err_frags;
    }

    status = uct_varuna_ud_create_cq(qp, md->dev.ibv_context,
                                     qp->max_frags + qp->num_recvs);
    if (status != UCS_OK) {
        goto err_free;
    }

    init_attr.send_cq         = qp->cq;
    init_attr.recv_cq         = qp->cq;
    init_attr.cap.max_send_wr = qp->max_frags;
    init_attr.cap.max_recv_wr = qp->num_recvs;
    qp->qp                    = ibv_create_qp(md->pd, &init_attr);
    if (qp->qp == NULL) {
        ucs_error("ibv_create_qp(UD, send=%u, receive=%u) of a control interface failed: "
                  "%m", qp->max_frags, qp->num_recvs);
        status = UCS_ERR_IO_ERROR;
        goto err_destroy_cq;
    }

    qp->pkey_index = ib->pkey_index;
    qp->port_num   = ib->config.port_num;
    qp->qkey       = uct_varuna_ud_qkey;
    status         = uct_varuna_ud_qp_start(qp);
    if (status != UCS_OK) {
        goto err_destroy_qp;
    }

    uct_varuna_ud_fill_addr(qp);
    return UCS_OK;

err_destroy_qp:
    ibv_destroy_qp(qp->qp);
err_destroy_cq:
    ibv_destroy_cq(qp->cq);
    ibv_destroy_comp_channel(qp->channel);
err_free:
    ibv_dereg_mr(qp->mr);
    ucs_free(qp->sends);
err_frags:
    uct_varuna_frags_cleanup(&qp->frags);
    return status;
}

void uct_varuna_ud_qp_destroy(uct_varuna_ud_qp_t *qp)
{
    ibv_destroy_qp(qp->qp);
    ibv_destroy_cq(qp->cq);
    ibv_destroy_comp_channel(qp->channel);
    ibv_dereg_mr(qp->mr);
    ucs_free(qp->sends);
    uct_varuna_frags_cleanup(&qp->frags);
}
