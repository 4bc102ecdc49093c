/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_mem.h.
 */

#include "emu_mem.h"
#include "emu_fabric.h"
#include "emu_peer.h"
#include "emu_proc.h"

#include <errno.h>
#include <string.h>

/* Both lists are in this process */
static void emu_mem_copy_local(const struct iovec *dst, const struct iovec *src,
                               size_t length)
{
    size_t dst_off = 0, src_off = 0;
    size_t part;

    while (length > 0) {
        part = emu_min(dst->iov_len - dst_off, src->iov_len - src_off);
        part = emu_min(part, length);
        /* A queue pair may be connected to itself, and write over what it reads */
        memmove((uint8_t*)dst->iov_base + dst_off,
                (const uint8_t*)src->iov_base + src_off, part);
        length  -= part;
        dst_off += part;
        src_off += part;
        if (dst_off == dst->iov_len) {
            dst++;
            dst_off = 0;
        }
        if (src_off == src->iov_len) {
            src++;
            src_off = 0;
        }
    }
}

static int emu_mem_result(ssize_t ret, size_t length)
{
    if (ret == (ssize_t)length) {
        return 0;
    }
    return ((ret < 0) && (errno == ESRCH)) ? -ESRCH : -EFAULT;
}

/* Between this process and another one */
static int emu_mem_copy(uint32_t proc, int is_put, const struct iovec *local,
                        unsigned num_local, const struct iovec *remote,
                        unsigned num_remote, size_t length)
{
    pid_t pid = emu_fabric->procs[proc].pid;

    if ((length <= EMU_PEER_MAX) && (num_local == 1) && (num_remote == 1) &&
        emu_peer_access(proc, is_put, local->iov_base,
                        (uintptr_t)remote->iov_base, length)) {
        return 0;
    }

    return emu_mem_result(is_put ?
                          process_vm_writev(pid, local, num_local, remote,
                                            num_remote, 0) :
                          process_vm_readv(pid, local, num_local, remote,
                                           num_remote, 0), length);
}

int emu_mem_put(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length)
{
    if (length == 0) {
        return 0;
    }
    if (proc == emu_self->index) {
        emu_mem_copy_local(dst, src, length);
        return 0;
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
