/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Short accesses to the memory of other processes. Called by proto/emu_mem.c, and
 * after a fork by emu_proc.c.
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
 * @return Nonzero if they are copied. 0 if some of them may not be:
 *         process_vm_writev() or process_vm_readv() has to be tried, which tells
 *         why.
 */
int emu_peer_access(uint32_t index, int is_put, void *local, uint64_t remote,
                    size_t length);

/** In a forked child: close the descriptors that it has from its parent. */
void emu_peer_forget(void);

#endif
