/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The addresses of a port: LID, MAC, and the table of GIDs. Pure: all of them
 * follow from where the port is and from a few bits.
 *
 * InfiniBand: one GID, <prefix of the plane>:<GUID>, and the LID that the plane's
 * subnet manager assigns.
 *
 * RoCE: no LID. As with mlx5_ib, each address of the network device is in the
 * table twice, for RoCE v1 and for RoCE v2:
 *
 *      index  GID                          type
 *      0, 1   fe80::<EUI-64 of the MAC>    v1, v2    the default GIDs: never move
 *      2, 3   ::ffff:10.<net>.0.<host + 1> v1, v2    IPv4
 *      4, 5   fd00:0:0:<net>::<host + 1>   v1, v2    IPv6
 *
 * Those of IP addresses are gone while the interface has no addresses. When the
 * addresses return, they get the next four indices: with the Linux kernel, an entry
 * keeps its place as long as an address handle or a queue pair refers to it.
 *
 * Called by: emu_port.c, emu_route.c.
 */

#ifndef EMU_ADDR_H_
#define EMU_ADDR_H_

#include "../base/emu_def.h"

#define EMU_GID_TBL_IB      1
#define EMU_GID_TBL_ROCE    16  /* a ConnectX has 256 */
#define EMU_GID_NUM_DEFAULT 2
#define EMU_GID_NUM_IP      4

/** Type of a GID. */
typedef enum emu_gid_type {
    EMU_GID_IB,
    EMU_GID_ROCE_V1,
    EMU_GID_ROCE_V2
} emu_gid_type_t;

/** Where a port is, and what its addresses depend on. */
typedef struct emu_addr {
    uint16_t host;
    uint16_t link;      /* its NIC is the host's device number "link" */
    uint16_t plane;     /* whose switch it is connected to: "link", unless a cable
                           is in the wrong place */
    uint8_t  is_roce;
    uint8_t  one_net;   /* all planes have the same prefix */
    uint8_t  no_ip;     /* RoCE: the network device has lost its IP addresses */
    uint8_t  moves;     /* how often the addresses were assigned again */
} emu_addr_t;

/** LID of a port on InfiniBand; 0 on RoCE. */
uint16_t emu_addr_lid(const emu_addr_t *addr);

/** Where the port with a LID would be. The caller checks that it is its LID. */
void emu_addr_of_lid(uint16_t lid, unsigned plane, unsigned *host_p,
                     unsigned *link_p);

/** GUID of a port and its NIC, in host byte order. */
uint64_t emu_addr_guid(const emu_addr_t *addr);

/** MAC address of a port on RoCE. */
void emu_addr_mac(const emu_addr_t *addr, uint8_t mac[6]);

/** Where the port with a MAC address would be. @return 0, or -ENOENT. */
int emu_addr_of_mac(const uint8_t mac[6], unsigned *host_p, unsigned *link_p);

/** Indices of the GID table, in use or not. */
unsigned emu_addr_num_gids(const emu_addr_t *addr);

/** An entry of the GID table.
 *  @return 0, -ENODATA (not in use: the GID is zero), -EINVAL (no such index). */
int emu_addr_gid(const emu_addr_t *addr, unsigned index, union ibv_gid *gid_p,
                 emu_gid_type_t *type_p);

/** Whether a GID is that of an IPv4 address. */
int emu_gid_is_ipv4(const union ibv_gid *gid);

#endif
