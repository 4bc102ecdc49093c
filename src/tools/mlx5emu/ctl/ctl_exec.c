/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verb "exec": become a program on a host of the fabric.
 */

#include "ctl.h"
#include "../core/emu_fabric.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CTL_LIBRARY        "libmlx5emu.so"
#define CTL_EXIT_NOT_FOUND 127
#define CTL_EXIT_NOT_RUN   126

#ifndef MLX5EMU_LIBDIR
#define MLX5EMU_LIBDIR "/usr/local/lib"
#endif

/* Where the library is, relative to the directory of the command: in a build
 * tree, in libtool's directory of it, installed */
static const char *ctl_library_places[] = {
    ".libs/" CTL_LIBRARY, CTL_LIBRARY, "../lib/mlx5emu/" CTL_LIBRARY
};

#define CTL_NUM_PLACES \
    (sizeof(ctl_library_places) / sizeof(ctl_library_places[0]))


/* @return 0, or CTL_FAILED */
static int ctl_exec_find_library(char *path)
{
    char dir[PATH_MAX], place[PATH_MAX + 64];
    ssize_t len;
    unsigned i;

    len = readlink("/proc/self/exe", dir, sizeof(dir) - 1);
    if (len < 0) {
        return ctl_fail("cannot read /proc/self/exe: %s", strerror(errno));
    }

    dir[len]              = '\0';
    *strrchr(dir, '/')    = '\0';
    for (i = 0; i < CTL_NUM_PLACES; ++i) {
        snprintf(place, sizeof(place), "%s/%s", dir, ctl_library_places[i]);
        if (realpath(place, path) != NULL) {
            return 0;
        }
    }

    if (realpath(MLX5EMU_LIBDIR "/mlx5emu/" CTL_LIBRARY, path) != NULL) {
        return 0;
    }

    return ctl_fail(CTL_LIBRARY " is neither in %s/../lib/mlx5emu nor in "
                    MLX5EMU_LIBDIR "/mlx5emu: is mlx5emu installed as a"
                    " whole?", dir);
}

/* Is a path one of those in a list separated by colons or spaces? */
static int ctl_exec_listed(const char *list, const char *path)
{
    size_t len = strlen(path);
    const char *p;

    for (p = strstr(list, path); p != NULL; p = strstr(p + 1, path)) {
        if (((p == list) || strchr(": ", p[-1])) &&
            ((p[len] == '\0') || strchr(": ", p[len]))) {
            return 1;
        }
    }

    return 0;
}

static int ctl_exec_set_preload(const char *library)
{
    const char *old = getenv("LD_PRELOAD");
    char *value;
    int ret;

    if (strpbrk(library, ": ") != NULL) {
        return ctl_fail("the library's path \"%s\" contains a colon or a space,"
                        " which LD_PRELOAD cannot have: install mlx5emu"
                        " elsewhere", library);
    }

    if ((old == NULL) || (old[0] == '\0')) {
        ret = setenv("LD_PRELOAD", library, 1);
    } else if (ctl_exec_listed(old, library)) {
        return 0;
    } else {
        if (asprintf(&value, "%s:%s", library, old) < 0) {
            return ctl_fail("out of memory");
        }
        ret = setenv("LD_PRELOAD", value, 1);
        free(value);
    }

    return ret ? ctl_fail("cannot set LD_PRELOAD: %s", strerror(errno)) : 0;
}

static int ctl_exec_set_env(unsigned host)
{
    char library[PATH_MAX];
    char number[16];
    int status;

    status = ctl_exec_find_library(library);
    if (status == 0) {
        status = ctl_exec_set_preload(library);
    }

    snprintf(number, sizeof(number), "%u", host);
    if ((status == 0) && (setenv(CTL_ENV_FABRIC, ctl_fabric_name(), 1) ||
                          setenv(CTL_ENV_HOST, number, 1))) {
        status = ctl_fail("cannot set the environment: %s", strerror(errno));
    }

    return status;
}

static int ctl_exec_run(int argc, char **argv)
{
    int status = 0;
    unsigned host;
    char **command;

    if (ctl_getopt(&ctl_verb_exec, argc, argv, "+", NULL, &status) != -1) {
        return status;
    }

    command = argv + optind + 1;
    if (optind >= argc) {
        return ctl_usage_fail(&ctl_verb_exec, "no host is given");
    }

    if ((command[0] != NULL) && !strcmp(command[0], "--")) {
        ++command;
    }

    if (command[0] == NULL) {
        return ctl_usage_fail(&ctl_verb_exec, "no command is given");
    }

    status = ctl_fabric_open();
    if (status == 0) {
        status = ctl_parse_host(&ctl_verb_exec, argv[optind], &host);
        emu_fabric_close();
    }

    if (status == 0) {
        status = ctl_exec_set_env(host);
    }

    if (status != 0) {
        return status;
    }

    execvp(command[0], command);
    status = (errno == ENOENT) ? CTL_EXIT_NOT_FOUND : CTL_EXIT_NOT_RUN;
    ctl_fail("cannot run %s: %s", command[0], strerror(errno));
    return status;
}

const ctl_verb_t ctl_verb_exec = {
    .name    = "exec",
    .run     = ctl_exec_run,
    .usage   = "[-n NAME] HOST -- COMMAND [ARGUMENTS]",
    .help    = "Run a command on a host of the fabric",
    .details =
    "  -n NAME  Name of the fabric\n\n"
    "The command takes the place of mlx5emu, so its exit status is the"
    " command's.\nIt sees the emulated devices of the host, and none of this"
    " machine's.\n"
};
