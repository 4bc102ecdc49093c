/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Registrations with rights and keys of their own. UCX's memory domains give every
 * region the right of remote writes, whatever its flags say, and share registrations
 * (and so keys) of memory on the same pages. Used by varuna_own.c.
 */
#ifndef UCT_VARUNA_MLX5_MR_H_
#define UCT_VARUNA_MLX5_MR_H_

#include <uct/api/uct.h>
#include <stdint.h>

/** What a peer may do with a key. */
enum {
    UCT_VARUNA_MR_READ   = UCS_BIT(0),
    UCT_VARUNA_MR_WRITE  = UCS_BIT(1),
    UCT_VARUNA_MR_ATOMIC = UCS_BIT(2)  /* Compare and swap, fetch and add */
};

/**
 * Register memory with the protection domain of an inner memory domain, without
 * relaxed ordering. Any thread.
 *
 * @param [in]  md       Inner memory domain.
 * @param [in]  address  Memory; any address, any length.
 * @param [in]  length   Bytes.
 * @param [in]  iova     Address by which peers name it. It differs from @a address by whole
 *                       pages.
 * @param [in]  rights   UCT_VARUNA_MR_xx.
 * @param [out] mr_p     To be released by uct_varuna_mlx5_mr_dereg().
 * @param [out] key_p    Packed key, as uct_md_mkey_pack() of @a md would make it:
 *                       for uct_rkey_unpack(). It may be the key of a registration that was
 *                       released just before: the kernel keeps them in a cache.
 *
 * @return UCS_ERR_IO_ERROR if the device refuses. Not logged as an error: the
 *         caller knows whether the device may be dead.
 */
ucs_status_t uct_varuna_mlx5_mr_reg(uct_md_h md, void *address, size_t length,
                                    uint64_t iova, unsigned rights, void **mr_p,
                                    uint64_t *key_p);

/** Deregister. When it returns, the key gives no access to the memory any more. */
void uct_varuna_mlx5_mr_dereg(void *mr);

#endif
