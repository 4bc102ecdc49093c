/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The keeper of a fabric that has time: a process of its own, which sleeps until
 * something arrives, and executes it. Programs may compute, stop or die meanwhile.
 *
 * Called by: proto/ (emu_keeper_run).
 */

#ifndef EMU_KEEP_H_
#define EMU_KEEP_H_

#include "emu_wire.h"

/** Keep the time until emu_keep_stop(), or until the fabric is gone. The process is
 *  one of the fabric's.
 *
 * @param [in] ends    Of the wire.
 * @param [in] resume  The queue pair with this index may send more.
 *
 * @return 0, or -EEXIST: another process does.
 */
int emu_keep_run(const emu_wire_ends_t *ends, void (*resume)(uint32_t index));

/** The living keeper's slot in the table of processes, -1: there is none. */
int emu_keep_proc(void);

/** Have the keeper end. */
void emu_keep_stop(void);

#endif
