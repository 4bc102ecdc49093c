/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The wire: from a port through its plane's switch to another port and back.
 * Links that are not up lose packets; fault rules lose, delay and duplicate
 * them.
 *
 * Called by: proto/.
 */

#ifndef EMU_WIRE_H_
#define EMU_WIRE_H_

#include "../rules/emu_fault_rule.h"
#include "../proto/emu_proto.h"

/**
 * Send a request.
 *
 * @param [out] rsp_p  The response, to be released by the caller.
 * @return Whether a response came back at once. If not, it was lost, or comes
 *         later, or there is none.
 */
int emu_wire_send(emu_pkt_t *pkt, emu_rsp_t *rsp_p);

/** Show a packet to the fault rules, at some point of its way. */
void emu_wire_show(const emu_pkt_t *pkt, emu_fault_point_t point,
                   uint32_t pkt_no, uint32_t num_pkts,
                   emu_fault_verdict_t *verdict_p);

/** Show the fault rules that a queue pair enters the error state. */
void emu_wire_show_err(const emu_qp_t *qp);

/** What fault rules call a kind of operation (emu_op_kind_t). */
uint8_t emu_wire_fault_op(uint8_t kind, int has_imm);

/** The event "a WQE was fetched" for fault rules. */
void emu_wire_op_event(const emu_qp_t *qp, const emu_op_t *op,
                       emu_fault_event_t *event_p);

#endif
