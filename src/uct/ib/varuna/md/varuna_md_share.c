/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Shared memory of a memory domain. See varuna_md_share.h. UCX registers all memory with
 * all rights, also what it sends from or receives to; only what has a packed key can be
 * meant for peers.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_md_share.h"
#include "varuna_md_dead.h"
#include <uct/ib/varuna/core/varuna_atomic_mode.h>

/* A token names one registration, and is never used again. Lock held */
static void uct_varuna_md_make_token(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    if (!uct_varuna_atomic_modes[md->atomic_mode].by_cpu || !mem->is_atomic ||
        mem->is_device) {
        return;
    }

    while (mem->token == 0) {
        mem->token = uct_varuna_secret_hash(&md->token_key, ++md->num_tokens);
    }
}

void uct_varuna_md_share(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    if (mem->length == 0) {
        return; /* There is nothing to be accessed */
    }

    pthread_mutex_lock(&md->lock);
    if (!mem->is_shared) {
        mem->is_shared    = 1;
        mem->region.first = (uintptr_t)mem->address;
        mem->region.last  = mem->region.first + (mem->length - 1);
        uct_varuna_md_make_token(md, mem);
        uct_varuna_regions_insert(&md->shared, &mem->region);
    }
    pthread_mutex_unlock(&md->lock);
}

int uct_varuna_md_unshare(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    int was_shared;

    pthread_mutex_lock(&md->lock);
    was_shared = mem->is_shared;
    if (was_shared) {
        mem->is_shared = 0;
        uct_varuna_regions_remove(&md->shared, &mem->region);
    }
    pthread_mutex_unlock(&md->lock);
    return was_shared;
}

/* Lock held */
static uct_varuna_mem_t *uct_varuna_md_find(const uct_varuna_md_t *md,
                                            uint64_t address, size_t length)
{
    uint64_t last = address + (length - 1);
    uct_varuna_region_t *region;

    if ((length == 0) || (last < address)) {
        return NULL;
    }

    region = uct_varuna_regions_find(&md->shared, address, last);
    return (region == NULL) ? NULL :
           ucs_container_of(region, uct_varuna_mem_t, region);
}

int uct_varuna_md_is_shared(uct_varuna_md_t *md, uint64_t address,
                            size_t length)
{
    int found;

    pthread_mutex_lock(&md->lock);
    found = (uct_varuna_md_find(md, address, length) != NULL);
    pthread_mutex_unlock(&md->lock);
    return found;
}

int uct_varuna_md_find_rkey(uct_varuna_md_t *md, unsigned nic, uint64_t address,
                            size_t length, uct_rkey_t *rkey_p)
{
    int found = 0;
    uct_rkey_bundle_t bundle;
    uct_varuna_mem_t *mem;
    uint64_t key;

    pthread_mutex_lock(&md->lock);
    mem = uct_varuna_md_find(md, address, length);
    if ((mem != NULL) && (mem->inner[nic] != NULL) &&
        !uct_varuna_md_is_spare(md, mem, nic) &&
        (uct_md_mkey_pack(md->nics[nic].md, mem->inner[nic], &key) == UCS_OK) &&
        (uct_rkey_unpack(md->ib, &key, &bundle) == UCS_OK)) {
        /* A key of ib is a number, there is nothing to be kept */
        *rkey_p = bundle.rkey;
        uct_rkey_release(md->ib, &bundle);
        found   = 1;
    }
    pthread_mutex_unlock(&md->lock);
    return found;
}

static int uct_varuna_md_token_matches(const uct_varuna_region_t *region,
                                       const void *arg)
{
    const uct_varuna_mem_t *mem = ucs_container_of(region, uct_varuna_mem_t,
                                                   region);

    return mem->token == *(const uint64_t*)arg;
}

int uct_varuna_md_hold(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                       size_t length)
{
    uint64_t last = address + (length - 1);

    if ((token == 0) || (length == 0) || (last < address)) {
        return 0;
    }

    pthread_mutex_lock(&md->lock);
    if (uct_varuna_regions_find_match(&md->shared, address, last,
                                      uct_varuna_md_token_matches,
                                      &token) != NULL) {
        return 1;
    }

    pthread_mutex_unlock(&md->lock);
    return 0;
}

void uct_varuna_md_release(uct_varuna_md_t *md)
{
    pthread_mutex_unlock(&md->lock);
}
