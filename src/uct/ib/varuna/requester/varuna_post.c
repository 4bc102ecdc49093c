/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Posts saved requests on the inner lanes.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"
#include "varuna_completion.h"
#include "varuna_sm.h"
#include "varuna_ring.h"
#include "varuna.inl"

/* Write a word of the peer's logs. Inline, so it needs no local key and no buffer. */
static ucs_status_t
uct_varuna_ep_put_word(uct_varuna_ep_t *ep, uint64_t word, uint64_t remote_addr)
{
    ucs_status_t status;

    status = uct_ep_put_short(ep->lane.ep, &word, sizeof(word), remote_addr,
                              ep->hot.log_rkey);
    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_lane_advance_psn(&ep->lane, 1);
    }

    return status;
}

/* On the same QP, right after the operation: if the entry is there, the operation was
 * executed. */
static ucs_status_t
uct_varuna_req_post_log(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    ucs_status_t status;

    status = uct_varuna_ep_put_word(ep, uct_varuna_log_entry(req, req->log_sn),
                                    ep->hot.log_addr +
                                    (uct_varuna_log_slot(req->log_sn) *
                                     sizeof(uint64_t)));
    if (ucs_likely(status == UCS_OK)) {
        req->flags |= UCT_VARUNA_REQ_FLAG_LOGGED;
        ++ep->stats.logged;
    }

    return status;
}

ucs_status_t uct_varuna_ep_post_probe(uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_put_word(ep, 0, ep->remote.logs_addr + UCT_VARUNA_LOG_SCRATCH);
}

int uct_varuna_ep_post_owed_log(uct_varuna_ep_t *ep)
{
    ucs_status_t status = uct_varuna_req_post_log(ep, ep->owed);

    if (status == UCS_ERR_NO_RESOURCE) {
        return 0;
    }

    ep->owed = NULL;
    if (status != UCS_OK) {
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
    }

    return 1;
}

ucs_status_t uct_varuna_req_post_apart(uct_varuna_req_t *req)
{
    uct_varuna_ep_t *ep = req->ep;
    ucs_status_t status = UCS_ERR_NO_RESOURCE;

    if (uct_varuna_req_complete_key(req)) {
        status = uct_varuna_req_info(req)->post(req, &req->comp);
    }

    if (!UCS_STATUS_IS_ERR(status) && (ep->lane.mtu != 0)) {
        uct_varuna_lane_advance_psn(&ep->lane,
                                    uct_varuna_req_num_psns(
                                            ep, req, (uct_varuna_req_type_t)req->type,
                                            req->length));
    }

    return status;
}

/* Post the log entry of what has just been posted. With a bell both share one doorbell. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_add_log(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                       uct_varuna_mlx5_bell_t *bell)
{
    ucs_status_t status;

    if (bell != NULL) {
        uct_varuna_mlx5_bell_join(bell);
    }

    req->log_sn = ep->hot.log_next++;
    status      = uct_varuna_req_post_log(ep, req);
    if (bell != NULL) {
        uct_varuna_mlx5_bell_restore(bell, status != UCS_OK);
    }

    if (ucs_unlikely(status != UCS_OK)) {
        req->flags  |= UCT_VARUNA_REQ_FLAG_SPECIAL;
        ep->owed     = req; /* Posted by the next step, or recovered */
        ep->hot.gate = 1;
        uct_varuna_ep_add_work(ep);
    }
}

ucs_status_t uct_varuna_req_post(uct_varuna_req_t *req, int signal)
{
    uct_varuna_ep_t *ep               = req->ep;
    const uct_varuna_req_info_t *info = uct_varuna_req_info(req);
    uct_completion_t *comp            = NULL;
    uct_varuna_req_known_t known;
    uct_varuna_mlx5_bell_t bell;
    ucs_status_t status;
    int is_logged, fused;

    if (ucs_unlikely(ep->peer->returned != 0) && !uct_varuna_req_complete_key(req)) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (ucs_unlikely(req->flags & UCT_VARUNA_REQ_FLAG_FENCE)) {
        status = uct_ep_fence(ep->lane.ep, 0);
        if (status != UCS_OK) {
            return status;
        }
    } else if (ep->lane.kind == UCT_VARUNA_LANE_RC) {
        known  = uct_varuna_req_know(req);
        status = uct_varuna_req_post_rc(ep, req, (uct_varuna_req_type_t)req->type,
                                        &known, signal);
        if (ucs_likely(status == UCS_OK)) {
            return status;
        }
    }

    if (!info->silent && (signal || (req->user_comp != NULL) ||
                          (info->kind == UCT_VARUNA_OP_GET) ||
                          (req->length > UCT_VARUNA_MAX_SILENT))) {
        uct_varuna_req_init_comp(req);
        comp = &req->comp;
    }

    /* The operation and its log entry share one doorbell */
    is_logged = info->logged && ep->hot.logged;
    fused     = is_logged && (ep->lane.kind != UCT_VARUNA_LANE_VERBS) &&
                uct_varuna_mlx5_bell_hold(ep->lane.ep, ep->lane.kind, &bell);

    status = info->post(req, comp);
    if (ucs_unlikely(UCS_STATUS_IS_ERR(status))) {
        if (fused) {
            uct_varuna_mlx5_bell_restore(&bell, 0);
        }
        return status;
    }

    uct_varuna_req_posted(ep, req, (uct_varuna_req_type_t)req->type, req->length, comp);
    if (is_logged) {
        uct_varuna_req_add_log(ep, req, fused ? &bell : NULL);
    }

    return UCS_OK;
}

/* --- New requests --- */

/* New requests for which the gate is closed: they are refused, queued, posted with a
 * fence, on DC, or by UCX. Called by the hot path (varuna.inl). */

/* Whether requests were taken that are not posted. The states in which they are last for
 * milliseconds, and there are few. */
static int uct_varuna_ep_has_waiting(const uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (!(req->flags & (UCT_VARUNA_REQ_FLAG_POSTED | UCT_VARUNA_REQ_FLAG_DONE))) {
            return 1;
        }
    }

    return 0;
}

/* Applications do not flush after messages. One that sends a message without a completion
 * and waits for events may not call progress until an event comes. So such a message is
 * taken only when the NIC takes it. There are two exceptions:
 * - An am_bcopy on a new endpoint: UCP sends its messages of the wire-up in this way, and
 *   expects a transport that connects to interfaces to take the first one. It progresses
 *   until they are answered.
 * - During a planned change of the lane, a message that follows a request which waits:
 *   the application has to progress for that one. */
static int
uct_varuna_req_is_sent_now(const uct_varuna_iface_t *iface, const uct_varuna_ep_t *ep,
                           uct_varuna_req_type_t type,
                           const uct_completion_t *comp)
{
    if (!uct_varuna_req_is_message(type) || (comp != NULL) ||
        !uct_varuna_requester(iface)->uses_events) {
        return 0;
    }

    switch (ep->hot.state) {
    case UCT_VARUNA_EP_OPENING:
        return !uct_varuna_req_infos[type].wires_up;
    case UCT_VARUNA_EP_SWAP:
    case UCT_VARUNA_EP_BACKLOG:
        return !uct_varuna_ep_has_waiting(ep);
    default:
        return 1;
    }
}

/* Whether the old lane still takes a request although the read that ends it was posted:
 * that read is for writes, and a message writes no memory that another lane may write.
 * So no message is refused because of a planned change: UCP, to send it later, would need
 * the peer's progress. Their number is limited, or the lane would never be empty. */
static int
uct_varuna_req_precedes_swap(const uct_varuna_iface_t *iface, const uct_varuna_ep_t *ep,
                             uct_varuna_req_type_t type, const uct_completion_t *comp)
{
    return (ep->hot.state == UCT_VARUNA_EP_SWAP) && (ep->next.swap_posts > 0) &&
           (ep->next.swap_posts < UCT_VARUNA_MAX_WAITING) &&
           uct_varuna_req_is_message(type) && (comp == NULL) && (ep->hot.num_amos == 0) &&
           !uct_varuna_ep_is_fenced(iface, ep) &&
           !uct_varuna_ep_lane_is_stale(iface, ep) && !uct_varuna_ep_has_waiting(ep);
}

void uct_varuna_gate_check_key(uct_varuna_req_t *req, uct_rkey_t rkey)
{
    uct_varuna_ep_t *ep = req->ep;

    if (!(ep->hot.gate & UCT_VARUNA_GATE_CLOSED) &&
        (ep->hot.gate & uct_varuna_rkey_lacks(rkey)) &&
        !uct_varuna_ep_complete_rkey(ep, rkey)) {
        ep->hot.gate = UCT_VARUNA_GATE_CLOSED; /* For this request */
    }

    if ((ep->hot.gate & UCT_VARUNA_GATE_CLOSED) && (ep->peer->returned != 0)) {
        req->flags |= UCT_VARUNA_REQ_FLAG_KEY;
        uct_varuna_ep_requester(ep)->keys.user = rkey;
    }
}

uct_varuna_req_t *
uct_varuna_req_get_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_type_t type, uct_completion_t *comp,
                        uct_rkey_t rkey)
{
    uct_varuna_post_t why = UCT_VARUNA_POST_OK;
    uct_varuna_req_t *req;

    if (!uct_varuna_req_precedes_swap(iface, ep, type, comp)) {
        why = uct_varuna_ep_can_post(iface, ep,
                                     uct_varuna_req_is_sent_now(iface, ep, type, comp));
    }

    if ((why != UCT_VARUNA_POST_OK) || uct_varuna_ep_has_pending(ep)) {
        uct_varuna_ep_raise_post(ep, why);
        /* What fills the ring may have been posted silently */
        if (ep->hot.silent > 0) {
            uct_varuna_ep_signal(ep);
        }
        return NULL;
    }

    if (uct_varuna_ring_open(ep, 0) != UCS_OK) {
        return NULL;
    }

    uct_varuna_gate_update(iface, ep);
    req = ep->hot.reqs.head;
    uct_varuna_req_init(ep, req, type, comp);
    if (rkey != UCT_INVALID_RKEY) {
        uct_varuna_gate_check_key(req, rkey);
    }

    if (uct_varuna_ep_is_fenced(iface, ep)) {
        req->flags |= UCT_VARUNA_REQ_FLAG_FENCE;
    }

    return req;
}

ucs_status_t uct_varuna_req_start_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                       uct_varuna_req_t *req)
{
    int precedes = uct_varuna_req_precedes_swap(iface, ep,
                                                (uct_varuna_req_type_t)req->type,
                                                req->user_comp);
    int is_closed       = ep->hot.gate & UCT_VARUNA_GATE_CLOSED;
    ucs_status_t status = UCS_OK;

    if (req->flags & UCT_VARUNA_REQ_FLAG_KEY) {
        req->flags &= ~UCT_VARUNA_REQ_FLAG_KEY;
        uct_varuna_req_check_key(req, (const uct_varuna_rkey_t*)
                                              uct_varuna_requester(iface)->keys.user);
    }

    if (precedes || (ep->hot.state == UCT_VARUNA_EP_ACTIVE)) {
        status = uct_varuna_req_post(req, 0);
    }

    if (status != UCS_OK) {
        uct_varuna_req_release(req);
        status = (ep->hot.state == UCT_VARUNA_EP_ACTIVE) ? status :
                 UCS_ERR_NO_RESOURCE;
        uct_varuna_ep_count_refused(ep, status);
        return status;
    }

    if (req->flags & UCT_VARUNA_REQ_FLAG_FENCE) {
        ep->amo.flushed    = ep->stats.posted; /* Later atomics are behind the fence, too */
        ep->hot.fence_next = 0;
        ep->fence_beat     = uct_varuna_requester(iface)->beats.fence;
    }

    uct_varuna_req_push(iface, ep, req, (uct_varuna_req_type_t)req->type);
    ++ep->stats.posted;
    ep->stats.slow += is_closed;
    ep->next.swap_posts += precedes;
    if (ep->hot.silent >= iface->config.tx_cq_moderation) {
        uct_varuna_ep_signal(ep);
    }

    return UCS_OK;
}
