/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * The lookalike of /sys, see emu_sysfs.h.
 */

#include "emu_sysfs.h"
#include "emu_sysattr.h"
#include "../core/emu_port.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EMU_SYSFS_FIRST_BUS  0xa1
#define EMU_SYSFS_EUI64_LEN  20
#define EMU_SYSFS_STR_(_x)   #_x
#define EMU_SYSFS_STR(_x)    EMU_SYSFS_STR_(_x)

/* What every emulated NIC says it is: a ConnectX-5 */
#define EMU_SYSFS_PCI_VENDOR 0x15b3
#define EMU_SYSFS_PCI_DEVICE 0x1017
#define EMU_SYSFS_FW_VER     "16.35.1012"
#define EMU_SYSFS_BOARD_ID   "EMU0000000001"


void emu_sysfs_bdf(unsigned link, char *bdf, size_t max)
{
    snprintf(bdf, max, "%04x:%02x:00.0",
             (EMU_SYSFS_FIRST_BUS + link) >> 8,
             (EMU_SYSFS_FIRST_BUS + link) & 0xff);
}

static int emu_sysfs_entry_path(const char *dir, unsigned host, unsigned link,
                                const char *class_name, const char *name,
                                char *path, size_t max)
{
    char bdf[EMU_SYSFS_BDF_MAX];
    int len;

    emu_sysfs_bdf(link, bdf, sizeof(bdf));
    len = snprintf(path, max, "%s/host%u/%s/%s/%s", dir, host, bdf,
                   class_name, name);
    return ((len < 0) || ((size_t)len >= max)) ? ENAMETOOLONG : 0;
}

int emu_sysfs_ibdev_path(const char *dir, unsigned host, unsigned link,
                         char *path, size_t max)
{
    char name[EMU_PORT_NAME_MAX];

    emu_port_device_name(emu_port_get(host, link), name);
    return emu_sysfs_entry_path(dir, host, link, "infiniband", name, path, max);
}

int emu_sysfs_verbs_path(const char *dir, unsigned host, unsigned link,
                         char *path, size_t max)
{
    char name[EMU_PORT_NAME_MAX];

    snprintf(name, sizeof(name), "uverbs%u", link);
    return emu_sysfs_entry_path(dir, host, link, "infiniband_verbs", name, path,
                                max);
}

/* Create all directories on the way to a directory below dir */
static int emu_sysfs_mkdirs(const char *path)
{
    char copy[PATH_MAX];
    char *p;

    if (strlen(path) >= sizeof(copy)) {
        return ENAMETOOLONG;
    }

    strcpy(copy, path);
    for (p = strchr(copy + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
        *p = '\0';
        if ((mkdir(copy, 0755) != 0) && (errno != EEXIST)) {
            return errno;
        }
        *p = '/';
    }

    return ((mkdir(copy, 0755) != 0) && (errno != EEXIST)) ? errno : 0;
}

static int emu_sysfs_write(const char *dir, const char *name, const char *fmt,
                           ...) __attribute__((format(printf, 3, 4)));

static int emu_sysfs_write(const char *dir, const char *name, const char *fmt,
                           ...)
{
    char path[PATH_MAX], text[128];
    va_list ap;
    int fd, len, ret;

    len = snprintf(path, sizeof(path), "%s/%s", dir, name);
    if ((len < 0) || ((size_t)len >= sizeof(path))) {
        return ENAMETOOLONG;
    }

    va_start(ap, fmt);
    len = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);

    fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) {
        return errno;
    }

    ret = 0;
    if (write(fd, text, len) != len) {
        ret = (errno != 0) ? errno : EIO;
    }

    close(fd);
    return ret;
}

/* 64 bits as sysfs shows them */
static void emu_sysfs_eui64(uint64_t value, char str[EMU_SYSFS_EUI64_LEN])
{
    snprintf(str, EMU_SYSFS_EUI64_LEN, "%04x:%04x:%04x:%04x",
             (unsigned)(value >> 48) & 0xffff, (unsigned)(value >> 32) & 0xffff,
             (unsigned)(value >> 16) & 0xffff, (unsigned)value & 0xffff);
}

/* The files of a port's attributes are created empty, for programs that list the
 * directories. Their contents are made when they are opened (emu_sysattr.h). */
static int emu_sysfs_create_port(const char *ibdev, const emu_port_t *port)
{
    static const char *names[] = {"lid", "link_layer", "rate", "gids/0"};
    char text[EMU_SYSATTR_MAX], path[PATH_MAX];
    size_t i;
    int ret;

    if (snprintf(path, sizeof(path), "%s/ports/1/gids", ibdev) < 0) {
        return ENAMETOOLONG;
    }

    ret = emu_sysfs_mkdirs(path);
    *strrchr(path, '/') = '\0';
    for (i = 0; (i < sizeof(names) / sizeof(names[0])) && (ret == 0); ++i) {
        ret = emu_sysattr_read(port, names[i], text, sizeof(text));
        ret = (ret < 0) ? -ret : emu_sysfs_write(path, names[i], "%s", text);
    }

    return ret;
}

static int emu_sysfs_create_ibdev(const char *ibdev, const emu_port_t *port)
{
    char guid[EMU_SYSFS_EUI64_LEN];
    emu_addr_t addr;
    int ret;

    ret = emu_sysfs_mkdirs(ibdev);
    if (ret != 0) {
        return ret;
    }

    ret = emu_sysfs_write(ibdev, "board_id", EMU_SYSFS_BOARD_ID "\n");
    if (ret != 0) {
        return ret;
    }

    ret = emu_sysfs_write(ibdev, "fw_ver", EMU_SYSFS_FW_VER "\n");
    if (ret != 0) {
        return ret;
    }

    if (emu_port_is_mlx5(port)) {
        ret = emu_sysfs_write(ibdev, "hca_type", "MT%u\n",
                              EMU_SYSFS_PCI_DEVICE);
    } else {
        ret = emu_sysfs_write(ibdev, "hca_type", "verbs\n");
    }
    if (ret != 0) {
        return ret;
    }

    ret = emu_sysfs_write(ibdev, "node_type", "1: CA\n");
    if (ret != 0) {
        return ret;
    }

    emu_port_addr(port, &addr);
    emu_sysfs_eui64(emu_addr_guid(&addr), guid);
    ret = emu_sysfs_write(ibdev, "node_guid", "%s\n", guid);
    if (ret != 0) {
        return ret;
    }

    return emu_sysfs_create_port(ibdev, port);
}

/* Programs infer features from the vendor: a device that is not an mlx5 has a vendor that
 * they do not know */
static int emu_sysfs_create_pci(const char *pci, const emu_port_t *port)
{
    static const char unknown[] = "0x0000\n";
    static const struct {
        const char *name;
        const char *text;
        int        is_make;
    } files[] = {
        {"vendor",             EMU_SYSFS_STR(EMU_SYSFS_PCI_VENDOR) "\n", 1},
        {"device",             EMU_SYSFS_STR(EMU_SYSFS_PCI_DEVICE) "\n", 1},
        {"current_link_speed", "8.0 GT/s PCIe\n",                        0},
        {"current_link_width", "16\n",                                   0},
        {"numa_node",          "-1\n",                                   0}
    };
    size_t i;
    int ret;

    for (i = 0; i < sizeof(files) / sizeof(files[0]); ++i) {
        ret = emu_sysfs_write(pci, files[i].name, "%s",
                              (files[i].is_make && !emu_port_is_mlx5(port)) ?
                              unknown : files[i].text);
        if (ret != 0) {
            return ret;
        }
    }

    return 0;
}

static int emu_sysfs_create_nic(const char *dir, unsigned host, unsigned link)
{
    const emu_port_t *port = emu_port_get(host, link);
    char name[EMU_PORT_NAME_MAX];
    char path[PATH_MAX];
    int ret;

    ret = emu_sysfs_ibdev_path(dir, host, link, path, sizeof(path));
    if (ret != 0) {
        return ret;
    }

    ret = emu_sysfs_create_ibdev(path, port);
    if (ret != 0) {
        return ret;
    }

    *strrchr(path, '/') = '\0';
    *strrchr(path, '/') = '\0';
    ret                 = emu_sysfs_create_pci(path, port);
    if (ret != 0) {
        return ret;
    }

    ret = emu_sysfs_verbs_path(dir, host, link, path, sizeof(path));
    if (ret != 0) {
        return ret;
    }

    ret = emu_sysfs_mkdirs(path);
    if (ret != 0) {
        return ret;
    }

    emu_port_device_name(port, name);
    ret = emu_sysfs_write(path, "ibdev", "%s\n", name);
    if (ret != 0) {
        return ret;
    }

    return emu_sysfs_write(path, "abi_version", "1\n");
}

static int emu_sysfs_create_all(const char *dir, unsigned hosts, unsigned links)
{
    unsigned host, link;
    int ret;

    for (host = 0; host < hosts; ++host) {
        for (link = 0; link < links; ++link) {
            if (emu_port_device(emu_port_get(host, link))->link != link) {
                continue;
            }

            ret = emu_sysfs_create_nic(dir, host, link);
            if (ret != 0) {
                return ret;
            }
        }
    }

    return 0;
}

static int emu_sysfs_remove_entry(const char *path, const struct stat *st,
                                  int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return (remove(path) == 0) ? 0 : -1;
}

static void emu_sysfs_remove(const char *dir)
{
    (void)nftw(dir, emu_sysfs_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

int emu_sysfs_create(const char *dir, unsigned hosts, unsigned links)
{
    char tmp[PATH_MAX];
    int len, ret;

    if (access(dir, F_OK) == 0) {
        return 0;
    }

    len = snprintf(tmp, sizeof(tmp), "%s.%d", dir, (int)gettid());
    if ((len < 0) || ((size_t)len >= sizeof(tmp))) {
        return ENAMETOOLONG;
    }

    ret = emu_sysfs_create_all(tmp, hosts, links);
    if ((ret == 0) && (rename(tmp, dir) != 0)) {
        /* Another process may have been faster */
        ret = (access(dir, F_OK) == 0) ? EEXIST : errno;
    }

    if (ret != 0) {
        emu_sysfs_remove(tmp);
    }

    return (ret == EEXIST) ? 0 : ret;
}
