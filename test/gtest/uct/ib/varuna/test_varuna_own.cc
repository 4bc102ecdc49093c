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

#include <unistd.h>

class test_varuna_own : public test_varuna_md {
protected:
    static constexpr double HANGS = 1.0; /* Seconds */

    virtual void init()
    {
        test_varuna_md::init();
        add_many(3);
        open();
    }

    virtual void cleanup()
    {
        fake_lane::slow_usec = fake_lane::slow_dereg_usec = 0;
        test_varuna_md::cleanup();
    }

    void hang(unsigned nic)
    {
        fake_lane::slow_md   = m_md->nics[nic].md;
        fake_lane::slow_usec = (unsigned)(HANGS * 1e6);
    }

    ucs_status_t reg_own(uct_varuna_own_t *own, ucs_time_t patience)
    {
        return uct_varuna_own_reg(m_md, m_memory, sizeof(m_memory), UCT_VARUNA_MR_WRITE,
                                  patience, own);
    }

    /* What NICs still do ends */
    void expect_no_mrs()
    {
        for (unsigned i = 0; (i < 1000) && (num_mrs() > 0); ++i) {
            usleep(10000);
        }
        EXPECT_EQ(0u, num_mrs());
    }

    static unsigned num_mrs()
    {
        return __atomic_load_n(&fake_lane::num_mrs, __ATOMIC_RELAXED);
    }

    static bool is_fast(ucs_time_t begin)
    {
        return (ucs_get_time() - begin) < ucs_time_from_sec(HANGS * 0.7);
    }

    char m_memory[64];
};

/* The others have it, and nobody waits for the one that hangs; it is not asked again until
 * it has answered, and what it registers too late is ended. Then it is used again. */
UCS_TEST_F(test_varuna_own, nic_that_hangs) {
    ucs_time_t patience = ucs_time_from_sec(0.2);
    uct_varuna_own_t first, second, third;
    ucs_time_t begin;

    hang(1);
    begin = ucs_get_time();
    ASSERT_UCS_OK(reg_own(&first, patience));
    EXPECT_EQ(UCS_BIT(1), first.missing);
    EXPECT_TRUE(first.mrs[0] && !first.mrs[1] && first.mrs[2]);
    ASSERT_UCS_OK(reg_own(&second, ucs_time_from_sec(10)));
    EXPECT_EQ(UCS_BIT(1), second.missing);
    EXPECT_TRUE(is_fast(begin));
    EXPECT_EQ(4u, num_mrs());

    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &first));
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &second));
    EXPECT_TRUE(is_fast(begin));
    usleep((unsigned)(HANGS * 1e6));
    expect_no_mrs();

    fake_lane::slow_usec = 0;
    ASSERT_UCS_OK(reg_own(&third, patience));
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
    ASSERT_UCS_OK(reg_own(&own, UCS_TIME_INFINITY));
    EXPECT_EQ(0, own.missing);
    EXPECT_UCS_OK(uct_varuna_own_dereg(m_md, &own));
}

/* The key may be valid for some time: the memory must not be used otherwise */
UCS_TEST_F(test_varuna_own, registration_that_does_not_end) {
    uct_varuna_own_t own, other;
    ucs_time_t begin;

    ASSERT_UCS_OK(reg_own(&own, UCS_TIME_INFINITY));
    ASSERT_UCS_OK(reg_own(&other, UCS_TIME_INFINITY));
    EXPECT_FALSE(uct_varuna_own_is_stuck(m_md, &other));
    fake_lane::slow_dereg_usec = (unsigned)(HANGS * 1e6);
    begin                      = ucs_get_time();
    EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_own_dereg(m_md, &own));
    EXPECT_TRUE(uct_varuna_own_is_stuck(m_md, &other));
    EXPECT_EQ(UCS_ERR_BUSY, uct_varuna_own_dereg(m_md, &other)) << "at once";
    EXPECT_TRUE(is_fast(begin));
    expect_no_mrs();
}
