/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which UCX the dynamic linker maps for a program, and whether rc_varuna was built for it. It is
 * loaded, and nothing of it is called but for its version.
 */
#include "check_def.h"

#include "check_ucx_ids.h"

/* Those that configure has not found, or that have none */
#ifndef RC_VARUNA_BUILD_ID_UCS
#  define RC_VARUNA_BUILD_ID_UCS ""
#endif
#ifndef RC_VARUNA_BUILD_ID_UCT
#  define RC_VARUNA_BUILD_ID_UCT ""
#endif
#ifndef RC_VARUNA_BUILD_ID_UCT_IB
#  define RC_VARUNA_BUILD_ID_UCT_IB ""
#endif
#ifndef RC_VARUNA_BUILD_ID_UCT_IB_MLX5
#  define RC_VARUNA_BUILD_ID_UCT_IB_MLX5 "" /* A part of libuct_ib then */
#endif

#include <uct/ib/varuna/ucx/varuna_build_id.h>
#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <string.h>


typedef struct {
    const char *name;     /* Of the file */
    const char *built_for;
    int        is_module; /* In the directory "ucx" next to libuct */
} check_ucx_lib_t;

typedef void (*check_ucx_version_func_t)(unsigned *major, unsigned *minor,
                                         unsigned *patch);


/* Load a library, and read its build-id. @return 0, or -1 if it cannot be loaded */
static int check_ucx_find(const char *path, uct_varuna_build_id_t *found)
{
    void *lib = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    struct link_map *map;

    memset(found, 0, sizeof(*found));
    if ((lib == NULL) || (dlinfo(lib, RTLD_DI_LINKMAP, &map) != 0)) {
        snprintf(found->path, sizeof(found->path), "%.*s", PATH_MAX - 1, path);
        return -1;
    }

    uct_varuna_build_id_find(map->l_ld, found);
    return 0;
}

static void check_ucx_find_lib(const check_ucx_lib_t *lib, uct_varuna_build_id_t *found)
{
    static const char libuct[] = "libuct.so.0";
    char path[2 * PATH_MAX];

    if (lib->is_module && (check_ucx_find(libuct, found) == 0)) {
        snprintf(path, sizeof(path), "%.*sucx/%s",
                 (int)(strlen(found->path) - strlen(strrchr(found->path, '/')) + 1),
                 found->path, lib->name);
    } else {
        snprintf(path, sizeof(path), "%s", lib->name);
    }

    (void)check_ucx_find(path, found);
}

/* @return Whether no library is another one */
static int check_ucx_ids(check_run_t *run)
{
    static const check_ucx_lib_t libs[] = {
        {"libucs.so.0", RC_VARUNA_BUILD_ID_UCS, 0},
        {"libuct.so.0", RC_VARUNA_BUILD_ID_UCT, 0},
        {"libuct_ib.so.0", RC_VARUNA_BUILD_ID_UCT_IB, 1},
        {"libuct_ib_mlx5.so.0", RC_VARUNA_BUILD_ID_UCT_IB_MLX5, 1}
    };
    int is_same = 1;
    uct_varuna_build_id_t found;
    unsigned i;

    for (i = 0; i < sizeof(libs) / sizeof(libs[0]); ++i) {
        if (libs[i].built_for[0] == '\0') {
            continue;
        }

        check_ucx_find_lib(&libs[i], &found);
        if (!uct_varuna_build_id_equals(&found, libs[i].built_for)) {
            is_same = 0;
            check_row(run, "ucx-build", CHECK_FAIL, "host", "%.150s has build-id %.12s, and "
                      "rc_varuna was built for %.12s", found.path,
                      (found.build_id[0] != '\0') ? found.build_id : "none",
                      libs[i].built_for);
        }
    }

    return is_same;
}

void check_ucx_build(check_run_t *run)
{
    void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
    check_ucx_version_func_t get_version;
    unsigned major, minor, patch;
    uct_varuna_build_id_t found;

    get_version = (ucp == NULL) ? NULL :
                  (check_ucx_version_func_t)dlsym(ucp, "ucp_get_version");
    if (get_version == NULL) {
        check_row(run, "ucx-build", CHECK_NOTE, "host",
                  "the dynamic linker finds no UCX here (LD_LIBRARY_PATH)");
        return;
    }

    get_version(&major, &minor, &patch);
    (void)check_ucx_find("libucp.so.0", &found);
    if ((major != RC_VARUNA_UCX_MAJOR) || (minor != RC_VARUNA_UCX_MINOR) ||
        (patch != RC_VARUNA_UCX_PATCH)) {
        check_row(run, "ucx-build", CHECK_FAIL, "host",
                  "%.150s is of UCX %u.%u.%u, and rc_varuna was built for %u.%u.%u",
                  found.path, major, minor, patch, RC_VARUNA_UCX_MAJOR,
                  RC_VARUNA_UCX_MINOR, RC_VARUNA_UCX_PATCH);
    } else if (check_ucx_ids(run)) {
        check_row(run, "ucx-build", CHECK_OK, "host",
                  "%.150s is of UCX %u.%u.%u, for which rc_varuna was built", found.path,
                  major, minor, patch);
    }
}
