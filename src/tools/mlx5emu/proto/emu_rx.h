/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A request in the responder, as its files (emu_resp*.c) see it. No code.
 */

#ifndef EMU_RX_H_
#define EMU_RX_H_

#include "emu_proto.h"

/** What a step of the responder decides. */
typedef enum emu_rx_verdict {
    EMU_RX_NEXT,               /* go on with the next step */
    EMU_RX_DROP,               /* no response */
    EMU_RX_REPLY,              /* rsp is filled in: done */
    EMU_RX_NAK                 /* rsp has a fatal NAK: the QP fails */
} emu_rx_verdict_t;

/** A request that is being handled. */
typedef struct emu_rx {
    emu_pkt_t  *pkt;
    emu_rsp_t  *rsp;
    emu_qp_t   *qp;            /* memory and receive queue: RC QP or DCT */
    emu_qp_t   *ctx;           /* whose PSNs: the RC QP or the DC initiator */
    emu_port_t *port;
    emu_mr_t   *mr;            /* remote memory of the request, referenced */
    emu_rq_entry_t entry;      /* receive entry, if has_entry */
    uint8_t    has_entry;      /* it was taken, and no completion has it */
    uint8_t    is_dup;
    uint8_t    is_early;       /* before its predecessors */
} emu_rx_t;

#endif
