/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The slabs of a ring of requests, and how UCX posts a request. See varuna_ring.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ring.h"

/* From the beginning of a slab to the last place where a request may begin: any fits, and
 * the end of the slab after it */
#define UCT_VARUNA_SLAB_LIMIT \
    (UCT_VARUNA_SLAB_SIZE - sizeof(uct_varuna_slab_end_t) - \
     ucs_align_up_pow2(sizeof(uct_varuna_req_t), UCS_SYS_CACHE_LINE_SIZE))

static void *uct_varuna_ring_slab(const uct_varuna_ring_t *ring)
{
    return UCS_PTR_BYTE_OFFSET(ring->limit, -(ptrdiff_t)UCT_VARUNA_SLAB_LIMIT);
}

ucs_status_t uct_varuna_ring_open(uct_varuna_ep_t *ep, int is_flush)
{
    uct_varuna_ring_t *ring = &ep->hot.reqs;
    uct_varuna_req_t *slab;

    UCS_STATIC_ASSERT(sizeof(uct_varuna_slab_end_t) <= UCS_SYS_CACHE_LINE_SIZE);
    if (ring->head != NULL) {
        return UCS_OK;
    }

    if ((ep->hot.num_reqs >= UCT_VARUNA_MAX_REQS) && !is_flush) {
        return UCS_ERR_NO_RESOURCE;
    }

    slab = ucs_mpool_get(&uct_varuna_ep_requester(ep)->pools.slabs);
    if (slab == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    if (ring->limit == NULL) {
        ring->tail = slab;
    } else {
        ((uct_varuna_slab_end_t*)ring->limit)->next = slab;
    }

    ring->head  = slab;
    ring->limit = UCS_PTR_BYTE_OFFSET(slab, UCT_VARUNA_SLAB_LIMIT);
    return UCS_OK;
}

void uct_varuna_ring_turn(uct_varuna_ep_t *ep, uct_varuna_req_t *newest)
{
    uct_varuna_ring_t *ring    = &ep->hot.reqs;
    uct_varuna_slab_end_t *end = uct_varuna_ring_slab_end(newest);

    newest->flags |= UCT_VARUNA_REQ_FLAG_LAST;
    end->slab      = uct_varuna_ring_slab(ring);
    end->next      = NULL;
    ring->head     = NULL;
    ring->limit    = end;
    if (uct_varuna_ring_open(ep, 0) != UCS_OK) {
        ep->hot.gate = 1; /* The next request tries again */
    }
}

void uct_varuna_ring_trim(uct_varuna_ring_t *ring)
{
    if (uct_varuna_ring_is_empty(ring) && (ring->head != NULL)) {
        ucs_mpool_put(uct_varuna_ring_slab(ring));
        memset(ring, 0, sizeof(*ring));
    }
}

void uct_varuna_ring_release(uct_varuna_ring_t *ring)
{
    while (!uct_varuna_ring_is_empty(ring)) {
        uct_varuna_req_release(ring->tail);
        uct_varuna_ring_pull(ring);
    }

    uct_varuna_ring_trim(ring);
}

/* --- The saved request: posted by UCX, on any lane --- */

ucs_status_t uct_varuna_req_post_put_short(uct_varuna_req_t *req, uct_completion_t *comp)
{
    return uct_ep_put_short(req->ep->lane.ep, req->data, req->length,
                            req->remote_addr, uct_varuna_req_rkey(req));
}

ucs_status_t uct_varuna_req_post_put_zcopy(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_iov_t iov[UCT_VARUNA_MAX_IOV];

    uct_varuna_req_fill_iov(req->ep, req, req->iovcnt, iov);
    return uct_ep_put_zcopy(req->ep->lane.ep, iov, req->iovcnt,
                            req->remote_addr, uct_varuna_req_rkey(req), comp);
}

void uct_varuna_req_unpack_nothing(void *arg, const void *data, size_t length)
{
}

/* The callback of reads. The data of a read whose endpoint is gone is dropped: the read
 * was canceled. */
static void uct_varuna_req_unpack(void *arg, const void *data, size_t length)
{
    uct_varuna_req_t *req = arg;

    if (ucs_likely(req->ep != NULL)) {
        req->get.cb(req->get.arg, data, length);
    }
}

ucs_status_t uct_varuna_req_post_get_bcopy(uct_varuna_req_t *req, uct_completion_t *comp)
{
    return uct_ep_get_bcopy(req->ep->lane.ep, uct_varuna_req_unpack, req,
                            req->length, req->remote_addr,
                            uct_varuna_req_rkey(req), comp);
}

ucs_status_t uct_varuna_req_post_get_zcopy(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_iov_t iov[UCT_VARUNA_MAX_IOV];

    uct_varuna_req_fill_iov(req->ep, req, req->iovcnt, iov);
    return uct_ep_get_zcopy(req->ep->lane.ep, iov, req->iovcnt,
                            req->remote_addr, uct_varuna_req_rkey(req), comp);
}

ucs_status_t uct_varuna_req_post_am_short(uct_varuna_req_t *req, uct_completion_t *comp)
{
    return uct_ep_am_short(req->ep->lane.ep, UCT_VARUNA_AM_ID_DATA,
                           req->am.hdr.u64, req->data, req->length);
}

ucs_status_t uct_varuna_req_post_am_bcopy(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_iov_t iov;

    uct_varuna_req_fill_bcopy(req, &iov);
    return uct_ep_am_zcopy(req->ep->lane.ep, UCT_VARUNA_AM_ID_DATA, &req->am.hdr,
                           sizeof(req->am.hdr), &iov, 1, req->opcode, comp);
}

ucs_status_t uct_varuna_req_post_am_zcopy(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_iov_t iov[UCT_VARUNA_MAX_IOV];

    /* The data buffer contains our header and then the user's: both are inline in
     * the WQE */
    uct_varuna_req_fill_iov(req->ep, req, req->iovcnt, iov);
    return uct_ep_am_zcopy(req->ep->lane.ep, UCT_VARUNA_AM_ID_DATA,
                           uct_varuna_req_am_header(req), req->header_length, iov,
                           req->iovcnt, req->opcode, comp);
}

/* Atomics of mode native, which are the NIC's own. One that is known to be executed
 * is never repeated, but the value which it fetched is lost with the link, and its
 * caller gets an error. The other modes build theirs of steps (varuna_amo.c). */
ucs_status_t uct_varuna_req_post_atomic(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_rkey_t rkey = uct_varuna_req_rkey(req);
    uct_ep_h ep     = req->ep->lane.ep;

    if (req->flags & UCT_VARUNA_REQ_FLAG_64) {
        return uct_ep_atomic64_post(ep, (uct_atomic_op_t)req->opcode,
                                    req->atomic.value, req->remote_addr, rkey);
    }

    return uct_ep_atomic32_post(ep, (uct_atomic_op_t)req->opcode,
                                req->atomic.value, req->remote_addr, rkey);
}

/* The inner lane writes the value into the request, which outlives the endpoint: the user's
 * memory may be used otherwise then. */
ucs_status_t uct_varuna_req_post_fetch(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_rkey_t rkey = uct_varuna_req_rkey(req);
    uct_ep_h ep     = req->ep->lane.ep;

    if (req->flags & UCT_VARUNA_REQ_FLAG_64) {
        return uct_ep_atomic64_fetch(ep, (uct_atomic_op_t)req->opcode,
                                     req->atomic.value, (void*)req->data,
                                     req->remote_addr, rkey, comp);
    }

    return uct_ep_atomic32_fetch(ep, (uct_atomic_op_t)req->opcode,
                                 req->atomic.value, (void*)req->data,
                                 req->remote_addr, rkey, comp);
}

ucs_status_t uct_varuna_req_post_cswap(uct_varuna_req_t *req, uct_completion_t *comp)
{
    uct_rkey_t rkey = uct_varuna_req_rkey(req);
    uct_ep_h ep     = req->ep->lane.ep;

    if (req->flags & UCT_VARUNA_REQ_FLAG_64) {
        return uct_ep_atomic_cswap64(ep, req->atomic.compare, req->atomic.value,
                                     req->remote_addr, rkey, (void*)req->data,
                                     comp);
    }

    return uct_ep_atomic_cswap32(ep, req->atomic.compare, req->atomic.value,
                                 req->remote_addr, rkey, (void*)req->data,
                                 comp);
}
