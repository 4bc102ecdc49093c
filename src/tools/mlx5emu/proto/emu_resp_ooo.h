/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a responder makes of packets that came before their predecessors, where
 * adaptive routing allows that (EMU_PKT_OOO). Called by emu_resp.c; resp_lock is
 * held.
 */

#ifndef EMU_RESP_OOO_H_
#define EMU_RESP_OOO_H_

#include "emu_resp_ops.h"

/**
 * Place a packet of a write that is @a diff PSNs ahead. The expected PSN stays
 * as it is.
 *
 * @return 0 if it must be treated as out of sequence: too far ahead, or not
 *         permitted, which is answered when it comes in order.
 */
int emu_rx_take_early(emu_rx_t *rx, int32_t diff);

/**
 * The expected PSN has advanced: go on to the first packet that is missing.
 *
 * @param [in,out] last_p  PSN to be acknowledged: the last one that ended a
 *                         message.
 * @return Whether a message ended.
 */
int emu_rx_absorb_early(emu_rx_t *rx, uint32_t *last_p);

#endif
