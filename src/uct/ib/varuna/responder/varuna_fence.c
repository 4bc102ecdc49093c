/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * FENCE_REQ. See varuna_fence.h, and docs/RECOVERY.md for the protocol.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fence.h"
#include "varuna_gap.h"
#include "varuna_target.h"
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/ctl/varuna_ctl_receive.h>
#include <uct/ib/varuna/ctl/varuna_ctl_send.h>
#include <uct/ib/varuna/ctl/varuna_stranger.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>
#include <string.h>

/* The event comes within microseconds, or never */
#define UCT_VARUNA_LAST_WQE_TIMEOUT  2e-3 /* sec */

/* Before RESET, and again if it fails: until then the PSN can be read. */
static void uct_varuna_fence_read_psn(uct_varuna_target_qp_t *qp, unsigned kind)
{
    if (uct_varuna_tl_query_epsn(qp->ep, kind, &qp->epsn) == UCS_OK) {
        qp->epsn  &= UCS_MASK(24);
        qp->flags |= UCT_VARUNA_FENCE_FLAG_PSN;
    } else {
        qp->epsn   = 0;
        qp->flags &= ~UCT_VARUNA_FENCE_FLAG_PSN;
    }
}

/* A NIC that did not raise the event once is not waited for again: there may be
 * thousands of queue pairs. */
static int uct_varuna_fence_wait_last_wqe(uct_varuna_responder_t *resp,
                                          const uct_varuna_target_qp_t *qp)
{
    double timeout = (resp->no_last_wqe & UCS_BIT(qp->link)) ? 0 :
                     UCT_VARUNA_LAST_WQE_TIMEOUT;
    ucs_status_t status;

    status = uct_varuna_tl_wait_last_wqe(qp->ep,
                                            uct_varuna_link_set(resp->iface,
                                                                qp->link)->fast,
                                            ucs_time_from_sec(timeout));
    if ((status != UCS_OK) && !(resp->no_last_wqe & UCS_BIT(qp->link))) {
        resp->no_last_wqe |= UCS_BIT(qp->link);
        ucs_diag("%s: no event LAST_WQE_REACHED within %.0f ms of ERR: each failover waits"
                 " for " UCT_VARUNA_CONFIG_PREFIX "PACKET_LIFETIME",
                 uct_varuna_link_name(resp->iface, qp->link),
                 UCT_VARUNA_LAST_WQE_TIMEOUT * 1e3);
    } else if (status == UCS_OK) {
        resp->no_last_wqe &= ~UCS_BIT(qp->link);
    }

    return status == UCS_OK;
}

int uct_varuna_target_fence_qp(uct_varuna_responder_t *resp,
                               const uct_varuna_target_t *target,
                               uct_varuna_target_qp_t *qp)
{
    unsigned kind  = uct_varuna_link_set(resp->iface, qp->link)->fast;
    ucs_time_t now = uct_varuna_ctl_now(resp->ctl);
    ucs_status_t status;

    if ((qp->ep == NULL) || (qp->flags & UCT_VARUNA_FENCE_FLAG_QP)) {
        return 1;
    }

    if (qp->stopped_at == 0) {
        status = uct_varuna_tl_stop(qp->ep, kind);
        if (status != UCS_OK) {
            ucs_diag("target %u: failed to fence incarnation %u: %s", target->id,
                     qp->epoch, ucs_status_string(status));
            return 0;
        }
        qp->stopped_at = now;
        qp->flags      = UCT_VARUNA_FENCE_FLAG_ERR;
    }

    if (uct_varuna_fence_wait_last_wqe(resp, qp)) {
        uct_varuna_fence_read_psn(qp, kind);
        status       = uct_varuna_tl_reset(qp->ep, kind);
        qp->is_reset = (status == UCS_OK);
    } else {
        uct_varuna_fence_read_psn(qp, kind);
    }

    /* What it had accepted has left the NIC, by RESET or by time */
    if (qp->is_reset ||
        ((now - qp->stopped_at) > resp->iface->config.packet_lifetime)) {
        qp->flags |= UCT_VARUNA_FENCE_FLAG_QP;
    }

    ucs_debug("rc_varuna: target %u: fenced epoch=%u%s, expected psn %s%u",
              target->id, qp->epoch, qp->is_reset ? "" : " without RESET",
              (qp->flags & UCT_VARUNA_FENCE_FLAG_PSN) ? "" : "unknown ", qp->epsn);
    return !!(qp->flags & UCT_VARUNA_FENCE_FLAG_QP);
}

void uct_varuna_target_clear_ring(uct_varuna_target_t *target, uint32_t epoch)
{
    unsigned ring = uct_varuna_log_ring(epoch);

    memset(target->logs + (ring * UCT_VARUNA_LOG_SIZE), 0,
           UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
}

static void uct_varuna_fence_reply(uct_varuna_responder_t *resp, unsigned link,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   uct_varuna_target_t *target, uint32_t round,
                                   uint32_t *flags_p)
{
    char body[sizeof(uct_varuna_ctl_fence_rep_t) +
              (UCT_VARUNA_LOG_SIZE * sizeof(uint64_t))];
    uct_varuna_ctl_fence_rep_t *rep  = (uct_varuna_ctl_fence_rep_t*)body;
    const uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, hdr->epoch);

    memset(rep, 0, sizeof(*rep));
    rep->log_size = UCT_VARUNA_LOG_SIZE;
    rep->round    = round;
    if (qp->epoch == hdr->epoch) {
        rep->flags = qp->flags;
        rep->epsn  = qp->epsn;
    }

    /* After the fence, so that nothing is written in between */
    ucs_memory_cpu_load_fence();
    memcpy(rep + 1,
           target->logs + (uct_varuna_log_ring(hdr->epoch) * UCT_VARUNA_LOG_SIZE),
           sizeof(body) - sizeof(*rep));
    uct_varuna_ctl_reply(resp->ctl, target->peer, link, hdr, UCT_VARUNA_CTL_FENCE_REP,
                         body, sizeof(body));
    *flags_p = rep->flags;
}

/* Async context, lock held. */
static void uct_varuna_fence_handle_req(void *arg, unsigned link,
                                        const uct_varuna_ctl_hdr_t *hdr,
                                        const void *body)
{
    uct_varuna_responder_t *resp          = arg;
    const uct_varuna_ctl_fence_req_t *req = body;
    uct_varuna_target_t *target;
    uct_varuna_target_qp_t *qp;
    uint32_t flags;
    khiter_t iter;
    unsigned i;

    target = uct_varuna_target_of(resp, hdr, &iter);
    if (target == NULL) {
        uct_varuna_ctl_reject(resp->ctl, link, hdr, UCS_ERR_NO_ELEM);
        return;
    }

    if (hdr->epoch > target->fenced) {
        /* The next incarnation logs in the other ring, which has been read */
        uct_varuna_target_clear_ring(target, hdr->epoch + 1);
        /* A connection that was asked for before is given up as well: made
         * later, it would clear the ring of an incarnation which is in use */
        target->fenced = ucs_max(hdr->epoch, req->newest);
    }

    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        qp = &target->qps[i];
        if (qp->epoch <= target->fenced) {
            uct_varuna_target_fence_qp(resp, target, qp);
        }
    }

    uct_varuna_fence_reply(resp, link, hdr, target, req->round, &flags);
    if ((flags & UCT_VARUNA_FENCE_FLAG_QP) || (req->round > 0)) {
        /* Nothing comes on the old lane any more: the main thread looks whether
         * all has come that was acknowledged */
        uct_varuna_ctl_defer(resp->ctl, link, hdr, req);
    }
}

/* Main thread: all messages which FENCE_REQ says are acknowledged must come. */
static void uct_varuna_fence_handle_acked(void *arg, unsigned link,
                                          const uct_varuna_ctl_hdr_t *hdr,
                                          const void *body)
{
    uct_varuna_responder_t *resp          = arg;
    const uct_varuna_ctl_fence_req_t *req = body;
    uct_varuna_target_t *target;
    khiter_t iter;

    uct_varuna_ctl_lock(resp->ctl);
    target = uct_varuna_target_of(resp, hdr, &iter);
    uct_varuna_ctl_unlock(resp->ctl);
    if (target != NULL) {
        uct_varuna_gap_watch(resp, target, req->am_acked);
    }
}

static const uct_varuna_bus_reg_t uct_varuna_fence_rows[] = {
    {UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_ASYNC, uct_varuna_fence_handle_req},
    {UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_MAIN,  uct_varuna_fence_handle_acked}
};

void uct_varuna_fence_init(uct_varuna_responder_t *resp)
{
    uct_varuna_bus_register(&resp->ctl->bus, uct_varuna_fence_rows,
                            ucs_static_array_size(uct_varuna_fence_rows), resp);
}
