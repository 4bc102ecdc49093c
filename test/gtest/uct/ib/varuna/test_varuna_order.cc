/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What is known of the order on a lane, from the user, the network and the queue pair.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_oplog.h>
}

static const uct_varuna_order_t unknown = UCT_VARUNA_ORDER_UNKNOWN;
static const uct_varuna_order_t none    = UCT_VARUNA_ORDER_NONE;
static const uct_varuna_order_t certain = UCT_VARUNA_ORDER_CERTAIN;

class test_varuna_order : public ucs::test {
};

UCS_TEST_F(test_varuna_order, what_nics_say) {
    const uct_varuna_order_policy_t policy = UCT_VARUNA_ORDER_POLICY_AUTO;

    EXPECT_EQ(unknown, uct_varuna_order_of_lane(policy, unknown, unknown));
    EXPECT_EQ(none, uct_varuna_order_of_lane(policy, none, unknown));
    EXPECT_EQ(none, uct_varuna_order_of_lane(policy, unknown, none));
    for (uct_varuna_order_t other : {unknown, none, certain}) {
        EXPECT_EQ(certain, uct_varuna_order_of_lane(policy, certain, other));
        EXPECT_EQ(certain, uct_varuna_order_of_lane(policy, other, certain));
    }
}

/* The user knows the network, but not better than the NICs */
UCS_TEST_F(test_varuna_order, what_the_user_says) {
    const uct_varuna_order_policy_t policy = UCT_VARUNA_ORDER_POLICY_CERTAIN;

    EXPECT_EQ(certain, uct_varuna_order_of_lane(policy, unknown, unknown));
    EXPECT_EQ(none, uct_varuna_order_of_lane(policy, none, unknown));
    EXPECT_EQ(none, uct_varuna_order_of_lane(policy, unknown, none));
    EXPECT_EQ(certain, uct_varuna_order_of_lane(policy, none, certain));
}

UCS_TEST_F(test_varuna_order, what_the_user_distrusts) {
    const uct_varuna_order_policy_t policy = UCT_VARUNA_ORDER_POLICY_UNKNOWN;

    EXPECT_EQ(unknown, uct_varuna_order_of_lane(policy, certain, certain));
    EXPECT_EQ(unknown, uct_varuna_order_of_lane(policy, unknown, unknown));
    EXPECT_EQ(none, uct_varuna_order_of_lane(policy, none, unknown));
}

UCS_TEST_F(test_varuna_order, context_of_a_queue_pair) {
    EXPECT_EQ(unknown, uct_varuna_order_of_qp(0, 0));
    EXPECT_EQ(certain, uct_varuna_order_of_qp(0, 1));
    EXPECT_EQ(none, uct_varuna_order_of_qp(1, 0));
    EXPECT_EQ(none, uct_varuna_order_of_qp(1, 1));
}
