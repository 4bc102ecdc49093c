/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ground truth: what was executed at each responder, in order. One ring for
 * the whole fabric; entries are written at the moment of execution.
 *
 * Called by: proto/ (writes), ctl/ (reads).
 */

#ifndef EMU_TRACE_H_
#define EMU_TRACE_H_

#include <stdint.h>

/** Kinds of traced operations: as the responder sees them. */
typedef enum emu_trace_op {
    EMU_TRACE_SEND,
    EMU_TRACE_SEND_IMM,
    EMU_TRACE_WRITE,
    EMU_TRACE_WRITE_IMM,
    EMU_TRACE_READ,
    EMU_TRACE_CAS,
    EMU_TRACE_FAA,
    EMU_TRACE_QUIRK,       /* nothing was executed: a quirk acted */
    EMU_TRACE_LAST
} emu_trace_op_t;

extern const char *emu_trace_op_names[EMU_TRACE_LAST];

#define EMU_TRACE_FLAG_DUP     0x01 /* came again; was not executed again */
#define EMU_TRACE_FLAG_PARTIAL 0x02 /* some packets of a message, not the last:
                                       length bytes at addr */
#define EMU_TRACE_FLAG_LAST    0x04 /* the last part of a partly traced one */
#define EMU_TRACE_FLAG_INLINE  0x08 /* payload was in the WQE */
#define EMU_TRACE_FLAG_OOO     0x10 /* placed before a predecessor, or after a
                                       successor */

/** The fate of the answer to the request of an entry. */
typedef enum emu_trace_ack {
    EMU_TRACE_ACK_NONE,    /* there is none: not the end of a message, UD */
    EMU_TRACE_ACK_SENT,    /* it reached the requester's port */
    EMU_TRACE_ACK_LOST,    /* it was lost, or a part of it */
    EMU_TRACE_ACK_DELAYED, /* it, or a part of it, was held back */
    EMU_TRACE_ACK_LAST
} emu_trace_ack_t;

extern const char *emu_trace_ack_names[EMU_TRACE_ACK_LAST];

typedef struct emu_trace_entry {
    uint64_t seq;        /* 1, 2, ...; 0 while being written */
    uint64_t time_ns;    /* since the fabric's creation */
    uint16_t host;       /* responder */
    uint16_t link;
    uint16_t src_host;   /* requester */
    uint8_t  op;         /* emu_trace_op_t */
    uint8_t  flags;
    uint32_t qpn;        /* responder's QP or DCT */
    uint32_t src_qpn;
    uint32_t psn;        /* of the last packet executed */
    uint16_t wqe_index;  /* requester's */
    uint8_t  qp_type;    /* emu_qp_type_t of the requester */
    uint8_t  ack;        /* emu_trace_ack_t; filled in later, atomic */
    uint64_t addr;       /* responder's memory; 0 for sends */
    uint32_t rkey;
    uint32_t length;
    uint64_t data;       /* first 8 bytes of the payload, zero padded; atomics:
                            the value before */
    uint64_t arg[2];     /* CAS: compare, swap; FAA: add; _IMM: immediate;
                            QUIRK: emu_quirk_t */
    uint64_t id;         /* of the request, unique: emu_qp_t::ops */
} emu_trace_entry_t;

/** The ring: entry number seq is at (seq - 1) % num_entries. */
typedef struct emu_trace {
    uint64_t          num_entries;
    uint64_t          next;        /* entries ever written (atomic) */
    emu_trace_entry_t entries[];
} emu_trace_t;

/** Append an entry; seq is filled in. @return seq, 0 without a trace. */
uint64_t emu_trace_add(emu_trace_t *trace, emu_trace_entry_t *entry);

/** Say what became of the answer, if the entry is still there. */
void emu_trace_set_ack(emu_trace_t *trace, uint64_t seq, emu_trace_ack_t ack);

/**
 * Read entries.
 *
 * @param [in,out] pos_p  Entries consumed so far (start with 0).
 * @param [out]    lost_p Entries overwritten before they could be read, added.
 * @return Number of entries filled in, 0 if there is nothing new.
 */
unsigned emu_trace_read(const emu_trace_t *trace, uint64_t *pos_p,
                        emu_trace_entry_t *entries, unsigned max,
                        uint64_t *lost_p);

/** Entries ever written. */
uint64_t emu_trace_count(const emu_trace_t *trace);

#endif
