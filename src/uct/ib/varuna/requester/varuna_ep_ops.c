/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * UCT operations of the endpoint. Each saves a request, posts it on the active
 * lane, and queues it until the lane or the recovery finishes it. A new endpoint
 * takes requests before it has a lane, and one that changes its lane as planned does
 * so too. Where events are used, most messages are not taken then (varuna_post.c).
 * While it recovers it takes none, and the caller's own pending queue holds them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ep.h"
#include "varuna.inl"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/core/varuna_msg.h>

/* A put of @a length, which the compiler may know */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_put_short_inline(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                               const void *buffer, unsigned length,
                               uint64_t remote_addr, uct_rkey_t rkey, uint8_t lacks)
{
    uct_varuna_req_t *req;
    ucs_status_t status;

    req = uct_varuna_req_get_lacking(iface, ep, UCT_VARUNA_REQ_PUT_SHORT, NULL, rkey, lacks);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    memcpy(req->data, buffer, length);
    status = uct_varuna_req_start(iface, ep, req, UCT_VARUNA_REQ_PUT_SHORT, NULL, length);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, SHORT, length);
    return status;
}

static UCS_F_NOINLINE ucs_status_t
uct_varuna_ep_put_short_any(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                            const void *buffer, unsigned length, uint64_t remote_addr,
                            uct_rkey_t rkey)
{
    return uct_varuna_ep_put_short_inline(iface, ep, buffer, length, remote_addr, rkey,
                                          uct_varuna_rkey_lacks(rkey));
}

/* A word is what flags and counters are */
ucs_status_t uct_varuna_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uint8_t lacks;

    UCT_CHECK_LENGTH(length, 0, iface->attr.cap.put.max_short, "put_short");
    if (ucs_likely(length == sizeof(uint64_t))) {
        lacks = uct_varuna_rkey_lacks(rkey);
        if (ucs_likely(uct_varuna_gate_is_open(iface, ep, lacks))) {
            return uct_varuna_ep_put_short_inline(iface, ep, buffer, sizeof(uint64_t),
                                                  remote_addr, rkey, lacks);
        }
    }

    UCT_SKIP_ZERO_LENGTH(length);
    return uct_varuna_ep_put_short_any(iface, ep, buffer, length, remote_addr, rkey);
}

/* A new request with a buffer for what the user packs, NULL if it is not taken now. The caller
 * looks at its key: the user need not have one to write nothing. */
static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_req_get_packed(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                          uct_varuna_req_type_t type, void **buffer_p)
{
    uct_varuna_req_t *req = uct_varuna_req_get_lacking(iface, ep, type, NULL,
                                                       UCT_INVALID_RKEY,
                                                       UCT_VARUNA_GATE_CLOSED);

    if (ucs_unlikely(req == NULL)) {
        return NULL;
    }

    *buffer_p = uct_varuna_req_get_bcopy(iface, req);
    return ucs_unlikely(*buffer_p == NULL) ? NULL : req;
}

ssize_t uct_varuna_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;
    size_t length;
    uct_iov_t iov;

    req = uct_varuna_req_get_packed(iface, ep, UCT_VARUNA_REQ_PUT_ZCOPY, &iov.buffer);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    length = pack_cb(iov.buffer, arg);
    if (ucs_unlikely(length == 0)) {
        uct_varuna_req_release(req);
        return 0;
    }

    if (ucs_unlikely(ep->hot.gate & uct_varuna_rkey_lacks(rkey))) {
        uct_varuna_gate_check_key(req, rkey);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    iov.memh = req->bcopy->memh;
    uct_varuna_req_set_iov(req, &iov, 1, length);
    status = uct_varuna_req_start_iov(iface, ep, req, UCT_VARUNA_REQ_PUT_ZCOPY, NULL,
                                      length, &iov, 1);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, BCOPY, length);
    return (status == UCS_OK) ? (ssize_t)length : status;
}

static UCS_F_ALWAYS_INLINE size_t uct_varuna_ep_iov_length(const uct_iov_t *iov,
                                                           size_t iovcnt)
{
    return ucs_likely(iovcnt == 1) ? uct_iov_get_length(iov) :
           uct_iov_total_length(iov, iovcnt);
}

/* @a length: of all @a iovcnt buffers, of which the compiler may know that there is one */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_put_zcopy_inline(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                               const uct_iov_t *iov, size_t iovcnt, size_t length,
                               uint64_t remote_addr, uct_rkey_t rkey,
                               uct_completion_t *comp)
{
    uct_varuna_req_t *req;
    ucs_status_t status;

    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_PUT_ZCOPY, comp, rkey);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    uct_varuna_req_set_iov(req, iov, iovcnt, length);
    status = uct_varuna_req_inprogress(
            uct_varuna_req_start_iov(iface, ep, req, UCT_VARUNA_REQ_PUT_ZCOPY, comp, length,
                                     iov, iovcnt));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, PUT, ZCOPY, length);
    return status;
}

ucs_status_t uct_varuna_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    size_t length = uct_varuna_ep_iov_length(iov, iovcnt);

    UCT_CHECK_IOV_SIZE(iovcnt, iface->attr.cap.put.max_iov, "put_zcopy");
    UCT_CHECK_LENGTH(length, 0, iface->attr.cap.put.max_zcopy, "put_zcopy");
    UCT_SKIP_ZERO_LENGTH(length);
    return ucs_likely(iovcnt == 1) ?
           uct_varuna_ep_put_zcopy_inline(iface, ep, iov, 1, length, remote_addr, rkey,
                                          comp) :
           uct_varuna_ep_put_zcopy_inline(iface, ep, iov, iovcnt, length, remote_addr,
                                          rkey, comp);
}

/* Whether the mode of atomics may read it instead */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_get_is_amo(const uct_varuna_iface_t *iface, size_t length)
{
    return length <= uct_varuna_requester(iface)->amo->get_max;
}

static ucs_status_t
uct_varuna_ep_get_by_amo(uct_varuna_ep_t *ep, uct_varuna_req_type_t type,
                       size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                       void *result, uct_unpack_callback_t unpack, void *arg,
                       uct_completion_t *comp)
{
    const uct_varuna_amo_args_t args = {
        .type        = type,
        .width       = length,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .result      = result,
        .unpack      = unpack,
        .unpack_arg  = arg,
        .comp        = comp
    };

    return uct_varuna_ep_requester(ep)->amo->get(ep, &args);
}

ucs_status_t uct_varuna_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb, void *arg,
                                     size_t length, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;

    UCT_CHECK_LENGTH(length, 0, iface->attr.cap.get.max_bcopy, "get_bcopy");
    UCT_SKIP_ZERO_LENGTH(length);
    if (ucs_unlikely(uct_varuna_ep_get_is_amo(iface, length))) {
        status = uct_varuna_ep_get_by_amo(ep, UCT_VARUNA_REQ_GET_BCOPY, length,
                                          remote_addr, rkey, NULL, unpack_cb, arg,
                                          comp);
        if (status != UCS_ERR_UNSUPPORTED) {
            goto out;
        }
    }

    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_GET_BCOPY, comp, rkey);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->get.cb  = unpack_cb;
    req->get.arg = arg;
    status = uct_varuna_req_inprogress(
            uct_varuna_req_start(iface, ep, req, UCT_VARUNA_REQ_GET_BCOPY, comp, length));

out:
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, GET, BCOPY, length);
    return status;
}

/* As uct_varuna_ep_put_zcopy_inline() */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_get_zcopy_inline(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                               const uct_iov_t *iov, size_t iovcnt, size_t length,
                               uint64_t remote_addr, uct_rkey_t rkey,
                               uct_completion_t *comp)
{
    uct_varuna_req_t *req;
    ucs_status_t status;

    if (ucs_unlikely(uct_varuna_ep_get_is_amo(iface, length) && (iovcnt == 1) &&
                     (iov->length == length))) {
        status = uct_varuna_ep_get_by_amo(ep, UCT_VARUNA_REQ_GET_ZCOPY, length,
                                          remote_addr, rkey, iov->buffer, NULL, NULL,
                                          comp);
        if (status != UCS_ERR_UNSUPPORTED) {
            goto out;
        }
    }

    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_GET_ZCOPY, comp, rkey);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    uct_varuna_req_set_iov(req, iov, iovcnt, length);
    status = uct_varuna_req_inprogress(
            uct_varuna_req_start_iov(iface, ep, req, UCT_VARUNA_REQ_GET_ZCOPY, comp, length,
                                     iov, iovcnt));

out:
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, GET, ZCOPY, length);
    return status;
}

ucs_status_t uct_varuna_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    size_t length = uct_varuna_ep_iov_length(iov, iovcnt);

    UCT_CHECK_IOV_SIZE(iovcnt, iface->attr.cap.get.max_iov, "get_zcopy");
    UCT_CHECK_LENGTH(length, iface->attr.cap.get.min_zcopy, iface->attr.cap.get.max_zcopy,
                     "get_zcopy");
    UCT_SKIP_ZERO_LENGTH(length);
    return ucs_likely(iovcnt == 1) ?
           uct_varuna_ep_get_zcopy_inline(iface, ep, iov, 1, length, remote_addr, rkey,
                                          comp) :
           uct_varuna_ep_get_zcopy_inline(iface, ep, iov, iovcnt, length, remote_addr,
                                          rkey, comp);
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_am(const uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                      uint8_t id)
{
    req->am.hdr.seq    = ep->hot.am_seq;
    req->am.hdr.target = (ep->hot.target << UCT_VARUNA_AM_ID_BITS) | id;
}

/* A sequence number is taken only by a message which was really posted. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_started_am(uct_varuna_ep_t *ep, ucs_status_t status)
{
    if (ucs_likely(status == UCS_OK)) {
        ++ep->hot.am_seq;
    }

    return status;
}

static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_am(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_t *req, uct_varuna_req_type_t type, uint32_t length)
{
    return uct_varuna_req_started_am(ep, uct_varuna_req_start(iface, ep, req, type, NULL,
                                                              length));
}

ucs_status_t uct_varuna_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                    const void *payload, unsigned length)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(length + sizeof(header), 0, iface->attr.cap.am.max_short,
                     "am_short");
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_SHORT, NULL, UCT_INVALID_RKEY);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_am(ep, req, id);
    memcpy(req->data, &header, sizeof(header));
    if (length > 0) {
        memcpy(req->data + sizeof(header), payload, length);
    }
    status = uct_varuna_req_start_am(iface, ep, req, UCT_VARUNA_REQ_AM_SHORT,
                                     length + sizeof(header));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, SHORT,
                                 length + sizeof(header));
    return status;
}

ucs_status_t uct_varuna_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;
    ucs_iov_iter_t iter;
    size_t length;

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_LENGTH(uct_iov_total_length(iov, iovcnt), 0,
                     iface->attr.cap.am.max_short, "am_short_iov");
    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_SHORT, NULL, UCT_INVALID_RKEY);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_am(ep, req, id);
    ucs_iov_iter_init(&iter);
    length = uct_iov_to_buffer(iov, iovcnt, &iter, req->data, sizeof(req->data));
    status = uct_varuna_req_start_am(iface, ep, req, UCT_VARUNA_REQ_AM_SHORT, length);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, SHORT,
                                 uct_iov_total_length(iov, iovcnt));
    return status;
}

/* The header which begins an AM_ZCOPY, after its iovs: ours, then the user's. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_am_header(uct_varuna_req_t *req, const void *header,
                             unsigned header_length)
{
    uint8_t *data = uct_varuna_req_am_header(req);

    memcpy(data, &req->am.hdr, sizeof(req->am.hdr));
    if (header_length > 0) {
        memcpy(data + sizeof(req->am.hdr), header, header_length);
    }
    req->header_length = sizeof(req->am.hdr) + header_length;
}

/* As uct_varuna_ep_unavailable(), for a message of UCP's wire-up see
 * uct_varuna_ep_end_pending() */
static ucs_status_t uct_varuna_ep_message_unavailable(uct_varuna_ep_t *ep, uint8_t id)
{
    return (uct_varuna_ep_ends_pending(ep) && (id == UCT_VARUNA_COMPAT_AM_ID_WIREUP)) ?
           ep->sm.fail_status : uct_varuna_ep_unavailable(ep);
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
    req = uct_varuna_req_get_packed(iface, ep, UCT_VARUNA_REQ_AM_BCOPY, &buffer);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_message_unavailable(ep, id);
    }

    length      = pack_cb(buffer, arg);
    req->opcode = flags;
    uct_varuna_req_set_am(ep, req, id);
    status = uct_varuna_req_start_am(iface, ep, req, UCT_VARUNA_REQ_AM_BCOPY, length);
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, BCOPY, length);
    return (status == UCS_OK) ? (ssize_t)length : status;
}

/* As uct_varuna_ep_put_zcopy_inline() */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_am_zcopy_inline(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep, uint8_t id,
                              const void *header, unsigned header_length,
                              const uct_iov_t *iov, size_t iovcnt, size_t length,
                              unsigned flags, uct_completion_t *comp)
{
    uct_varuna_req_t *req;
    ucs_status_t status;

    req = uct_varuna_req_get(iface, ep, UCT_VARUNA_REQ_AM_ZCOPY, comp, UCT_INVALID_RKEY);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    req->opcode = flags;
    uct_varuna_req_set_am(ep, req, id);
    uct_varuna_req_set_iov(req, iov, iovcnt, length);
    uct_varuna_req_set_am_header(req, header, header_length);
    status = uct_varuna_req_started_am(
            ep, uct_varuna_req_start_iov(iface, ep, req, UCT_VARUNA_REQ_AM_ZCOPY, comp,
                                         length, iov, iovcnt));
    UCT_TL_EP_STAT_OP_IF_SUCCESS(status, &ep->super, AM, ZCOPY,
                                 header_length + length);
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

ucs_status_t uct_varuna_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    size_t length = uct_varuna_ep_iov_length(iov, iovcnt);

    UCT_CHECK_AM_ID(id);
    UCT_CHECK_IOV_SIZE(iovcnt, iface->attr.cap.am.max_iov, "am_zcopy");
    UCT_CHECK_LENGTH(header_length, 0, iface->attr.cap.am.max_hdr,
                     "am_zcopy header");
    UCT_CHECK_LENGTH(header_length + length, 0,
                     iface->attr.cap.am.max_zcopy, "am_zcopy");
    return ucs_likely(iovcnt == 1) ?
           uct_varuna_ep_am_zcopy_inline(iface, ep, id, header, header_length, iov, 1,
                                         length, flags, comp) :
           uct_varuna_ep_am_zcopy_inline(iface, ep, id, header, header_length, iov, iovcnt,
                                         length, flags, comp);
}

/* How many atomics a flush has to wait for. Rule 9 of docs/ATOMICS.md: those that are
 * decided, but not confirmed yet, as well. */
static unsigned uct_varuna_ep_num_amos_to_flush(const uct_varuna_ep_t *ep)
{
    return ep->hot.num_amos;
}

ucs_status_t uct_varuna_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;

    UCT_CHECK_PARAM(!ucs_test_all_flags(flags, UCT_FLUSH_FLAG_CANCEL |
                                               UCT_VARUNA_COMPAT_FLUSH_REMOTE),
                    "flush flags CANCEL and REMOTE are mutually exclusive");
    if (ucs_unlikely(flags & UCT_FLUSH_FLAG_CANCEL) &&
        (ep->hot.state != UCT_VARUNA_EP_FAILED)) {
        uct_varuna_ep_raise_fatal(ep, UCS_OK);
    }

    if ((uct_varuna_ep_has_pending(ep) && (ep->hot.state != UCT_VARUNA_EP_FAILED)) ||
        uct_varuna_ep_ends_pending(ep)) {
        return UCS_ERR_NO_RESOURCE; /* They are to be flushed, too */
    }

    ep->amo.flushed = ep->stats.posted;

    if (!uct_varuna_ep_is_busy(ep) && (uct_varuna_ep_num_amos_to_flush(ep) == 0) &&
        uct_varuna_ep_is_placed(ep, flags)) {
        UCT_TL_EP_STAT_FLUSH(&ep->super);
        return UCS_OK;
    }

    if (ep->hot.state == UCT_VARUNA_EP_ACTIVE) {
        uct_varuna_ep_signal(ep);
    } else {
        uct_varuna_ep_add_work(ep);
    }

    if (uct_varuna_ep_num_amos_to_flush(ep) == 0) {
        status = uct_varuna_ep_queue_flush(ep, flags, comp);
        if ((status != UCS_INPROGRESS) && (comp != NULL)) {
            return status;
        }
    } else if (comp != NULL) {
        req = ucs_mpool_get(&uct_varuna_requester(iface)->pools.reqs);
        if (req == NULL) {
            return UCS_ERR_NO_RESOURCE;
        }

        uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_FLUSH, comp);
        req->opcode = flags;
        req->log_sn = ep->amo.sn; /* Complete it after all of these */
        ucs_queue_push(&ep->amo.flushes, &req->queue);
    }

    UCT_TL_EP_STAT_FLUSH_WAIT(&ep->super);
    return UCS_INPROGRESS;
}

ucs_status_t uct_varuna_ep_fence(uct_ep_h tl_ep, unsigned flags)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);

    (void)iface;
    ep->hot.fence_next = 1;
    ep->hot.gate       = 1;
    UCT_TL_EP_STAT_FENCE(&ep->super);
    return UCS_OK;
}

ucs_status_t uct_varuna_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_post_t why;
    ucs_status_t status;

    UCT_VARUNA_COMPAT_EP_CHECK_PARAM(flags, comp);
    if (ep->hot.state != UCT_VARUNA_EP_ACTIVE) {
        return UCS_OK; /* The recovery finds out by itself */
    }

    /* Also with requests in flight: those may be done already, silently */
    why = uct_varuna_ep_can_post(iface, ep, 1);
    if (why != UCT_VARUNA_POST_OK) {
        uct_varuna_ep_raise_post(ep, why);
        return UCS_OK;
    }

    status = uct_varuna_ep_post_probe(ep);
    return (status == UCS_ERR_NO_RESOURCE) ? UCS_OK : status;
}

/* No other lane takes over: the user wants the endpoint to fail, and a later progress
 * call reports that. */
ucs_status_t uct_varuna_ep_invalidate(uct_ep_h tl_ep)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);

    (void)iface;
    uct_varuna_ep_raise_fatal(ep, UCS_ERR_CONNECTION_RESET);
    return UCS_OK;
}

int uct_varuna_ep_is_connected(uct_ep_h tl_ep, const uct_iface_addr_t *addr)
{
    const uct_varuna_ep_t *ep = ucs_derived_of(tl_ep, uct_varuna_ep_t);

    return uct_varuna_parse_addr_is_of(addr, ep->peer->uuid);
}
