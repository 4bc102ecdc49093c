/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Queries of devices and ports: attributes, GIDs, partition keys. Called by
 * programs, directly and through the operations of verbs_context.
 */

#include "emu_verbs.h"

#include <endian.h>
#include <string.h>

/* As the kernel's sysfs names them; of a private header of libibverbs */
enum {
    EMU_VPORT_GID_TYPE_SYSFS_IB_ROCE_V1 = 0,
    EMU_VPORT_GID_TYPE_SYSFS_ROCE_V2    = 1
};

#define EMU_VPORT_NO_VLAN 0xffff


static int emu_vport_check(struct ibv_context *context, unsigned port_num)
{
    return ((context == NULL) || (port_num != EMU_VERBS_PORT_NUM)) ? EINVAL : 0;
}

int emu_vctx_query_port(struct ibv_context *context, uint8_t port_num,
                        struct ibv_port_attr *attr, size_t attr_len)
{
    struct ibv_port_attr full;

    if ((emu_vport_check(context, port_num) != 0) || (attr == NULL)) {
        return emu_verbs_error(EINVAL);
    }

    if (emu_vctx_command(context) != 0) {
        return emu_verbs_error(EIO);
    }

    emu_link_tick(emu_vctx(context)->port);
    memset(&full, 0, sizeof(full));
    emu_port_query(emu_vctx(context)->port, &full);
    memcpy(attr, &full, emu_min(attr_len, sizeof(full)));
    return 0;
}

/* The compatibility entry point: callers' structure ends before port_cap_flags2
 * and may be smaller than today's */
int ibv_query_port(struct ibv_context *context, uint8_t port_num,
                   struct _compat_ibv_port_attr *port_attr)
{
    return emu_vctx_query_port(context, port_num,
                               (struct ibv_port_attr*)port_attr,
                               offsetof(struct ibv_port_attr, port_cap_flags2));
}

int ibv_query_device(struct ibv_context *context,
                     struct ibv_device_attr *device_attr)
{
    if ((context == NULL) || (device_attr == NULL)) {
        return emu_verbs_error(EINVAL);
    }

    if (emu_vctx_command(context) != 0) {
        return emu_verbs_error(EIO);
    }

    memset(device_attr, 0, sizeof(*device_attr));
    emu_device_query(emu_vctx(context)->port, device_attr);
    return 0;
}

int emu_vctx_query_device_ex(struct ibv_context *context,
                             const struct ibv_query_device_ex_input *input,
                             struct ibv_device_attr_ex *attr, size_t attr_size)
{
    struct ibv_device_attr_ex full;

    if ((context == NULL) || (attr == NULL) ||
        ((input != NULL) && (input->comp_mask != 0)) ||
        (attr_size < sizeof(full.orig_attr))) {
        return emu_verbs_error(EINVAL);
    }

    if (emu_vctx_command(context) != 0) {
        return emu_verbs_error(EIO);
    }

    memset(&full, 0, sizeof(full));
    emu_device_query(emu_vctx(context)->port, &full.orig_attr);
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    full.phys_port_cnt_ex    = full.orig_attr.phys_port_cnt;
    memcpy(attr, &full, emu_min(attr_size, sizeof(full)));
    return 0;
}

/* An index that is not in use has a zero GID */
int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                  union ibv_gid *gid)
{
    emu_gid_type_t type;

    if ((emu_vport_check(context, port_num) != 0) || (gid == NULL) ||
        (index < 0) ||
        (emu_port_gid(emu_vctx(context)->port, index, gid, &type) == -EINVAL)) {
        errno = EINVAL;
        return -1;
    }

    return 0;
}

/* No network device of the system belongs to a port: ndev_ifindex stays 0 */
static int emu_vport_gid_entry(struct ibv_context *context, uint32_t gid_index,
                               struct ibv_gid_entry *entry)
{
    static const uint32_t types[] = {
        [EMU_GID_IB]      = IBV_GID_TYPE_IB,
        [EMU_GID_ROCE_V1] = IBV_GID_TYPE_ROCE_V1,
        [EMU_GID_ROCE_V2] = IBV_GID_TYPE_ROCE_V2
    };
    emu_gid_type_t type;
    int ret;

    memset(entry, 0, sizeof(*entry));
    ret = emu_port_gid(emu_vctx(context)->port, gid_index, &entry->gid, &type);
    if (ret == 0) {
        entry->gid_index = gid_index;
        entry->port_num  = EMU_VERBS_PORT_NUM;
        entry->gid_type  = types[type];
    }

    return ret;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                      uint32_t gid_index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry full;
    int ret;

    if ((flags != 0) || (entry == NULL) ||
        (emu_vport_check(context, port_num) != 0)) {
        return emu_verbs_error(EINVAL);
    }

    ret = emu_vport_gid_entry(context, gid_index, &full);
    if (ret != 0) {
        return emu_verbs_error(ret);
    }

    memcpy(entry, &full, emu_min(entry_size, sizeof(full)));
    return 0;
}

/* The entries that are in use */
ssize_t _ibv_query_gid_table(struct ibv_context *context,
                             struct ibv_gid_entry *entries, size_t max_entries,
                             uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry full;
    ssize_t num = 0;
    uint32_t i;
    int ret;

    if ((context == NULL) || (entries == NULL) || (flags != 0)) {
        return -EINVAL;
    }

    for (i = 0; (ret = emu_vport_gid_entry(context, i, &full)) != -EINVAL; i++) {
        if (ret != 0) {
            continue;
        }

        if ((size_t)num == max_entries) {
            return -EINVAL;
        }

        memcpy((char*)entries + num * entry_size, &full,
               emu_min(entry_size, sizeof(full)));
        ++num;
    }

    return num;
}

/* In a private header of libibverbs, but used by its programs */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                       unsigned index, int *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                       unsigned index, int *type)
{
    struct ibv_gid_entry entry;

    if ((emu_vport_check(context, port_num) != 0) || (type == NULL)) {
        errno = EINVAL;
        return -1;
    }

    /* Of an index that is not in use, the library asks a file that it cannot read */
    switch (emu_vport_gid_entry(context, index, &entry)) {
    case 0:
    case -ENODATA:
        *type = (entry.gid_type == IBV_GID_TYPE_ROCE_V2) ?
                EMU_VPORT_GID_TYPE_SYSFS_ROCE_V2 :
                EMU_VPORT_GID_TYPE_SYSFS_IB_ROCE_V1;
        return 0;
    default:
        errno = EINVAL;
        return -1;
    }
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
                   __be16 *pkey)
{
    const emu_port_t *port;

    if ((emu_vport_check(context, port_num) != 0) || (pkey == NULL) || (index < 0) ||
        ((unsigned)index >= emu_port_num_pkeys(port = emu_vctx(context)->port))) {
        errno = EINVAL;
        return -1;
    }

    *pkey = htobe16(emu_port_pkey(port, index));
    if (emu_port_num_pkeys(port) > 1) {
        emu_quirk_act(port->index, EMU_QUIRK_LIMITED_PKEY, 0, 0, index);
    }
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
                       __be16 pkey)
{
    const emu_port_t *port;
    unsigned i;

    if (emu_vport_check(context, port_num) == 0) {
        port = emu_vctx(context)->port;
        for (i = 0; i < emu_port_num_pkeys(port); ++i) {
            if (be16toh(pkey) == emu_port_pkey(port, i)) {
                return i;
            }
        }
    }

    errno = EINVAL;
    return -1;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
                                struct ibv_ah_attr *attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE],
                                uint16_t *vid)
{
    int ret;

    if ((context == NULL) || (attr == NULL) || (eth_mac == NULL) ||
        !attr->is_global || (attr->port_num != EMU_VERBS_PORT_NUM)) {
        return emu_verbs_error(EINVAL);
    }

    if (!emu_port_is_roce(emu_vctx(context)->port)) {
        return emu_verbs_error(EPROTONOSUPPORT);
    }

    ret = emu_route_resolve(emu_vctx(context)->port, attr->grh.sgid_index,
                            &attr->grh.dgid, eth_mac);
    if (ret != 0) {
        return emu_verbs_error(ret);
    }

    if (vid != NULL) {
        *vid = EMU_VPORT_NO_VLAN;
    }
    return 0;
}
