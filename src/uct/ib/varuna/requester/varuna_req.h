/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The saved request: facts by type, and its buffers.
 */
#ifndef UCT_VARUNA_REQ_H_
#define UCT_VARUNA_REQ_H_

#include "varuna_ep.h"

/* A registered packing buffer. */
typedef struct uct_varuna_bcopy {
    uct_mem_h                  memh;
} uct_varuna_bcopy_t;

/* Bytes which a packing buffer needs besides its payload. */
#define UCT_VARUNA_BCOPY_OVERHEAD    sizeof(uct_mem_h)

/* Facts of a request type; one table, see varuna_req.c. */
typedef struct uct_varuna_req_info {
    const char                 *name;
    uct_varuna_op_kind_t       kind;    /* For the plan */
    uint8_t                    logged;  /* A log write follows it */
    uint8_t                    silent;  /* Its inner call takes no completion */
    uint8_t                    has_answer; /* The NIC writes into memory of ours */
} uct_varuna_req_info_t;

extern const uct_varuna_req_info_t uct_varuna_req_infos[];

static inline const uct_varuna_req_info_t *
uct_varuna_req_info(const uct_varuna_req_t *req)
{
    return &uct_varuna_req_infos[req->type];
}

static UCS_F_ALWAYS_INLINE int uct_varuna_req_is_read(uct_varuna_req_type_t type)
{
    return (type == UCT_VARUNA_REQ_GET_BCOPY) || (type == UCT_VARUNA_REQ_GET_ZCOPY);
}

static UCS_F_ALWAYS_INLINE int uct_varuna_req_is_message(uct_varuna_req_type_t type)
{
    return (type == UCT_VARUNA_REQ_AM_SHORT) || (type == UCT_VARUNA_REQ_AM_BCOPY) ||
           (type == UCT_VARUNA_REQ_AM_ZCOPY);
}

/** The target and the number of the first message are known now: put them in the header
 *  of a message that was posted while the endpoint was being opened. */
void uct_varuna_req_set_target(uct_varuna_req_t *req, uint32_t target,
                               uint32_t first_seq);

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
