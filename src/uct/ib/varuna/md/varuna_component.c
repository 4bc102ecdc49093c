/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The component: its memory domain, and the keys that peers send. Called by UCT;
 * iface/varuna_module.c registers it.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_component.h"
#include "varuna_md_open.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ucx/varuna_fork.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
#include <uct/ib/varuna/ucx/varuna_mlx5_dev.h>

#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
#include <string.h>


/* --- The inner component --------------------------------------------------- */

static int uct_varuna_component_has_name(uct_component_h component,
                                         const char *name)
{
    uct_component_attr_t attr;

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
    return (uct_component_query(component, &attr) == UCS_OK) &&
           !strcmp(attr.name, name);
}

/* Searched when it is needed for the first time, because it may be loaded after us.
 * @return UCS_ERR_NO_DEVICE, which is not logged, if this UCX has none. */
static ucs_status_t uct_varuna_inner_component(uct_component_h *ib_p)
{
    /* Components are never unloaded. Several threads may search at the same time, and
     * find the same one. */
    static uct_component_h volatile ib = NULL;
    uct_component_h *components;
    unsigned i, num_components;
    ucs_status_t status;

    if (ib == NULL) {
        status = uct_query_components(&components, &num_components);
        if (status != UCS_OK) {
            return status;
        }

        for (i = 0; i < num_components; ++i) {
            if (uct_varuna_component_has_name(components[i],
                                              UCT_VARUNA_INNER_COMPONENT)) {
                ib = components[i];
            }
        }
        uct_release_component_list(components);
    }

    *ib_p = ib;
    return (ib == NULL) ? UCS_ERR_NO_DEVICE : UCS_OK;
}


/* --- Component operations -------------------------------------------------- */

static ucs_status_t
uct_varuna_query_md_resources(uct_component_t *component UCS_V_UNUSED,
                              uct_md_resource_desc_t **resources_p,
                              unsigned *num_resources_p)
{
    uct_md_resource_desc_t *resource;
    uct_component_attr_t attr;
    uct_component_h ib;

    if (uct_varuna_ucx_fork_renew() != UCS_OK) {
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    attr.field_mask = UCT_COMPONENT_ATTR_FIELD_MD_RESOURCE_COUNT;
    if ((uct_varuna_inner_component(&ib) != UCS_OK) ||
        (uct_component_query(ib, &attr) != UCS_OK) ||
        (attr.md_resource_count == 0)) {
        ucs_debug("no InfiniBand or RoCE device: rc_varuna is not available");
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    if (!uct_varuna_ucx_check_ib(ib)) {
        return uct_md_query_empty_md_resource(resources_p, num_resources_p);
    }

    resource = ucs_calloc(1, sizeof(*resource), "varuna_md_resource");
    if (resource == NULL) {
        ucs_error("failed to allocate a memory domain resource");
        return UCS_ERR_NO_MEMORY;
    }

    ucs_strncpy_zero(resource->md_name, UCT_VARUNA_MD_NAME,
                     sizeof(resource->md_name));
    *resources_p     = resource;
    *num_resources_p = 1;
    return UCS_OK;
}

static ucs_status_t
uct_varuna_md_open(uct_component_t *component, const char *md_name,
                   const uct_md_config_t *config, uct_md_h *md_p)
{
    uct_varuna_md_t *md;
    uct_component_h ib;
    ucs_status_t status;

    ucs_debug("opening memory domain %s", md_name);
    status = uct_varuna_inner_component(&ib);
    if (status != UCS_OK) {
        return status;
    }

    if (!uct_varuna_ucx_check_ib(ib)) {
        return UCS_ERR_UNSUPPORTED;
    }

    status = uct_varuna_md_create(component, ib,
                                  ucs_derived_of(config,
                                                 uct_varuna_md_config_t),
                                  md_p);
    if (status == UCS_OK) {
        uct_varuna_ucx_fork_get();
        md                = ucs_derived_of(*md_p, uct_varuna_md_t);
        md->is_dead       = uct_varuna_mlx5_is_md_dead;
        md->answers       = uct_varuna_mlx5_port_answers;
        md->rests_at_fork = 1;
    }
    return status;
}

static ucs_status_t uct_varuna_component_rkey_unpack(const void *rkey_buffer,
                                                     uct_rkey_t *rkey_p,
                                                     void **handle_p)
{
    uct_varuna_rkey_t *rkey;
    ucs_status_t status;
    uct_component_h ib;

    status = uct_varuna_inner_component(&ib);
    if (status != UCS_OK) {
        ucs_error("can't unpack a remote key without UCX's component '%s'",
                  UCT_VARUNA_INNER_COMPONENT);
        return status;
    }

    status = uct_varuna_rkey_unpack(ib, rkey_buffer, &rkey);
    if (status != UCS_OK) {
        return status;
    }

    *rkey_p   = (uct_rkey_t)rkey;
    *handle_p = NULL;
    return UCS_OK;
}

UCT_VARUNA_COMPAT_RKEY_UNPACK(uct_varuna_component_rkey_unpack_op,
                              uct_varuna_component_rkey_unpack)

static ucs_status_t
uct_varuna_component_rkey_release(uct_component_t *component UCS_V_UNUSED,
                                  uct_rkey_t rkey, void *handle UCS_V_UNUSED)
{
    ucs_status_t status;
    uct_component_h ib;

    status = uct_varuna_inner_component(&ib);
    if (status == UCS_OK) {
        uct_varuna_rkey_release(ib, (uct_varuna_rkey_t*)rkey);
    }
    return status;
}

uct_component_t uct_varuna_component = {
    .query_md_resources = uct_varuna_query_md_resources,
    .md_open            = uct_varuna_md_open,
    .cm_open            = (void*)ucs_empty_function_return_unsupported,
    .rkey_unpack        = uct_varuna_component_rkey_unpack_op,
    .rkey_ptr           = (void*)ucs_empty_function_return_unsupported,
    .rkey_release       = uct_varuna_component_rkey_release,
    UCT_VARUNA_COMPAT_COMPONENT_OPS
    .name               = UCT_VARUNA_COMPONENT_NAME,
    .md_config          = {
        .name           = "Varuna memory domain",
        .prefix         = UCT_VARUNA_CONFIG_PREFIX,
        .table          = uct_varuna_md_config_table,
        .size           = sizeof(uct_varuna_md_config_t),
    },
    .cm_config          = UCS_CONFIG_EMPTY_GLOBAL_LIST_ENTRY,
    .tl_list            = UCT_COMPONENT_TL_LIST_INITIALIZER(
                                  &uct_varuna_component),
    .flags              = 0,
    .md_vfs_init        = (void*)ucs_empty_function
};
