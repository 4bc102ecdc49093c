/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The results of atomics that a target keeps: each number is executed once and in
 * order, its result is kept until it is acknowledged, and a number without a result is
 * not executed again.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_amo_mode.h>
}

#include <map>

class test_varuna_amo_kept : public ucs::test {
protected:
    static constexpr uint64_t WINDOW = UCT_VARUNA_AMO_WINDOW;

    virtual void init()
    {
        ucs::test::init();
        uct_varuna_amo_kept_init(&m_kept);
    }

    uct_varuna_amo_kept_verdict_t check(uint64_t number)
    {
        return uct_varuna_amo_kept_check(&m_kept, number);
    }

    void execute(uint64_t value)
    {
        uct_varuna_ctl_atomic_result_t result = {};

        result.value = value;
        uct_varuna_amo_kept_add(&m_kept, &result);
    }

    uct_varuna_amo_kept_t m_kept;
};

UCS_TEST_F(test_varuna_amo_kept, in_order) {
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_REFUSE, check(0));
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_NEXT, check(1));
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_LATER, check(2));
    execute(10);
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_RESULT, check(1));
    EXPECT_EQ(10u, uct_varuna_amo_kept_result(&m_kept, 1)->value);
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_NEXT, check(2));
}

UCS_TEST_F(test_varuna_amo_kept, window_is_full) {
    for (uint64_t number = 1; number <= WINDOW; ++number) {
        ASSERT_EQ(UCT_VARUNA_AMO_KEPT_NEXT, check(number));
        execute(number);
    }

    /* The next one would replace a result that is not acknowledged */
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_REFUSE, check(WINDOW + 1));
    EXPECT_EQ(1u, uct_varuna_amo_kept_result(&m_kept, 1)->value);
    uct_varuna_amo_kept_ack(&m_kept, 2);
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_NEXT, check(WINDOW + 1));
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_REFUSE, check(WINDOW + 2));
}

UCS_TEST_F(test_varuna_amo_kept, discarded_is_refused) {
    execute(1);
    execute(2);
    uct_varuna_amo_kept_ack(&m_kept, 2);
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_REFUSE, check(1));
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_RESULT, check(2));

    /* An old message acknowledges less, and changes nothing */
    uct_varuna_amo_kept_ack(&m_kept, 1);
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_REFUSE, check(1));
}

UCS_TEST_F(test_varuna_amo_kept, nobody_acknowledges_the_future) {
    execute(1);
    uct_varuna_amo_kept_ack(&m_kept, 3);
    uct_varuna_amo_kept_ack(&m_kept, UINT64_MAX);
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_RESULT, check(1));
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_NEXT, check(2));
    EXPECT_EQ(UCT_VARUNA_AMO_KEPT_REFUSE, check(UINT64_MAX));
}

/* Requests arrive in any order, repeatedly, with any acknowledgement that their
 * requester may have sent: each is executed once, and its result does not change */
UCS_TEST_F(test_varuna_amo_kept, random) {
    std::map<uint64_t, uint64_t> results;
    uint64_t acked = 1, executed = 0;

    for (unsigned i = 0; i < 100000; ++i) {
        uint64_t number = acked + (ucs::rand() % (2 * WINDOW)) -
                          ucs_min(acked, 4ul);

        uct_varuna_amo_kept_ack(&m_kept, acked - ucs_min(acked, ucs::rand() % 3));
        switch (check(number)) {
        case UCT_VARUNA_AMO_KEPT_NEXT:
            ASSERT_EQ(0u, results.count(number));
            ASSERT_EQ(++executed, number);
            results[number] = ucs::rand();
            execute(results[number]);
            break;
        case UCT_VARUNA_AMO_KEPT_RESULT:
            ASSERT_EQ(1u, results.count(number));
            ASSERT_EQ(results[number],
                      uct_varuna_amo_kept_result(&m_kept, number)->value);
            break;
        case UCT_VARUNA_AMO_KEPT_LATER:
            ASSERT_GT(number, executed);
            break;
        default:
            ASSERT_TRUE((number < acked) || (number >= m_kept.acked + WINDOW));
            break;
        }

        if ((acked <= executed) && (ucs::rand() % 2)) {
            ++acked;
        }
    }

    EXPECT_GT(executed, 200u);
}
