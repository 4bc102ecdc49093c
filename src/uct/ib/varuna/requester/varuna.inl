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
#include "varuna_pending.h"
#include "varuna_ep.h"
#include "varuna_post.inl"
#include "varuna_ring.h"

#include <uct/base/uct_iov.inl>

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_init(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                    uct_varuna_req_type_t type, uct_completion_t *comp)
{
    req->ep        = ep;
    req->user_comp = comp;
    req->length    = 0;
    req->flags     = uct_varuna_req_infos[type].special ?
                     UCT_VARUNA_REQ_FLAG_SPECIAL : 0;
    req->type      = type;
    req->opcode    = 0;
    req->iovcnt    = 0;
}

/** As uct_varuna_req_get(), after a look at all that may be in the way. */
uct_varuna_req_t *
uct_varuna_req_get_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_type_t type, uct_completion_t *comp,
                        uct_rkey_t rkey);

/** As uct_varuna_req_start(), for a request that may have to wait, or that UCX posts. */
ucs_status_t uct_varuna_req_start_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                       uct_varuna_req_t *req);

/* What the gate may be closed for. A message has no key. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_varuna_req_lacks(uct_varuna_req_type_t type, uct_rkey_t rkey)
{
    return uct_varuna_req_infos[type].user_key ? uct_varuna_rkey_lacks(rkey) :
           UCT_VARUNA_GATE_CLOSED;
}

/* A new request at the head of the ring, NULL if it is not taken now. @a rkey: the user's,
 * UCT_INVALID_RKEY of a message; @a lacks: uct_varuna_req_lacks() */
static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_req_get_lacking(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                           uct_varuna_req_type_t type, uct_completion_t *comp,
                           uct_rkey_t rkey, uint8_t lacks)
{
    uct_varuna_req_t *req;

    if (ucs_unlikely(!uct_varuna_gate_is_open(iface, ep, lacks))) {
        return uct_varuna_req_get_slow(iface, ep, type, comp, rkey);
    }

    req = ep->hot.reqs.head;
    uct_varuna_req_init(ep, req, type, comp);
    return req;
}

static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_req_get(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                   uct_varuna_req_type_t type, uct_completion_t *comp, uct_rkey_t rkey)
{
    return uct_varuna_req_get_lacking(iface, ep, type, comp, rkey,
                                      uct_varuna_req_lacks(type, rkey));
}

/* A request of ours at the head of the ring, whatever state the endpoint is in */
static inline uct_varuna_req_t *uct_varuna_req_new(uct_varuna_ep_t *ep)
{
    return (uct_varuna_ring_open(ep, 1) == UCS_OK) ? ep->hot.reqs.head : NULL;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_push_known(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                          uct_varuna_req_t *req, uct_varuna_req_type_t type,
                          const uct_varuna_req_known_t *known)
{
    ++uct_varuna_requester(iface)->outstanding;
    ep->hot.num_reads += uct_varuna_req_is_read(type);
    uct_varuna_ring_push(ep, req, uct_varuna_req_size(req, type, known));
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_push(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                    uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    const uct_varuna_req_known_t known = uct_varuna_req_know(req);

    uct_varuna_req_push_known(iface, ep, req, type, &known);
}

/* In UCX's own statistics, where they are built */
static inline void uct_varuna_ep_count_refused(uct_varuna_ep_t *ep,
                                               ucs_status_t status)
{
    if (status == UCS_ERR_NO_RESOURCE) {
        UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    }
}

/* Why a request is not taken. The error handler reports the endpoint's failure before any
 * posting call does: UCP, in the mode in which it fails over between its lanes, begins a
 * request again that gets an error, and on the same lane if it does not know of the failure. */
static inline ucs_status_t uct_varuna_ep_unavailable(uct_varuna_ep_t *ep)
{
    ucs_status_t status = (ep->hot.state == UCT_VARUNA_EP_FAILED) && ep->sm.reported ?
                          ep->sm.fail_status : UCS_ERR_NO_RESOURCE;

    uct_varuna_ep_count_refused(ep, status);
    return status;
}

/* Post a new request of @a length bytes, in @a iovcnt buffers if it has any, and add it to
 * the ring, or give it back. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                     uct_varuna_req_t *req, uct_varuna_req_type_t type,
                     const uct_completion_t *comp, uint32_t length, uint8_t iovcnt)
{
    const uct_varuna_req_known_t known = {
        .iface     = iface,
        .user_comp = comp,
        .length    = length,
        .iovcnt    = iovcnt
    };

    req->length = length;
    if (ucs_likely(!(ep->hot.gate & UCT_VARUNA_GATE_CLOSED)) &&
        ucs_likely(uct_varuna_req_post_rc(ep, req, type, &known, 0) == UCS_OK)) {
        uct_varuna_req_push_known(iface, ep, req, type, &known);
        ++ep->stats.posted;
        return UCS_OK;
    }

    return uct_varuna_req_start_slow(iface, ep, req);
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_inprogress(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                uct_varuna_req_t *req, uct_varuna_req_type_t type,
                                const uct_completion_t *comp, uint32_t length,
                                uint8_t iovcnt)
{
    ucs_status_t status = uct_varuna_req_start(iface, ep, req, type, comp, length, iovcnt);

    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_remote(uct_varuna_req_t *req, uint64_t remote_addr,
                          uct_rkey_t rkey)
{
    req->remote_addr = remote_addr;
    req->device      = ((const uct_varuna_rkey_t*)rkey)->device;
    req->user.token  = ((const uct_varuna_rkey_t*)rkey)->token;
    memcpy(req->keys, ((const uct_varuna_rkey_t*)rkey)->keys, sizeof(req->keys));
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_iov(uct_varuna_req_t *req, const uct_iov_t *iov, size_t iovcnt)
{
    size_t i;

    req->iovcnt = iovcnt;
    for (i = 0; i < iovcnt; ++i) {
        req->iov[i] = iov[i];
        if (ucs_unlikely(iov[i].length == 0)) {
            /* Callers need not set it: UCP does not */
            req->iov[i].memh = UCT_MEM_HANDLE_NULL;
        }
    }
}

/* Give the request a registered buffer and an iov over its first @length bytes;
 * the buffer's payload is returned. */
static UCS_F_ALWAYS_INLINE void *
uct_varuna_req_get_bcopy(uct_varuna_iface_t *iface, uct_varuna_req_t *req)
{
    uct_varuna_bcopy_t *bcopy = ucs_mpool_get_inline(&uct_varuna_requester(iface)->pools.bcopies);

    if (ucs_unlikely(bcopy == NULL)) {
        return NULL;
    }

    req->flags |= UCT_VARUNA_REQ_FLAG_BCOPY;
    req->bcopy  = bcopy;
    return bcopy + 1;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_bcopy_iov(uct_varuna_req_t *req, size_t length)
{
    uct_varuna_bcopy_t *bcopy = req->bcopy;

    req->iovcnt        = 1;
    req->iov[0].buffer = bcopy + 1;
    req->iov[0].length = length;
    req->iov[0].memh   = bcopy->memh;
    req->iov[0].stride = 0;
    req->iov[0].count  = 1;
}

#endif
