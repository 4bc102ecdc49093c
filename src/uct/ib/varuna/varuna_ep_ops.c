/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCT operations of the endpoint. Each saves a request, posts it on the active
 * lane, and queues it until the lane or the recovery finishes it. Nothing is
 * accepted outside the ACTIVE state: the caller's own pending queue holds it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep_ops.h"
#include "varuna_recovery.h"
#include "varuna_req.h"

#include <uct/base/uct_iov.inl>

#define UCT_VARUNA_EP_DECL(_tl_ep, _iface, _ep) \
    uct_varuna_ep_t *_ep       = ucs_derived_of(_tl_ep, uct_varuna_ep_t); \
    uct_varuna_iface_t *_iface = ucs_derived_of((_tl_ep)->iface, \
                                                uct_varuna_iface_t)

/* A registered packing buffer. */
typedef struct uct_varuna_bcopy {
    uct_mem_h                  memh;
} uct_varuna_bcopy_t;

void uct_varuna_bcopy_init(uct_iface_h tl_iface, void *obj, uct_mem_h memh)
{
    ((uct_varuna_bcopy_t*)obj)->memh = memh;
}

/* The link or the path has failed since the lane was made: one store somewhere
 * else, seen here by every endpoint. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_lane_is_stale(const uct_varuna_iface_t *iface,
                            const uct_varuna_ep_t *ep)
{
    unsigned link = ep->lane.link;

    return (iface->link_table.links[link].generation != ep->lane.link_gen) ||
           (ep->peer->paths[link].generation != ep->lane.path_gen);
}

/* Whether a fence stands before the next request. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_is_fenced(const uct_varuna_iface_t *iface,
                        const uct_varuna_ep_t *ep)
{
    return ep->fence_next || (ep->fence_beat != iface->fence_beat);
}

/* Whether a request may be posted as far as we are concerned; the inner lane
 * may still have no resources. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_can_post(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep)
{
    if (ucs_unlikely(ep->state != UCT_VARUNA_EP_ACTIVE)) {
        /* A new endpoint takes requests at once, and posts them when the peer
         * has answered */
        return (ep->state == UCT_VARUNA_EP_OPENING) &&
               (ep->num_reqs < UCT_VARUNA_LOG_SIZE);
    }

    if (ucs_unlikely(uct_varuna_ep_lane_is_stale(iface, ep))) {
        uct_varuna_recovery_start(ep, "link down");
        return 0;
    }

    /* A read is complete when its data has come, not when the responder has
     * sent it. If a fenced operation were executed while that data got lost,
     * reading again would see too new a value; and UCX's fence modes do not
     * always make the NIC wait. */
    if (ucs_unlikely((ep->num_reads > 0) &&
                     uct_varuna_ep_is_fenced(iface, ep))) {
        return 0;
    }

    return (ep->owed == NULL) && (ep->num_reqs < UCT_VARUNA_MAX_REQS) &&
           !uct_varuna_oplog_is_full(&ep->oplog);
}

/* Whether requests wait which came first: nothing may pass them, or a fence
 * would not hold between the two */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_has_pending(const uct_varuna_ep_t *ep)
{
    return !ucs_queue_is_empty(&ep->pending) && !ep->dispatching;
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
    uct_varuna_req_t *req;

    if (ucs_unlikely(!uct_varuna_ep_can_post(iface, ep) ||
                     uct_varuna_ep_has_pending(ep))) {
        /* What fills the ring may have been posted silently */
        if (ep->silent > 0) {
            uct_varuna_ep_signal(ep);
        }
        return NULL;
    }

    req = ucs_mpool_get_inline(&iface->req_mp);
    if (ucs_unlikely(req == NULL)) {
        return NULL;
    }

    uct_varuna_req_init(ep, req, type, comp);
    if (ucs_unlikely(uct_varuna_ep_is_fenced(iface, ep))) {
        req->flags = UCT_VARUNA_REQ_FLAG_FENCE;
    }

    return req;
}

static void uct_varuna_req_release(uct_varuna_req_t *req)
{
    if (req->bcopy != NULL) {
        ucs_mpool_put_inline(req->bcopy);
    }
    ucs_mpool_put_inline(req);
}

static void uct_varuna_req_push(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                uct_varuna_req_t *req)
{
    ucs_queue_push(&ep->reqs, &req->queue);
    ++ep->num_reqs;
    ++iface->outstanding;
    ep->num_reads += (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_GET);
}

/* Post a new request and queue it, or give it back. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                     uct_varuna_req_t *req)
{
    ucs_status_t status;

    status = ucs_likely(ep->state == UCT_VARUNA_EP_ACTIVE) ?
             uct_varuna_req_post(req, 0) : UCS_OK;
    if (ucs_unlikely(status != UCS_OK)) {
        uct_varuna_req_release(req);
        return (ep->state == UCT_VARUNA_EP_ACTIVE) ? status :
               UCS_ERR_NO_RESOURCE;
    }

    if (req->flags & UCT_VARUNA_REQ_FLAG_FENCE) {
        ep->fence_next = 0;
        ep->fence_beat = iface->fence_beat;
    }

    uct_varuna_req_push(iface, ep, req);
    ++ep->stats.posted;
    if (ucs_unlikely(ep->silent >= iface->config.signal_period)) {
        uct_varuna_ep_signal(ep);
    }

    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_inprogress(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                uct_varuna_req_t *req)
{
    ucs_status_t status = uct_varuna_req_start(iface, ep, req);

    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

static ucs_status_t uct_varuna_ep_unavailable(const uct_varuna_ep_t *ep)
{
    return (ep->state == UCT_VARUNA_EP_FAILED) && (ep->fail_status != UCS_OK) ?
           ep->fail_status : UCS_ERR_NO_RESOURCE;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_remote(uct_varuna_req_t *req, uint64_t remote_addr,
                          uct_rkey_t rkey)
{
    req->remote_addr = remote_addr;
    req->rkey        = rkey;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_iov(uct_varuna_req_t *req, const uct_iov_t *iov,
                       size_t iovcnt)
{
    size_t i;

    req->iovcnt = iovcnt;
    for (i = 0; i < iovcnt; ++i) {
        req->iov[i] = iov[i];
    }
    req->length = uct_iov_total_length(iov, iovcnt);
}

/* Give the request a registered buffer and an iov over its first @length bytes;
 * the buffer's payload is returned. */
static UCS_F_ALWAYS_INLINE void *
uct_varuna_req_get_bcopy(uct_varuna_iface_t *iface, uct_varuna_req_t *req)
{
    uct_varuna_bcopy_t *bcopy = ucs_mpool_get_inline(&iface->bcopy_mp);

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

ucs_status_t uct_varuna_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    UCT_CHECK_LENGTH(length, 0, iface->attr.cap.put.max_short, "put_short");
    UCT_SKIP_ZERO_LENGTH(length);
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_PUT_SHORT, NULL);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->length = length;
    memcpy(req->data, buffer, length);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, SHORT, length);
    return uct_varuna_req_start(iface, ep, req);
}

ssize_t uct_varuna_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;
    size_t length;
    void *buffer;

    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_PUT_ZCOPY, NULL);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    buffer = uct_varuna_req_get_bcopy(iface, req);
    if (ucs_unlikely(buffer == NULL)) {
        uct_varuna_req_release(req);
        return UCS_ERR_NO_RESOURCE;
    }

    length = pack_cb(buffer, arg);
    if (ucs_unlikely(length == 0)) {
        uct_varuna_req_release(req);
        return 0;
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    uct_varuna_req_set_bcopy_iov(req, length);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, BCOPY, length);
    status = uct_varuna_req_start(iface, ep, req);
    return (status == UCS_OK) ? (ssize_t)length : status;
}

ucs_status_t uct_varuna_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    UCT_CHECK_IOV_SIZE(iovcnt, iface->attr.cap.put.max_iov, "put_zcopy");
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt), 0,
                     iface->attr.cap.put.max_zcopy, "put_zcopy");
    UCT_SKIP_ZERO_LENGTH(uct_iov_total_length(iov, iovcnt));
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_PUT_ZCOPY, comp);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    uct_varuna_req_set_iov(req, iov, iovcnt);
    UCT_TL_EP_STAT_OP(&ep->super, PUT, ZCOPY, req->length);
    return uct_varuna_req_start_inprogress(iface, ep, req);
}

ucs_status_t uct_varuna_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb, void *arg,
                                     size_t length, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    UCT_CHECK_LENGTH(length, 0, iface->attr.cap.get.max_bcopy, "get_bcopy");
    UCT_SKIP_ZERO_LENGTH(length);
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_GET_BCOPY, comp);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->length  = length;
    req->get.cb  = unpack_cb;
    req->get.arg = arg;
    UCT_TL_EP_STAT_OP(&ep->super, GET, BCOPY, length);
    return uct_varuna_req_start_inprogress(iface, ep, req);
}

ucs_status_t uct_varuna_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    UCT_CHECK_IOV_SIZE(iovcnt, iface->attr.cap.get.max_iov, "get_zcopy");
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt),
                     iface->attr.cap.get.min_zcopy,
                     iface->attr.cap.get.max_zcopy, "get_zcopy");
    UCT_SKIP_ZERO_LENGTH(uct_iov_total_length(iov, iovcnt));
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_GET_ZCOPY, comp);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    uct_varuna_req_set_iov(req, iov, iovcnt);
    UCT_TL_EP_STAT_OP(&ep->super, GET, ZCOPY, req->length);
    return uct_varuna_req_start_inprogress(iface, ep, req);
}

ucs_status_t uct_varuna_ep_get_bcopy_internal(uct_varuna_ep_t *ep,
                                              uct_unpack_callback_t unpack_cb,
                                              size_t length,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    uct_varuna_req_t *req     = ucs_mpool_get(&iface->req_mp);
    ucs_status_t status;

    if (req == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_GET_BCOPY, NULL);
    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->length  = length;
    req->get.cb  = unpack_cb;
    req->get.arg = NULL;
    status       = uct_varuna_req_post(req, 1);
    if (status != UCS_OK) {
        uct_varuna_req_release(req);
        return status;
    }

    uct_varuna_req_push(iface, ep, req);
    return UCS_OK;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_am(const uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                      uint8_t id)
{
    req->am.hdr.seq    = ep->am_seq;
    req->am.hdr.target = (ep->target << UCT_VARUNA_AM_ID_BITS) | id;
}

/* A sequence number is taken only by a message which was really posted. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_am(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_t *req)
{
    ucs_status_t status = uct_varuna_req_start(iface, ep, req);

    if (ucs_likely(status == UCS_OK)) {
        ++ep->am_seq;
    }

    return status;
}

ucs_status_t uct_varuna_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                    const void *payload, unsigned length)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length + sizeof(header), 0, iface->attr.cap.am.max_short,
                     "am_short");
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_SHORT, NULL);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_am(ep, req, id);
    req->length = length + sizeof(header);
    memcpy(req->data, &header, sizeof(header));
    if (length > 0) {
        memcpy(req->data + sizeof(header), payload, length);
    }
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, req->length);
    return uct_varuna_req_start_am(iface, ep, req);
}

ucs_status_t uct_varuna_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_iov_iter_t iter;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt), 0,
                     iface->attr.cap.am.max_short, "am_short_iov");
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_SHORT, NULL);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_am(ep, req, id);
    ucs_iov_iter_init(&iter);
    req->length = uct_iov_to_buffer(iov, iovcnt, &iter, req->data,
                                    sizeof(req->data));
    UCT_TL_EP_STAT_OP(&ep->super, AM, SHORT, req->length);
    return uct_varuna_req_start_am(iface, ep, req);
}

/* The header which begins an AM_ZCOPY request's data: ours, then the user's. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_am_header(uct_varuna_req_t *req, const void *header,
                             unsigned header_length)
{
    memcpy(req->data, &req->am.hdr, sizeof(req->am.hdr));
    if (header_length > 0) {
        memcpy(req->data + sizeof(req->am.hdr), header, header_length);
    }
    req->header_length = sizeof(req->am.hdr) + header_length;
}

ssize_t uct_varuna_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                               uct_pack_callback_t pack_cb, void *arg,
                               unsigned flags)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;
    size_t length;
    void *buffer;

    UCT_CHECK_AM_ID(id);
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_ZCOPY, NULL);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    buffer = uct_varuna_req_get_bcopy(iface, req);
    if (ucs_unlikely(buffer == NULL)) {
        uct_varuna_req_release(req);
        return UCS_ERR_NO_RESOURCE;
    }

    length      = pack_cb(buffer, arg);
    req->opcode = flags;
    uct_varuna_req_set_am(ep, req, id);
    uct_varuna_req_set_am_header(req, NULL, 0);
    uct_varuna_req_set_bcopy_iov(req, length);
    UCT_TL_EP_STAT_OP(&ep->super, AM, BCOPY, length);
    status = uct_varuna_req_start_am(iface, ep, req);
    return (status == UCS_OK) ? (ssize_t)length : status;
}

ucs_status_t uct_varuna_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_IOV_SIZE(iovcnt, iface->attr.cap.am.max_iov, "am_zcopy");
    UCT_CHECK_LENGTH(header_length, 0, iface->attr.cap.am.max_hdr,
                     "am_zcopy header");
    UCT_CHECK_LENGTH(header_length + uct_iov_total_length(iov, iovcnt), 0,
                     iface->attr.cap.am.max_zcopy, "am_zcopy");
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_ZCOPY, comp);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    req->opcode = flags;
    uct_varuna_req_set_am(ep, req, id);
    uct_varuna_req_set_am_header(req, header, header_length);
    uct_varuna_req_set_iov(req, iov, iovcnt);
    UCT_TL_EP_STAT_OP(&ep->super, AM, ZCOPY, req->length + header_length);
    status = uct_varuna_req_start_am(iface, ep, req);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

/* All atomics; passed through natively, see varuna_req.c. */
static ucs_status_t
uct_varuna_ep_atomic(uct_ep_h tl_ep, uct_varuna_req_type_t type, unsigned flags,
                     unsigned opcode, uint64_t compare, uint64_t value,
                     uint64_t remote_addr, uct_rkey_t rkey, void *result,
                     uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    req = uct_varuna_req_get(iface, ep, type, comp);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->flags          |= flags;
    req->opcode          = opcode;
    req->length          = (flags & UCT_VARUNA_REQ_FLAG_64) ? sizeof(uint64_t) :
                           sizeof(uint32_t);
    req->atomic.compare  = compare;
    req->atomic.value    = value;
    req->atomic.result   = result;
    UCT_TL_EP_STAT_ATOMIC(&ep->super);
    return (type == UCT_VARUNA_REQ_ATOMIC_POST) ?
           uct_varuna_req_start(iface, ep, req) :
           uct_varuna_req_start_inprogress(iface, ep, req);
}

ucs_status_t uct_varuna_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_atomic(tl_ep, UCT_VARUNA_REQ_CSWAP,
                                UCT_VARUNA_REQ_FLAG_64, UCT_ATOMIC_OP_CSWAP,
                                compare, swap, remote_addr, rkey, result, comp);
}

ucs_status_t uct_varuna_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare,
                                          uint32_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint32_t *result,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_atomic(tl_ep, UCT_VARUNA_REQ_CSWAP, 0,
                                UCT_ATOMIC_OP_CSWAP, compare, swap, remote_addr,
                                rkey, result, comp);
}

ucs_status_t uct_varuna_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey)
{
    return uct_varuna_ep_atomic(tl_ep, UCT_VARUNA_REQ_ATOMIC_POST,
                                UCT_VARUNA_REQ_FLAG_64, opcode, 0, value,
                                remote_addr, rkey, NULL, NULL);
}

ucs_status_t uct_varuna_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint32_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey)
{
    return uct_varuna_ep_atomic(tl_ep, UCT_VARUNA_REQ_ATOMIC_POST, 0, opcode, 0,
                                value, remote_addr, rkey, NULL, NULL);
}

ucs_status_t uct_varuna_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_atomic(tl_ep, UCT_VARUNA_REQ_ATOMIC_FETCH,
                                UCT_VARUNA_REQ_FLAG_64, opcode, 0, value,
                                remote_addr, rkey, result, comp);
}

ucs_status_t uct_varuna_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint32_t value, uint32_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_atomic(tl_ep, UCT_VARUNA_REQ_ATOMIC_FETCH, 0, opcode,
                                0, value, remote_addr, rkey, result, comp);
}

ucs_status_t uct_varuna_ep_signal(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req = ep->last_silent;
    ucs_status_t status;

    ep->want_signal = 1;
    if ((ep->silent == 0) || (ep->owed != NULL)) {
        ep->want_signal = (ep->owed != NULL);
        return UCS_INPROGRESS;
    }

    /* It has no completion of its own under way: lend it to an inner flush,
     * which covers all before it */
    uct_varuna_req_init_comp(req);
    status = uct_ep_flush(ep->lane.ep, 0, &req->comp);
    if (ucs_likely(status == UCS_INPROGRESS)) {
        ep->silent      = 0;
        ep->want_signal = 0;
    } else if ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE)) {
        /* Asked again, or told to the users, by the next step: the caller may
         * stand in a user's callback */
        uct_varuna_ep_add_work(ep);
    } else {
        uct_varuna_recovery_start(ep, ucs_status_string(status));
    }

    return status;
}

void uct_varuna_ep_finish_head(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    uct_varuna_req_t *req;
    uct_completion_t *comp;

    req  = ucs_queue_pull_elem_non_empty(&ep->reqs, uct_varuna_req_t, queue);
    comp = req->user_comp;
    --ep->num_reqs;
    --iface->outstanding;
    ep->num_reads -= (uct_varuna_req_info(req)->kind == UCT_VARUNA_OP_GET);
    if (req == ep->last_silent) {
        ep->last_silent = NULL;
        ep->silent      = 0;
    }

    if (uct_varuna_req_info(req)->logged &&
        (req->flags & UCT_VARUNA_REQ_FLAG_POSTED)) {
        uct_varuna_oplog_finish(&ep->oplog, req->log_sn);
    }

    uct_varuna_req_release(req);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

void uct_varuna_ep_detach_reqs(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    uct_varuna_req_t *req;

    ucs_queue_for_each(req, &ep->reqs, queue) {
        req->ep = NULL;
    }

    iface->outstanding -= ep->num_reqs;
    ep->num_reqs        = 0;
    ep->num_reads       = 0;
}

void uct_varuna_reqs_release(ucs_queue_head_t *reqs)
{
    uct_varuna_req_t *req;

    while (!ucs_queue_is_empty(reqs)) {
        req = ucs_queue_pull_elem_non_empty(reqs, uct_varuna_req_t, queue);
        uct_varuna_req_release(req);
    }
}

void uct_varuna_ep_finish_done(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *head;

    while (!ucs_queue_is_empty(&ep->reqs)) {
        head = ucs_queue_head_elem_non_empty(&ep->reqs, uct_varuna_req_t,
                                             queue);
        if ((head->type != UCT_VARUNA_REQ_FLUSH) &&
            !(head->flags & UCT_VARUNA_REQ_FLAG_DONE)) {
            break;
        }
        uct_varuna_ep_finish_head(ep, UCS_OK);
    }

    if (ucs_unlikely(!ucs_queue_is_empty(&ep->pending))) {
        uct_varuna_ep_dispatch_pending(ep);
    }
}

ucs_status_t uct_varuna_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;

    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL) &&
        (ep->state != UCT_VARUNA_EP_FAILED)) {
        uct_varuna_ep_fail(ep, UCS_OK);
    }

    if (uct_varuna_ep_has_pending(ep) && (ep->state != UCT_VARUNA_EP_FAILED)) {
        return UCS_ERR_NO_RESOURCE; /* They are to be flushed, too */
    }

    if (ep->num_reqs == 0) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    if (ep->state == UCT_VARUNA_EP_ACTIVE) {
        uct_varuna_ep_signal(ep);
    } else {
        uct_varuna_ep_add_work(ep);
    }

    if (comp != NULL) {
        req = ucs_mpool_get(&iface->req_mp);
        if (req == NULL) {
            return UCS_ERR_NO_RESOURCE;
        }

        uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_FLUSH, comp);
        uct_varuna_req_push(iface, ep, req);
    }

    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}

ucs_status_t uct_varuna_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);

    (void)iface;
    ep->fence_next = 1;
    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}

ucs_status_t uct_varuna_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);

    UCT_EP_KEEPALIVE_CHECK_PARAM(flags, comp);
    /* Also with requests in flight: those may be done already, silently */
    if ((ep->owed != NULL) || !uct_varuna_ep_can_post(iface, ep)) {
        return UCS_OK; /* The recovery finds out by itself */
    }

    return uct_varuna_ep_post_probe(ep);
}

static ucs_status_t uct_varuna_ep_inner_pending_cb(uct_pending_req_t *self)
{
    uct_varuna_ep_t *ep = ucs_container_of(self, uct_varuna_ep_t, inner_pend);

    ep->inner_pend_queued = 0;
    uct_varuna_ep_dispatch_pending(ep);
    return UCS_OK;
}

void uct_varuna_ep_dispatch_pending(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;
    ucs_status_t status;

    if (ep->dispatching) {
        return; /* A completion inside a pending callback */
    }

    ep->dispatching = 1;
    while (!ucs_queue_is_empty(&ep->pending) &&
           uct_varuna_ep_can_post(iface, ep)) {
        priv   = ucs_queue_pull_elem_non_empty(&ep->pending,
                                               uct_pending_req_priv_queue_t,
                                               queue_elem);
        req    = ucs_container_of(priv, uct_pending_req_t, priv);
        status = req->func(req);
        if (status != UCS_OK) {
            ucs_queue_push_head(&ep->pending, &priv->queue_elem);
        }

        if (status == UCS_ERR_NO_RESOURCE) {
            break;
        }
    }
    ep->dispatching = 0;

    if (!ucs_queue_is_empty(&ep->pending)) {
        /* Our own limits are looked at when something completes; the lane's
         * by its own pending queue, entered from the progress since this may be
         * called from inside it */
        uct_varuna_ep_add_work(ep);
    }
}

ucs_status_t uct_varuna_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);

    if (uct_varuna_ep_can_post(iface, ep) && ucs_queue_is_empty(&ep->pending)) {
        if ((ep->state == UCT_VARUNA_EP_OPENING) ||
            (uct_varuna_ep_enter_inner_pending(ep) == UCS_ERR_BUSY)) {
            return UCS_ERR_BUSY;
        }
    } else {
        uct_varuna_ep_add_work(ep);
    }

    ucs_queue_push(&ep->pending,
                   &uct_varuna_pending_priv(req)->queue_elem);
    UCT_TL_EP_STAT_PEND(&ep->super);
    return UCS_OK;
}

ucs_status_t uct_varuna_ep_enter_inner_pending(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    if (ep->inner_pend_queued) {
        return UCS_OK;
    }

    ep->inner_pend.func = uct_varuna_ep_inner_pending_cb;
    status              = uct_ep_pending_add(ep->lane.ep, &ep->inner_pend, 0);
    if (status == UCS_OK) {
        ep->inner_pend_queued = 1;
    }

    return status;
}

static void
uct_varuna_ep_inner_purge_cb(uct_pending_req_t *self, void *arg)
{
    uct_varuna_ep_t *ep = ucs_container_of(self, uct_varuna_ep_t, inner_pend);

    ep->inner_pend_queued = 0;
}

void uct_varuna_ep_leave_inner_pending(uct_varuna_ep_t *ep, uct_ep_h inner)
{
    uct_ep_pending_purge(inner, uct_varuna_ep_inner_purge_cb, NULL);
    ep->inner_pend_queued = 0;
}

void uct_varuna_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;

    (void)iface;
    while (!ucs_queue_is_empty(&ep->pending)) {
        priv = ucs_queue_pull_elem_non_empty(&ep->pending,
                                             uct_pending_req_priv_queue_t,
                                             queue_elem);
        req  = ucs_container_of(priv, uct_pending_req_t, priv);
        if (cb != NULL) {
            cb(req, arg);
        } else {
            ucs_warn("ep %p: pending request %p was not purged", ep, req);
        }
    }
}
