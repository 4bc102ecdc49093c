/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Finds the UCX of a program: the dynamic linker lists the program's libraries, as in
 * ldd(1). Programs that bring a UCX of their own often rename it: libucp-3f2a.so.0. Called by
 * rc_varuna_run.c.
 */
#include "run_ucx.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef void (*run_get_version_func_t)(unsigned *major, unsigned *minor,
                                       unsigned *patch);


/* @return The program's file, which execvp() would run, or NULL. */
static char *run_ucx_program(const char *command)
{
    const char *path = getenv("PATH");
    size_t length;
    char *file;

    if ((strchr(command, '/') != NULL) || (path == NULL)) {
        return run_format("%s", command);
    }

    for (;; path += length + 1) {
        length = strcspn(path, ":");
        file   = run_format("%.*s%s%s", (int)length, path, (length == 0) ? "" : "/", command);
        if (access(file, X_OK) == 0) {
            return file;
        }
        free(file);
        if (path[length] == '\0') {
            return NULL;
        }
    }
}

/* @return Whether the program has a dynamic linker that we can ask: not a script, and not a
 * program that is linked statically. Its path is in @a interp. */
static int run_ucx_interp(const char *file, char interp[PATH_MAX])
{
    int fd    = open(file, O_RDONLY | O_CLOEXEC);
    int found = 0;
    ElfW(Ehdr) header;
    ElfW(Phdr) segment;
    unsigned i;

    if (fd < 0) {
        return 0;
    }

    if ((pread(fd, &header, sizeof(header), 0) != sizeof(header)) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) ||
        (header.e_phentsize != sizeof(segment))) { /* Or of 32 bits */
        header.e_phnum = 0;
    }

    for (i = 0; (i < header.e_phnum) && !found; ++i) {
        found = (pread(fd, &segment, sizeof(segment),
                       header.e_phoff + (i * sizeof(segment))) == sizeof(segment)) &&
                (segment.p_type == PT_INTERP) && (segment.p_filesz < PATH_MAX) &&
                (pread(fd, interp, segment.p_filesz, segment.p_offset) ==
                 (ssize_t)segment.p_filesz);
        interp[found ? segment.p_filesz : 0] = '\0';
    }

    close(fd);
    return found;
}

/* @return What follows @a lib in the name of the file, if it is this library: ".so.0", or
 * "-3f2a.so.0". NULL for others. */
static const char *run_ucx_suffix(const char *path, const char *lib)
{
    const char *name    = strrchr(path, '/');
    const size_t length = strlen(lib);

    name = (name == NULL) ? path : name + 1;
    return (!strncmp(name, lib, length) && ((name[length] == '.') || (name[length] == '-'))) ?
           name + length : NULL;
}

/* A line of the list: "libucp.so.0 => /usr/lib/libucp.so.0 (0x7f0000000000)", or only the
 * path. A program of UCT alone has a libucp next to its libuct. */
static void run_ucx_read(const char *line, run_ucx_t *ucx, char **beside_libuct_p)
{
    char path[PATH_MAX];
    const char *suffix;

    if ((sscanf(line, " %*s => %4095s", path) != 1) && (sscanf(line, " %4095s", path) != 1)) {
        return;
    }

    if (((suffix = run_ucx_suffix(path, "libuct")) != NULL) && (*beside_libuct_p == NULL)) {
        *beside_libuct_p = run_format("%.*slibucp%s", (int)(suffix - strlen("libuct") - path),
                                      path, suffix);
    } else if (run_ucx_suffix(path, "libucp") == NULL) {
        return;
    } else if (ucx->libucp == NULL) {
        ucx->libucp = run_format("%s", path);
    } else if (ucx->second == NULL) {
        ucx->second = run_format("%s", path);
    }
}

static void run_ucx_list(const char *interp, const char *file, run_ucx_t *ucx)
{
    char *beside_libuct = NULL;
    char line[2 * PATH_MAX];
    int fds[2];
    FILE *list;
    pid_t pid;

    if ((pipe(fds) != 0) || ((pid = fork()) < 0)) {
        run_fatal("cannot start %s: %m", interp);
    }

    if (pid == 0) {
        dup2(fds[1], STDOUT_FILENO);
        dup2(open("/dev/null", O_WRONLY), STDERR_FILENO);
        close(fds[0]);
        execl(interp, interp, "--list", file, NULL);
        _exit(1);
    }

    close(fds[1]);
    if ((list = fdopen(fds[0], "r")) == NULL) {
        run_fatal("cannot read what %s says: %m", interp);
    }
    while (fgets(line, sizeof(line), list) != NULL) {
        run_ucx_read(line, ucx, &beside_libuct);
    }
    fclose(list);
    waitpid(pid, NULL, 0);

    if (ucx->libucp == NULL) {
        ucx->libucp = beside_libuct;
    }
    ucx->is_linked = (ucx->libucp != NULL);
}

static void run_ucx_ask(run_ucx_t *ucx)
{
    run_get_version_func_t get_version;
    struct link_map *map;
    void *lib;

    lib = dlopen(ucx->is_linked ? ucx->libucp : RUN_LIBUCP, RTLD_LAZY | RTLD_LOCAL);
    if (lib == NULL) {
        ucx->error = run_format("%s", dlerror());
        return;
    }

    if (!ucx->is_linked && (dlinfo(lib, RTLD_DI_LINKMAP, &map) == 0)) {
        ucx->libucp = run_format("%s", map->l_name);
    }
    get_version = (run_get_version_func_t)dlsym(lib, "ucp_get_version");
    if (get_version == NULL) {
        ucx->error = run_format("%s", dlerror());
        return;
    }
    get_version(&ucx->version.number[0], &ucx->version.number[1], &ucx->version.number[2]);
}

void run_ucx_find(const char *command, run_ucx_t *ucx_p)
{
    char *file = (command == NULL) ? NULL : run_ucx_program(command);
    char interp[PATH_MAX];

    memset(ucx_p, 0, sizeof(*ucx_p));
    if ((file != NULL) && run_ucx_interp(file, interp)) {
        run_ucx_list(interp, file, ucx_p);
    }
    free(file);
    run_ucx_ask(ucx_p);
}

int run_ucx_has_name(const run_ucx_t *ucx)
{
    const char *suffix = run_ucx_suffix(ucx->libucp, "libucp");

    return (suffix != NULL) && !strcmp(suffix, ".so.0");
}
