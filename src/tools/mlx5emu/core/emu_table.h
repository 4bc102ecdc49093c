/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Slots of the fabric's tables. All are arrays of structures whose first member
 * is "uint32_t used". A freed slot is reused as late as possible, so that stale
 * numbers stay recognizable.
 *
 * Called by: core/ only, with table_lock held.
 */

#ifndef EMU_TABLE_H_
#define EMU_TABLE_H_

#include "emu_fabric.h"

/** Tables, as indices of emu_fabric_t::hints. */
enum {
    EMU_TABLE_PROC,
    EMU_TABLE_CTX,
    EMU_TABLE_CHAN,
    EMU_TABLE_PD,
    EMU_TABLE_MR,
    EMU_TABLE_CQ,
    EMU_TABLE_SRQ,
    EMU_TABLE_QP
};

/** Find a free slot. Slot 0 is never used where @a first is 1: numbers of
 *  zero are no good. @return index, or -1 if the table is full. */
int emu_table_find(unsigned table, const void *slots, size_t slot_size,
                   unsigned first, unsigned max);

#endif
