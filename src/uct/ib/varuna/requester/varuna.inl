/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The hot path: taking, posting and queueing a request. Included by the files that
 * implement operations of the endpoint.
 */
#ifndef UCT_VARUNA_INL_
#define UCT_VARUNA_INL_

#include "varuna_completion.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_gate.h"
#include "varuna_post.h"
#include "varuna_post.inl"
#include "varuna_req.h"

#include <uct/base/uct_iov.inl>

/* Applications do not flush after messages. One that sends a message without a completion
 * and waits for events may not call progress until an event comes. So such a message is
 * taken only when the NIC takes it. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_req_is_sent_now(const uct_varuna_iface_t *iface,
                           uct_varuna_req_type_t type,
                           const uct_completion_t *comp)
{
    return ((type == UCT_VARUNA_REQ_AM_SHORT) ||
            (type == UCT_VARUNA_REQ_AM_ZCOPY)) &&
           (comp == NULL) && uct_varuna_requester(iface)->uses_events;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_init(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                    uct_varuna_req_type_t type, uct_completion_t *comp)
{
    req->ep        = ep;
    req->type      = type;
    req->flags     = 0;
    req->opcode    = 0;
    req->iovcnt    = 0;
    req->length    = 0;
    req->bcopy     = NULL;
    req->user_comp = comp;
}

static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_req_get(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                   uct_varuna_req_type_t type, uct_completion_t *comp)
{
    uct_varuna_post_t why;
    uct_varuna_req_t *req;

    why = uct_varuna_ep_can_post(iface, ep,
                                 uct_varuna_req_is_sent_now(iface, type, comp));
    if (ucs_unlikely((why != UCT_VARUNA_POST_OK) ||
                     uct_varuna_ep_has_pending(ep))) {
        uct_varuna_ep_raise_post(ep, why);
        /* What fills the ring may have been posted silently */
        if (ep->hot.silent > 0) {
            uct_varuna_ep_signal(ep);
        }
        return NULL;
    }

    req = ucs_mpool_get_inline(&uct_varuna_requester(iface)->req_mp);
    if (ucs_unlikely(req == NULL)) {
        return NULL;
    }

    uct_varuna_req_init(ep, req, type, comp);
    if (ucs_unlikely(uct_varuna_ep_is_fenced(iface, ep))) {
        req->flags = UCT_VARUNA_REQ_FLAG_FENCE;
    }

    return req;
}

static inline void uct_varuna_req_push(uct_varuna_iface_t *iface,
                                       uct_varuna_ep_t *ep,
                                       uct_varuna_req_t *req,
                                       uct_varuna_req_type_t type)
{
    ucs_queue_push(&ep->hot.reqs, &req->queue);
    ++ep->hot.num_reqs;
    ++uct_varuna_requester(iface)->outstanding;
    ep->hot.num_reads += ((type == UCT_VARUNA_REQ_GET_BCOPY) ||
                          (type == UCT_VARUNA_REQ_GET_ZCOPY));
}

/* In UCX's own statistics, where they are built */
static inline void uct_varuna_ep_count_refused(uct_varuna_ep_t *ep,
                                               ucs_status_t status)
{
    if (status == UCS_ERR_NO_RESOURCE) {
        UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    }
}

/* Why a request is not taken. Of its failure a user hears from the error handler first:
 * UCP, in the mode in which it fails over between its lanes, begins a request again that
 * gets an error, and on the same lane if it does not know that it has failed. */
static inline ucs_status_t uct_varuna_ep_unavailable(uct_varuna_ep_t *ep)
{
    ucs_status_t status = (ep->hot.state == UCT_VARUNA_EP_FAILED) && ep->sm.reported ?
                          ep->sm.fail_status : UCS_ERR_NO_RESOURCE;

    uct_varuna_ep_count_refused(ep, status);
    return status;
}

/* Post a new request and queue it, or give it back. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                     uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    ucs_status_t status;

    if (ucs_likely((ep->hot.state == UCT_VARUNA_EP_ACTIVE) &&
                   (ep->lane.kind == UCT_VARUNA_LANE_RC) &&
                   !(req->flags & UCT_VARUNA_REQ_FLAG_FENCE))) {
        status = uct_varuna_req_post_rc(ep, req, type, 0);
        if (ucs_likely(status == UCS_OK)) {
            goto out_push;
        }
    }

    status = ucs_likely(ep->hot.state == UCT_VARUNA_EP_ACTIVE) ?
             uct_varuna_req_post(req, 0) : UCS_OK;
    if (ucs_unlikely(status != UCS_OK)) {
        uct_varuna_req_release(req);
        status = (ep->hot.state == UCT_VARUNA_EP_ACTIVE) ? status :
                 UCS_ERR_NO_RESOURCE;
        uct_varuna_ep_count_refused(ep, status);
        return status;
    }

    if (req->flags & UCT_VARUNA_REQ_FLAG_FENCE) {
        ep->hot.fence_next = 0;
        ep->hot.fence_beat = uct_varuna_requester(iface)->fence_beat;
    }

out_push:
    uct_varuna_req_push(iface, ep, req, type);
    ++ep->stats.posted;
    if (ucs_unlikely(ep->hot.silent >= UCT_VARUNA_SIGNAL_PERIOD)) {
        uct_varuna_ep_signal(ep);
    }

    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_inprogress(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    ucs_status_t status = uct_varuna_req_start(iface, ep, req, type);

    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_remote(uct_varuna_req_t *req, uint64_t remote_addr,
                          uct_rkey_t rkey)
{
    req->remote_addr = remote_addr;
    memcpy(req->keys, ((const uct_varuna_rkey_t*)rkey)->keys, sizeof(req->keys));
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_iov(uct_varuna_req_t *req, const uct_iov_t *iov,
                       size_t iovcnt, size_t length)
{
    size_t i;

    req->iovcnt = iovcnt;
    for (i = 0; i < iovcnt; ++i) {
        req->iov[i] = iov[i];
    }
    req->length = length;
}

/* Give the request a registered buffer and an iov over its first @length bytes;
 * the buffer's payload is returned. */
static UCS_F_ALWAYS_INLINE void *
uct_varuna_req_get_bcopy(uct_varuna_iface_t *iface, uct_varuna_req_t *req)
{
    uct_varuna_bcopy_t *bcopy = ucs_mpool_get_inline(&uct_varuna_requester(iface)->bcopy_mp);

    req->bcopy = bcopy;
    return (bcopy == NULL) ? NULL : bcopy + 1;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_bcopy_iov(uct_varuna_req_t *req, size_t length)
{
    uct_varuna_bcopy_t *bcopy = req->bcopy;

    req->iovcnt        = 1;
    req->length        = length;
    req->iov[0].buffer = bcopy + 1;
    req->iov[0].length = length;
    req->iov[0].memh   = bcopy->memh;
    req->iov[0].stride = 0;
    req->iov[0].count  = 1;
}

#endif
