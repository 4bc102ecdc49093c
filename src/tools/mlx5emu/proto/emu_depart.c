/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester in a fabric that has time: packets are handed to the cables, as many as
 * the port takes of one queue pair. When they arrive is the keeper's business.
 */

#include "emu_ooo.h"
#include "emu_proto.h"
#include "../wire/emu_timed.h"

static void emu_req_depart_one(emu_qp_t *qp, emu_pkt_t *pkt)
{
    uint64_t detour_ns = emu_ooo_has(qp) ? emu_ooo_detour(qp, pkt) : 0;

    pkt->flags |= EMU_PKT_TIMED;
    emu_timed_send(pkt, qp->proc, detour_ns);
}

void emu_req_depart(emu_qp_t *qp, const emu_pkt_t *train)
{
    emu_pkt_t pkt;
    uint32_t i;

    if (train->num_pkts == 1) {
        pkt = *train;
        emu_req_depart_one(qp, &pkt);
    } else {
        for (i = 0; i < train->num_pkts; i++) {
            emu_pkt_part(train, i, &pkt);
            emu_req_depart_one(qp, &pkt);
        }
    }

    if (emu_timed_is_full(qp)) {
        qp->req_waiting |= EMU_REQ_WAITS_PORT;
    }
}
