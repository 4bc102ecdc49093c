/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The interface of the bus: its operations, sending, and its queue pair. See varuna_ud.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ud.h"
#include "varuna_compat.h"
#include "varuna_random.h"

#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>
#include <uct/ib/base/ib_iface.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <errno.h>
#include <string.h>
#include <ucs/arch/cpu.h>
#include <ucs/sys/sys.h>
#include <ucs/type/init_once.h>
#include <fcntl.h>

typedef struct uct_varuna_ud_iface {
    uct_base_iface_t           super;
    uct_iface_h                data;
    uct_varuna_ud_qp_t         qp;
} uct_varuna_ud_iface_t;

typedef struct uct_varuna_ud_ep {
    uct_base_ep_t              super;
    uct_varuna_ud_dest_t       dest;
} uct_varuna_ud_ep_t;

UCS_CLASS_DECLARE_NEW_FUNC(uct_varuna_ud_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_varuna_ud_ep_t, uct_ep_t);
static UCS_CLASS_DECLARE_DELETE_FUNC(uct_varuna_ud_iface_t, uct_iface_t);

static uct_varuna_ud_iface_t *uct_varuna_ud_iface(uct_iface_h tl_iface)
{
    return ucs_derived_of(tl_iface, uct_varuna_ud_iface_t);
}

/* The port's address as UCX writes it, whose format was checked (varuna_ib_addr.h). UCX's
 * function that reads it is not exported by all builds.
 * @return The path's MTU, as far as the address limits it. */
static size_t uct_varuna_ud_read_addr(const uint8_t *pos, uint16_t *lid,
                                      union ibv_gid *gid)
{
    uint8_t flags = *(pos++);
    uint16_t subnet;

    *lid = 0;
    if (flags & UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH) {
        memcpy(gid, pos, sizeof(*gid));
        pos += sizeof(*gid);
    } else {
        gid->global.subnet_prefix = UCT_IB_LINK_LOCAL_PREFIX;
        gid->global.interface_id  = 0;
        memcpy(lid, pos, sizeof(*lid));
        pos += sizeof(*lid);
        if (flags & UCT_IB_ADDRESS_FLAG_IF_ID) {
            memcpy(&gid->global.interface_id, pos, sizeof(uint64_t));
            pos += sizeof(uint64_t);
        }

        if (flags & UCT_IB_ADDRESS_FLAG_SUBNET16) {
            memcpy(&subnet, pos, sizeof(subnet));
            gid->global.subnet_prefix = UCT_IB_SITE_LOCAL_PREFIX |
                                        ((uint64_t)subnet << 48);
            pos += sizeof(subnet);
        } else if (flags & UCT_IB_ADDRESS_FLAG_SUBNET64) {
            memcpy(&gid->global.subnet_prefix, pos, sizeof(uint64_t));
            pos += sizeof(uint64_t);
        }
    }

    return (flags & UCT_IB_ADDRESS_FLAG_PATH_MTU) ? (128u << *pos) : SIZE_MAX;
}

/* As UCX fills it for the first path of a connection. @return the path's MTU */
static size_t uct_varuna_ud_fill_ah(const uct_ib_iface_t *ib,
                                    const uct_device_addr_t *addr,
                                    struct ibv_ah_attr *attr)
{
    union ibv_gid gid;
    uint16_t lid;
    size_t mtu;

    mtu = uct_varuna_ud_read_addr((const uint8_t*)addr, &lid, &gid);
    memset(attr, 0, sizeof(*attr));
    attr->sl            = ib->config.sl;
    attr->port_num      = ib->config.port_num;
    attr->dlid          = lid | ib->path_bits[0];
    attr->src_path_bits = ib->path_bits[0];
    if (ib->config.force_global_addr ||
        (ib->gid_info.gid.global.subnet_prefix != gid.global.subnet_prefix)) {
        attr->is_global         = 1;
        attr->grh.dgid          = gid;
        attr->grh.sgid_index    = ib->gid_info.gid_index;
        attr->grh.hop_limit     = ib->config.hop_limit;
        attr->grh.traffic_class = ib->config.traffic_class;
    }

    return ucs_min(mtu, 128u << ib->config.path_mtu);
}

void uct_varuna_ah_init(uct_varuna_ah_t *ah, uct_iface_h iface,
                        const uct_device_addr_t *addr)
{
    uct_ib_iface_t *ib = ucs_derived_of(iface, uct_ib_iface_t);

    ah->pd = uct_ib_iface_md(ib)->pd;
    (void)uct_varuna_ud_fill_ah(ib, addr, &ah->attr);
}

ucs_status_t uct_varuna_ah_try(const uct_varuna_ah_t *ah)
{
    struct ibv_ah_attr attr = ah->attr;
    struct ibv_ah *created  = ibv_create_ah(ah->pd, &attr);

    if (created == NULL) {
        return (errno == ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_UNREACHABLE;
    }

    ibv_destroy_ah(created);
    return UCS_OK;
}

static UCS_CLASS_INIT_FUNC(uct_varuna_ud_ep_t, const uct_ep_params_t *params)
{
    uct_varuna_ud_iface_t *iface = uct_varuna_ud_iface(params->iface);
    uct_ib_iface_t *ib           = ucs_derived_of(iface->data, uct_ib_iface_t);
    struct ibv_ah_attr ah_attr;
    ucs_status_t status;
    size_t mtu;

    UCS_CLASS_CALL_SUPER_INIT(uct_base_ep_t, &iface->super);

    memcpy(&self->dest.addr, params->iface_addr, sizeof(self->dest.addr));
    mtu               = uct_varuna_ud_fill_ah(ib, params->dev_addr, &ah_attr);
    self->dest.last   = 0;
    self->dest.number = 0;
    self->dest.room   = ucs_min(uct_varuna_frag_room(mtu), iface->qp.room);
    if (self->dest.room == 0) {
        return UCS_ERR_UNREACHABLE;
    }

    status = uct_varuna_random_number(&self->dest.sender);
    if (status != UCS_OK) {
        return status;
    }

    self->dest.ah = ibv_create_ah(uct_ib_iface_md(ib)->pd, &ah_attr);
    if (self->dest.ah == NULL) {
        ucs_debug("ibv_create_ah(dlid=%d) failed: %m", ah_attr.dlid);
        return UCS_ERR_UNREACHABLE;
    }

    return UCS_OK;
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_ud_ep_t)
{
    ibv_destroy_ah(self->dest.ah);
}

UCS_CLASS_DEFINE(uct_varuna_ud_ep_t, uct_base_ep_t)
UCS_CLASS_DEFINE_NEW_FUNC(uct_varuna_ud_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DEFINE_DELETE_FUNC(uct_varuna_ud_ep_t, uct_ep_t);

static ssize_t uct_varuna_ud_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                                         uct_pack_callback_t pack_cb, void *arg,
                                         unsigned flags)
{
    uct_varuna_ud_ep_t *ep       = ucs_derived_of(tl_ep, uct_varuna_ud_ep_t);
    uct_varuna_ud_iface_t *iface = uct_varuna_ud_iface(tl_ep->iface);
    uct_varuna_ud_send_t *send;
    ucs_status_t status;
    size_t length;

    send = uct_varuna_ud_qp_get(&iface->qp);
    if (send == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    length = pack_cb(send->data, arg);
    status = uct_varuna_ud_qp_post(&iface->qp, send, &ep->dest, id, length);
    return (status == UCS_OK) ? (ssize_t)length : (ssize_t)status;
}

int uct_varuna_ud_is_drained(uct_ep_h tl_ep, unsigned kind)
{
    const uct_varuna_ud_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_ud_ep_t);

    return (int32_t)(uct_varuna_ud_iface(tl_ep->iface)->qp.completed -
                     ep->dest.last) >= 0;
}

int uct_varuna_ud_has_input(uct_iface_h iface)
{
    return 1;
}

static ucs_status_t uct_varuna_ud_ep_flush(uct_ep_h ep, unsigned flags,
                                           uct_completion_t *comp)
{
    return uct_varuna_ud_is_drained(ep, 0) ? UCS_OK : UCS_INPROGRESS;
}

static ucs_status_t uct_varuna_ud_iface_flush(uct_iface_h tl_iface, unsigned flags,
                                              uct_completion_t *comp)
{
    const uct_varuna_ud_qp_t *qp = &uct_varuna_ud_iface(tl_iface)->qp;

    return (qp->completed == qp->posted) ? UCS_OK : UCS_INPROGRESS;
}

static void uct_varuna_ud_iface_received(void *arg, uint8_t am_id, void *msg,
                                         size_t length)
{
    uct_varuna_ud_iface_t *iface = arg;

    if (am_id < UCT_AM_ID_MAX) {
        (void)uct_iface_invoke_am(&iface->super, am_id, msg, length, 0);
    }
}

static unsigned uct_varuna_ud_iface_progress(uct_iface_h tl_iface)
{
    uct_varuna_ud_iface_t *iface = uct_varuna_ud_iface(tl_iface);

    return uct_varuna_ud_qp_progress(&iface->qp, uct_varuna_ud_iface_received, iface);
}

static void uct_varuna_ud_iface_progress_enable(uct_iface_h tl_iface, unsigned flags)
{
    uct_base_iface_progress_enable_cb(&uct_varuna_ud_iface(tl_iface)->super,
                                      (ucs_callback_t)uct_varuna_ud_iface_progress,
                                      flags);
}

static ucs_status_t uct_varuna_ud_iface_event_fd_get(uct_iface_h tl_iface, int *fd_p)
{
    *fd_p = uct_varuna_ud_iface(tl_iface)->qp.channel->fd;
    return UCS_OK;
}

static ucs_status_t uct_varuna_ud_iface_event_arm(uct_iface_h tl_iface,
                                                  unsigned events)
{
    return uct_varuna_ud_qp_arm(&uct_varuna_ud_iface(tl_iface)->qp, events != 0);
}

static ucs_status_t uct_varuna_ud_iface_query(uct_iface_h tl_iface,
                                              uct_iface_attr_t *attr)
{
    uct_varuna_ud_iface_t *iface = uct_varuna_ud_iface(tl_iface);
    uct_iface_attr_t data_attr;
    ucs_status_t status;

    status = uct_iface_query(iface->data, &data_attr);
    if (status != UCS_OK) {
        return status;
    }

    memset(attr, 0, sizeof(*attr));
    attr->cap.flags        = UCT_IFACE_FLAG_AM_BCOPY |
                             UCT_IFACE_FLAG_CONNECT_TO_IFACE |
                             UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_CB_ASYNC;
    attr->cap.event_flags  = UCT_IFACE_FLAG_EVENT_SEND_COMP |
                             UCT_IFACE_FLAG_EVENT_RECV | UCT_IFACE_FLAG_EVENT_FD;
    attr->cap.am.max_bcopy = UCT_VARUNA_FRAG_MAX_MSG;
    attr->iface_addr_len   = sizeof(uct_varuna_ud_addr_t);
    attr->device_addr_len  = data_attr.device_addr_len;
    attr->dev_num_paths    = 1;
    return UCS_OK;
}

static ucs_status_t uct_varuna_ud_iface_get_address(uct_iface_h tl_iface,
                                                    uct_iface_addr_t *addr)
{
    memcpy(addr, &uct_varuna_ud_iface(tl_iface)->qp.addr, sizeof(uct_varuna_ud_addr_t));
    return UCS_OK;
}

static ucs_status_t
uct_varuna_ud_iface_get_device_address(uct_iface_h tl_iface, uct_device_addr_t *addr)
{
    return uct_iface_get_device_address(uct_varuna_ud_iface(tl_iface)->data, addr);
}

static int uct_varuna_ud_reachable(const uct_iface_h tl_iface,
                                   const uct_device_addr_t *device_addr,
                                   const uct_iface_addr_t *iface_addr)
{
    return uct_iface_is_reachable(uct_varuna_ud_iface(tl_iface)->data, device_addr, NULL);
}

UCT_VARUNA_COMPAT_REACHABLE(uct_varuna_ud_is_reachable_v2, uct_varuna_ud_reachable)

static UCS_F_MAYBE_UNUSED int
uct_varuna_ud_connected(uct_ep_h ep, const uct_iface_addr_t *iface_addr)
{
    return 1;
}

UCT_VARUNA_COMPAT_CONNECTED(uct_varuna_ud_is_connected, uct_varuna_ud_connected)

static uct_iface_ops_t uct_varuna_ud_iface_ops = {
    .ep_am_bcopy              = uct_varuna_ud_ep_am_bcopy,
    .ep_flush                 = uct_varuna_ud_ep_flush,
    .ep_fence                 = (void*)ucs_empty_function_return_success,
    .ep_check                 = (void*)ucs_empty_function_return_success,
    .ep_pending_add           = (void*)ucs_empty_function_return_busy,
    .ep_pending_purge         = (void*)ucs_empty_function,
    .ep_create                = UCS_CLASS_NEW_FUNC_NAME(uct_varuna_ud_ep_t),
    .ep_destroy               = UCS_CLASS_DELETE_FUNC_NAME(uct_varuna_ud_ep_t),
    .iface_flush              = uct_varuna_ud_iface_flush,
    .iface_fence              = (void*)ucs_empty_function_return_success,
    .iface_progress_enable    = uct_varuna_ud_iface_progress_enable,
    .iface_progress_disable   = uct_base_iface_progress_disable,
    .iface_progress           = uct_varuna_ud_iface_progress,
    .iface_event_fd_get       = uct_varuna_ud_iface_event_fd_get,
    .iface_event_arm          = uct_varuna_ud_iface_event_arm,
    .iface_close              = UCS_CLASS_DELETE_FUNC_NAME(uct_varuna_ud_iface_t),
    .iface_query              = uct_varuna_ud_iface_query,
    .iface_get_address        = uct_varuna_ud_iface_get_address,
    .iface_get_device_address = uct_varuna_ud_iface_get_device_address,
    .iface_is_reachable       = uct_varuna_ud_reachable
};

static uct_iface_internal_ops_t uct_varuna_ud_internal_ops = {
    .iface_estimate_perf = uct_base_iface_estimate_perf,
    .iface_vfs_refresh   = (void*)ucs_empty_function,
    .ep_query            = (void*)ucs_empty_function_return_unsupported,
    .ep_invalidate       = (void*)ucs_empty_function_return_unsupported,
    UCT_VARUNA_COMPAT_IFACE_OPS(uct_varuna_ud_is_reachable_v2,
                                uct_varuna_ud_is_connected)
};

static ucs_status_t uct_varuna_ud_qp_create(uct_ib_iface_t *ib, uct_varuna_ud_qp_t *qp);
static void uct_varuna_ud_qp_destroy(uct_varuna_ud_qp_t *qp);

static UCS_CLASS_INIT_FUNC(uct_varuna_ud_iface_t, uct_iface_h data,
                           uct_worker_h worker, const uct_iface_params_t *params,
                           const uct_iface_config_t *config)
{
    UCS_CLASS_CALL_SUPER_INIT(uct_base_iface_t, &uct_varuna_ud_iface_ops,
                              &uct_varuna_ud_internal_ops,
                              ucs_derived_of(data, uct_base_iface_t)->md, worker,
                              params, config UCS_STATS_ARG(NULL)
                              UCS_STATS_ARG("varuna_ud"));

    self->data = data;
    return uct_varuna_ud_qp_create(ucs_derived_of(data, uct_ib_iface_t), &self->qp);
}

static UCS_CLASS_CLEANUP_FUNC(uct_varuna_ud_iface_t)
{
    uct_base_iface_progress_disable(&self->super.super,
                                    UCT_PROGRESS_SEND | UCT_PROGRESS_RECV);
    uct_varuna_ud_qp_destroy(&self->qp);
}

UCS_CLASS_DEFINE(uct_varuna_ud_iface_t, uct_base_iface_t);
static UCS_CLASS_DEFINE_DELETE_FUNC(uct_varuna_ud_iface_t, uct_iface_t);

ucs_status_t uct_varuna_ud_open(uct_iface_h data, uct_worker_h worker,
                                const uct_iface_params_t *params,
                                uct_iface_h *iface_p)
{
    uct_iface_config_t *config;
    ucs_status_t status;

    /* Of any transport: what all have in common is read from it */
    status = uct_md_iface_config_read(ucs_derived_of(data, uct_base_iface_t)->md,
                                      "rc_verbs", NULL, NULL, &config);
    if (status != UCS_OK) {
        return status;
    }

    status = UCS_CLASS_NEW(uct_varuna_ud_iface_t, iface_p, data, worker, params, config);
    uct_config_release(config);
    return status;
}

/* --- The queue pair --- */

/*
 *     buffers:  send 0, send 1, ...                  a message, and the headers of its
 *                                                    fragments
 *               receive 0, receive 1, ...            GRH, fragment
 *
 * Sends complete in order, so the buffer of message n is n modulo their number. Each
 * fragment completes and names its message: the buffer is free when all have that were
 * posted, so that the NIC never sends what was written for another message. */

/* Of all queue pairs of this process */
static uint32_t uct_varuna_ud_qkey;

static ucs_status_t uct_varuna_ud_make_qkey(void)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;
    static ucs_status_t status;
    uint32_t qkey;

    UCS_INIT_ONCE(&once) {
        status = uct_varuna_random(&qkey, sizeof(qkey));
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

static ucs_status_t uct_varuna_ud_set_sizes(uct_varuna_ud_qp_t *qp,
                                            const uct_ib_iface_t *ib, size_t mtu)
{
    unsigned frags;

    qp->room = uct_varuna_frag_room(mtu);
    if (qp->room == 0) {
        ucs_error("an MTU of %zu bytes is too small for control messages", mtu);
        return UCS_ERR_UNSUPPORTED;
    }

    frags         = uct_varuna_ud_max_frags(qp, ib);
    qp->max_frags = UCT_VARUNA_UD_NUM_SENDS * frags;
    qp->num_recvs = ucs_min(UCT_VARUNA_UD_NUM_RECVS * frags, UCT_VARUNA_UD_MAX_RECVS);
    return UCS_OK;
}

static ucs_status_t uct_varuna_ud_create_qp(uct_varuna_ud_qp_t *qp, struct ibv_pd *pd)
{
    struct ibv_qp_init_attr init_attr = {
        .qp_type          = IBV_QPT_UD,
        .sq_sig_all       = 1,
        .send_cq          = qp->cq,
        .recv_cq          = qp->cq,
        .cap.max_send_wr  = qp->max_frags,
        .cap.max_recv_wr  = qp->num_recvs,
        .cap.max_recv_sge = 1,
        .cap.max_send_sge = 2
    };

    qp->qp = ibv_create_qp(pd, &init_attr);
    if (qp->qp == NULL) {
        ucs_error("ibv_create_qp(UD, send=%u, receive=%u) of a control interface failed: "
                  "%m", qp->max_frags, qp->num_recvs);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

/* Create a queue pair on the port of an inner interface. */
static ucs_status_t uct_varuna_ud_qp_create(uct_ib_iface_t *ib, uct_varuna_ud_qp_t *qp)
{
    uct_ib_md_t *md = uct_ib_iface_md(ib);
    size_t mtu      = uct_varuna_ud_mtu(ib);
    ucs_status_t status;

    memset(qp, 0, sizeof(*qp));
    status = uct_varuna_ud_set_sizes(qp, ib, mtu);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_ud_make_qkey();
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_frags_init(&qp->frags);
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

    status = uct_varuna_ud_create_qp(qp, md->pd);
    if (status != UCS_OK) {
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

static void uct_varuna_ud_qp_destroy(uct_varuna_ud_qp_t *qp)
{
    ibv_destroy_qp(qp->qp);
    ibv_destroy_cq(qp->cq);
    ibv_destroy_comp_channel(qp->channel);
    ibv_dereg_mr(qp->mr);
    ucs_free(qp->sends);
    uct_varuna_frags_cleanup(&qp->frags);
}
