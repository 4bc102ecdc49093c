/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics of the endpoint, as UCT calls them: checks them, and starts them in the mode
 * that UCX_RC_VARUNA_ATOMIC_MODE selects.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_amo_priv.h"
#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include <uct/ib/varuna/md/varuna_md.h>

#include <inttypes.h>

/* Rule 11: all that change the same memory use one mode. A native ADD to a word that
 * holds a UID would destroy it. */
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

/* A NIC refuses an unaligned atomic, and its queue pair fails. Here it is refused
 * before it is posted, so only this operation fails. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_ep_check_atomic(const uct_varuna_amo_args_t *args)
{
    if (ucs_unlikely((args->remote_addr & (args->width - 1)) != 0)) {
        ucs_error("atomic variable must be naturally aligned (remote address "
                  "0x%" PRIx64 ", size %u)", args->remote_addr, args->width);
        return UCS_ERR_INVALID_PARAM;
    }

    return UCS_OK;
}

static ucs_status_t
uct_varuna_ep_atomic(uct_ep_h tl_ep, const uct_varuna_amo_args_t *args)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    ucs_status_t status;

    status = uct_varuna_ep_check_atomic(args);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    status = uct_varuna_ep_check_atomic_mode(iface, args->rkey);
    if (ucs_unlikely(status != UCS_OK)) {
        return status;
    }

    status = uct_varuna_requester(iface)->amo->start(ep, args);
    if (!UCS_STATUS_IS_ERR(status)) {
        UCT_TL_EP_STAT_ATOMIC(&ep->super);
    }

    return status;
}

static ucs_status_t uct_varuna_ep_cswap(uct_ep_h tl_ep, unsigned width,
                                        uint64_t compare, uint64_t swap,
                                        uint64_t remote_addr, uct_rkey_t rkey,
                                        void *result, uct_completion_t *comp)
{
    const uct_varuna_amo_args_t args = {
        .type        = UCT_VARUNA_REQ_CSWAP,
        .op          = UCT_ATOMIC_OP_CSWAP,
        .width       = width,
        .compare     = compare,
        .value       = swap,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .result      = result,
        .comp        = comp
    };

    return uct_varuna_ep_atomic(tl_ep, &args);
}

static ucs_status_t uct_varuna_ep_atomic_op(uct_ep_h tl_ep,
                                            uct_varuna_req_type_t type,
                                            unsigned opcode, unsigned width,
                                            uint64_t value,
                                            uint64_t remote_addr,
                                            uct_rkey_t rkey, void *result,
                                            uct_completion_t *comp)
{
    const uct_varuna_amo_args_t args = {
        .type        = type,
        .op          = opcode,
        .width       = width,
        .value       = value,
        .remote_addr = remote_addr,
        .rkey        = rkey,
        .result      = result,
        .comp        = comp
    };

    /* Before it is narrowed */
    if (ucs_unlikely(opcode > UCT_ATOMIC_OP_SWAP)) {
        ucs_error("no atomic operation to post or fetch: %u", opcode);
        return UCS_ERR_UNSUPPORTED;
    }

    return uct_varuna_ep_atomic(tl_ep, &args);
}

ucs_status_t uct_varuna_ep_atomic_cswap64(uct_ep_h tl_ep, uint64_t compare,
                                          uint64_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint64_t *result,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_cswap(tl_ep, sizeof(uint64_t), compare, swap,
                               remote_addr, rkey, result, comp);
}

ucs_status_t uct_varuna_ep_atomic_cswap32(uct_ep_h tl_ep, uint32_t compare,
                                          uint32_t swap, uint64_t remote_addr,
                                          uct_rkey_t rkey, uint32_t *result,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_cswap(tl_ep, sizeof(uint32_t), compare, swap,
                               remote_addr, rkey, result, comp);
}

ucs_status_t uct_varuna_ep_atomic64_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint64_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey)
{
    return uct_varuna_ep_atomic_op(tl_ep, UCT_VARUNA_REQ_ATOMIC_POST, opcode,
                                   sizeof(uint64_t), value, remote_addr, rkey,
                                   NULL, NULL);
}

ucs_status_t uct_varuna_ep_atomic32_post(uct_ep_h tl_ep, unsigned opcode,
                                         uint32_t value, uint64_t remote_addr,
                                         uct_rkey_t rkey)
{
    return uct_varuna_ep_atomic_op(tl_ep, UCT_VARUNA_REQ_ATOMIC_POST, opcode,
                                   sizeof(uint32_t), value, remote_addr, rkey,
                                   NULL, NULL);
}

ucs_status_t uct_varuna_ep_atomic64_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint64_t value, uint64_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_atomic_op(tl_ep, UCT_VARUNA_REQ_ATOMIC_FETCH, opcode,
                                   sizeof(uint64_t), value, remote_addr, rkey,
                                   result, comp);
}

ucs_status_t uct_varuna_ep_atomic32_fetch(uct_ep_h tl_ep, unsigned opcode,
                                          uint32_t value, uint32_t *result,
                                          uint64_t remote_addr, uct_rkey_t rkey,
                                          uct_completion_t *comp)
{
    return uct_varuna_ep_atomic_op(tl_ep, UCT_VARUNA_REQ_ATOMIC_FETCH, opcode,
                                   sizeof(uint32_t), value, remote_addr, rkey,
                                   result, comp);
}

/* --- The mode --- */

void uct_varuna_amo_query_all_ops(uct_iface_attr_t *attr)
{
    const uint64_t ops = UCS_BIT(UCT_ATOMIC_OP_ADD) | UCS_BIT(UCT_ATOMIC_OP_AND) |
                         UCS_BIT(UCT_ATOMIC_OP_OR) | UCS_BIT(UCT_ATOMIC_OP_XOR);
    const uint64_t fops = ops | UCS_BIT(UCT_ATOMIC_OP_SWAP) |
                          UCS_BIT(UCT_ATOMIC_OP_CSWAP);

    if (attr->cap.atomic32.fop_flags & UCS_BIT(UCT_ATOMIC_OP_CSWAP)) {
        attr->cap.atomic32.op_flags  = ops;
        attr->cap.atomic32.fop_flags = fops;
    }

    if (attr->cap.atomic64.fop_flags & UCS_BIT(UCT_ATOMIC_OP_CSWAP)) {
        attr->cap.atomic64.op_flags  = ops;
        attr->cap.atomic64.fop_flags = fops;
    }
}

void uct_varuna_atomics_listen(uct_varuna_requester_t *requester)
{
    if (requester->amo->listen != NULL) {
        requester->amo->listen(requester);
    }
}

static ucs_mpool_ops_t uct_varuna_amo_mpool_ops = {
    .chunk_alloc   = ucs_mpool_chunk_malloc,
    .chunk_release = ucs_mpool_chunk_free,
    .obj_init      = NULL,
    .obj_cleanup   = NULL,
    .obj_str       = NULL
};

ucs_status_t uct_varuna_atomics_init(uct_varuna_requester_t *requester,
                                     const uct_varuna_amo_ops_t *ops)
{
    requester->amo = ops;
    return uct_varuna_compat_mpool_init(&requester->pools.amos, ops->size, 64,
                                        &uct_varuna_amo_mpool_ops,
                                        "varuna_amo");
}

void uct_varuna_atomics_cleanup(uct_varuna_requester_t *requester)
{
    ucs_mpool_cleanup(&requester->pools.amos, 1);
}
