/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks a port's address, and connects RC. See varuna_ib_addr.h.
 *
 *   Ethernet:    flags  GID (16)                                            ...
 *   InfiniBand:  flags  LID (2)  [interface id (8)]  [subnet (2 or 8)]      ...
 *   both:        ...  [path MTU (1)]  [GID index (1)]  [partition key (2)]
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_ib_addr.h"

#include <uct/ib/base/ib_iface.h>
#include <ucs/sys/string.h>
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <endian.h>
#include <string.h>
#include <ucs/debug/log.h>

/* LIDs from here on are multicast groups; 0 is a port without one */
#define UCT_VARUNA_IB_MULTICAST_LID 0xc000

/* First byte of a multicast group's GID */
#define UCT_VARUNA_IB_MULTICAST_GID 0xff

/* Bytes which the flags call for */
static size_t uct_varuna_ib_addr_length(uint8_t flags)
{
    size_t length = sizeof(uct_ib_address_t);

    if (flags & UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH) {
        length += sizeof(union ibv_gid);
    } else {
        length += sizeof(uint16_t);
        length += (flags & UCT_IB_ADDRESS_FLAG_IF_ID) ? sizeof(uint64_t) : 0;
        length += (flags & UCT_IB_ADDRESS_FLAG_SUBNET16) ? sizeof(uint16_t) : 0;
        length += (flags & UCT_IB_ADDRESS_FLAG_SUBNET64) ? sizeof(uint64_t) : 0;
    }

    length += (flags & UCT_IB_ADDRESS_FLAG_PATH_MTU) ? sizeof(uint8_t) : 0;
    length += (flags & UCT_IB_ADDRESS_FLAG_PKEY) ? sizeof(uint16_t) : 0;
    return length;
}

static int uct_varuna_ib_addr_is_zero(const uint8_t *bytes)
{
    static const uint8_t zero[sizeof(uint64_t)];

    return !memcmp(bytes, zero, sizeof(zero));
}

/* UCX ends the process if it needs the interface id of a GID, and it is 0 */
static int uct_varuna_ib_addr_check_port(uint8_t flags, const uint8_t *pos)
{
    uint16_t lid;

    if (flags & UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH) {
        /* The bits after the last flag are the version of RoCE, or a wildcard */
        return !uct_varuna_ib_addr_is_zero(pos + sizeof(uint64_t)) &&
               (pos[0] != UCT_VARUNA_IB_MULTICAST_GID) &&
               ((flags / (unsigned)UCT_IB_ADDRESS_FLAG_ETH_LAST) <
                UCT_IB_DEVICE_ROCE_ANY);
    }

    memcpy(&lid, pos, sizeof(lid));
    if (lid >= UCT_VARUNA_IB_MULTICAST_LID) {
        return 0;
    }

    if ((flags & UCT_IB_ADDRESS_FLAG_SUBNET16) &&
        (flags & UCT_IB_ADDRESS_FLAG_SUBNET64)) {
        return 0;
    }

    return (flags & UCT_IB_ADDRESS_FLAG_IF_ID) ?
           !uct_varuna_ib_addr_is_zero(pos + sizeof(lid)) : (lid != 0);
}

/* Behind the port: the path MTU comes first */
static size_t uct_varuna_ib_addr_mtu_offset(uint8_t flags, size_t length)
{
    return length - sizeof(uint8_t) -
           ((flags & UCT_IB_ADDRESS_FLAG_PKEY) ? sizeof(uint16_t) : 0);
}

/* @return An enum ibv_mtu, if it is valid. */
static uint8_t uct_varuna_ib_addr_get_mtu(uint8_t flags, const uint8_t *addr,
                                          size_t length)
{
    return (flags & UCT_IB_ADDRESS_FLAG_PATH_MTU) ?
           addr[uct_varuna_ib_addr_mtu_offset(flags, length)] : IBV_MTU_4096;
}

static int uct_varuna_ib_addr_check_mtu(uint8_t flags, const uint8_t *addr,
                                        size_t length)
{
    uint8_t mtu = uct_varuna_ib_addr_get_mtu(flags, addr, length);

    return (mtu >= IBV_MTU_256) && (mtu <= IBV_MTU_4096);
}

unsigned uct_varuna_ib_addr_mtu(const void *addr, size_t length)
{
    const uint8_t *bytes = addr;

    if ((length < sizeof(uct_ib_address_t)) ||
        (length != uct_varuna_ib_addr_length(bytes[0])) ||
        !uct_varuna_ib_addr_check_mtu(bytes[0], bytes, length)) {
        return 0;
    }

    return 128u << uct_varuna_ib_addr_get_mtu(bytes[0], bytes, length);
}

void uct_varuna_ib_addr_limit_mtu(void *addr, size_t length, unsigned mtu)
{
    uint8_t *bytes = addr;
    uint8_t *pos;

    if (!(bytes[0] & UCT_IB_ADDRESS_FLAG_PATH_MTU)) {
        return; /* UCX takes its own */
    }

    pos = &bytes[uct_varuna_ib_addr_mtu_offset(bytes[0], length)];
    while (((128u << *pos) > mtu) && (*pos > IBV_MTU_256)) {
        --*pos;
    }
}

int uct_varuna_ib_addr_is_valid(const void *addr, size_t length, const void *own)
{
    const uint8_t *bytes = addr;
    uint8_t flags, same;

    if (length < sizeof(uct_ib_address_t)) {
        return 0;
    }

    /* A peer cannot choose which of our GIDs is used. If peers need more than a LID to
     * reach us, we need more to reach them as well */
    flags = bytes[0];
    same  = UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH;
    if (!(flags & UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH)) {
        same |= *(const uint8_t*)own & UCT_IB_ADDRESS_FLAG_IF_ID;
    }

    return !(flags & UCT_IB_ADDRESS_FLAG_GID_INDEX) &&
           !((flags ^ *(const uint8_t*)own) & same) &&
           (length == uct_varuna_ib_addr_length(flags)) &&
           uct_varuna_ib_addr_check_port(flags, bytes + sizeof(uct_ib_address_t)) &&
           uct_varuna_ib_addr_check_mtu(flags, bytes, length);
}

/* @return The subnet, as it is written; 0: the default one. */
static uint64_t uct_varuna_ib_addr_subnet(uint8_t flags, const uint8_t *pos)
{
    uint16_t subnet16;
    uint64_t subnet64;

    pos += sizeof(uint16_t) + ((flags & UCT_IB_ADDRESS_FLAG_IF_ID) ? sizeof(uint64_t) : 0);
    if (flags & UCT_IB_ADDRESS_FLAG_SUBNET16) {
        memcpy(&subnet16, pos, sizeof(subnet16));
        return be16toh(subnet16);
    } else if (flags & UCT_IB_ADDRESS_FLAG_SUBNET64) {
        memcpy(&subnet64, pos, sizeof(subnet64));
        return be64toh(subnet64);
    }

    return 0;
}

void uct_varuna_ib_addr_print(const void *addr, size_t length, char *text, size_t max)
{
    const uint8_t *bytes = addr;
    char gid[INET6_ADDRSTRLEN];
    const uint8_t *pos;
    uint64_t subnet;
    uint16_t lid;

    if ((length < sizeof(uct_ib_address_t)) ||
        (length != uct_varuna_ib_addr_length(bytes[0]))) {
        ucs_strncpy_zero(text, "?", max);
        return;
    }

    pos = bytes + sizeof(uct_ib_address_t);
    if (bytes[0] & UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH) {
        inet_ntop(AF_INET6, pos, gid, sizeof(gid));
        ucs_snprintf_zero(text, max, "GID %s", gid);
        return;
    }

    memcpy(&lid, pos, sizeof(lid));
    subnet = uct_varuna_ib_addr_subnet(bytes[0], pos);
    if (subnet == 0) {
        ucs_snprintf_zero(text, max, "LID %u", lid);
    } else {
        ucs_snprintf_zero(text, max, "LID %u, subnet 0x%lx", lid, subnet);
    }
}

/* --- Connecting RC --- */

/* Inner code takes lengths from what it reads */
#define UCT_VARUNA_RC_ADDR_ROOM 64

typedef struct {
    char                       device[UCT_VARUNA_RC_ADDR_ROOM];
    char                       ep[UCT_VARUNA_RC_ADDR_ROOM];
} uct_varuna_rc_addr_t;

static ucs_status_t uct_varuna_rc_addr_read(const uct_varuna_link_t *link,
                                            const uct_varuna_ctl_connect_t *msg,
                                            uct_varuna_rc_addr_t *addr)
{
    const uct_varuna_lane_iface_t *rc = uct_varuna_link_rc(link);

    if ((msg->ep_len != rc->attr.ep_addr_len) ||
        (msg->ep_len > sizeof(addr->ep)) ||
        (msg->device_len > sizeof(addr->device)) ||
        !uct_varuna_ib_addr_is_valid(msg + 1, msg->device_len,
                                     link->device_addr)) {
        ucs_debug("a peer's RC address of %u + %u bytes is not valid",
                  msg->device_len, msg->ep_len);
        return UCS_ERR_INVALID_ADDR;
    }

    memset(addr, 0, sizeof(*addr));
    memcpy(addr->device, msg + 1, msg->device_len);
    uct_varuna_ib_addr_limit_mtu(addr->device, msg->device_len,
                                 uct_varuna_ib_addr_mtu(link->device_addr,
                                                        link->device_addr_len));
    memcpy(addr->ep, UCS_PTR_BYTE_OFFSET(msg + 1, msg->device_len), msg->ep_len);
    if (!uct_iface_is_reachable(rc->inner, (uct_device_addr_t*)addr->device,
                                NULL)) {
        ucs_debug("a peer's RC address is not reached from this link");
        return UCS_ERR_UNREACHABLE;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_rc_addr_check(const uct_varuna_link_t *link,
                                      const uct_varuna_ctl_connect_t *msg)
{
    uct_varuna_rc_addr_t addr;

    return uct_varuna_rc_addr_read(link, msg, &addr);
}

ucs_status_t uct_varuna_rc_connect(const uct_varuna_link_t *link, uct_ep_h ep,
                                   const uct_varuna_ctl_connect_t *msg)
{
    uct_varuna_rc_addr_t addr;
    ucs_status_t status;

    status = uct_varuna_rc_addr_read(link, msg, &addr);
    return (status != UCS_OK) ? status :
           uct_ep_connect_to_ep(ep, (uct_device_addr_t*)addr.device,
                                (uct_ep_addr_t*)addr.ep);
}
