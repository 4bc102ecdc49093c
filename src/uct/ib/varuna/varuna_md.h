/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory domain: opens the inner memory domain of every NIC, registers each
 * user region on all of them, and packs one key per NIC (paper, section "Memory
 * Management"). Nothing here depends on which link is up.
 */
#ifndef UCT_VARUNA_MD_H_
#define UCT_VARUNA_MD_H_

#include "varuna_def.h"

#include <uct/base/uct_component.h>
#include <uct/base/uct_md.h>

extern uct_component_t uct_varuna_component;

/* Local handle: inner handles by NIC index. */
struct uct_varuna_mem {
    unsigned                   num_nics;
    uct_mem_h                  inner[UCT_VARUNA_MAX_LINKS];
};

/* Unpacked remote key: inner keys by NIC index of the *remote* host. */
struct uct_varuna_rkey {
    unsigned                   num_keys;
    uct_rkey_bundle_t          inner[UCT_VARUNA_MAX_LINKS];
};

/* One NIC port which has both rc_mlx5 and dc_mlx5. */
typedef struct uct_varuna_nic {
    uct_md_h                   md;        /* Inner memory domain */
    uct_md_attr_t              md_attr;
    char                       md_name[UCT_MD_NAME_MAX];
    char                       dev_name[UCT_DEVICE_NAME_MAX]; /* "mlx5_0:1" */
    ucs_sys_device_t           sys_device;
} uct_varuna_nic_t;

typedef struct uct_varuna_md_config {
    uct_md_config_t            super;
    UCS_CONFIG_STRING_ARRAY_FIELD(names) links; /* UCX_RC_VARUNA_LINKS */
} uct_varuna_md_config_t;

struct uct_varuna_md {
    uct_md_t                   super;
    uct_component_h            ib;        /* Inner component */
    unsigned                   num_nics;
    /* In canonical order (by device name), so that NIC k of one host is NIC k of
     * another; two ports of one device have two entries which share the md
     * handle only if they are opened from one md. */
    uct_varuna_nic_t           nics[UCT_VARUNA_MAX_LINKS];
    /* NIC indices by priority: the configured order, else canonical. */
    unsigned                   num_links;
    uint8_t                    links[UCT_VARUNA_MAX_LINKS];
    size_t                     key_size;  /* Largest inner packed key */
};

/** @return Inner memory handle of @a memh for @a nic, NULL-safe
 *  (UCT_MEM_HANDLE_NULL stays so). */
static inline uct_mem_h uct_varuna_mem_inner(uct_mem_h memh, unsigned nic)
{
    return (memh == UCT_MEM_HANDLE_NULL) ? UCT_MEM_HANDLE_NULL :
           ((uct_varuna_mem_t*)memh)->inner[nic];
}

/** @return Inner remote key for the remote host's @a nic, UCT_INVALID_RKEY if
 *  the peer registered the memory on no such NIC. */
static inline uct_rkey_t uct_varuna_rkey_inner(uct_rkey_t rkey, unsigned nic)
{
    const uct_varuna_rkey_t *vrkey = (const uct_varuna_rkey_t*)rkey;

    return ucs_likely(nic < vrkey->num_keys) ? vrkey->inner[nic].rkey :
           UCT_INVALID_RKEY;
}

/* uct_tl_t::query_devices, used by varuna_iface.c. */
ucs_status_t uct_varuna_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

#endif
