/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Memory of our own, which is registered on NICs that may hang.
 */
#include "test_varuna_md.h"
#include "fake_lanes.h"

extern "C" {
#include <uct/ib/varuna/md/varuna_own.h>
}

#include <thread>
#include <unistd.h>
#include <vector>

class test_varuna_own : public test_varuna_md {
protected:
    virtual void init()
    {
        test_varuna_md::init();
        add_many(3);
        open();
    }

    virtual void cleanup()
    {
        fake_lane::reg_hangs = fake_lane::dereg_hangs = false;
        test_varuna_md::cleanup();
    }

    void hang(unsigned nic)
    {
        fake_lane::hung_md   = m_md->nics[nic].md;
        fake_lane::reg_hangs = true;
    }

    ucs_status_t reg_own(uct_varuna_own_t *own, ucs_time_t patience)
    {
        return uct_varuna_own_reg(m_md, UINT8_MAX, m_memory, sizeof(m_memory), UCT_VARUNA_MR_WRITE, 0,
                                  patience, own);
    }

    /* What NICs still do ends */
    void expect_no_mrs()
    {
        for (unsigned i = 0; (i < 12000) && (num_mrs() > 0); ++i) {
            usleep(10000);
        }
        EXPECT_EQ(0u, num_mrs());
    }

    static unsigned num_mrs()
    {
        return __atomic_load_n(&fake_lane::num_mrs, __ATOMIC_RELAXED);
    }

    static double seconds_since(ucs_time_t begin)
    {
        return ucs_time_to_sec(ucs_get_time() - begin);
    }

    char m_memory[64];
};

/* The others have it, and nobody waits for the one that hangs; it is not asked again until
 * it has answered, and what it registers too late is ended. Then it is used again. */
UCS_TEST_F(test_varuna_own, nic_that_hangs) {
    uct_varuna_own_t first, second, third;
    double patience = 0.2;
    ucs_time_t begin;

    hang(1);
    ASSERT_UCS_OK(reg_own(&first, ucs_time_from_sec(patience)));
    while (first.missing != UCS_BIT(1)) {
        /* A thread of the others had no CPU for so long */
        fake_lane::reg_hangs = false;
        EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &first));
        expect_no_mrs();
        hang(1);
        patience *= 2;
        ASSERT_LT(patience, 60);
        ASSERT_UCS_OK(reg_own(&first, ucs_time_from_sec(patience)));
    }
    EXPECT_TRUE(first.mrs[0] && !first.mrs[1] && first.mrs[2]);

    begin = ucs_get_time();
    ASSERT_UCS_OK(reg_own(&second, ucs_time_from_sec(100)));
    EXPECT_LT(seconds_since(begin), 90);
    EXPECT_EQ(UCS_BIT(1), second.missing);
    EXPECT_EQ(4u, num_mrs());

    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &first));
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &second));
    fake_lane::reg_hangs = false;
    expect_no_mrs();

    /* It has answered, unless its thread had no CPU in that moment */
    ASSERT_UCS_OK(reg_own(&third, ucs_time_from_sec(60)));
    for (unsigned i = 0; (third.missing != 0) && (i < 1000); ++i) {
        EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &third));
        usleep(10000);
        ASSERT_UCS_OK(reg_own(&third, ucs_time_from_sec(60)));
    }
    EXPECT_EQ(0, third.missing);
    EXPECT_EQ(3u, num_mrs());
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &third));
    EXPECT_EQ(0u, num_mrs());
}

/* All NICs are late, perhaps because their threads have no CPU. That is no error: the caller
 * tries again, and the harness would report one. */
UCS_TEST_F(test_varuna_own, nobody_answers_in_time) {
    uct_varuna_own_t own;

    EXPECT_EQ(UCS_ERR_TIMED_OUT, reg_own(&own, 0)); /* Over before a thread can begin */
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &own));
    expect_no_mrs();
}

/* At the start there is time */
UCS_TEST_F(test_varuna_own, patience) {
    uct_varuna_own_t own;

    hang(1);
    std::thread other([&] {
        usleep(500000);
        fake_lane::reg_hangs = false;
    });
    ASSERT_UCS_OK(reg_own(&own, UCS_TIME_INFINITY));
    other.join();
    EXPECT_EQ(0, own.missing);
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &own));
}

/* The key may be valid for some time: the memory must not be used otherwise. With
 * UCT_VARUNA_OWN_PATIENCE for each of them, it would take a minute. */
UCS_TEST_F(test_varuna_own, registration_that_does_not_end) {
    std::vector<uct_varuna_own_t> others(60 / UCT_VARUNA_OWN_PATIENCE);
    uct_varuna_own_t own;
    ucs_time_t begin;

    ASSERT_UCS_OK(reg_own(&own, UCS_TIME_INFINITY));
    for (uct_varuna_own_t &other : others) {
        ASSERT_UCS_OK(reg_own(&other, UCS_TIME_INFINITY));
    }

    EXPECT_FALSE(uct_varuna_own_is_stuck(m_md, &own));
    fake_lane::dereg_hangs = true;
    EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_own_dereg(m_md, &own));
    begin = ucs_get_time();
    for (uct_varuna_own_t &other : others) {
        EXPECT_TRUE(uct_varuna_own_is_stuck(m_md, &other));
        EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_own_dereg(m_md, &other)) << "at once";
    }
    EXPECT_LT(seconds_since(begin), 60);
    fake_lane::dereg_hangs = false;
    expect_no_mrs();
}
