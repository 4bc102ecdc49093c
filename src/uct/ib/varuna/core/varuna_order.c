/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * See varuna_order.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_order.h"

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
