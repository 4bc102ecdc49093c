/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Writes the addresses of our interface: the full one, which control messages
 * carry, and the short one, which UCP has 63 bytes for. varuna_msg.c reads them.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_addr.h"
#include "varuna_ctl.h"
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/core/varuna_wire.h>

#include <string.h>

/* @return The number of links in a full address. */
static unsigned uct_varuna_addr_num_links(const uct_varuna_iface_t *iface)
{
    unsigned count = 0;
    unsigned i;

    for (i = 0; i < iface->num_links; ++i) {
        count += !iface->links[i].is_former;
    }

    return count;
}

static void uct_varuna_addr_init(const uct_varuna_iface_t *iface, int is_short,
                                 uct_varuna_addr_t *addr)
{
    unsigned num_links = uct_varuna_addr_num_links(iface);

    addr->magic     = UCT_VARUNA_WIRE_MAGIC;
    addr->version   = UCT_VARUNA_WIRE_VERSION;
    addr->num_links = (is_short ? UCT_VARUNA_ADDR_SHORT : 0) |
                      ((num_links < iface->md->num_links) ? UCT_VARUNA_ADDR_LIMITED : 0);
    addr->uuid      = iface->uuid;
}

/* @return Bytes of link @a index in a full address, 0 if it has no room. */
static size_t uct_varuna_addr_put_link(uct_varuna_iface_t *iface,
                                       unsigned index, void *buffer, size_t max)
{
    const uct_varuna_link_t *link       = &iface->links[index];
    const uct_varuna_lane_iface_t *base = uct_varuna_link_base(link);
    uct_varuna_addr_link_t *entry       = buffer;
    size_t length                       = sizeof(*entry);
    const char *name                    = uct_varuna_link_name(iface, index);
    size_t name_len                     = strnlen(name, UCT_VARUNA_NAME_MAX);
    const void *ctl_addr;
    size_t ctl_len;

    ctl_addr = uct_varuna_ctl_link_addr(iface->ctl, index, &ctl_len);
    if (length + link->device_addr_len + base->attr.iface_addr_len + ctl_len +
        name_len >
        max) {
        return 0;
    }

    entry->index      = uct_varuna_wire_nic(link->nic, uct_varuna_link_port(iface, index));
    entry->device_len = link->device_addr_len;
    entry->dc_len     = base->attr.iface_addr_len;
    entry->ctl_len    = ctl_len;
    entry->name_len   = name_len;
    entry->is_named   = iface->md->links_are_named;
    memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), link->device_addr,
           link->device_addr_len);
    length           += link->device_addr_len;
    uct_iface_get_address(base->inner, UCS_PTR_BYTE_OFFSET(buffer, length));
    length           += base->attr.iface_addr_len;
    memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), ctl_addr, ctl_len);
    length           += ctl_len;
    memcpy(UCS_PTR_BYTE_OFFSET(buffer, length), name, name_len);
    return length + name_len;
}

size_t uct_varuna_iface_pack_full_address(uct_varuna_iface_t *iface,
                                          void *buffer, size_t max)
{
    uct_varuna_addr_t *addr = buffer;
    size_t length           = sizeof(*addr);
    size_t size;
    unsigned i;

    uct_varuna_addr_init(iface, 0, addr);
    for (i = 0; i < iface->num_links; ++i) {
        if (iface->links[i].is_former) {
            continue;
        }

        size = uct_varuna_addr_put_link(iface, i,
                                        UCS_PTR_BYTE_OFFSET(buffer, length),
                                        max - length);
        if (size == 0) {
            break;
        }

        length += size;
        ++addr->num_links;
    }

    return length;
}

/* As above in a short address. @a last is the control address of the link before,
 * of the same length, NULL for the first one. */
static size_t
uct_varuna_addr_put_short_link(const uct_varuna_iface_t *iface, unsigned index,
                               const void *last, void *buffer, size_t max)
{
    const uct_varuna_link_t *outer = &iface->links[0];
    const uct_varuna_link_t *link  = &iface->links[index];
    uint8_t *entry                 = buffer;
    size_t length                  = sizeof(*entry);
    const void *ctl_addr;
    size_t ctl_len, size;

    ctl_addr = uct_varuna_ctl_link_addr(iface->ctl, index, &ctl_len);
    if (length > max) {
        return 0;
    }

    *entry = (link->nic << UCT_VARUNA_ADDR_DEVICE_BITS) | link->device_addr_len;
    size   = uct_varuna_delta_write(outer->device_addr,
                                    uct_varuna_iface_outer_len(iface),
                                    link->device_addr, link->device_addr_len,
                                    UCS_PTR_BYTE_OFFSET(buffer, length),
                                    max - length);
    if (size == 0) {
        return 0;
    }

    length += size;
    size    = uct_varuna_delta_write(last, (last == NULL) ? 0 : ctl_len,
                                     ctl_addr, ctl_len,
                                     UCS_PTR_BYTE_OFFSET(buffer, length),
                                     max - length);
    return (size == 0) ? 0 : (length + size);
}

unsigned uct_varuna_iface_pack_short_address(const uct_varuna_iface_t *iface,
                                             void *buffer)
{
    uct_varuna_addr_t *addr        = buffer;
    uct_varuna_addr_short_t *shared = (uct_varuna_addr_short_t*)(addr + 1);
    size_t length                  = sizeof(*addr) + sizeof(*shared);
    const void *last               = NULL;
    size_t size, ctl_len, last_len;
    unsigned i;

    uct_varuna_addr_init(iface, 1, addr);
    uct_varuna_ctl_link_addr(iface->ctl, 0, &ctl_len);
    shared->outer_len = uct_varuna_iface_outer_len(iface);
    shared->ctl_len   = ctl_len;
    for (i = 0; i < iface->num_links; ++i) {
        if (iface->links[i].is_former) {
            continue;
        }

        size = uct_varuna_addr_put_short_link(
                iface, i, last, UCS_PTR_BYTE_OFFSET(buffer, length),
                UCT_VARUNA_IFACE_ADDR_MAX - length);
        if (size == 0) {
            break; /* The peer learns the others from OPEN_REP */
        }

        last    = uct_varuna_ctl_link_addr(iface->ctl, i, &last_len);
        length += size;
        ++addr->num_links;
    }

    /* A link without room may have left a part of it */
    memset(UCS_PTR_BYTE_OFFSET(buffer, length), 0, UCT_VARUNA_IFACE_ADDR_MAX - length);
    return i;
}
