/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The heap of the fabric: runs of pages for queue buffers and doorbell records,
 * each owned by a process, so that a dead one's memory can be found.
 *
 * Called by: core/ only.
 */

#ifndef EMU_HEAP_H_
#define EMU_HEAP_H_

#include "../base/emu_def.h"

/** Allocate zeroed memory for this process, NULL if there is none. */
void *emu_heap_alloc(size_t size);

/** Release what emu_heap_alloc(size) gave. */
void emu_heap_free(void *ptr, size_t size);

/** Release all pages of a process. */
void emu_heap_reap(uint32_t proc);

#endif
