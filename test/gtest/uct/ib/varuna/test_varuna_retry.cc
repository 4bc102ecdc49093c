/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Requests that are repeated over other links until they are answered or given up.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_retry.h>
}

#include <vector>

class test_varuna_retry : public ucs::test {
protected:
    static constexpr ucs_time_t INTERVAL = 100;

    virtual void init()
    {
        ucs::test::init();
        m_now    = 1000000;
        m_policy = {INTERVAL, 0, 0, 0};
        memset(&m_retry, 0xff, sizeof(m_retry));
        uct_varuna_retry_start(&m_retry, 0, 0);
    }

    uct_varuna_retry_verdict_t check(ucs_time_t clock = 0)
    {
        return uct_varuna_retry_check(&m_retry, &m_policy, m_now, clock);
    }

    unsigned next(unsigned map, unsigned first = UCT_VARUNA_LINK_NONE)
    {
        return uct_varuna_retry_next(&m_retry, &m_policy, first, map, m_now);
    }

    /* Wait until a try is due. @return how long that took */
    ucs_time_t wait()
    {
        ucs_time_t begin = m_now;

        while (check() == UCT_VARUNA_RETRY_WAIT) {
            ++m_now;
        }
        return m_now - begin;
    }

    uct_varuna_retry_t        m_retry;
    uct_varuna_retry_policy_t m_policy;
    ucs_time_t                m_now;
};

UCS_TEST_F(test_varuna_retry, first_try_is_due_at_once) {
    EXPECT_EQ(UCT_VARUNA_RETRY_SEND, check());
    EXPECT_FALSE(uct_varuna_retry_is_asking(&m_retry));
    next(1);
    EXPECT_TRUE(uct_varuna_retry_is_asking(&m_retry));
    EXPECT_EQ(UCT_VARUNA_RETRY_WAIT, check());
}

UCS_TEST_F(test_varuna_retry, first_try_may_be_due_later) {
    uct_varuna_retry_start(&m_retry, m_now + 7, 0);
    EXPECT_EQ(7u, wait());
    EXPECT_EQ(UCT_VARUNA_RETRY_SEND, check());
}

UCS_TEST_F(test_varuna_retry, sends_once_in_each_interval) {
    for (unsigned i = 0; i < 5; ++i) {
        next(1);
        EXPECT_EQ(INTERVAL, wait());
        EXPECT_EQ(i + 1, m_retry.tries);
    }
}

UCS_TEST_F(test_varuna_retry, interval_doubles_up_to_the_limit) {
    static const unsigned factors[] = {1, 2, 4, 8, 8, 8};

    m_policy.backoff = 3;
    for (unsigned factor : factors) {
        next(1);
        EXPECT_EQ(factor * INTERVAL, wait());
    }
}

UCS_TEST_F(test_varuna_retry, stops_when_answered) {
    next(1);
    uct_varuna_retry_stop(&m_retry);
    m_now += 10 * INTERVAL;
    m_policy.give_up   = 1;
    m_policy.max_tries = 1;
    EXPECT_EQ(UCT_VARUNA_RETRY_WAIT, check(1000));
    EXPECT_FALSE(uct_varuna_retry_is_asking(&m_retry));

    uct_varuna_retry_start(&m_retry, 0, 1000);
    EXPECT_EQ(UCT_VARUNA_RETRY_SEND, check(1000));
}

UCS_TEST_F(test_varuna_retry, first_link_then_the_others_in_turn) {
    EXPECT_EQ(2u, next(0x16, 2));
    EXPECT_EQ(4u, next(0x16, 2));
    EXPECT_EQ(1u, next(0x16, 2));
    EXPECT_EQ(2u, next(0x16, 2));
}

UCS_TEST_F(test_varuna_retry, any_first_link) {
    EXPECT_EQ(3u, next(0x18));
    EXPECT_EQ(4u, next(0x18));
    EXPECT_EQ(3u, next(0x18));
}

UCS_TEST_F(test_varuna_retry, first_link_that_may_not_be_used) {
    EXPECT_EQ(6u, next(0x42, 5));
    EXPECT_EQ(1u, next(0x42, 5));
}

/* The last link of all is followed by the first one */
UCS_TEST_F(test_varuna_retry, last_link_wraps_around) {
    unsigned last = UCT_VARUNA_MAX_LINKS - 1;

    EXPECT_EQ(last, next(UCS_BIT(last) | 1, last));
    EXPECT_EQ(0u, next(UCS_BIT(last) | 1, last));
    EXPECT_EQ(last, next(UCS_BIT(last), last));
    EXPECT_EQ(last, next(UCS_BIT(last), last));
}

/* Links come and go between the tries */
UCS_TEST_F(test_varuna_retry, uses_the_links_of_the_moment) {
    EXPECT_EQ(0u, next(0x7, 0));
    EXPECT_EQ(2u, next(0x5, 0));
    EXPECT_EQ(1u, next(0x2, 0));
    EXPECT_EQ(1u, next(0x2, 0));
}

UCS_TEST_F(test_varuna_retry, gives_up_after_so_many_tries) {
    m_policy.max_tries = 3;
    for (unsigned i = 0; i < 3; ++i) {
        ASSERT_EQ(UCT_VARUNA_RETRY_SEND, check());
        next(1);
        EXPECT_EQ(INTERVAL, wait()); /* The last one, too, may be answered */
    }
    EXPECT_EQ(UCT_VARUNA_RETRY_GIVE_UP, check());
}

UCS_TEST_F(test_varuna_retry, gives_up_after_a_time_by_its_own_clock) {
    uct_varuna_retry_start(&m_retry, 0, 5000);
    m_policy.give_up = 300;
    next(1);
    m_now += 1000 * INTERVAL;  /* Nobody called progress */
    EXPECT_EQ(UCT_VARUNA_RETRY_SEND, check(5300));
    EXPECT_EQ(UCT_VARUNA_RETRY_GIVE_UP, check(5301));
    next(1);
    EXPECT_EQ(UCT_VARUNA_RETRY_WAIT, check(5300));
    EXPECT_EQ(UCT_VARUNA_RETRY_GIVE_UP, check(5301)); /* Due or not */
}

UCS_TEST_F(test_varuna_retry, may_never_give_up) {
    for (unsigned i = 0; i < 100000; ++i) {
        m_now += INTERVAL;
        ASSERT_EQ(UCT_VARUNA_RETRY_SEND, check(m_now));
        next(3);
    }
}
