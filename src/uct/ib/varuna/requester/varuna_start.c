/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * New requests for which the gate is closed: they are refused, queued, posted with a
 * fence, on DC, or by UCX. Called by the hot path (varuna.inl).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna.inl"

/* Applications do not flush after messages. One that sends a message without a completion
 * and waits for events may not call progress until an event comes. So such a message is
 * taken only when the NIC takes it. Except for an am_bcopy on a new endpoint: UCP sends its
 * messages of the wire-up in this way, and expects a transport that connects to interfaces
 * to take the first one. It progresses until they are answered. */
static int
uct_varuna_req_is_sent_now(const uct_varuna_iface_t *iface, const uct_varuna_ep_t *ep,
                           uct_varuna_req_type_t type,
                           const uct_completion_t *comp)
{
    return ((type == UCT_VARUNA_REQ_AM_SHORT) ||
            ((type == UCT_VARUNA_REQ_AM_BCOPY) &&
             (ep->hot.state != UCT_VARUNA_EP_OPENING)) ||
            (type == UCT_VARUNA_REQ_AM_ZCOPY)) &&
           (comp == NULL) && uct_varuna_requester(iface)->uses_events;
}

uct_varuna_req_t *
uct_varuna_req_get_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_type_t type, uct_completion_t *comp)
{
    uct_varuna_post_t why;
    uct_varuna_req_t *req;

    why = uct_varuna_ep_can_post(iface, ep,
                                 uct_varuna_req_is_sent_now(iface, ep, type, comp));
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
    if (uct_varuna_ep_is_fenced(iface, ep)) {
        req->flags |= UCT_VARUNA_REQ_FLAG_FENCE;
    }

    return req;
}

ucs_status_t uct_varuna_req_start_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                       uct_varuna_req_t *req)
{
    ucs_status_t status;

    status = (ep->hot.state == UCT_VARUNA_EP_ACTIVE) ? uct_varuna_req_post(req, 0) :
             UCS_OK;
    if (status != UCS_OK) {
        uct_varuna_req_release(req);
        status = (ep->hot.state == UCT_VARUNA_EP_ACTIVE) ? status :
                 UCS_ERR_NO_RESOURCE;
        uct_varuna_ep_count_refused(ep, status);
        return status;
    }

    if (req->flags & UCT_VARUNA_REQ_FLAG_FENCE) {
        ep->hot.fence_next = 0;
        ep->fence_beat     = uct_varuna_requester(iface)->fence_beat;
    }

    uct_varuna_req_push(iface, ep, req, (uct_varuna_req_type_t)req->type);
    ++ep->stats.posted;
    if (ep->hot.silent >= UCT_VARUNA_SIGNAL_PERIOD) {
        uct_varuna_ep_signal(ep);
    }

    return UCS_OK;
}
