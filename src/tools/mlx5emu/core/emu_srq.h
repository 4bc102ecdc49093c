/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Shared receive queues. Entries are linked by next_wqe_index; the producer's
 * counter is in the doorbell record (dbrec[0], big endian, 16 bits).
 *
 * Called by: verbs/ and mlx5dv/ (create), proto/ (takes entries).
 */

#ifndef EMU_SRQ_H_
#define EMU_SRQ_H_

#include "../base/emu_def.h"
#include "../base/emu_lock.h"

#define EMU_SRQ_MAX_RETURNED 64

struct emu_srq {
    uint32_t          used;
    uint32_t          srqn;
    uint32_t          proc;
    uint32_t          ctx;
    uint32_t          pd;
    uint32_t          wqe_cnt;    /* entries, a power of two */
    uint32_t          stride;     /* bytes per entry */
    uint32_t          max_sge;
    uint32_t          user_mem;   /* buf and dbrec are the program's */
    uint32_t          cyclic;     /* entries in the order of their indices,
                                     which run through 16 bits in completions */
    uint8_t           *buf;
    volatile uint32_t *dbrec;
    uint64_t          cookie;
    uint32_t          refs;
    uint32_t          gen;
    uint32_t          lock_ready; /* the lock outlives the slot's users */

    emu_lock_t        lock;       /* guards what follows */
    uint16_t          next;       /* entry that the next message takes */
    uint16_t          taken;      /* entries ever taken; posted: dbrec */
    uint32_t          limit;      /* 0: no limit event */
    uint32_t          num_returned;
    uint16_t          returned[EMU_SRQ_MAX_RETURNED]; /* given back unused:
                                                         taken first */
};

/**
 * Create a shared receive queue. Entries are linked 0 -> 1 -> ... -> 0 at
 * creation. Stride is 16 bytes for the link and 16 per gather entry, rounded
 * up to a power of two, at least 32.
 */
int emu_srq_create(emu_pd_t *pd, unsigned max_wr, unsigned max_sge,
                   uint64_t cookie, emu_srq_t **srq_p);

/** A queue which the program brought along (DEVX), in memory that all processes
 *  see. Strides as in emu_srq_create. */
typedef struct emu_srq_user_attr {
    uint8_t  *buf;
    uint32_t *dbrec;
    unsigned wqe_cnt;             /* power of two */
    unsigned stride;              /* power of two, at least 32 */
    int      cyclic;
} emu_srq_user_attr_t;

/** Create a shared receive queue in the program's memory. */
int emu_srq_create_user(emu_pd_t *pd, const emu_srq_user_attr_t *attr,
                        emu_srq_t **srq_p);

/** @return -EBUSY while a QP uses it. */
int emu_srq_destroy(emu_srq_t *srq);

/** Set the limit of IBV_EVENT_SRQ_LIMIT_REACHED (one shot). */
void emu_srq_set_limit(emu_srq_t *srq, unsigned limit);

emu_srq_t *emu_srq_find(uint32_t srqn);

/** Give an entry back that was taken, but of which no completion came. */
void emu_srq_return(emu_srq_t *srq, uint16_t index);

/**
 * Take the next receive entry.
 *
 * @param [out] index_p  Its index; written before the lock is released.
 * @return Its gather entries (max_sge of them), or NULL if none is posted.
 */
const void *emu_srq_take(emu_srq_t *srq, uint16_t *index_p);

/** The gather entries of an entry that was taken. */
const void *emu_srq_entry(const emu_srq_t *srq, uint16_t index);

#endif
