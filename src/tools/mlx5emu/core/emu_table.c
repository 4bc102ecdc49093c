/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_table.h.
 */

#include "emu_table.h"

int emu_table_find(unsigned table, const void *slots, size_t slot_size,
                   unsigned first, unsigned max)
{
    uint32_t *hint = &emu_fabric->hints[table];
    unsigned i, index;

    for (i = 0; i < max; i++) {
        index = (*hint + i) % max;
        if ((index >= first) &&
            (*(const uint32_t*)((const uint8_t*)slots + index * slot_size) ==
             0)) {
            *hint = index + 1;
            return index;
        }
    }

    return -1;
}
