/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_fabric.h.
 */

#include "emu_fabric.h"

#include <time.h>

emu_fabric_t *emu_fabric    = NULL;
int          emu_fabric_fd  = -1;

uint64_t emu_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (ts.tv_sec * 1000000000ul) + ts.tv_nsec;
}
