/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See emu_resp_ooo.h.
 *
 *     resp_psn
 *        v
 *        5  [6]  7  [8] [9]     6, 8 and 9 are in memory; 5 is expected. When it
 *                               comes the expected PSN is 7, and 6 is acknowledged
 */

#include "emu_resp_ooo.h"
#include "../core/emu_fabric.h"
#include "../core/emu_mr.h"
#include "../core/emu_port.h"
#include "../core/emu_quirk.h"

#include <string.h>

static emu_resp_early_t *emu_rx_early(emu_rx_t *rx, uint32_t psn)
{
    return &rx->ctx->resp_early[psn % EMU_MAX_EARLY];
}

int emu_rx_take_early(emu_rx_t *rx, int32_t diff)
{
    const emu_pkt_t *pkt    = rx->pkt;
    emu_resp_early_t *early = emu_rx_early(rx, pkt->psn);
    int is_valid            = early->valid && (early->psn == pkt->psn);

    if ((diff >= EMU_MAX_EARLY) || (pkt->num_psn != 1) ||
        (pkt->kind != EMU_OP_WRITE)) {
        return 0;
    }

    if (is_valid) {
        EMU_COUNT(rx->port, pkt->qp_type, EMU_CNT_DUP_REQS, 1);
        return 1;
    }

    rx->is_early = 1;
    if ((emu_rx_check_rights(rx) != EMU_RX_NEXT) ||
        (emu_rx_place(rx) != EMU_RX_NEXT)) {
        rx->is_early = 0;
        memset(rx->rsp, 0, sizeof(*rx->rsp));
        return 0;
    }

    early->psn     = pkt->psn;
    early->is_last = !!(pkt->flags & EMU_PKT_LAST);
    early->valid   = 1;
    rx->ctx->resp_num_early++;
    emu_quirk_act(pkt->src_port,
                  emu_quirk_on(pkt->src_port, EMU_QUIRK_OOO_ALL) ?
                  EMU_QUIRK_OOO_ALL : EMU_QUIRK_OOO, pkt->src_qpn, pkt->op,
                  diff);
    return 1;
}

/* What retransmission has brought again since */
static void emu_rx_drop_stale(emu_rx_t *rx)
{
    emu_qp_t *ctx = rx->ctx;
    unsigned i;

    for (i = 0; i < EMU_MAX_EARLY; i++) {
        if (ctx->resp_early[i].valid &&
            (emu_psn_diff(ctx->resp_early[i].psn, ctx->resp_psn) < 0)) {
            ctx->resp_early[i].valid = 0;
            ctx->resp_num_early--;
        }
    }
}

int emu_rx_absorb_early(emu_rx_t *rx, uint32_t *last_p)
{
    emu_qp_t *ctx = rx->ctx;
    int is_end    = 0;
    emu_resp_early_t *early;

    emu_rx_drop_stale(rx);
    while (ctx->resp_num_early > 0) {
        early = emu_rx_early(rx, ctx->resp_psn);
        if (!early->valid || (early->psn != ctx->resp_psn)) {
            break;
        }

        ctx->resp_msg.kind = early->is_last ? EMU_OP_NONE : EMU_OP_WRITE;
        if (early->is_last) {
            ctx->resp_msn = emu_psn_add(ctx->resp_msn, 1);
            *last_p       = early->psn;
            is_end        = 1;
        }

        early->valid  = 0;
        ctx->resp_psn = emu_psn_add(ctx->resp_psn, 1);
        ctx->resp_num_early--;
    }

    return is_end;
}
