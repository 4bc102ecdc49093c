/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_proc.h.
 */

#include "emu_proc.h"

emu_proc_t *emu_self = NULL;

int emu_proc_alive(const emu_proc_t *proc)
{
    return (proc->used == 1) && !emu_lock_owner_died(&proc->life);
}
