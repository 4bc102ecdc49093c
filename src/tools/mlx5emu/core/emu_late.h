/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirk late-write: what a responder has accepted and not yet placed in memory.
 *
 *     requester        responder's NIC                    its memory
 *     packet  -------> PSN advances, acknowledgement
 *     completion <---- payload waits here ......late..... write
 *
 * The payload is in the fabric's memory, like that in a NIC's buffers and on its
 * bus: it outlives the requester, and the state of its queue pair but RESET. It
 * is placed by the service thread of the memory's owner or of the requester,
 * whichever comes first: a NIC does not care which of them is stopped.
 *
 * Called by: proto/ (add, flush), emu_qp.c and emu_mr.c (flush), emu_attach.c.
 */

#ifndef EMU_LATE_H_
#define EMU_LATE_H_

#include "emu_fabric.h"

#include <sys/uio.h>

#define EMU_LATE_BYTES 4096 /* of payload, in one entry */

/** A piece of a write. */
struct emu_late {
    uint32_t used;         /* all: guarded by late_lock */
    uint32_t proc;         /* whose memory it is, ... */
    uint32_t proc_gen;
    uint32_t adder;        /* ... and the process that has accepted it */
    uint32_t port;         /* responder's */
    uint32_t nic_gen;
    uint32_t qpn;          /* RC queue pair or DC target that accepted it */
    uint32_t length;
    uint64_t addr;
    uint64_t device;       /* emu_mr_t::device */
    uint64_t id;           /* number of the request */
    uint64_t order;        /* among all */
    uint64_t accepted_ns;
    uint64_t due_ns;       /* never before that of its queue pair's previous one */
};

/** Whether anything waits: all that a run without the quirk pays for. */
static inline int emu_late_any(void)
{
    return emu_unlikely(__atomic_load_n(&emu_fabric->num_late,
                                        __ATOMIC_ACQUIRE) != 0);
}

/**
 * Accept a piece of a write. resp_lock of its queue pair is held.
 *
 * @param [in] what  proc, port, nic_gen, qpn, length, addr and id are filled in.
 * @param [in] src   The payload, in memory of this process.
 *
 * @return 0, -ENOSPC if there is no room, or the error of reading the payload.
 */
int emu_late_add(const emu_late_t *what, const struct iovec *src,
                 unsigned num_src);

/** Place all that a queue pair has accepted; it is in memory on return. */
void emu_late_flush_qp(uint32_t qpn);

/** The same for memory of the host alone: what is for a device goes another way. */
void emu_late_flush_qp_host(uint32_t qpn);

/** A queue pair reads memory of @a device, or will write a completion (0: to the host): first
 *  place the data that must not be reordered with that, which is for the same device, and
 *  came to the port, or to this queue pair. */
void emu_late_flush_before(uint32_t port, uint32_t qpn, uint64_t device);

/** Place all that waits for some memory of a process. */
void emu_late_flush_memory(uint32_t proc, uint64_t addr, uint64_t length);

/** Service thread: place what is due, and come back for the rest. */
void emu_late_serve(void);

#endif
