/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Shared receive queues. See emu_srq.h.
 */

#include "emu_srq.h"
#include "emu_chan.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_heap.h"
#include "emu_mr.h"
#include "emu_nic.h"
#include "emu_proc.h"
#include "emu_table.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>

#define EMU_SRQ_IDX_BITS 12

_Static_assert(EMU_MAX_SRQS == (1 << EMU_SRQ_IDX_BITS), "SRQN layout");

static unsigned emu_srq_round(unsigned value, unsigned pow2)
{
    while (pow2 < value) {
        pow2 <<= 1;
    }
    return pow2;
}

static size_t emu_srq_mem_size(const emu_srq_t *srq)
{
    return (size_t)srq->wqe_cnt * srq->stride + 64;
}

static struct mlx5_wqe_srq_next_seg *
emu_srq_seg(const emu_srq_t *srq, uint16_t index)
{
    return (void*)(srq->buf +
                   (size_t)(index & (srq->wqe_cnt - 1)) * srq->stride);
}

static void emu_srq_init(emu_srq_t *srq, int index, emu_pd_t *pd,
                         uint64_t cookie)
{
    uint32_t i;

    srq->gen          = (srq->gen + 1) & 0x7ff;
    srq->srqn         = index | (srq->gen << EMU_SRQ_IDX_BITS);
    srq->proc         = emu_self->index;
    srq->ctx          = pd->ctx;
    srq->pd           = pd->index;
    srq->cookie       = cookie;
    srq->refs         = 0;
    srq->next         = 0;
    srq->taken        = 0;
    srq->limit        = 0;
    srq->num_returned = 0;
    if (!srq->user_mem) {
        srq->dbrec = (uint32_t*)(srq->buf +
                                 (size_t)srq->wqe_cnt * srq->stride);
        for (i = 0; i < srq->wqe_cnt; i++) {
            emu_srq_seg(srq, i)->next_wqe_index =
                    htobe16((i + 1) & (srq->wqe_cnt - 1));
        }
    }
    if (!srq->lock_ready) {
        emu_lock_init(&srq->lock);
        srq->lock_ready = 1;
    }
}

/* Sizes and memory of the queue are known */
static int emu_srq_create_common(emu_pd_t *pd, const emu_srq_user_attr_t *attr,
                                 uint64_t cookie, int user_mem,
                                 emu_srq_t **srq_p)
{
    const emu_ctx_t *ctx = &emu_fabric->ctxs[pd->ctx];
    emu_srq_t *srq;
    int index, ret;

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

    emu_lock(&emu_fabric->table_lock);
    ret   = -ENOMEM;
    index = emu_table_find(EMU_TABLE_SRQ, emu_fabric->srqs, sizeof(*srq), 1,
                           EMU_MAX_SRQS);
    if (index >= 0) {
        srq           = &emu_fabric->srqs[index];
        srq->wqe_cnt  = attr->wqe_cnt;
        srq->stride   = attr->stride;
        srq->max_sge  = attr->stride / 16 - 1;
        srq->cyclic   = attr->cyclic;
        srq->user_mem = user_mem;
        srq->dbrec    = attr->dbrec;
        srq->buf      = user_mem ? attr->buf :
                                   emu_heap_alloc(emu_srq_mem_size(srq));
        if (srq->buf != NULL) {
            emu_srq_init(srq, index, pd, cookie);
            __atomic_fetch_add(&pd->refs, 1, __ATOMIC_RELAXED);
            __atomic_store_n(&srq->used, 1, __ATOMIC_RELEASE);
            *srq_p = srq;
            ret    = 0;
        }
    }
    emu_unlock(&emu_fabric->table_lock);
    return ret;
}

int emu_srq_create(emu_pd_t *pd, unsigned max_wr, unsigned max_sge,
                   uint64_t cookie, emu_srq_t **srq_p)
{
    emu_srq_user_attr_t attr = {0};

    if ((max_wr >= EMU_RQ_MAX_WQE) || (max_sge > EMU_SRQ_MAX_SGE)) {
        return -EINVAL;
    }

    /* More entries than requested, even if that was none, as with mlx5 */
    attr.wqe_cnt = emu_srq_round(max_wr + 1, 2);
    attr.stride  = emu_srq_round(16 + 16 * max_sge, 32);
    return emu_srq_create_common(pd, &attr, cookie, 0, srq_p);
}

int emu_srq_create_user(emu_pd_t *pd, const emu_srq_user_attr_t *attr,
                        emu_srq_t **srq_p)
{
    if ((attr->wqe_cnt > EMU_RQ_MAX_WQE) || (attr->stride < 32) ||
        (attr->stride > 16 + 16 * EMU_SRQ_MAX_SGE)) {
        return -EINVAL;
    }

    return emu_srq_create_common(pd, attr, 0, 1, srq_p);
}

int emu_srq_destroy(emu_srq_t *srq)
{
    int is_first;

    if (__atomic_load_n(&srq->refs, __ATOMIC_ACQUIRE) != 0) {
        return -EBUSY;
    }

    emu_lock(&srq->lock);
    is_first = (srq->used == 1); /* else its owner died in here */
    __atomic_store_n(&srq->used, 2, __ATOMIC_RELEASE);
    emu_unlock(&srq->lock);
    if (is_first) {
        if (!srq->user_mem) {
            emu_heap_free(srq->buf, emu_srq_mem_size(srq));
        }
        __atomic_fetch_sub(&emu_fabric->pds[srq->pd].refs, 1,
                           __ATOMIC_RELAXED);
    }
    __atomic_store_n(&srq->used, 0, __ATOMIC_RELEASE);
    return 0;
}

emu_srq_t *emu_srq_find(uint32_t srqn)
{
    emu_srq_t *srq = &emu_fabric->srqs[srqn & (EMU_MAX_SRQS - 1)];

    return ((srq->used == 1) && (srq->srqn == (srqn & 0xffffff))) ? srq : NULL;
}

void emu_srq_set_limit(emu_srq_t *srq, unsigned limit)
{
    emu_lock(&srq->lock);
    srq->limit        = limit;
    emu_unlock(&srq->lock);
}

static uint16_t emu_srq_posted(const emu_srq_t *srq)
{
    return (uint16_t)be32toh(__atomic_load_n(&srq->dbrec[0],
                                             __ATOMIC_ACQUIRE)) - srq->taken;
}

const void *emu_srq_entry(const emu_srq_t *srq, uint16_t index)
{
    return emu_srq_seg(srq, index) + 1;
}

void emu_srq_return(emu_srq_t *srq, uint16_t index)
{
    emu_lock(&srq->lock);
    if ((srq->used == 1) && (srq->num_returned < EMU_SRQ_MAX_RETURNED)) {
        srq->returned[srq->num_returned++] = index;
    }
    emu_unlock(&srq->lock);
}

const void *emu_srq_take(emu_srq_t *srq, uint16_t *index_p)
{
    const void *entry = NULL;
    int is_limit      = 0;
    uint16_t posted;

    emu_lock(&srq->lock);
    posted = emu_srq_posted(srq);
    if (srq->num_returned != 0) {
        *index_p = srq->returned[--srq->num_returned];
        entry    = emu_srq_entry(srq, *index_p);
    } else if (posted != 0) {
        /* Counted first: if a process dies in between, the queue is shorter by one
         * entry, instead of handing out one that was not posted */
        srq->taken++;
        *index_p  = srq->cyclic ? srq->next : (srq->next & (srq->wqe_cnt - 1));
        entry     = emu_srq_entry(srq, *index_p);
        srq->next = srq->cyclic ? (srq->next + 1) :
                    be16toh(emu_srq_seg(srq, srq->next)->next_wqe_index);
        if ((srq->limit != 0) && (posted - 1u < srq->limit)) {
            srq->limit        = 0;
            is_limit   = 1;
        }
    }
    emu_unlock(&srq->lock);

    if (emu_unlikely(is_limit)) {
        emu_chan_post(emu_fabric->ctxs[srq->ctx].async,
                      IBV_EVENT_SRQ_LIMIT_REACHED, srq->srqn, srq->cookie);
    }
    return entry;
}
