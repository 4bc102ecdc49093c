/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The entries and rings of the request log and of the completion log (paper,
 * section "Log-based Fail Recognition"). Pure: no UCT object is touched.
 *
 *   63                                    16 15                    1 0
 *  +----------------------------------------+-----------------------+-+
 *  |  saved request: 48 bits of its address |  15-bit timestamp     |F|
 *  +----------------------------------------+-----------------------+-+
 *
 * Bits of the address above these do not count: they may be a tag (top-byte ignore on
 * ARM, LAM on x86, a sanitizer's), or part of an address of five-level paging. They are
 * not needed, since no two requests of a lane have one timestamp in one slot at a time.
 */
#ifndef UCT_VARUNA_OPLOG_H_
#define UCT_VARUNA_OPLOG_H_

#include "varuna_def.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/compiler_def.h>

#define UCT_VARUNA_LOG_TS_BITS       15
#define UCT_VARUNA_LOG_TS_MASK       ((1u << UCT_VARUNA_LOG_TS_BITS) - 1)
#define UCT_VARUNA_LOG_TS_SHIFT      1
#define UCT_VARUNA_LOG_REQ_SHIFT     (UCT_VARUNA_LOG_TS_SHIFT + \
                                      UCT_VARUNA_LOG_TS_BITS)
#define UCT_VARUNA_LOG_FINISHED      1ul
#define UCT_VARUNA_LOG_ID_BITS       48

/** @return What entries have of a saved request's address. */
static inline uint64_t uct_varuna_log_req_id(const void *req)
{
    return (uintptr_t)req & UCS_MASK(UCT_VARUNA_LOG_ID_BITS);
}

/**
 * Compose a log entry.
 *
 * @param [in] req       Address of the saved request.
 * @param [in] sn        Log sequence number; its low 15 bits are the timestamp.
 * @param [in] finished  Nonzero in a request log once the request finished.
 */
static UCS_F_ALWAYS_INLINE uint64_t
uct_varuna_log_entry(const void *req, uint32_t sn, int finished)
{
    return (uct_varuna_log_req_id(req) << UCT_VARUNA_LOG_REQ_SHIFT) |
           ((uint64_t)(sn & UCT_VARUNA_LOG_TS_MASK) << UCT_VARUNA_LOG_TS_SHIFT) |
           (finished ? UCT_VARUNA_LOG_FINISHED : 0);
}

/** @return The same in @a entry, 0 if nothing was ever written there. */
uint64_t uct_varuna_log_entry_id(uint64_t entry);

/** @return The 15-bit timestamp in @a entry. */
uint16_t uct_varuna_log_entry_ts(uint64_t entry);

/** @return Nonzero if timestamp @a a is @a b or later, circularly. */
int uct_varuna_log_ts_ge(uint16_t a, uint16_t b);

/**
 * Requester's ring. The indices are free-running log sequence numbers, the slot
 * is (sn % UCT_VARUNA_LOG_SIZE). [tail, head) are unfinished or out of order
 * finished; a slot is used again only when its request has left the ring.
 *
 * The UCT_VARUNA_LOG_SIZE entries of the ring are passed separately, so that their
 * owner can keep them away from what every post touches.
 */
typedef struct uct_varuna_oplog {
    uint32_t                   head;  /* Next sn to hand out */
    uint32_t                   tail;  /* Oldest sn which is still in use */
} uct_varuna_oplog_t;

/** Empty the log; the first sn handed out is 1, as an all-zero slot of a
 *  fresh completion log has timestamp 0 and must match nothing. */
void uct_varuna_oplog_reset(uct_varuna_oplog_t *log, uint64_t *ring);

/** Slot of @a sn in its ring. */
static inline unsigned uct_varuna_log_slot(uint32_t sn)
{
    return sn & (UCT_VARUNA_LOG_SIZE - 1);
}

/** @return Nonzero if no entry can be added. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_oplog_is_full(const uct_varuna_oplog_t *log)
{
    return (uint32_t)(log->head - log->tail) == UCT_VARUNA_LOG_SIZE;
}

/** Append an entry for @a req; the log must not be full. @return its sn. */
static UCS_F_ALWAYS_INLINE uint32_t
uct_varuna_oplog_push(uct_varuna_oplog_t *log, uint64_t *ring, const void *req)
{
    uint32_t sn = log->head;

    ucs_assertv(!uct_varuna_oplog_is_full(log), "head=%u tail=%u", log->head,
                log->tail);
    ring[uct_varuna_log_slot(sn)] = uct_varuna_log_entry(req, sn, 0);
    log->head                     = sn + 1;
    return sn;
}

/** Mark @a sn finished, and advance the tail over finished entries. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_oplog_finish(uct_varuna_oplog_t *log, uint64_t *ring, uint32_t sn)
{
    uint64_t *entry = &ring[uct_varuna_log_slot(sn)];

    ucs_assertv((uint32_t)(sn - log->tail) < (uint32_t)(log->head - log->tail),
                "sn=%u head=%u tail=%u", sn, log->head, log->tail);
    ucs_assertv(!(*entry & UCT_VARUNA_LOG_FINISHED), "sn=%u", sn);

    *entry |= UCT_VARUNA_LOG_FINISHED;
    while ((log->tail != log->head) &&
           (ring[uct_varuna_log_slot(log->tail)] & UCT_VARUNA_LOG_FINISHED)) {
        ++log->tail;
    }
}

/**
 * Check whether a responder's completion log proves that the operation @a sn of
 * @a req was executed: the slot contains this very entry, or a timestamp of a later
 * lap (a slot is overwritten only after its request finished, and one lane executes in
 * order). A slot of zeros proves nothing. An entry of an earlier use of the ring looks
 * like a present one if it is exactly 2^15 numbers older, so a ring must be cleared
 * before another incarnation uses it.
 *
 * @param [in] ring   UCT_VARUNA_LOG_SIZE entries as read from the responder.
 * @param [in] req    Saved request.
 * @param [in] sn     Its log sequence number.
 * @param [in] newest The newest number which was posted on the lane.
 */
int uct_varuna_complog_executed(const uint64_t *ring, const void *req,
                                uint32_t sn, uint32_t newest);

/** @return The ring of an incarnation. */
static inline unsigned uct_varuna_log_ring(uint32_t epoch)
{
    return epoch % UCT_VARUNA_LOG_COUNT;
}

#endif
