/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics of the endpoint. They are passed through natively: they are not
 * exactly-once yet (see varuna_req.c).
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna.inl"

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
