/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How the payload of writes gets into memory. Called by emu_resp_ops.c; resp_lock
 * is held.
 */

#ifndef EMU_RESP_PUT_H_
#define EMU_RESP_PUT_H_

#include "emu_rx.h"

/** Put the payload of a write into memory, or accept it to be placed later.
 *  @return 0, -ESRCH or -EFAULT. */
int emu_rx_put(const emu_rx_t *rx);

#endif
