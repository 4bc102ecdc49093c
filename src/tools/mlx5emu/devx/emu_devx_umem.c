/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED. See LICENSE for terms (BSD-3-Clause). */

/*
 * Memory that programs bring along for queues and doorbell records (umem).
 *
 * The engine of another process reads receive entries of ours, and flushes our
 * send queues. So the pages of a umem are replaced, where they are, by pages of
 * the fabric's heap with the same contents, and turned back into private ones
 * at the end:
 *
 *      program's address --+
 *                          +--> the same pages of the fabric's file
 *      heap address -------+    (all processes have this one)
 *
 * Umems inside of pages which are replaced already share them: emu_umem_pages_t.
 */

#include "emu_devx.h"
#include "../core/emu_heap.h"
#include "../core/emu_pin.h"
#include "../uar/emu_signal.h"

#include <search.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>


/* Pages that were replaced */
typedef struct emu_umem_pages {
    uint8_t               *base;   /* In the program */
    uint8_t               *heap;
    size_t                size;
    unsigned              refs;    /* Umems in them */
} emu_umem_pages_t;


struct emu_umem {
    struct mlx5dv_devx_umem dv;
    struct ibv_context      *context;
    emu_umem_pages_t        *pages;
    uint8_t                 *addr;
    size_t                  size;
    unsigned                refs;    /* Objects whose queues are in it */
};


/* Protects both trees and what is in them; see tsearch(3) */
static pthread_mutex_t emu_umem_lock = PTHREAD_MUTEX_INITIALIZER;
static void *emu_umem_pages; /* emu_umem_pages_t, by address */
static void *emu_umems;      /* emu_umem_t, by id */
static uint32_t emu_umem_last_id;


/* What overlaps is equal; pages in the tree don't */
static int emu_umem_pages_compare(const void *ptr1, const void *ptr2)
{
    const emu_umem_pages_t *pages1 = ptr1, *pages2 = ptr2;

    return (pages1->base >= pages2->base + pages2->size) ? 1 :
           (pages2->base >= pages1->base + pages1->size) ? -1 : 0;
}

static int emu_umem_compare(const void *ptr1, const void *ptr2)
{
    uint32_t id1 = ((const emu_umem_t*)ptr1)->dv.umem_id;
    uint32_t id2 = ((const emu_umem_t*)ptr2)->dv.umem_id;

    return (id1 > id2) - (id1 < id2);
}

static uint8_t *emu_umem_page_floor(const void *ptr)
{
    return (uint8_t*)((uintptr_t)ptr & ~(EMU_PAGE - 1));
}

/* Programs watch for memory that goes away, by functions of their own in place
 * of libc's. This is none of their business: contents stay. */
static void *emu_umem_mmap(void *addr, size_t size, int flags, int fd,
                           uint64_t offset)
{
    return (void*)syscall(SYS_mmap, addr, size, PROT_READ | PROT_WRITE, flags,
                          fd, offset);
}

static int emu_umem_protect(void *addr, size_t size, int prot)
{
    return syscall(SYS_mprotect, addr, size, prot);
}

/* To the heap (SYS_pwrite64) or from it (SYS_pread64). The kernel copies, because whole
 * pages contain neighbours of the umem, too, and an address sanitizer would report reads
 * of these. */
static int
emu_umem_copy(int syscall_nr, uint8_t *memory, uint8_t *heap, size_t size)
{
    const uint64_t offset = (uintptr_t)heap - EMU_BASE;
    size_t done;
    long ret;

    for (done = 0; done < size; done += ret) {
        ret = syscall(syscall_nr, emu_fabric_fd, memory + done, size - done,
                      offset + done);
        if (ret <= 0) {
            return EFAULT;
        }
    }

    return 0;
}

/* Replace pages by pages of the heap. Threads that write to them meanwhile wait
 * in the fault handler. */
static int emu_umem_share(uint8_t *base, uint8_t *heap, size_t size)
{
    if (emu_umem_protect(base, size, PROT_READ) != 0) {
        return EFAULT;
    }

    if (emu_umem_copy(SYS_pwrite64, base, heap, size) != 0) {
        emu_umem_protect(base, size, PROT_READ | PROT_WRITE);
        return EFAULT;
    }

    if (emu_umem_mmap(base, size, MAP_SHARED | MAP_FIXED, emu_fabric_fd,
                      (uintptr_t)heap - EMU_BASE) == MAP_FAILED) {
        emu_umem_protect(base, size, PROT_READ | PROT_WRITE);
        return ENOMEM;
    }

    return 0;
}

/* Make pages private again. If that fails they stay shared, for good. */
static int emu_umem_unshare(uint8_t *base, uint8_t *heap, size_t size)
{
    int ret = 0;
    uint8_t *copy;

    copy = emu_umem_mmap(NULL, size, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (copy == MAP_FAILED) {
        return ENOMEM;
    }

    emu_signal_pause_begin();
    emu_umem_protect(base, size, PROT_READ);
    if ((emu_umem_copy(SYS_pread64, copy, heap, size) != 0) ||
        ((void*)syscall(SYS_mremap, copy, size, size,
                        MREMAP_MAYMOVE | MREMAP_FIXED, base) == MAP_FAILED)) {
        emu_umem_protect(base, size, PROT_READ | PROT_WRITE);
        syscall(SYS_munmap, copy, size);
        ret = ENOMEM;
    }

    emu_signal_pause_end();
    return ret;
}

/* The lock is held. Pages around a range: known ones, or new ones. */
static int emu_umem_get_pages(uint8_t *addr, size_t size,
                              emu_umem_pages_t **pages_p)
{
    uint8_t *base = emu_umem_page_floor(addr);
    uint8_t *end  = emu_umem_page_floor(addr + size + EMU_PAGE - 1);
    uint8_t *here = emu_umem_page_floor(__builtin_frame_address(0));
    emu_umem_pages_t *pages, key = { .base = base, .size = end - base };
    void *node;
    int ret;

    node = tfind(&key, &emu_umem_pages, emu_umem_pages_compare);
    if (node != NULL) {
        pages = *(emu_umem_pages_t**)node;
        if ((base < pages->base) || (end > pages->base + pages->size)) {
            return emu_refuse("umem", "a part of another umem's pages is");
        }

        ++pages->refs;
        *pages_p = pages;
        return 0;
    }

    if ((here >= base) && (here < end)) {
        return emu_refuse("umem", "the stack of the caller is");
    }

    pages = calloc(1, sizeof(*pages));
    if (pages == NULL) {
        return ENOMEM;
    }

    pages->base = base;
    pages->size = end - base;
    pages->refs = 1;
    pages->heap = emu_heap_alloc(pages->size);
    if (pages->heap == NULL) {
        ret = ENOMEM;
        goto err_free;
    }

    emu_signal_pause_begin();
    ret = emu_umem_share(base, pages->heap, pages->size);
    emu_signal_pause_end();
    if (ret != 0) {
        goto err_free_heap;
    }

    if (tsearch(pages, &emu_umem_pages, emu_umem_pages_compare) == NULL) {
        ret = ENOMEM;
        goto err_unshare;
    }

    *pages_p = pages;
    return 0;

err_unshare:
    emu_umem_unshare(base, pages->heap, pages->size);
err_free_heap:
    emu_heap_free(pages->heap, pages->size);
err_free:
    free(pages);
    return ret;
}

/* The lock is held */
static void emu_umem_put_pages(emu_umem_pages_t *pages, int is_mine)
{
    if (--pages->refs > 0) {
        return;
    }

    tdelete(pages, &emu_umem_pages, emu_umem_pages_compare);
    if ((emu_umem_unshare(pages->base, pages->heap, pages->size) == 0) &&
        is_mine) {
        emu_heap_free(pages->heap, pages->size);
    }
    free(pages);
}

struct mlx5dv_devx_umem *
mlx5dv_devx_umem_reg(struct ibv_context *context, void *addr, size_t size,
                     uint32_t access)
{
    emu_umem_t *umem;
    int ret;

    if ((context == NULL) || !emu_vctx_is_mine(context) ||
        !emu_vctx(context)->devx || (size == 0) ||
        ((uintptr_t)addr + size + EMU_PAGE < (uintptr_t)addr) ||
        (access & ~(uint32_t)(IBV_ACCESS_LOCAL_WRITE |
                              IBV_ACCESS_REMOTE_WRITE |
                              IBV_ACCESS_REMOTE_READ))) {
        return emu_verbs_fail(EINVAL);
    }

    ret = emu_pin((uintptr_t)addr, size, access);
    if (ret != 0) {
        return emu_verbs_fail(ret);
    }

    umem = calloc(1, sizeof(*umem));
    if (umem == NULL) {
        return emu_verbs_fail(ENOMEM);
    }

    umem->context = context;
    umem->addr    = addr;
    umem->size    = size;
    pthread_mutex_lock(&emu_umem_lock);
    ret = emu_umem_get_pages(addr, size, &umem->pages);
    if (ret == 0) {
        umem->dv.umem_id = ++emu_umem_last_id;
        if (tsearch(umem, &emu_umems, emu_umem_compare) == NULL) {
            emu_umem_put_pages(umem->pages, 1);
            ret = ENOMEM;
        }
    }
    pthread_mutex_unlock(&emu_umem_lock);

    if (ret != 0) {
        free(umem);
        return emu_verbs_fail(ret);
    }

    return &umem->dv;
}

struct mlx5dv_devx_umem *
mlx5dv_devx_umem_reg_ex(struct ibv_context *context,
                        struct mlx5dv_devx_umem_in *in)
{
    if (in == NULL) {
        return emu_verbs_fail(EINVAL);
    }

    if (in->comp_mask != 0) {
        return emu_refuse_object(__func__, "memory of other devices is");
    }

    return mlx5dv_devx_umem_reg(context, in->addr, in->size, in->access);
}

int mlx5dv_devx_umem_dereg(struct mlx5dv_devx_umem *dv)
{
    emu_umem_t *umem;
    int ret = 0;

    if (dv == NULL) {
        return emu_verbs_error(EINVAL);
    }

    umem = emu_container_of(dv, emu_umem_t, dv);
    pthread_mutex_lock(&emu_umem_lock);
    if (umem->refs > 0) {
        ret = EBUSY;
    } else {
        tdelete(umem, &emu_umems, emu_umem_compare);
        if (umem->pages != NULL) {
            emu_umem_put_pages(umem->pages, emu_vctx_is_mine(umem->context));
        }
    }
    pthread_mutex_unlock(&emu_umem_lock);

    if (ret != 0) {
        return emu_verbs_error(ret);
    }

    free(umem);
    return 0;
}

void *emu_umem_get(struct ibv_context *context, uint32_t id, uint64_t offset,
                   uint64_t length, emu_umem_t **umem_p)
{
    emu_umem_t key = { .dv.umem_id = id };
    void *ptr      = NULL;
    emu_umem_t *umem;
    void *node;

    pthread_mutex_lock(&emu_umem_lock);
    node = tfind(&key, &emu_umems, emu_umem_compare);
    umem = (node == NULL) ? NULL : *(emu_umem_t**)node;
    if ((umem != NULL) && (umem->context == context) &&
        (umem->pages != NULL) && (length <= umem->size) &&
        (offset <= umem->size - length)) {
        ++umem->refs;
        ptr     = umem->pages->heap + (umem->addr - umem->pages->base) + offset;
        *umem_p = umem;
    }
    pthread_mutex_unlock(&emu_umem_lock);
    return ptr;
}

void emu_umem_put(emu_umem_t *umem)
{
    pthread_mutex_lock(&emu_umem_lock);
    --umem->refs;
    pthread_mutex_unlock(&emu_umem_lock);
}

static void emu_umem_forget(const void *node, VISIT visit, int depth)
{
    (void)depth;
    if ((visit == postorder) || (visit == leaf)) {
        (*(emu_umem_t* const*)node)->pages = NULL;
    }
}

/* The process leaves the fabric: give it back its memory */
static void emu_umem_leave(void)
{
    emu_umem_pages_t *pages;

    pthread_mutex_lock(&emu_umem_lock);
    twalk(emu_umems, emu_umem_forget);

    /* The heap's pages are released with all others of this process */
    while (emu_umem_pages != NULL) {
        pages = *(emu_umem_pages_t**)emu_umem_pages;
        tdelete(pages, &emu_umem_pages, emu_umem_pages_compare);
        emu_umem_unshare(pages->base, pages->heap, pages->size);
        free(pages);
    }
    pthread_mutex_unlock(&emu_umem_lock);
}

/* Around a fork: the child gets a copy of the memory, as of all other */
static void emu_umem_fork_prepare(void)
{
    pthread_mutex_lock(&emu_umem_lock);
}

static void emu_umem_fork_parent(void)
{
    pthread_mutex_unlock(&emu_umem_lock);
}

static void emu_umem_fork_child(void)
{
    pthread_mutex_unlock(&emu_umem_lock);
    emu_umem_leave();
}

static const emu_vlife_hooks_t emu_umem_hooks = {
    .fork_prepare = emu_umem_fork_prepare,
    .fork_parent  = emu_umem_fork_parent,
    .fork_child   = emu_umem_fork_child,
    .leave        = emu_umem_leave
};

static void __attribute__((constructor)) emu_umem_init(void)
{
    emu_vlife_hook(&emu_umem_hooks);
}
