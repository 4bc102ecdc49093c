/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opens the inner memory domain of every link's NIC. Each user region is registered on
 * all of them, and one key per NIC is packed (paper, section "Memory Management").
 * Nothing here depends on which link is up.
 */
#ifndef UCT_VARUNA_MD_OPEN_H_
#define UCT_VARUNA_MD_OPEN_H_

#include "varuna_md.h"

#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>

typedef struct uct_varuna_md_config {
    uct_md_config_t            super;
    UCS_CONFIG_STRING_ARRAY_FIELD(names) links; /* UCX_RC_VARUNA_LINKS */
    unsigned                   lanes;           /* uct_varuna_lanes_names */
    unsigned                   atomic_mode;
    int                        dmabuf;          /* ucs_ternary_auto_value_t */
    char                       *ucx_check; /* For UCX's list of options: varuna_ucx_check.c
                                            * has read it before */
    unsigned long              vqp_links;
} uct_varuna_md_config_t;

extern ucs_config_field_t uct_varuna_md_config_table[];

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

/**
 * Attributes of a memory domain without NICs, which are to be added. They differ from ib's
 * where we do less: only memory of the host is registered at its address, unless NICs are found to
 * do more, and no range of all addresses (GVA), as a key belongs to a region. None is allocated, none is detected, and keys
 * are not exported.
 *
 * @param [out] attr   Attributes.
 * @param [in]  flags  UCT_MD_FLAG_xx that were asked for besides the usual ones.
 */
void uct_varuna_md_attr_init(uct_varuna_md_attr_t *attr, uint64_t flags);

/** Restrict attributes to what an inner memory domain can do, and add its costs. */
void uct_varuna_md_attr_add(uct_varuna_md_attr_t *attr, const uct_varuna_md_attr_t *inner);

/** As uct_tl_t::query_devices. */
ucs_status_t uct_varuna_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

#endif
