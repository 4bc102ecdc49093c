/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of the memory domain: UCT's operations on it.
 */
#ifndef UCT_VARUNA_MEM_H_
#define UCT_VARUNA_MEM_H_

#include "varuna_md.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/memory/memory_type.h>

/** As uct_md_ops_t::mem_reg. */
ucs_status_t uct_varuna_md_mem_reg(uct_md_h tl_md, void *address, size_t length,
                                   uct_varuna_reg_arg_t arg, uct_mem_h *memh_p);

/** As uct_md_ops_t::mem_dereg. */
ucs_status_t
uct_varuna_md_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params);

/** As uct_md_ops_t::mem_advise. Advice is a hint: all NICs get it, and the call only
 *  fails if none accepts it. */
ucs_status_t uct_varuna_md_mem_advise(uct_md_h tl_md, uct_mem_h memh, void *addr,
                                      size_t length, unsigned advice);

/** As uct_md_ops_t::mkey_pack. From now on peers may name this memory. */
ucs_status_t
uct_varuna_md_mkey_pack_common(uct_md_h tl_md, uct_mem_h memh, void *address,
                               size_t length,
                               const uct_md_mkey_pack_params_t *params,
                               void *buffer);

/* --- Memory of devices --- */

/* Memory that is not the host's: a GPU's, or a NIC's own. The CPU does not access it, and a log
 * entry in host memory proves the arrival of earlier writes to host memory only. */

/* What may be registered by any NIC, and what the CPU may access. */
#define UCT_VARUNA_MEM_TYPES         UCS_BIT(UCS_MEMORY_TYPE_HOST)

/**
 * Ask UCX's cache of memory types, which knows what GPU libraries have allocated.
 *
 * @return Nonzero if all of it is host memory, as far as UCX knows. Any thread.
 */
int uct_varuna_mem_is_host(const void *address, size_t length);

/** A place in the memory of a device, and a NIC's key for it. */
typedef struct uct_varuna_place {
    uint64_t                   address;
    uct_rkey_t                 rkey;
    uint8_t                    device;
} uct_varuna_place_t;

/**
 * List one place in each device of which a peer may have a key for a NIC.
 *
 * @param [in]  nic     NIC index.
 * @param [out] places  Room for @a max.
 *
 * @return How many there are; more than @a max if not all are listed. Any thread.
 */
unsigned uct_varuna_md_list_devices(uct_varuna_md_t *md, unsigned nic,
                                    uct_varuna_place_t *places, unsigned max);

/* --- Memory of which keys are out --- */

/* The memory of which this process has given keys away: it accesses only such memory at
 * addresses that a peer names (docs/SECURITY.md). Any thread. */

/** A key of the region is packed. @param [in] keys  Of the NICs in @a nic_map: those in the
 *  first one stay. */
void uct_varuna_md_share(uct_varuna_md_t *md, uct_varuna_mem_t *mem, uint8_t nic_map,
                         const uint64_t *keys);

/** The region is deregistered. @return Nonzero if it was shared. */
int uct_varuna_md_unshare(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

/** @return Nonzero if a peer may have a key of all these bytes. */
int uct_varuna_md_is_shared(uct_varuna_md_t *md, uint64_t address,
                            size_t length);

/**
 * Keep a region from being deregistered while the CPU accesses it for a peer: a
 * deregistration waits. The caller accesses it and releases it, nothing else: it must
 * not allocate, log, or take another lock.
 *
 * @param [in] token  Of a key that was packed.
 *
 * @return Nonzero if a region with this token, registered for remote atomics, contains
 *         all these bytes; then uct_varuna_md_release() is to be called.
 */
int uct_varuna_md_hold(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                       size_t length);

void uct_varuna_md_release(uct_varuna_md_t *md);

/**
 * Find what a key that was packed lacks: a peer asks, which knows the token in it.
 *
 * @param [in]  address  Of a byte in the region.
 * @param [in]  nic      Any number.
 * @param [out] key_p    Inner key, packed.
 *
 * @return UCS_ERR_NO_ELEM if there is no such region (any more), UCS_ERR_NO_DEVICE if there is
 *         no such NIC, UCS_ERR_NO_RESOURCE if that has not registered the region.
 */
ucs_status_t uct_varuna_md_find_key(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                                    unsigned nic, uint64_t *key_p);

/**
 * Find a key of ours by which a NIC may access what is shared.
 *
 * @param [in]  nic     NIC index, a link.
 * @param [out] rkey_p  Inner remote key.
 *
 * @return Nonzero if a region which is shared now covers it.
 */
int uct_varuna_md_find_rkey(uct_varuna_md_t *md, unsigned nic, uint64_t address,
                            size_t length, uct_rkey_t *rkey_p);

#endif
