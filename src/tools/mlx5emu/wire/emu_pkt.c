/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_pkt.h.
 */

#include "emu_pkt.h"
#include "../core/emu_mem.h"
#include "../core/emu_mr.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"

#include <stdlib.h>

/* Service level in a completion on RoCE, as the driver decodes it: whether there is a
 * UDP header, and the kind of network header */
#define EMU_PKT_SL_UDP  0x8
#define EMU_PKT_SL_GRH  0x0
#define EMU_PKT_SL_IPV6 0x1
#define EMU_PKT_SL_IPV4 0x2

void emu_pkt_set_path(emu_pkt_t *pkt, const emu_port_t *src, unsigned pkey_index,
                      const emu_path_t *path)
{
    int ret = emu_route_grh(src, path, &pkt->grh);

    pkt->src_port = src->index;
    pkt->pkey     = emu_port_pkey(src, pkey_index);
    pkt->slid     = emu_port_lid(src);
    pkt->has_grh  = (ret > 0);
    pkt->dst_port = emu_likely(ret >= 0) ? emu_route(src, path) :
                                           EMU_ROUTE_NONE;
    if (emu_unlikely(pkt->dst_port == EMU_ROUTE_NONE)) {
        /* This may be why */
        emu_quirk_hits(src->index, EMU_QUIRK_MISWIRED, pkt->src_qpn, pkt->op,
                       path->dlid);
    }
}

int emu_pkt_is_ipv4(const emu_pkt_t *pkt)
{
    return pkt->has_grh && (pkt->grh.type == EMU_GID_ROCE_V2) &&
           emu_gid_is_ipv4(&pkt->grh.sgid);
}

uint8_t emu_pkt_cqe_sl(const emu_pkt_t *pkt)
{
    if (!pkt->has_grh || (pkt->grh.type == EMU_GID_IB)) {
        return pkt->sl;
    }

    if (pkt->grh.type == EMU_GID_ROCE_V1) {
        return EMU_PKT_SL_GRH;
    }
    return EMU_PKT_SL_UDP | (emu_pkt_is_ipv4(pkt) ? EMU_PKT_SL_IPV4 :
                                                    EMU_PKT_SL_IPV6);
}

void emu_rsp_release(emu_rsp_t *rsp)
{
    if (rsp->mr != NULL) {
        emu_mr_put(rsp->mr);
        rsp->mr = NULL;
    }
    free(rsp->copy);
    rsp->copy = NULL;
}

unsigned emu_iov_slice(const emu_sge_t *sge, unsigned num_sge, uint32_t offset,
                       uint32_t length, struct iovec *iov)
{
    unsigned count = 0;
    const uint8_t *base;
    uint32_t part;
    unsigned i;

    for (i = 0; (i < num_sge) && (length > 0); i++) {
        if (offset >= sge[i].length) {
            offset -= sge[i].length;
            continue;
        }

        base = (sge[i].inl != NULL) ? sge[i].inl :
                                      (const void*)(uintptr_t)sge[i].addr;
        part = emu_min(sge[i].length - offset, length);
        iov[count].iov_base = (void*)(base + offset);
        iov[count].iov_len  = part;
        count++;
        length -= part;
        offset  = 0;
    }

    return count;
}

/* Of a packet whose payload is in this process */
static int emu_pkt_gather_own(const emu_pkt_t *pkt, uint32_t skip, void *buf,
                              uint32_t length)
{
    struct iovec src[EMU_MAX_SGE];
    struct iovec dst = { .iov_base = buf, .iov_len = length };
    unsigned num_src;

    num_src = emu_iov_slice(pkt->sge, pkt->num_sge, pkt->offset + skip, length,
                            src);
    return (num_src == 0) ? 0 :
           emu_mem_put(emu_self->index, &dst, 1, src, num_src, length);
}

void emu_pkt_copy_out(const emu_pkt_t *pkt, uint32_t skip, void *buf,
                      uint32_t length)
{
    (void)emu_pkt_gather_own(pkt, skip, buf, length);
}

int emu_pkt_gather(const emu_pkt_t *pkt, uint32_t proc, void *buf,
                   uint32_t length)
{
    uint32_t offset = pkt->offset;
    uint8_t *pos    = buf;
    struct iovec src, dst;
    unsigned i;
    int ret;

    if (emu_likely(proc == emu_self->index)) {
        return emu_pkt_gather_own(pkt, 0, buf, length);
    }

    for (i = 0; (i < pkt->num_sge) && (length > 0); i++) {
        if (emu_iov_slice(&pkt->sge[i], 1, offset, length, &src) == 0) {
            offset -= pkt->sge[i].length;
            continue;
        }

        dst.iov_base = pos;
        dst.iov_len  = src.iov_len;
        ret = emu_mem_get((pkt->sge[i].inl != NULL) ? emu_self->index : proc,
                          &dst, 1, &src, 1, src.iov_len);
        if (ret != 0) {
            return ret;
        }
        pos    += src.iov_len;
        length -= src.iov_len;
        offset  = 0;
    }

    return 0;
}

void emu_pkt_part(const emu_pkt_t *train, uint32_t index, emu_pkt_t *pkt_p)
{
    uint32_t skip = index * train->mtu;

    *pkt_p          = *train;
    pkt_p->num_psn  = 1;
    pkt_p->num_pkts = 1;
    pkt_p->psn      = emu_psn_add(train->psn, index);
    pkt_p->pkt_no  += index;
    pkt_p->raddr   += skip;
    pkt_p->left    -= skip;
    pkt_p->offset  += skip;
    pkt_p->length   = emu_min(train->length - skip, train->mtu);
    if (index > 0) {
        pkt_p->flags &= ~EMU_PKT_FIRST;
    }
    if (index + 1 < train->num_psn) {
        pkt_p->flags &= ~EMU_PKT_LAST;
    }
}
