/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The transport protocol: packets, responses, and who handles them.
 *
 *   doorbell -> requester --packet--> wire --> responder
 *                  ^                             |
 *               completer <--response-- wire <---+
 *
 * All of it runs in the requester's process, in the call of the doorbell, or
 * in its service thread for what was delayed or must be repeated.
 *
 * Called by: core/ (doorbells, modify), wire/ (delivery). Private to the
 * engine.
 */

#ifndef EMU_PROTO_H_
#define EMU_PROTO_H_

#include "../base/emu_def.h"
#include "../core/emu_qp.h"
#include "../wqe/emu_cqe.h"
#include "../wqe/emu_wqe.h"

#include <sys/uio.h>

/** Bytes that travel as one packet structure, if nothing on the path needs to
 *  see each packet. Small enough for a link change to hit a big message. */
#define EMU_TRAIN_MAX 65536u

enum {
    EMU_PKT_FIRST     = 0x01, /* begins a message */
    EMU_PKT_LAST      = 0x02, /* ends it */
    EMU_PKT_IMM       = 0x04,
    EMU_PKT_SOLICITED = 0x08,
    EMU_PKT_RETRY     = 0x10, /* was sent before */
    EMU_PKT_INLINE    = 0x20
};

/** A request packet, or a run of consecutive ones of a message. */
typedef struct emu_pkt {
    uint8_t         kind;      /* emu_op_kind_t */
    uint8_t         flags;     /* EMU_PKT_x */
    uint8_t         qp_type;   /* of the requester */
    uint8_t         sl;
    uint16_t        wqe_index;
    uint16_t        slid;
    uint16_t        dlid;
    uint16_t        src_port;  /* index */
    uint32_t        mtu;
    uint32_t        psn;
    uint32_t        num_psn;   /* PSNs it takes; reads: those of the response */
    uint32_t        num_pkts;  /* packets on the wire */
    uint32_t        pkt_no;    /* first packet within its message, from 1 */
    uint32_t        msg_pkts;  /* packets of the message */
    uint32_t        msg_total; /* bytes of the message */
    uint32_t        src_qpn;
    uint32_t        dst_qpn;
    uint32_t        qkey;      /* UD */
    uint32_t        conn_psn;  /* DC: first PSN of the connection */
    uint64_t        serial;    /* DC: the connection */
    uint64_t        dc_key;
    uint64_t        raddr;     /* of this part of the message */
    uint32_t        rkey;
    uint32_t        left;      /* bytes from here to the message's end */
    uint64_t        swap_add;
    uint64_t        compare;
    uint64_t        swap_mask;
    uint64_t        compare_mask;
    uint32_t        atomic_size;
    uint32_t        imm;
    uint32_t        prev_size; /* of the request posted before: bytes, */
    uint8_t         prev_op;   /*     and kind, emu_fault_op_t */
    uint64_t        op;        /* number of the request, see emu_qp_t::ops */
    uint32_t        offset;    /* payload: from here in the gather list, */
    uint32_t        length;    /*     so much of it */
    uint32_t        num_sge;
    const emu_sge_t *sge;      /* in the sender's memory */
} emu_pkt_t;

/** What a responder answers. */
typedef enum emu_rsp_type {
    EMU_RSP_ACK,
    EMU_RSP_READ,
    EMU_RSP_ATOMIC,
    EMU_RSP_NAK_SEQ,
    EMU_RSP_NAK_RNR,
    EMU_RSP_NAK_INV,           /* invalid request */
    EMU_RSP_NAK_ACCESS,        /* remote access error */
    EMU_RSP_NAK_OP,            /* remote operational error */
    EMU_RSP_LAST
} emu_rsp_type_t;

/** A response packet, or a run of them. Given back by emu_rsp_release. */
typedef struct emu_rsp {
    uint8_t  type;             /* emu_rsp_type_t */
    uint8_t  rnr_timer;
    uint8_t  executed;         /* a whole operation was executed just now */
    uint8_t  has_gap;          /* reads: packets behind these came, and show
                                  that some are missing */
    uint32_t psn;
    uint32_t num_psn;          /* reads */
    uint64_t value;            /* atomics: what was in memory */
    uint32_t proc;             /* reads: where the data are ... */
    uint64_t addr;
    uint32_t length;
    emu_mr_t *mr;              /* ... which this keeps registered */
    void     *copy;            /* or: our own copy of the data */
    uint64_t trace_seq;        /* entry of the trace that tells of it, or 0 */
} emu_rsp_t;

/* requester */

/** Run a send queue. req_lock is held, the state is RTS. */
void emu_req_run(emu_qp_t *qp);

/** Parse a WQE and check and translate its local memory.
 *  @return 0 or an MLX5_CQE_SYNDROME_x. */
int emu_req_load(emu_qp_t *qp, uint16_t index, emu_op_t *op_p);

/** Go back to a PSN. req_lock is held. */
void emu_req_rewind(emu_qp_t *qp, uint32_t psn);

/** Send one datagram. req_lock is held. */
void emu_ud_send(emu_qp_t *qp, const emu_op_t *op);

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

void emu_rsp_release(emu_rsp_t *rsp);

/* responder */

/** A request arrived. @return whether there is a response. */
int emu_resp_receive(emu_pkt_t *pkt, emu_rsp_t *rsp_p);

/** A datagram arrived. resp_lock is held. */
void emu_ud_receive(emu_qp_t *qp, const emu_pkt_t *pkt);

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

/** A message ends in the middle: its receive entry is given back. resp_lock is
 *  held. */
void emu_rq_abandon(emu_qp_t *ctx);

/** A receive entry that was taken. */
typedef struct emu_rq_entry {
    const void *segs;          /* mlx5 data segments */
    uint32_t   max_sge;
    uint32_t   pd;
    uint16_t   index;
} emu_rq_entry_t;

/** Whether there is an entry. resp_lock is held. */
int emu_rq_has_entry(emu_qp_t *qp);
int emu_rq_take(emu_qp_t *qp, emu_rq_entry_t *entry_p);
/** An entry that was taken before, by index. */
void emu_rq_get(emu_qp_t *qp, uint16_t index, emu_rq_entry_t *entry_p);

/**
 * Put payload into a receive entry.
 *
 * @param [in] offset  Where in the entry's memory.
 * @return 0, -EMSGSIZE (too long), -EACCES (bad key), -ESRCH, -EFAULT.
 */
int emu_rq_scatter(emu_qp_t *qp, const emu_rq_entry_t *entry, uint32_t offset,
                   const emu_pkt_t *pkt);

/* memory */

/** The part [offset, offset + length) of a gather list as an iovec; room for
 *  EMU_MAX_SGE. @return number of entries. */
unsigned emu_iov_slice(const emu_sge_t *sge, unsigned num_sge, uint32_t offset,
                       uint32_t length, struct iovec *iov);

/** Copy from our memory to a process's. @return 0, -ESRCH or -EFAULT. */
int emu_mem_put(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length);

/** Copy from a process's memory to ours. */
int emu_mem_get(uint32_t proc, const struct iovec *dst, unsigned num_dst,
                const struct iovec *src, unsigned num_src, size_t length);

/** Gather payload of a packet into a buffer of ours. */
void emu_pkt_copy_out(const emu_pkt_t *pkt, uint32_t skip, void *buf,
                      uint32_t length);

static inline int32_t emu_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t emu_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & EMU_PSN_MASK;
}

#endif
