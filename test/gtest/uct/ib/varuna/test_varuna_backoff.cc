/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a NIC has run out of: when it is asked again, and what the user is told. Time is
 * a number here.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/md/varuna_nic.h>
}

#include <string>
#include <vector>

class test_varuna_backoff : public ucs::test {
protected:
    virtual void init()
    {
        ucs::test::init();
        m_now      = ucs_time_from_sec(1000);
        m_shortage = {};
    }

    const uct_varuna_backoff_t &backoff() const
    {
        return m_shortage.backoff;
    }

    bool may_ask()
    {
        return uct_varuna_shortage_may_ask(&m_shortage, m_now) != 0;
    }

    void note(ucs_status_t status)
    {
        uct_varuna_shortage_note(&m_shortage, "thing", "nic", status, m_now);
    }

    /* Whoever needs one looks each millisecond, as progress does. @return How often the NIC
     * is asked, and refuses. */
    unsigned ask_for(double seconds, ucs_status_t status)
    {
        ucs_time_t end = m_now + ucs_time_from_sec(seconds);
        unsigned count = 0;

        for (; m_now < end; m_now += ucs_time_from_sec(1e-3)) {
            if (may_ask()) {
                note(status);
                ++count;
            }
        }
        return count;
    }

    void sleep(double seconds)
    {
        m_now += ucs_time_from_sec(seconds);
    }

    size_t num_warnings() const
    {
        return m_warnings.size();
    }

    ucs_time_t            m_now;
    uct_varuna_shortage_t m_shortage;
};

UCS_TEST_F(test_varuna_backoff, nothing_is_short) {
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_TRUE(may_ask());
        note(UCS_OK);
    }
    EXPECT_EQ(0u, backoff().failures);
}

/* UCX logs an error at each refusal: with our warning these are eight lines in the first minute,
 * and four in each later one */
UCS_TEST_F(test_varuna_backoff, few_lines_a_minute) {
    scoped_log_handler slh(hide_warns_logger);

    EXPECT_EQ(7u, ask_for(60, UCS_ERR_NO_MEMORY));
    EXPECT_EQ(1u, num_warnings());
    for (unsigned minute = 1; minute < 10; ++minute) {
        EXPECT_LE(ask_for(60, UCS_ERR_NO_MEMORY), 4u);
    }
    EXPECT_EQ(1u, num_warnings());
}

/* The distance doubles up to a limit */
UCS_TEST_F(test_varuna_backoff, distances) {
    scoped_log_handler slh(hide_warns_logger);

    for (double distance : {1, 2, 4, 8, 16, 16, 16}) {
        ASSERT_TRUE(may_ask());
        note(UCS_ERR_IO_ERROR);
        EXPECT_FALSE(may_ask());
        sleep(distance - 1e-3);
        EXPECT_FALSE(may_ask()) << distance;
        sleep(2e-3);
    }
}

/* A user who acts later does not wait longer than for the next try */
UCS_TEST_F(test_varuna_backoff, late_user) {
    scoped_log_handler slh(hide_warns_logger);

    EXPECT_EQ(3u, ask_for(4, UCS_ERR_NO_MEMORY));
    sleep(3600);
    EXPECT_TRUE(may_ask());
}

/* The user is told of the first refusal, not of another status for the same shortage. The next
 * shortage begins from the shortest distance, and is told again */
UCS_TEST_F(test_varuna_backoff, changes_are_told) {
    scoped_log_handler slh(hide_warns_logger);

    ask_for(10, UCS_ERR_NO_MEMORY);
    ASSERT_EQ(1u, num_warnings());
    EXPECT_NE(std::string::npos,
              m_warnings[0].find("nic gives no thing (Out of memory)")) << m_warnings[0];

    ask_for(60, UCS_ERR_IO_ERROR);
    EXPECT_EQ(1u, num_warnings());

    sleep(16);
    ASSERT_TRUE(may_ask());
    note(UCS_OK);
    EXPECT_TRUE(may_ask());
    EXPECT_EQ(0u, backoff().failures);

    note(UCS_ERR_IO_ERROR);
    ASSERT_EQ(2u, num_warnings());
    EXPECT_NE(std::string::npos, m_warnings[1].find("Input/output error")) << m_warnings[1];
    sleep(1.001);
    EXPECT_TRUE(may_ask());
}
