/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Log entries. The posting path composes them, and the plan asks what a completion log
 * proves.
 */
#include "varuna_oplog.h"

#include <assert.h>

/* Half of the circle: what is nearer than this ahead of us is later. */
#define UCT_VARUNA_LOG_TS_WINDOW     (1u << (UCT_VARUNA_LOG_TS_BITS - 1))

/* The slot is a mask of the number, and laps must be distinguished by timestamp */
static_assert((UCT_VARUNA_LOG_SIZE & (UCT_VARUNA_LOG_SIZE - 1)) == 0,
              "log size is no power of two");
static_assert(UCT_VARUNA_LOG_SIZE < UCT_VARUNA_LOG_TS_WINDOW,
              "log does not fit in the timestamp's window");
/* Of two entries under way it must be known which is the later one */
static_assert(2 * UCT_VARUNA_MAX_REQS < UCT_VARUNA_LOG_TS_WINDOW,
              "requests under way do not fit in the timestamp's window");
static_assert((UCT_VARUNA_LOG_REQ_SHIFT + UCT_VARUNA_LOG_ID_BITS) == 64,
              "an entry has not 64 bits");

uint64_t uct_varuna_log_entry_id(uint64_t entry)
{
    return entry >> UCT_VARUNA_LOG_REQ_SHIFT;
}

uint16_t uct_varuna_log_entry_ts(uint64_t entry)
{
    return (entry >> UCT_VARUNA_LOG_TS_SHIFT) & UCT_VARUNA_LOG_TS_MASK;
}

int uct_varuna_log_ts_ge(uint16_t a, uint16_t b)
{
    return ((a - b) & UCT_VARUNA_LOG_TS_MASK) < UCT_VARUNA_LOG_TS_WINDOW;
}

int uct_varuna_complog_executed(const uint64_t *ring, const void *req,
                                uint32_t sn, uint32_t newest)
{
    uint64_t entry = ring[uct_varuna_log_slot(sn)];
    uint16_t ts    = uct_varuna_log_entry_ts(entry);
    uint32_t later = (ts - sn) & UCT_VARUNA_LOG_TS_MASK;

    if (uct_varuna_log_entry_id(entry) == 0) {
        /* Never written: its timestamp 0 is no evidence, although it is later
         * than those of the last half lap before the wrap-around */
        return 0;
    }

    if ((later % UCT_VARUNA_LOG_SIZE) != 0) {
        /* No lap puts this timestamp here, so it is not of our making */
        return 0;
    }

    if (later == 0) {
        return uct_varuna_log_entry_id(entry) == uct_varuna_log_req_id(req);
    }

    /* An earlier lap's is "later" than the newest. So is what an incarnation of
     * long ago left, when the numbers have wrapped around since. */
    return uct_varuna_log_ts_ge(ts, sn & UCT_VARUNA_LOG_TS_MASK) &&
           (later <= (uint32_t)(newest - sn));
}

/* --- Whether a log is believed --- */

uct_varuna_order_t uct_varuna_order_of_lane(uct_varuna_order_policy_t policy,
                                            uct_varuna_order_t network,
                                            uct_varuna_order_t responder)
{
    /* One that keeps the order is enough */
    if ((network == UCT_VARUNA_ORDER_CERTAIN) || (responder == UCT_VARUNA_ORDER_CERTAIN)) {
        return (policy == UCT_VARUNA_ORDER_POLICY_UNKNOWN) ? UCT_VARUNA_ORDER_UNKNOWN :
               UCT_VARUNA_ORDER_CERTAIN;
    }

    /* What the devices say counts more than what the user hopes */
    if ((network == UCT_VARUNA_ORDER_NONE) || (responder == UCT_VARUNA_ORDER_NONE)) {
        return UCT_VARUNA_ORDER_NONE;
    }

    return (policy == UCT_VARUNA_ORDER_POLICY_CERTAIN) ? UCT_VARUNA_ORDER_CERTAIN :
           UCT_VARUNA_ORDER_UNKNOWN;
}

uct_varuna_order_t uct_varuna_order_of_qp(unsigned placement, int is_forced)
{
    if (placement != 0) {
        return UCT_VARUNA_ORDER_NONE;
    }

    return is_forced ? UCT_VARUNA_ORDER_CERTAIN : UCT_VARUNA_ORDER_UNKNOWN;
}
