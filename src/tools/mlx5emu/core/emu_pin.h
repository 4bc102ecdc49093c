/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether a NIC's driver could pin memory of this process, which it does when memory is
 * registered.
 *
 * Called by: verbs/ (regions), devx/ (umems).
 */

#ifndef EMU_PIN_H_
#define EMU_PIN_H_

#include <stdint.h>

/**
 * Bring in the pages of memory, as pinning them does: those that are to be written are
 * allocated.
 *
 * @param [in] access  enum ibv_access_flags; some of them need pages that the program
 *                     can write.
 *
 * @return 0; -EFAULT if there are pages that are not mapped, not readable, not writable
 *         though they have to be, or beyond the end of a file. 0 if this machine's kernel
 *         does not tell (before Linux 5.14).
 */
int emu_pin(uint64_t addr, uint64_t length, unsigned access);

/** Whether these rights need pages that can be written. */
int emu_pin_is_writable(unsigned access);

#endif
