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
#include <pthread.h>
#include <string.h>

/* UCP keeps the length of a packed key in a byte */
UCT_VARUNA_STATIC_ASSERT((sizeof(uct_varuna_packed_rkey_t) +
                          (UCT_VARUNA_MAX_LINKS *
                           sizeof(uct_varuna_packed_key_t))) <=
                         UINT8_MAX);

/* All unpacked keys of the process. What they have is changed with the lock held, and read
 * without it. */
static struct {
    pthread_mutex_t            lock;
    ucs_list_link_t            list;
} uct_varuna_rkeys = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .list = UCS_LIST_INITIALIZER(&uct_varuna_rkeys.list, &uct_varuna_rkeys.list)
};

void uct_varuna_rkeys_fork_prepare(void)
{
    pthread_mutex_lock(&uct_varuna_rkeys.lock);
}

void uct_varuna_rkeys_fork_end(void)
{
    pthread_mutex_unlock(&uct_varuna_rkeys.lock);
}

size_t uct_varuna_rkey_packed_size(unsigned num_keys)
{
    return sizeof(uct_varuna_packed_rkey_t) +
           (num_keys * sizeof(uct_varuna_packed_key_t));
}

void *uct_varuna_rkey_pack_header(uint8_t nic_map, unsigned atomic_mode, uint8_t device,
                                  uint64_t token, void *buffer)
{
    uct_varuna_packed_rkey_t *packed = buffer;

    *packed = (uct_varuna_packed_rkey_t) {
        .magic       = UCT_VARUNA_WIRE_MAGIC,
        .version     = UCT_VARUNA_WIRE_VERSION,
        .num_keys    = ucs_popcount(nic_map),
        .key_size    = sizeof(uct_varuna_packed_key_t),
        .nic_map     = nic_map,
        .atomic_mode = atomic_mode,
        .device      = device,
        .token       = token
    };
    return packed + 1;
}

void *uct_varuna_rkey_pack_key(uint64_t key, unsigned generation, void *buffer)
{
    uct_varuna_packed_key_t *packed = buffer;

    packed->key        = key;
    packed->generation = generation;
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

    if ((packed->num_keys > UCT_VARUNA_MAX_LINKS) ||
        (packed->num_keys != ucs_popcount(packed->nic_map)) ||
        (packed->key_size != sizeof(uct_varuna_packed_key_t)) ||
        (packed->atomic_mode >= UCT_VARUNA_ATOMIC_LAST)) {
        ucs_error("remote key of rc_varuna is corrupt: %u keys of %u bytes for "
                  "NICs 0x%x, expected 0..%u keys of %zu bytes, one for each "
                  "NIC", packed->num_keys, packed->key_size, packed->nic_map,
                  UCT_VARUNA_MAX_LINKS, sizeof(uct_varuna_packed_key_t));
        return UCS_ERR_INVALID_PARAM;
    }

    return uct_varuna_rkey_check_mode(packed->atomic_mode);
}

static void uct_varuna_rkey_free(uct_component_h ib, uct_varuna_rkey_t *rkey)
{
    unsigned nic;

    for (nic = 0; nic < rkey->num_keys; ++nic) {
        if (rkey->inner[nic].rkey != UCT_INVALID_RKEY) {
            uct_rkey_release(ib, &rkey->inner[nic]);
        }
    }
    ucs_free(rkey);
}

ucs_status_t uct_varuna_rkey_unpack(uct_component_h ib, const void *buffer,
                                    uct_varuna_rkey_t **rkey_p)
{
    const uct_varuna_packed_rkey_t *packed = buffer;
    const uct_varuna_packed_key_t *key     = (const uct_varuna_packed_key_t*)(packed + 1);
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

    rkey->num_keys    = (packed->nic_map == 0) ? 0 : (ucs_ilog2(packed->nic_map) + 1);
    rkey->atomic_mode = (uct_varuna_atomic_mode_t)packed->atomic_mode;
    rkey->device      = packed->device;
    rkey->token       = packed->token;
    rkey->lacks       = UINT8_MAX;
    rkey->owner       = 0;
    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        rkey->generations[nic]  = 0;
        rkey->keys[nic]         = UCT_INVALID_RKEY;
        rkey->inner[nic].rkey   = UCT_INVALID_RKEY;
        rkey->inner[nic].handle = NULL;
        rkey->inner[nic].type   = NULL;
    }

    ucs_for_each_bit(nic, packed->nic_map) {
        inner_key = key->key;
        status    = uct_rkey_unpack(ib, &inner_key, &rkey->inner[nic]);
        if (status != UCS_OK) {
            goto err_release;
        }
        rkey->keys[nic]        = rkey->inner[nic].rkey;
        rkey->generations[nic] = key->generation;
        ++key;
    }

    pthread_mutex_lock(&uct_varuna_rkeys.lock);
    ucs_list_add_tail(&uct_varuna_rkeys.list, &rkey->list);
    pthread_mutex_unlock(&uct_varuna_rkeys.lock);
    *rkey_p = rkey;
    return UCS_OK;

err_release:
    /* uct_rkey_unpack() doesn't promise to leave a failed one alone */
    rkey->inner[nic].rkey = UCT_INVALID_RKEY;
    uct_varuna_rkey_free(ib, rkey);
    return status;
}

void uct_varuna_rkey_add(uct_varuna_rkey_t *rkey, unsigned nic, unsigned generation,
                         const uct_rkey_bundle_t *bundle)
{
    rkey->inner[nic]       = *bundle;
    rkey->keys[nic]        = bundle->rkey;
    rkey->generations[nic] = generation;
    rkey->num_keys         = ucs_max(rkey->num_keys, nic + 1);
}

void uct_varuna_rkey_remove(uct_component_h ib, uct_varuna_rkey_t *rkey, unsigned nic)
{
    if (rkey->keys[nic] != UCT_INVALID_RKEY) {
        uct_rkey_release(ib, &rkey->inner[nic]);
        rkey->inner[nic].rkey = UCT_INVALID_RKEY;
        rkey->keys[nic]       = UCT_INVALID_RKEY;
    }
}

/* Lock held. What it has for an earlier life is dropped; who uses that now posts to a NIC that is
 * gone. */
static void uct_varuna_rkey_renew(uct_varuna_rkey_t *rkey, unsigned nic, unsigned generation)
{
    if (rkey->generations[nic] < generation) {
        __atomic_or_fetch(&rkey->lacks, uct_varuna_rkey_has_returned(nic, generation),
                          __ATOMIC_RELEASE);
        __atomic_store_n(&rkey->keys[nic], UCT_INVALID_RKEY, __ATOMIC_RELAXED);
        __atomic_store_n(&rkey->generations[nic], generation, __ATOMIC_RELEASE);
    }
}

void uct_varuna_rkeys_renew(uint64_t uuid, unsigned nic, unsigned generation)
{
    uct_varuna_rkey_t *rkey;

    pthread_mutex_lock(&uct_varuna_rkeys.lock);
    ucs_list_for_each(rkey, &uct_varuna_rkeys.list, list) {
        if (rkey->owner == uuid) {
            uct_varuna_rkey_renew(rkey, nic, generation);
        } else {
            /* Endpoints to several interfaces of a process share its keys, and the last of them
             * that has completed one owns it: the others look at it again */
            __atomic_or_fetch(&rkey->lacks, uct_varuna_rkey_has_returned(nic, generation),
                              __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&uct_varuna_rkeys.lock);
}

void uct_varuna_rkey_complete(uct_varuna_rkey_t *rkey, uint64_t uuid, unsigned nic,
                              unsigned generation, uct_rkey_t inner)
{
    pthread_mutex_lock(&uct_varuna_rkeys.lock);
    rkey->owner = uuid;
    uct_varuna_rkey_renew(rkey, nic, generation);
    if (rkey->generations[nic] == generation) {
        if (rkey->keys[nic] == UCT_INVALID_RKEY) {
            __atomic_store_n(&rkey->keys[nic], inner, __ATOMIC_RELAXED);
        }
        if (rkey->keys[nic] != UCT_INVALID_RKEY) {
            __atomic_and_fetch(&rkey->lacks, ~uct_varuna_rkey_has_returned(nic, generation),
                               __ATOMIC_RELEASE);
        }
    }
    pthread_mutex_unlock(&uct_varuna_rkeys.lock);
}

void uct_varuna_rkey_release(uct_component_h ib, uct_varuna_rkey_t *rkey)
{
    pthread_mutex_lock(&uct_varuna_rkeys.lock);
    ucs_list_del(&rkey->list);
    pthread_mutex_unlock(&uct_varuna_rkeys.lock);
    uct_varuna_rkey_free(ib, rkey);
}
