/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The object that rc_varuna_run preloads. It opens the plugin in processes that use the UCX
 * that it was built for, and does nothing in others. So it needs no UCX itself: the
 * environment passes it on to shells, and to Python, whose packages bring a UCX of their
 * own. If these had the plugin, it would add the system's UCX to them.
 *
 * It takes the place of uct_query_components(), which a UCX calls before it has looked for
 * transports:
 *
 *     program -> libucp -> uct_query_components() here -> that of the caller's libuct
 *                                  |
 *                                  +-- if this libuct is ours: dlopen(plugin), which
 *                                      registers the transport with it
 *
 * The dynamic linker binds all callers to us, because it searches what was preloaded
 * first, also for libraries that a program opens for itself alone (RTLD_LOCAL). Who opens
 * its UCX with RTLD_DEEPBIND, or looks up uct_query_components() in its libuct by
 * dlsym(), has no plugin.
 *
 * There is no lock here: another thread may hold that of the dynamic linker, and wait for
 * ours.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include <uct/api/uct.h>
#include <uct/ib/varuna/ucx/varuna_build_id.h>

#include <dlfcn.h>
#include <link.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#ifndef RC_VARUNA_BUILD_ID_UCT
#  define RC_VARUNA_BUILD_ID_UCT ""
#endif

#define PRELOAD_FUNCTION    "uct_query_components"
#define PRELOAD_LIBUCT      "libuct.so.0" /* What the plugin is linked with */
#define PRELOAD_PLUGIN      "libuct_varuna.so.0"
#define PRELOAD_PLUGIN_VAR  "RC_VARUNA_PLUGIN"

typedef ucs_status_t (*preload_func_t)(uct_component_h **components_p,
                                       unsigned *num_components_p);

/* Another libuct of the process */
typedef struct {
    const char *known; /* Path of the one that is known */
    char       path[PATH_MAX];
} preload_other_t;


/* Tell it once for each @a subject. */
static void __attribute__((format(printf, 2, 3)))
preload_warn(const void *subject, const char *format, ...)
{
    static const void *told[8]; /* More are told again */
    const void *expected;
    va_list ap;
    size_t i;

    for (i = 0; i < sizeof(told) / sizeof(told[0]); ++i) {
        expected = NULL;
        if (__atomic_compare_exchange_n(&told[i], &expected, subject, 0, __ATOMIC_RELAXED,
                                        __ATOMIC_RELAXED)) {
            break;
        } else if (expected == subject) {
            return;
        }
    }

    flockfile(stderr);
    fputs("rc_varuna_preload: WARN ", stderr);
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fputc('\n', stderr);
    funlockfile(stderr);
}

/*
 * What the dynamic linker would have found for the caller without us: the next definition
 * for all, if the program is linked with a UCX, or else that of the libraries that the
 * caller is linked with.
 */
static preload_func_t preload_find_next(const void *caller)
{
    void *next = dlsym(RTLD_NEXT, PRELOAD_FUNCTION);
    Dl_info info;
    void *lib;

    if ((next == NULL) && dladdr(caller, &info) &&
        ((lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) != NULL)) {
        next = dlsym(lib, PRELOAD_FUNCTION);
        dlclose(lib);
    }
    return (preload_func_t)next;
}

/*
 * Whether the plugin would be linked with the libuct of @a next. It is by name: not with one
 * that was renamed, and not with the second one of a name.
 */
static int preload_has_name(preload_func_t next)
{
    void *lib = dlopen(PRELOAD_LIBUCT, RTLD_LAZY | RTLD_NOLOAD);
    int found;

    if (lib == NULL) {
        return 0;
    }

    found = (dlsym(lib, PRELOAD_FUNCTION) == (void*)next);
    dlclose(lib);
    return found;
}

/* The plugin compares the rest: libucs, versions, sizes, other libraries */
static int preload_has_build_id(const uct_varuna_build_id_t *libuct)
{
    const char *mode = getenv(UCT_VARUNA_UCX_CHECK_VAR);

    return uct_varuna_build_id_equals(libuct, RC_VARUNA_BUILD_ID_UCT) ||
           ((mode != NULL) && (!strcasecmp(mode, "version") || !strcasecmp(mode, "off")));
}

/* libuct.so.0, libuct-3f2a.so.0.0.0, but not libuct_ib.so.0 */
static int preload_visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    preload_other_t *other = arg;
    const char *name       = strrchr(info->dlpi_name, '/');

    name = (name == NULL) ? info->dlpi_name : name + 1;
    if (strncmp(name, "libuct", 6) || ((name[6] != '.') && (name[6] != '-')) ||
        !strcmp(info->dlpi_name, other->known)) {
        return 0;
    }

    snprintf(other->path, sizeof(other->path), "%s", info->dlpi_name);
    return 1;
}

/* The plugin that the user has named, or the one next to us */
static void preload_open_plugin(preload_func_t next)
{
    const char *plugin = getenv(PRELOAD_PLUGIN_VAR);
    char path[PATH_MAX];
    const char *name;
    Dl_info self;

    if ((plugin == NULL) && dladdr((void*)preload_open_plugin, &self) &&
        ((name = strrchr(self.dli_fname, '/')) != NULL)) {
        snprintf(path, sizeof(path), "%.*s/" PRELOAD_PLUGIN, (int)(name - self.dli_fname),
                 self.dli_fname);
        plugin = path;
    }

    /* If it is open already, this only counts */
    if ((plugin == NULL) || (dlopen(plugin, RTLD_LAZY | RTLD_LOCAL) == NULL)) {
        preload_warn(next, "rc_varuna is not available: %s", dlerror());
    }
}

/* Called each time, because a second UCX may have come */
static void preload_judge(preload_func_t next)
{
    preload_other_t other = {.path = ""};
    char second[PATH_MAX + 64] = "";
    uct_varuna_build_id_t libuct;

    uct_varuna_build_id_find((void*)next, &libuct);
    other.known = libuct.path;
    if (dl_iterate_phdr(preload_visit, &other)) {
        snprintf(second, sizeof(second), ". This process has a second UCX: %s", other.path);
    }

    if (!preload_has_name(next)) {
        preload_warn(next, "rc_varuna is not available in %s: it is linked with "
                     PRELOAD_LIBUCT ", which is another library or none%s", libuct.path, second);
    } else if (!preload_has_build_id(&libuct)) {
        preload_warn(next, "rc_varuna is not available: it was built for UCX " UCT_VERNO_STRING
                     " with build-id %s, but found %s with %s%s. "
                     UCT_VARUNA_UCX_CHECK_ADVICE "%s", RC_VARUNA_BUILD_ID_UCT, libuct.path,
                     (libuct.build_id[0] == '\0') ? "none" : "build-id ", libuct.build_id,
                     second);
    } else {
        preload_open_plugin(next);
        if (second[0] != '\0') {
            preload_warn(next, "rc_varuna is available in %s alone%s", libuct.path, second);
        }
    }
}

ucs_status_t uct_query_components(uct_component_h **components_p, unsigned *num_components_p)
{
    preload_func_t next = preload_find_next(__builtin_return_address(0));

    if (next == NULL) {
        preload_warn(preload_warn, "there is no libuct for a caller of " PRELOAD_FUNCTION "()");
        return UCS_ERR_NO_ELEM;
    }

    preload_judge(next);
    return next(components_p, num_components_p);
}
