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
    EMU_VPORT_GID_TYPE_SYSFS_IB_ROCE_V1 = 0
};


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

int ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index,
                  union ibv_gid *gid)
{
    if ((emu_vport_check(context, port_num) != 0) || (gid == NULL) ||
        (index < 0) || (index >= EMU_VERBS_GID_LEN)) {
        errno = EINVAL;
        return -1;
    }

    emu_port_gid(emu_vctx(context)->port, gid);
    return 0;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num,
                      uint32_t gid_index, struct ibv_gid_entry *entry,
                      uint32_t flags, size_t entry_size)
{
    struct ibv_gid_entry full;

    if ((flags != 0) || (entry == NULL) ||
        (emu_vport_check(context, port_num) != 0) ||
        (gid_index >= EMU_VERBS_GID_LEN)) {
        return emu_verbs_error(EINVAL);
    }

    memset(&full, 0, sizeof(full));
    emu_port_gid(emu_vctx(context)->port, &full.gid);
    full.gid_index = gid_index;
    full.port_num  = port_num;
    full.gid_type  = IBV_GID_TYPE_IB;
    memcpy(entry, &full, emu_min(entry_size, sizeof(full)));
    return 0;
}

ssize_t _ibv_query_gid_table(struct ibv_context *context,
                             struct ibv_gid_entry *entries, size_t max_entries,
                             uint32_t flags, size_t entry_size)
{
    int ret;

    if (max_entries < EMU_VERBS_GID_LEN) {
        return -EINVAL;
    }

    ret = _ibv_query_gid_ex(context, EMU_VERBS_PORT_NUM, 0, entries, flags,
                            entry_size);
    return (ret == 0) ? EMU_VERBS_GID_LEN : -ret;
}

/* In a private header of libibverbs, but used by its programs */
int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                       unsigned index, int *type);

int ibv_query_gid_type(struct ibv_context *context, uint8_t port_num,
                       unsigned index, int *type)
{
    if ((emu_vport_check(context, port_num) != 0) || (type == NULL) ||
        (index >= EMU_VERBS_GID_LEN)) {
        errno = EINVAL;
        return -1;
    }

    *type = EMU_VPORT_GID_TYPE_SYSFS_IB_ROCE_V1;
    return 0;
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index,
                   __be16 *pkey)
{
    if ((emu_vport_check(context, port_num) != 0) || (pkey == NULL) ||
        (index != 0)) {
        errno = EINVAL;
        return -1;
    }

    *pkey = htobe16(EMU_VERBS_PKEY);
    return 0;
}

int ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num,
                       __be16 pkey)
{
    if ((emu_vport_check(context, port_num) != 0) ||
        (pkey != htobe16(EMU_VERBS_PKEY))) {
        errno = EINVAL;
        return -1;
    }

    return 0;
}

int ibv_resolve_eth_l2_from_gid(struct ibv_context *context,
                                struct ibv_ah_attr *attr,
                                uint8_t eth_mac[ETHERNET_LL_SIZE],
                                uint16_t *vid)
{
    (void)context;
    (void)attr;
    (void)eth_mac;
    (void)vid;
    return emu_refuse(__func__, "Ethernet is");
}
