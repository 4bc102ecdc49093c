/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transport protocol: packets, responses, and the code that handles them.
 *
 *   doorbell -> requester --packet--> wire --> responder
 *                  ^                             |
 *               completer <--response-- wire <---+
 *
 * All of it runs in the requester's process: in the call of the doorbell, or in its
 * service thread for delayed and repeated packets. In a fabric that has time the
 * keeper does most of it, see emu_keeper.c.
 *
 * Private to proto/; emu_engine.h is what others call.
 */

#ifndef EMU_PROTO_H_
#define EMU_PROTO_H_

#include "../base/emu_def.h"
#include "../core/emu_qp.h"
#include "../wqe/emu_cqe.h"
#include "../wire/emu_pkt.h"
#include "../wire/emu_wire.h"
#include "../wqe/emu_wqe.h"

/* requester */

/** Run a send queue. req_lock is held, the state is RTS. */
void emu_req_run(emu_qp_t *qp);

/** Where the wire ends. */
extern const emu_wire_ends_t emu_req_ends;

/** In a fabric that has time: send packets, which arrive later, and wait if the port
 *  has enough of them. req_lock is held. */
void emu_req_depart(emu_qp_t *qp, const emu_pkt_t *train);

/** Make the packet of a datagram. req_lock is held. */
void emu_ud_build(emu_qp_t *qp, const emu_op_t *op, emu_pkt_t *pkt);

/* send queues */

/** What is kept of the WQE at an index. */
static inline emu_sqe_t *emu_sq_entry(emu_qp_t *qp, uint16_t index)
{
    return &qp->sqes[index & (qp->sq_bb_cnt - 1)];
}

/** Parse a WQE and check and translate its local memory.
 *  @return 0 or an MLX5_CQE_SYNDROME_x. */
int emu_sq_load(emu_qp_t *qp, uint16_t index, emu_op_t *op_p);

/** The same of one that was begun. A program must leave it as it was: its PSNs, and room
 *  for its response, depend on it. */
int emu_sq_reload(emu_qp_t *qp, uint16_t index, emu_op_t *op_p);

/** Basic blocks that were posted, from an index on. */
static inline uint16_t emu_sq_posted(const emu_qp_t *qp, uint16_t index)
{
    return qp->sq_pi - index;
}

/** Go back to a PSN. req_lock is held. */
void emu_sq_rewind(emu_qp_t *qp, uint32_t psn);

/* completer */

/** A response came. req_lock is held. Does not release the response. */
void emu_comp_receive(emu_qp_t *qp, const emu_rsp_t *rsp);

/** Complete the oldest WQE, successfully. req_lock is held. */
void emu_comp_one(emu_qp_t *qp);

/** Complete NOPs which are the oldest WQEs now. req_lock is held. */
void emu_comp_nops(emu_qp_t *qp);

/** Complete the oldest WQE with an error and move the QP to ERR (UD: SQE).
 *  req_lock is held. */
void emu_comp_fail(emu_qp_t *qp, uint8_t syndrome);

/* responder */

/** A request arrived. @return whether there is a response. */
int emu_resp_receive(emu_pkt_t *pkt, emu_rsp_t *rsp_p);

/** A datagram arrived, which is not answered. resp_lock is held. */
void emu_ud_receive(emu_qp_t *qp, const emu_pkt_t *pkt, emu_rsp_t *rsp_p);

/* errors */

/** Move a whole QP to ERR and flush it. Both locks are held. */
void emu_qp_fail_locked(emu_qp_t *qp);

/** The requester half only. req_lock is held. */
void emu_qp_fail_requester(emu_qp_t *qp);

/** The responder half only, and the requester half as soon as no locks are
 *  held (emu_run_deferred). resp_lock is held. @a why: the NAK sent. */
void emu_qp_fail_responder(emu_qp_t *qp, emu_rsp_type_t why);

/** Flush what is posted to the send queue of a QP in ERR. req_lock is held. */
void emu_req_flush(emu_qp_t *qp);

/**
 * Write a completion of a QP that works. One of its locks is held.
 *
 * @return 0, or -1: the CQ is full or dead. All QPs of the CQ will be in ERR
 *         when emu_run_deferred returns; until then the caller stops the half
 *         whose lock it holds.
 */
int emu_qp_complete(emu_qp_t *qp, emu_cq_t *cq, const emu_cqe_t *cqe);

/** A completion was lost: nothing is sent any more. req_lock is held. */
void emu_req_stop(emu_qp_t *qp);

/** ... or: no request is answered any more. resp_lock is held. */
void emu_resp_stop(emu_qp_t *qp);

/** Carry out what could not be done for the order of locks. No lock is held. */
void emu_run_deferred(void);

/* receive queues */

/** A receive entry that was taken. */
typedef struct emu_rq_entry {
    const void *segs;          /* mlx5 data segments */
    uint32_t   max_sge;
    uint32_t   pd;
    uint16_t   index;
} emu_rq_entry_t;

/** Take the next entry. resp_lock is held. @return whether there was one: nobody may
 *  ask first and take later, since queue pairs share SRQs. */
int emu_rq_take(emu_qp_t *qp, emu_rq_entry_t *entry_p);

/** Give back the entry that was taken last. resp_lock is held. */
void emu_rq_give_back(emu_qp_t *qp, const emu_rq_entry_t *entry);

/** An entry that was taken before, by index. */
void emu_rq_get(emu_qp_t *qp, uint16_t index, emu_rq_entry_t *entry_p);

/**
 * Put payload into a receive entry.
 *
 * @param [in] offset  Where in the entry's memory.
 * @return 0, -EMSGSIZE (too long), -EACCES (bad key), -ESRCH, -EFAULT.
 */
int emu_rq_scatter_data(emu_qp_t *qp, const emu_rq_entry_t *entry,
                        uint32_t offset, const void *data, uint32_t length);
int emu_rq_scatter(emu_qp_t *qp, const emu_rq_entry_t *entry, uint32_t offset,
                   const emu_pkt_t *pkt);

#endif
