/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long the peer's proxy is asked for the result of an atomic.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/amo/varuna_amo_priv.h>
}

class test_varuna_amo_retry : public test_varuna_recovery {
protected:
    void ask()
    {
        ep->hot.num_amos = 1;
        uct_varuna_amo_retry_start(ep);
        uct_varuna_amo_retry_next(ep);
    }

    /* Time passes; a question is repeated after its interval */
    int is_due(double seconds)
    {
        host->requester()->scan.clock += ucs_time_from_sec(seconds);
        ep->amo.retry.due              = ucs_get_time();
        return uct_varuna_amo_retry_is_due(ep);
    }
};

UCS_TEST_F(test_varuna_amo_retry, gives_up) {
    open();
    ask();
    EXPECT_TRUE(is_due(GIVE_UP / 2));
    EXPECT_FALSE(is_due(GIVE_UP));
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}

/* Nothing was asked during the recovery. The peer is asked over the new path before it is
 * given up. */
UCS_TEST_F(test_varuna_amo_retry, is_asked_after_a_recovery) {
    open();
    ask();
    fail_link();
    host->requester()->scan.clock += ucs_time_from_sec(GIVE_UP * 0.9);
    answer_fence(1);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_TRUE(is_due(GIVE_UP / 2));
    EXPECT_TRUE(is_due(GIVE_UP / 2));
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_FALSE(is_due(GIVE_UP));
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}
