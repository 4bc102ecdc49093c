/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Facts of the types of requests.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_req.h"

const uct_varuna_req_info_t uct_varuna_req_infos[] = {
    [UCT_VARUNA_REQ_PUT_SHORT]    = {"put_short", UCT_VARUNA_OP_PUT, 1, 1},
    [UCT_VARUNA_REQ_PUT_ZCOPY]    = {"put_zcopy", UCT_VARUNA_OP_PUT, 1, 0},
    [UCT_VARUNA_REQ_GET_BCOPY]    = {"get_bcopy", UCT_VARUNA_OP_GET, 0, 0, 1},
    [UCT_VARUNA_REQ_GET_ZCOPY]    = {"get_zcopy", UCT_VARUNA_OP_GET, 0, 0, 1},
    [UCT_VARUNA_REQ_AM_SHORT]     = {"am_short", UCT_VARUNA_OP_AM, 0, 1},
    [UCT_VARUNA_REQ_AM_BCOPY]     = {"am_bcopy", UCT_VARUNA_OP_AM, 0, 0},
    [UCT_VARUNA_REQ_AM_ZCOPY]     = {"am_zcopy", UCT_VARUNA_OP_AM, 0, 0},
    [UCT_VARUNA_REQ_ATOMIC_POST]  = {"atomic_post", UCT_VARUNA_OP_ATOMIC, 1, 1},
    [UCT_VARUNA_REQ_ATOMIC_FETCH] = {"atomic_fetch", UCT_VARUNA_OP_ATOMIC, 1, 0, 1},
    [UCT_VARUNA_REQ_CSWAP]        = {"cswap", UCT_VARUNA_OP_ATOMIC, 1, 0, 1},
    [UCT_VARUNA_REQ_FLUSH]        = {"flush", UCT_VARUNA_OP_FLUSH, 0, 1},
    [UCT_VARUNA_REQ_AMO_BODY]     = {"amo_body", UCT_VARUNA_OP_STEP, 0, 1},
    [UCT_VARUNA_REQ_AMO_CAS]      = {"amo_cas", UCT_VARUNA_OP_STEP, 0, 0, 1},
    [UCT_VARUNA_REQ_AMO_OCCUPY]   = {"amo_occupy", UCT_VARUNA_OP_STEP, 0, 0, 1}
};

UCT_VARUNA_STATIC_ASSERT(ucs_static_array_size(uct_varuna_req_infos) ==
                  UCT_VARUNA_REQ_LAST);

void uct_varuna_req_set_target(uct_varuna_req_t *req, uint32_t target,
                               uint32_t first_seq)
{
    if (uct_varuna_req_info(req)->kind != UCT_VARUNA_OP_AM) {
        return;
    }

    req->am.hdr.seq   += first_seq;
    req->am.hdr.target = (target << UCT_VARUNA_AM_ID_BITS) |
                         (req->am.hdr.target & UCS_MASK(UCT_VARUNA_AM_ID_BITS));
    if (req->type == UCT_VARUNA_REQ_AM_ZCOPY) {
        memcpy(uct_varuna_req_am_header(req), &req->am.hdr, sizeof(req->am.hdr));
    }
}
