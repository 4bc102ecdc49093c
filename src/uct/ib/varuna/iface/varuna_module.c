/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Registers the component and the transport with UCX when the library is loaded, by
 * rc_varuna_preload.c or by UCX's module loader, if UCX is the one that it was built for.
 * Called by the dynamic linker.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fork.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/debug/log.h>
#include <uct/base/uct_iface.h>
#include <string.h>

extern uct_tl_t UCT_TL_NAME(rc_varuna); /* varuna_iface.c */

static int uct_varuna_is_registered = 0;

/* The library may be loaded twice, from different paths. */
static int uct_varuna_is_loaded_already(void)
{
    uct_component_t *component;

    ucs_list_for_each(component, &uct_components_list, list) {
        if (!strcmp(component->name, UCT_VARUNA_COMPONENT_NAME)) {
            ucs_debug("component %s is registered already", component->name);
            return 1;
        }
    }
    return 0;
}

UCS_F_CTOR static void uct_varuna_init(void)
{
    if (!uct_varuna_ucx_check() || uct_varuna_is_loaded_already()) {
        return;
    }

    uct_varuna_fork_init();
    uct_component_register(&uct_varuna_component);
    uct_tl_register(&uct_varuna_component, &UCT_TL_NAME(rc_varuna));
    uct_varuna_is_registered = 1;
}

UCS_F_DTOR static void uct_varuna_cleanup(void)
{
    if (uct_varuna_is_registered) {
        uct_tl_unregister(&UCT_TL_NAME(rc_varuna));
        uct_component_unregister(&uct_varuna_component);
    }
}
