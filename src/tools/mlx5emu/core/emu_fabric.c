/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_fabric.h and emu_table.h.
 */

#include "emu_fabric.h"
#include "emu_table.h"

#include <time.h>

emu_fabric_t *emu_fabric    = NULL;
int          emu_fabric_fd  = -1;

uint64_t emu_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1000000000ul) + ts.tv_nsec;
}

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
