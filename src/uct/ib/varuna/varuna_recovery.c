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
#include "varuna_ep_ops.h"
#include "varuna_mlx5.h"
#include "varuna_req.h"

#include <uct/api/v2/uct_v2.h>
#include <inttypes.h>

/* The time between CONNECT_REQs doubles so often at most. */
#define UCT_VARUNA_MAX_CONNECT_BACKOFF 6

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

static uct_varuna_iface_t *uct_varuna_ep_iface(const uct_varuna_ep_t *ep)
{
    return ucs_derived_of(ep->super.super.iface, uct_varuna_iface_t);
}

static void uct_varuna_ep_set_state(uct_varuna_ep_t *ep,
                                    uct_varuna_ep_state_t state)
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

static const char *uct_varuna_link_name(const uct_varuna_iface_t *iface,
                                        unsigned link)
{
    return iface->md->nics[iface->links[link].nic].dev_name;
}

/* --- Paths and lanes --- */

/* Local links over which the peer may be reached now. */
static unsigned uct_varuna_ep_usable_links(const uct_varuna_ep_t *ep)
{
    unsigned usable = 0;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map) {
        if (!ep->peer->paths[link].down) {
            usable |= UCS_BIT(link);
        }
    }

    return usable;
}

static uint8_t uct_varuna_ep_select_link(const uct_varuna_ep_t *ep)
{
    return uct_varuna_link_select(&uct_varuna_ep_iface(ep)->link_table,
                                  ep->lane.link,
                                  uct_varuna_ep_usable_links(ep));
}

/* When no path is known to be good: one which failed, on a link that is up, and
 * whose hold-down is over. Without a lane only a new attempt can tell whether it
 * came back. */
static uint8_t uct_varuna_ep_select_failed_path(const uct_varuna_ep_t *ep)
{
    ucs_time_t now  = ucs_get_time();
    unsigned usable = 0;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map) {
        if (now >= ep->peer->paths[link].retry_at) {
            usable |= UCS_BIT(link);
        }
    }

    return uct_varuna_link_select(&uct_varuna_ep_iface(ep)->link_table,
                                  ep->lane.link, usable);
}

void uct_varuna_path_down(uct_varuna_ep_t *ep, unsigned link)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uct_varuna_path_t *path   = &ep->peer->paths[link];
    ucs_time_t hold;

    if (!path->down) {
        path->down = 1;
        ++path->generation;
    }

    hold = iface->link_table.hold_min << ucs_min(path->flaps, 16);
    if (path->flaps < UINT8_MAX) {
        ++path->flaps;
    }
    path->retry_at = ucs_get_time() + ucs_min(hold, iface->link_table.hold_max);
}

static void uct_varuna_path_up(uct_varuna_ep_t *ep, unsigned link)
{
    uct_varuna_path_t *path = &ep->peer->paths[link];

    if (path->down) {
        ucs_debug("ep %p: path over %s is good again", ep,
                  uct_varuna_link_name(uct_varuna_ep_iface(ep), link));
        path->down = 0;
    }
}

/* A new incarnation. Its log ring must be neither the active lane's nor that of
 * the lane which was just recovered: the responder clears the other one. */
static uint32_t uct_varuna_ep_new_epoch(uct_varuna_ep_t *ep)
{
    uint32_t busy = (ep->lane.ep != NULL) ? ep->lane.epoch : ep->dead.epoch;

    ++ep->epoch;
    if ((ep->epoch % UCT_VARUNA_LOG_COUNT) == (busy % UCT_VARUNA_LOG_COUNT)) {
        ++ep->epoch;
    }

    ++ep->stats.epochs;
    return ep->epoch;
}

static ucs_status_t
uct_varuna_lane_create(uct_varuna_ep_t *ep, uct_varuna_lane_kind_t kind,
                       unsigned link, uct_varuna_lane_t *lane)
{
    uct_varuna_iface_t *iface         = uct_varuna_ep_iface(ep);
    const uct_varuna_peer_link_t *far = &ep->peer->links[link];
    uct_ep_params_t params;
    ucs_status_t status;
    khiter_t iter;
    uct_ep_h inner;
    int ret;

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface      = iface->links[link].lanes[kind].inner;
    if (kind == UCT_VARUNA_LANE_DC) {
        params.field_mask |= UCT_EP_PARAM_FIELD_DEV_ADDR |
                             UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.dev_addr    = far->device_addr;
        params.iface_addr  = far->dc_addr;
    }

    status = uct_ep_create(&params, &inner);
    if (status != UCS_OK) {
        ucs_debug("ep %p: cannot create a %s lane on %s: %s", ep,
                  uct_varuna_lane_names[kind],
                  uct_varuna_link_name(iface, link), ucs_status_string(status));
        return status;
    }

    iter = kh_put(uct_varuna_inner_eps, &iface->inner_eps, (uintptr_t)inner,
                  &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        uct_ep_destroy(inner);
        return UCS_ERR_NO_MEMORY;
    }

    kh_val(&iface->inner_eps, iter) = ep;
    lane->ep                        = inner;
    lane->kind                      = kind;
    lane->link                      = link;
    lane->link_gen = iface->link_table.links[link].generation;
    lane->path_gen = ep->peer->paths[link].generation;
    lane->psn      = 0;
    lane->mtu      = 0;
    lane->epoch    = uct_varuna_ep_new_epoch(ep);
    return UCS_OK;
}

void uct_varuna_lane_destroy(uct_varuna_ep_t *ep, uct_varuna_lane_t *lane)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    khiter_t iter;

    if (lane->ep == NULL) {
        return;
    }

    iter = kh_get(uct_varuna_inner_eps, &iface->inner_eps, (uintptr_t)lane->ep);
    ucs_assert(iter != kh_end(&iface->inner_eps));
    kh_del(uct_varuna_inner_eps, &iface->inner_eps, iter);
    uct_ep_destroy(lane->ep);
    lane->ep = NULL;
}

static void uct_varuna_ep_set_lane(uct_varuna_ep_t *ep,
                                   const uct_varuna_lane_t *lane)
{
    ep->lane     = *lane;
    ep->log_addr = uct_varuna_ep_ring_addr(ep, lane->epoch);
    ep->silent   = 0;
    ep->last_silent = NULL;
}

static void uct_varuna_ep_drop_next(uct_varuna_ep_t *ep)
{
    uct_varuna_lane_destroy(ep, &ep->next);
    ep->next_ready  = 0;
    ep->next_failed = 0;
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

    if (now - ep->state_since > iface->config.give_up) {
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
    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_OPEN_REQ, 0, &body,
                              sizeof(body.req) + body.req.addr_len);
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

    if (ep->recovery.start == 0) {
        ep->recovery.start     = ucs_get_time();
        ep->recovery.from_link = ep->lane.link;
        ep->recovery.from_kind = ep->lane.kind;
        ep->recovery.reason    = reason;
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
    uct_ep_invalidate(ep->dead.ep, 0);
    /* The new lane takes its log ring, so what was being built is given up */
    ep->next_failed = (ep->next.ep != NULL);
    uct_varuna_ep_add_work(ep);
}

void uct_varuna_ep_lane_error(uct_varuna_ep_t *ep, uct_ep_h inner,
                              ucs_status_t status)
{
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

static int uct_varuna_ep_step_drain(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (!uct_varuna_mlx5_drain(ep->dead.ep, ep->dead.kind)) {
        return 1;
    }

    /* Nothing of the old lane can write our memory any more */
    ep->ctl_sent = 0;
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_FENCE);
    return 1;
}

static int uct_varuna_ep_step_fence(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    /* The responder cannot fence a DC lane; what is still on the wire is gone
     * after the longest packet lifetime, and only then does the log count */
    if ((ep->dead.kind == UCT_VARUNA_LANE_DC) &&
        (now - ep->state_since < iface->config.packet_lifetime)) {
        return 1;
    }

    uct_varuna_ep_ctl_request(ep, now, UCT_VARUNA_CTL_FENCE_REQ,
                              ep->dead.epoch, NULL, 0);
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
        switch (ops[i].verdict) {
        case UCT_VARUNA_VERDICT_EXECUTED:
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
    ep->recovery.result.executed  += result->executed;
    ep->recovery.result.lost      += result->lost;
    ep->recovery.result.repeated  += result->repeated;
    ep->recovery.result.ambiguous += result->ambiguous;
    ep->stats.executed            += result->executed;
    ep->stats.lost                += result->lost;
    ep->stats.repeated            += result->repeated;
    ep->stats.ambiguous           += result->ambiguous;
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

    /* The responder could not stop its QP (its NIC is dead?): only time can.
     * The request goes out again, and the log counts when the time is over */
    if ((ep->dead.kind == UCT_VARUNA_LANE_RC) &&
        !(rep->flags & UCT_VARUNA_FENCE_FLAG_QP) &&
        (ucs_get_time() - ep->state_since <
         uct_varuna_ep_iface(ep)->config.packet_lifetime)) {
        return;
    }

    ops = ucs_malloc((ep->num_reqs + 1) * sizeof(*ops), "varuna_plan");
    if (ops == NULL) {
        return; /* Asked again after the control timeout */
    }

    memcpy(ring, rep + 1, sizeof(ring));
    evidence.log     = ring;
    evidence.has_psn = (rep->flags & UCT_VARUNA_FENCE_FLAG_PSN) &&
                       (ep->dead.mtu != 0);
    evidence.epsn    = rep->epsn;
    uct_varuna_ep_fill_plan(ep, ops);
    uct_varuna_plan_make(ops, ep->num_reqs, &evidence, &result);
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
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_REPEAT);
    uct_varuna_ep_add_work(ep);
}

/* Take the best lane which can be had at once. @return 0 if there is none. */
static int uct_varuna_ep_take_dc_lane(uct_varuna_ep_t *ep)
{
    uct_varuna_lane_t lane;
    uint8_t link;

    link = uct_varuna_ep_select_link(ep);
    if (link == UCT_VARUNA_LINK_NONE) {
        link = uct_varuna_ep_select_failed_path(ep);
    }

    if ((link == UCT_VARUNA_LINK_NONE) ||
        (uct_varuna_lane_create(ep, UCT_VARUNA_LANE_DC, link, &lane) !=
         UCS_OK)) {
        return 0;
    }

    uct_varuna_ep_set_lane(ep, &lane);
    return 1;
}

/* The one readable line per switch. */
static void uct_varuna_ep_log_switch(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface          = uct_varuna_ep_iface(ep);
    const uct_varuna_plan_result_t *rs = &ep->recovery.result;

    ++ep->stats.switches;
    ucs_info("rc_varuna: switched vqp=%u from=%s to=%s lane=%s reason=\"%s\" "
             "executed=%u lost=%u repeated=%u ambiguous=%u time_us=%.0f",
             ep->id, uct_varuna_link_name(iface, ep->recovery.from_link),
             uct_varuna_link_name(iface, ep->lane.link),
             uct_varuna_lane_names[ep->lane.kind], ep->recovery.reason,
             rs->executed, rs->lost, rs->repeated, rs->ambiguous,
             ucs_time_to_usec(ucs_get_time() - ep->recovery.start));
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

        status = uct_varuna_req_post(req, 1);
        if (status != UCS_OK) {
            return status;
        }
    }

    return UCS_OK;
}

static int uct_varuna_ep_lane_failed(const uct_varuna_ep_t *ep)
{
    const uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    unsigned link                   = ep->lane.link;

    return (iface->link_table.links[link].generation != ep->lane.link_gen) ||
           (ep->peer->paths[link].generation != ep->lane.path_gen);
}

static int uct_varuna_ep_step_repeat(uct_varuna_ep_t *ep, ucs_time_t now)
{
    ucs_status_t status;

    if ((ep->lane.ep == NULL) && !uct_varuna_ep_take_dc_lane(ep)) {
        uct_varuna_ep_check_give_up(ep, now);
        return 1;
    }

    if (uct_varuna_ep_lane_failed(ep)) {
        uct_varuna_recovery_start(ep, "link down");
        return 1;
    }

    status = uct_varuna_ep_repeat(ep);
    if (status == UCS_ERR_NO_RESOURCE) {
        return 1;
    } else if (status != UCS_OK) {
        uct_varuna_recovery_start(ep, ucs_status_string(status));
        return 1;
    }

    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_ACTIVE);
    if (ep->recovery.start != 0) {
        uct_varuna_ep_log_switch(ep);
        ep->recovery.start = 0;
    }
    ep->next_try = now;
    uct_varuna_ep_finish_done(ep);
    return 1;
}

/* --- Background connection of RC, planned swaps --- */

/* The link on which RC is wanted: the best one which is up or may be probed. */
static uint8_t uct_varuna_ep_rc_link(const uct_varuna_ep_t *ep, ucs_time_t now)
{
    unsigned usable = uct_varuna_ep_usable_links(ep);
    unsigned link;

    ucs_for_each_bit(link, ep->peer->link_map) {
        if (ep->peer->paths[link].down && (now >= ep->peer->paths[link].retry_at)) {
            usable |= UCS_BIT(link);
        }
    }

    return uct_varuna_link_select(&uct_varuna_ep_iface(ep)->link_table,
                                  ep->lane.link, usable);
}

static void uct_varuna_ep_send_connect(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface     = uct_varuna_ep_iface(ep);
    const uct_varuna_link_t *link = &iface->links[ep->next.link];
    size_t ep_len = link->lanes[UCT_VARUNA_LANE_RC].attr.ep_addr_len;
    struct {
        uct_varuna_ctl_connect_t msg;
        uint8_t                  addr[256];
    } UCS_S_PACKED body;

    if (link->device_addr_len + ep_len > sizeof(body.addr)) {
        ep->next_failed = 1;
        return;
    }

    body.msg.link       = ep->peer->links[ep->next.link].nic;
    body.msg.status     = 0;
    body.msg.device_len = link->device_addr_len;
    body.msg.ep_len     = ep_len;
    memcpy(body.addr, link->device_addr, link->device_addr_len);
    if (uct_ep_get_address(ep->next.ep,
                           (uct_ep_addr_t*)(body.addr + link->device_addr_len))
        != UCS_OK) {
        ep->next_failed = 1;
        return;
    }

    /* Over the very link: the answer proves that the path is good */
    uct_varuna_ctl_send(iface->ctl, ep->peer, ep->next.link,
                        UCT_VARUNA_CTL_CONNECT_REQ, iface->uuid, ep->id,
                        ep->next.epoch, &body,
                        sizeof(body.msg) + body.msg.device_len + ep_len);
}

/* No answer to CONNECT_REQ: a peer which computes answers when its application
 * calls progress, so that is no failure of a path which was good; a path that
 * is being probed has not come back. */
static void uct_varuna_ep_connect_again(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);

    if (ep->peer->paths[ep->next.link].down) {
        uct_varuna_path_down(ep, ep->next.link);
        ep->next_failed = 1;
        uct_varuna_ep_add_work(ep);
        return;
    }

    ep->connect_tries = ucs_min(ep->connect_tries + 1,
                                UCT_VARUNA_MAX_CONNECT_BACKOFF);
    ep->next_try      = now + ((4 * iface->config.ctl_timeout) <<
                               ep->connect_tries);
    uct_varuna_ep_send_connect(ep);
}

void uct_varuna_ep_scan(uct_varuna_ep_t *ep, ucs_time_t now)
{
    uct_varuna_iface_t *iface = uct_varuna_ep_iface(ep);
    uint8_t link;

    if ((ep->state != UCT_VARUNA_EP_ACTIVE) || (now < ep->next_try)) {
        if ((ep->state == UCT_VARUNA_EP_OPENING) && (ep->logs_addr != 0) &&
            uct_varuna_ep_take_dc_lane(ep)) {
            /* What was taken before is posted as if it were repeated */
            uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_REPEAT);
            uct_varuna_ep_add_work(ep);
        }
        return;
    }

    if (uct_varuna_ep_lane_failed(ep)) {
        uct_varuna_recovery_start(ep, "link down");
        return;
    }

    if (ep->next.ep != NULL) {
        if (ep->next_ready) {
            return;
        }
        uct_varuna_ep_connect_again(ep, now);
        return;
    }

    link = uct_varuna_ep_rc_link(ep, now);
    if ((link == UCT_VARUNA_LINK_NONE) ||
        ((link == ep->lane.link) && (ep->lane.kind == UCT_VARUNA_LANE_RC))) {
        return;
    }

    ep->connect_tries = 0;
    ep->next_try      = now + (4 * iface->config.ctl_timeout);
    if (uct_varuna_lane_create(ep, UCT_VARUNA_LANE_RC, link, &ep->next) ==
        UCS_OK) {
        uct_varuna_ep_send_connect(ep);
    }
}

static void
uct_varuna_ep_handle_connect_rep(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_hdr_t *hdr,
                                 const uct_varuna_ctl_connect_t *rep)
{
    const uint8_t *addr = (const uint8_t*)(rep + 1);
    const uct_varuna_link_t *link;
    ucs_status_t status;

    if ((ep->next.ep == NULL) || (hdr->epoch != ep->next.epoch) ||
        ep->next_ready || ep->next_failed) {
        return;
    }

    link = &uct_varuna_ep_iface(ep)->links[ep->next.link];
    if ((rep->status == 0) &&
        ((rep->device_len == 0) ||
         (rep->ep_len != link->lanes[UCT_VARUNA_LANE_RC].attr.ep_addr_len))) {
        ucs_diag("ep %p: the peer's RC address has %u + %u bytes: install the"
                 " same UCX on both hosts", ep, rep->device_len, rep->ep_len);
        ep->next_failed = 1;
        uct_varuna_ep_add_work(ep);
        return;
    }

    if (rep->status == 0) {
        status = uct_ep_connect_to_ep(ep->next.ep,
                                      (const uct_device_addr_t*)addr,
                                      (const uct_ep_addr_t*)
                                      (addr + rep->device_len));
        if (status == UCS_OK) {
            status = uct_varuna_mlx5_ep_query_sq(ep->next.ep, &ep->next.psn,
                                                 &ep->next.mtu);
            if (status != UCS_OK) {
                ep->next.mtu = 0; /* No PSN: the log alone decides */
                status       = UCS_OK;
            }
        }
    } else {
        ucs_debug("ep %p: the peer cannot connect: %s", ep,
                  ucs_status_string(-(int)rep->status));
        status = UCS_ERR_UNREACHABLE;
    }

    if (status != UCS_OK) {
        ep->next_failed = 1;
        uct_varuna_ep_add_work(ep);
        return;
    }

    ep->next_ready = 1;
    uct_varuna_path_up(ep, ep->next.link);
    ep->next.path_gen = ep->peer->paths[ep->next.link].generation;
    uct_varuna_ep_add_work(ep);
}

static void uct_varuna_ep_swap_unpack(void *arg, const void *data, size_t len)
{
    /* That it has come back is all that counts */
}

/* A read of the peer's memory behind all writes: when it has come back, they
 * are in memory, so a write over another NIC cannot be overtaken by them. It is
 * a request as any other, so it is repeated if the lane fails. */
static void uct_varuna_ep_post_swap_read(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    status = uct_varuna_ep_get_bcopy_internal(ep, uct_varuna_ep_swap_unpack,
                                              sizeof(uint64_t), ep->log_addr,
                                              ep->log_rkey);
    if (status == UCS_OK) {
        ep->swap_read = 1;
    } else if (status != UCS_ERR_NO_RESOURCE) {
        uct_varuna_recovery_start(ep, ucs_status_string(status));
    }
}

static int uct_varuna_ep_step_swap(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_lane_failed(ep)) {
        uct_varuna_recovery_start(ep, "link down");
        return 1;
    }

    if (!ep->next_ready) {
        /* The new lane failed meanwhile: stay where we are */
        uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_ACTIVE);
        uct_varuna_ep_finish_done(ep);
        return 1;
    }

    if (ep->num_reqs > 0) {
        return 1; /* The common part of the step asks for completions */
    }

    if (!ep->swap_read) {
        uct_varuna_ep_post_swap_read(ep);
        return 1;
    }

    if (!uct_varuna_mlx5_is_drained(ep->lane.ep, ep->lane.kind)) {
        return 1;
    }

    ucs_debug("ep %p: vQP %u: planned swap from %s on %s to %s on %s", ep,
              ep->id, uct_varuna_lane_names[ep->lane.kind],
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->lane.link),
              uct_varuna_lane_names[ep->next.kind],
              uct_varuna_link_name(uct_varuna_ep_iface(ep), ep->next.link));
    uct_varuna_ep_leave_inner_pending(ep, ep->lane.ep);
    uct_varuna_lane_destroy(ep, &ep->lane);
    uct_varuna_ep_set_lane(ep, &ep->next);
    ep->next.ep    = NULL;
    ep->next_ready = 0;
    ep->peer->paths[ep->lane.link].flaps = 0;
    uct_varuna_ep_set_state(ep, UCT_VARUNA_EP_ACTIVE);
    uct_varuna_ep_finish_done(ep);
    return 1;
}

static int uct_varuna_ep_step_active(uct_varuna_ep_t *ep, ucs_time_t now)
{
    if (uct_varuna_ep_lane_failed(ep)) {
        uct_varuna_recovery_start(ep, "link down");
        return 1;
    }

    if (ep->next_ready && !ep->next_failed) {
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
        ucs_diag("ep %p: vQP %u fails in state %s (%s epoch %u): %s", ep,
                 ep->id, uct_varuna_ep_state_names[ep->state],
                 uct_varuna_lane_names[ep->lane.kind], ep->lane.epoch,
                 ucs_status_string(status));
    }

    if (ep->lane.ep != NULL) {
        uct_varuna_ep_leave_inner_pending(ep, ep->lane.ep);
        uct_ep_invalidate(ep->lane.ep, 0);
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

    if ((ep->dead.ep != NULL) && !uct_varuna_mlx5_drain(ep->dead.ep, ep->dead.kind)) {
        return 1;
    }

    uct_varuna_lane_destroy(ep, &ep->dead);
    uct_varuna_ep_drop_next(ep);
    while (!ucs_queue_is_empty(&ep->reqs)) {
        uct_varuna_ep_finish_head(ep, (status == UCS_OK) ? UCS_ERR_CANCELED :
                                  status);
    }

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

void uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_open_rep_t *rep);

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

void uct_varuna_ep_handle_ctl(uct_varuna_ep_t *ep,
                              const uct_varuna_ctl_hdr_t *hdr, const void *body,
                              unsigned link)
{
    switch (hdr->type) {
    case UCT_VARUNA_CTL_OPEN_REP:
        uct_varuna_ep_handle_open_rep(ep, body);
        break;
    case UCT_VARUNA_CTL_CONNECT_REP:
        uct_varuna_ep_handle_connect_rep(ep, hdr, body);
        break;
    case UCT_VARUNA_CTL_FENCE_REP:
        uct_varuna_ep_handle_fence_rep(ep, hdr, body);
        break;
    case UCT_VARUNA_CTL_REJECT:
        uct_varuna_ep_handle_reject(ep, body);
        break;
    default:
        break;
    }
}

void uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_open_rep_t *rep)
{
    uct_varuna_req_t *req;
    ucs_status_t status;

    if ((ep->state != UCT_VARUNA_EP_OPENING) || (ep->logs_addr != 0)) {
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

    ep->log_rkey  = ep->log_bundle.rkey;
    ep->logs_addr = rep->log_addr;
    ep->target    = rep->target;
    ucs_queue_for_each(req, &ep->reqs, queue) {
        uct_varuna_req_set_target(req, rep->target);
    }
    uct_varuna_ep_scan(ep, 0);
}
