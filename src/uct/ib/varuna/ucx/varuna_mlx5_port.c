/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Asks a device for its ports. See varuna_mlx5_port.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_port.h"
#include <uct/ib/varuna/core/varuna_clock.h>

#include <uct/ib/base/ib_iface.h>
#include <uct/ib/mlx5/ib_mlx5.h>
#include "varuna_compat.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/mlx5/dv/ib_mlx5_ifc.h>
#include <ucs/debug/assert.h>
#include <string.h>
#include <ucs/arch/bitops.h>
#include <ucs/sys/string.h>
#include <stdlib.h>

double uct_varuna_mlx5_port_lifetime(uct_md_h md, const char *dev_name)
{
    const uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    struct ibv_port_attr attr;

    if (ibv_query_port(dev->ibv_context, uct_varuna_mlx5_port_num(dev_name),
                       &attr) != 0) {
        return UCT_VARUNA_LIFETIME_UNKNOWN;
    }

    if (attr.state != IBV_PORT_ACTIVE) {
        return UCT_VARUNA_LIFETIME_UNKNOWN; /* The subnet manager has not set it yet */
    }

    return uct_varuna_lifetime(attr.link_layer != IBV_LINK_LAYER_ETHERNET,
                               attr.subnet_timeout);
}

static struct ibv_context *uct_varuna_mlx5_device_open(const char *dev_name)
{
    size_t length               = strcspn(dev_name, ":");
    struct ibv_context *context = NULL;
    struct ibv_device **devices = ibv_get_device_list(NULL);
    unsigned i;

    for (i = 0; (devices != NULL) && (devices[i] != NULL); ++i) {
        if ((strlen(devices[i]->name) == length) &&
            !strncmp(devices[i]->name, dev_name, length)) {
            context = ibv_open_device(devices[i]);
            break;
        }
    }

    if (devices != NULL) {
        ibv_free_device_list(devices);
    }
    return context;
}

int uct_varuna_mlx5_port_answers(const char *dev_name)
{
    struct ibv_context *context = uct_varuna_mlx5_device_open(dev_name);
    struct ibv_port_attr attr;
    int ret;

    if (context == NULL) {
        return 0;
    }

    ret = ibv_query_port(context, uct_varuna_mlx5_port_num(dev_name), &attr);
    ibv_close_device(context);
    return ret == 0;
}

uint64_t uct_varuna_mlx5_ports_keep(uct_md_h md)
{
    uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    uint64_t down        = 0;
    struct ibv_port_attr *attr;
    uint8_t i, port_num;

    for (i = 0; i < dev->num_ports; ++i) {
        port_num = dev->first_port + i;
        attr     = uct_ib_device_port_attr(dev, port_num);
        if (attr->state != IBV_PORT_ACTIVE) {
            attr->state = IBV_PORT_ACTIVE;
            down       |= UCS_BIT(port_num);
        }
    }

    return down;
}

int uct_varuna_mlx5_port_renew(uct_md_h md, const char *dev_name)
{
    uct_ib_device_t *dev = &ucs_derived_of(md, uct_ib_md_t)->dev;
    uint8_t port_num     = uct_varuna_mlx5_port_num(dev_name);
    struct ibv_port_attr now;
    int is_active;

    if (ibv_query_port(dev->ibv_context, port_num, &now) != 0) {
        return 1; /* Whoever uses it finds out */
    }

    is_active                               = (now.state == IBV_PORT_ACTIVE);
    now.state                               = IBV_PORT_ACTIVE;
    *uct_ib_device_port_attr(dev, port_num) = now;
    return is_active;
}

void uct_varuna_mlx5_addr_get(uct_iface_h inner, uct_varuna_mlx5_addr_t *addr)
{
    uct_ib_iface_t *iface            = ucs_derived_of(inner, uct_ib_iface_t);
    const struct ibv_port_attr *attr = uct_ib_device_port_attr(
            uct_ib_iface_device(iface), iface->config.port_num);

    UCS_STATIC_ASSERT(sizeof(addr->gid) == sizeof(iface->gid_info.gid));
    addr->lid       = attr->lid;
    addr->mtu       = attr->active_mtu;
    addr->is_ib     = (attr->link_layer != IBV_LINK_LAYER_ETHERNET);
    addr->gid_index = iface->gid_info.gid_index;
    memcpy(addr->gid, &iface->gid_info.gid, sizeof(addr->gid));
}

static int uct_varuna_mlx5_has_gid(struct ibv_context *context, uint8_t port_num,
                                   int index, const void *gid)
{
    union ibv_gid has;

    return (ibv_query_gid(context, port_num, index, &has) == 0) &&
           !memcmp(&has, gid, sizeof(has));
}

uct_varuna_mlx5_addr_state_t
uct_varuna_mlx5_addr_check(uct_iface_h inner, const uct_varuna_mlx5_addr_t *addr)
{
    uct_ib_iface_t *iface       = ucs_derived_of(inner, uct_ib_iface_t);
    struct ibv_context *context = uct_ib_iface_device(iface)->ibv_context;
    uint8_t port_num            = iface->config.port_num;
    struct ibv_port_attr attr;
    int i;

    if ((ibv_query_port(context, port_num, &attr) != 0) ||
        (attr.state != IBV_PORT_ACTIVE)) {
        return UCT_VARUNA_ADDR_UNKNOWN;
    }

    if ((!addr->is_ib || (attr.lid == addr->lid)) && (attr.active_mtu == addr->mtu) &&
        uct_varuna_mlx5_has_gid(context, port_num, addr->gid_index, addr->gid)) {
        return UCT_VARUNA_ADDR_SAME;
    }

    if (addr->is_ib) {
        return (attr.lid == 0) ? UCT_VARUNA_ADDR_UNKNOWN : UCT_VARUNA_ADDR_MOVED;
    }

    for (i = 0; i < attr.gid_tbl_len; ++i) {
        if (uct_varuna_mlx5_has_gid(context, port_num, i, addr->gid)) {
            return UCT_VARUNA_ADDR_MOVED;
        }
    }

    return UCT_VARUNA_ADDR_GONE;
}

static int uct_varuna_mlx5_gid_is_empty(struct ibv_context *context, uint8_t port_num,
                                        int index)
{
    static const union ibv_gid empty;

    union ibv_gid gid;

    return (ibv_query_gid(context, port_num, index, &gid) != 0) ||
           !memcmp(&gid, &empty, sizeof(gid));
}

int uct_varuna_mlx5_gid_is_missing(uct_iface_h inner, unsigned *index_p)
{
    uct_ib_iface_t *iface       = ucs_derived_of(inner, uct_ib_iface_t);
    unsigned long named         = uct_ib_iface_md(iface)->config.gid_index;
    struct ibv_context *context = uct_ib_iface_device(iface)->ibv_context;
    uint8_t port_num            = iface->config.port_num;
    int has_name                = (named != UCS_ULUNITS_AUTO);
    struct ibv_port_attr attr;
    unsigned i, end;

    if (ibv_query_port(context, port_num, &attr) != 0) {
        return 0; /* Whoever uses it finds out */
    }

    /* Without a name any entry will do on Ethernet; InfiniBand's is always the first one */
    *index_p = has_name ? named : UCT_VARUNA_COMPAT_DEFAULT_GID_INDEX;
    end      = (!has_name && (attr.link_layer == IBV_LINK_LAYER_ETHERNET)) ?
               (unsigned)attr.gid_tbl_len : (*index_p + 1);
    for (i = *index_p; i < end; ++i) {
        if (!uct_varuna_mlx5_gid_is_empty(context, port_num, i)) {
            return 0;
        }
    }

    return 1;
}

void uct_varuna_mlx5_addr_refresh(uct_iface_h inner)
{
    uct_ib_iface_t *iface      = ucs_derived_of(inner, uct_ib_iface_t);
    uct_ib_device_t *dev       = uct_ib_iface_device(iface);
    uint8_t port_num           = iface->config.port_num;
    struct ibv_port_attr *attr = uct_ib_device_port_attr(dev, port_num);
    struct ibv_port_attr now;
    union ibv_gid gid;

    /* UCX keeps the answer from when it opened the device, and all its interfaces report that */
    if (ibv_query_port(dev->ibv_context, port_num, &now) == 0) {
        attr->lid        = now.lid;
        attr->sm_lid     = now.sm_lid;
        attr->active_mtu = now.active_mtu;
    }

    if (ibv_query_gid(dev->ibv_context, port_num, iface->gid_info.gid_index, &gid) ==
        0) {
        iface->gid_info.gid = gid;
    }
}

void uct_varuna_mlx5_addr_take(uct_iface_h inner, uct_iface_h other)
{
    uct_ib_iface_t *iface       = ucs_derived_of(inner, uct_ib_iface_t);
    const uct_ib_iface_t *newer = ucs_derived_of(other, uct_ib_iface_t);

    iface->gid_info        = newer->gid_info;
    iface->addr_size       = newer->addr_size;
    iface->config.path_mtu = newer->config.path_mtu;
}
