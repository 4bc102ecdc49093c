/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Packed and unpacked remote keys. Called by varuna_mem.c and
 * varuna_md_open.c; knows no memory domain.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/math.h>
#include <string.h>

/* UCP keeps the length of a packed key in a byte */
UCT_VARUNA_STATIC_ASSERT((sizeof(uct_varuna_packed_rkey_t) +
                          (UCT_VARUNA_MAX_LINKS *
                           UCT_VARUNA_INNER_KEY_SIZE)) <=
                         UINT8_MAX);

size_t uct_varuna_rkey_packed_size(unsigned num_keys)
{
    return sizeof(uct_varuna_packed_rkey_t) +
           (num_keys * UCT_VARUNA_INNER_KEY_SIZE);
}

void *uct_varuna_rkey_pack_header(uint8_t nic_map, unsigned atomic_mode, uint8_t device,
                                  uint64_t token, void *buffer)
{
    uct_varuna_packed_rkey_t *packed = buffer;

    *packed = (uct_varuna_packed_rkey_t) {
        .magic       = UCT_VARUNA_WIRE_MAGIC,
        .version     = UCT_VARUNA_WIRE_VERSION,
        .num_keys    = ucs_popcount(nic_map),
        .key_size    = UCT_VARUNA_INNER_KEY_SIZE,
        .nic_map     = nic_map,
        .atomic_mode = atomic_mode,
        .device      = device,
        .token       = token
    };
    return packed + 1;
}

/* Those of the log in OPEN_REP, too: so no endpoint is opened to such a peer. */
static ucs_status_t uct_varuna_rkey_check_mode(unsigned mode)
{
    if (uct_varuna_atomic_modes[mode].is_built) {
        return UCS_OK;
    }

    ucs_error("the peer's memory is for atomics of mode '%s', without which this rc_varuna "
              "was built (configure --disable-extended): set UCX_RC_VARUNA_ATOMIC_MODE=proxy "
              "on both, or build it with the mode", uct_varuna_atomic_mode_names[mode]);
    return UCS_ERR_UNSUPPORTED;
}

static ucs_status_t
uct_varuna_rkey_check_header(const uct_varuna_packed_rkey_t *packed)
{
    if (packed->magic != UCT_VARUNA_WIRE_MAGIC) {
        ucs_error("remote key is not of rc_varuna, or of a peer with another "
                  "byte order: it begins with 0x%04x, expected 0x%04x",
                  packed->magic, UCT_VARUNA_WIRE_MAGIC);
        return UCS_ERR_INVALID_PARAM;
    }

    if (packed->version != UCT_VARUNA_WIRE_VERSION) {
        ucs_error("remote key has wire version %u of rc_varuna, expected %u: "
                  "all peers must use the same rc_varuna", packed->version,
                  UCT_VARUNA_WIRE_VERSION);
        return UCS_ERR_INVALID_PARAM;
    }

    if ((packed->num_keys == 0) || (packed->num_keys > UCT_VARUNA_MAX_LINKS) ||
        (packed->num_keys != ucs_popcount(packed->nic_map)) ||
        (packed->key_size != UCT_VARUNA_INNER_KEY_SIZE) ||
        (packed->atomic_mode >= UCT_VARUNA_ATOMIC_LAST)) {
        ucs_error("remote key of rc_varuna is corrupt: %u keys of %u bytes for "
                  "NICs 0x%x, expected 1..%u keys of %zu bytes, one for each "
                  "NIC", packed->num_keys, packed->key_size, packed->nic_map,
                  UCT_VARUNA_MAX_LINKS, UCT_VARUNA_INNER_KEY_SIZE);
        return UCS_ERR_INVALID_PARAM;
    }

    return uct_varuna_rkey_check_mode(packed->atomic_mode);
}

ucs_status_t uct_varuna_rkey_unpack(uct_component_h ib, const void *buffer,
                                    uct_varuna_rkey_t **rkey_p)
{
    const uct_varuna_packed_rkey_t *packed = buffer;
    const uint8_t *key                     = (const uint8_t*)(packed + 1);
    uct_varuna_rkey_t *rkey;
    uint64_t inner_key; /* Aligned copy */
    ucs_status_t status;
    unsigned nic;

    status = uct_varuna_rkey_check_header(packed);
    if (status != UCS_OK) {
        return status;
    }

    rkey = ucs_malloc(sizeof(*rkey), "varuna_rkey");
    if (rkey == NULL) {
        ucs_error("failed to allocate a remote key");
        return UCS_ERR_NO_MEMORY;
    }

    rkey->num_keys    = ucs_ilog2(packed->nic_map) + 1;
    rkey->atomic_mode = (uct_varuna_atomic_mode_t)packed->atomic_mode;
    rkey->device      = packed->device;
    rkey->token       = packed->token;
    rkey->lacks       = ~packed->nic_map | UCT_VARUNA_RKEY_LACKS_ANY;
    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        rkey->keys[nic]         = UCT_INVALID_RKEY;
        rkey->inner[nic].rkey   = UCT_INVALID_RKEY;
        rkey->inner[nic].handle = NULL;
        rkey->inner[nic].type   = NULL;
    }

    ucs_for_each_bit(nic, packed->nic_map) {
        memcpy(&inner_key, key, sizeof(inner_key));
        status = uct_rkey_unpack(ib, &inner_key, &rkey->inner[nic]);
        if (status != UCS_OK) {
            goto err_release;
        }
        rkey->keys[nic] = rkey->inner[nic].rkey;
        key            += sizeof(inner_key);
    }

    *rkey_p = rkey;
    return UCS_OK;

err_release:
    /* uct_rkey_unpack() doesn't promise to leave a failed one alone */
    rkey->inner[nic].rkey = UCT_INVALID_RKEY;
    uct_varuna_rkey_release(ib, rkey);
    return status;
}

void uct_varuna_rkey_add(uct_varuna_rkey_t *rkey, unsigned nic, const uct_rkey_bundle_t *bundle)
{
    rkey->inner[nic] = *bundle;
    rkey->keys[nic]  = bundle->rkey;
    rkey->num_keys   = ucs_max(rkey->num_keys, nic + 1);
    rkey->lacks      = (rkey->lacks & ~UCS_BIT(nic)) | UCT_VARUNA_RKEY_LACKS_ANY;
}

void uct_varuna_rkey_complete(uct_varuna_rkey_t *rkey, unsigned nic, uct_rkey_t inner)
{
    __atomic_store_n(&rkey->keys[nic], inner, __ATOMIC_RELAXED);
    __atomic_and_fetch(&rkey->lacks, ~UCS_BIT(nic) | UCT_VARUNA_RKEY_LACKS_ANY,
                       __ATOMIC_RELEASE);
}

void uct_varuna_rkey_release(uct_component_h ib, uct_varuna_rkey_t *rkey)
{
    unsigned nic;

    for (nic = 0; nic < rkey->num_keys; ++nic) {
        if (rkey->inner[nic].rkey != UCT_INVALID_RKEY) {
            uct_rkey_release(ib, &rkey->inner[nic]);
        }
    }
    ucs_free(rkey);
}
