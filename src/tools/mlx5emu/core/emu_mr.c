/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Protection domains and memory regions. See emu_mr.h.
 */

#include "emu_mr.h"
#include "emu_fabric.h"
#include "emu_proc.h"
#include "emu_table.h"

#include <errno.h>
#include <time.h>

/* A peer that dies in the middle of an access never ends it */
#define EMU_MR_WAIT_NS 1000000000ul

int emu_pd_alloc(emu_ctx_t *ctx, emu_pd_t **pd_p)
{
    emu_pd_t *pd;
    int index;

    emu_lock(&emu_fabric->table_lock);
    index = emu_table_find(EMU_TABLE_PD, emu_fabric->pds, sizeof(*pd), 1,
                           EMU_MAX_PDS);
    if (index >= 0) {
        pd        = &emu_fabric->pds[index];
        pd->index = index;
        pd->proc  = emu_self->index;
        pd->ctx   = ctx->index;
        pd->refs  = 0;
        pd->used  = 1;
        *pd_p     = pd;
    }
    emu_unlock(&emu_fabric->table_lock);
    return (index >= 0) ? 0 : -ENOMEM;
}

int emu_pd_free(emu_pd_t *pd)
{
    if (__atomic_load_n(&pd->refs, __ATOMIC_ACQUIRE) != 0) {
        return -EBUSY;
    }

    __atomic_store_n(&pd->used, 0, __ATOMIC_RELEASE);
    return 0;
}

int emu_mr_reg(emu_pd_t *pd, uint64_t addr, uint64_t length, uint64_t iova,
               unsigned access, emu_mr_t **mr_p)
{
    emu_mr_t *mr;
    int index;

    if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) &&
        !(access & IBV_ACCESS_LOCAL_WRITE)) {
        return -EINVAL;
    }

    if ((addr + length < addr) || (iova + length < iova)) {
        return -EINVAL;
    }

    emu_lock(&emu_fabric->table_lock);
    index = emu_table_find(EMU_TABLE_MR, emu_fabric->mrs, sizeof(*mr), 1,
                           EMU_MAX_MRS);
    if (index >= 0) {
        mr          = &emu_fabric->mrs[index];
        mr->variant = (mr->variant + 1) & 0xff;
        mr->key     = (index << 8) | mr->variant;
        mr->proc    = emu_self->index;
        mr->pd      = pd->index;
        mr->port    = emu_fabric->ctxs[pd->ctx].port;
        mr->access  = access;
        mr->iova    = iova;
        mr->addr    = addr;
        mr->length  = length;
        mr->users   = 0;
        __atomic_store_n(&mr->used, 1, __ATOMIC_RELEASE);
        __atomic_fetch_add(&pd->refs, 1, __ATOMIC_RELAXED);
        *mr_p = mr;
    }
    emu_unlock(&emu_fabric->table_lock);
    return (index >= 0) ? 0 : -ENOMEM;
}

void emu_mr_dereg(emu_mr_t *mr)
{
    struct timespec pause = { .tv_nsec = 20000 };
    uint64_t end          = 0;
    uint64_t now;

    /* Whoever takes a reference after this store sees it, and gives up */
    __atomic_store_n(&mr->used, 2, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&mr->users, __ATOMIC_SEQ_CST) != 0) {
        now = emu_now_ns();
        if (end == 0) {
            end = now + EMU_MR_WAIT_NS;
        } else if (now > end) {
            break;
        }
        nanosleep(&pause, NULL);
    }

    __atomic_fetch_sub(&emu_fabric->pds[mr->pd].refs, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&mr->used, 0, __ATOMIC_RELEASE);
}

emu_mr_t *emu_mr_check(uint32_t key, uint64_t addr, uint64_t length,
                       unsigned access, uint32_t pd, uint32_t port)
{
    uint32_t index = key >> 8;
    emu_mr_t *mr;

    if (emu_unlikely((index == 0) || (index >= EMU_MAX_MRS))) {
        return NULL;
    }

    mr = &emu_fabric->mrs[index];
    if (emu_unlikely((__atomic_load_n(&mr->used, __ATOMIC_ACQUIRE) != 1) ||
                     (mr->key != key) || (mr->pd != pd) ||
                     (mr->port != port) || ((mr->access & access) != access) ||
                     (addr < mr->iova) || (length > mr->length) ||
                     (addr - mr->iova > mr->length - length))) {
        return NULL;
    }

    return mr;
}

emu_mr_t *emu_mr_get(uint32_t key, uint64_t addr, uint64_t length,
                     unsigned access, uint32_t pd, uint32_t port)
{
    emu_mr_t *mr = emu_mr_check(key, addr, length, access, pd, port);

    if (emu_unlikely(mr == NULL)) {
        return NULL;
    }

    __atomic_fetch_add(&mr->users, 1, __ATOMIC_SEQ_CST);
    if (emu_unlikely((__atomic_load_n(&mr->used, __ATOMIC_SEQ_CST) != 1) ||
                     (mr->key != key))) {
        emu_mr_put(mr);
        return NULL;
    }

    return mr;
}

void emu_mr_put(emu_mr_t *mr)
{
    __atomic_fetch_sub(&mr->users, 1, __ATOMIC_RELEASE);
}
