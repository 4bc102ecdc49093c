/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_resp_put.h.
 */

#include "emu_resp_put.h"
#include "../core/emu_late.h"
#include "../core/emu_mem.h"
#include "../core/emu_mr.h"
#include "../core/emu_port.h"
#include "../core/emu_quirk.h"

static uint64_t emu_rx_address(const emu_rx_t *rx)
{
    return rx->pkt->raddr - rx->mr->iova + rx->mr->addr;
}

/* Quirk late-write: accept the payload. @return how much of it is accepted */
static uint32_t emu_rx_put_late(const emu_rx_t *rx)
{
    const emu_pkt_t *pkt = rx->pkt;
    emu_late_t late      = {
        .proc    = rx->mr->proc,
        .device  = rx->mr->device,
        .port    = rx->qp->port,
        .nic_gen = rx->qp->nic_gen,
        .qpn     = rx->qp->qpn,
        .id      = pkt->op
    };
    struct iovec src[EMU_MAX_SGE];
    unsigned num_src;
    uint32_t done;

    for (done = 0; done < pkt->length; done += late.length) {
        late.addr   = emu_rx_address(rx) + done;
        late.length = emu_min(pkt->length - done, EMU_LATE_BYTES);
        num_src     = emu_iov_slice(pkt->sge, pkt->num_sge, pkt->offset + done,
                                    late.length, src);
        if (emu_late_add(&late, src, num_src) != 0) {
            break;
        }
    }

    return done;
}

/* The payload from an offset on */
static int emu_rx_put_now(const emu_rx_t *rx, uint32_t done)
{
    const emu_pkt_t *pkt = rx->pkt;
    uint32_t length      = pkt->length - done;
    struct iovec src[EMU_MAX_SGE];
    struct iovec dst = { (void*)(uintptr_t)(emu_rx_address(rx) + done),
                         length };
    unsigned num_src = emu_iov_slice(pkt->sge, pkt->num_sge, pkt->offset + done,
                                     length, src);

    return emu_mem_put(rx->mr->proc, &dst, 1, src, num_src, length);
}

int emu_rx_put(const emu_rx_t *rx)
{
    uint32_t done = 0;

    if (rx->pkt->length == 0) {
        return 0;
    }

    if (emu_quirk_on(rx->port->index, EMU_QUIRK_LATE_WRITE)) {
        done = emu_rx_put_late(rx);
        if (done == rx->pkt->length) {
            return 0;
        }
    }

    /* Behind what waits, if there is no room for more, or the quirk is off now */
    emu_late_flush_qp(rx->qp->qpn);
    return emu_rx_put_now(rx, done);
}
