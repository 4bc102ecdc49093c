/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_route.h.
 */

#include "emu_route.h"
#include "emu_fabric.h"
#include "emu_port.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define EMU_ROUTE_ASK_NS 1000000ul /* between two questions for one address */

emu_port_t *emu_route_port(uint16_t index)
{
    return (index < emu_fabric->cfg.hosts * emu_fabric->cfg.links) ?
           &emu_fabric->ports[index] : NULL;
}

static int emu_route_is_plane_common(const emu_port_t *a, const emu_port_t *b)
{
    return (emu_port_plane(a) == emu_port_plane(b)) &&
           (emu_port_is_roce(a) == emu_port_is_roce(b));
}

static uint16_t emu_route_mac(const emu_port_t *src, const emu_path_t *path)
{
    unsigned host, link;
    const emu_port_t *dst;

    if (!path->is_full || (emu_addr_of_mac(path->rmac, &host, &link) != 0)) {
        return EMU_ROUTE_NONE;
    }

    dst = emu_port_get(host, link);
    return ((dst == NULL) || !emu_route_is_plane_common(src, dst)) ?
           EMU_ROUTE_NONE : dst->index;
}

uint16_t emu_route(const emu_port_t *src, const emu_path_t *path)
{
    unsigned host, link;
    const emu_port_t *dst;

    if (emu_port_is_roce(src)) {
        return emu_route_mac(src, path);
    }

    emu_addr_of_lid(path->dlid, emu_port_plane(src), &host, &link);
    dst = emu_port_get(host, link);
    return ((dst == NULL) || (emu_port_lid(dst) != path->dlid) ||
            !emu_route_is_plane_common(src, dst)) ? EMU_ROUTE_NONE : dst->index;
}

int emu_route_is_gone(emu_port_t *src)
{
    if (emu_likely(!emu_quirk_on(src->index, EMU_QUIRK_NO_ROUTE)) ||
        emu_quirk_on(src->index, EMU_QUIRK_FIXED_PORT)) {
        return 0;
    }

    /* The time decides about a link that flaps */
    if (__atomic_load_n(&src->flap_period_ns, __ATOMIC_RELAXED) != 0) {
        emu_link_tick(src);
    }
    return emu_port_is_down(src);
}

int emu_route_grh(const emu_port_t *src, const emu_path_t *path,
                  emu_grh_t *grh_p)
{
    emu_gid_type_t type;

    if (emu_likely(!path->has_grh && !emu_port_is_roce(src))) {
        return 0;
    }

    if (!path->is_full ||
        (emu_port_gid(src, path->sgid_index, &grh_p->sgid, &type) != 0)) {
        return -ENODATA;
    }

    memcpy(&grh_p->dgid, path->dgid, sizeof(grh_p->dgid));
    grh_p->type       = type;
    grh_p->flow_label = path->flow_label;
    grh_p->hop_limit  = path->hop_limit;
    grh_p->tclass     = path->tclass;
    return 1;
}

int emu_route_is_mine(const emu_port_t *port, const emu_path_t *path,
                      const emu_grh_t *grh)
{
    emu_gid_type_t type;
    union ibv_gid gid;

    if (emu_likely(!path->has_grh && !emu_port_is_roce(port))) {
        return 1;
    }

    if (grh == NULL) {
        return !emu_port_is_roce(port);
    }

    return (emu_port_gid(port, path->sgid_index, &gid, &type) == 0) &&
           (type == grh->type) &&
           (memcmp(&gid, &grh->dgid, sizeof(gid)) == 0);
}

int emu_route_find_gid(const emu_port_t *port, const union ibv_gid *gid,
                       uint8_t type)
{
    emu_gid_type_t its_type;
    union ibv_gid its;
    emu_addr_t addr;
    unsigned i;

    emu_port_addr(port, &addr);
    for (i = 0; i < emu_addr_num_gids(&addr); i++) {
        if ((emu_addr_gid(&addr, i, &its, &its_type) == 0) &&
            (its_type == type) && (memcmp(&its, gid, sizeof(its)) == 0)) {
            return i;
        }
    }

    return -ENOENT;
}

/* The port that owns @a gid on the plane of @a src; NULL: none */
static const emu_port_t *emu_route_owner(const emu_port_t *src,
                                         const union ibv_gid *gid)
{
    unsigned num = emu_fabric->cfg.hosts * emu_fabric->cfg.links;
    const emu_port_t *port;
    unsigned i;

    for (i = 0; i < num; i++) {
        port = &emu_fabric->ports[i];
        if (emu_route_is_plane_common(src, port) &&
            ((emu_route_find_gid(port, gid, EMU_GID_ROCE_V1) >= 0) ||
             (emu_route_find_gid(port, gid, EMU_GID_ROCE_V2) >= 0))) {
            return port;
        }
    }

    return NULL;
}

static int emu_route_can_talk(const emu_port_t *port)
{
    const emu_port_t *carrier = emu_port_carrier(port);

    return (carrier != NULL) &&
           (__atomic_load_n(&carrier->link_state, __ATOMIC_ACQUIRE) ==
            EMU_LINK_UP) &&
           !(__atomic_load_n(&port->nic_gen, __ATOMIC_ACQUIRE) & 1);
}

/* Whether the host of a port knows the MAC address of another one, or can ask it */
static int emu_route_knows(emu_port_t *src, const emu_port_t *dst)
{
    uint64_t *word = &src->neighbors[dst->index / 64];
    uint64_t bit   = 1ul << (dst->index % 64);

    if ((src == dst) || (__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) {
        return 1;
    }

    if (!emu_route_can_talk(src) || !emu_route_can_talk(dst)) {
        return 0;
    }

    __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
    return 1;
}

/* Ask for the address until the other port answers, for as long as the quirk says. There
 * may be no such port */
static int emu_route_ask(emu_port_t *src, const emu_port_t *dst)
{
    struct timespec ts = { .tv_nsec = EMU_ROUTE_ASK_NS };
    uint64_t end;

    end = emu_now_ns() + emu_scaled_ns(emu_quirk_value(src->index, EMU_QUIRK_ROCE, 0));
    while ((dst == NULL) || !emu_route_knows(src, dst)) {
        if (emu_now_ns() >= end) {
            return 0;
        }
        nanosleep(&ts, NULL);
    }

    return 1;
}

int emu_route_resolve(emu_port_t *src, unsigned sgid_index,
                      const union ibv_gid *dgid, uint8_t rmac[6])
{
    const emu_port_t *dst;
    emu_gid_type_t type;
    union ibv_gid own;
    emu_addr_t addr;
    int ret;

    ret = emu_port_gid(src, sgid_index, &own, &type);
    if (ret != 0) {
        return ret;
    }

    dst = emu_route_owner(src, dgid);
    if (!emu_route_ask(src, dst)) {
        emu_quirk_hits(src->index, EMU_QUIRK_MISWIRED, 0, 0, sgid_index);
        return -ETIMEDOUT;
    }

    emu_port_addr(dst, &addr);
    emu_addr_mac(&addr, rmac);
    return 0;
}

void emu_route_path(const struct ibv_ah_attr *attr, emu_path_t *path_p)
{
    memset(path_p, 0, sizeof(*path_p));
    path_p->dlid       = attr->dlid;
    path_p->is_full    = attr->is_global;
    path_p->has_grh    = attr->is_global;
    path_p->sgid_index = attr->grh.sgid_index;
    path_p->hop_limit  = attr->grh.hop_limit;
    path_p->tclass     = attr->grh.traffic_class;
    path_p->flow_label = attr->grh.flow_label & 0xfffff;
    memcpy(path_p->dgid, attr->grh.dgid.raw, sizeof(path_p->dgid));
}
