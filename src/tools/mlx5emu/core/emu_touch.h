/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A copy within this process that survives memory which the CPU may not access: a
 * NIC has the pages since they were registered, whatever mprotect() has done to
 * them meanwhile.
 *
 * Called by: emu_mem.c (copies), uar/ (its handler of SIGSEGV).
 */

#ifndef EMU_TOUCH_H_
#define EMU_TOUCH_H_

#include <stddef.h>

/**
 * Copy from the first byte to the last one, or, if the ranges overlap such that
 * this would overwrite what is still to be copied, the other way round.
 *
 * @param [out] is_backward_p  Which way it went.
 *
 * @return How many bytes are left since the CPU may not read or write the next
 *         one. 0: all are copied.
 */
size_t emu_touch_copy(void *dst, const void *src, size_t length,
                      int *is_backward_p);

/** In a handler of SIGSEGV: if the fault is in emu_touch_copy(), have that return.
 *  @return whether it was. */
int emu_touch_recover(void *context);

#endif
