/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of this and of other processes.
 *
 * Called by: proto/ and wire/.
 */

#ifndef EMU_MEM_H_
#define EMU_MEM_H_

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

/** Copy from our memory to a process's. @return 0, -ESRCH or -EFAULT. */
int emu_mem_put(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length);

/** Copy from a process's memory to ours. */
int emu_mem_get(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length);

#endif
