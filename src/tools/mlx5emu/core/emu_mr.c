/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Protection domains and memory regions. See emu_mr.h.
 */

#include "emu_mr.h"
#include "emu_ctx.h"
#include "emu_fabric.h"
#include "emu_late.h"
#include "emu_nic.h"
#include "emu_proc.h"
#include "emu_quirk.h"
#include "emu_table.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

/* A peer that is stopped in the middle of an access may never end it */
#define EMU_MR_WAIT_NS 1000000000ul

int emu_pd_alloc(emu_ctx_t *ctx, emu_pd_t **pd_p)
{
    emu_pd_t *pd;
    int index;

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

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

int emu_mr_access_is_valid(unsigned access)
{
    return !(access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) ||
           (access & IBV_ACCESS_LOCAL_WRITE);
}

/* Quirk same-key: the slot, and so the key, that the port's NIC got back last. table_lock
 * is held. @return -1 if there is none */
static int emu_mr_find_last(uint32_t port)
{
    uint64_t last = 0;
    int index     = -1;
    const emu_mr_t *mr;
    uint32_t i;

    for (i = 1; i < EMU_MAX_MRS; i++) {
        mr = &emu_fabric->mrs[i];
        if ((mr->freed > last) && (mr->port == port) && !mr->is_window && !mr->used) {
            last  = mr->freed;
            index = i;
        }
    }

    return index;
}

/* table_lock is held. @return a slot whose variant is set, or -1 */
static int emu_mr_find(uint32_t port)
{
    int index = emu_quirk_on(port, EMU_QUIRK_SAME_KEY) ? emu_mr_find_last(port) : -1;
    emu_mr_t *mr;

    if (index >= 0) {
        emu_quirk_act(port, EMU_QUIRK_SAME_KEY, 0, 0, emu_fabric->mrs[index].key);
        return index;
    }

    index = emu_table_find(EMU_TABLE_MR, emu_fabric->mrs, sizeof(*mr), 1, EMU_MAX_MRS);
    if (index >= 0) {
        mr          = &emu_fabric->mrs[index];
        mr->variant = (mr->variant + 1) & 0xff;
    }

    return index;
}

int emu_mr_reg(emu_pd_t *pd, uint64_t addr, uint64_t length, uint64_t iova,
               unsigned access, uint64_t device, emu_mr_t **mr_p)
{
    const emu_ctx_t *ctx = &emu_fabric->ctxs[pd->ctx];
    emu_mr_t *mr;
    int index;

    if (!emu_mr_access_is_valid(access) || (addr + length < addr) ||
        (iova + length < iova)) {
        return -EINVAL;
    }

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

    emu_lock(&emu_fabric->table_lock);
    index = emu_mr_find(ctx->port);
    if (index >= 0) {
        mr          = &emu_fabric->mrs[index];
        mr->key     = (index << 8) | mr->variant;
        mr->proc    = emu_self->index;
        mr->pd      = pd->index;
        mr->port    = ctx->port;
        mr->access  = access;
        mr->iova    = iova;
        mr->addr    = addr;
        mr->length  = length;
        mr->device  = device;
        mr->windows   = 0;
        mr->is_window = 0;
        __atomic_store_n(&mr->used, 1, __ATOMIC_RELEASE);
        __atomic_fetch_add(&pd->refs, 1, __ATOMIC_RELAXED);
        *mr_p = mr;
    }
    emu_unlock(&emu_fabric->table_lock);
    return (index >= 0) ? 0 : -ENOMEM;
}

/* What a window and its region have in common, as a region. Empty if nothing. */
static void emu_mr_clip(const emu_mr_t *parent, const emu_mr_window_t *window,
                        emu_mr_t *mr)
{
    __int128 first = emu_max((__int128)window->address, parent->iova);
    __int128 last  = emu_min((__int128)window->address + window->length,
                             (__int128)parent->iova + parent->length);

    mr->iova   = window->start;
    mr->addr   = parent->addr;
    mr->length = 0;
    if (first < last) {
        mr->iova   = window->start + (uint64_t)(first - window->address);
        mr->addr   = parent->addr + (uint64_t)(first - parent->iova);
        mr->length = last - first;
    }
}

int emu_mr_reg_window(emu_pd_t *pd, const emu_mr_window_t *window,
                      emu_mr_t **mr_p)
{
    const emu_ctx_t *ctx  = &emu_fabric->ctxs[pd->ctx];
    uint32_t parent_index = window->key >> 8;
    emu_mr_t *parent, *mr;
    int index, ret = -EINVAL;

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

    if ((parent_index == 0) || (parent_index >= EMU_MAX_MRS) ||
        (window->start + window->length < window->start)) {
        return -EINVAL;
    }

    emu_lock(&emu_fabric->table_lock);
    parent = &emu_fabric->mrs[parent_index];
    if ((parent->used != 1) || (parent->key != window->key) ||
        (parent->pd != pd->index) || parent->is_window) {
        goto out;
    }

    ret   = -ENOMEM;
    index = emu_table_find(EMU_TABLE_MR, emu_fabric->mrs, sizeof(*mr), 1,
                           EMU_MAX_MRS);
    if (index < 0) {
        goto out;
    }

    mr            = &emu_fabric->mrs[index];
    mr->variant   = window->variant & 0xff;
    mr->key       = (index << 8) | mr->variant;
    mr->proc      = emu_self->index;
    mr->pd        = pd->index;
    mr->port      = parent->port;
    mr->access    = window->access & parent->access;
    mr->parent    = window->key;
    mr->device    = parent->device;
    mr->is_window = 1;
    mr->windows   = 0;
    emu_mr_clip(parent, window, mr);
    __atomic_fetch_add(&parent->windows, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&pd->refs, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&mr->used, 1, __ATOMIC_RELEASE);
    *mr_p = mr;
    ret   = 0;
out:
    emu_unlock(&emu_fabric->table_lock);
    return ret;
}

/* Whether a living process is in the middle of an access to a region */
static int emu_mr_is_held(const emu_mr_t *mr)
{
    uint32_t index = mr - emu_fabric->mrs;
    const emu_proc_t *proc;
    unsigned i, slot;

    for (i = 0; i < EMU_MAX_PROCS; i++) {
        proc = &emu_fabric->procs[i];
        for (slot = 0; proc->used && (slot < EMU_PROC_MR_HOLDS); slot++) {
            if ((__atomic_load_n(&proc->mr_held[slot], __ATOMIC_SEQ_CST) ==
                 index) && emu_proc_alive(proc)) {
                return 1;
            }
        }
    }

    return 0;
}

/* Wait until accesses that began before a change have ended */
static void emu_mr_wait(const emu_mr_t *mr)
{
    struct timespec pause = { .tv_nsec = 20000 };
    uint64_t end          = 0;
    uint64_t now;

    while (emu_mr_is_held(mr)) {
        now = emu_now_ns();
        if (end == 0) {
            end = now + EMU_MR_WAIT_NS;
        } else if (now > end) {
            break;
        }
        nanosleep(&pause, NULL);
    }
}

/* An access that begins after this sees it and gives up; earlier ones are waited
 * for */
static void emu_mr_stop(emu_mr_t *mr)
{
    __atomic_store_n(&mr->used, 2, __ATOMIC_SEQ_CST);
    emu_mr_wait(mr);
}

/* Windows of a region that is deregistered become invalid; their slots still belong to
 * the process that made them */
static void emu_mr_stop_windows(const emu_mr_t *parent)
{
    emu_mr_t *mr;
    uint32_t i;

    for (i = 1; i < EMU_MAX_MRS; i++) {
        mr = &emu_fabric->mrs[i];
        if ((mr->used == 1) && mr->is_window && (mr->parent == parent->key)) {
            emu_mr_stop(mr);
        }
    }
}

int emu_mr_change(emu_mr_t *mr, emu_pd_t *pd, unsigned access)
{
    const emu_ctx_t *ctx = &emu_fabric->ctxs[pd->ctx];
    uint32_t old_pd      = mr->pd;

    if (!emu_mr_access_is_valid(access)) {
        return -EINVAL;
    }

    if (emu_nic_command(ctx->port, ctx->nic_gen)) {
        return -EIO;
    }

    emu_lock(&emu_fabric->table_lock); /* No window is made meanwhile */
    if (mr->windows != 0) {
        emu_unlock(&emu_fabric->table_lock);
        return -EBUSY;
    }

    __atomic_fetch_add(&pd->refs, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&mr->pd, pd->index, __ATOMIC_SEQ_CST);
    __atomic_store_n(&mr->access, access, __ATOMIC_SEQ_CST);
    emu_unlock(&emu_fabric->table_lock);
    emu_mr_wait(mr);
    __atomic_fetch_sub(&emu_fabric->pds[old_pd].refs, 1, __ATOMIC_RELAXED);
    return 0;
}

void emu_mr_dereg(emu_mr_t *mr)
{
    emu_mr_t *parent;

    emu_lock(&emu_fabric->table_lock); /* No window is made meanwhile */
    mr->freed = ++emu_fabric->mr_freed;
    __atomic_store_n(&mr->used, 2, __ATOMIC_SEQ_CST);
    emu_unlock(&emu_fabric->table_lock);
    if (mr->windows != 0) {
        emu_mr_stop_windows(mr);
    }
    emu_mr_stop(mr);
    emu_late_flush_memory(mr->proc, mr->addr, mr->length);

    if (mr->is_window) {
        parent = &emu_fabric->mrs[mr->parent >> 8];
        if (parent->used && (parent->key == mr->parent)) {
            __atomic_fetch_sub(&parent->windows, 1, __ATOMIC_SEQ_CST);
        }
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

/* Tell others that a thread of this process begins an access. There are as many
 * slots as threads may be inside the engine; one more waits. */
static void emu_mr_hold(uint32_t index)
{
    static __thread unsigned slot = 0;
    uint32_t expected             = 0;

    while (!__atomic_compare_exchange_n(&emu_self->mr_held[slot], &expected,
                                        index, 0, __ATOMIC_SEQ_CST,
                                        __ATOMIC_RELAXED)) {
        expected = 0;
        slot     = (slot + 1) % EMU_PROC_MR_HOLDS;
        if (slot == 0) {
            sched_yield();
        }
    }
}

emu_mr_t *emu_mr_get(uint32_t key, uint64_t addr, uint64_t length,
                     unsigned access, uint32_t pd, uint32_t port)
{
    emu_mr_t *mr = emu_mr_check(key, addr, length, access, pd, port);

    if (emu_unlikely(mr == NULL)) {
        return NULL;
    }

    emu_mr_hold(key >> 8);
    if (emu_unlikely((__atomic_load_n(&mr->used, __ATOMIC_SEQ_CST) != 1) ||
                     (mr->key != key) || (mr->pd != pd) ||
                     ((mr->access & access) != access))) {
        emu_mr_put(mr);
        return NULL;
    }

    return mr;
}

void emu_mr_put(emu_mr_t *mr)
{
    uint32_t index = mr - emu_fabric->mrs;
    uint32_t expected;
    unsigned slot;

    /* Any slot with this region will do: holds are all alike */
    for (slot = 0; slot < EMU_PROC_MR_HOLDS; slot++) {
        expected = index;
        if ((__atomic_load_n(&emu_self->mr_held[slot], __ATOMIC_RELAXED) ==
             index) &&
            __atomic_compare_exchange_n(&emu_self->mr_held[slot], &expected, 0,
                                        0, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED)) {
            return;
        }
    }
}
