/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What travels: packets with requests, and responses.
 *
 * Called by: proto/ and emu_wire.c.
 */

#ifndef EMU_PKT_H_
#define EMU_PKT_H_

#include "../base/emu_def.h"
#include "../core/emu_route.h"
#include "../wqe/emu_wqe.h"

#include <sys/uio.h>

/** Bytes that travel as one packet structure, if nothing on the path needs to
 *  see each packet. Small enough for a link change to hit a big message. */
#define EMU_TRAIN_MAX 65536u

/** In a fabric that has time, so many packets of a message are acknowledged at once. */
#define EMU_PKT_ACK_EVERY 8

enum {
    EMU_PKT_FIRST     = 0x01, /* begins a message */
    EMU_PKT_LAST      = 0x02, /* ends it */
    EMU_PKT_IMM       = 0x04,
    EMU_PKT_SOLICITED = 0x08,
    EMU_PKT_RETRY     = 0x10, /* was sent before */
    EMU_PKT_INLINE    = 0x20,
    EMU_PKT_OOO       = 0x40, /* may be placed before its predecessors */
    EMU_PKT_TIMED     = 0x80  /* takes its time: acknowledgements within a message */
};

/** A request packet, or a run of consecutive ones of a message. */
typedef struct emu_pkt {
    uint8_t         kind;      /* emu_op_kind_t */
    uint8_t         flags;     /* EMU_PKT_x */
    uint8_t         qp_type;   /* of the requester */
    uint8_t         sl;
    uint16_t        wqe_index;
    uint16_t        slid;
    uint16_t        src_port;  /* index */
    uint16_t        dst_port;  /* index, or EMU_ROUTE_NONE */
    uint16_t        pkey;
    uint8_t         has_grh;   /* grh is filled in */
    uint8_t         is_strong; /* is placed after all before it */
    emu_grh_t       grh;
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
    uint8_t  has_gap;          /* reads: later packets came, which shows
                                  that some are missing */
    uint8_t  is_partial;       /* acknowledges a message that goes on */
    uint32_t psn;
    uint32_t num_psn;          /* reads */
    uint32_t mtu;              /* reads: of the responder's packets; others: 0 */
    uint64_t value;            /* atomics: what was in memory */
    uint32_t proc;             /* reads: where the data are ... */
    uint64_t addr;
    uint32_t length;
    emu_mr_t *mr;              /* ... which this keeps registered */
    void     *copy;            /* or: our own copy of the data */
    uint64_t trace_seq;        /* its entry in the trace, or 0 */
} emu_rsp_t;

/** Give back what a response holds. */
void emu_rsp_release(emu_rsp_t *rsp);

/** The part [offset, offset + length) of a gather list as an iovec; room for
 *  EMU_MAX_SGE. @return number of entries. */
unsigned emu_iov_slice(const emu_sge_t *sge, unsigned num_sge, uint32_t offset,
                       uint32_t length, struct iovec *iov);

/** Where a packet comes from and goes to, and with which of the port's P_Keys. With a path
 *  that leads nowhere it goes to EMU_ROUTE_NONE. */
void emu_pkt_set_path(emu_pkt_t *pkt, const emu_port_t *src, unsigned pkey_index,
                      const emu_path_t *path);

/** Whether it has an IPv4 header: RoCE v2 between such addresses. */
int emu_pkt_is_ipv4(const emu_pkt_t *pkt);

/** What a completion has for a service level. On RoCE: of what kind the network
 *  header is. */
uint8_t emu_pkt_cqe_sl(const emu_pkt_t *pkt);

/** Gather payload of a packet into a buffer of ours. */
void emu_pkt_copy_out(const emu_pkt_t *pkt, uint32_t skip, void *buf,
                      uint32_t length);

/** The same of a packet whose payload is in another process. @return 0 or a negative
 *  errno: it is gone, or its memory is. */
int emu_pkt_gather(const emu_pkt_t *pkt, uint32_t proc, void *buf,
                   uint32_t length);

/** Make the packet with this index of a run of packets a packet of its own. */
void emu_pkt_part(const emu_pkt_t *train, uint32_t index, emu_pkt_t *pkt_p);

/** Whether the responder is asked to acknowledge it though its message goes on. */
static inline int emu_pkt_wants_ack(const emu_pkt_t *pkt)
{
    return (pkt->flags & EMU_PKT_TIMED) &&
           (((pkt->psn + pkt->num_psn) % EMU_PKT_ACK_EVERY) == 0);
}

static inline int32_t emu_psn_diff(uint32_t a, uint32_t b)
{
    return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t emu_psn_add(uint32_t psn, uint32_t n)
{
    return (psn + n) & EMU_PSN_MASK;
}

#endif
