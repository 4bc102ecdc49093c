/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The saved requests of an endpoint in posting order: what the lane has not completed, and
 * what waits to be posted. They follow each other in slabs, which the endpoints of an
 * interface share. An endpoint that has never posted has none.
 *
 *     slab                                   slab
 *    +--------+------------+-------+------+  +-------+-----------------------------+
 *    |        | request    | req.  | next --->| req.  |  room for one more          |
 *    +--------+------------+-------+------+  +-------+-----------------------------+
 *             ^ tail         LAST                    ^ head          ^ limit
 *
 * A request is made at the head, and becomes a part of the ring only when it is pushed:
 * there is nothing to give back if it can't be posted. It never moves.
 */
#ifndef UCT_VARUNA_RING_H_
#define UCT_VARUNA_RING_H_

#include "varuna_ep.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/datastruct/mpool.inl>

/* With the pool's header, 4 KB */
#define UCT_VARUNA_SLAB_SIZE         (4096 - UCS_SYS_CACHE_LINE_SIZE)

/* Follows the last request of a slab */
typedef struct uct_varuna_slab_end {
    uct_varuna_req_t           *next;      /* NULL: the ring ends here */
    void                       *slab;
} uct_varuna_slab_end_t;

/** Get a slab for the head if it has none. @return UCS_ERR_NO_RESOURCE if it is not to be
 *  had, or if so many requests are unfinished that a new one has to wait, unless it has to
 *  be queued in any case (@a is_flush). */
ucs_status_t uct_varuna_ring_open(uct_varuna_ep_t *ep, int is_flush);

/** The slab has no room for another request after @a newest: close it, open the next. */
void uct_varuna_ring_turn(uct_varuna_ep_t *ep, uct_varuna_req_t *newest);

/** Give back the slab of an empty ring. */
void uct_varuna_ring_trim(uct_varuna_ring_t *ring);

/** Release a ring with all that its requests hold. */
void uct_varuna_ring_release(uct_varuna_ring_t *ring);

static inline int uct_varuna_ring_is_empty(const uct_varuna_ring_t *ring)
{
    return ring->tail == ring->head;
}

static UCS_F_ALWAYS_INLINE uct_varuna_slab_end_t *
uct_varuna_ring_slab_end(const uct_varuna_req_t *req)
{
    return (uct_varuna_slab_end_t*)UCS_PTR_BYTE_OFFSET(req, req->size);
}

/** @return The request after @a req, or the head. */
static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_ring_next(const uct_varuna_req_t *req)
{
    return ucs_unlikely(req->flags & UCT_VARUNA_REQ_FLAG_LAST) ?
           uct_varuna_ring_slab_end(req)->next :
           (uct_varuna_req_t*)UCS_PTR_BYTE_OFFSET(req, req->size);
}

/** From the oldest to the newest one. */
#define uct_varuna_ring_for_each(_req, _ring) \
    for ((_req) = (_ring)->tail; (_req) != (_ring)->head; \
         (_req) = uct_varuna_ring_next(_req))

/** Add the request at the head. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_ring_push(uct_varuna_ep_t *ep, uct_varuna_req_t *req, size_t size)
{
    uct_varuna_ring_t *ring = &ep->hot.reqs;

    ucs_assertv(req == ring->head, "req=%p head=%p", req, ring->head);
    req->size  = ucs_align_up_pow2(size, UCS_SYS_CACHE_LINE_SIZE);
    ring->head = (uct_varuna_req_t*)UCS_PTR_BYTE_OFFSET(req, req->size);
    ++ep->hot.num_reqs;
    if (ucs_unlikely((void*)ring->head > ring->limit)) {
        uct_varuna_ring_turn(ep, req);
    }
}

/** Take the oldest request from the ring: another one of its slab follows. */
static UCS_F_ALWAYS_INLINE void uct_varuna_ring_pull_plain(uct_varuna_ring_t *ring)
{
    ring->tail = (uct_varuna_req_t*)UCS_PTR_BYTE_OFFSET(ring->tail, ring->tail->size);
}

/** Take the oldest request from the ring. Its memory may be gone then. */
static UCS_F_ALWAYS_INLINE void uct_varuna_ring_pull(uct_varuna_ring_t *ring)
{
    uct_varuna_req_t *req = ring->tail;
    uct_varuna_slab_end_t *end;

    if (ucs_likely(!(req->flags & UCT_VARUNA_REQ_FLAG_LAST))) {
        uct_varuna_ring_pull_plain(ring);
        return;
    }

    end        = uct_varuna_ring_slab_end(req);
    ring->tail = end->next;
    if (end->next == NULL) {
        ring->limit = NULL;
    }

    ucs_mpool_put_inline(end->slab);
}

#endif
