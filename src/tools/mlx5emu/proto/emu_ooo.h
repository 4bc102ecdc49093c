/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Adaptive routing (quirks ooo and ooo-all): packets of one queue pair take
 * different ways through the fabric, and some are overtaken by later ones.
 *
 * Called by: emu_req.c (instead of emu_wire_send). What the responder makes of
 * packets out of order is in emu_resp_ooo.h. Private to proto/.
 */

#ifndef EMU_OOO_H_
#define EMU_OOO_H_

#include "../core/emu_fabric.h"
#include "../core/emu_qp.h"
#include "../core/emu_quirk.h"
#include "../wire/emu_wire.h"

/** Packets of this process that are on their way, by index of the queue pair.
 *  Guarded by its req_lock. */
typedef struct emu_ooo_packet emu_ooo_packet_t;
extern emu_ooo_packet_t *emu_ooo_packets[EMU_MAX_QPS];

/** Whether packets of a queue pair with this service level may be overtaken. */
int emu_ooo_is_on(const emu_qp_t *qp, uint8_t sl);

/** Whether a packet must be sent by emu_ooo_send(). req_lock is held. */
static inline int emu_ooo_has(const emu_qp_t *qp)
{
    return emu_unlikely(emu_quirk_on(qp->port, EMU_QUIRK_OOO) ||
                        emu_quirk_on(qp->port, EMU_QUIRK_OOO_ALL) ||
                        (emu_ooo_packets[qp->qpn & (EMU_MAX_QPS - 1)] !=
                         NULL)) && (qp->type != EMU_QPT_UD);
}

/** In a fabric that has time: how much longer than others a packet takes (0: no
 *  longer). It is marked if it may overtake. req_lock is held. */
uint64_t emu_ooo_detour(const emu_qp_t *qp, emu_pkt_t *pkt);

/** As emu_wire_send(). req_lock is held. */
int emu_ooo_send(emu_qp_t *qp, const emu_wire_ends_t *ends, emu_pkt_t *pkt,
                 emu_rsp_t *rsp_p);

#endif
