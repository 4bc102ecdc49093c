/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_timed.h.
 */

#include "emu_timed.h"
#include "emu_wire.h"
#include "../core/emu_mem.h"
#include "../core/emu_port.h"
#include "../core/emu_proc.h"

_Static_assert(sizeof(emu_timed_t) <= EMU_FLIGHT_HEAD, "a flight has room for it");

/* Bytes of headers on the wire (InfiniBand specification, volume 1, chapter 9) */
enum {
    EMU_HDR_BASE     = 8 + 12 + 4 + 2, /* LRH, BTH, ICRC, VCRC */
    EMU_HDR_GRH      = 40,
    EMU_HDR_DETH     = 8,
    EMU_HDR_RETH     = 16,
    EMU_HDR_ATOMIC   = 28,
    EMU_HDR_IMM      = 4,
    EMU_HDR_AETH     = 4,
    EMU_HDR_ATOMACK  = 8
};

static uint32_t emu_timed_base(const emu_pkt_t *pkt)
{
    return EMU_HDR_BASE + (pkt->has_grh ? EMU_HDR_GRH : 0);
}

static uint32_t emu_timed_pkt_bytes(const emu_pkt_t *pkt)
{
    uint32_t bytes = emu_timed_base(pkt) + pkt->length;

    if ((pkt->qp_type != EMU_QPT_RC)) {
        bytes += EMU_HDR_DETH;
    }
    if ((pkt->kind == EMU_OP_CAS) || (pkt->kind == EMU_OP_FAA)) {
        bytes += EMU_HDR_ATOMIC;
    } else if ((pkt->kind != EMU_OP_SEND) && (pkt->flags & EMU_PKT_FIRST)) {
        bytes += EMU_HDR_RETH;
    }
    if ((pkt->flags & EMU_PKT_IMM) && (pkt->flags & EMU_PKT_LAST)) {
        bytes += EMU_HDR_IMM;
    }
    return bytes;
}

static uint32_t emu_timed_rsp_bytes(const emu_pkt_t *pkt, const emu_rsp_t *rsp)
{
    return emu_timed_base(pkt) + EMU_HDR_AETH + rsp->length +
           ((rsp->type == EMU_RSP_ATOMIC) ? EMU_HDR_ATOMACK : 0);
}

void emu_timed_send(const emu_pkt_t *pkt, uint32_t proc, uint64_t detour_ns)
{
    uint16_t src, dst;
    emu_flight_t *flight;
    emu_timed_t *timed;

    if (!emu_wire_enter(pkt, &src, &dst)) {
        return;
    }

    flight = emu_pipe_alloc();
    if (flight == NULL) {
        emu_wire_lost(pkt, EMU_CNT_DROPS_QUEUE);
        return;
    }

    timed              = emu_timed(flight);
    timed->pkt         = *pkt;
    timed->pkt.offset  = 0;
    timed->pkt.sge     = &timed->sge;
    timed->pkt.num_sge = 1;
    timed->sge         = (emu_sge_t){ .inl    = emu_flight_data(flight),
                                      .length = pkt->length };
    flight->kind       = EMU_TIMED_REQUEST;
    flight->src        = src;
    flight->dst        = dst;
    flight->key        = pkt->src_qpn & (EMU_MAX_QPS - 1);
    flight->length     = pkt->length;
    flight->bytes      = emu_timed_pkt_bytes(pkt);
    flight->detour_ns  = detour_ns;
    if (emu_pkt_gather(pkt, proc, emu_flight_data(flight), pkt->length) != 0) {
        /* Its sender is gone: nothing may be sent in its name */
        emu_wire_lost(pkt, EMU_CNT_DROPS_DEST);
        emu_pipe_release(flight);
        return;
    }
    emu_pipe_send(flight);
}

int emu_timed_is_full(const emu_qp_t *qp)
{
    return emu_pipe_park(qp->qpn & (EMU_MAX_QPS - 1), qp->port);
}

/* Its data are in the flight then */
static int emu_timed_load(emu_flight_t *flight, emu_rsp_t *rsp)
{
    struct iovec src = { (void*)(uintptr_t)rsp->addr, rsp->length };
    struct iovec dst = { emu_flight_data(flight), rsp->length };

    if (emu_mem_get(rsp->proc, &dst, 1, &src, 1, rsp->length) != 0) {
        return -1;
    }

    rsp->proc = emu_self->index;
    rsp->addr = (uintptr_t)dst.iov_base;
    return 0;
}

int emu_timed_reply(const emu_pkt_t *pkt, const emu_rsp_t *rsp)
{
    emu_flight_t *flight;
    uint16_t src, dst;

    if (!emu_wire_enter_reply(pkt, &src, &dst)) {
        return 0;
    }

    flight = emu_pipe_alloc();
    if (flight == NULL) {
        emu_wire_lost_reply(pkt, rsp, EMU_CNT_DROPS_QUEUE);
        return 0;
    }

    emu_timed(flight)->pkt         = *pkt;
    emu_timed(flight)->pkt.sge     = NULL;
    emu_timed(flight)->pkt.num_sge = 0;
    emu_timed(flight)->rsp         = *rsp;
    flight->kind                   = EMU_TIMED_RESPONSE;
    flight->src                    = src;
    flight->dst                    = dst;
    flight->key                    = emu_timed_reply_key(pkt->src_qpn);
    flight->length                 = rsp->length;
    flight->bytes                  = emu_timed_rsp_bytes(pkt, rsp);
    if ((rsp->length > 0) &&
        (emu_timed_load(flight, &emu_timed(flight)->rsp) != 0)) {
        emu_pipe_release(flight);
        return -1;
    }

    emu_pipe_send(flight);
    return 0;
}
