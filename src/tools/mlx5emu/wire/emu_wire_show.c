/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_wire_show.h.
 */

#include "emu_wire_show.h"
#include "../core/emu_fabric.h"
#include "../core/emu_port.h"
#include "../fault/emu_fault.h"

#include <string.h>

/* Of an event about a packet that goes nowhere; the rules know hosts up to 254 */
#define EMU_WIRE_NO_HOST 255

/* For fault rules, of which none names a host that there is not */
static uint8_t emu_wire_host(uint16_t dst_port)
{
    const emu_port_t *port = emu_route_port(dst_port);

    return (port == NULL) ? EMU_WIRE_NO_HOST : port->host;
}

static uint8_t emu_wire_fault_qp(unsigned qp_type)
{
    switch (qp_type) {
    case EMU_QPT_RC:
        return EMU_FAULT_QP_RC;
    case EMU_QPT_UD:
        return EMU_FAULT_QP_UD;
    default:
        return EMU_FAULT_QP_DC;
    }
}

uint8_t emu_wire_fault_op(uint8_t kind, int has_imm)
{
    switch (kind) {
    case EMU_OP_WRITE:
        return has_imm ? EMU_FAULT_OP_WRITE_IMM : EMU_FAULT_OP_WRITE;
    case EMU_OP_READ:
        return EMU_FAULT_OP_READ;
    case EMU_OP_CAS:
        return EMU_FAULT_OP_CAS;
    case EMU_OP_FAA:
        return EMU_FAULT_OP_FAA;
    case EMU_OP_NONE:
        return EMU_FAULT_OP_NOP;
    default:
        return has_imm ? EMU_FAULT_OP_SEND_IMM : EMU_FAULT_OP_SEND;
    }
}

void emu_wire_op_event(const emu_qp_t *qp, const emu_op_t *op,
                       emu_fault_event_t *event_p)
{
    const emu_port_t *port = &emu_fabric->ports[qp->port];
    uint16_t dst           = emu_route(port, op->has_av ? &op->path : &qp->path);

    memset(event_p, 0, sizeof(*event_p));
    event_p->point     = EMU_FAULT_POINT_POST;
    event_p->op        = emu_wire_fault_op(op->kind, op->has_imm);
    event_p->host      = port->host;
    event_p->peer      = emu_wire_host(dst);
    event_p->link      = port->link;
    event_p->wqe_index = qp->sq_send;
    event_p->qpn       = qp->qpn;
    event_p->size      = op->length;
    event_p->qp_type   = emu_wire_fault_qp(qp->type);
    event_p->prev_op   = qp->last_op;
    event_p->prev_size = qp->last_size;
}

void emu_wire_show_err(const emu_qp_t *qp)
{
    const emu_port_t *port = &emu_fabric->ports[qp->port];
    emu_fault_verdict_t verdict;
    emu_fault_event_t event;

    memset(&event, 0, sizeof(event));
    event.point   = EMU_FAULT_POINT_ERR;
    event.host    = port->host;
    event.link    = port->link;
    event.qpn     = qp->qpn;
    event.qp_type = emu_wire_fault_qp(qp->type);
    event.prev_op = EMU_FAULT_OP_LAST;
    emu_fault_check(&event, &verdict);
}

void emu_wire_show(const emu_pkt_t *pkt, emu_fault_point_t point,
                   uint32_t pkt_no, uint32_t num_pkts,
                   emu_fault_verdict_t *verdict_p)
{
    const emu_port_t *src = &emu_fabric->ports[pkt->src_port];
    emu_fault_event_t event;

    memset(&event, 0, sizeof(event));
    event.point     = point;
    event.op        = emu_wire_fault_op(pkt->kind, pkt->flags & EMU_PKT_IMM);
    event.host      = src->host;
    event.peer      = emu_wire_host(pkt->dst_port);
    event.link      = src->link;
    event.is_retry  = !!(pkt->flags & EMU_PKT_RETRY);
    event.wqe_index = pkt->wqe_index;
    event.qpn       = pkt->src_qpn;
    event.pkt       = pkt_no;
    event.num_pkts  = num_pkts;
    event.size      = pkt->msg_total;
    event.qp_type   = emu_wire_fault_qp(pkt->qp_type);
    event.prev_op   = pkt->prev_op;
    event.prev_size = pkt->prev_size;
    emu_fault_check(&event, verdict_p);
}

void emu_wire_show_exec(const emu_pkt_t *pkt, const emu_rsp_t *rsp)
{
    emu_fault_verdict_t verdict;

    if (rsp->executed) {
        emu_wire_show(pkt, EMU_FAULT_POINT_EXEC, 0, pkt->msg_pkts, &verdict);
    }
}
