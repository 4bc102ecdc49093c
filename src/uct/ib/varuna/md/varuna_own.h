/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of our own that peers access: log rings, slots, marks. Each piece has a key
 * for the peers that may access it, with no more rights than they need (docs/SECURITY.md).
 * Used by the responder. It is not shared in the sense of varuna_md_share.h.
 */
#ifndef UCT_VARUNA_OWN_H_
#define UCT_VARUNA_OWN_H_

#include <uct/ib/varuna/ucx/varuna_compat.h>
#include "varuna_md.h"
#include <uct/ib/varuna/ucx/varuna_mlx5_mr.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#define UCT_VARUNA_OWN_KEY_MAX \
    (sizeof(uct_varuna_packed_rkey_t) + \
     (UCT_VARUNA_MAX_LINKS * UCT_VARUNA_INNER_KEY_SIZE))

/** One registration on all NICs. All zeros: there is none. */
typedef struct uct_varuna_own {
    void                       *mrs[UCT_VARUNA_MAX_LINKS]; /* By NIC; NULL if it
                                              is dead, or another port of the device
                                              has it */
    size_t                     key_len;
    char                       key[UCT_VARUNA_OWN_KEY_MAX]; /* Packed */
} uct_varuna_own_t;

/**
 * Register memory on all NICs but dead ones, with a key that no registration had
 * lately. Any thread.
 *
 * @param [in]  rights  UCT_VARUNA_MR_xx.
 * @param [out] own     To be released by uct_varuna_own_dereg(); all zeros in case
 *                      of failure, which is logged.
 */
ucs_status_t uct_varuna_own_reg(uct_varuna_md_t *md, void *address,
                                size_t length, unsigned rights,
                                uct_varuna_own_t *own);

/** End the registration, if there is one: its key is invalid when this returns. */
void uct_varuna_own_dereg(uct_varuna_own_t *own);

#endif
