/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Packed and unpacked remote keys: a set of inner keys by NIC index. Used by
 * varuna_mem.c (pack), varuna_component.c (unpack) and the data path (look-up).
 */
#ifndef UCT_VARUNA_RKEY_H_
#define UCT_VARUNA_RKEY_H_

#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/core/varuna_msg.h>

#include <ucs/sys/compiler.h>

/* Unpacked remote key: inner keys by NIC index of the *remote* host. */
struct uct_varuna_rkey {
    unsigned                   num_keys;   /* Highest NIC index + 1 */
    uct_varuna_atomic_mode_t   atomic_mode;/* Of the responder */
    uint8_t                    device;    /* Whose memory it is, UCT_VARUNA_DEVICE_HOST or a
                                             number */
    uint64_t                   token;     /* Of the region; 0: rc_varuna's own */
    uct_rkey_bundle_t          inner[UCT_VARUNA_MAX_LINKS];
    uct_rkey_t                 keys[UCT_VARUNA_MAX_LINKS]; /* Those in 'inner';
                                                              UCT_INVALID_RKEY: none.
                                                              They are ib's numbers,
                                                              which stay valid after a
                                                              release */
};

/** @return Size of a packed key which holds @a num_keys inner ones. */
size_t uct_varuna_rkey_packed_size(unsigned num_keys);

/**
 * Write the header of a packed key.
 *
 * @param [in]  nic_map      NICs whose inner keys follow.
 * @param [in]  atomic_mode  uct_varuna_atomic_mode_t of this host.
 * @param [in]  device       Whose memory it is.
 * @param [in]  token        Of the region, 0: no atomics by the CPU.
 * @param [out] buffer       Packed key.
 *
 * @return Place of the first inner key; each takes UCT_VARUNA_INNER_KEY_SIZE.
 */
void *uct_varuna_rkey_pack_header(uint8_t nic_map, unsigned atomic_mode, uint8_t device,
                                  uint64_t token, void *buffer);

/**
 * Unpack a key of a peer. Its length is unknown: what is read is limited by what a
 * header may contain.
 *
 * @param [in]  ib       Inner component.
 * @param [in]  buffer   Packed key.
 * @param [out] rkey_p   Unpacked key, to be released by
 *                       uct_varuna_rkey_release().
 *
 * @return UCS_ERR_INVALID_PARAM if it is none of ours, UCS_ERR_UNSUPPORTED if its mode of
 *         atomics is not built; both are logged.
 */
ucs_status_t uct_varuna_rkey_unpack(uct_component_h ib, const void *buffer,
                                    uct_varuna_rkey_t **rkey_p);

/** Add an inner key, which is released with the others, to one that lacks it. */
void uct_varuna_rkey_add(uct_varuna_rkey_t *rkey, unsigned nic, const uct_rkey_bundle_t *bundle);

/** Release an unpacked key and the inner keys in it. */
void uct_varuna_rkey_release(uct_component_h ib, uct_varuna_rkey_t *rkey);

/** @return Inner remote key for the remote host's @a nic, UCT_INVALID_RKEY if
 *  the peer registered the memory on no such NIC. */
static inline uct_rkey_t uct_varuna_rkey_inner(uct_rkey_t rkey, unsigned nic)
{
    const uct_varuna_rkey_t *vrkey = (const uct_varuna_rkey_t*)rkey;

    return vrkey->keys[nic % UCT_VARUNA_MAX_LINKS];
}

#endif
