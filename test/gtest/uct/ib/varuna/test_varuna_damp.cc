/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Hold-down of links and paths that fail and return.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_link.h>
}

class test_varuna_damp : public ucs::test {
protected:
    static constexpr ucs_time_t HOLD_MIN = 100, HOLD_MAX = 10000;

    virtual void init()
    {
        ucs::test::init();
        m_now   = 1000000;
        m_damp  = {};
        m_times = {HOLD_MIN, HOLD_MAX};
    }

    bool fail()
    {
        return uct_varuna_damp_fail(&m_damp, &m_times, m_now) != 0;
    }

    bool good()
    {
        return uct_varuna_damp_good(&m_damp, &m_times, m_now) != 0;
    }

    void wait(ucs_time_t time)
    {
        while (time-- > 0) {
            ++m_now;
            if (uct_varuna_damp_is_over(&m_damp, m_now)) {
                uct_varuna_damp_up(&m_damp, m_now);
            }
        }
    }

    /* Fail and return repeatedly. @return How often a user of the link had to leave
     * it */
    unsigned flap(unsigned count, ucs_time_t down, ucs_time_t up)
    {
        unsigned left = 0;

        for (unsigned i = 0; i < count; ++i) {
            left += (m_damp.state == UCT_VARUNA_DAMP_UP);
            fail();
            wait(down);
            good();
            wait(up);
        }

        return left;
    }

    uct_varuna_damp_t       m_damp;
    uct_varuna_damp_times_t m_times;
    ucs_time_t              m_now;
};

UCS_TEST_F(test_varuna_damp, zeros_are_up) {
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, m_damp.state);
    EXPECT_FALSE(good());
    EXPECT_TRUE(fail());
    EXPECT_EQ(1u, m_damp.flaps);
}

/* Many users detect one failure at different times */
UCS_TEST_F(test_varuna_damp, one_failure_counts_once) {
    EXPECT_TRUE(fail());
    for (unsigned i = 0; i < 64; ++i) {
        ++m_now;
        EXPECT_FALSE(fail());
    }
    EXPECT_EQ(1u, m_damp.flaps);
    good();
    EXPECT_EQ(m_now + HOLD_MIN, m_damp.usable_at);
}

/* A port that is up for 70 % of 500 ms is used at most four times, in any time */
UCS_TEST_F(test_varuna_damp, flapping_port_is_left_alone) {
    EXPECT_LE(flap(10, 150, 350), 4u);
    EXPECT_EQ(0u, flap(1000, 150, 350));

    /* It is used again after it has worked for the longest hold-down */
    good();
    wait(HOLD_MAX);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, m_damp.state);
}

/* A link with long times between failures is used */
UCS_TEST_F(test_varuna_damp, rare_failures_are_not_damped) {
    EXPECT_EQ(20u, flap(20, 150, 2 * HOLD_MAX));
    EXPECT_EQ(1u, m_damp.flaps);
}

UCS_TEST_F(test_varuna_damp, doubt_begins_the_same_hold_down_anew) {
    fail();
    good();
    wait(HOLD_MIN - 1);
    uct_varuna_damp_again(&m_damp, &m_times, m_now);
    EXPECT_EQ(1u, m_damp.flaps);
    wait(HOLD_MIN - 1);
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, m_damp.state);
    wait(1);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, m_damp.state);
}

UCS_TEST_F(test_varuna_damp, revoked_failure_does_not_count) {
    fail();
    uct_varuna_damp_revoke(&m_damp, m_now);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, m_damp.state);
    EXPECT_EQ(0u, m_damp.flaps);
}
