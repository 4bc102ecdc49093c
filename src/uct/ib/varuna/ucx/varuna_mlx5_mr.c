/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The only file that knows the protection domain and the packed keys of UCX's
 * memory domain for InfiniBand. See varuna_mlx5_mr.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_mr.h"

#include <ucs/debug/log.h>
#include <uct/ib/base/ib_md.h>

ucs_status_t uct_varuna_mlx5_mr_reg(uct_md_h tl_md, void *address,
                                    size_t length, uint64_t iova, unsigned rights,
                                    void **mr_p, uint64_t *key_p)
{
    const uct_ib_md_t *md = ucs_derived_of(tl_md, uct_ib_md_t);
    int access            = 0;
    ucs_status_t status;
    struct ibv_mr *mr;

    if (rights & UCT_VARUNA_MR_READ) {
        access |= IBV_ACCESS_REMOTE_READ;
    }

    /* Verbs want local write access where there is any remote one that changes
     * memory */
    if (rights & UCT_VARUNA_MR_WRITE) {
        access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;
    }

    if (rights & UCT_VARUNA_MR_ATOMIC) {
        access |= IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    }

    mr = ibv_reg_mr_iova(md->pd, address, length, iova, access);
    if (mr == NULL) {
        status = (errno == ENOMEM) ? UCS_ERR_NO_MEMORY : UCS_ERR_IO_ERROR;
        ucs_debug("ibv_reg_mr_iova(address=%p length=%zu access=0x%x) failed: %m",
                  address, length, access);
        return status;
    }

    /* One key for all: without an indirect one UCX uses the direct key for atomics,
     * too, and no offset (uct_ib_resolve_atomic_rkey) */
    uct_ib_md_pack_rkey(mr->rkey, UCT_IB_INVALID_MKEY, key_p);
    *mr_p = mr;
    return UCS_OK;
}

void uct_varuna_mlx5_mr_dereg(void *mr)
{
    if (ibv_dereg_mr(mr) != 0) {
        ucs_warn("ibv_dereg_mr() failed: %m");
    }
}
