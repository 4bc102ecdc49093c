/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How long the peer is asked for the result of an atomic.
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

/* A flush that is to wait for the requests on the lane finds no memory: it is tried again */
UCS_TEST_F(test_varuna_amo_retry, flush_without_memory) {
    uct_varuna_requester_t *requester = host->requester();
    static uct_completion_t comp; /* Of a request that is unfinished at the end */
    uct_varuna_req_t *flush;
    uint32_t num_reqs;

    make_slabs_scarce();
    open();
    ASSERT_UCS_OK(put(1));
    scoped_log_handler log(hide_errors_logger);
    is_short() = true;
    while (put(2) == UCS_OK);
    ASSERT_TRUE(ep->hot.reqs.head == NULL);

    flush            = (uct_varuna_req_t*)ucs_mpool_get(&requester->pools.reqs);
    flush->user_comp = &comp;
    comp.count       = 1;
    comp.func        = [](uct_completion_t*) {};
    flush->log_sn    = ep->amo.sn;
    ucs_queue_push(&ep->amo.flushes, &flush->queue);
    num_reqs = ep->hot.num_reqs;
    uct_varuna_amo_finish_flushes(ep, UCS_OK);
    EXPECT_FALSE(ucs_queue_is_empty(&ep->amo.flushes));
    EXPECT_TRUE(uct_varuna_amo_retry_flushes(ep)) << "it is not tried again";
    EXPECT_EQ(num_reqs, ep->hot.num_reqs);

    is_short() = false;
    EXPECT_FALSE(uct_varuna_amo_retry_flushes(ep));
    EXPECT_TRUE(ucs_queue_is_empty(&ep->amo.flushes));
    EXPECT_EQ(num_reqs + 1, ep->hot.num_reqs);
}
