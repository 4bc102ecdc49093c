/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Receive entries: of a queue pair's own queue, or of an SRQ. Everything here
 * runs with the queue pair's resp_lock held.
 */

#include "emu_proto.h"
#include "../core/emu_mem.h"
#include "../core/emu_mr.h"
#include "../core/emu_srq.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>

static uint16_t emu_rq_posted(const emu_qp_t *qp)
{
    if (qp->rq_wqe_cnt == 0) {
        return 0;
    }
    return (uint16_t)be32toh(__atomic_load_n(&qp->dbrec[MLX5_RCV_DBR],
                                             __ATOMIC_ACQUIRE)) - qp->rq_ci;
}

void emu_rq_get(emu_qp_t *qp, uint16_t index, emu_rq_entry_t *entry_p)
{
    entry_p->index = index;
    if (qp->srq != NULL) {
        entry_p->segs    = emu_srq_entry(qp->srq, index);
        entry_p->max_sge = qp->srq->max_sge;
        entry_p->pd      = qp->srq->pd;
    } else {
        entry_p->segs    = qp->rq_buf +
                           (size_t)(index & (qp->rq_wqe_cnt - 1)) *
                           qp->rq_stride;
        entry_p->max_sge = qp->rq_max_sge;
        entry_p->pd      = qp->pd;
    }
}

int emu_rq_take(emu_qp_t *qp, emu_rq_entry_t *entry_p)
{
    uint16_t index;

    if (qp->srq != NULL) {
        if (emu_srq_take(qp->srq, &index) == NULL) {
            return 0;
        }
    } else {
        if (emu_rq_posted(qp) == 0) {
            return 0;
        }
        index = qp->rq_ci++;
    }

    emu_rq_get(qp, index, entry_p);
    return 1;
}

void emu_rq_give_back(emu_qp_t *qp, const emu_rq_entry_t *entry)
{
    if (qp->srq != NULL) {
        emu_srq_return(qp->srq, entry->index);
    } else {
        qp->rq_ci--;
    }
}

/* The entry's memory from an offset on, as addresses in its owner */
static int emu_rq_iov(const emu_qp_t *qp, const emu_rq_entry_t *entry,
                      uint32_t offset, uint32_t length, struct iovec *iov)
{
    const struct mlx5_wqe_data_seg *seg = entry->segs;
    int count                           = 0;
    uint32_t size, part, lkey, i;
    uint64_t addr;
    emu_mr_t *mr;

    for (i = 0; (i < entry->max_sge) && (length > 0); i++) {
        size = be32toh(seg[i].byte_count);
        lkey = be32toh(seg[i].lkey);
        if ((lkey == MLX5_INVALID_LKEY) && (size == 0)) {
            break;
        }
        if (offset >= size) {
            offset -= size;
            continue;
        }

        part = emu_min(size - offset, length);
        addr = be64toh(seg[i].addr) + offset;
        mr   = emu_mr_check(lkey, addr, part, IBV_ACCESS_LOCAL_WRITE, entry->pd,
                            qp->port);
        if (mr == NULL) {
            return -EACCES;
        }

        iov[count].iov_base = (void*)(uintptr_t)(addr - mr->iova + mr->addr);
        iov[count].iov_len  = part;
        count++;
        length -= part;
        offset  = 0;
    }

    return (length == 0) ? count : -EMSGSIZE;
}

int emu_rq_scatter_data(emu_qp_t *qp, const emu_rq_entry_t *entry,
                        uint32_t offset, const void *data, uint32_t length)
{
    struct iovec src = { .iov_base = (void*)data, .iov_len = length };
    struct iovec dst[64];
    int num_dst;

    num_dst = emu_rq_iov(qp, entry, offset, length, dst);
    return (num_dst < 0) ? num_dst :
           emu_mem_put(qp->proc, dst, num_dst, &src, 1, length);
}

int emu_rq_scatter(emu_qp_t *qp, const emu_rq_entry_t *entry, uint32_t offset,
                   const emu_pkt_t *pkt)
{
    struct iovec dst[64], src[EMU_MAX_SGE];
    unsigned num_src;
    int num_dst;

    if (pkt->length == 0) {
        return 0;
    }

    num_dst = emu_rq_iov(qp, entry, offset, pkt->length, dst);
    if (num_dst < 0) {
        return num_dst;
    }

    num_src = emu_iov_slice(pkt->sge, pkt->num_sge, pkt->offset, pkt->length,
                            src);
    return emu_mem_put(qp->proc, dst, num_dst, src, num_src, pkt->length);
}
