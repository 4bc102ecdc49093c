/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_mem.h.
 */

#include "emu_mem.h"
#include "emu_fabric.h"
#include "emu_peer.h"
#include "emu_proc.h"
#include "emu_touch.h"

#include <errno.h>

/* What goes through a buffer at once where no other way works */
#define EMU_MEM_PIECE 4096

/* A place in a list */
typedef struct emu_mem_cursor {
    const struct iovec *iov;
    size_t             offset;   /* in iov[0] */
} emu_mem_cursor_t;


static uint8_t *emu_mem_at(const emu_mem_cursor_t *cursor)
{
    return (uint8_t*)cursor->iov->iov_base + cursor->offset;
}

static size_t emu_mem_left(const emu_mem_cursor_t *cursor)
{
    return cursor->iov->iov_len - cursor->offset;
}

static void emu_mem_advance(emu_mem_cursor_t *cursor, size_t length)
{
    cursor->offset += length;
    if (cursor->offset == cursor->iov->iov_len) {
        cursor->iov++;
        cursor->offset = 0;
    }
}

/* Some bytes of memory that the CPU may not access */
static int emu_mem_force_piece(uint32_t dst_proc, uint8_t *dst, uint32_t src_proc,
                               const uint8_t *src, size_t length)
{
    uint8_t buf[EMU_MEM_PIECE];
    int ret;

    ret = emu_peer_force(src_proc, 0, buf, (uintptr_t)src, length);
    return (ret != 0) ? ret :
           emu_peer_force(dst_proc, 1, buf, (uintptr_t)dst, length);
}

/* A queue pair may be connected to itself, and write over what it reads */
static int emu_mem_move(uint8_t *dst, const uint8_t *src, size_t length)
{
    uint32_t self = emu_self->index;
    size_t left, part, offset;
    int is_backward, ret;

    left = emu_touch_copy(dst, src, length, &is_backward);
    while (emu_unlikely(left > 0)) {
        part   = emu_min(left, EMU_MEM_PIECE);
        offset = is_backward ? left - part : length - left;
        ret    = emu_mem_force_piece(self, dst + offset, self, src + offset,
                                     part);
        if (ret != 0) {
            return ret;
        }
        left -= part;
    }

    return 0;
}

/* Both lists are in this process */
static int emu_mem_copy_local(const struct iovec *dst_iov,
                              const struct iovec *src_iov, size_t length)
{
    emu_mem_cursor_t dst = { dst_iov, 0 };
    emu_mem_cursor_t src = { src_iov, 0 };
    size_t part;
    int ret;

    for (; length > 0; length -= part) {
        part = emu_min(emu_mem_left(&dst), emu_mem_left(&src));
        part = emu_min(part, length);
        ret  = emu_mem_move(emu_mem_at(&dst), emu_mem_at(&src), part);
        if (ret != 0) {
            return ret;
        }
        emu_mem_advance(&dst, part);
        emu_mem_advance(&src, part);
    }

    return 0;
}

/* Memory of which a part may not be accessed by the CPU: a NIC has the pages since
 * they were registered, and does not ask the page tables */
static int emu_mem_force(uint32_t dst_proc, const struct iovec *dst_iov,
                         uint32_t src_proc, const struct iovec *src_iov,
                         size_t length)
{
    emu_mem_cursor_t dst = { dst_iov, 0 };
    emu_mem_cursor_t src = { src_iov, 0 };
    size_t part;
    int ret;

    for (; length > 0; length -= part) {
        part = emu_min(emu_mem_left(&dst), emu_mem_left(&src));
        part = emu_min(part, emu_min(length, EMU_MEM_PIECE));
        ret  = emu_mem_force_piece(dst_proc, emu_mem_at(&dst), src_proc,
                                   emu_mem_at(&src), part);
        if (ret != 0) {
            return ret;
        }
        emu_mem_advance(&dst, part);
        emu_mem_advance(&src, part);
    }

    return 0;
}

/* Between this process and another one */
static int emu_mem_copy(uint32_t proc, int is_put, const struct iovec *local,
                        unsigned num_local, const struct iovec *remote,
                        unsigned num_remote, size_t length)
{
    pid_t pid = emu_fabric->procs[proc].pid;
    ssize_t ret;

    if ((length <= EMU_PEER_MAX) && (num_local == 1) && (num_remote == 1) &&
        emu_peer_access(proc, is_put, local->iov_base,
                        (uintptr_t)remote->iov_base, length)) {
        return 0;
    }

    ret = is_put ? process_vm_writev(pid, local, num_local, remote, num_remote,
                                     0) :
                   process_vm_readv(pid, local, num_local, remote, num_remote,
                                    0);
    if (emu_likely(ret == (ssize_t)length)) {
        return 0;
    }

    if ((ret < 0) && (errno == ESRCH)) {
        return -ESRCH;
    }

    return is_put ? emu_mem_force(proc, remote, emu_self->index, local, length) :
                    emu_mem_force(emu_self->index, local, proc, remote, length);
}

int emu_mem_put(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length)
{
    if (length == 0) {
        return 0;
    }
    if (proc == emu_self->index) {
        return emu_mem_copy_local(dst, src, length);
    }
    return emu_mem_copy(proc, 1, src, num_src, dst, num_dst, length);
}

int emu_mem_get(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length)
{
    if (proc == emu_self->index) {
        return emu_mem_put(proc, dst, num_dst, src, num_src, length);
    }
    return (length == 0) ? 0 :
           emu_mem_copy(proc, 0, dst, num_dst, src, num_src, length);
}
