/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion queues. See emu_cq.h.
 */

#include "emu_cq.h"
#include "emu_chan.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_heap.h"
#include "emu_nic.h"
#include "emu_proc.h"
#include "emu_quirk.h"
#include "emu_table.h"
#include "../wqe/emu_cqe.h"

#include <endian.h>
#include <errno.h>
#include <infiniband/mlx5dv.h>

/* The CQN holds a generation above the index, so that stale ones show */
#define EMU_CQ_IDX_BITS 13

_Static_assert(EMU_MAX_CQS == (1 << EMU_CQ_IDX_BITS), "CQN layout");

static unsigned emu_cq_round(unsigned value)
{
    unsigned pow2 = 1;

    while (pow2 < value) {
        pow2 <<= 1;
    }
    return pow2;
}

static size_t emu_cq_mem_size(const emu_cq_t *cq)
{
    return (size_t)cq->cqe_cnt * cq->cqe_size + 64;
}

static void *emu_cq_slot(const emu_cq_t *cq, uint32_t index)
{
    return cq->buf + (size_t)(index & (cq->cqe_cnt - 1)) * cq->cqe_size;
}

/* What the engine allocates: entries and doorbell record */
static int emu_cq_init_mem(emu_cq_t *cq)
{
    uint32_t i;

    cq->buf = emu_heap_alloc(emu_cq_mem_size(cq));
    if (cq->buf == NULL) {
        return -ENOMEM;
    }

    cq->dbrec    = (uint32_t*)(cq->buf + (size_t)cq->cqe_cnt * cq->cqe_size);
    cq->dbrec[0] = 0;
    for (i = 0; i < cq->cqe_cnt; i++) {
        emu_cqe_init(emu_cq_slot(cq, i), cq->cqe_size);
    }
    return 0;
}

static void emu_cq_init(emu_cq_t *cq, int index, emu_ctx_t *ctx,
                        uint64_t cookie)
{
    cq->gen            = (cq->gen + 1) & 0x3ff;
    cq->cqn            = index | (cq->gen << EMU_CQ_IDX_BITS);
    cq->proc           = emu_self->index;
    cq->ctx            = ctx->index;
    cq->port           = ctx->port;
    cq->nic_gen        = ctx->nic_gen;
    cq->cookie         = cookie;
    cq->refs           = 0;
    cq->pi             = 0;
    cq->armed          = 0;
    cq->sol_pi         = 0;
    cq->failed         = 0;
    cq->spread         = 0;
    cq->resizing       = 0;
    if (!cq->lock_ready) {
        emu_lock_init(&cq->lock);
        cq->lock_ready = 1;
    }
}

/* Sizes are checked; the memory is the program's, or NULL */
static int emu_cq_create_common(emu_ctx_t *ctx, const emu_cq_user_attr_t *attr,
                                emu_chan_t *chan, emu_chan_t *async,
                                uint64_t cookie, emu_cq_t **cq_p)
{
    emu_cq_t *cq;
    int index, ret;

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

    emu_lock(&emu_fabric->table_lock);
    ret   = -ENOMEM;
    index = emu_table_find(EMU_TABLE_CQ, emu_fabric->cqs, sizeof(*cq), 1,
                           EMU_MAX_CQS);
    if (index >= 0) {
        cq                 = &emu_fabric->cqs[index];
        cq->cqe_cnt        = attr->cqe_cnt;
        cq->cqe_size       = attr->cqe_size;
        cq->ignore_overrun = attr->ignore_overrun;
        cq->user_mem       = (attr->buf != NULL);
        cq->buf            = attr->buf;
        cq->dbrec          = attr->dbrec;
        cq->chan           = chan;
        cq->async          = async;
        ret                = cq->user_mem ? 0 : emu_cq_init_mem(cq);
        if (ret == 0) {
            emu_cq_init(cq, index, ctx, cookie);
            __atomic_store_n(&cq->used, 1, __ATOMIC_RELEASE);
            *cq_p = cq;
        }
    }
    emu_unlock(&emu_fabric->table_lock);
    return ret;
}

int emu_cq_create(emu_ctx_t *ctx, unsigned cqe, unsigned cqe_size,
                  emu_chan_t *chan, uint64_t cookie, emu_cq_t **cq_p)
{
    emu_cq_user_attr_t attr = {0};

    if ((cqe < 1) || (cqe >= EMU_CQ_MAX_CQE) ||
        ((cqe_size != 64) && (cqe_size != 128))) {
        return -EINVAL;
    }

    attr.cqe_cnt  = emu_cq_round(cqe + 1);
    attr.cqe_size = cqe_size;
    return emu_cq_create_common(ctx, &attr, chan, ctx->async, cookie, cq_p);
}

int emu_cq_create_user(emu_ctx_t *ctx, const emu_cq_user_attr_t *attr,
                       uint64_t cookie, emu_cq_t **cq_p)
{
    if (attr->cqe_cnt > EMU_CQ_MAX_CQE) {
        return -EINVAL;
    }

    return emu_cq_create_common(ctx, attr, NULL, NULL, cookie, cq_p);
}

void emu_cq_set_chans(emu_cq_t *cq, emu_chan_t *chan, emu_chan_t *async)
{
    emu_lock(&cq->lock);
    cq->chan  = chan;
    cq->async = async;
    emu_unlock(&cq->lock);
}

int emu_cq_destroy(emu_cq_t *cq)
{
    int is_first;

    if (__atomic_load_n(&cq->refs, __ATOMIC_ACQUIRE) != 0) {
        return -EBUSY;
    }

    emu_lock(&cq->lock);
    is_first = (cq->used == 1); /* else its owner died in here */
    __atomic_store_n(&cq->used, 2, __ATOMIC_RELEASE);
    emu_unlock(&cq->lock);
    if (is_first && !cq->user_mem && !cq->resizing) {
        emu_heap_free(cq->buf, emu_cq_mem_size(cq));
    }
    __atomic_store_n(&cq->used, 0, __ATOMIC_RELEASE);
    return 0;
}

emu_cq_t *emu_cq_find(uint32_t cqn)
{
    emu_cq_t *cq = &emu_fabric->cqs[cqn & (EMU_MAX_CQS - 1)];

    return ((cq->used == 1) && (cq->cqn == (cqn & 0xffffff))) ? cq : NULL;
}

/* The last holder may have died between an entry and the count of it; or, as the owner,
 * while it resized the queue, and then nothing is written to it any more */
static void emu_cq_lock(emu_cq_t *cq)
{
    if (!emu_lock(&cq->lock)) {
        return;
    }

    if (cq->resizing) {
        cq->failed = 1;
    } else if (emu_cqe_is_valid(emu_cq_slot(cq, cq->pi), cq->cqe_size, cq->pi,
                                cq->cqe_cnt)) {
        cq->pi++;
    }
}

static void emu_cq_swap_rings(emu_cq_t *cq, emu_cq_t *other)
{
    emu_cq_t tmp = {.buf = cq->buf, .dbrec = cq->dbrec, .cqe_cnt = cq->cqe_cnt};

    __atomic_store_n(&cq->resizing, 1, __ATOMIC_SEQ_CST);
    cq->buf        = other->buf;
    cq->dbrec      = other->dbrec;
    cq->cqe_cnt    = other->cqe_cnt;
    __atomic_store_n(&cq->resizing, 0, __ATOMIC_SEQ_CST);
    other->buf     = tmp.buf;
    other->dbrec   = tmp.dbrec;
    other->cqe_cnt = tmp.cqe_cnt;
}

/* An entry keeps its index, and gets the owner bit that this has in the new ring */
static void emu_cq_copy_ring(emu_cq_t *to, const emu_cq_t *cq, uint32_t ci)
{
    uint32_t i;

    for (i = ci; i != cq->pi; i++) {
        emu_cqe_copy(emu_cq_slot(to, i), emu_cq_slot(cq, i), cq->cqe_size,
                     !!(i & to->cqe_cnt));
    }

    to->dbrec[0] = cq->dbrec[0];
    to->dbrec[1] = cq->dbrec[1];
}

int emu_cq_resize(emu_cq_t *cq, unsigned cqe, uint32_t ci)
{
    emu_cq_t other = {.cqe_size = cq->cqe_size};
    int ret        = 0;
    uint32_t num;

    if ((cqe < 1) || (cqe >= EMU_CQ_MAX_CQE)) {
        return -EINVAL;
    }

    if (emu_nic_command(cq->port, cq->nic_gen)) {
        return -EIO;
    }

    other.cqe_cnt = emu_cq_round(cqe + 1);
    if (other.cqe_cnt == cq->cqe_cnt) {
        return 0;
    }

    ret = emu_cq_init_mem(&other);
    if (ret != 0) {
        return ret;
    }

    emu_cq_lock(cq);
    num = cq->pi - ci;
    if (cq->failed || (num > cq->cqe_cnt) || (num > other.cqe_cnt)) {
        ret = -EINVAL;
    } else {
        emu_cq_copy_ring(&other, cq, ci);
        emu_cq_swap_rings(cq, &other);
    }
    emu_unlock(&cq->lock);
    emu_heap_free(other.buf, emu_cq_mem_size(&other));
    return ret;
}

/* Whether an entry that was not read yet would be overwritten. The consumer writes its
 * position to the doorbell record. */
static int emu_cq_is_full(const emu_cq_t *cq)
{
    return !cq->ignore_overrun &&
           (((cq->pi - be32toh(cq->dbrec[0])) & 0xffffff) >= cq->cqe_cnt);
}

/* lock is held, and released */
static int emu_cq_overrun(emu_cq_t *cq)
{
    emu_chan_t *async = cq->async;
    int is_first      = !cq->failed;

    cq->failed = 1;
    emu_unlock(&cq->lock);
    if (is_first) {
        emu_chan_post(async, IBV_EVENT_CQ_ERR, cq->cqn, cq->cookie);
    }
    return -EOVERFLOW;
}

int emu_cq_push(emu_cq_t *cq, const emu_cqe_t *cqe)
{
    int is_err       = (cqe->opcode == MLX5_CQE_REQ_ERR) ||
                       (cqe->opcode == MLX5_CQE_RESP_ERR);
    emu_chan_t *chan = NULL;

    if (emu_unlikely(!emu_nic_works(cq->port, cq->nic_gen))) {
        return 0; /* a dead NIC writes nothing */
    }

    emu_cq_lock(cq);
    if (emu_unlikely(cq->failed || emu_cq_is_full(cq))) {
        return emu_cq_overrun(cq);
    }

    emu_cqe_write(emu_cq_slot(cq, cq->pi), cq->cqe_size, cqe,
                  !!(cq->pi & cq->cqe_cnt));
    cq->pi++;
    if (is_err || cqe->solicited) {
        cq->sol_pi = cq->pi;
    }
    if (emu_unlikely(cq->armed != 0) &&
        ((cq->armed == 1) || is_err || cqe->solicited)) {
        cq->armed = 0;
        chan      = cq->chan;
    }
    emu_unlock(&cq->lock);

    if (emu_unlikely(chan != NULL)) {
        emu_chan_post(chan, EMU_EVENT_CQ, cq->cqn, cq->cookie);
    }
    return 0;
}

/* @a is_verbs: by a driver that may have quirk blind-arm */
static void emu_cq_arm_as(uint32_t cqn, uint32_t sn_cmd_ci, int is_verbs)
{
    emu_cq_t *cq       = emu_cq_find(cqn);
    uint32_t ci        = sn_cmd_ci & 0xffffff;
    int solicited_only = !!(sn_cmd_ci & MLX5_CQ_DB_REQ_NOT_SOL);
    emu_chan_t *chan   = NULL;
    uint32_t pi;

    if ((cq == NULL) || (emu_self == NULL) || (cq->proc != emu_self->index) ||
        !emu_nic_works(cq->port, cq->nic_gen)) {
        return;
    }

    emu_cq_lock(cq);
    pi = solicited_only ? cq->sol_pi : cq->pi;
    if (((int32_t)((pi - ci) << 8) > 0) &&
        !(is_verbs && emu_quirk_hits(cq->port, EMU_QUIRK_BLIND_ARM, 0, cqn, pi - ci))) {
        chan = cq->chan;
    } else {
        cq->armed = solicited_only ? 2 : 1;
    }
    emu_unlock(&cq->lock);

    if (chan != NULL) {
        emu_chan_post(chan, EMU_EVENT_CQ, cq->cqn, cq->cookie);
    }
}

void emu_cq_arm(uint32_t cqn, uint32_t sn_cmd_ci)
{
    emu_cq_arm_as(cqn, sn_cmd_ci, 0);
}

void emu_cq_arm_verbs(uint32_t cqn, uint32_t sn_cmd_ci)
{
    emu_cq_arm_as(cqn, sn_cmd_ci, 1);
}

uint32_t emu_cq_clean(emu_cq_t *cq, uint32_t qpn, uint32_t ci)
{
    uint32_t removed = 0;
    uint32_t num, index, i;

    emu_cq_lock(cq);
    num = (cq->pi - ci) & 0xffffff;
    if (num > cq->cqe_cnt) {
        num = 0;
    }
    for (i = 0; i < num; i++) {
        index = cq->pi - 1 - i;
        if (emu_cqe_qpn(emu_cq_slot(cq, index), cq->cqe_size) == qpn) {
            removed++;
        } else if (removed > 0) {
            emu_cqe_move(emu_cq_slot(cq, index + removed),
                         emu_cq_slot(cq, index), cq->cqe_size);
        }
    }
    emu_unlock(&cq->lock);
    return removed;
}
