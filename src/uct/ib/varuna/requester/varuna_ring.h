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

/* --- The saved request --- */

/* The saved request: facts by type, and its buffers. */

/* A registered packing buffer. */
typedef struct uct_varuna_bcopy {
    uct_mem_h                  memh;
} uct_varuna_bcopy_t;

/* Bytes which a packing buffer needs besides its payload. */
#define UCT_VARUNA_BCOPY_OVERHEAD    sizeof(uct_mem_h)

/* Where a request keeps its data, which decides how many bytes it takes in the ring. */
typedef enum {
    UCT_VARUNA_REQ_IN_DATA,     /* A copy in data */
    UCT_VARUNA_REQ_IN_IOV,      /* The user's buffers */
    UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER, /* ... after a header, which the ring contains */
    UCT_VARUNA_REQ_ELSEWHERE,   /* In a packing buffer, or nowhere */
    UCT_VARUNA_REQ_OPERANDS     /* Of an atomic, in data */
} uct_varuna_req_place_t;

/* All that depends on the type of a request, except for the function of UCX that posts it
 * (varuna_post.c). */
typedef struct uct_varuna_req_info {
    uct_varuna_req_type_t      type;
    const char                 *name;
    uct_varuna_op_kind_t       kind;    /* For the plan */
    uct_varuna_req_place_t     place;
    uint8_t                    logged;  /* A log write follows it */
    uint8_t                    silent;  /* Its inner call takes no completion */
    uint8_t                    has_answer; /* The NIC writes into memory of ours */
} uct_varuna_req_info_t;

/* Here, so that the compiler knows the facts of a type that it knows */
static const uct_varuna_req_info_t uct_varuna_req_infos[] = {
    {UCT_VARUNA_REQ_PUT_SHORT, "put_short", UCT_VARUNA_OP_PUT,
     UCT_VARUNA_REQ_IN_DATA, .logged = 1, .silent = 1},
    {UCT_VARUNA_REQ_PUT_ZCOPY, "put_zcopy", UCT_VARUNA_OP_PUT,
     UCT_VARUNA_REQ_IN_IOV, .logged = 1},
    {UCT_VARUNA_REQ_GET_BCOPY, "get_bcopy", UCT_VARUNA_OP_GET,
     UCT_VARUNA_REQ_ELSEWHERE, .has_answer = 1},
    {UCT_VARUNA_REQ_GET_ZCOPY, "get_zcopy", UCT_VARUNA_OP_GET,
     UCT_VARUNA_REQ_IN_IOV, .has_answer = 1},
    {UCT_VARUNA_REQ_AM_SHORT, "am_short", UCT_VARUNA_OP_AM,
     UCT_VARUNA_REQ_IN_DATA, .silent = 1},
    {UCT_VARUNA_REQ_AM_BCOPY, "am_bcopy", UCT_VARUNA_OP_AM,
     UCT_VARUNA_REQ_ELSEWHERE},
    {UCT_VARUNA_REQ_AM_ZCOPY, "am_zcopy", UCT_VARUNA_OP_AM,
     UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER},
    {UCT_VARUNA_REQ_ATOMIC_POST, "atomic_post", UCT_VARUNA_OP_ATOMIC,
     UCT_VARUNA_REQ_OPERANDS, .logged = 1, .silent = 1},
    {UCT_VARUNA_REQ_ATOMIC_FETCH, "atomic_fetch", UCT_VARUNA_OP_ATOMIC,
     UCT_VARUNA_REQ_OPERANDS, .logged = 1, .has_answer = 1},
    {UCT_VARUNA_REQ_CSWAP, "cswap", UCT_VARUNA_OP_ATOMIC,
     UCT_VARUNA_REQ_OPERANDS, .logged = 1, .has_answer = 1},
    /* It may become a read */
    {UCT_VARUNA_REQ_FLUSH, "flush", UCT_VARUNA_OP_FLUSH,
     UCT_VARUNA_REQ_ELSEWHERE, .silent = 1},
    {UCT_VARUNA_REQ_AMO_BODY, "amo_body", UCT_VARUNA_OP_STEP,
     UCT_VARUNA_REQ_OPERANDS, .silent = 1},
    {UCT_VARUNA_REQ_AMO_CAS, "amo_cas", UCT_VARUNA_OP_STEP,
     UCT_VARUNA_REQ_OPERANDS, .has_answer = 1},
    {UCT_VARUNA_REQ_AMO_OCCUPY, "amo_occupy", UCT_VARUNA_OP_STEP,
     UCT_VARUNA_REQ_OPERANDS, .has_answer = 1}
};

/* A row is missing otherwise */
UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_req_infos) ==
                  UCT_VARUNA_REQ_LAST);

static UCS_F_ALWAYS_INLINE const uct_varuna_req_info_t *
uct_varuna_req_info(const uct_varuna_req_t *req)
{
    return &uct_varuna_req_infos[req->type];
}

static UCS_F_ALWAYS_INLINE int uct_varuna_req_is_read(uct_varuna_req_type_t type)
{
    return uct_varuna_req_infos[type].kind == UCT_VARUNA_OP_GET;
}

static UCS_F_ALWAYS_INLINE int uct_varuna_req_is_message(uct_varuna_req_type_t type)
{
    return uct_varuna_req_infos[type].kind == UCT_VARUNA_OP_AM;
}

/* Whether it is a part of an atomic that amo/ makes of several */
static UCS_F_ALWAYS_INLINE int uct_varuna_req_is_step(uct_varuna_req_type_t type)
{
    return uct_varuna_req_infos[type].kind == UCT_VARUNA_OP_STEP;
}

/* Whether it is an atomic of the NIC that returns a value to the user */
static inline int uct_varuna_req_fetches(const uct_varuna_req_t *req)
{
    const uct_varuna_req_info_t *info = uct_varuna_req_info(req);

    return (info->kind == UCT_VARUNA_OP_ATOMIC) && info->has_answer;
}

/* What a request takes in the ring */
static UCS_F_ALWAYS_INLINE size_t
uct_varuna_req_size(const uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    switch (uct_varuna_req_infos[type].place) {
    case UCT_VARUNA_REQ_IN_DATA:
        return ucs_offsetof(uct_varuna_req_t, data) + req->length;
    case UCT_VARUNA_REQ_IN_IOV:
        return ucs_offsetof(uct_varuna_req_t, iov) +
               (req->iovcnt * sizeof(req->iov[0]));
    case UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER:
        return ucs_offsetof(uct_varuna_req_t, iov) +
               (req->iovcnt * sizeof(req->iov[0])) + req->header_length;
    case UCT_VARUNA_REQ_ELSEWHERE:
        return ucs_offsetof(uct_varuna_req_t, data);
    case UCT_VARUNA_REQ_OPERANDS:
        break;
    }

    return ucs_offsetof(uct_varuna_req_t, data) + UCT_VARUNA_MAX_ATOMIC_DATA;
}

/** @return The header of an AM_ZCOPY: ours, then the user's. Its iovs are there. */
static inline uint8_t *uct_varuna_req_am_header(uct_varuna_req_t *req)
{
    return (uint8_t*)&req->iov[req->iovcnt];
}

/** Release what the request holds. */
static inline void uct_varuna_req_release(uct_varuna_req_t *req)
{
    if (req->flags & UCT_VARUNA_REQ_FLAG_BCOPY) {
        ucs_mpool_put_inline(req->bcopy);
    }
}

#endif
