/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory domain: opens the inner memory domain of every link's NIC, registers
 * each user region on all of them, and packs one key per NIC (paper, section
 * "Memory Management"). Nothing here depends on which link is up.
 */
#ifndef UCT_VARUNA_MD_H_
#define UCT_VARUNA_MD_H_

#include "varuna_nic.h"
#include <uct/ib/varuna/core/varuna_regions.h>
#include "varuna_rkey.h"

#include <pthread.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>

extern uct_component_t uct_varuna_component;

/* The transport: defined by varuna_iface.c (UCT_TL_DEFINE_ENTRY), registered
 * together with the component by varuna_component.c and nowhere else, as
 * nothing may be registered with an UCX which we weren't built for. */
extern uct_tl_t UCT_TL_NAME(rc_varuna);

extern ucs_config_field_t uct_varuna_md_config_table[];

extern const char *uct_varuna_atomic_mode_names[];

/** @return Nonzero if the NIC of an inner memory domain is gone for good. */
typedef int (*uct_varuna_md_is_dead_func_t)(uct_md_h md);

/* Local handle: inner handles by NIC index. */
struct uct_varuna_mem {
    void                       *address;
    size_t                     length;
    uct_varuna_region_t        region;    /* In md->shared, if is_shared */
    int                        is_shared; /* A key of it was packed */
    unsigned                   num_nics;
    uct_mem_h                  inner[UCT_VARUNA_MAX_LINKS]; /* NULL if the NIC
                                                               is no link */
};

typedef struct uct_varuna_md_config {
    uct_md_config_t            super;
    UCS_CONFIG_STRING_ARRAY_FIELD(names) links; /* UCX_RC_VARUNA_LINKS */
    double                     port_wait;       /* Seconds */
    unsigned                   atomic_mode;
} uct_varuna_md_config_t;

struct uct_varuna_md {
    uct_md_t                   super;
    uct_component_h            ib;        /* Inner component */
    unsigned                   num_nics;
    /* In canonical order (by device name), so that NIC k of one host is NIC k of
     * another, whatever links each was told to use. Two ports of one device have
     * two entries which share the md handle. */
    uct_varuna_nic_t           nics[UCT_VARUNA_MAX_LINKS];
    /* NIC indices by priority: the configured order, else canonical. Only
     * these NICs have an open md. */
    unsigned                   num_links;
    uint8_t                    links[UCT_VARUNA_MAX_LINKS];
    unsigned                   num_primaries; /* The first of them are shown as
                                                 devices of the transport */
    struct {
        uint8_t                is_set;    /* Over RETURN_PRIMARY */
        uint8_t                does_return;
        double                 delay;     /* Seconds */
    } return_policy;                      /* From the file of links */
    uct_varuna_atomic_mode_t   atomic_mode;
    uct_varuna_md_is_dead_func_t is_dead; /* NULL: NICs never die */
    void                       *spare_page; /* What spares have registered */
    pthread_mutex_t            lock;      /* Protects the tree of regions, and
                                             making spares */
    uct_varuna_regions_t       shared;    /* uct_varuna_mem_t, see
                                             varuna_md_share.c */
    uct_md_attr_t              attr;      /* What all links can do */
};

/** @return Inner memory handle of @a memh for @a nic, NULL-safe
 *  (UCT_MEM_HANDLE_NULL stays so). */
static inline uct_mem_h uct_varuna_mem_inner(uct_mem_h memh, unsigned nic)
{
    return (memh == UCT_MEM_HANDLE_NULL) ? UCT_MEM_HANDLE_NULL :
           ((uct_varuna_mem_t*)memh)->inner[nic];
}

/**
 * Open a memory domain over those of the links.
 *
 * A NIC that dies is left out of all later registrations, as its links are dead as
 * well. Then keys are packed without it.
 *
 * @param [in]  component  Our component.
 * @param [in]  ib         Inner component.
 * @param [in]  config     Which NICs are links.
 * @param [out] md_p       Memory domain, to be closed by uct_md_close().
 *
 * @return UCS_ERR_NO_DEVICE if no NIC can be a link; it is logged only if one
 *         was asked for by name.
 */
ucs_status_t uct_varuna_md_create(uct_component_t *component,
                                  uct_component_h ib,
                                  const uct_varuna_md_config_t *config,
                                  uct_md_h *md_p);

/* uct_tl_t::query_devices, used by varuna_iface.c. */
ucs_status_t uct_varuna_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

#endif
