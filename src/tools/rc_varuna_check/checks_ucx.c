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

#include <dlfcn.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>

#define CHECK_UCX_ID_MAX 128 /* Characters */


typedef struct {
    const char *name;     /* Of the file */
    const char *built_for;
    int        is_module; /* UCX loads it from the directory "ucx" */
} check_ucx_lib_t;

typedef struct {
    const char *name;
    char       path[PATH_MAX];
    char       id[CHECK_UCX_ID_MAX];
} check_ucx_found_t;

typedef void (*check_ucx_version_func_t)(unsigned *major, unsigned *minor,
                                         unsigned *patch);


/* The build-id among the notes of a segment */
static void check_ucx_read_id(const char *notes, size_t length, char *id)
{
    const ElfW(Nhdr) *note;
    const char *name;
    size_t offset, i;

    for (offset = 0; offset + sizeof(*note) <= length;
         offset += sizeof(*note) + ((note->n_namesz + 3) & ~3u) +
                   ((note->n_descsz + 3) & ~3u)) {
        note = (const ElfW(Nhdr)*)(notes + offset);
        name = (const char*)(note + 1);
        if ((note->n_type != NT_GNU_BUILD_ID) || strcmp(name, ELF_NOTE_GNU) ||
            (2 * note->n_descsz >= CHECK_UCX_ID_MAX)) {
            continue;
        }

        for (i = 0; i < note->n_descsz; ++i) {
            sprintf(id + (2 * i), "%02x",
                    (unsigned char)name[((note->n_namesz + 3) & ~3u) + i]);
        }
        return;
    }
}

/* Called for each library. @return Whether it is the one that is looked for */
static int check_ucx_visit(struct dl_phdr_info *info, size_t size, void *arg)
{
    check_ucx_found_t *found = arg;
    const char *name         = strrchr(info->dlpi_name, '/');
    unsigned i;

    (void)size;
    if (strcmp((name == NULL) ? info->dlpi_name : name + 1, found->name)) {
        return 0;
    }

    snprintf(found->path, sizeof(found->path), "%s", info->dlpi_name);
    for (i = 0; i < info->dlpi_phnum; ++i) {
        if (info->dlpi_phdr[i].p_type == PT_NOTE) {
            check_ucx_read_id((const char*)info->dlpi_addr + info->dlpi_phdr[i].p_vaddr,
                              info->dlpi_phdr[i].p_memsz, found->id);
        }
    }
    return 1;
}

static void check_ucx_find(const char *name, check_ucx_found_t *found)
{
    memset(found, 0, sizeof(*found));
    found->name = name;
    dl_iterate_phdr(check_ucx_visit, found);
}

/* Modules are next to libuct */
static void check_ucx_load(const char *name)
{
    char path[PATH_MAX + 64];
    check_ucx_found_t uct;

    check_ucx_find("libuct.so.0", &uct);
    snprintf(path, sizeof(path), "%.*s/ucx/%s",
             (int)(strlen(uct.path) - strlen("/libuct.so.0")), uct.path, name);
    (void)dlopen(path, RTLD_LAZY | RTLD_LOCAL);
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
    check_ucx_found_t found;
    unsigned i;

    for (i = 0; i < sizeof(libs) / sizeof(libs[0]); ++i) {
        if (libs[i].built_for[0] == '\0') {
            continue;
        }

        if (libs[i].is_module) {
            check_ucx_load(libs[i].name);
        }

        check_ucx_find(libs[i].name, &found);
        if (strcmp(found.id, libs[i].built_for)) {
            is_same = 0;
            check_row(run, "ucx-build", CHECK_FAIL, "host", "%s has build-id %.12s, and "
                      "rc_varuna was built for %.12s", (found.path[0] != '\0') ? found.path :
                      libs[i].name, (found.id[0] != '\0') ? found.id : "none",
                      libs[i].built_for);
        }
    }

    return is_same;
}

void check_ucx_build(check_run_t *run)
{
    unsigned major = 0, minor = 0, patch = 0;
    check_ucx_version_func_t get_version = NULL;
    void *ucp = dlopen("libucp.so.0", RTLD_LAZY | RTLD_LOCAL);
    check_ucx_found_t found;

    if (ucp != NULL) {
        get_version = (check_ucx_version_func_t)dlsym(ucp, "ucp_get_version");
    }

    if (get_version == NULL) {
        check_row(run, "ucx-build", CHECK_NOTE, "host",
                  "the dynamic linker finds no UCX here (LD_LIBRARY_PATH)");
        return;
    }

    get_version(&major, &minor, &patch);
    check_ucx_find("libucp.so.0", &found);
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
