/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's steps that touch memory. Called by the other files of the responder.
 */

#ifndef EMU_RESP_OPS_H_
#define EMU_RESP_OPS_H_

#include "emu_rx.h"

/* Steps in emu_resp_ops.c */

emu_rx_verdict_t emu_rx_nak(emu_rx_t *rx, emu_rsp_type_t type);
emu_rx_verdict_t emu_rx_check_rights(emu_rx_t *rx);
emu_rx_verdict_t emu_rx_check_resource(emu_rx_t *rx);
emu_rx_verdict_t emu_rx_execute(emu_rx_t *rx);
/** Put the payload of a write into memory. */
emu_rx_verdict_t emu_rx_place(emu_rx_t *rx);
emu_rx_verdict_t emu_rx_duplicate(emu_rx_t *rx);

#endif
