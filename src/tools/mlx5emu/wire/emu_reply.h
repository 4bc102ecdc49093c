/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Responses in a fabric that has time: in order, and no more at once than the port
 * has room for. A read is executed when its request arrives, and its data are read
 * when they leave.
 *
 * Called by: emu_keep.c, in the keeper only.
 */

#ifndef EMU_REPLY_H_
#define EMU_REPLY_H_

#include "emu_pkt.h"

/** Send a response, or as much of it as there is room for. It is released. */
void emu_reply_send(const emu_pkt_t *pkt, emu_rsp_t *rsp);

/** The port has room for more responses to a queue pair, by its index. */
void emu_reply_resume(uint32_t index);

#endif
