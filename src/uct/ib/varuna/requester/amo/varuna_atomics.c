/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics of the endpoint: passed through natively, or given to varuna_amo.c, as
 * UCX_RC_VARUNA_ATOMIC_MODE says.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/requester/varuna.inl>
#include "varuna_amo.h"

#include <inttypes.h>

/* Rule 11: one mode for all who touch the same memory. One native ADD on a word
 * which holds a UID would destroy it. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_check_atomic_mode(const uct_varuna_iface_t *iface,
                                uct_rkey_t rkey)
{
    uct_varuna_atomic_mode_t mode = ((uct_varuna_rkey_t*)rkey)->atomic_mode;

    if (ucs_likely(mode == iface->md->atomic_mode)) {
        return UCS_OK;
    }

    ucs_error("the peer's memory is for atomics of mode '%s', ours is '%s': set "
              "UCX_RC_VARUNA_ATOMIC_MODE to the same on both",
              uct_varuna_atomic_mode_names[mode],
              uct_varuna_atomic_mode_names[iface->md->atomic_mode]);
    return UCS_ERR_UNSUPPORTED;
}

/* A NIC refuses what is not aligned, and its queue pair fails. Here it is refused before
 * anybody else is told of it, so nothing but this operation fails. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_check_atomic(uct_varuna_req_type_t type, unsigned opcode,
                           size_t width, uint64_t remote_addr)
{
    if (ucs_unlikely((remote_addr & (width - 1)) != 0)) {
        ucs_error("atomic variable must be naturally aligned (remote address "
                  "0x%" PRIx64 ", size %zu)", remote_addr, width);
        return UCS_ERR_INVALID_PARAM;
    }

    if (ucs_unlikely((type != UCT_VARUNA_REQ_CSWAP) &&
                     (opcode > UCT_ATOMIC_OP_SWAP))) {
        ucs_error("no atomic operation to post or fetch: %u", opcode);
        return UCS_ERR_UNSUPPORTED;
    }

    return UCS_OK;
}

static ucs_status_t
uct_varuna_ep_atomic(uct_ep_h tl_ep, uct_varuna_req_type_t type, unsigned flags,
                     unsigned opcode, uint64_t compare, uint64_t value,
                     uint64_t remote_addr, uct_rkey_t rkey, void *result,
                     uct_completion_t *comp)
{
    size_t width = (flags & UCT_VARUNA_REQ_FLAG_64) ? sizeof(uint64_t) :
                   sizeof(uint32_t);
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_req_t *req;
    ucs_status_t status;

    status = uct_varuna_ep_check_atomic(type, opcode, width, remote_addr);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    status = uct_varuna_ep_check_atomic_mode(iface, rkey);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    if ((iface->md->atomic_mode == UCT_VARUNA_ATOMIC_EXTENDED) ||
        (iface->md->atomic_mode == UCT_VARUNA_ATOMIC_PROXY)) {
        status = uct_varuna_amo_start(ep, opcode, width, compare, value,
                                      remote_addr, rkey, result, comp);
        if (status == UCS_OK) {
            UCT_TL_EP_STAT_ATOMIC(&ep->super);
        }
        return ((status == UCS_OK) && (type != UCT_VARUNA_REQ_ATOMIC_POST)) ?
               UCS_INPROGRESS : status;
    }

    req = uct_varuna_req_get(iface, ep, type, comp);
    if (ucs_unlikely(req == NULL)) {
        return uct_varuna_ep_unavailable(ep);
    }

    uct_varuna_req_set_remote(req, remote_addr, rkey);
    req->flags          |= flags;
    req->opcode          = opcode;
    req->length          = width;
    req->atomic.compare  = compare;
    req->atomic.value    = value;
    req->atomic.result   = result;
    status = (type == UCT_VARUNA_REQ_ATOMIC_POST) ?
             uct_varuna_req_start(iface, ep, req) :
             uct_varuna_req_start_inprogress(iface, ep, req);
    if (!UCS_STATUS_IS_ERR(status)) {
        UCT_TL_EP_STAT_ATOMIC(&ep->super);
    }

    return status;
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
