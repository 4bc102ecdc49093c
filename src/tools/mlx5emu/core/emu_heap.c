/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * First fit over an array of page owners, from where the last search ended. The
 * array is the only truth: a process that dies at any point in here leaves at
 * worst pages that are reaped with it.
 */

#include "emu_heap.h"
#include "emu_fabric.h"
#include "emu_proc.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

static uint64_t emu_heap_pages(size_t size)
{
    return (size + EMU_PAGE - 1) / EMU_PAGE;
}

/* heap_lock is held. Returns the first page of a free run, or UINT64_MAX */
static uint64_t emu_heap_search(uint64_t from, uint64_t to, uint64_t count)
{
    const uint32_t *owner = emu_fabric->heap_pages;
    uint64_t run          = 0;
    uint64_t i;

    for (i = from; i < to; i++) {
        run = (owner[i] == 0) ? (run + 1) : 0;
        if (run == count) {
            return i - count + 1;
        }
    }

    return UINT64_MAX;
}

static int emu_heap_commit(uint8_t *ptr, uint64_t size)
{
    off_t offset = (uintptr_t)ptr - EMU_BASE;

    return fallocate(emu_fabric_fd, 0, offset, size);
}

static void emu_heap_set_owner(uint64_t page, uint64_t count, uint32_t owner)
{
    uint64_t i;

    for (i = 0; i < count; i++) {
        emu_fabric->heap_pages[page + i] = owner;
    }
}

void *emu_heap_alloc(size_t size)
{
    emu_fabric_t *f = emu_fabric;
    uint64_t count  = emu_heap_pages(size);
    uint8_t *ptr    = NULL;
    uint64_t page;

    emu_lock(&f->heap_lock);
    page = emu_heap_search(f->heap_hint, f->heap_num_pages, count);
    if (page == UINT64_MAX) {
        page = emu_heap_search(0, f->heap_num_pages, count);
    }

    if (page != UINT64_MAX) {
        ptr = f->heap + page * EMU_PAGE;
        if (emu_heap_commit(ptr, count * EMU_PAGE) == 0) {
            emu_heap_set_owner(page, count, emu_self->index + 1);
            f->heap_hint = page + count;
            f->heap_top  = emu_max(f->heap_top, page + count);
        } else {
            ptr = NULL;
        }
    }
    emu_unlock(&f->heap_lock);
    return ptr;
}

void emu_heap_free(void *ptr, size_t size)
{
    emu_fabric_t *f = emu_fabric;
    uint64_t count  = emu_heap_pages(size);
    uint64_t page   = ((uint8_t*)ptr - f->heap) / EMU_PAGE;

    /* Gives the memory back, and has it zeroed for the next user */
    madvise(ptr, count * EMU_PAGE, MADV_REMOVE);
    emu_lock(&f->heap_lock);
    emu_heap_set_owner(page, count, 0);
    f->heap_hint = emu_min(f->heap_hint, page);
    emu_unlock(&f->heap_lock);
}

void emu_heap_reap(uint32_t proc)
{
    emu_fabric_t *f = emu_fabric;
    uint64_t i, n;

    emu_lock(&f->heap_lock);
    for (i = 0; i < f->heap_top; i += n) {
        n = 1;
        if (f->heap_pages[i] != proc + 1) {
            continue;
        }

        while ((i + n < f->heap_top) && (f->heap_pages[i + n] == proc + 1)) {
            n++;
        }
        madvise(f->heap + i * EMU_PAGE, n * EMU_PAGE, MADV_REMOVE);
        emu_heap_set_owner(i, n, 0);
        f->heap_hint = emu_min(f->heap_hint, i);
    }
    emu_unlock(&f->heap_lock);
}
