/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of our own that peers access: log rings, slots, marks. Each piece has a key
 * for the peers that may access it, with no more rights than they need (docs/SECURITY.md).
 * Used by the responder. It is not shared in the sense of varuna_mem.c.
 */
#ifndef UCT_VARUNA_OWN_H_
#define UCT_VARUNA_OWN_H_

#include <uct/ib/varuna/ucx/varuna_compat.h>
#include "varuna_md.h"
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#define UCT_VARUNA_OWN_KEY_MAX \
    (sizeof(uct_varuna_packed_rkey_t) + \
     (UCT_VARUNA_MAX_LINKS * sizeof(uct_varuna_packed_key_t)))

/** One registration on all NICs. All zeros: there is none. */
typedef struct uct_varuna_own {
    void                       *mrs[UCT_VARUNA_MAX_LINKS]; /* By NIC; NULL if it
                                              is dead, or missing, or another port of the
                                              device has it */
    uint64_t                   address;    /* By which peers name it */
    uint8_t                    missing;    /* NICs that have not answered, or are short of
                                              regions */
    size_t                     key_len;
    char                       key[UCT_VARUNA_OWN_KEY_MAX]; /* Packed */
} uct_varuna_own_t;

/* Seconds for which callers that must not wait long wait for a NIC. It answers within
 * milliseconds, unless the machine is busy; heartbeats are late meanwhile */
#define UCT_VARUNA_OWN_PATIENCE      0.25

/**
 * Register memory on NICs but dead ones, at the same time. One that has no region left is
 * left out, and not asked for a while. Any thread.
 *
 * @param [in]  nics      On which ones, by the first port of each. Whoever registers on a NIC
 *                        removes that when the NIC's life ends, uct_varuna_own_remove().
 * @param [in]  rights    UCT_VARUNA_MR_xx.
 * @param [in]  is_shared Peers name it by its address here. Otherwise they name it by one
 *                        that was never used before and cannot be guessed: the key may be that
 *                        of an earlier registration, whose users must not reach this one.
 * @param [in]  patience  How long to wait for NICs. One that has not answered by then, or
 *                        hangs already, is left out: peers have no key for it. Or
 *                        UCS_TIME_INFINITY.
 * @param [out] own       To be released by uct_varuna_own_dereg(); all zeros in case
 *                        of failure.
 *
 * @return An error if no NIC has registered it, UCS_ERR_TIMED_OUT if none has answered or
 *         may be asked now. The caller tries again later.
 */
ucs_status_t uct_varuna_own_reg(uct_varuna_md_t *md, uint8_t nics, void *address,
                                size_t length, unsigned rights, int is_shared,
                                ucs_time_t patience, uct_varuna_own_t *own);

/**
 * Register the same memory on one more NIC, and add that to the packed key: the NIC was reset
 * since, or was short of regions. Nothing else uses @a own meanwhile.
 *
 * @param [in]  address   As for uct_varuna_own_reg(); so are the length and the rights.
 * @param [in]  nic       Any number.
 * @param [in]  patience  How long to wait for the NIC.
 * @param [out] key_p     Its inner key, packed.
 *
 * @return UCS_ERR_NO_DEVICE if there is no such NIC, or it is dead; another error if it does not
 *         register the memory now.
 */
ucs_status_t uct_varuna_own_add(uct_varuna_md_t *md, void *address, size_t length,
                                unsigned rights, unsigned nic, ucs_time_t patience,
                                uct_varuna_own_t *own, uint64_t *key_p);

/** End the registration on one device, and take its ports out of the packed key: its life ends.
 *  Nobody waits for that. Nothing else uses @a own meanwhile. @param [in] owner  The first port. */
void uct_varuna_own_remove(uct_varuna_md_t *md, uct_varuna_own_t *own, unsigned owner);

/** @return Whether a NIC hangs which would have to end the registration. */
int uct_varuna_own_is_stuck(const uct_varuna_md_t *md, const uct_varuna_own_t *own);

/**
 * End the registration, if there is one. A NIC has UCT_VARUNA_OWN_PATIENCE.
 *
 * @return UCS_OK: its key is invalid;
 *         UCS_ERR_BUSY if a NIC has not answered: the key is valid for an unknown time, so
 *         the memory must be left alone.
 */
ucs_status_t uct_varuna_own_dereg(uct_varuna_md_t *md, uct_varuna_own_t *own);

/* --- Registration on a NIC's thread --- */

/* A registration of memory of our own on one NIC, begun or ended on that NIC's thread.
 * The caller waits for a limited time, and then leaves it to that thread, which ends a
 * registration that nobody takes. Used by varuna_own.c. */

typedef struct uct_varuna_own_cmd uct_varuna_own_cmd_t;

#endif
