/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether a responder executes the packets of a lane in the order of their posting. Pure.
 *
 * With adaptive routing packets may overtake each other on the way. A queue pair with the
 * order of the InfiniBand specification drops what comes early; others place reads and writes
 * as they come. So the writes of a lane are in order if the network keeps it, or if the
 * responder's queue pair does. If neither does, a log entry does not prove that the data
 * before it is in memory.
 */
#ifndef UCT_VARUNA_ORDER_H_
#define UCT_VARUNA_ORDER_H_

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
