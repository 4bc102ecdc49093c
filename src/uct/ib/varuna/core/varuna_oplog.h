/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The entries of the completion log (paper, section "Log-based Fail Recognition"), and
 * whether they are believed. The
 * request log is the requester's ring of saved requests. Pure: no UCT object is touched.
 *
 *   63                                    16 15                    1 0
 *  +----------------------------------------+-----------------------+-+
 *  |  saved request: 48 bits of its address |  15-bit timestamp     |0|
 *  +----------------------------------------+-----------------------+-+
 *
 * More requests may be under way than the log has entries: what overwrites an entry is
 * later on the same lane, and a lane executes in order, so it proves as much.
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
 */
static UCS_F_ALWAYS_INLINE uint64_t
uct_varuna_log_entry(const void *req, uint32_t sn)
{
    return (uct_varuna_log_req_id(req) << UCT_VARUNA_LOG_REQ_SHIFT) |
           ((uint64_t)(sn & UCT_VARUNA_LOG_TS_MASK) << UCT_VARUNA_LOG_TS_SHIFT);
}

/** @return The same in @a entry, 0 if nothing was ever written there. */
uint64_t uct_varuna_log_entry_id(uint64_t entry);

/** @return The 15-bit timestamp in @a entry. */
uint16_t uct_varuna_log_entry_ts(uint64_t entry);

/** @return Nonzero if timestamp @a a is @a b or later, circularly. */
int uct_varuna_log_ts_ge(uint16_t a, uint16_t b);

/** Slot of @a sn in its ring. */
static inline unsigned uct_varuna_log_slot(uint32_t sn)
{
    return sn & (UCT_VARUNA_LOG_SIZE - 1);
}

/**
 * Check whether a responder's completion log proves that the operation @a sn of
 * @a req was executed: the slot contains this very entry, or a timestamp of a later
 * lap (one lane executes in order). A slot of zeros proves nothing. An entry of an earlier use of the ring looks
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

/* --- Whether a log is believed --- */

/* Whether a responder executes the packets of a lane in the order of their posting. Pure.
 *
 * With adaptive routing packets may overtake each other on the way. A queue pair with the
 * order of the InfiniBand specification drops what comes early; others place reads and writes
 * as they come. So the writes of a lane are in order if the network keeps it, or if the
 * responder's queue pair does. If neither does, a log entry does not prove that the data
 * before it is in memory. */

/* What is known of a network, a queue pair, or both */
typedef enum {
    UCT_VARUNA_ORDER_UNKNOWN,
    UCT_VARUNA_ORDER_NONE,     /* Writes may be placed before earlier ones */
    UCT_VARUNA_ORDER_CERTAIN
} uct_varuna_order_t;

/* What the user says of the network, UCX_RC_VARUNA_ORDER */
typedef enum {
    UCT_VARUNA_ORDER_POLICY_AUTO,
    UCT_VARUNA_ORDER_POLICY_CERTAIN,
    UCT_VARUNA_ORDER_POLICY_UNKNOWN,
    UCT_VARUNA_ORDER_POLICY_LAST
} uct_varuna_order_policy_t;

/**
 * What holds on a lane.
 *
 * @param [in] policy     What the user says.
 * @param [in] network    What is known of the network on which we send.
 * @param [in] responder  What is known of the queue pair that receives.
 */
uct_varuna_order_t uct_varuna_order_of_lane(uct_varuna_order_policy_t policy,
                                            uct_varuna_order_t network,
                                            uct_varuna_order_t responder);

/**
 * What the context of a queue pair says (dp_ordering of QUERY_QP and QUERY_DCT).
 *
 * @param [in] placement  0: the order of the specification.
 * @param [in] is_forced  Whether it holds whatever the administrator of the device has set.
 */
uct_varuna_order_t uct_varuna_order_of_qp(unsigned placement, int is_forced);

#endif
