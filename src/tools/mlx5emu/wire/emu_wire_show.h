/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What the fault rules see of operations, packets and queue pairs.
 *
 * Called by: proto/, emu_wire.c, emu_keep.c.
 */

#ifndef EMU_WIRE_SHOW_H_
#define EMU_WIRE_SHOW_H_

#include "../core/emu_qp.h"
#include "../rules/emu_fault_rule.h"
#include "emu_pkt.h"

/** Show a packet to the fault rules, at some point of its way. */
void emu_wire_show(const emu_pkt_t *pkt, emu_fault_point_t point,
                   uint32_t pkt_no, uint32_t num_pkts,
                   emu_fault_verdict_t *verdict_p);

/** Show the rules that the operation was executed, if it was. */
void emu_wire_show_exec(const emu_pkt_t *pkt, const emu_rsp_t *rsp);

/** Show the fault rules that a queue pair enters the error state. */
void emu_wire_show_err(const emu_qp_t *qp);

/** What fault rules call a kind of operation (emu_op_kind_t). */
uint8_t emu_wire_fault_op(uint8_t kind, int has_imm);

/** The event "a WQE was fetched" for fault rules. */
void emu_wire_op_event(const emu_qp_t *qp, const emu_op_t *op,
                       emu_fault_event_t *event_p);

#endif
