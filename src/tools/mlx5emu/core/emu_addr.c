/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_addr.h.
 */

#include "emu_addr.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define EMU_ADDR_GUID_BASE   0x0002c90300000000ul
#define EMU_ADDR_PREFIX_BASE 0xfec0000000000000ul /* of plane 0 */
#define EMU_ADDR_PREFIX_ONE  0xfe80000000000000ul /* a subnet manager's default */

/* LIDs: host + 1 where the cables are right, so that a fabric is easy to read. A
 * port in the wrong place has one of its own, and so has each of them whenever
 * they are assigned again. */
#define EMU_ADDR_LID_STRIDE  512
#define EMU_ADDR_LID_MOVES   64

_Static_assert((EMU_MAX_LINKS + 1) * EMU_MAX_HOSTS < EMU_ADDR_LID_STRIDE,
               "no two ports have a LID in common");
_Static_assert(EMU_ADDR_LID_STRIDE * EMU_ADDR_LID_MOVES < 0xc000,
               "LIDs are unicast");
_Static_assert((EMU_GID_TBL_ROCE - EMU_GID_NUM_DEFAULT) / EMU_GID_NUM_IP >= 2,
               "addresses can move");

uint16_t emu_addr_lid(const emu_addr_t *addr)
{
    uint16_t lid = addr->host + 1;

    if (addr->is_roce) {
        return 0;
    }

    if (addr->plane != addr->link) {
        lid += (addr->link + 1) * EMU_MAX_HOSTS;
    }
    return lid + (addr->moves % EMU_ADDR_LID_MOVES) * EMU_ADDR_LID_STRIDE;
}

void emu_addr_of_lid(uint16_t lid, unsigned plane, unsigned *host_p,
                     unsigned *link_p)
{
    unsigned place = (lid - 1u) % EMU_ADDR_LID_STRIDE;

    *host_p = place % EMU_MAX_HOSTS;
    *link_p = (place < EMU_MAX_HOSTS) ? plane : (place / EMU_MAX_HOSTS - 1);
}

uint64_t emu_addr_guid(const emu_addr_t *addr)
{
    return EMU_ADDR_GUID_BASE | (addr->host << 8) | addr->link;
}

void emu_addr_mac(const emu_addr_t *addr, uint8_t mac[6])
{
    mac[0] = 0x00;
    mac[1] = 0x02;
    mac[2] = 0xc9;
    mac[3] = 0x00;
    mac[4] = addr->host;
    mac[5] = addr->link;
}

int emu_addr_of_mac(const uint8_t mac[6], unsigned *host_p, unsigned *link_p)
{
    static const uint8_t vendor[4] = {0x00, 0x02, 0xc9, 0x00};

    *host_p = mac[4];
    *link_p = mac[5];
    return (memcmp(mac, vendor, sizeof(vendor)) == 0) ? 0 : -ENOENT;
}

unsigned emu_addr_num_gids(const emu_addr_t *addr)
{
    return addr->is_roce ? EMU_GID_TBL_ROCE : EMU_GID_TBL_IB;
}

int emu_gid_is_ipv4(const union ibv_gid *gid)
{
    return (gid->global.subnet_prefix == 0) &&
           (gid->raw[8] == 0) && (gid->raw[9] == 0) && (gid->raw[10] == 0xff) &&
           (gid->raw[11] == 0xff);
}

/* The modified EUI-64 of the MAC */
static void emu_addr_gid_default(const emu_addr_t *addr, union ibv_gid *gid_p)
{
    uint8_t mac[6];

    emu_addr_mac(addr, mac);
    gid_p->global.subnet_prefix = htobe64(0xfe80000000000000ul);
    gid_p->raw[8]               = mac[0] ^ 2;
    gid_p->raw[9]               = mac[1];
    gid_p->raw[10]              = mac[2];
    gid_p->raw[11]              = 0xff;
    gid_p->raw[12]              = 0xfe;
    memcpy(&gid_p->raw[13], &mac[3], 3);
}

/* 10.<link>.0.<host + 1>, or 10.0.<link>.<host + 1> if there is one network */
static void emu_addr_gid_ipv4(const emu_addr_t *addr, union ibv_gid *gid_p)
{
    gid_p->raw[10] = 0xff;
    gid_p->raw[11] = 0xff;
    gid_p->raw[12] = 10;
    gid_p->raw[13] = addr->one_net ? 0 : addr->link;
    gid_p->raw[14] = addr->one_net ? addr->link : 0;
    gid_p->raw[15] = addr->host + 1;
}

/* The same with 64 bits each */
static void emu_addr_gid_ipv6(const emu_addr_t *addr, union ibv_gid *gid_p)
{
    gid_p->raw[0]  = 0xfd;
    gid_p->raw[7]  = addr->one_net ? 0 : addr->link;
    gid_p->raw[14] = addr->one_net ? addr->link : 0;
    gid_p->raw[15] = addr->host + 1;
}

static int emu_addr_gid_ib(const emu_addr_t *addr, unsigned index,
                           union ibv_gid *gid_p, emu_gid_type_t *type_p)
{
    *type_p = EMU_GID_IB;
    if (index != 0) {
        return -ENODATA;
    }

    gid_p->global.subnet_prefix = htobe64(addr->one_net ? EMU_ADDR_PREFIX_ONE :
                                          (EMU_ADDR_PREFIX_BASE | addr->plane));
    gid_p->global.interface_id  = htobe64(emu_addr_guid(addr));
    return 0;
}

/* Of the places for addresses, which is in use now? */
static unsigned emu_addr_first_ip(const emu_addr_t *addr)
{
    unsigned places = (EMU_GID_TBL_ROCE - EMU_GID_NUM_DEFAULT) / EMU_GID_NUM_IP;

    return EMU_GID_NUM_DEFAULT + (addr->moves % places) * EMU_GID_NUM_IP;
}

static int emu_addr_gid_roce(const emu_addr_t *addr, unsigned index,
                             union ibv_gid *gid_p, emu_gid_type_t *type_p)
{
    unsigned first = emu_addr_first_ip(addr);

    *type_p = (index & 1) ? EMU_GID_ROCE_V2 : EMU_GID_ROCE_V1;
    if (index < EMU_GID_NUM_DEFAULT) {
        emu_addr_gid_default(addr, gid_p);
        return 0;
    }

    if (addr->no_ip || (index < first) || (index >= first + EMU_GID_NUM_IP)) {
        return -ENODATA;
    }

    if (index < first + EMU_GID_NUM_IP / 2) {
        emu_addr_gid_ipv4(addr, gid_p);
    } else {
        emu_addr_gid_ipv6(addr, gid_p);
    }
    return 0;
}

int emu_addr_gid(const emu_addr_t *addr, unsigned index, union ibv_gid *gid_p,
                 emu_gid_type_t *type_p)
{
    memset(gid_p, 0, sizeof(*gid_p));
    if (index >= emu_addr_num_gids(addr)) {
        return -EINVAL;
    }

    return addr->is_roce ? emu_addr_gid_roce(addr, index, gid_p, type_p) :
                           emu_addr_gid_ib(addr, index, gid_p, type_p);
}
