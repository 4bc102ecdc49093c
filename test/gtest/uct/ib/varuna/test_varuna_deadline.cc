/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Each state in which an endpoint waits is held open, and ends at its deadline. The others are
 * in test_varuna_recovery.cc, test_varuna_rebuild.cc and test_varuna_hang.cc; the table is in
 * docs/RECOVERY.md.
 */
#include "test_varuna_recovery.h"

class test_varuna_deadline : public test_varuna_recovery {
protected:
    /* A put was posted so long ago, and nothing was answered since, over any link */
    void silence(double seconds)
    {
        host->requester()->scan.clock += ucs_time_from_sec(1);
        open();
        ASSERT_UCS_OK(put(1));
        host->requester()->scan.clock += ucs_time_from_sec(seconds);
        ep->peer->hb.alive.silent      = 1;
    }

    /* A step so much later: step() begins anew each time, but requests are repeated by the
     * real time */
    void pass(double seconds)
    {
        m_past                        += seconds;
        host->requester()->scan.clock += ucs_time_from_sec(seconds);
        uct_varuna_sm_step(ep, ucs_get_time() + ucs_time_from_sec(m_past));
    }

private:
    double m_past = 10 * LIFETIME;
};

/* GIVE_UP counts from the first operation without an answer */
UCS_TEST_F(test_varuna_deadline, silence_before_the_failure_counts) {
    silence(GIVE_UP * 0.8);
    fail_link();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    pass(GIVE_UP * 0.1);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    pass(GIVE_UP * 0.1);
    pass(CTL_TIMEOUT * 1.1);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* ... but whoever is asked has the time to answer, on each link */
UCS_TEST_F(test_varuna_deadline, each_link_is_asked_first) {
    unsigned links = 0;

    silence(GIVE_UP * 3);
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_CANCELED);
    step();
    step();
    pass(LIFETIME * 1.1);
    for (unsigned i = 0; i < NUM_LINKS; ++i) {
        ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
        links |= UCS_BIT(host->last_sent(UCT_VARUNA_CTL_FENCE_REQ).link);
        pass(CTL_TIMEOUT * 1.1);
    }
    EXPECT_EQ(UCS_MASK(NUM_LINKS), links);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* An answer on any link shows that the peer lives */
UCS_TEST_F(test_varuna_deadline, slow_operation_is_no_silence) {
    silence(GIVE_UP * 3);
    ep->peer->hb.alive.silent = 0;
    fail_link();
    pass(CTL_TIMEOUT * 1.1);
    pass(CTL_TIMEOUT * 1.1);
    pass(CTL_TIMEOUT * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    pass(GIVE_UP * 0.8);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    pass(GIVE_UP * 0.3);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* What came before an answer does not count in the states after it */
UCS_TEST_F(test_varuna_deadline, silence_ends_with_an_answer) {
    silence(GIVE_UP * 0.8);
    fail_link();
    link_down(1);
    answer_fence(ep->recovery.dead.epoch);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    pass(GIVE_UP * 0.9);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    pass(GIVE_UP * 0.2);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

UCS_TEST_F(test_varuna_deadline, repeat_without_a_link) {
    put_and_fail();
    link_down(1);
    answer_fence(ep->recovery.dead.epoch);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    pass(GIVE_UP * 0.9);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    pass(GIVE_UP * 0.2);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* The answer to OPEN_REQ was late. The first lane has as much time */
UCS_TEST_F(test_varuna_deadline, opening_counts_from_the_answer) {
    link_down(0);
    link_down(1);
    pass(GIVE_UP * 0.9);
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state());
    ep->remote.logs_addr = LOGS;
    ep->ask.retry.since  = host->requester()->scan.clock; /* As OPEN_REP's handler does */
    uct_varuna_ep_ctl_ended(ep);
    pass(GIVE_UP * 0.9);
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state());
    pass(GIVE_UP * 0.2);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* All of them: while the application does not call progress, nothing is polled */
UCS_TEST_F(test_varuna_deadline, we_compute) {
    silence(GIVE_UP * 0.9);
    fail_link();
    for (unsigned i = 0; i < 10; ++i) {
        uct_varuna_sm_step(ep, ucs_get_time() + ucs_time_from_sec(GIVE_UP * (i + 1)));
    }
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
}
