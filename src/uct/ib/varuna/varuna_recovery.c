/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Moves a vQP from lane to lane. One dispatcher (uct_varuna_ep_step) calls one
 * small function per state; whoever finds a failure calls
 * uct_varuna_recovery_start(). The picture of the states is in varuna_ep.h,
 * the protocol in docs/RECOVERY.md.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_recovery.h"
#include "varuna_amo.h"
#include "varuna_compare.h"
#include "varuna_compat.h"
#include "varuna_drain.h"
#include "varuna_ep_ops.h"
#include "varuna_heartbeat.h"
#include "varuna_mlx5.h"
#include "varuna_mutate.h"
#include "varuna_req.h"
#include "varuna_resend.h"
#include "varuna_stat.h"
#include "varuna_swap.h"

#include <uct/api/v2/uct_v2.h>
#include <inttypes.h>

const char *uct_varuna_ep_state_names[] = {
    [UCT_VARUNA_EP_OPENING]    = "opening",
    [UCT_VARUNA_EP_ACTIVE]     = "active",
    [UCT_VARUNA_EP_SWAP]       = "swap",
    [UCT_VARUNA_EP_DRAIN]      = "drain",
    [UCT_VARUNA_EP_FENCE]      = "fence",
    [UCT_VARUNA_EP_REPEAT]     = "repeat",
    [UCT_VARUNA_EP_FAILED]     = "failed",
    [UCT_VARUNA_EP_STATE_LAST] = NULL
};

void uct_varuna_ep_set_state(uct_varuna_ep_t *ep, uct_varuna_ep_state_t state)
{
    ucs_debug("ep %p: vQP %u: %s -> %s (%s epoch %u on link %u)", ep, ep->id,
              uct_varuna_ep_state_names[ep->state],
              uct_varuna_ep_state_names[state],
              uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
              ep->lane.link);
    ep->state       = state;
    ep->state_since = ucs_get_time();
}

void uct_varuna_ep_add_work(uct_varuna_ep_t *ep)
{
    if (!ep->on_work) {
        ep->on_work = 1;
        ucs_list_add_tail(&uct_varuna_ep_iface(ep)->work, &ep->work);
    }
}

/* --- Control messages of the requester --- */

/* The link for a control request: the chosen one first, then round robin over
 * all which reach the peer, since silence may mean that the link is dead. */
static unsigned uct_varuna_ep_next_ctl_link(uct_varuna_ep_t *ep)
{
    unsigned map  = ep->peer->link_map;
    uint8_t link  = uct_varuna_ep_select_link(ep);

    if (ep->ctl_sent == 0) {
        return (link == UCT_VARUNA_LINK_NONE) ? ucs_ffs64(map) : link;
    }

    link = ep->ctl_link;
    do {
        link = (link + 1) % UCT_VARUNA_MAX_LINKS;
    } while (!(map & UCS_BIT(link)));
    return link;
}

/* Send a request now if none was sent lately. */
static void
uct_varuna_ep_ctl_request(uct_varuna_ep_t *ep, ucs_time_t now,
                          uct_varuna_ctl_type_t type, uint32_t epoch,
                          const void *body, size_t length)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    if ((ep->ctl_sent != 0) &&
        (now - ep->ctl_sent < iface->config.ctl_timeout)) {
        return;
    }

    ep->ctl_link = uct_varuna_ep_next_ctl_link(ep);
    ep->ctl_sent = now;
    uct_varuna_ctl_send(iface->ctl, ep->peer, ep->ctl_link, type, iface->uuid,
                        ep->id, epoch, body, length);
}

static void uct_varuna_ep_check_give_up(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    if (ep->lane.link != UCT_VARUNA_LINK_NONE) {
        uct_varuna_heartbeat_use(ep->peer, ep->lane.link, now);
    }

    if (uct_varuna_heartbeat_is_gone(ep->peer, iface->config.peer_timeout)) {
        ucs_diag("ep %p: vQP %u: the peer's process is gone: it was silent on all "
                 "links for %.1f s while others on its host answered", ep,
                 ep->id, ucs_time_to_sec(iface->config.peer_timeout));
        uct_varuna_ep_fail(ep, UCS_ERR_ENDPOINT_TIMEOUT);
    } else if (now > (ep->state_since + iface->config.give_up)) {
        ucs_diag("ep %p: vQP %u: no answer from the peer in state %s for %.1f s:"
                 " giving up", ep, ep->id, uct_varuna_ep_state_names[ep->state],
                 ucs_time_to_sec(now - ep->state_since));
        uct_varuna_ep_fail(ep, UCS_ERR_ENDPOINT_TIMEOUT);
    }
}

static int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now)
{
    struct {
        uct_varuna_ctl_open_req_t req;
        uint8_t                   addr[512];
    } UCS_S_PACKED body;

    if (ep->logs_addr != 0) {
        return 1; /* Opened, and no link is usable: the scan tries */
    }

    body.req.reserved = 0;
    body.req.addr_len = uct_varuna_iface_pack_address(uct_varuna_ep_iface(ep),
                                                      1, body.addr,
                                                      sizeof(body.addr));
    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_OPEN_REQ, ep->instance,
                              &body, sizeof(body.req) + body.req.addr_len);
    uct_varuna_ep_check_give_up(ep, now);
    return 1;
}

/* --- Recovery --- */

void uct_varuna_recovery_start(uct_varuna_ep_t *ep, const char *reason)
{
    switch (ep->state) {
    case UCT_VARUNA_EP_ACTIVE:
    case UCT_VARUNA_EP_SWAP:
    case UCT_VARUNA_EP_REPEAT:
        break;
    default:
        return;
    }

    if (uct_varuna_ep_iface(ep)->config.recovery == UCT_VARUNA_RECOVERY_NONE) {
        uct_varuna_ep_fail(ep, UCS_ERR_ENDPOINT_TIMEOUT);
        return;
    }

    if (ep->noticed_at == 0) {
        ep->noticed_at         = ucs_get_time();
    }

    if (ep->recovery.start == 0) {
        ep->recovery.start     = ucs_get_time();
        ep->recovery.from_link = ep->lane.link;
        ep->recovery.from_kind = ep->lane.kind;
        ep->recovery.reason    = reason;
        ep->recovery.equal     = 0;
        ep->recovery.different = 0;
        memset(&ep->recovery.result, 0, sizeof(ep->recovery.result));
    }

    ucs_debug("ep %p: vQP %u leaves %s epoch %u on %s: %s", ep, ep->id,
              uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->lane.link),
              reason);
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_DRAIN);
    ep->dead        = ep->lane;
    ep->lane.ep     = NULL;
    ep->owed        = NULL;
    ep->silent      = 0;
    ep->last_silent = NULL;
    uct_varuna_ep_leave_inner_pending(ep, ep->dead.ep);
    uct_varuna_compat_ep_invalidate(ep->dead.ep);
    /* The new lane takes its log ring, so what was being built is given up */
    ep->next_failed = (ep->next.ep != NULL) && !uct_varuna_ep_is_resend(ep);
    uct_varuna_ep_add_work(ep);
}

void uct_varuna_ep_lane_error(uct_varuna_ep_t *ep, uct_ep_h inner,
                              ucs_status_t status)
{
#ifdef UCT_VARUNA_MUTATIONS
    ep->old_error |= (inner == NULL) || (inner == ep->dead.ep);
#endif
    if (inner == NULL) {
        return; /* Of an old incarnation */
    }

    if (inner == ep->next.ep) {
        ep->next_failed = 1;
        uct_varuna_path_down(ep, ep->next.link);
        uct_varuna_ep_add_work(ep);
        return;
    }

    if (inner != ep->lane.ep) {
        return;
    }

    switch (status) {
    case UCS_ERR_ENDPOINT_TIMEOUT:
        uct_varuna_path_down(ep, ep->lane.link);
        /* Fall through */
    case UCS_ERR_CANCELED:
        uct_varuna_recovery_start(ep, ucs_status_string(status));
        break;
    default:
        /* A wrong key or address is no fault of the link, and would only
         * fail again */
        uct_varuna_ep_fail(ep, status);
        break;
    }
}

/* What was posted may be executed, or an answer be written, at any later time */
static void uct_varuna_ep_fail_unconfirmed(uct_varuna_ep_t *ep)
{
    ucs_error("ep %p: %s stopped working, and nobody can tell that its queue "
              "pair has: nothing can be repeated safely", ep,
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->dead.link));
    uct_varuna_ep_fail(ep, UCS_ERR_ENDPOINT_TIMEOUT);
}

static int uct_varuna_ep_step_drain(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_drain_t drain = uct_varuna_drain_check(ep, now);

    switch (drain) {
    case UCT_VARUNA_DRAIN_WAIT:
        return 1;
    case UCT_VARUNA_DRAIN_HOPELESS:
        uct_varuna_ep_fail_unconfirmed(ep);
        return 1;
    default:
        break;
    }

    ep->stuck     = (drain == UCT_VARUNA_DRAIN_STUCK);
    ep->fenced_at = 0;
    if (!ep->stuck) {
        /* Nothing of the old lane can write our memory any more */
        uct_varuna_compare_abort(ep);
    }

    if (uct_varuna_ep_is_resend(ep)) {
        uct_varuna_resend_mark(ep);
        uct_varuna_lane_destroy(ep, &ep->dead);
        uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_REPEAT);
        return 1;
    }

    ep->ctl_sent = 0;
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_FENCE);
    return 1;
}

/* Number of the first message which may not have been acknowledged. */
static uint32_t uct_varuna_ep_am_acked(const uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    ucs_queue_for_each(req, &ep->reqs, queue) {
        if (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_AM) {
            return req->am.hdr.seq;
        }
    }

    return ep->am_seq;
}

static int uct_varuna_ep_step_fence(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_ctl_fence_req_t req;

    /* The responder cannot fence a DC lane; what is still on the wire is gone
     * after the longest packet lifetime, and only then does the log count */
    req.newest = ep->epoch;
    req.round  = (now >= (ep->state_since + iface->config.packet_lifetime));
    if ((ep->dead.kind == UCT_VARUNA_LANE_DC) && !req.round &&
        !uct_varuna_mutate(NO_FENCE)) {
        return 1;
    }

    req.am_acked = uct_varuna_ep_am_acked(ep);
    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_FENCE_REQ,
                              ep->dead.epoch, &req, sizeof(req));
    uct_varuna_ep_check_give_up(ep, now);
    return 1;
}

static void uct_varuna_ep_fill_plan(uct_varuna_ep_t *ep,
                                    uct_varuna_plan_op_t *ops)
{
    uct_varuna_req_t *req;
    unsigned i = 0;

    ucs_queue_for_each(req, &ep->reqs, queue) {
        ops[i].kind    = uct_varuna_req_info(req)->kind;
        ops[i].posted  = !!(req->flags & UCT_VARUNA_REQ_FLAG_POSTED);
        ops[i].fenced  = !!(req->flags & UCT_VARUNA_REQ_FLAG_FENCE);
        ops[i].logged  = !!(req->flags & UCT_VARUNA_REQ_FLAG_LOGGED);
        ops[i].log_sn  = req->log_sn;
        ops[i].end_psn = req->end_psn;
        ops[i].req     = req;
        ops[i].verdict = UCT_VARUNA_VERDICT_REPEAT;
        ++i;
    }
}

/* Atomics which were executed but whose value is lost: not recoverable yet. */
static int uct_varuna_req_lost_value(const uct_varuna_req_t *req)
{
    return (req->type == UCT_VARUNA_REQ_ATOMIC_FETCH) ||
           (req->type == UCT_VARUNA_REQ_CSWAP);
}

/* What a compare and swap keeps when it becomes a read of its target */
typedef struct uct_varuna_reread {
    uint64_t                   compare;
    uint64_t                   swap;
    void                       *result;
    size_t                     width;
} uct_varuna_reread_t;

static void uct_varuna_reread_unpack(void *arg, const void *data, size_t length)
{
    const uct_varuna_reread_t *reread = arg;
    const void *old                   =
            !memcmp(data, &reread->swap, reread->width) ? &reread->compare :
            data;

    memcpy(reread->result, old, reread->width);
}

/* Mode 'reread' (paper): if the value is unique, or there is no other writer, the
 * target tells whether an executed compare and swap succeeded. */
static void uct_varuna_ep_reread(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    uct_varuna_reread_t *reread = (uct_varuna_reread_t*)req->data;

    reread->compare = req->atomic.compare;
    reread->swap    = req->atomic.value;
    reread->result  = req->atomic.result;
    reread->width   = req->length;
    req->type       = UCT_VARUNA_REQ_GET_BCOPY;
    req->get.cb     = uct_varuna_reread_unpack;
    req->get.arg    = reread;
    ++ep->num_reads;
}

/* Give each request its verdict. @return UCS_OK, or why the endpoint fails. */
static ucs_status_t
uct_varuna_ep_apply_plan(uct_varuna_ep_t *ep, const uct_varuna_plan_op_t *ops)
{
    ucs_status_t status = UCS_OK;
    uct_varuna_req_t *req;
    unsigned i = 0;

    ucs_queue_for_each(req, &ep->reqs, queue) {
        /* The log entry of this incarnation has said what it had to say */
        if (uct_varuna_req_info(req)->logged &&
            (req->flags & UCT_VARUNA_REQ_FLAG_POSTED)) {
            uct_varuna_oplog_finish(&ep->oplog, req->log_sn);
        }

        req->flags &= ~(UCT_VARUNA_REQ_FLAG_POSTED |
                        UCT_VARUNA_REQ_FLAG_LOGGED);
        if ((req->type == UCT_VARUNA_REQ_AMO_OCCUPY) && ops[i].posted) {
            /* Its atomic finds out (rule 6 of docs/ATOMICS.md) */
            req->flags |= UCT_VARUNA_REQ_FLAG_DONE | UCT_VARUNA_REQ_FLAG_LOST;
            ++i;
            continue;
        }

        switch (ops[i].verdict) {
        case UCT_VARUNA_VERDICT_EXECUTED:
            if ((req->type == UCT_VARUNA_REQ_CSWAP) &&
                (uct_varuna_ep_iface(ep)->md->atomic_mode ==
                 UCT_VARUNA_ATOMIC_REREAD)) {
                uct_varuna_ep_reread(ep, req);
                break;
            }

            req->flags |= UCT_VARUNA_REQ_FLAG_DONE;
            if (uct_varuna_req_lost_value(req)) {
                ucs_error("ep %p: an atomic was executed, but its value is lost"
                          " with the link", ep);
                status = UCS_ERR_CONNECTION_RESET;
            }
            break;
        case UCT_VARUNA_VERDICT_LOST_DATA:
            ucs_error("ep %p: the peer's evidence contradicts itself: data may"
                      " be lost", ep);
            status = UCS_ERR_IO_ERROR;
            break;
        case UCT_VARUNA_VERDICT_AMBIGUOUS:
            req->flags |= UCT_VARUNA_REQ_FLAG_AMBIGUOUS;
            break;
        default:
            if (ops[i].posted) {
                ep->stats.repeated_bytes += req->length;
            }
            break;
        }
        ++i;
    }

    return status;
}

static void uct_varuna_ep_add_result(uct_varuna_ep_t *ep,
                                     const uct_varuna_plan_result_t *result)
{
    /* Ambiguous ones are compared first */
    unsigned repeated = result->repeated - result->ambiguous;

    ep->recovery.result.executed  += result->executed;
    ep->recovery.result.lost      += result->lost;
    ep->recovery.result.repeated  += repeated;
    ep->recovery.result.ambiguous += result->ambiguous;
    ep->stats.executed            += result->executed;
    ep->stats.lost                += result->lost;
    ep->stats.repeated            += repeated;
    ep->stats.ambiguous           += result->ambiguous;
}

/* Verdicts which are wrong on purpose. */
static void uct_varuna_ep_mutate_plan(uct_varuna_plan_op_t *ops,
                                      unsigned num_ops)
{
    const uct_varuna_req_t *req;
    unsigned i;

    for (i = 0; i < num_ops; ++i) {
        req = ops[i].req;
        if (uct_varuna_mutate(BLIND_RESEND) ||
            (uct_varuna_mutate(NO_PSN) &&
             (ops[i].verdict == UCT_VARUNA_VERDICT_AMBIGUOUS))) {
            ops[i].verdict = UCT_VARUNA_VERDICT_REPEAT;
        } else if (uct_varuna_mutate(BELIEVE_STATUS) && ops[i].posted &&
                   (ops[i].kind != UCT_VARUNA_OP_FLUSH)) {
            /* What has told no error was executed */
            ops[i].verdict = (req->flags & UCT_VARUNA_REQ_FLAG_ERROR) ?
                             UCT_VARUNA_VERDICT_REPEAT :
                             UCT_VARUNA_VERDICT_EXECUTED;
        }
    }
}

/* @return whether a lane that was not flushed has come to rest otherwise. */
static int
uct_varuna_ep_is_stuck_fenced(uct_varuna_ep_t *ep,
                              const uct_varuna_ctl_fence_rep_t *rep)
{
    switch (uct_varuna_drain_fenced(ep, !!(rep->flags & UCT_VARUNA_FENCE_FLAG_QP),
                                    rep->round > 0, ucs_get_time())) {
    case UCT_VARUNA_DRAIN_DONE:
        return 1;
    case UCT_VARUNA_DRAIN_HOPELESS:
        uct_varuna_ep_fail_unconfirmed(ep);
        return 0;
    default:
        return 0; /* Asked again */
    }
}

static void
uct_varuna_ep_handle_fence_rep(uct_varuna_ep_t *ep,
                               const uct_varuna_ctl_hdr_t *hdr,
                               const uct_varuna_ctl_fence_rep_t *rep)
{
    uct_varuna_plan_op_t *ops;
    uint64_t ring[UCT_VARUNA_LOG_SIZE];
    uct_varuna_evidence_t evidence;
    uct_varuna_plan_result_t result;
    ucs_status_t status;

    if ((ep->state != UCT_VARUNA_EP_FENCE) || (hdr->epoch != ep->dead.epoch)) {
        return; /* A repeated answer */
    }

    if (rep->log_size != UCT_VARUNA_LOG_SIZE) {
        uct_varuna_ep_fail(ep, UCS_ERR_INVALID_PARAM);
        return;
    }

    if (ucs_unlikely(ep->stuck) && !uct_varuna_ep_is_stuck_fenced(ep, rep)) {
        return;
    }

    /* The responder could not stop its QP (its NIC is dead?): only time can.
     * The request goes out again, and the log counts if it was read after the
     * time was over: an answer may have been under way for long */
    if (!(rep->flags & UCT_VARUNA_FENCE_FLAG_QP) && (rep->round == 0) &&
        !uct_varuna_mutate(NO_FENCE)) {
        return;
    }

    ops = ucs_malloc((ep->num_reqs + 1) * sizeof(*ops), "varuna_plan");
    if (ops == NULL) {
        return; /* Asked again after the control timeout */
    }

    memcpy(ring, rep + 1, sizeof(ring));
    evidence.log     = ring;
    evidence.has_psn = (rep->flags & UCT_VARUNA_FENCE_FLAG_PSN) &&
                       (ep->dead.mtu != 0) &&
                       uct_varuna_ep_iface(ep)->config.psn &&
                       !uct_varuna_mutate(NO_PSN);
    evidence.epsn    = rep->epsn;
    uct_varuna_ep_fill_plan(ep, ops);
    uct_varuna_plan_make(ops, ep->num_reqs, &evidence, &result);
    uct_varuna_ep_mutate_plan(ops, ep->num_reqs);
    ucs_debug("ep %p: vQP %u: epoch %u: %u requests, log up to %u, next psn %u,"
              " the peer's log %s, expected psn %s%u: executed %u lost %u "
              "repeated %u ambiguous %u", ep, ep->id, hdr->epoch, ep->num_reqs,
              ep->oplog.head - 1, ep->dead.psn,
              (rep->flags & UCT_VARUNA_FENCE_FLAG_QP) ? "fenced" : "unfenced",
              evidence.has_psn ? "" : "unknown ", evidence.epsn,
              result.executed, result.lost, result.repeated, result.ambiguous);
    uct_varuna_ep_add_result(ep, &result);
    status = uct_varuna_ep_apply_plan(ep, ops);
    ucs_free(ops);
    if (status != UCS_OK) {
        uct_varuna_ep_fail(ep, status);
        return;
    }

    uct_varuna_lane_destroy(ep, &ep->dead);
    uct_varuna_compare_abort(ep);
    ep->stuck = 0;
#ifdef UCT_VARUNA_MUTATIONS
    ep->leak_until = ucs_get_time() + ucs_time_from_msec(2);
#endif
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_REPEAT);
    uct_varuna_ep_add_work(ep);
}

/* Post the lost ones in order, with their fences. */
static ucs_status_t uct_varuna_ep_repeat(uct_varuna_ep_t *ep)
{
    unsigned reads = 0;
    uct_varuna_req_t *req;
    ucs_status_t status;

    ucs_queue_for_each(req, &ep->reqs, queue) {
        if ((req->flags & UCT_VARUNA_REQ_FLAG_FENCE) && (reads > 0)) {
            return UCS_ERR_NO_RESOURCE; /* See uct_varuna_ep_can_post() */
        }

        reads += (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_GET);
        if ((req->type == UCT_VARUNA_REQ_FLUSH) ||
            (req->flags & (UCT_VARUNA_REQ_FLAG_POSTED |
                           UCT_VARUNA_REQ_FLAG_DONE))) {
            continue;
        }

        if ((ep->owed != NULL) && !uct_varuna_ep_post_owed_log(ep)) {
            return UCS_ERR_NO_RESOURCE;
        }

        if ((ep->state != UCT_VARUNA_EP_REPEAT) ||
            uct_varuna_oplog_is_full(&ep->oplog)) {
            return UCS_ERR_NO_RESOURCE;
        }

        if (ucs_unlikely(req->flags & UCT_VARUNA_REQ_FLAG_AMBIGUOUS)) {
            status = uct_varuna_compare_step(ep, req);
            if (status == UCS_ERR_CONNECTION_RESET) {
                uct_varuna_ep_fail(ep, status);
                return UCS_ERR_NO_RESOURCE;
            } else if (status != UCS_OK) {
                return status;
            } else if (req->flags & UCT_VARUNA_REQ_FLAG_DONE) {
                continue;
            }
        }

        status = uct_varuna_req_post(req, 1);
        if (status != UCS_OK) {
            return status;
        }
    }

    return UCS_OK;
}

static int uct_varuna_ep_step_repeat(uct_varuna_ep_t *ep, ucs_time_t now)
{
    ucs_status_t status;

    if ((ep->lane.ep == NULL) &&
        !(uct_varuna_ep_is_resend(ep) ? uct_varuna_resend_take_lane(ep, now) :
          uct_varuna_ep_take_dc_lane(ep))) {
        uct_varuna_ep_check_give_up(ep, now);
        return 1;
    }

    if (uct_varuna_ep_lane_failed(ep)) {
        uct_varuna_recovery_start(ep, uct_varuna_ep_failure_reason(ep));
        return 1;
    }

    if (uct_varuna_ep_leaks(ep, now)) {
        uct_varuna_ep_dispatch_pending(ep);
        return 1;
    }

    status = uct_varuna_ep_repeat(ep);
    if (status == UCS_ERR_NO_RESOURCE) {
        return 1;
    } else if (status != UCS_OK) {
        uct_varuna_recovery_start(ep, ucs_status_string(status));
        return 1;
    }

    /* A flush may be among them, or may have come meanwhile: nobody else would
     * ask for the completion of what was posted last */
    ep->want_signal = (ep->silent > 0);
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_ACTIVE);
    if (ep->recovery.start != 0) {
        uct_varuna_stat_switched(ep);
        ep->recovery.start = 0;
    }
    ep->next_try = now;
#ifdef UCT_VARUNA_MUTATIONS
    if (uct_varuna_mutate(OLD_ERRORS) && ep->old_error) {
        ep->old_error = 0;
        uct_varuna_path_down(ep, ep->lane.link);
        uct_varuna_recovery_start(ep, "error of an old lane");
    }
#endif
    uct_varuna_ep_finish_done(ep);
    return 1;
}

static int uct_varuna_ep_step_active(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_lane_failed(ep)) {
        uct_varuna_recovery_start(ep, uct_varuna_ep_failure_reason(ep));
        return 1;
    }

    if (ep->next_ready && !ep->next_failed && !ep->next_spare) {
        ep->swap_read = 0;
        uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_SWAP);
        return 1;
    }

    if (!ucs_queue_is_empty(&ep->pending)) {
        uct_varuna_ep_dispatch_pending(ep);
        if (!ucs_queue_is_empty(&ep->pending) &&
            (ep->state == UCT_VARUNA_EP_ACTIVE)) {
            uct_varuna_ep_signal(ep); /* What is in the way may be silent */
            uct_varuna_ep_enter_inner_pending(ep);
        }
    }

    if (ucs_unlikely(uct_varuna_amo_progress(ep))) {
        return 1;
    }

    return (ep->owed != NULL) || ((ep->silent > 0) && ep->want_signal) ||
           (!ucs_queue_is_empty(&ep->pending) && !ep->inner_pend_queued);
}

/* --- Failure --- */

void uct_varuna_ep_fail(uct_varuna_ep_t *ep, ucs_status_t status)
{
    if (ep->state == UCT_VARUNA_EP_FAILED) {
        return;
    }

    if (status != UCS_OK) {
        ucs_log(uct_varuna_ep_iface(ep)->super.config.failure_level,
                "ep %p: vQP %u fails in state %s (%s epoch %u): %s", ep,
                ep->id, uct_varuna_ep_state_names[ep->state],
                uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
                ucs_status_string(status));
    }

    if (ep->lane.ep != NULL) {
        uct_varuna_ep_leave_inner_pending(ep, ep->lane.ep);
        uct_varuna_compat_ep_invalidate(ep->lane.ep);
        ep->dead    = ep->lane;
        ep->lane.ep = NULL;
    }

    ep->owed        = NULL;
    ep->silent      = 0;
    ep->last_silent = NULL;
    ep->fail_status = status;
    ep->reported    = 0;
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_FAILED);
    uct_varuna_ep_add_work(ep);
}

/* The lane is drained first: nothing may still write a user's buffer when its
 * completion is called. */
static int uct_varuna_ep_step_failed(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    ucs_status_t status       = ep->fail_status;

    if ((ep->dead.ep != NULL) &&
        (uct_varuna_drain_check(ep, now) == UCT_VARUNA_DRAIN_WAIT)) {
        return 1;
    }

    uct_varuna_lane_destroy(ep, &ep->dead);
    uct_varuna_compare_abort(ep);
    uct_varuna_ep_drop_next(ep);
    while (!ucs_queue_is_empty(&ep->reqs)) {
        uct_varuna_ep_finish_head(ep, (status == UCS_OK) ? UCS_ERR_CANCELED :
                                  status);
    }
    uct_varuna_amo_fail_all(ep, (status == UCS_OK) ? UCS_ERR_CANCELED : status);

    if ((status != UCS_OK) && !ep->reported) {
        ep->reported = 1;
        status = uct_iface_handle_ep_err(&iface->super.super, &ep->super.super,
                                         status);
        if (status != UCS_OK) {
            ucs_log(iface->super.config.failure_level,
                    "ep %p: %s, and no error handler took it", ep,
                    ucs_status_string(ep->fail_status));
        }
    }

    return 0;
}

/* --- Dispatcher --- */

static int (*const uct_varuna_ep_steps[])(uct_varuna_ep_t*, ucs_time_t) = {
    [UCT_VARUNA_EP_OPENING] = uct_varuna_ep_step_opening,
    [UCT_VARUNA_EP_ACTIVE]  = uct_varuna_ep_step_active,
    [UCT_VARUNA_EP_SWAP]    = uct_varuna_ep_step_swap,
    [UCT_VARUNA_EP_DRAIN]   = uct_varuna_ep_step_drain,
    [UCT_VARUNA_EP_FENCE]   = uct_varuna_ep_step_fence,
    [UCT_VARUNA_EP_REPEAT]  = uct_varuna_ep_step_repeat,
    [UCT_VARUNA_EP_FAILED]  = uct_varuna_ep_step_failed
};

/* What may be left over in any state with a lane: the owed log write, and a
 * completion for what was posted silently. */
static void uct_varuna_ep_step_lane(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *last, *head;

    if ((ep->owed != NULL) && !uct_varuna_ep_post_owed_log(ep)) {
        return;
    }

    if ((ep->lane.ep == NULL) || (ep->silent == 0) ||
        ((ep->state == UCT_VARUNA_EP_ACTIVE) && !ep->want_signal)) {
        return;
    }

    last = ep->last_silent;
    if (uct_varuna_ep_signal(ep) == UCS_OK) {
        do {
            head = ucs_queue_head_elem_non_empty(&ep->reqs, uct_varuna_req_t,
                                                 queue);
            uct_varuna_ep_finish_head(ep, UCS_OK);
        } while (head != last);
        uct_varuna_ep_finish_done(ep);
    }
}

int uct_varuna_ep_step(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (ucs_unlikely(ep->next_failed)) {
        uct_varuna_ep_drop_next(ep);
    }

    uct_varuna_ep_step_lane(ep);
    return uct_varuna_ep_steps[ep->state](ep, now);
}

static void
uct_varuna_ep_handle_reject(uct_varuna_ep_t *ep,
                            const uct_varuna_ctl_reject_t *rej)
{
    if ((rej->type == UCT_VARUNA_CTL_CONNECT_REQ) && (ep->next.ep != NULL)) {
        ep->next_failed = 1;
        uct_varuna_ep_add_work(ep);
        return;
    }

    ucs_diag("ep %p: the peer refused vQP %u: %s", ep, ep->id,
             ucs_status_string((ucs_status_t)rej->status));
    uct_varuna_ep_fail(ep, UCS_ERR_CONNECTION_RESET);
}

static void
uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_req_t *req;
    ucs_status_t status;

    if ((ep->state != UCT_VARUNA_EP_OPENING) || (ep->logs_addr != 0) ||
        (hdr->epoch != ep->instance)) {
        return;
    }

    if ((rep->log_size != UCT_VARUNA_LOG_SIZE) ||
        (rep->log_count != UCT_VARUNA_LOG_COUNT) || (rep->log_addr == 0) ||
        (rep->target >= UCT_VARUNA_TARGET_ID_MAX)) {
        ucs_error("ep %p: the peer offers logs of another shape (%u x %u): "
                  "install the same rc_varuna on both hosts", ep,
                  rep->log_count, rep->log_size);
        uct_varuna_ep_fail(ep, UCS_ERR_INVALID_PARAM);
        return;
    }

    status = uct_rkey_unpack(&uct_varuna_component, rep + 1, &ep->log_bundle);
    if (status != UCS_OK) {
        uct_varuna_ep_fail(ep, status);
        return;
    }

    status = uct_varuna_amo_open(ep, rep);
    if (status != UCS_OK) {
        uct_rkey_release(&uct_varuna_component, &ep->log_bundle);
        uct_varuna_ep_fail(ep, status);
        return;
    }

    ep->log_rkey  = ep->log_bundle.rkey;
    ep->logs_addr = rep->log_addr;
    ep->target    = rep->target;
    ucs_queue_for_each(req, &ep->reqs, queue) {
        uct_varuna_req_set_target(req, rep->target);
    }
    uct_varuna_ep_scan(ep, 0);
}

void uct_varuna_ep_handle_ctl(uct_varuna_ep_t *ep,
                              const uct_varuna_ctl_hdr_t *hdr, const void *body,
                              unsigned link)
{
    switch (hdr->type) {
    case UCT_VARUNA_CTL_OPEN_REP:
        uct_varuna_ep_handle_open_rep(ep, hdr, body);
        break;
    case UCT_VARUNA_CTL_CONNECT_REP:
        uct_varuna_ep_handle_connect_rep(ep, hdr, body);
        break;
    case UCT_VARUNA_CTL_FENCE_REP:
        uct_varuna_ep_handle_fence_rep(ep, hdr, body);
        break;
    case UCT_VARUNA_CTL_PROXY_REP:
        uct_varuna_amo_handle_proxy_rep(ep, body);
        break;
    case UCT_VARUNA_CTL_REJECT:
        uct_varuna_ep_handle_reject(ep, body);
        break;
    default:
        break;
    }
}
