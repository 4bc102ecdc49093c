/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * One timer for jobs of different periods. test_varuna_ctl_open.cc has the timer itself.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_clock.h>
}

class test_varuna_clock : public ucs::test {
protected:
    typedef enum {
        FIRST, SECOND, THIRD, LAST
    } job_id_t;

    static void count(void *arg)
    {
        ++*reinterpret_cast<unsigned*>(arg);
    }

    virtual void init()
    {
        ucs::test::init();
        uct_varuna_clock_init(&m_clock);
    }

    /* Jobs are added in the order of their ids */
    void add(job_id_t id, ucs_time_t period)
    {
        ASSERT_EQ((unsigned)id, m_clock.num_jobs);
        uct_varuna_clock_add(&m_clock, m_start, period, count, &m_calls[id]);
    }

    /* Ticks as the timer does, each @late after its time */
    void run(unsigned ticks, ucs_time_t late = 0)
    {
        for (unsigned i = 1; i <= ticks; ++i) {
            uct_varuna_clock_tick(&m_clock,
                                  m_start + (i * m_clock.tick) + late);
        }
    }

    static constexpr ucs_time_t m_start = 1000000;

    uct_varuna_clock_t m_clock;
    unsigned           m_calls[LAST] = {};
};

UCS_TEST_F(test_varuna_clock, shortest_period_ticks)
{
    add(FIRST, 50);
    add(SECOND, 100);
    add(THIRD, 0);
    EXPECT_EQ(50u, m_clock.tick);
    run(20);
    EXPECT_EQ(20u, m_calls[FIRST]);
    EXPECT_EQ(10u, m_calls[SECOND]);
    EXPECT_EQ(0u, m_calls[THIRD]);
}

/* A timer that fires slightly before or after a job's time skips none */
UCS_TEST_F(test_varuna_clock, jitter)
{
    add(FIRST, 50);
    add(SECOND, 100);
    run(20, -20);
    EXPECT_EQ(20u, m_calls[FIRST]);
    EXPECT_EQ(10u, m_calls[SECOND]);
}

UCS_TEST_F(test_varuna_clock, not_a_multiple)
{
    add(FIRST, 50);
    add(SECOND, 30);
    EXPECT_EQ(30u, m_clock.tick);
    run(50);
    EXPECT_EQ(50u, m_calls[SECOND]);
    EXPECT_EQ(30u, m_calls[FIRST]);
}

/* Jobs missed without a CPU are not repeated */
UCS_TEST_F(test_varuna_clock, long_pause)
{
    add(FIRST, 50);
    uct_varuna_clock_tick(&m_clock, m_start + 5000);
    uct_varuna_clock_tick(&m_clock, m_start + 5001);
    EXPECT_EQ(1u, m_calls[FIRST]);
    uct_varuna_clock_tick(&m_clock, m_start + 5050);
    EXPECT_EQ(2u, m_calls[FIRST]);
}

UCS_TEST_F(test_varuna_clock, nothing_to_do)
{
    add(FIRST, 0);
    EXPECT_EQ(0u, m_clock.tick);
    run(20);
    EXPECT_EQ(0u, m_calls[FIRST]);
}
