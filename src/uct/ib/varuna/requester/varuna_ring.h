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
static UCS_F_ALWAYS_INLINE void
uct_varuna_ring_pull_plain(uct_varuna_ring_t *ring, uct_varuna_req_t *oldest)
{
    ring->tail = (uct_varuna_req_t*)UCS_PTR_BYTE_OFFSET(oldest, oldest->size);
}

/** Take the oldest request from the ring. Its memory may be gone then. */
static UCS_F_ALWAYS_INLINE void uct_varuna_ring_pull(uct_varuna_ring_t *ring)
{
    uct_varuna_req_t *req = ring->tail;
    uct_varuna_slab_end_t *end;

    if (ucs_likely(!(req->flags & UCT_VARUNA_REQ_FLAG_LAST))) {
        uct_varuna_ring_pull_plain(ring, req);
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

/* A registered packing buffer. */
typedef struct uct_varuna_bcopy {
    uct_mem_h                  memh;
} uct_varuna_bcopy_t;

/* Bytes which a packing buffer needs besides its payload. */
#define UCT_VARUNA_BCOPY_OVERHEAD    sizeof(uct_mem_h)

/* Where a request keeps its data, which decides how many bytes it takes in the ring. */
typedef enum {
    UCT_VARUNA_REQ_IN_DATA,     /* A copy in data */
    UCT_VARUNA_REQ_IN_IOV,      /* The user's buffers, or a packing buffer */
    UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER, /* ... after a header, which the ring contains */
    UCT_VARUNA_REQ_IN_BCOPY,    /* In a packing buffer alone */
    UCT_VARUNA_REQ_NOWHERE,
    UCT_VARUNA_REQ_OPERANDS     /* Of an atomic, in data */
} uct_varuna_req_place_t;

/* How it is posted on RC, see varuna.inl. */
typedef enum {
    UCT_VARUNA_REQ_BY_UCX,      /* By the row's function post, as on all other lanes */
    UCT_VARUNA_REQ_AS_WRITE,    /* By us, with its log entry */
    UCT_VARUNA_REQ_AS_ATOMIC,   /* The same, if the NIC has a short form of it */
    UCT_VARUNA_REQ_AS_SINGLE    /* By us, without a log entry */
} uct_varuna_req_rc_t;

/* All that depends on the type of a request */
typedef struct uct_varuna_req_info {
    const char                 *name;
    ucs_status_t               (*post)(uct_varuna_req_t *req, uct_completion_t *comp);
                                        /* By UCX; NULL: not posted on lanes */
    uct_varuna_req_type_t      type;
    uct_varuna_op_kind_t       kind;    /* Read, write, ...: what the verdict on it
                                           depends on, and how it is compared */
    uct_varuna_req_place_t     place;
    uct_varuna_req_rc_t        rc;
    unsigned                   logged     : 1; /* A log write follows it */
    unsigned                   silent     : 1; /* Its inner call takes no completion */
    unsigned                   has_answer : 1; /* The NIC writes to our memory */
    unsigned                   unpacks    : 1; /* ... which goes to a callback */
    unsigned                   special    : 1; /* UCT_VARUNA_REQ_FLAG_SPECIAL */
    unsigned                   one_packet : 1; /* Whatever the length of its data */
    unsigned                   user_key   : 1; /* It uses keys of the user's region */
    unsigned                   wires_up   : 1; /* Accepted while the endpoint opens,
                                                  even if nothing waits for it */
} uct_varuna_req_info_t;

/* The functions of UCX that post a request, for the rows */
ucs_status_t uct_varuna_req_post_put_short(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_put_zcopy(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_get_bcopy(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_get_zcopy(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_am_short(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_am_bcopy(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_am_zcopy(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_atomic(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_fetch(uct_varuna_req_t *req, uct_completion_t *comp);
ucs_status_t uct_varuna_req_post_cswap(uct_varuna_req_t *req, uct_completion_t *comp);

/* In the order of the types. Here, so that the compiler knows the facts of a type that it
 * knows */
static const uct_varuna_req_info_t uct_varuna_req_infos[] = {
    {"put_short", uct_varuna_req_post_put_short, UCT_VARUNA_REQ_PUT_SHORT,
     UCT_VARUNA_OP_PUT, UCT_VARUNA_REQ_IN_DATA, UCT_VARUNA_REQ_AS_WRITE,
     .logged = 1, .silent = 1, .one_packet = 1, .user_key = 1},
    {"put_zcopy", uct_varuna_req_post_put_zcopy, UCT_VARUNA_REQ_PUT_ZCOPY,
     UCT_VARUNA_OP_PUT, UCT_VARUNA_REQ_IN_IOV, UCT_VARUNA_REQ_AS_WRITE,
     .logged = 1, .user_key = 1},
    {"get_bcopy", uct_varuna_req_post_get_bcopy, UCT_VARUNA_REQ_GET_BCOPY,
     UCT_VARUNA_OP_GET, UCT_VARUNA_REQ_NOWHERE, UCT_VARUNA_REQ_AS_SINGLE,
     .has_answer = 1, .unpacks = 1, .user_key = 1},
    {"get_zcopy", uct_varuna_req_post_get_zcopy, UCT_VARUNA_REQ_GET_ZCOPY,
     UCT_VARUNA_OP_GET, UCT_VARUNA_REQ_IN_IOV, UCT_VARUNA_REQ_AS_SINGLE,
     .has_answer = 1, .user_key = 1},
    {"am_short", uct_varuna_req_post_am_short, UCT_VARUNA_REQ_AM_SHORT,
     UCT_VARUNA_OP_AM, UCT_VARUNA_REQ_IN_DATA, UCT_VARUNA_REQ_AS_SINGLE,
     .silent = 1, .one_packet = 1},
    {"am_bcopy", uct_varuna_req_post_am_bcopy, UCT_VARUNA_REQ_AM_BCOPY,
     UCT_VARUNA_OP_AM, UCT_VARUNA_REQ_IN_BCOPY, UCT_VARUNA_REQ_AS_SINGLE,
     .wires_up = 1},
    {"am_zcopy", uct_varuna_req_post_am_zcopy, UCT_VARUNA_REQ_AM_ZCOPY,
     UCT_VARUNA_OP_AM, UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER, UCT_VARUNA_REQ_AS_SINGLE},
    {"atomic_post", uct_varuna_req_post_atomic, UCT_VARUNA_REQ_ATOMIC_POST,
     UCT_VARUNA_OP_ATOMIC, UCT_VARUNA_REQ_OPERANDS, UCT_VARUNA_REQ_BY_UCX,
     .logged = 1, .silent = 1, .one_packet = 1, .user_key = 1},
    {"atomic_fetch", uct_varuna_req_post_fetch, UCT_VARUNA_REQ_ATOMIC_FETCH,
     UCT_VARUNA_OP_ATOMIC, UCT_VARUNA_REQ_OPERANDS, UCT_VARUNA_REQ_AS_ATOMIC,
     .logged = 1, .has_answer = 1, .special = 1, .one_packet = 1, .user_key = 1},
    {"cswap", uct_varuna_req_post_cswap, UCT_VARUNA_REQ_CSWAP,
     UCT_VARUNA_OP_ATOMIC, UCT_VARUNA_REQ_OPERANDS, UCT_VARUNA_REQ_AS_ATOMIC,
     .logged = 1, .has_answer = 1, .special = 1, .one_packet = 1, .user_key = 1},
    /* It may become a read */
    {"flush", NULL, UCT_VARUNA_REQ_FLUSH,
     UCT_VARUNA_OP_FLUSH, UCT_VARUNA_REQ_NOWHERE, UCT_VARUNA_REQ_BY_UCX,
     .silent = 1, .one_packet = 1},
    {"amo_body", uct_varuna_req_post_put_short, UCT_VARUNA_REQ_AMO_BODY,
     UCT_VARUNA_OP_STEP, UCT_VARUNA_REQ_OPERANDS, UCT_VARUNA_REQ_BY_UCX,
     .silent = 1, .special = 1, .one_packet = 1},
    {"amo_cas", uct_varuna_req_post_cswap, UCT_VARUNA_REQ_AMO_CAS,
     UCT_VARUNA_OP_STEP, UCT_VARUNA_REQ_OPERANDS, UCT_VARUNA_REQ_BY_UCX,
     .has_answer = 1, .special = 1, .one_packet = 1},
    {"amo_occupy", uct_varuna_req_post_cswap, UCT_VARUNA_REQ_AMO_OCCUPY,
     UCT_VARUNA_OP_STEP, UCT_VARUNA_REQ_OPERANDS, UCT_VARUNA_REQ_BY_UCX,
     .has_answer = 1, .special = 1, .one_packet = 1}
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

/* What a request contains, for those that know it without a look: the compiler may know that
 * a new one has 8 bytes, one buffer, or no completion */
typedef struct uct_varuna_req_known {
    const uct_varuna_iface_t   *iface;
    const uct_completion_t     *user_comp;
    void                       *buffer; /* The only one, if iovcnt is 1, */
    uct_mem_h                  memh;    /* and its outer handle */
    uint32_t                   length;
    uint8_t                    iovcnt;
} uct_varuna_req_known_t;

/* @return What can be seen */
static inline uct_varuna_req_known_t uct_varuna_req_know(const uct_varuna_req_t *req)
{
    const uct_varuna_req_known_t known = {
        .iface     = uct_varuna_ep_iface(req->ep),
        .user_comp = req->user_comp,
        .buffer    = req->iov[0].buffer,
        .memh      = req->iov[0].memh,
        .length    = req->length,
        .iovcnt    = req->iovcnt
    };

    return known;
}

/* What a request takes in the ring */
static UCS_F_ALWAYS_INLINE size_t
uct_varuna_req_size(const uct_varuna_req_t *req, uct_varuna_req_type_t type,
                    const uct_varuna_req_known_t *known)
{
    switch (uct_varuna_req_infos[type].place) {
    case UCT_VARUNA_REQ_IN_DATA:
        return ucs_offsetof(uct_varuna_req_t, data) + known->length;
    case UCT_VARUNA_REQ_IN_IOV:
        return ucs_offsetof(uct_varuna_req_t, iov) +
               (known->iovcnt * sizeof(req->iov[0]));
    case UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER:
        return ucs_offsetof(uct_varuna_req_t, iov) +
               (known->iovcnt * sizeof(req->iov[0])) + req->header_length;
    case UCT_VARUNA_REQ_IN_BCOPY:
    case UCT_VARUNA_REQ_NOWHERE:
        return ucs_offsetof(uct_varuna_req_t, data);
    case UCT_VARUNA_REQ_OPERANDS:
        return ucs_offsetof(uct_varuna_req_t, data) + UCT_VARUNA_MAX_ATOMIC_DATA;
    }

    ucs_fatal("a request of type %d is in no place", type);
}

/** @return The header of an AM_ZCOPY: ours, then the user's. Its iovs are there. */
static inline uint8_t *uct_varuna_req_am_header(uct_varuna_req_t *req)
{
    return (uint8_t*)&req->iov[req->iovcnt];
}

static UCS_F_ALWAYS_INLINE uct_rkey_t
uct_varuna_req_rkey(const uct_varuna_req_t *req)
{
    return req->keys[req->ep->hot.far_nic];
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_fill_iov(const uct_varuna_ep_t *ep, const uct_varuna_req_t *req,
                        unsigned iovcnt, uct_iov_t *iov)
{
    unsigned nic = ep->hot.nic;
    unsigned i;

    for (i = 0; i < iovcnt; ++i) {
        iov[i].buffer = req->iov[i].buffer;
        iov[i].length = req->iov[i].length;
        iov[i].memh   = uct_varuna_mem_inner(req->iov[i].memh, nic);
        iov[i].stride = 0;
        iov[i].count  = 1;
    }
}

/* The packed data of a message */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_fill_bcopy(const uct_varuna_req_t *req, uct_iov_t *iov)
{
    uct_varuna_bcopy_t *bcopy = req->bcopy;

    iov->buffer = bcopy + 1;
    iov->length = req->length;
    iov->memh   = uct_varuna_mem_inner_of(bcopy->memh, req->ep->hot.nic);
    iov->stride = 0;
    iov->count  = 1;
}

/** Of a read whose endpoint is gone. */
void uct_varuna_req_unpack_nothing(void *arg, const void *data, size_t length);

/** Release what the request holds. */
static inline void uct_varuna_req_release(uct_varuna_req_t *req)
{
    if (req->flags & UCT_VARUNA_REQ_FLAG_BCOPY) {
        ucs_mpool_put_inline(req->bcopy);
    }
}

#endif
