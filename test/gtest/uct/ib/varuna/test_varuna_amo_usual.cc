/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The inline functions of the usual way of an atomic do what the state machine's own
 * functions do.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/api/uct_def.h>
}

class test_varuna_amo_usual : public ucs::test {
protected:
    enum {
        SLOT = 5,
        SLOTS = 64
    };

    static const uint64_t GEN = 0x123456;

    /* All of it, so that whole structures can be compared */
    static void clear(uct_varuna_amo_sm_t *sm)
    {
        memset((void*)sm, 0, sizeof(*sm));
    }

    static void start(uct_varuna_amo_sm_t *sm, unsigned width, uint64_t compare,
                      uint64_t swap)
    {
        clear(sm);
        uct_varuna_amo_sm_start(sm, UCT_ATOMIC_OP_CSWAP, width, 0x1000, compare, swap,
                                SLOTS);
    }

    static bool is_equal(const uct_varuna_amo_sm_t &a, const uct_varuna_amo_sm_t &b)
    {
        return !memcmp(&a, &b, sizeof(a));
    }
};

/* A value that cannot be a UID, and one that a look at its bits rules out */
UCS_TEST_F(test_varuna_amo_usual, start)
{
    for (unsigned width = 4; width <= 8; width += 4) {
        for (uint64_t compare : {uint64_t(0), uint64_t(7), UINT64_MAX >> 33}) {
            uct_varuna_amo_sm_t usual, slow;

            start(&usual, width, compare, 9);
            start(&slow, width, compare, 9);
            uct_varuna_amo_sm_begin(&slow);
            EXPECT_TRUE(is_equal(usual, slow)) << width << " " << compare;
            EXPECT_EQ(UCT_VARUNA_AMO_OCCUPY, usual.state);
        }
    }
}

/* What may be a UID is looked at, in either half */
UCS_TEST_F(test_varuna_amo_usual, uid_is_looked_at)
{
    uint64_t uid = uct_varuna_uid(SLOT, GEN, 8);
    uct_varuna_amo_sm_t sm;

    start(&sm, 8, uid, 9);
    EXPECT_EQ(UCT_VARUNA_AMO_BODY, sm.state);
    start(&sm, 8, (uint32_t)uid, 9);
    EXPECT_EQ(UCT_VARUNA_AMO_BODY, sm.state);
    start(&sm, 8, uid & ~(uint64_t)UINT32_MAX, 9);
    EXPECT_EQ(UCT_VARUNA_AMO_BODY, sm.state);
    start(&sm, 4, (uint32_t)uid, 9);
    EXPECT_EQ(UCT_VARUNA_AMO_BODY, sm.state);
    start(&sm, 8, 9, 9);
    EXPECT_EQ(UCT_VARUNA_AMO_READ, sm.state);
}

UCS_TEST_F(test_varuna_amo_usual, won_and_confirmed)
{
    for (unsigned width = 4; width <= 8; width += 4) {
        uct_varuna_amo_sm_t usual, slow;

        start(&usual, width, 7, 9);
        EXPECT_FALSE(uct_varuna_amo_sm_has_won(&usual, 7)); /* A plain one */
        uct_varuna_amo_sm_set_slot(&usual, SLOT, GEN);
        slow = usual;
        EXPECT_FALSE(uct_varuna_amo_sm_has_won(&usual, 8));
        EXPECT_FALSE(uct_varuna_amo_sm_is_confirmed(&usual, usual.act.mark_from));
        ASSERT_TRUE(uct_varuna_amo_sm_has_won(&usual, 7));
        uct_varuna_amo_sm_won(&usual);
        uct_varuna_amo_sm_done(&slow, 7, NULL);
        ASSERT_TRUE(is_equal(usual, slow));
        EXPECT_EQ(UCT_VARUNA_AMO_CONFIRM, usual.state);

        EXPECT_FALSE(uct_varuna_amo_sm_has_won(&usual, 7));
        EXPECT_FALSE(uct_varuna_amo_sm_is_confirmed(
                &usual, uct_varuna_mark(GEN, UCT_VARUNA_MARK_DONE)));
        ASSERT_TRUE(uct_varuna_amo_sm_is_confirmed(
                &usual, uct_varuna_mark(GEN, UCT_VARUNA_MARK_PENDING)));
        uct_varuna_amo_sm_confirmed(&usual);
        uct_varuna_amo_sm_done(&slow, uct_varuna_mark(GEN, UCT_VARUNA_MARK_PENDING),
                               NULL);
        EXPECT_TRUE(is_equal(usual, slow));
        EXPECT_EQ(UCT_VARUNA_AMO_FINISHED, usual.state);
    }
}
