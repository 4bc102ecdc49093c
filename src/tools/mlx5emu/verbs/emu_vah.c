/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Address handles: kept as the address vector which goes into a WQE. Called by
 * programs; the vector is read by emu_vqp_post.c and mlx5dv_init_obj().
 */

#include "emu_verbs.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>

#define EMU_VAH_GRH_PRESENT (1u << 30)


struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    const struct ibv_global_route *grh;
    emu_vah_t *vah;

    if ((pd == NULL) || (attr == NULL) ||
        (attr->port_num != EMU_VERBS_PORT_NUM) || (attr->sl > 15) ||
        (attr->is_global && (attr->grh.sgid_index >= EMU_VERBS_GID_LEN))) {
        return emu_verbs_fail(EINVAL);
    }

    vah = calloc(1, sizeof(*vah));
    if (vah == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    vah->ibv.context     = pd->context;
    vah->ibv.pd          = pd;
    vah->av.stat_rate_sl = (attr->static_rate << 4) | attr->sl;
    vah->av.fl_mlid      = attr->src_path_bits & 0x7f;
    vah->av.rlid         = htobe16(attr->dlid);
    if (attr->is_global) {
        grh                = &attr->grh;
        vah->av.tclass     = grh->traffic_class;
        vah->av.hop_limit  = grh->hop_limit;
        vah->av.grh_gid_fl = htobe32(EMU_VAH_GRH_PRESENT |
                                     ((uint32_t)grh->sgid_index << 20) |
                                     (grh->flow_label & 0xfffff));
        memcpy(vah->av.rgid, grh->dgid.raw, sizeof(vah->av.rgid));
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

int ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num,
                        struct ibv_wc *wc, struct ibv_grh *grh,
                        struct ibv_ah_attr *ah_attr)
{
    uint32_t flow_class;

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
    if (wc->wc_flags & IBV_WC_GRH) {
        flow_class                 = be32toh(grh->version_tclass_flow);
        ah_attr->is_global         = 1;
        ah_attr->grh.dgid          = grh->sgid;
        ah_attr->grh.sgid_index    = 0;
        ah_attr->grh.hop_limit     = grh->hop_limit;
        ah_attr->grh.flow_label    = flow_class & 0xfffff;
        ah_attr->grh.traffic_class = (flow_class >> 20) & 0xff;
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
