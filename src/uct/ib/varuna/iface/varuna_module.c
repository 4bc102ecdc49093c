/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Registers the component and the transport with UCX when the library is loaded, by
 * UCX's module loader or by LD_PRELOAD, if UCX has the version that it was built for.
 * Called by the dynamic linker.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_fork.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/md/varuna_component.h>

#include <ucs/debug/log.h>
#include <ucs/sys/string.h>
#include <uct/base/uct_iface.h>
#include <dlfcn.h>
#include <limits.h>
#include <string.h>

typedef void (*uct_varuna_get_version_func_t)(unsigned *major, unsigned *minor,
                                              unsigned *patch);

extern uct_tl_t UCT_TL_NAME(rc_varuna); /* varuna_iface.c */

static int uct_varuna_is_registered = 0;

/*
 * Only libucp reports UCX's version. Use the one that belongs to our libuct, by its
 * path, because a process may contain several UCX.
 */
static uct_varuna_get_version_func_t
uct_varuna_find_get_version(const char **libuct_path_p)
{
    static const char libuct[] = "libuct";
    char path[PATH_MAX];
    const char *name;
    Dl_info info;
    void *libucp;

    if (!dladdr((void*)uct_query_components, &info)) {
        return NULL;
    }

    *libuct_path_p = info.dli_fname;
    name           = ucs_basename(info.dli_fname);
    if (strncmp(name, libuct, sizeof(libuct) - 1)) {
        return NULL;
    }

    snprintf(path, sizeof(path), "%.*slibucp%s", (int)(name - info.dli_fname),
             info.dli_fname, name + sizeof(libuct) - 1);
    /* It stays loaded: it has registered its options with UCS */
    libucp = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    if (libucp == NULL) {
        return NULL;
    }

    return (uct_varuna_get_version_func_t)dlsym(libucp, "ucp_get_version");
}

/* UCX's internal structures differ between versions, so nothing may be registered with
 * another version than the one we were compiled for. */
static int uct_varuna_check_runtime(void)
{
    uct_varuna_get_version_func_t get_version;
    const char *libuct_path = "libuct";
    unsigned major, minor, patch;

    get_version = uct_varuna_find_get_version(&libuct_path);
    if (get_version == NULL) {
        ucs_error("rc_varuna is not available: it was built for UCX %s, and can't"
                  " determine the version of %s, because there is no libucp next to it",
                  UCT_VERNO_STRING, libuct_path);
        return 0;
    }

    get_version(&major, &minor, &patch);
    if ((major != UCT_VERNO_MAJOR) || (minor != UCT_VERNO_MINOR) ||
        (patch != UCT_VERNO_PATCH)) {
        ucs_error("rc_varuna is not available: it was built for UCX %s, but %s "
                  "is of UCX %u.%u.%u. Build rc_varuna for that version",
                  UCT_VERNO_STRING, libuct_path, major, minor, patch);
        return 0;
    }

    return 1;
}

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
    if (!uct_varuna_check_runtime() || uct_varuna_is_loaded_already()) {
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
