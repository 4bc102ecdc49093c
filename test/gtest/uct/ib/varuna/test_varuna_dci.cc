/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The queue pair of a DC lane fails: which endpoints leave it.
 */
#include "test_varuna_recovery.h"

class test_varuna_dci : public test_varuna_recovery {
protected:
    virtual void init()
    {
        test_varuna_recovery::init();
        m_own   = ep;
        m_other = create();
        open_both();
    }

    virtual void cleanup()
    {
        m_other->remote.logs_addr = 0;
        m_other->ask.retry.tries  = 0;
        uct_varuna_ep_t_delete(&m_other->super.super);
        ep = m_own;
        test_varuna_recovery::cleanup();
    }

    void open_both()
    {
        ep = m_other;
        open();
        ep = m_own;
        open();
        ASSERT_NE(m_own->lane.ep, m_other->lane.ep);
    }

    /* The inner transport reports this error of the first endpoint's queue pair */
    void fail(ucs_status_t status)
    {
        uct_varuna_ep_lane_error(m_own, m_own->lane.ep, status);
        EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    }

    /* The other endpoint's state after a look at its lane */
    uct_varuna_ep_state_t state_of_other()
    {
        uct_varuna_ep_state_t result;

        ep = m_other;
        step();
        result = state();
        ep     = m_own;
        return result;
    }

    uct_varuna_ep_t *m_own, *m_other;
};

/* The queue pair is in the state ERR, and the network has nothing to do with it: the
 * other endpoint to the same peer stays, and posts on its own */
UCS_TEST_F(test_varuna_dci, error_takes_its_own_endpoint) {
    const uint64_t value = 7;

    fail(UCS_ERR_CANCELED);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state_of_other());
    ASSERT_UCS_OK(uct_varuna_ep_put_short(&m_other->super.super, &value, sizeof(value),
                                          TARGET, (uct_rkey_t)&rkey));
    EXPECT_EQ((std::vector<uint64_t>{value}), puts(lane(0)));
    EXPECT_EQ(0u, m_other->stats.switches);
    lane(0).complete();
}

/* Retries are exhausted: the path to the peer is down, and all endpoints leave it */
UCS_TEST_F(test_varuna_dci, timeout_takes_the_path) {
    fail(UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state_of_other());
}
