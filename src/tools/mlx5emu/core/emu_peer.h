/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Access to the memory of processes through /proc/PID/mem: short accesses of other
 * processes' memory, and all accesses of memory that a CPU may not access. Called by
 * emu_mem.c, and after a fork by emu_proc.c.
 */

#ifndef EMU_PEER_H_
#define EMU_PEER_H_

#include "../base/emu_def.h"

#include <stddef.h>

#define EMU_PEER_MAX 2048 /* bytes that emu_peer_access() is quicker with */

/**
 * Copy some bytes to or from another process's memory.
 *
 * @param [in] index   Of the process.
 * @param [in] is_put  To that process; from it otherwise.
 *
 * @return Nonzero if they are copied. 0 if some of them may not be: try
 *         process_vm_writev() or process_vm_readv(), which return the reason.
 */
int emu_peer_access(uint32_t index, int is_put, void *local, uint64_t remote,
                    size_t length);

/**
 * Copy some bytes to or from the memory of a process, this one among them, even where
 * the process itself may not access it (PROT_NONE). Memory that processes share can
 * only be read then, as the kernel has it.
 *
 * @return 0, -ESRCH (the process is gone) or -EFAULT.
 */
int emu_peer_force(uint32_t index, int is_put, void *local, uint64_t remote,
                   size_t length);

/** In a forked child: close the descriptors that it has from its parent. */
void emu_peer_forget(void);

#endif
