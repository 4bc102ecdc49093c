/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Programs look at /dev/infiniband/uverbsN before they use a device: is it a
 * character device which they may read and write? No such node is created: for
 * a process inside a fabric the interposed functions here answer with the
 * properties of /dev/null.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMU_DEVNODE_PREFIX "/dev/infiniband/uverbs"
#define EMU_DEVNODE_REAL   "/dev/null"


static const char *emu_devnode_translate(const char *path)
{
    if ((path != NULL) &&
        !strncmp(path, EMU_DEVNODE_PREFIX, sizeof(EMU_DEVNODE_PREFIX) - 1) &&
        (getenv("MLX5EMU_FABRIC") != NULL)) {
        return EMU_DEVNODE_REAL;
    }

    return path;
}

static void *emu_devnode_next(const char *name, void **cache)
{
    void *func = __atomic_load_n(cache, __ATOMIC_RELAXED);

    if (func == NULL) {
        func = dlsym(RTLD_NEXT, name);
        __atomic_store_n(cache, func, __ATOMIC_RELAXED);
    }

    return func;
}

/** Interposed: finds the device nodes of the fabric. */
int stat(const char *path, struct stat *st)
{
    return fstatat(AT_FDCWD, emu_devnode_translate(path), st, 0);
}

/** Interposed: finds the device nodes of the fabric. */
int stat64(const char *path, struct stat64 *st)
{
    return fstatat64(AT_FDCWD, emu_devnode_translate(path), st, 0);
}

/** Interposed, used by programs built before glibc 2.33: finds the device nodes
 *  of the fabric. */
int __xstat(int version, const char *path, struct stat *st)
{
    static void *cache;
    int (*func)(int, const char*, struct stat*);

    func = (int (*)(int, const char*, struct stat*))
           emu_devnode_next("__xstat", &cache);
    if (func == NULL) {
        errno = ENOSYS;
        return -1;
    }

    return func(version, emu_devnode_translate(path), st);
}

/** Interposed: finds the device nodes of the fabric. */
int access(const char *path, int mode)
{
    static void *cache;
    int (*func)(const char*, int);

    func = (int (*)(const char*, int))emu_devnode_next("access", &cache);
    if (func == NULL) {
        errno = ENOSYS;
        return -1;
    }

    return func(emu_devnode_translate(path), mode);
}
