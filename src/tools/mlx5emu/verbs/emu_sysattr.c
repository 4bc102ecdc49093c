/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * See emu_sysattr.h.
 */

#include "emu_sysattr.h"
#include "../core/emu_fabric.h"
#include "../core/emu_proc.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EMU_SYSATTR_CLASS "/sys/class/infiniband/"
#define EMU_SYSATTR_PORT  "ports/1/"
#define EMU_SYSATTR_FIRST_BUS 0xa1


typedef int (*emu_sysattr_func_t)(const emu_port_t *port, unsigned index,
                                  char *text, size_t max);

static int emu_sysattr_lid(const emu_port_t *port, unsigned index, char *text,
                           size_t max)
{
    (void)index;
    return snprintf(text, max, "0x%x\n", emu_port_lid(port));
}

static int emu_sysattr_sm_lid(const emu_port_t *port, unsigned index, char *text,
                              size_t max)
{
    struct ibv_port_attr attr;

    (void)index;
    emu_port_query(port, &attr);
    return snprintf(text, max, "0x%x\n", attr.sm_lid);
}

static int emu_sysattr_link_layer(const emu_port_t *port, unsigned index,
                                  char *text, size_t max)
{
    (void)index;
    return snprintf(text, max, "%s\n", emu_port_is_roce(port) ? "Ethernet" :
                                                                "InfiniBand");
}

static int emu_sysattr_rate(const emu_port_t *port, unsigned index, char *text,
                            size_t max)
{
    (void)index;
    return snprintf(text, max, "%s\n", emu_port_rate(port));
}

static int emu_sysattr_state(const emu_port_t *port, unsigned index, char *text,
                             size_t max)
{
    struct ibv_port_attr attr;

    (void)index;
    emu_port_query(port, &attr);
    return snprintf(text, max, "%s\n", (attr.state == IBV_PORT_ACTIVE) ?
                                       "4: ACTIVE" : "1: DOWN");
}

static int emu_sysattr_phys_state(const emu_port_t *port, unsigned index,
                                  char *text, size_t max)
{
    struct ibv_port_attr attr;

    (void)index;
    emu_port_query(port, &attr);
    return snprintf(text, max, "%s\n", (attr.phys_state == 5) ? "5: LinkUp" :
                                       (attr.phys_state == 3) ? "3: Disabled" :
                                                                "2: Polling");
}

/* An index that is not in use has a zero GID */
static int emu_sysattr_gid(const emu_port_t *port, unsigned index, char *text,
                           size_t max)
{
    emu_gid_type_t type;
    union ibv_gid gid;
    int length = 0;
    unsigned i;

    if (emu_port_gid(port, index, &gid, &type) == -EINVAL) {
        return -ENOENT;
    }

    for (i = 0; i < sizeof(gid.raw); i += 2) {
        length += snprintf(text + length, max - length, "%02x%02x%c",
                           gid.raw[i], gid.raw[i + 1],
                           (i + 2 < sizeof(gid.raw)) ? ':' : '\n');
    }

    return length;
}

static int emu_sysattr_gid_attr(const emu_port_t *port, unsigned index,
                                emu_gid_type_t *type_p)
{
    union ibv_gid gid;
    int ret;

    ret = emu_port_gid(port, index, &gid, type_p);
    return (ret == 0) ? 0 : (ret == -EINVAL) ? -ENOENT : -EINVAL;
}

static int emu_sysattr_gid_type(const emu_port_t *port, unsigned index,
                                char *text, size_t max)
{
    emu_gid_type_t type;
    int ret;

    ret = emu_sysattr_gid_attr(port, index, &type);
    return (ret != 0) ? ret :
           snprintf(text, max, "%s\n", (type == EMU_GID_ROCE_V2) ?
                                       "RoCE v2" : "IB/RoCE v1");
}

/* The name that the kernel would give to a device in this place. No such network
 * device exists. */
static int emu_sysattr_gid_ndev(const emu_port_t *port, unsigned index,
                                char *text, size_t max)
{
    emu_gid_type_t type;
    int ret;

    ret = emu_sysattr_gid_attr(port, index, &type);
    if ((ret == 0) && (type == EMU_GID_IB)) {
        ret = -EINVAL;
    }

    return (ret != 0) ? ret :
           snprintf(text, max, "enp%us0np0\n",
                    EMU_SYSATTR_FIRST_BUS + port->link);
}

static const struct {
    const char         *name;
    int                has_index;
    emu_sysattr_func_t func;
} emu_sysattrs[] = {
    {"lid",              0, emu_sysattr_lid},
    {"sm_lid",           0, emu_sysattr_sm_lid},
    {"link_layer",       0, emu_sysattr_link_layer},
    {"rate",             0, emu_sysattr_rate},
    {"state",            0, emu_sysattr_state},
    {"phys_state",       0, emu_sysattr_phys_state},
    {"gids/",            1, emu_sysattr_gid},
    {"gid_attrs/types/", 1, emu_sysattr_gid_type},
    {"gid_attrs/ndevs/", 1, emu_sysattr_gid_ndev}
};

/* A decimal number. @return what follows it, NULL if there is none */
static const char *emu_sysattr_number(const char *text, unsigned *value_p)
{
    unsigned long value;
    char *end;

    if ((*text < '0') || (*text > '9')) {
        return NULL;
    }

    value    = strtoul(text, &end, 10);
    *value_p = (value > UINT16_MAX) ? UINT16_MAX : value;
    return end;
}

int emu_sysattr_read(const emu_port_t *port, const char *name, char *text,
                     size_t max)
{
    const char *end;
    unsigned index;
    size_t i, length;

    for (i = 0; i < sizeof(emu_sysattrs) / sizeof(emu_sysattrs[0]); ++i) {
        length = strlen(emu_sysattrs[i].name);
        if (strncmp(emu_sysattrs[i].name, name, length) != 0) {
            continue;
        }

        index = 0;
        end   = emu_sysattrs[i].has_index ?
                emu_sysattr_number(name + length, &index) : (name + length);
        if ((end != NULL) && (*end == '\0')) {
            return emu_sysattrs[i].func(port, index, text, max);
        }
    }

    return -ENOENT;
}

/* What follows "DEVICE/" */
static const char *emu_sysattr_device(const char *path, const emu_port_t **port_p)
{
    char name[EMU_PORT_NAME_MAX];
    const emu_port_t *port;
    unsigned link;
    size_t length;

    for (link = 0; link < emu_fabric->cfg.links; ++link) {
        port = emu_port_get(emu_self->host, link);
        emu_port_device_name(port, name);
        length = strlen(name);
        if ((emu_port_device(port) == port) &&
            (strncmp(path, name, length) == 0) &&
            ((path[length] == '/') || (path[length] == '\0'))) {
            *port_p = port;
            return path + length + strspn(path + length, "/");
        }
    }

    return NULL;
}

const char *emu_sysattr_find(const char *path, const emu_port_t **port_p)
{
    char prefix[64 + EMU_NAME_MAX];
    const char *device;
    size_t length;

    if ((path == NULL) || (path[0] != '/') || (emu_fabric == NULL) ||
        (emu_self == NULL)) {
        return NULL;
    }

    length = strlen(EMU_SYSATTR_CLASS);
    if (strncmp(path, EMU_SYSATTR_CLASS, length) == 0) {
        return emu_sysattr_device(path + length, port_p);
    }

    length = snprintf(prefix, sizeof(prefix), EMU_DIR_FMT "/sys/host%u/",
                      emu_fabric->cfg.name, emu_self->host);
    if (strncmp(path, prefix, length) != 0) {
        return NULL;
    }

    device = strstr(path + length, "/infiniband/");
    return (device == NULL) ? NULL :
           emu_sysattr_device(device + strlen("/infiniband/"), port_p);
}

int emu_sysattr_open(const emu_port_t *port, const char *name)
{
    size_t length = strlen(EMU_SYSATTR_PORT);
    char text[EMU_SYSATTR_MAX];
    int ret, fd;

    if (strncmp(name, EMU_SYSATTR_PORT, length) != 0) {
        return -ENOENT;
    }

    ret = emu_sysattr_read(port, name + length, text, sizeof(text));
    if (ret < 0) {
        return ret;
    }

    fd = memfd_create("mlx5emu-sysfs", MFD_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }

    if ((write(fd, text, ret) != ret) || (lseek(fd, 0, SEEK_SET) != 0)) {
        close(fd);
        return -EIO;
    }

    return fd;
}
