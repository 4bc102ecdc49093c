/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Compares the UCX in this process with the one that we were built for: its version, the
 * build-ids of its libraries, and the sizes that it reveals: those of its classes and of
 * its tables of options. Sizes also tell if we were compiled with the headers of another
 * UCX, and they decide alone if there are no build-ids. Called when the plugin is loaded,
 * and before the inner component is used for the first time.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_compat.h"
#include "varuna_build_id.h"
#include "varuna_mlx5_ep.h"

#include <ucs/debug/log.h>
#include <ucs/sys/compiler.h>
#include <ucs/sys/string.h>
#include <ucs/type/class.h>
#include <ucs/type/init_once.h>
#include <uct/ib/base/ib_md.h>
#include <uct/ib/rc/verbs/rc_verbs.h>
#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

/* configure takes them from the libraries. A tree that is only compiled has none. */
#ifndef RC_VARUNA_BUILD_ID_UCS
#  define RC_VARUNA_BUILD_ID_UCS    ""
#endif
#ifndef RC_VARUNA_BUILD_ID_UCT
#  define RC_VARUNA_BUILD_ID_UCT    ""
#endif
#ifndef RC_VARUNA_BUILD_ID_UCT_IB
#  define RC_VARUNA_BUILD_ID_UCT_IB ""
#endif
/* mlx5 is in libuct_ib, before it was a library of its own */
#ifndef RC_VARUNA_BUILD_ID_UCT_IB_MLX5
#  define RC_VARUNA_BUILD_ID_UCT_IB_MLX5 RC_VARUNA_BUILD_ID_UCT_IB
#endif

/* A function of our libuct. Not uct_query_components(), which rc_varuna_preload.c defines, too */
#define UCT_VARUNA_UCX_IN_LIBUCT    ((void*)uct_component_register)

typedef enum {
    UCT_VARUNA_UCX_CHECK_STRICT,
    UCT_VARUNA_UCX_CHECK_VERSION,
    UCT_VARUNA_UCX_CHECK_OFF,
    UCT_VARUNA_UCX_CHECK_LAST
} uct_varuna_ucx_check_mode_t;

static const char *uct_varuna_ucx_check_names[] = {
    [UCT_VARUNA_UCX_CHECK_STRICT]  = "strict",
    [UCT_VARUNA_UCX_CHECK_VERSION] = "version",
    [UCT_VARUNA_UCX_CHECK_OFF]     = "off"
};

typedef struct {
    const char *name;
    size_t     size;
} uct_varuna_ucx_check_size_t;

#define UCT_VARUNA_UCX_CLASS(_type)    {#_type, sizeof(_type)}

/* Classes of libuct, and those of the inner transports */
static const uct_varuna_ucx_check_size_t uct_varuna_ucx_base_classes[] = {
    UCT_VARUNA_UCX_CLASS(uct_base_iface_t),
    UCT_VARUNA_UCX_CLASS(uct_base_ep_t),
    {NULL}
};

static const uct_varuna_ucx_check_size_t uct_varuna_ucx_ib_classes[] = {
    UCT_VARUNA_UCX_CLASS(uct_ib_iface_t),
    UCT_VARUNA_UCX_CLASS(uct_rc_iface_t),
    UCT_VARUNA_UCX_CLASS(uct_rc_ep_t),
    UCT_VARUNA_UCX_CLASS(uct_rc_verbs_iface_t),
    UCT_VARUNA_UCX_CLASS(uct_rc_verbs_ep_t),
    UCT_VARUNA_UCX_CLASS(uct_rc_mlx5_iface_common_t),
    UCT_VARUNA_UCX_CLASS(uct_rc_mlx5_ep_t),
    UCT_VARUNA_UCX_CLASS(uct_dc_mlx5_iface_t),
    UCT_VARUNA_UCX_CLASS(uct_dc_mlx5_ep_t),
    {NULL}
};

/* Options of transports. Those of rc_mlx5 are of a type that only UCX knows; dc_mlx5's have
 * the same parts. */
static const uct_varuna_ucx_check_size_t uct_varuna_ucx_tl_configs[] = {
    {"rc_verbs", sizeof(uct_rc_verbs_iface_config_t)},
    {"dc_mlx5", sizeof(uct_dc_mlx5_iface_config_t)},
    {NULL}
};

static uct_varuna_ucx_check_mode_t uct_varuna_ucx_check_mode = UCT_VARUNA_UCX_CHECK_STRICT;


static uct_varuna_ucx_check_mode_t uct_varuna_ucx_check_read_mode(void)
{
    const char *value = getenv(UCT_VARUNA_UCX_CHECK_VAR);
    unsigned mode;

    if (value == NULL) {
        return UCT_VARUNA_UCX_CHECK_STRICT;
    }

    for (mode = 0; mode < UCT_VARUNA_UCX_CHECK_LAST; ++mode) {
        if (!strcasecmp(value, uct_varuna_ucx_check_names[mode])) {
            return mode;
        }
    }

    ucs_warn(UCT_VARUNA_UCX_CHECK_VAR "=%s is none of strict, version and off: it counts "
             "as strict", value);
    return UCT_VARUNA_UCX_CHECK_STRICT;
}


/* --- The version ----------------------------------------------------------- */

typedef void (*uct_varuna_get_version_func_t)(unsigned *major, unsigned *minor,
                                              unsigned *patch);

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

    if (!dladdr(UCT_VARUNA_UCX_IN_LIBUCT, &info)) {
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

static int uct_varuna_ucx_check_version(void)
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


/* --- Build-ids and sizes --------------------------------------------------- */

/* @param [in] address   Of a function in the library.
 * @param [in] build_id  Of the one that we were built for, "" if it had none. */
static int uct_varuna_ucx_check_build_id(const void *address, const char *build_id)
{
    uct_varuna_build_id_t found;

    uct_varuna_build_id_find(address, &found);
    if (uct_varuna_build_id_equals(&found, build_id)) {
        return 1;
    }

    ucs_warn("rc_varuna is not available: it was built for UCX %s with build-id %s, but "
             "found %s with %s%s. " UCT_VARUNA_UCX_CHECK_ADVICE,
             UCT_VERNO_STRING, build_id, found.path,
             (found.build_id[0] == '\0') ? "none" : "build-id ", found.build_id);
    return 0;
}

static int
uct_varuna_ucx_check_size(const char *what, const char *kind, size_t built_for, size_t found)
{
    if (found == built_for) {
        return 1;
    }

    ucs_warn("rc_varuna is not available: it was built for UCX %s with %zu bytes of %s%s, "
             "but found %zu bytes. " UCT_VARUNA_UCX_CHECK_ADVICE, UCT_VERNO_STRING,
             built_for, what, kind, found);
    return 0;
}

/* Classes that the library with @a address does not show, or has not, are left out: what is
 * not there is not used. */
static int uct_varuna_ucx_check_classes(const void *address,
                                        const uct_varuna_ucx_check_size_t *sizes)
{
    int is_same = 1;
    const ucs_class_t *cls;
    char symbol[64];
    Dl_info info;
    void *lib;

    if (!dladdr(address, &info) ||
        ((lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) == NULL)) {
        return 1;
    }

    for (; (sizes->name != NULL) && is_same; ++sizes) {
        ucs_snprintf_safe(symbol, sizeof(symbol), "%s_class", sizes->name);
        cls     = dlsym(lib, symbol); /* In the libraries that it needs, too */
        is_same = (cls == NULL) ||
                  uct_varuna_ucx_check_size(sizes->name, "", sizes->size, cls->size);
    }

    dlclose(lib); /* It stays open: others use it */
    return is_same;
}

static const uct_tl_t *uct_varuna_ucx_find_tl(uct_component_h component, const char *name)
{
    const uct_tl_t *tl;

    ucs_list_for_each(tl, &component->tl_list, list) {
        if (!strcmp(tl->name, name)) {
            return tl;
        }
    }
    return NULL;
}

static int uct_varuna_ucx_check_configs(uct_component_h ib)
{
    const uct_varuna_ucx_check_size_t *sizes;
    const uct_tl_t *tl;

    for (sizes = uct_varuna_ucx_tl_configs; sizes->name != NULL; ++sizes) {
        tl = uct_varuna_ucx_find_tl(ib, sizes->name);
        if ((tl != NULL) &&
            !uct_varuna_ucx_check_size(sizes->name, "'s options", sizes->size,
                                       tl->config.size)) {
            return 0;
        }
    }

    return uct_varuna_ucx_check_size(ib->name, "'s options", sizeof(uct_ib_md_config_t),
                                     ib->md_config.size);
}

int uct_varuna_ucx_check(void)
{
    uct_varuna_ucx_check_mode = uct_varuna_ucx_check_read_mode();
    if (uct_varuna_ucx_check_mode == UCT_VARUNA_UCX_CHECK_OFF) {
        return 1;
    }

    if (!uct_varuna_ucx_check_version()) {
        return 0;
    }

    return (uct_varuna_ucx_check_mode == UCT_VARUNA_UCX_CHECK_VERSION) ||
           (uct_varuna_ucx_check_build_id(ucs_log_dispatch, RC_VARUNA_BUILD_ID_UCS) &&
            uct_varuna_ucx_check_build_id(UCT_VARUNA_UCX_IN_LIBUCT, RC_VARUNA_BUILD_ID_UCT) &&
            uct_varuna_ucx_check_classes(UCT_VARUNA_UCX_IN_LIBUCT,
                                         uct_varuna_ucx_base_classes));
}

static int uct_varuna_ucx_is_ib_same(uct_component_h ib)
{
    const uct_tl_t *mlx5 = uct_varuna_ucx_find_tl(ib, "rc_mlx5");
    /* Of the library that needs all the others */
    const void *address  = (mlx5 == NULL) ? (void*)ib->md_open : (void*)mlx5->iface_open;

    return uct_varuna_ucx_check_build_id(ib->md_open, RC_VARUNA_BUILD_ID_UCT_IB) &&
           ((mlx5 == NULL) ||
            uct_varuna_ucx_check_build_id(address, RC_VARUNA_BUILD_ID_UCT_IB_MLX5)) &&
           uct_varuna_ucx_check_classes(address, uct_varuna_ucx_ib_classes) &&
           uct_varuna_ucx_check_configs(ib);
}

int uct_varuna_ucx_check_ib(uct_component_h ib)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;
    static int is_same          = 0;

    UCS_INIT_ONCE(&once) {
        is_same = (uct_varuna_ucx_check_mode != UCT_VARUNA_UCX_CHECK_STRICT) ||
                  uct_varuna_ucx_is_ib_same(ib);
    }
    return is_same;
}
