/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of the memory domain: each operation is done on the inner memory domains of
 * all links, through the public UCT API. Called by UCT through the table in
 * varuna_md_open.c.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/ib/varuna/core/varuna_amo_mode.h>
#include "varuna_health.h"
#include "varuna_md.h"

#include <ucs/arch/atomic.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/memory/memtype_cache.h>
#include <ucs/type/param.h>
#include <string.h>
#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <stddef.h>

/* An invalidation of all inner handles of one region */
typedef struct {
    uct_completion_t *comp;      /* User's; NULL if an error was returned */
    ucs_status_t     status;     /* Any inner one that isn't UCS_OK */
    volatile int32_t count;      /* Inner invalidations which aren't complete */
    struct uct_varuna_inner_invalidation {
        uct_completion_t comp;
        void             *parent;
    }                inner[UCT_VARUNA_MAX_LINKS];
} uct_varuna_invalidation_t;

static ucs_status_t uct_varuna_md_dereg_inner(uct_varuna_md_t *md,
                                              uct_varuna_mem_t *mem,
                                              unsigned nic)
{
    ucs_status_t status;

    if (uct_varuna_md_is_spare(md, mem, nic)) {
        return UCS_OK;
    }

    status = uct_md_mem_dereg(md->nics[nic].md, mem->inner[nic]);
    if (status != UCS_OK) {
        ucs_warn("failed to deregister memory from %s: %s",
                 md->nics[nic].md_name, ucs_status_string(status));
    }
    return status;
}

int uct_varuna_mem_is_host(const void *address, size_t length)
{
    ucs_memory_info_t info;

    /* The cache has no host memory. What it has without a type is a GPU library's. */
    return ucs_memtype_cache_lookup(address, length, &info) != UCS_OK;
}

/* @return Whose memory it is. UCX numbers the devices of a host. */
static uint8_t uct_varuna_mem_device(const ucs_memory_info_t *info)
{
    return ((info->sys_dev == UCS_SYS_DEVICE_ID_UNKNOWN) ||
            (info->sys_dev >= (UCT_VARUNA_DEVICE_UNKNOWN - 1))) ?
           UCT_VARUNA_DEVICE_UNKNOWN : (info->sys_dev + 1);
}

/* A dmabuf may be host memory, but its pages need not be accessible at this address. Other
 * memory of a device is registered at its address if a peer-memory module lets NICs do that. */
static ucs_status_t
uct_varuna_md_check_memtype(const uct_varuna_md_t *md, const void *address,
                            size_t length, uct_varuna_reg_arg_t arg,
                            uint8_t *device_p)
{
    int is_dmabuf          = uct_varuna_compat_reg_is_dmabuf(arg);
    int can_dmabuf         = !!(md->attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);
    ucs_memory_info_t info = {
        .type    = UCS_MEMORY_TYPE_UNKNOWN,
        .sys_dev = UCS_SYS_DEVICE_ID_UNKNOWN
    };
    int is_host = (ucs_memtype_cache_lookup(address, length, &info) != UCS_OK);

    if (is_host && !is_dmabuf) {
        *device_p = UCT_VARUNA_DEVICE_HOST;
        return UCS_OK;
    }

    if (is_dmabuf ? !can_dmabuf : !(md->attr.reg_mem_types & UCS_BIT(info.type))) {
        ucs_log(uct_varuna_compat_reg_log_level(arg),
                "rc_varuna cannot register memory of a device: %p, %zu bytes%s",
                address, length,
                can_dmabuf ? " without a dmabuf" : "");
        return UCS_ERR_UNSUPPORTED;
    }

    *device_p = uct_varuna_mem_device(&info);
    return UCS_OK;
}

/* The driver of a NIC may register no dmabufs, while those of others do. */
static int uct_varuna_md_nic_takes(const uct_varuna_md_t *md, unsigned nic,
                                   uct_varuna_reg_arg_t arg)
{
    return !uct_varuna_compat_reg_is_dmabuf(arg) ||
           (md->nics[nic].md_attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);
}

/* Register on those of the NICs @a used whose status is UCS_ERR_NO_RESOURCE. @return How many of
 * them have the region then. */
static unsigned uct_varuna_md_reg_some(uct_varuna_md_t *md, uct_varuna_mem_t *mem,
                                       void *address, size_t length, uct_varuna_reg_arg_t arg,
                                       int is_urgent, uint8_t used, ucs_status_t *statuses)
{
    unsigned num_alive = 0;
    unsigned nic;

    ucs_for_each_bit(nic, used) {
        if ((statuses[nic] == UCS_ERR_NO_RESOURCE) && uct_varuna_md_nic_takes(md, nic, arg)) {
            statuses[nic] = uct_varuna_md_reg_inner(md, nic, address, length, arg, is_urgent,
                                                    &mem->inner[nic]);
            num_alive    += (statuses[nic] == UCS_OK) && !uct_varuna_md_is_spare(md, mem, nic);
        }
    }

    return num_alive;
}

/* No NIC has registered it: that is no shortage. The memory of a GPU is a likely reason, if UCX
 * does not know it as such. @return Why. */
static ucs_status_t uct_varuna_md_reg_refused(const uct_varuna_md_t *md, const void *address,
                                              size_t length, uct_varuna_reg_arg_t arg,
                                              uint8_t used, const ucs_status_t *statuses)
{
    unsigned nic;

    ucs_for_each_bit(nic, used) {
        if (statuses[nic] != UCS_OK) {
            ucs_log(uct_varuna_compat_reg_log_level(arg),
                    "no NIC of rc_varuna registers the memory at %p, %zu bytes: %s; if it is a "
                    "GPU's, UCX_TLS needs a transport that knows it, such as cuda_copy",
                    address, length, ucs_status_string(statuses[nic]));
            return statuses[nic];
        }
    }

    ucs_log(uct_varuna_compat_reg_log_level(arg),
            "failed to register memory: all NICs are dead");
    return UCS_ERR_IO_ERROR;
}

/* Register on all NICs, and do without those that are short while others are not. */
static ucs_status_t uct_varuna_md_reg(uct_varuna_md_t *md, uct_varuna_mem_t *mem,
                                      void *address, size_t length, uct_varuna_reg_arg_t arg,
                                      uint8_t used)
{
    ucs_status_t statuses[UCT_VARUNA_MAX_LINKS];
    ucs_status_t status;
    unsigned nic;

    for (nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        statuses[nic] = UCS_ERR_NO_RESOURCE;
    }

    if ((uct_varuna_md_reg_some(md, mem, address, length, arg, 0, used, statuses) == 0) &&
        (uct_varuna_md_reg_some(md, mem, address, length, arg, 1, used, statuses) == 0)) {
        return uct_varuna_md_reg_refused(md, address, length, arg, used, statuses);
    }

    ucs_for_each_bit(nic, used) {
        if (statuses[nic] != UCS_OK) {
            status = uct_varuna_md_do_without(md, nic, statuses[nic], mem->device,
                                              &mem->inner[nic]);
            if (status != UCS_OK) {
                return status;
            }
        }
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_md_mem_reg(uct_md_h tl_md, void *address,
                                   size_t length,
                                   uct_varuna_reg_arg_t arg,
                                   uct_mem_h *memh_p)
{
    uct_varuna_md_t *md = ucs_derived_of(tl_md, uct_varuna_md_t);
    uct_varuna_mem_t *mem;
    ucs_status_t status;
    unsigned nic, owner;
    uint8_t device, used;

    status = uct_varuna_md_check_memtype(md, address, length, arg, &device);
    if (status != UCS_OK) {
        return status;
    }

    mem = ucs_calloc(1, sizeof(*mem), "varuna_mem");
    if (mem == NULL) {
        ucs_log(uct_varuna_compat_reg_log_level(arg),
                "failed to allocate a memory handle");
        return UCS_ERR_NO_MEMORY;
    }

    used        = uct_varuna_md_use_all(md);
    mem->device = device;
    status      = uct_varuna_md_reg(md, mem, address, length, arg, used);
    if (status != UCS_OK) {
        goto err_dereg;
    }

    for (nic = 0; nic < md->num_nics; ++nic) {
        owner = md->nics[nic].owner;
        if ((owner < nic) && (used & UCS_BIT(owner)) && (md->nics[nic].md != NULL)) {
            mem->inner[nic] = mem->inner[owner];
        }
    }

    mem->address = address;
    mem->length  = length;
    mem->is_atomic = uct_varuna_compat_reg_is_atomic(arg);
    mem->flags     = uct_varuna_compat_reg_flags(arg);
    uct_varuna_return_add_mem(md, mem, used);
    uct_varuna_md_unuse_all(md, used);
    *memh_p = mem;
    return UCS_OK;

err_dereg:
    ucs_for_each_bit(nic, used) {
        (void)uct_varuna_md_dereg_inner(md, mem, nic);
    }
    uct_varuna_md_unuse_all(md, used);
    ucs_free(mem);
    return status;
}

static void uct_varuna_invalidation_put(uct_varuna_invalidation_t *inv)
{
    uct_completion_t *comp;
    ucs_status_t status;

    if (ucs_atomic_fsub32((volatile uint32_t*)&inv->count, 1) != 1) {
        return;
    }

    comp   = inv->comp;
    status = inv->status;
    ucs_free(inv);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

static void uct_varuna_inner_invalidate_cb(uct_completion_t *comp)
{
    struct uct_varuna_inner_invalidation *inner =
            ucs_container_of(comp, struct uct_varuna_inner_invalidation, comp);

    uct_varuna_invalidation_t *inv = inner->parent;

    if (comp->status != UCS_OK) {
        inv->status = comp->status;
    }

    uct_varuna_invalidation_put(inv);
}

/* Deregister and invalidate all inner handles. The user's completion is called
 * once, when the last inner invalidation is complete, or never if an error is returned:
 * the caller may free it then. */
static ucs_status_t
uct_varuna_md_mem_invalidate(uct_varuna_md_t *md, uct_varuna_mem_t *mem,
                             uct_varuna_invalidation_t *inv,
                             uct_completion_t *comp, uint8_t used)
{
    ucs_status_t result = UCS_OK;
    uct_md_mem_dereg_params_t params;
    ucs_status_t status;
    unsigned nic;

    inv->comp   = comp;
    inv->status = UCS_OK;
    inv->count  = 1; /* This function's, so that it can't end before */
    ucs_for_each_bit(nic, used) {
        if (uct_varuna_md_is_spare(md, mem, nic)) {
            continue;
        }

        ucs_atomic_add32((volatile uint32_t*)&inv->count, 1);
        inv->inner[nic].parent      = inv;
        inv->inner[nic].comp.func   = uct_varuna_inner_invalidate_cb;
        inv->inner[nic].comp.count  = 1;
        inv->inner[nic].comp.status = UCS_OK;

        params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                            UCT_MD_MEM_DEREG_FIELD_FLAGS |
                            UCT_MD_MEM_DEREG_FIELD_COMPLETION;
        params.flags      = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
        params.memh       = mem->inner[nic];
        params.comp       = &inv->inner[nic].comp;
        status            = uct_md_mem_dereg_v2(md->nics[nic].md, &params);
        if (status == UCS_OK) {
            continue;
        }

        ucs_warn("failed to invalidate memory on %s: %s", md->nics[nic].md_name,
                 ucs_status_string(status));
        result = status;
        if (inv->inner[nic].comp.count > 0) {
            /* It wasn't called, and won't be */
            uct_varuna_invalidation_put(inv);
        }
    }

    if (result != UCS_OK) {
        inv->comp = NULL; /* Keys that are on their way are dropped */
    }

    uct_varuna_invalidation_put(inv);
    return result;
}

ucs_status_t
uct_varuna_md_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params)
{
    uct_varuna_md_t *md    = ucs_derived_of(tl_md, uct_varuna_md_t);
    uct_varuna_mem_t *mem  = UCS_PARAM_VALUE(UCT_MD_MEM_DEREG_FIELD, params,
                                             memh, MEMH, NULL);
    unsigned flags         = UCS_PARAM_VALUE(UCT_MD_MEM_DEREG_FIELD, params,
                                             flags, FLAGS, 0);
    uct_completion_t *comp = UCS_PARAM_VALUE(UCT_MD_MEM_DEREG_FIELD, params,
                                             comp, COMPLETION, NULL);
    ucs_status_t result    = UCS_OK;
    uct_varuna_invalidation_t *inv;
    ucs_status_t status;
    int was_shared;
    unsigned nic;
    uint8_t used;

    if (mem == NULL) {
        return UCS_ERR_INVALID_PARAM;
    }

    if (flags & UCT_MD_MEM_DEREG_FLAG_INVALIDATE) {
        if (!(md->attr.flags & UCT_VARUNA_COMPAT_INVALIDATE)) {
            return UCS_ERR_UNSUPPORTED;
        } else if (comp == NULL) {
            return UCS_ERR_INVALID_PARAM;
        }

        inv = ucs_calloc(1, sizeof(*inv), "varuna_invalidation");
        if (inv == NULL) {
            ucs_error("failed to allocate an invalidation");
            return UCS_ERR_NO_MEMORY;
        }
    } else {
        inv = NULL;
    }

    was_shared = uct_varuna_md_unshare(md, mem); /* No thread finds it any more */
    used       = uct_varuna_return_remove_mem(md, mem);
    if (inv != NULL) {
        result = uct_varuna_md_mem_invalidate(md, mem, inv, comp, used);
    } else {
        ucs_for_each_bit(nic, used) {
            status = uct_varuna_md_dereg_inner(md, mem, nic);
            result = (status == UCS_OK) ? result : status;
        }
    }

    uct_varuna_md_unuse_all(md, used);
    if (was_shared && (result == UCS_OK) && (md->mem_ended != NULL) &&
        (mem->device == UCT_VARUNA_DEVICE_HOST)) {
        md->mem_ended(mem);
    }

    ucs_free(mem);
    return result;
}

/* Advice is a hint: it is given to all NICs, and fails only if none takes it. */
ucs_status_t uct_varuna_md_mem_advise(uct_md_h tl_md, uct_mem_h memh,
                                      void *addr, size_t length,
                                      unsigned advice)
{
    uct_varuna_md_t *md   = ucs_derived_of(tl_md, uct_varuna_md_t);
    ucs_status_t result   = UCS_ERR_UNSUPPORTED;
    unsigned num_advised  = 0;
    uint8_t used          = uct_varuna_md_use_all(md);
    ucs_status_t status;
    unsigned nic;

    ucs_for_each_bit(nic, used) {
        if (!(md->nics[nic].md_attr.flags & UCT_MD_FLAG_ADVISE) ||
            uct_varuna_md_is_spare(md, memh, nic)) {
            continue;
        }

        status = uct_md_mem_advise(md->nics[nic].md,
                                   uct_varuna_mem_inner(memh, nic), addr, length,
                                   (uct_mem_advice_t)advice);
        if (status == UCS_OK) {
            ++num_advised;
        } else {
            result = status;
        }
    }

    uct_varuna_md_unuse_all(md, used);
    return (num_advised > 0) ? UCS_OK : result;
}

ucs_status_t
uct_varuna_md_mkey_pack_common(uct_md_h tl_md, uct_mem_h memh, void *address,
                               size_t length,
                               const uct_md_mkey_pack_params_t *params,
                               void *buffer)
{
    uct_varuna_md_t *md = ucs_derived_of(tl_md, uct_varuna_md_t);
    uint8_t used        = uct_varuna_md_use_all(md);
    uint8_t nic_map     = 0;
    uint64_t keys[UCT_VARUNA_MAX_LINKS] = {0}; /* ib stores them aligned */
    ucs_status_t status = UCS_OK;
    unsigned nic;
    void *key;

    /* The life of these does not end meanwhile, nor does a region lose what it has there */
    for (nic = 0; nic < md->num_nics; ++nic) {
        if (md->nics[nic].is_link && (used & UCS_BIT(md->nics[nic].owner)) &&
            !uct_varuna_md_is_spare(md, memh, nic)) {
            nic_map |= UCS_BIT(nic);
        }
    }

    /* UCX may give commands to the NICs, so the region is shared after that */
    for (nic = 0; (nic < md->num_nics) && (status == UCS_OK); ++nic) {
        if (nic_map & UCS_BIT(nic)) {
            status = uct_varuna_compat_mkey_pack(md->nics[nic].md,
                                                 uct_varuna_mem_inner(memh, nic),
                                                 address, length, params, &keys[nic]);
        }
    }

    if (status != UCS_OK) {
        goto out;
    }

    uct_varuna_md_share(md, memh, nic_map, keys,
                        UCS_PARAM_VALUE(UCT_MD_MKEY_PACK_FIELD, params, flags, FLAGS, 0));
    memset(buffer, 0, md->attr.rkey_packed_size);
    key = uct_varuna_rkey_pack_header(nic_map, md->atomic_mode,
                                      ((uct_varuna_mem_t*)memh)->device,
                                      ((uct_varuna_mem_t*)memh)->token, buffer);
    ucs_for_each_bit(nic, nic_map) {
        key = uct_varuna_rkey_pack_key(keys[nic], md->nics[nic].generation, key);
    }

out:
    uct_varuna_md_unuse_all(md, used);
    return status;
}

/* --- Memory of which keys are out --- */

/* Shared memory of a memory domain. UCX registers all memory with
 * all rights, also what it sends from or receives to; only what has a packed key can be
 * meant for peers. */

/* A token names one registration, and is never used again. Lock held */
static void uct_varuna_md_make_token(uct_varuna_md_t *md, uct_varuna_mem_t *mem)
{
    while (mem->token == 0) {
        mem->token = uct_varuna_secret_hash(&md->tokens.key, ++md->tokens.num);
    }
}

void uct_varuna_md_share(uct_varuna_md_t *md, uct_varuna_mem_t *mem, uint8_t nic_map,
                         const uint64_t *keys, unsigned pack_flags)
{
    unsigned nic;

    if (mem->length == 0) {
        return; /* There is nothing to be accessed */
    }

    pthread_mutex_lock(&md->lock);
    mem->pack_flags |= pack_flags;
    if (!mem->is_shared) {
        mem->is_shared    = 1;
        mem->region.first = (uintptr_t)mem->address;
        mem->region.last  = mem->region.first + (mem->length - 1);
        ucs_for_each_bit(nic, nic_map) {
            uct_varuna_mem_add_key(mem, nic, keys[nic]);
        }
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

/* A key of ib is a number, there is nothing to be kept. Lock held */
static int uct_varuna_md_get_rkey(const uct_varuna_md_t *md, const uct_varuna_mem_t *mem,
                                  unsigned nic, uct_rkey_t *rkey_p)
{
    uct_rkey_bundle_t bundle;

    if (!(mem->packed & UCS_BIT(nic)) || uct_varuna_md_is_spare(md, mem, nic) ||
        (uct_rkey_unpack(md->ib, &mem->keys[nic], &bundle) != UCS_OK)) {
        return 0;
    }

    *rkey_p = bundle.rkey;
    uct_rkey_release(md->ib, &bundle);
    return 1;
}

/* Unknown devices may be as many as there are regions. */
static int uct_varuna_md_is_listed(uint8_t device, const uct_varuna_place_t *places,
                                   unsigned num)
{
    unsigned i;

    for (i = 0; (device != UCT_VARUNA_DEVICE_UNKNOWN) && (i < num); ++i) {
        if (places[i].device == device) {
            return 1;
        }
    }

    return 0;
}

unsigned uct_varuna_md_list_devices(uct_varuna_md_t *md, unsigned nic,
                                    uct_varuna_place_t *places, unsigned max)
{
    unsigned num = 0;
    const uct_varuna_mem_t *mem;

    pthread_mutex_lock(&md->lock);
    ucs_list_for_each(mem, &md->mems, list) {
        if ((mem->device == UCT_VARUNA_DEVICE_HOST) || !mem->is_shared ||
            uct_varuna_md_is_listed(mem->device, places, ucs_min(num, max))) {
            continue;
        }

        if (num >= max) {
            ++num;
            break;
        }

        if (uct_varuna_md_get_rkey(md, mem, nic, &places[num].rkey)) {
            places[num].device  = mem->device;
            places[num].address = (uintptr_t)mem->address;
            ++num;
        }
    }
    pthread_mutex_unlock(&md->lock);
    return num;
}

int uct_varuna_md_find_rkey(uct_varuna_md_t *md, unsigned nic, uint64_t address,
                            size_t length, uct_rkey_t *rkey_p)
{
    const uct_varuna_mem_t *mem;
    int found;

    pthread_mutex_lock(&md->lock);
    mem   = uct_varuna_md_find(md, address, length);
    found = (mem != NULL) && uct_varuna_md_get_rkey(md, mem, nic, rkey_p);
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

/* Lock held. @return The region with this token that contains all these bytes, or NULL. */
static uct_varuna_mem_t *uct_varuna_md_find_token(const uct_varuna_md_t *md, uint64_t token,
                                                  uint64_t address, size_t length)
{
    uint64_t last = address + (length - 1);
    uct_varuna_region_t *region;

    if ((token == 0) || (length == 0) || (last < address)) {
        return NULL;
    }

    region = uct_varuna_regions_find_match(&md->shared, address, last,
                                           uct_varuna_md_token_matches, &token);
    return (region == NULL) ? NULL : ucs_container_of(region, uct_varuna_mem_t, region);
}

/* Whether the CPU executes atomics there for peers */
static int uct_varuna_md_is_for_cpu(const uct_varuna_md_t *md, const uct_varuna_mem_t *mem)
{
    return uct_varuna_atomic_modes[md->atomic_mode].by_cpu && mem->is_atomic &&
           (mem->device == UCT_VARUNA_DEVICE_HOST);
}

ucs_status_t uct_varuna_md_find_key(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                                    unsigned nic, unsigned generation, uint64_t *key_p)
{
    ucs_status_t status = UCS_OK;
    const uct_varuna_mem_t *mem;

    pthread_mutex_lock(&md->lock);
    mem = uct_varuna_md_find_token(md, token, address, 1);
    if (mem == NULL) {
        status = UCS_ERR_NO_ELEM;
    } else if ((nic >= md->num_nics) || !md->nics[nic].is_link ||
               (md->nics[nic].generation != generation)) {
        status = UCS_ERR_NO_DEVICE; /* Or it is in another life */
    } else if (!(mem->packed & UCS_BIT(nic)) || uct_varuna_md_is_spare(md, mem, nic)) {
        status = UCS_ERR_NO_RESOURCE;
    } else {
        *key_p = mem->keys[nic];
    }
    pthread_mutex_unlock(&md->lock);
    return status;
}

int uct_varuna_md_hold(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                       size_t length)
{
    const uct_varuna_mem_t *mem;

    pthread_mutex_lock(&md->lock);
    mem = uct_varuna_md_find_token(md, token, address, length);
    if ((mem != NULL) && uct_varuna_md_is_for_cpu(md, mem)) {
        return 1;
    }

    pthread_mutex_unlock(&md->lock);
    return 0;
}

void uct_varuna_md_release(uct_varuna_md_t *md)
{
    pthread_mutex_unlock(&md->lock);
}

/* --- Regions --- */

void uct_varuna_regions_init(uct_varuna_regions_t *regions)
{
    regions->root   = NULL;
    regions->random = 0x9e3779b9;
}

static uint32_t uct_varuna_regions_random(uct_varuna_regions_t *regions)
{
    regions->random ^= regions->random << 13;
    regions->random ^= regions->random >> 17;
    regions->random ^= regions->random << 5;
    return regions->random;
}

/* Regions with the same start are distinguished by the addresses of their nodes. */
static int uct_varuna_region_is_before(const uct_varuna_region_t *a,
                                       const uct_varuna_region_t *b)
{
    return (a->first < b->first) || ((a->first == b->first) && (a < b));
}

static void uct_varuna_region_update(uct_varuna_region_t *node)
{
    node->max_last = node->last;
    if (node->left != NULL) {
        node->max_last = ucs_max(node->max_last, node->left->max_last);
    }
    if (node->right != NULL) {
        node->max_last = ucs_max(node->max_last, node->right->max_last);
    }
}

/* Split a tree in what is before @a region and what is not. */
static void uct_varuna_region_split(uct_varuna_region_t *node,
                                    const uct_varuna_region_t *region,
                                    uct_varuna_region_t **before_p,
                                    uct_varuna_region_t **behind_p)
{
    if (node == NULL) {
        *before_p = NULL;
        *behind_p = NULL;
        return;
    }

    if (uct_varuna_region_is_before(node, region)) {
        uct_varuna_region_split(node->right, region, &node->right, behind_p);
        *before_p = node;
    } else {
        uct_varuna_region_split(node->left, region, before_p, &node->left);
        *behind_p = node;
    }
    uct_varuna_region_update(node);
}

/* Join two trees; all of @a before is before @a after. */
static uct_varuna_region_t *uct_varuna_region_join(uct_varuna_region_t *before,
                                                   uct_varuna_region_t *after)
{
    if ((before == NULL) || (after == NULL)) {
        return (before == NULL) ? after : before;
    }

    if (before->priority >= after->priority) {
        before->right = uct_varuna_region_join(before->right, after);
        uct_varuna_region_update(before);
        return before;
    }

    after->left = uct_varuna_region_join(before, after->left);
    uct_varuna_region_update(after);
    return after;
}

void uct_varuna_regions_insert(uct_varuna_regions_t *regions,
                               uct_varuna_region_t *region)
{
    uct_varuna_region_t *before, *after;

    region->left     = NULL;
    region->right    = NULL;
    region->max_last = region->last;
    region->priority = uct_varuna_regions_random(regions);
    uct_varuna_region_split(regions->root, region, &before, &after);
    regions->root = uct_varuna_region_join(
            uct_varuna_region_join(before, region), after);
}

/* @return the tree without @a region, which is in it. */
static uct_varuna_region_t *
uct_varuna_region_cut(uct_varuna_region_t *node,
                      const uct_varuna_region_t *region)
{
    ucs_assert(node != NULL);
    if (node == region) {
        return uct_varuna_region_join(node->left, node->right);
    }

    if (uct_varuna_region_is_before(region, node)) {
        node->left  = uct_varuna_region_cut(node->left, region);
    } else {
        node->right = uct_varuna_region_cut(node->right, region);
    }
    uct_varuna_region_update(node);
    return node;
}

void uct_varuna_regions_remove(uct_varuna_regions_t *regions,
                               uct_varuna_region_t *region)
{
    regions->root = uct_varuna_region_cut(regions->root, region);
}

uct_varuna_region_t *
uct_varuna_regions_find(const uct_varuna_regions_t *regions, uint64_t first,
                        uint64_t last)
{
    uct_varuna_region_t *node = regions->root;

    while ((node != NULL) && (node->max_last >= last)) {
        if (node->first > first) {
            node = node->left;
        } else if (node->last >= last) {
            return node;
        } else if ((node->left != NULL) && (node->left->max_last >= last)) {
            node = node->left; /* All of it begins early enough */
        } else {
            node = node->right;
        }
    }

    return NULL;
}

static uct_varuna_region_t *
uct_varuna_region_find_match(uct_varuna_region_t *node, uint64_t first,
                             uint64_t last,
                             uct_varuna_region_match_func_t match,
                             const void *arg)
{
    uct_varuna_region_t *found;

    while ((node != NULL) && (node->max_last >= last)) {
        found = uct_varuna_region_find_match(node->left, first, last, match,
                                             arg);
        if (found != NULL) {
            return found;
        }

        if (node->first > first) {
            return NULL; /* So do all to the right of it */
        }

        if ((node->last >= last) && match(node, arg)) {
            return node;
        }

        node = node->right;
    }

    return NULL;
}

uct_varuna_region_t *
uct_varuna_regions_find_match(const uct_varuna_regions_t *regions,
                              uint64_t first, uint64_t last,
                              uct_varuna_region_match_func_t match,
                              const void *arg)
{
    return uct_varuna_region_find_match(regions->root, first, last, match, arg);
}
