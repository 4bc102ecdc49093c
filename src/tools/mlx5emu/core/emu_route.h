/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * From addresses to ports: what the switch of a plane knows, and what a host must
 * find out before it can send on RoCE.
 *
 * Called by: proto/ and wire/ (packets), verbs/ (address handles, queue pairs).
 */

#ifndef EMU_ROUTE_H_
#define EMU_ROUTE_H_

#include "../base/emu_def.h"
#include "../wqe/emu_wqe.h"

#define EMU_ROUTE_NONE 0xffffu /* no port has this index */

_Static_assert(EMU_MAX_PORTS < EMU_ROUTE_NONE, "indices of ports are 16 bits");

/** The part of a packet's headers that is not on each packet of InfiniBand. RoCE v2
 *  has IP headers instead, with the same addresses. */
typedef struct emu_grh {
    union ibv_gid sgid;
    union ibv_gid dgid;
    uint32_t      flow_label;
    uint8_t       type;        /* emu_gid_type_t */
    uint8_t       hop_limit;
    uint8_t       tclass;
} emu_grh_t;

/** Port by index, NULL if there is none, as for EMU_ROUTE_NONE. */
emu_port_t *emu_route_port(uint16_t index);

/** Where the plane's switch sends a packet of this path: index of the port, or
 *  EMU_ROUTE_NONE. */
uint16_t emu_route(const emu_port_t *src, const emu_path_t *path);

/** Whether a port's host knows that nothing leaves by it, so that it has no route for
 *  a packet: quirk no-route. */
int emu_route_is_gone(emu_port_t *src);

/**
 * Headers of a packet that a port sends on this path.
 *
 * @return 1, 0: it has none of these, -ENODATA: it cannot be sent, since the index
 *         of its own GID is not in use.
 */
int emu_route_grh(const emu_port_t *src, const emu_path_t *path,
                  emu_grh_t *grh_p);

/** Whether a packet is for the GID that a queue pair with this path uses. Without
 *  @a grh (NULL) it is on InfiniBand, and it is not on RoCE. */
int emu_route_is_mine(const emu_port_t *port, const emu_path_t *path,
                      const emu_grh_t *grh);

/** Index of a GID in a port's table, by its value and type.
 *  @return Index, or -ENOENT. */
int emu_route_find_gid(const emu_port_t *port, const union ibv_gid *gid,
                       uint8_t type);

/**
 * RoCE: find the MAC address for a GID, as the host's kernel does by ARP or neighbor
 * discovery. The result is valid until the link goes down. Blocks for a second (scaled)
 * if there is no answer.
 *
 * @return 0, -EINVAL or -ENODATA (no such GID of our own), -ETIMEDOUT.
 */
int emu_route_resolve(emu_port_t *src, unsigned sgid_index,
                      const union ibv_gid *dgid, uint8_t rmac[6]);

/** The path of verbs' attributes; on RoCE without the MAC address. */
void emu_route_path(const struct ibv_ah_attr *attr, emu_path_t *path_p);

#endif
