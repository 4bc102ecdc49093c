/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Address handles: kept as the address vector which goes into a WQE. Called by
 * programs; the vector is read by emu_vqp_post.c and mlx5dv_init_obj().
 */

#include "emu_verbs.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define EMU_VAH_IPV4_LEN 20

/* What a completion has for a service level on RoCE, see emu_pkt_cqe_sl() */
#define EMU_VAH_SL_UDP   0x8
#define EMU_VAH_SL_L3    0x7
#define EMU_VAH_SL_IPV4  0x2


/* The part of an address vector that all packets on RoCE need */
static void emu_vah_fill_grh(const struct ibv_global_route *grh,
                             struct mlx5_wqe_av *av)
{
    av->tclass     = grh->traffic_class;
    av->hop_limit  = grh->hop_limit;
    av->grh_gid_fl = htobe32(((uint32_t)grh->sgid_index << 20) |
                             (grh->flow_label & 0xfffff));
    memcpy(av->rgid, grh->dgid.raw, sizeof(av->rgid));
}

/* The MAC address, and with RoCE v2 the UDP port instead of a LID. @return 0 or a
 * negative errno */
static int emu_vah_fill_roce(emu_port_t *port, const struct ibv_ah_attr *attr,
                             struct mlx5_wqe_av *av)
{
    emu_gid_type_t type;
    union ibv_gid gid;
    int ret;

    if (!attr->is_global) {
        return -EINVAL;
    }

    ret = emu_port_gid(port, attr->grh.sgid_index, &gid, &type);
    if (ret == 0) {
        ret = emu_route_resolve(port, attr->grh.sgid_index, &attr->grh.dgid,
                                av->rmac);
    }
    if (ret != 0) {
        return ret;
    }

    if (type == EMU_GID_ROCE_V2) {
        av->rlid = htobe16(ibv_flow_label_to_udp_sport(attr->grh.flow_label));
    }

    av->stat_rate_sl = (attr->static_rate << 4) | ((attr->sl & 0x7) << 1);
    emu_vah_fill_grh(&attr->grh, av);
    return 0;
}

static int emu_vah_fill_ib(const emu_port_t *port,
                           const struct ibv_ah_attr *attr,
                           struct mlx5_wqe_av *av)
{
    emu_gid_type_t type;
    union ibv_gid gid;

    if (attr->is_global &&
        (emu_port_gid(port, attr->grh.sgid_index, &gid, &type) != 0)) {
        return -EINVAL;
    }

    av->stat_rate_sl = (attr->static_rate << 4) | attr->sl;
    av->fl_mlid      = attr->src_path_bits & 0x7f;
    av->rlid         = htobe16(attr->dlid);
    if (attr->is_global) {
        emu_vah_fill_grh(&attr->grh, av);
        av->grh_gid_fl |= htobe32(EMU_PATH_GRH);
    }

    return 0;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    emu_port_t *port;
    emu_vah_t *vah;
    int ret;

    if ((pd == NULL) || (attr == NULL) ||
        (attr->port_num != EMU_VERBS_PORT_NUM) || (attr->sl > 15)) {
        return emu_verbs_fail(EINVAL);
    }

    vah = calloc(1, sizeof(*vah));
    if (vah == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    vah->ibv.context = pd->context;
    vah->ibv.pd      = pd;
    port             = emu_vctx(pd->context)->port;
    ret              = emu_port_is_roce(port) ?
                       emu_vah_fill_roce(port, attr, &vah->av) :
                       emu_vah_fill_ib(port, attr, &vah->av);
    if (ret != 0) {
        free(vah);
        return emu_verbs_fail(ret);
    }

    return &vah->ibv;
}

int ibv_destroy_ah(struct ibv_ah *ah)
{
    if (ah == NULL) {
        return emu_verbs_error(EINVAL);
    }

    free(emu_container_of(ah, emu_vah_t, ibv));
    return 0;
}

/* The IPv4 header at the end of a GRH's space, as the GIDs of its addresses */
static void emu_vah_read_ipv4(const uint8_t *ip4, struct ibv_grh *grh)
{
    memset(grh, 0, sizeof(*grh));
    grh->version_tclass_flow = htobe32((uint32_t)ip4[1] << 20);
    grh->next_hdr            = ip4[9];
    grh->hop_limit           = ip4[8];
    memset(&grh->sgid.raw[10], 0xff, 2);
    memset(&grh->dgid.raw[10], 0xff, 2);
    memcpy(&grh->sgid.raw[12], ip4 + 12, 4);
    memcpy(&grh->dgid.raw[12], ip4 + 16, 4);
}

/* Address the sender of a datagram by what it was received with. @return 0, -ENOENT:
 * it was not for a GID of this port */
static int emu_vah_from_grh(const emu_port_t *port, const struct ibv_grh *received,
                            uint8_t sl, struct ibv_ah_attr *attr)
{
    uint8_t type       = EMU_GID_IB;
    struct ibv_grh grh = *received;
    uint32_t flow_class;
    int index;

    if (emu_port_is_roce(port)) {
        type = (sl & EMU_VAH_SL_UDP) ? EMU_GID_ROCE_V2 : EMU_GID_ROCE_V1;
        if ((sl & EMU_VAH_SL_L3) == EMU_VAH_SL_IPV4) {
            emu_vah_read_ipv4((const uint8_t*)(received + 1) - EMU_VAH_IPV4_LEN,
                              &grh);
        }

        /* The rest of the service level's place is of the header's kind */
        attr->sl   = 0;
        attr->dlid = 0;
    }

    index = emu_route_find_gid(port, &grh.dgid, type);
    if (index < 0) {
        return index;
    }

    flow_class              = be32toh(grh.version_tclass_flow);
    attr->is_global         = 1;
    attr->grh.dgid          = grh.sgid;
    attr->grh.sgid_index    = index;
    attr->grh.hop_limit     = grh.hop_limit;
    attr->grh.flow_label    = flow_class & 0xfffff;
    attr->grh.traffic_class = (flow_class >> 20) & 0xff;
    return 0;
}

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
                        struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *ah_attr)
{
    int ret;

    if ((context == NULL) || (wc == NULL) || (ah_attr == NULL) ||
        (port_num != EMU_VERBS_PORT_NUM) ||
        ((wc->wc_flags & IBV_WC_GRH) && (grh == NULL))) {
        errno = EINVAL;
        return -1;
    }

    memset(ah_attr, 0, sizeof(*ah_attr));
    ah_attr->dlid          = wc->slid;
    ah_attr->sl            = wc->sl;
    ah_attr->src_path_bits = wc->dlid_path_bits;
    ah_attr->port_num      = port_num;
    if (!(wc->wc_flags & IBV_WC_GRH)) {
        return 0;
    }

    ret = emu_vah_from_grh(emu_vctx(context)->port, grh, wc->sl, ah_attr);
    if (ret != 0) {
        errno = -ret;
        return -1;
    }

    return 0;
}

struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc,
                                     struct ibv_grh *grh, uint8_t port_num)
{
    struct ibv_ah_attr attr;

    if ((pd == NULL) ||
        (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)) {
        return emu_verbs_fail(EINVAL);
    }

    return ibv_create_ah(pd, &attr);
}
