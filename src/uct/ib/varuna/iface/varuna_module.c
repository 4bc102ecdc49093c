/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Registers the component and the transport with UCX when the library is loaded, by
 * rc_varuna_preload.c or by UCX's module loader, if UCX is the one that it was built for.
 * And what a child of fork() forgets.
 * Called by the dynamic linker.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_admin.h"
#include "varuna_tl_iface.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/ucx/varuna_fork.h>
#include <uct/ib/varuna/ucx/varuna_verbs.h>

#include <ucs/debug/log.h>
#include <uct/base/uct_iface.h>
#include <string.h>
#include <pthread.h>

/* --- Children of fork() --- */

/* A child can open interfaces of its own; what it has inherited is the parent's, and the child
 * only forgets it. Here is the list of all that a process has once, whichever interface uses
 * it. */

/* Locks, lists of the parent's objects, and descriptors that others would take for ours. The
 * queues of commands to NICs (md/varuna_cmd.c) know their process by themselves: there is one
 * for each NIC. */
static void uct_varuna_fork_child(void)
{
    uct_varuna_ucx_fork_child();
    uct_varuna_admin_forked();
    uct_varuna_admin_sock_forked();
    uct_varuna_modes_forked();
    uct_varuna_verbs_fence_forked();
    uct_varuna_rkeys_fork_end();
}

static void uct_varuna_fork_prepare(void)
{
    uct_varuna_ucx_fork_prepare();
    uct_varuna_rkeys_fork_prepare();
}

static void uct_varuna_fork_parent(void)
{
    uct_varuna_rkeys_fork_end();
    uct_varuna_ucx_fork_parent();
}

/* The library was loaded: handle each fork() from now on */
static void uct_varuna_fork_init(void)
{
    int ret = pthread_atfork(uct_varuna_fork_prepare, uct_varuna_fork_parent,
                             uct_varuna_fork_child);

    if (ret != 0) {
        ucs_warn("rc_varuna: forked processes must not use UCX: %s", strerror(ret));
    }
}

/* --- Registration --- */

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
