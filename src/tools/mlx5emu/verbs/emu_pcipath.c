/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Where a NIC is in the PCIe tree, as sysfs shows it: /sys/bus/pci/devices/BDF is a link
 * to /sys/devices/pci0000:ROOT/SWITCH/BDF. UCX compares these paths to calculate how far
 * two NICs are from each other. See "mlx5emu up --topology".
 */

#include "emu_sysfs.h"
#include "emu_verbs.h"
#include "../core/emu_fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EMU_PCIPATH_PREFIX  "/sys/bus/pci/devices/"


/* @return Nonzero if the path is that of a NIC of ours, which is translated then. */
static int emu_pcipath_translate(const char *path, char *buf, size_t max)
{
    char bdf[EMU_SYSFS_BDF_MAX];
    unsigned link;

    if ((path == NULL) || (emu_fabric == NULL) ||
        strncmp(path, EMU_PCIPATH_PREFIX, strlen(EMU_PCIPATH_PREFIX))) {
        return 0;
    }

    for (link = 0; link < emu_fabric->cfg.links; ++link) {
        emu_sysfs_bdf(link, bdf, sizeof(bdf));
        if (!strcmp(path + strlen(EMU_PCIPATH_PREFIX), bdf)) {
            snprintf(buf, max, "/sys/devices/pci0000:%02u/0000:%02x:00.0/%s",
                     emu_fabric->cfg.pci_root[link],
                     emu_fabric->cfg.pci_switch[link], bdf);
            return 1;
        }
    }

    return 0;
}

/** Interposed: finds the place of NICs in the PCIe tree. */
char *realpath(const char *path, char *resolved)
{
    static void *cache;
    char *(*func)(const char*, char*);
    char buf[PATH_MAX];

    if (emu_pcipath_translate(path, buf, sizeof(buf))) {
        return (resolved == NULL) ? strdup(buf) : strcpy(resolved, buf);
    }

    func = (char *(*)(const char*, char*))__atomic_load_n(&cache, __ATOMIC_RELAXED);
    if (func == NULL) {
        func = (char *(*)(const char*, char*))dlsym(RTLD_NEXT, "realpath");
        if (func == NULL) {
            errno = ENOSYS;
            return NULL;
        }
        __atomic_store_n(&cache, (void*)func, __ATOMIC_RELAXED);
    }

    return func(path, resolved);
}

/** Interposed: as realpath(), of programs that were built with _FORTIFY_SOURCE. */
char *__realpath_chk(const char *path, char *resolved, size_t length)
{
    if (length < PATH_MAX) {
        abort(); /* As glibc does: the caller's buffer is too short */
    }

    return realpath(path, resolved);
}
