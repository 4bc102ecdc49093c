/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * FENCE_REQ. See varuna_fence.h, and docs/RECOVERY.md for the protocol.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fence.h"
#include "varuna_responder.h"
#include "varuna_target.h"
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_retry.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/lanes/varuna_link_cmd.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/core/varuna_held.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <string.h>
#include <ucs/time/time.h>

/* The NIC raises the event within microseconds, or never. But the kernel delivers the
 * events of a device one after the other, and UCX's thread, which reads them, may have to
 * wait for a CPU. Only this NIC's thread waits, for less than UCT_VARUNA_CMD_HUNG, and for
 * all queue pairs together. */
#define UCT_VARUNA_LAST_WQE_TIMEOUT  15e-3 /* sec */

/* For a NIC that has not raised the event once: it completes what it flushes at once, with
 * or without the event */
#define UCT_VARUNA_LAST_WQE_GRACE    1e-3  /* sec */

/* Stops one queue pair, on the thread of its NIC. The endpoint is destroyed only when this
 * is over. The thread stops all queue pairs that it has to before it waits for one. */
struct uct_varuna_fence {
    uct_varuna_cmd_t           super;
    uct_varuna_responder_t     *resp;
    uct_varuna_target_t        *target;      /* NULL: nobody wants to know */
    uct_varuna_target_qp_t     *qp;          /* ... and this has another one */
    uct_ep_h                   ep;
    uint8_t                    kind;
    uint8_t                    link;
    uint8_t                    is_stopped;
    uint8_t                    is_last_wqe;  /* The event came */
    uint8_t                    is_psn_known;
    uint8_t                    is_reset;     /* Perhaps before: then the rest is known */
    uint8_t                    is_new_reset; /* ... or by this */
    uint8_t                    has_arrived;  /* Data for devices */
    uint32_t                   epsn;
    ucs_time_t                 event_timeout;
    ucs_time_t                 event_until;
};

static int uct_varuna_arrival_prove(uct_varuna_responder_t *resp, unsigned link);

/* It does not pass what was accepted before */
static ucs_status_t uct_varuna_fence_look_for_arrival(uct_varuna_fence_t *fence)
{
    fence->has_arrived = fence->is_reset &&
                         uct_varuna_arrival_prove(fence->resp, fence->link);
    return UCS_OK;
}

static ucs_status_t uct_varuna_fence_run(uct_varuna_cmd_t *cmd)
{
    uct_varuna_fence_t *fence = ucs_derived_of(cmd, uct_varuna_fence_t);
    ucs_status_t status;

    if (fence->is_reset) {
        return uct_varuna_fence_look_for_arrival(fence);
    }

    if (!fence->is_stopped) {
        status = uct_varuna_tl_stop(fence->ep, fence->kind);
        if (status != UCS_OK) {
            return status;
        }
        fence->is_stopped = 1;
    }

    if (fence->event_until == 0) {
        fence->event_until = ucs_get_time() + fence->event_timeout;
        return UCS_INPROGRESS; /* Others are stopped meanwhile */
    }

    fence->is_last_wqe  = (uct_varuna_tl_wait_last_wqe(fence->ep, fence->kind,
                                                       fence->event_until) == UCS_OK);
    /* Before RESET: until then the PSN can be read */
    fence->is_psn_known = (uct_varuna_tl_query_epsn(fence->ep, fence->kind,
                                                    &fence->epsn) == UCS_OK);
    fence->is_reset     = (uct_varuna_tl_reset(fence->ep, fence->kind) == UCS_OK);
    fence->is_new_reset = fence->is_reset;
    return uct_varuna_fence_look_for_arrival(fence);
}

/* A NIC that did not raise the event once is hardly waited for again. */
static void uct_varuna_fence_note_event(uct_varuna_responder_t *resp,
                                        const uct_varuna_fence_t *fence)
{
    if (fence->is_last_wqe) {
        resp->no_last_wqe &= ~UCS_BIT(fence->link);
    } else if (!(resp->no_last_wqe & UCS_BIT(fence->link))) {
        resp->no_last_wqe |= UCS_BIT(fence->link);
        ucs_diag("%s: no event LAST_WQE_REACHED within %.0f ms of ERR: from now on, queue"
                 " pairs are reset %.0f ms after ERR",
                 uct_varuna_link_name(resp->iface, fence->link),
                 UCT_VARUNA_LAST_WQE_TIMEOUT * 1e3, UCT_VARUNA_LAST_WQE_GRACE * 1e3);
    }
}

/* @return Whether the NIC of a link is gone as the system says, and may still write: the
 * driver answers commands to stop queue pairs itself then, before it resets the device. */
static int uct_varuna_fence_nic_lingers(const uct_varuna_responder_t *resp, unsigned link)
{
    const uct_varuna_iface_t *iface = resp->iface;

    return uct_varuna_ctl_is_nic_gone(resp->ctl, link) &&
           !uct_varuna_md_is_at_rest(iface->md, iface->links[link].nic,
                                     uct_varuna_ctl_now(resp->ctl),
                                     iface->config.packet_lifetime);
}

/* The same of the lane that is asked about. Which link a DC lane had is not known. */
static int uct_varuna_fence_lane_lingers(const uct_varuna_responder_t *resp,
                                         uct_varuna_target_t *target, uint32_t epoch)
{
    const uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, epoch);
    unsigned link;

    if (qp->epoch == epoch) {
        return uct_varuna_fence_nic_lingers(resp, qp->link);
    }

    for (link = 0; link < resp->iface->num_links; ++link) {
        if (uct_varuna_fence_nic_lingers(resp, link)) {
            return 1;
        }
    }

    return 0;
}

/* What the command has found out. */
static void uct_varuna_fence_take(const uct_varuna_fence_t *fence, ucs_status_t status)
{
    uct_varuna_responder_t *resp = fence->resp;
    uct_varuna_target_qp_t *qp   = fence->qp;
    ucs_time_t now               = uct_varuna_ctl_now(resp->ctl);

    if (!fence->is_stopped) {
        ucs_diag("target %u: failed to fence incarnation %u: %s", fence->target->id,
                 qp->epoch, ucs_status_string(status));
        return;
    }

    if (qp->stopped_at == 0) {
        qp->stopped_at = now;
        qp->flags      = UCT_VARUNA_FENCE_FLAG_ERR;
    }

    if (status != UCS_OK) {
        return; /* It was not asked again */
    }

    if (!fence->is_reset || fence->is_new_reset) {
        uct_varuna_fence_note_event(resp, fence);
    }
    qp->flags   &= ~UCT_VARUNA_FENCE_FLAG_PSN;
    qp->flags   |= fence->is_psn_known ? UCT_VARUNA_FENCE_FLAG_PSN : 0;
    qp->epsn     = fence->is_psn_known ? (fence->epsn & UCS_MASK(24)) : 0;
    qp->flags   |= fence->is_reset ? UCT_VARUNA_FENCE_FLAG_RESET : 0;
    qp->is_reset = fence->is_reset;

    /* What it had accepted has left the NIC, by RESET or by time */
    if (!uct_varuna_fence_nic_lingers(resp, qp->link) &&
        ((qp->is_reset && fence->has_arrived) ||
         ((now - qp->stopped_at) > resp->iface->config.packet_lifetime))) {
        qp->flags |= UCT_VARUNA_FENCE_FLAG_QP;
    }

    ucs_debug("rc_varuna: target %u: fenced epoch=%u%s%s, expected psn %s%u",
              fence->target->id, qp->epoch, qp->is_reset ? "" : " without RESET",
              (!qp->is_reset || fence->has_arrived) ? "" : ", its data is on its way",
              (qp->flags & UCT_VARUNA_FENCE_FLAG_PSN) ? "" : "unknown ", qp->epsn);
}

void uct_varuna_target_clear_ring(uct_varuna_target_t *target, uint32_t epoch)
{
    unsigned ring = uct_varuna_log_ring(epoch);

    memset(target->logs + (ring * UCT_VARUNA_LOG_SIZE), 0,
           UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
}

/* How the responder's queue pair of this incarnation places what comes early, and all DC
 * targets: which of them it used is not known here. */
static void uct_varuna_fence_put_order(const uct_varuna_responder_t *resp,
                                       const uct_varuna_target_qp_t *qp,
                                       uct_varuna_ctl_fence_rep_t *rep)
{
    const uct_varuna_iface_t *iface = resp->iface;
    const uct_varuna_lane_iface_t *dc;
    uct_varuna_order_t order;
    unsigned link;

    if (qp != NULL) {
        order       = uct_varuna_link_rc(&iface->links[qp->link])->rx_order;
        rep->flags |= (order == UCT_VARUNA_ORDER_CERTAIN) ? UCT_VARUNA_FENCE_FLAG_ORDERED :
                      (order == UCT_VARUNA_ORDER_NONE) ? UCT_VARUNA_FENCE_FLAG_UNORDERED : 0;
    }

    for (link = 0; link < iface->num_links; ++link) {
        dc = uct_varuna_link_base(&iface->links[link]);
        if (dc->kind != UCT_VARUNA_LANE_DC) {
            continue;
        }

        if (dc->rx_order == UCT_VARUNA_ORDER_CERTAIN) {
            rep->dc_ordered |= UCS_BIT(iface->links[link].nic);
        } else if (dc->rx_order == UCT_VARUNA_ORDER_NONE) {
            rep->dc_unordered |= UCS_BIT(iface->links[link].nic);
        }
    }
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
        rep->flags = qp->flags | (((qp->ep != NULL) &&
                                   uct_varuna_ctl_is_nic_gone(resp->ctl, qp->link)) ?
                                  UCT_VARUNA_FENCE_FLAG_GONE : 0);
        rep->epsn  = qp->epsn;
    }
    uct_varuna_fence_put_order(resp, (qp->epoch == hdr->epoch) ? qp : NULL, rep);

    /* After the fence, so that nothing is written in between */
    ucs_memory_cpu_load_fence();
    memcpy(rep + 1,
           target->logs + (uct_varuna_log_ring(hdr->epoch) * UCT_VARUNA_LOG_SIZE),
           sizeof(body) - sizeof(*rep));
    uct_varuna_ctl_reply(resp->ctl, target->peer, link, hdr, UCT_VARUNA_CTL_FENCE_REP,
                         body, sizeof(body));
    *flags_p = rep->flags;
}

/* @return Nonzero if a queue pair is just being stopped that the requester asks about, by
 * a NIC that may be about to answer. */
static int uct_varuna_fence_is_busy(const uct_varuna_responder_t *resp,
                                    const uct_varuna_target_t *target)
{
    const uct_varuna_fence_t *fence;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        fence = target->qps[i].fence;
        if ((fence != NULL) && (target->qps[i].epoch <= target->fenced) &&
            uct_varuna_link_may_answer(resp->iface, fence->link, &fence->super,
                                       resp->iface->config.packet_lifetime)) {
            return 1;
        }
    }

    return 0;
}

/* Have the main thread look at what @a req says. The sender's addresses, which follow it in the
 * message, are not kept. */
static void uct_varuna_fence_defer(uct_varuna_responder_t *resp, unsigned link,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_fence_req_t *req)
{
    uct_varuna_ctl_hdr_t alone = *hdr;

    alone.type            = UCT_VARUNA_CTL_FENCE_REQ;
    alone.length          = sizeof(*req);
    alone.from_device_len = 0;
    alone.from_ctl_len    = 0;
    uct_varuna_ctl_defer(resp->ctl, link, &alone, req);
}

/* Answer FENCE_REQ, unless the answer will be better soon. */
static void uct_varuna_fence_answer(uct_varuna_responder_t *resp,
                                    uct_varuna_target_t *target)
{
    const uct_varuna_ctl_fence_req_t *req = &target->asked.req;
    uint32_t flags;

    if (!target->asked.is_set ||
        uct_varuna_fence_is_busy(resp, target)) {
        return;
    }

    target->asked.is_set = 0;
    if ((req->round > 0) &&
        uct_varuna_fence_lane_lingers(resp, target, target->asked.hdr.epoch)) {
        return; /* Such an answer says that time was over. It is asked again */
    }

    uct_varuna_fence_reply(resp, target->asked.link, &target->asked.hdr, target,
                           req->round, &flags);
    if ((flags & UCT_VARUNA_FENCE_FLAG_QP) || (req->round > 0)) {
        /* Nothing comes on the old lane any more: the main thread looks whether
         * all has come that was acknowledged */
        uct_varuna_fence_defer(resp, target->asked.link, &target->asked.hdr, req);
    }
}

static void uct_varuna_fence_done(uct_varuna_cmd_t *cmd, ucs_status_t status)
{
    uct_varuna_fence_t *fence    = ucs_derived_of(cmd, uct_varuna_fence_t);
    uct_varuna_target_t *target  = fence->target;
    uct_varuna_responder_t *resp = fence->resp;

    if (status == UCS_ERR_CANCELED) {
        /* The interface is being closed. Without a sink it is gone already, and what the
         * command has used is left alone */
        if ((cmd->sink != NULL) && (target != NULL)) {
            fence->qp->fence = NULL;
        } else if (cmd->sink != NULL) {
            --resp->spares.stopping[fence->link];
            uct_varuna_spare_drop(resp, fence->ep, fence->link, 0);
        }
    } else if (target == NULL) {
        --resp->spares.stopping[fence->link];
        uct_varuna_spare_drop(resp, fence->ep, fence->link, fence->is_reset);
        uct_varuna_iface_set_slow(resp->iface);
    } else {
        fence->qp->fence = NULL;
        uct_varuna_fence_take(fence, status);
        uct_varuna_fence_answer(resp, target);
    }

    ucs_free(fence);
}

int uct_varuna_target_fence_qp(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target,
                               uct_varuna_target_qp_t *qp)
{
    uct_varuna_fence_t *fence;

    if ((qp->ep == NULL) || (qp->flags & UCT_VARUNA_FENCE_FLAG_QP)) {
        return 1;
    }

    if (qp->fence != NULL) {
        return 0;
    }

    fence = ucs_calloc(1, sizeof(*fence), "varuna_fence");
    if (fence == NULL) {
        return 0; /* Asked again */
    }

    fence->super.run      = uct_varuna_fence_run;
    fence->super.done     = uct_varuna_fence_done;
    fence->super.deadline = ucs_get_time() + resp->iface->config.packet_lifetime +
                            ucs_time_from_sec(UCT_VARUNA_CMD_START);
    fence->resp           = resp;
    fence->target         = target;
    fence->qp             = qp;
    fence->ep             = qp->ep;
    fence->link           = qp->link;
    fence->kind           = uct_varuna_link_set(resp->iface, qp->link)->fast;
    fence->is_stopped     = (qp->stopped_at != 0);
    fence->is_reset       = qp->is_reset;
    fence->is_psn_known   = !!(qp->flags & UCT_VARUNA_FENCE_FLAG_PSN);
    fence->epsn           = qp->epsn;
    fence->event_timeout  = ucs_time_from_sec((resp->no_last_wqe & UCS_BIT(qp->link)) ?
                                              UCT_VARUNA_LAST_WQE_GRACE :
                                              UCT_VARUNA_LAST_WQE_TIMEOUT);
    qp->fence             = fence;
    uct_varuna_link_submit(resp->iface, qp->link, &fence->super);
    return (qp->fence == NULL) && !!(qp->flags & UCT_VARUNA_FENCE_FLAG_QP);
}

int uct_varuna_fence_disown(uct_varuna_responder_t *resp, uct_varuna_target_qp_t *qp)
{
    if (qp->fence == NULL) {
        return 0;
    }

    if (!(resp->iface->cmds.left & UCS_BIT(qp->link))) {
        qp->fence->target = NULL;
        ++resp->spares.stopping[qp->link];
    } /* Otherwise it belongs to the NIC's thread alone */
    qp->fence = NULL;
    qp->ep    = NULL;
    return 1;
}

/* The requester has connected this queue pair while it used an older one, elsewhere. Had it changed
 * to this one, it would have asked for another by now: it was told of the link first. */
static int uct_varuna_target_qp_is_left_out(const uct_varuna_target_t *target,
                                            const uct_varuna_target_qp_t *qp)
{
    const uct_varuna_target_qp_t *other;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        other = &target->qps[i];
        if ((other->ep != NULL) && (other->epoch == (target->fenced + 1)) &&
            (other->epoch < qp->epoch) && (other->link != qp->link) &&
            (other->stopped_at == 0)) {
            return 1;
        }
    }

    return 0;
}

/* A planned change of the lane ends with the next one at the latest, and the responder hears of it
 * even later. @return Whether the requester may still post on a queue pair that is not fenced. */
static int uct_varuna_target_qp_is_in_use(const uct_varuna_responder_t *resp,
                                          const uct_varuna_target_t *target,
                                          const uct_varuna_target_qp_t *qp, int is_quiet)
{
    const uct_varuna_target_qp_t *other;
    unsigned i;

    if ((qp->epoch <= target->fenced) || (qp->stopped_at != 0) ||
        (is_quiet && uct_varuna_target_qp_is_left_out(target, qp))) {
        return 0;
    }

    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        other = &target->qps[i];
        if ((other->ep != NULL) && (other->epoch > qp->epoch) &&
            ((uct_varuna_ctl_now(resp->ctl) - other->attached_at) >
             resp->iface->config.packet_lifetime)) {
            return 0;
        }
    }

    return 1;
}

/* The NIC is at rest, or its queue pair is: its evidence is complete */
static void uct_varuna_target_qp_leave(uct_varuna_responder_t *resp, uct_varuna_target_qp_t *qp)
{
    uct_varuna_connect_forget(resp, qp->ep);
    uct_varuna_spare_drop(resp, qp->ep, qp->link, qp->is_reset);
    if (qp->stopped_at == 0) {
        qp->stopped_at = uct_varuna_ctl_now(resp->ctl);
    }
    qp->flags |= UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_QP;
    qp->ep     = NULL;
}

static void uct_varuna_target_leave_qp(uct_varuna_responder_t *resp,
                                       uct_varuna_target_t *target,
                                       uct_varuna_target_qp_t *qp, int is_ended)
{
    int is_tried = (qp->stopped_at != 0) || (qp->flags & UCT_VARUNA_FENCE_FLAG_GONE);

    if (qp->fence != NULL) {
        return;
    }

    /* A NIC that is removed works, so what it has accepted may still be on its way */
    if ((qp->flags & UCT_VARUNA_FENCE_FLAG_QP) ||
        (is_tried && is_ended &&
         ((uct_varuna_ctl_now(resp->ctl) - qp->stopped_at) >
          resp->iface->config.packet_lifetime))) {
        uct_varuna_target_qp_leave(resp, qp);
    } else if (!is_tried) {
        qp->flags |= UCT_VARUNA_FENCE_FLAG_GONE; /* Unless it can be stopped */
        (void)uct_varuna_target_fence_qp(resp, target, qp);
    }
}

unsigned uct_varuna_targets_leave_link(uct_varuna_responder_t *resp, unsigned link, int is_over,
                                       int is_ended)
{
    unsigned count = 0;
    uct_varuna_target_t *target;
    uct_varuna_target_qp_t *qp;
    unsigned i;

    kh_foreach_value(&resp->targets.by_name, target, {
        for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
            qp = &target->qps[i];
            if ((qp->ep == NULL) || (qp->link != link)) {
                continue;
            }

            if (is_over) {
                uct_varuna_target_leave_qp(resp, target, qp, is_ended);
                count += (qp->ep != NULL);
            } else {
                count += uct_varuna_target_qp_is_in_use(resp, target, qp, is_ended);
            }
        }
    });

    return count;
}

/* Stop all that is over. */
static void uct_varuna_fence_stop_fenced(uct_varuna_responder_t *resp,
                                         uct_varuna_target_t *target)
{
    uct_varuna_target_qp_t *qp;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_LOG_COUNT; ++i) {
        qp = &target->qps[i];
        if (qp->epoch <= target->fenced) {
            uct_varuna_target_fence_qp(resp, target, qp);
        }
    }
}

void uct_varuna_fence_end_older(uct_varuna_responder_t *resp, unsigned link,
                                const uct_varuna_ctl_hdr_t *hdr,
                                const uct_varuna_ctl_connect_t *req,
                                uct_varuna_target_t *target)
{
    uint32_t in_use                  = ucs_min(req->in_use, hdr->epoch);
    uct_varuna_ctl_fence_req_t fence = {
        .am_acked = req->am_acked
    };

    if (in_use <= (target->fenced + 1)) {
        return;
    }

    target->fenced = in_use - 1;
    uct_varuna_fence_stop_fenced(resp, target);
    uct_varuna_fence_defer(resp, link, hdr, &fence);
}

/* Async context, lock held. */
static void uct_varuna_fence_handle_req(void *arg, unsigned link,
                                        const uct_varuna_ctl_hdr_t *hdr,
                                        const void *body)
{
    uct_varuna_responder_t *resp          = arg;
    const uct_varuna_ctl_fence_req_t *req = body;
    uct_varuna_target_t *target;

    target = uct_varuna_target_asked(resp, link, hdr);
    if (target == NULL) {
        return;
    }

    if (hdr->epoch > target->fenced) {
        /* The next incarnation logs in the other ring, which has been read */
        uct_varuna_target_clear_ring(target, hdr->epoch + 1);
        /* A connection that was asked for before is given up as well: made
         * later, it would clear the ring of an incarnation which is in use */
        target->fenced = ucs_max(hdr->epoch, req->newest);
    }

    /* An older question is answered with this one */
    target->asked.is_set = 0;
    uct_varuna_fence_stop_fenced(resp, target);
    target->asked.is_set = 1;
    target->asked.link   = link;
    target->asked.hdr    = *hdr;
    target->asked.req    = *req;
    uct_varuna_fence_answer(resp, target);
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

/* --- Gaps --- */

/* A message which the responder's NIC has acknowledged is never sent again. If that
 * NIC dies before the message is polled from its completion queue, then the
 * sequence of the vQP has a gap that never closes, and later messages cannot be
 * delivered.
 *
 * Gaps are looked for in two cases. A fence request contains the number up to which
 * everything is acknowledged; and when a message is held, all earlier ones have been
 * acknowledged or have come, since a lane delivers in order and a new lane begins with
 * what was not acknowledged on the old one.
 *
 * The messages may still be in a completion queue. So a gap counts only after all
 * queues were found empty, and not before the packet lifetime is over, in which a
 * lane that could not be fenced may still deliver. */

/* Tries to report the gap to the requester. It closes the target then; if it does not, it
 * is gone or cut off. What it sends later, a message or a request, is refused again. */
#define UCT_VARUNA_GAP_MAX_REJECTS   64

void uct_varuna_gap_watch(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, uint32_t end)
{
    if (target->broken || UCS_CIRCULAR_COMPARE32(end, <=, target->next_seq)) {
        return;
    }

    if (!target->gap.watched) {
        target->gap.watched = 1;
        target->gap.end     = end;
        target->gap.next    = target->next_seq;
        target->gap.since   = uct_varuna_ctl_now(resp->ctl);
        ucs_list_add_tail(&resp->received.gaps, &target->gap.list);
    } else if (UCS_CIRCULAR_COMPARE32(end, >, target->gap.end)) {
        target->gap.end = end;
    }
}

void uct_varuna_gap_forget(uct_varuna_target_t *target)
{
    if (target->gap.watched) {
        target->gap.watched = 0;
        ucs_list_del(&target->gap.list);
    }
}

static void uct_varuna_gap_tell(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                                unsigned max_tries, ucs_time_t now)
{
    const uct_varuna_retry_policy_t policy = {
        .interval  = resp->iface->config.ctl_timeout,
        .max_tries = max_tries
    };
    uct_varuna_ctl_hdr_t hdr = {
        .type    = UCT_VARUNA_CTL_FENCE_REQ,
        .dest    = resp->iface->uuid,
        .uuid    = target->peer->uuid,
        .secret  = target->peer->secret,
        .opening = target->opening,
        .vqp     = target->vqp
    };
    unsigned link;

    switch (uct_varuna_retry_check(&target->gap.retry, &policy, now, now)) {
    case UCT_VARUNA_RETRY_GIVE_UP:
        uct_varuna_gap_forget(target);
        return;
    case UCT_VARUNA_RETRY_WAIT:
        return;
    case UCT_VARUNA_RETRY_SEND:
        break;
    }

    link = uct_varuna_retry_next(&target->gap.retry, &policy, 0,
                                 UCS_MASK(resp->iface->num_links), now);
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_ctl_reject(resp->ctl, link, &hdr, UCS_ERR_CONNECTION_RESET);
    uct_varuna_ctl_unlock(resp->ctl);
}

void uct_varuna_gap_refuse(uct_varuna_responder_t *resp, uct_varuna_target_t *target)
{
    uct_varuna_gap_tell(resp, target, 0, uct_varuna_ctl_now(resp->ctl));
}

void uct_varuna_gap_end_target(uct_varuna_target_t *target)
{
    __atomic_store_n(&target->broken, 1, __ATOMIC_RELAXED); /* The async thread reads it */
    target->expected = UCT_VARUNA_TARGET_EXPECTS_NONE;
    uct_varuna_retry_start(&target->gap.retry, 0, 0);
}

void uct_varuna_gap_break(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, const char *reason)
{
    if (target->broken) {
        return;
    }

    ucs_log(resp->iface->super.config.failure_level,
            "rc_varuna: vQP %u of peer 0x%" PRIx64 " fails: message %u %s, %u "
            "later ones are dropped", target->vqp, target->peer->uuid,
            target->next_seq - uct_varuna_am_seq_first(target->opening), reason,
            target->held.num);
    uct_varuna_held_clear(&target->held);
    uct_varuna_gap_end_target(target);
    if (!target->gap.watched) {
        target->gap.watched = 1;
        ucs_list_add_tail(&resp->received.gaps, &target->gap.list);
    }

    uct_varuna_gap_refuse(resp, target);
}

static void uct_varuna_gap_check(uct_varuna_responder_t *resp,
                                 uct_varuna_target_t *target, ucs_time_t now,
                                 int is_dry)
{
    if (target->broken) {
        uct_varuna_gap_tell(resp, target, UCT_VARUNA_GAP_MAX_REJECTS, now);
    } else if (UCS_CIRCULAR_COMPARE32(target->gap.end, <=, target->next_seq)) {
        uct_varuna_gap_forget(target);
    } else if (target->gap.next != target->next_seq) {
        target->gap.next  = target->next_seq;
        target->gap.since = now;
    } else if (is_dry &&
               (now - target->gap.since > resp->iface->config.packet_lifetime)) {
        uct_varuna_gap_break(resp, target,
                             "was acknowledged, but did not come");
    }
}

void uct_varuna_gap_progress(uct_varuna_responder_t *resp)
{
    ucs_time_t now;
    uct_varuna_target_t *target, *tmp;
    int is_dry;

    if (ucs_list_is_empty(&resp->received.gaps)) {
        return;
    }

    /* In this order: what comes before the clock is read is taken */
    now    = uct_varuna_ctl_now(resp->ctl);
    is_dry = (uct_varuna_lanes_progress(resp->iface) == 0);
    ucs_list_for_each_safe(target, tmp, &resp->received.gaps, gap.list) {
        uct_varuna_gap_check(resp, target, now, is_dry);
    }
}

int uct_varuna_gap_is_watching(uct_varuna_responder_t *resp)
{
    return !ucs_list_is_empty(&resp->received.gaps);
}


/* --- Arrival in memory of devices --- */

/* Devices of a process; each region counts if UCX does not tell them apart */
#define UCT_VARUNA_ARRIVAL_MAX       64

/* A NIC that works answers within microseconds. The thread waits for a fence as well, and for
 * less than UCT_VARUNA_CMD_HUNG in all */
#define UCT_VARUNA_ARRIVAL_TIMEOUT   4e-3 /* sec */

/* A region may have been deregistered since it was listed. That has placed its data, but the
 * read fails, and with it the queue pair */
#define UCT_VARUNA_ARRIVAL_TRIES     3

static ucs_status_t uct_varuna_arrival_read(uct_varuna_responder_t *resp, unsigned link,
                                            const uct_varuna_place_t *places, unsigned num,
                                            ucs_time_t until)
{
    uct_varuna_readback_t **readback_p = &resp->readbacks[link];
    ucs_status_t status                = UCS_OK;
    unsigned i;

    if (*readback_p == NULL) {
        status = uct_varuna_readback_open(uct_varuna_link_rc(&resp->iface->links[link])->inner,
                                          readback_p);
    }

    for (i = 0; (i < num) && (status == UCS_OK); ++i) {
        status = uct_varuna_readback_run(*readback_p, places[i].address, places[i].rkey, until);
    }

    if ((status != UCS_OK) && (*readback_p != NULL)) {
        uct_varuna_readback_close(*readback_p);
        *readback_p = NULL;
    }

    return status;
}

/* Read memory of each device of which peers have keys, over the NIC of a link. Thread of that
 * NIC.
 *
 * @return Nonzero if all that this NIC has accepted has arrived; 0 if that is not known. */
static int uct_varuna_arrival_prove(uct_varuna_responder_t *resp, unsigned link)
{
    uct_varuna_iface_t *iface = resp->iface;
    ucs_time_t until          = ucs_get_time() +
                                ucs_time_from_sec(UCT_VARUNA_ARRIVAL_TIMEOUT);
    ucs_status_t status       = UCS_ERR_IO_ERROR;
    uct_varuna_place_t places[UCT_VARUNA_ARRIVAL_MAX];
    unsigned i, num;

    for (i = 0; (i < UCT_VARUNA_ARRIVAL_TRIES) && (status != UCS_OK); ++i) {
        num = uct_varuna_md_list_devices(iface->md, iface->links[link].nic, places,
                                         UCT_VARUNA_ARRIVAL_MAX);
        if (num == 0) {
            return 1;
        } else if (num > UCT_VARUNA_ARRIVAL_MAX) {
            break;
        }

        status = uct_varuna_arrival_read(resp, link, places, num, until);
    }

    ucs_debug("rc_varuna: %s: data has %s in the memory of %u devices",
              uct_varuna_link_name(iface, link),
              (status == UCS_OK) ? "arrived" : "perhaps not arrived", num);
    return status == UCS_OK;
}

void uct_varuna_arrival_close(uct_varuna_responder_t *resp, unsigned link)
{
    if (resp->readbacks[link] != NULL) {
        uct_varuna_readback_close(resp->readbacks[link]);
        resp->readbacks[link] = NULL;
    }
}

void uct_varuna_arrival_cleanup(uct_varuna_responder_t *resp)
{
    unsigned link;

    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        if ((resp->readbacks[link] != NULL) && !(resp->iface->cmds.left & UCS_BIT(link))) {
            uct_varuna_readback_close(resp->readbacks[link]);
        }
    }
}
