/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Stopping the responder's queue pair of an RC connection. See varuna_mlx5_fence.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_fence.h"
#include "varuna_mlx5_grant.h"
#include "varuna_mlx5_poll.h"
#include "varuna_mlx5.h"
#include "varuna_mlx5_ep.h"
#include <uct/ib/varuna/core/varuna_def.h>

#include <uct/ib/mlx5/dv/ib_mlx5_ifc.h>
#include <ucs/debug/log.h>
#include <ucs/async/async.h>
#include <ucs/async/async_int.h>
#include <ucs/time/time.h>
#include <poll.h>

ucs_status_t uct_varuna_mlx5_ep_wait_last_wqe(uct_ep_h tl_ep, ucs_time_t deadline)
{
    uct_varuna_mlx5_rc_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_ep->iface, uct_rc_mlx5_iface_common_t);
    int channel_fd              = -1;

#if HAVE_DEVX
    if (iface->event_channel != NULL) {
        channel_fd = iface->event_channel->fd;
    }
#endif

    return uct_varuna_last_wqe_wait(uct_ib_iface_device(&iface->super.super),
                                    ep->tx.wq.super.qp_num, channel_fd, deadline);
}

/* What has not been posted since the last RESET is not to be sent after the next INIT. */
static void uct_varuna_mlx5_clear_doorbell(uct_ib_mlx5_txwq_t *wq)
{
    *wq->dbrec = 0;
    ucs_memory_cpu_store_fence();
}

#if HAVE_DEVX
static int uct_varuna_mlx5_modify_devx(const uct_ib_mlx5_qp_t *qp, unsigned opcode,
                                       uint8_t port)
{
    char in[UCT_IB_MLX5DV_ST_SZ_BYTES(rst2init_qp_in)] = {};
    char out[UCT_IB_MLX5DV_ST_SZ_BYTES(modify_qp_out)] = {};
    size_t length                                      = sizeof(in);
    void *qpc;

    UCT_IB_MLX5DV_SET(modify_qp_in, in, opcode, opcode);
    UCT_IB_MLX5DV_SET(modify_qp_in, in, qpn, qp->qp_num);
    if (opcode == UCT_IB_MLX5_CMD_OP_RST2INIT_QP) {
        qpc = UCT_IB_MLX5DV_ADDR_OF(rst2init_qp_in, in, qpc);
        UCT_IB_MLX5DV_SET(qpc, qpc, pm_state, UCT_IB_MLX5_QPC_PM_STATE_MIGRATED);
        UCT_IB_MLX5DV_SET(qpc, qpc, primary_address_path.vhca_port_num, port);
    } else {
        length = UCT_IB_MLX5DV_ST_SZ_BYTES(modify_qp_in);
    }

    return mlx5dv_devx_obj_modify(qp->devx.obj, in, length, out, sizeof(out));
}
#endif

static int uct_varuna_mlx5_modify_verbs(const uct_ib_mlx5_qp_t *qp,
                                        enum ibv_qp_state state, uint8_t port)
{
    struct ibv_qp_attr attr = { .qp_state = state };
    int mask                = IBV_QP_STATE;

    if (state == IBV_QPS_INIT) {
        attr.port_num = port;
        mask         |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    }

    return ibv_modify_qp(qp->verbs.qp, &attr, mask);
}

/* Without the warning of UCX's function: a NIC which refuses is no surprise here. */
static ucs_status_t uct_varuna_mlx5_modify(uct_ep_h tl_ep, enum ibv_qp_state state)
{
    const uct_ib_mlx5_qp_t *qp =
            &ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t)->tx.wq.super;
    uint8_t port = ucs_derived_of(tl_ep->iface, uct_ib_iface_t)->config.port_num;
    int ret;

    switch (qp->type) {
    case UCT_IB_MLX5_OBJ_TYPE_VERBS:
        ret = uct_varuna_mlx5_modify_verbs(qp, state, port);
        break;
#if HAVE_DEVX
    case UCT_IB_MLX5_OBJ_TYPE_DEVX:
        ret = uct_varuna_mlx5_modify_devx(qp, (state == IBV_QPS_RESET) ?
                                          UCT_IB_MLX5_CMD_OP_2RST_QP :
                                          (state == IBV_QPS_INIT) ?
                                          UCT_IB_MLX5_CMD_OP_RST2INIT_QP :
                                          UCT_IB_MLX5_CMD_OP_2ERR_QP, port);
        break;
#endif
    default:
        return UCS_ERR_UNSUPPORTED;
    }

    if (ret != 0) {
        ucs_debug("failed to move qp 0x%x to state %d: %m", qp->qp_num, state);
        return UCS_ERR_IO_ERROR;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_mlx5_ep_reset(uct_ep_h tl_ep)
{
    uct_varuna_mlx5_rc_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    ucs_status_t status;

    /* Nothing may be posted in RESET when messages of before are polled */
    status = uct_varuna_mlx5_grants_stop(tl_ep);
    if (status != UCS_OK) {
        return status;
    }

    status = uct_varuna_mlx5_modify(tl_ep, IBV_QPS_RESET);
    if (status != UCS_OK) {
        uct_varuna_mlx5_grants_forget(tl_ep);
        return status;
    }

    uct_varuna_mlx5_clear_doorbell(&ep->tx.wq);
    return UCS_OK;
}

/* Work requests among so many basic blocks. Those of flow control have one block each,
 * if UCX does not count them. */
static uint16_t uct_varuna_mlx5_num_posted(uct_iface_h iface,
                                           const uct_ib_mlx5_txwq_t *wq,
                                           uint16_t outstanding)
{
    uint16_t (*num_posted)(const uct_ib_mlx5_txwq_t*, uint16_t);

    num_posted = uct_varuna_ib_symbol(iface, "uct_ib_mlx5_txwq_num_posted_wqes");
    return (num_posted == NULL) ? outstanding : num_posted(wq, outstanding);
}

/* RESET leaves the completion queue as it is (libmlx5 cleans no queue that its user
 * polls). What the queue pair has completed before is taken while UCX knows its number.
 * Messages must not keep UCX from that, however many come. */
static void uct_varuna_mlx5_poll_completed(uct_iface_h tl_iface)
{
    uct_rc_iface_t *iface  = ucs_derived_of(tl_iface, uct_rc_iface_t);
    unsigned max_polls     = iface->config.tx_cq_len;
    uint8_t tx_poll_always = iface->config.tx_poll_always;

    iface->config.tx_poll_always = 1;
    while (uct_varuna_mlx5_has_completions(tl_iface) && (max_polls-- > 0)) {
        uct_varuna_mlx5_progress(tl_iface);
    }
    iface->config.tx_poll_always = tx_poll_always;
}

void uct_varuna_mlx5_ep_end_reset(uct_ep_h tl_ep)
{
    uct_varuna_mlx5_rc_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_mlx5_rc_ep_t);
    uct_rc_iface_t *iface       = ucs_derived_of(tl_ep->iface, uct_rc_iface_t);
    uct_ib_mlx5_txwq_t *wq      = &ep->tx.wq;
    uint16_t outstanding;

    uct_varuna_mlx5_poll_completed(tl_ep->iface);
    uct_varuna_mlx5_grants_forget(tl_ep);
    if (uct_varuna_mlx5_modify(tl_ep, IBV_QPS_INIT) == UCS_OK) {
        uct_varuna_last_wqe_forget(uct_ib_iface_device(&iface->super),
                                   wq->super.qp_num);
    }

    /* What is left has no completion: credits of flow control, which nobody waits for */
    outstanding = wq->bb_max - ep->super.txqp.available;
    if (outstanding > 0) {
        iface->tx.cq_available += uct_varuna_mlx5_num_posted(tl_ep->iface, wq,
                                                             outstanding);
        uct_rc_txqp_available_set(&ep->super.txqp, wq->bb_max);
#if UCS_ENABLE_ASSERT
        wq->hw_ci = wq->prev_sw_pi;
#endif
    }
}

/* --- LAST_WQE_REACHED --- */

/* While UCX's thread reads the event: nanoseconds between two looks */
#define UCT_VARUNA_LAST_WQE_POLL     20000

/* What UCX knows of the event LAST_WQE_REACHED of a queue pair: it keeps this until it
 * destroys the queue pair. The lock is held. */
static uct_ib_async_event_val_t *
uct_varuna_last_wqe_find(uct_ib_device_t *dev, uint32_t qp_num)
{
    const uct_ib_async_event_t *event;
    khiter_t iter;

    for (iter = kh_begin(&dev->async_events_hash);
         iter != kh_end(&dev->async_events_hash); ++iter) {
        if (!kh_exist(&dev->async_events_hash, iter)) {
            continue;
        }

        event = &kh_key(&dev->async_events_hash, iter);
        if ((event->event_type == IBV_EVENT_QP_LAST_WQE_REACHED) &&
            (event->qp_num == qp_num)) {
            return &kh_value(&dev->async_events_hash, iter);
        }
    }

    return NULL;
}

static int uct_varuna_last_wqe_is_reached(uct_ib_device_t *dev, uint32_t qp_num)
{
    const uct_ib_async_event_val_t *event;
    int fired;

    ucs_spin_lock(&dev->async_event_lock);
    event = uct_varuna_last_wqe_find(dev, qp_num);
    fired = (event != NULL) && event->fired;
    ucs_spin_unlock(&dev->async_event_lock);
    return fired;
}

void uct_varuna_last_wqe_forget(uct_ib_device_t *dev, uint32_t qp_num)
{
    uct_ib_async_event_val_t *event;

    ucs_spin_lock(&dev->async_event_lock);
    event = uct_varuna_last_wqe_find(dev, qp_num);
    if (event != NULL) {
        event->fired = 0;
    }
    ucs_spin_unlock(&dev->async_event_lock);
}

/* UCX's handler of the device's file has no lock: only the thread that calls it for UCX may
 * call it. */
static int uct_varuna_last_wqe_is_async_thread(void)
{
    static const ucs_async_context_t thread = { .mode = UCS_ASYNC_THREAD_LOCK_TYPE };

    return ucs_async_is_from_async(&thread);
}

/* The event comes to the device's file, or to the channel of queue pairs that UCX made
 * through DEVX. UCX's handlers of both accept that there is nothing to read. */
static void uct_varuna_last_wqe_read(uct_ib_device_t *dev, int channel_fd,
                                     ucs_time_t timeout)
{
    struct timespec wait = { .tv_nsec = UCT_VARUNA_LAST_WQE_POLL };
    struct pollfd fds[2] = {
        { .fd = channel_fd,                 .events = POLLIN }, /* -1 is ignored */
        { .fd = dev->ibv_context->async_fd, .events = POLLIN }
    };
    int i, num_fds = 1;

    if (uct_varuna_last_wqe_is_async_thread()) {
        ucs_sec_to_timespec(ucs_time_to_sec(timeout), &wait);
        num_fds = 2;
    }

    if (ppoll(fds, num_fds, &wait, NULL) <= 0) {
        return;
    }

    for (i = 0; i < num_fds; ++i) {
        if (fds[i].revents & POLLIN) {
            ucs_async_dispatch_handlers(&fds[i].fd, 1, UCS_EVENT_SET_EVREAD);
        }
    }
}

ucs_status_t uct_varuna_last_wqe_wait(uct_ib_device_t *dev, uint32_t qp_num,
                                      int channel_fd, ucs_time_t deadline)
{
    ucs_time_t now;

    while (!uct_varuna_last_wqe_is_reached(dev, qp_num)) {
        now = ucs_get_time();
        if (now >= deadline) {
            return UCS_ERR_TIMED_OUT;
        }

        uct_varuna_last_wqe_read(dev, channel_fd, deadline - now);
    }

    return UCS_OK;
}
