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

#include "../core/emu_port.h"
#include "../core/emu_qp.h"
#include "../rules/emu_fault_rule.h"
#include "emu_pkt.h"

/** The two ends of the wire. */
typedef struct emu_wire_ends {
    /** A request arrived. @return whether there is a response. */
    int  (*request)(emu_pkt_t *pkt, emu_rsp_t *rsp_p);
    /** What emu_wire_send did not return came later: a response, which is the
     *  callee's to release, or NULL if there is none to a late request. Service
     *  thread, no lock is held. */
    void (*response)(const emu_pkt_t *pkt, emu_rsp_t *rsp);
    /** The same, called with the req_lock of the requester held. */
    void (*respond)(emu_qp_t *qp, const emu_pkt_t *pkt, emu_rsp_t *rsp);
} emu_wire_ends_t;

/**
 * Send a request.
 *
 * @param [in]  ends   Kept for a packet that is late.
 * @param [out] rsp_p  The response, to be released by the caller.
 * @return Whether a response came back at once. If not, it was lost, or comes
 *         later, or there is none.
 */
int emu_wire_send(const emu_wire_ends_t *ends, emu_pkt_t *pkt, emu_rsp_t *rsp_p);

/**
 * The two halves of emu_wire_send(), for a packet that takes its time: it leaves
 * its port, if no rule loses or delays it (0), and it arrives.
 */
int emu_wire_leave(const emu_wire_ends_t *ends, const emu_pkt_t *pkt);
int emu_wire_arrive(const emu_wire_ends_t *ends, emu_pkt_t *pkt,
                    emu_rsp_t *rsp_p);

/** Whether the link of the port that a packet is for lets it arrive now. */
int emu_wire_reaches(const emu_pkt_t *pkt);

/** Whether the links at both ends let a packet pass now. */
int emu_wire_passes(const emu_pkt_t *pkt);

/** Show a packet to the rules. @return whether it arrives now; otherwise it is lost, or
 *  arrives later. */
int emu_wire_judge(const emu_wire_ends_t *ends, const emu_pkt_t *pkt);

/** What becomes of a packet of a response. */
typedef enum emu_wire_fate {
    EMU_WIRE_PASSES,
    EMU_WIRE_TAKEN,        /* a rule has lost or delayed it; later ones come */
    EMU_WIRE_CUT           /* the link is not up */
} emu_wire_fate_t;

/** The same for packet @a index of a response, which is number @a pkt_no of @a num. */
emu_wire_fate_t emu_wire_judge_rsp(const emu_wire_ends_t *ends,
                                   const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                                   uint32_t index, uint32_t pkt_no,
                                   uint32_t num);

/** Count what is lost. */
void emu_wire_lost(const emu_pkt_t *pkt, emu_counter_t why);
void emu_wire_lost_reply(const emu_pkt_t *pkt, const emu_rsp_t *rsp,
                         emu_counter_t why);

/** Whether the packets of a response are short enough for the port that they are for;
 *  otherwise they are counted as lost. */
int emu_wire_reply_fits(const emu_pkt_t *pkt, const emu_rsp_t *rsp);

/** Count a response that is sent. */
void emu_wire_count_rsp(const emu_pkt_t *pkt, const emu_rsp_t *rsp);

/** A packet, or the answer to it, is put on the cables between two ports, given by
 *  their indices. @return 0: it is lost. */
int emu_wire_enter(const emu_pkt_t *pkt, uint16_t *src_p, uint16_t *dst_p);
int emu_wire_enter_reply(const emu_pkt_t *pkt, uint16_t *src_p,
                         uint16_t *dst_p);

#endif
