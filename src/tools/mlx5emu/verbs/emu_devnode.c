/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Files that programs name by themselves, by the path that these have on a real system.
 *
 * Programs look at /dev/infiniband/uverbsN before they use a device: is it a
 * character device which they may read and write? No such node is created: for
 * a process inside a fabric the interposed functions here answer with the
 * properties of /dev/null.
 *
 * They read /sys/class/infiniband/DEVICE, too, where the kernel would have no such
 * device: it is in the fabric's own directory. What changes while the fabric lives, as
 * the addresses of a port, is made when it is opened (emu_sysattr.h).
 */

#include "emu_sysattr.h"
#include "emu_sysfs.h"
#include "../core/emu_fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMU_DEVNODE_PREFIX "/dev/infiniband/uverbs"
#define EMU_DEVNODE_REAL   "/dev/null"
#define EMU_DEVNODE_PORT   "ports/1/"


/* A path below a device's directory, in the fabric's own */
static const char *emu_devnode_own_path(const emu_port_t *port, const char *name,
                                        char *buf, size_t max)
{
    char dir[64 + EMU_NAME_MAX];
    size_t length;

    snprintf(dir, sizeof(dir), EMU_DIR_FMT "/sys", emu_fabric->cfg.name);
    if (emu_sysfs_ibdev_path(dir, port->host, port->link, buf, max) != 0) {
        return NULL;
    }

    length = strlen(buf);
    return (snprintf(buf + length, max - length, "/%s", name) <
            (int)(max - length)) ? buf : NULL;
}

/* An attribute that is made on demand is like those which are there */
static const char *emu_devnode_translate_sysfs(const char *path, char *buf,
                                               size_t max)
{
    char text[EMU_SYSATTR_MAX];
    const emu_port_t *port;
    const char *name;
    int ret;

    name = emu_sysattr_find(path, &port);
    if (name == NULL) {
        return path;
    }

    if (strncmp(name, EMU_DEVNODE_PORT, strlen(EMU_DEVNODE_PORT)) == 0) {
        ret = emu_sysattr_read(port, name + strlen(EMU_DEVNODE_PORT), text,
                               sizeof(text));
        if (ret != -ENOENT) {
            name = EMU_DEVNODE_PORT "lid";
        }
    }

    name = emu_devnode_own_path(port, name, buf, max);
    return (name == NULL) ? path : name;
}

static const char *emu_devnode_translate(const char *path, char *buf, size_t max)
{
    if ((path != NULL) &&
        !strncmp(path, EMU_DEVNODE_PREFIX, sizeof(EMU_DEVNODE_PREFIX) - 1) &&
        (getenv("MLX5EMU_FABRIC") != NULL)) {
        return EMU_DEVNODE_REAL;
    }

    return emu_devnode_translate_sysfs(path, buf, max);
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
    char buf[PATH_MAX];

    return fstatat(AT_FDCWD, emu_devnode_translate(path, buf, sizeof(buf)), st,
                   0);
}

/** Interposed: finds the device nodes of the fabric. */
int stat64(const char *path, struct stat64 *st)
{
    char buf[PATH_MAX];

    return fstatat64(AT_FDCWD, emu_devnode_translate(path, buf, sizeof(buf)), st,
                     0);
}

/** Interposed, used by programs built before glibc 2.33: finds the device nodes
 *  of the fabric. */
int __xstat(int version, const char *path, struct stat *st)
{
    static void *cache;
    int (*func)(int, const char*, struct stat*);
    char buf[PATH_MAX];

    func = (int (*)(int, const char*, struct stat*))
           emu_devnode_next("__xstat", &cache);
    if (func == NULL) {
        errno = ENOSYS;
        return -1;
    }

    return func(version, emu_devnode_translate(path, buf, sizeof(buf)), st);
}

/** Interposed: finds the device nodes of the fabric. */
int access(const char *path, int mode)
{
    static void *cache;
    int (*func)(const char*, int);
    char buf[PATH_MAX];

    func = (int (*)(const char*, int))emu_devnode_next("access", &cache);
    if (func == NULL) {
        errno = ENOSYS;
        return -1;
    }

    return func(emu_devnode_translate(path, buf, sizeof(buf)), mode);
}

/* Open an attribute of a port, or another file of a device. @return 1 and the result,
 * 0: it is neither */
static int emu_devnode_open_sysfs(const char *path, int flags, int *fd_p)
{
    char buf[PATH_MAX];
    const emu_port_t *port;
    const char *name;
    int fd;

    name = emu_sysattr_find(path, &port);
    if ((name == NULL) || ((flags & O_ACCMODE) != O_RDONLY)) {
        return 0;
    }

    fd = emu_sysattr_open(port, name);
    if (fd == -ENOENT) {
        name = emu_devnode_own_path(port, name, buf, sizeof(buf));
        fd   = (name == NULL) ? -ENAMETOOLONG : openat(AT_FDCWD, name, flags);
    } else if (fd < 0) {
        errno = -fd; /* the kernel opens it, and fails to read it */
        fd    = -1;
    }

    *fd_p = fd;
    return 1;
}

/** Interposed: finds what sysfs has of the devices of the fabric. */
int open(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;
    int fd;

    if (emu_devnode_open_sysfs(path, flags, &fd)) {
        return fd;
    }

    if ((flags & O_CREAT) || ((flags & O_TMPFILE) == O_TMPFILE)) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }

    return openat(AT_FDCWD, path, flags, mode);
}

/** Interposed: finds what sysfs has of the devices of the fabric. */
int open64(const char *path, int flags, ...)
{
    mode_t mode = 0;
    va_list ap;
    int fd;

    if (emu_devnode_open_sysfs(path, flags, &fd)) {
        return fd;
    }

    if ((flags & O_CREAT) || ((flags & O_TMPFILE) == O_TMPFILE)) {
        va_start(ap, flags);
        mode = va_arg(ap, mode_t);
        va_end(ap);
    }

    return openat64(AT_FDCWD, path, flags, mode);
}

static FILE *emu_devnode_fopen(const char *name, void **cache, const char *path,
                               const char *mode)
{
    FILE *(*func)(const char*, const char*);
    int fd;

    if ((mode[0] == 'r') && (strchr(mode, '+') == NULL) &&
        emu_devnode_open_sysfs(path, O_RDONLY | O_CLOEXEC, &fd)) {
        return (fd < 0) ? NULL : fdopen(fd, mode);
    }

    func = (FILE *(*)(const char*, const char*))emu_devnode_next(name, cache);
    if (func == NULL) {
        errno = ENOSYS;
        return NULL;
    }

    return func(path, mode);
}

/** Interposed: finds what sysfs has of the devices of the fabric. */
FILE *fopen(const char *path, const char *mode)
{
    static void *cache;

    return emu_devnode_fopen("fopen", &cache, path, mode);
}

/** Interposed: finds what sysfs has of the devices of the fabric. */
FILE *fopen64(const char *path, const char *mode)
{
    static void *cache;

    return emu_devnode_fopen("fopen64", &cache, path, mode);
}
