/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Packets and responses as flights of the fabric's cables (core/emu_pipe.h).
 *
 * Called by: proto/ (requests), emu_reply.c (responses), emu_keep.c (what arrives).
 */

#ifndef EMU_TIMED_H_
#define EMU_TIMED_H_

#include "../core/emu_pipe.h"
#include "emu_pkt.h"

/** Kinds of flights. */
enum {
    EMU_TIMED_REQUEST,
    EMU_TIMED_RESPONSE
};

/** What a flight carries; its payload is the flight's. */
typedef struct emu_timed {
    emu_pkt_t pkt;         /* the request, or the one that is answered */
    emu_rsp_t rsp;         /* one packet of a response */
    emu_sge_t sge;
} emu_timed_t;

static inline emu_timed_t *emu_timed(emu_flight_t *flight)
{
    return (emu_timed_t*)flight->head;
}

/**
 * Send one request packet. req_lock of its queue pair is held.
 *
 * @param [in] proc       The process that has its payload.
 * @param [in] detour_ns  How much longer its way is than that of others.
 */
void emu_timed_send(const emu_pkt_t *pkt, uint32_t proc, uint64_t detour_ns);

/** Whether a requester has sent so much that it must wait until it is resumed. */
int emu_timed_is_full(const emu_qp_t *qp);

/**
 * Send one packet of a response, whose data (reads) are @a length bytes of memory at
 * @a addr of process @a proc.
 *
 * @return 0, or -1: it is lost, since its data cannot be read.
 */
int emu_timed_reply(const emu_pkt_t *pkt, const emu_rsp_t *rsp);

/** The key of the responses to a queue pair; that of its requests is its index. */
static inline uint32_t emu_timed_reply_key(uint32_t qpn)
{
    return EMU_MAX_QPS + (qpn & (EMU_MAX_QPS - 1));
}

#endif
