/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * States, damping and selection of links.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_link.h>
}

class test_varuna_link : public ucs::test {
protected:
    static constexpr ucs_time_t HOLD_MIN = 10, HOLD_MAX = 100;
    static constexpr unsigned   ALL      = UCS_BIT(UCT_VARUNA_MAX_LINKS) - 1;

    virtual void init()
    {
        ucs::test::init();
        m_now = 1000000;
        setup(3, 0);
    }

    void setup(unsigned num_links, ucs_time_t return_delay,
               ucs_time_t hold_min = HOLD_MIN, ucs_time_t hold_max = HOLD_MAX)
    {
        uct_varuna_link_table_init(&m_table, num_links, return_delay,
                                   hold_min, hold_max);
    }

    bool down(unsigned link)
    {
        return uct_varuna_link_report_down(&m_table, link, m_now) != 0;
    }

    bool up(unsigned link)
    {
        return uct_varuna_link_report_up(&m_table, link, m_now) != 0;
    }

    unsigned tick()
    {
        return uct_varuna_link_tick(&m_table, m_now);
    }

    int select(int current, unsigned usable = ALL)
    {
        return uct_varuna_link_select(&m_table, current, usable);
    }

    const uct_varuna_link_entry_t &link(unsigned index) const
    {
        return m_table.links[index];
    }

    /* Fail and return at once. @return The hold-down */
    ucs_time_t flap(unsigned index)
    {
        ucs_time_t start;

        EXPECT_TRUE(down(index));
        EXPECT_TRUE(up(index));
        start = m_now;
        while (link(index).damp.state == UCT_VARUNA_DAMP_HOLD) {
            if (tick() != 0) {
                break;
            }
            ++m_now;
        }
        EXPECT_EQ(UCT_VARUNA_DAMP_UP, link(index).damp.state);
        return m_now - start;
    }

    uct_varuna_link_table_t m_table;
    ucs_time_t              m_now;
};

UCS_TEST_F(test_varuna_link, init) {
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(UCT_VARUNA_DAMP_UP, link(i).damp.state);
        EXPECT_EQ(0u, link(i).generation);
        EXPECT_EQ(0u, link(i).damp.flaps);
    }
    EXPECT_EQ(0, select(UCT_VARUNA_LINK_NONE));
    EXPECT_EQ(0u, tick());
}

UCS_TEST_F(test_varuna_link, state_names) {
    for (unsigned s = 0; s < UCT_VARUNA_DAMP_LAST; ++s) {
        ASSERT_TRUE(uct_varuna_damp_state_names[s] != NULL);
        for (unsigned t = 0; t < s; ++t) {
            EXPECT_STRNE(uct_varuna_damp_state_names[s],
                         uct_varuna_damp_state_names[t]);
        }
    }
    EXPECT_TRUE(uct_varuna_damp_state_names[UCT_VARUNA_DAMP_LAST] ==
                NULL);
}

UCS_TEST_F(test_varuna_link, down_is_news_once) {
    EXPECT_TRUE(down(1));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link(1).damp.state);
    EXPECT_EQ(1u, link(1).generation);
    EXPECT_EQ(m_now, link(1).damp.changed);

    m_now += 5;
    EXPECT_FALSE(down(1));
    EXPECT_EQ(1u, link(1).generation);
    EXPECT_EQ(1u, link(1).damp.flaps);
    EXPECT_EQ(m_now - 5, link(1).damp.changed);

    /* Nothing happened to the others */
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link(0).damp.state);
    EXPECT_EQ(0u, link(0).generation);
}

UCS_TEST_F(test_varuna_link, up_waits_for_hold_down) {
    EXPECT_FALSE(up(0)) << "it is up";
    down(0);
    m_now += 1000;
    EXPECT_EQ(0u, tick()) << "no detector has reported it as good";
    EXPECT_TRUE(up(0));
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link(0).damp.state);
    EXPECT_EQ(m_now + HOLD_MIN, link(0).damp.usable_at);

    /* A second report doesn't prolong the hold-down */
    m_now += HOLD_MIN - 1;
    EXPECT_FALSE(up(0));
    EXPECT_EQ(0u, tick());
    EXPECT_EQ(1, select(0));

    ++m_now;
    EXPECT_EQ(UCS_BIT(0), tick());
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link(0).damp.state);
    EXPECT_EQ(0u, tick()) << "news only once";
    EXPECT_EQ(1u, link(0).generation) << "only a failure is a new generation";
}

UCS_TEST_F(test_varuna_link, down_in_hold_down) {
    down(0);
    up(0);
    m_now += HOLD_MIN - 1;
    EXPECT_TRUE(down(0));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link(0).damp.state);
    EXPECT_EQ(2u, link(0).generation) << "it may have been the last way";
    EXPECT_EQ(2u, link(0).damp.flaps);

    m_now += 1;
    EXPECT_EQ(0u, tick()) << "the old hold-down must not count any more";
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link(0).damp.state);

    EXPECT_TRUE(up(0));
    EXPECT_EQ(m_now + (2 * HOLD_MIN), link(0).damp.usable_at);
}

UCS_TEST_F(test_varuna_link, tick_reports_several) {
    down(0);
    down(2);
    up(0);
    up(2);
    m_now += HOLD_MIN;
    EXPECT_EQ(UCS_BIT(0) | UCS_BIT(2), tick());
}

UCS_TEST_F(test_varuna_link, damping_doubles_up_to_cap) {
    static const ucs_time_t expected[] = {10, 20, 40, 80, 100, 100, 100};

    for (ucs_time_t hold : expected) {
        EXPECT_EQ(hold, flap(1));
    }
    for (unsigned i = 0; i < 200; ++i) { /* More doublings than bits */
        ASSERT_EQ(HOLD_MAX, flap(1));
    }
    EXPECT_EQ(HOLD_MIN, flap(2)) << "each link has its own record";
}

UCS_TEST_F(test_varuna_link, damping_forgets) {
    EXPECT_EQ(10u, flap(0));
    EXPECT_EQ(20u, flap(0));
    m_now += HOLD_MAX;
    EXPECT_EQ(40u, flap(0)) << "not yet good for longer than the cap";
    m_now += HOLD_MAX + 1;
    EXPECT_EQ(10u, flap(0));

    /* Time in state down does not reset the damping */
    EXPECT_EQ(20u, flap(0));
    down(0);
    m_now += 100 * HOLD_MAX;
    up(0);
    EXPECT_EQ(m_now + 40, link(0).damp.usable_at);
}

UCS_TEST_F(test_varuna_link, damping_extreme_values) {
    setup(1, 1, 0, 0);
    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(0u, flap(0)) << "no damping at all";
    }

    setup(1, 1, 50, 20);
    EXPECT_EQ(20u, flap(0)) << "the cap wins";

    /* The doubling must not overflow */
    setup(1, 1, UCS_BIT(62), UINT64_MAX / 2 + UINT64_MAX / 4);
    for (unsigned i = 0; i < 4; ++i) {
        down(0);
        up(0);
        EXPECT_GE(link(0).damp.usable_at - m_now, UCS_BIT(62));
        m_now = 1000000; /* It cannot be waited for */
        m_table.links[0].damp.state = UCT_VARUNA_DAMP_UP;
        m_table.links[0].damp.changed = m_now;
    }
}

UCS_TEST_F(test_varuna_link, select_by_priority) {
    EXPECT_EQ(0, select(0));
    down(0);
    EXPECT_EQ(1, select(0));
    down(1);
    EXPECT_EQ(2, select(0));
    EXPECT_EQ(2, select(2));
    down(2);
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(2));
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(UCT_VARUNA_LINK_NONE));
}

UCS_TEST_F(test_varuna_link, select_usable) {
    EXPECT_EQ(1, select(UCT_VARUNA_LINK_NONE, UCS_BIT(1) | UCS_BIT(2)));
    EXPECT_EQ(2, select(0, UCS_BIT(2))) << "current is up, but of no use";
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(0, 0));
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(0, UCS_BIT(3)))
            << "no such link in the table";
    down(1);
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(0, UCS_BIT(1)));
}

UCS_TEST_F(test_varuna_link, select_return) {
    for (ucs_time_t return_delay : {ucs_time_t(0), ucs_time_t(UCS_TIME_INFINITY)}) {
        setup(3, return_delay);
        down(0);
        EXPECT_EQ(1, select(0));
        up(0);
        EXPECT_EQ(1, select(1)) << "damped";
        m_now += HOLD_MIN;
        tick();
        EXPECT_EQ((return_delay == 0) ? 0 : 1, select(1));
        EXPECT_EQ(0, select(UCT_VARUNA_LINK_NONE));

        /* An endpoint that stays moves when its own link fails */
        down(1);
        EXPECT_EQ(0, select(1));
    }
}

/* A hold-down never delays the last link */
UCS_TEST_F(test_varuna_link, select_held_last_way) {
    for (unsigned i = 0; i < 3; ++i) {
        down(i);
    }
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(UCT_VARUNA_LINK_NONE));

    up(2);
    EXPECT_EQ(2, select(UCT_VARUNA_LINK_NONE));
    EXPECT_EQ(UCT_VARUNA_LINK_NONE, select(0, UCS_BIT(0) | UCS_BIT(1)))
            << "it is of no use";
    up(1);
    EXPECT_EQ(2, select(2)) << "no better than the one in use";
    EXPECT_EQ(1, select(UCT_VARUNA_LINK_NONE));

    uint32_t generation = link(2).generation;
    down(2);
    EXPECT_NE(generation, link(2).generation) << "its users must notice";
    EXPECT_EQ(1, select(2));

    m_now += HOLD_MAX;
    tick();
    up(0);
    EXPECT_EQ(1, select(1)) << "a link that is up is better";
}

/* An endpoint that missed a switch and the return notices it. */
UCS_TEST_F(test_varuna_link, generation_tells_there_and_back) {
    uint32_t generation = link(0).generation;

    flap(0);
    EXPECT_EQ(0, select(0));
    EXPECT_NE(generation, link(0).generation);
}

UCS_TEST_F(test_varuna_link, random_walk) {
    unsigned switches = 0;
    int current       = 0;
    uint32_t generations[3] = {};

    for (unsigned step = 0; step < 20000; ++step) {
        unsigned index                 = ucs::rand() % 3;
        uct_varuna_link_entry_t before = link(index);

        m_now += ucs::rand() % 30;
        switch (ucs::rand() % 3) {
        case 0:
            ASSERT_EQ(before.damp.state != UCT_VARUNA_DAMP_DOWN, down(index));
            generations[index] += (before.damp.state != UCT_VARUNA_DAMP_DOWN);
            ASSERT_EQ(UCT_VARUNA_DAMP_DOWN, link(index).damp.state);
            break;
        case 1:
            ASSERT_EQ(before.damp.state == UCT_VARUNA_DAMP_DOWN, up(index));
            ASSERT_NE(UCT_VARUNA_DAMP_DOWN, link(index).damp.state);
            if (before.damp.state == UCT_VARUNA_DAMP_DOWN) {
                ASSERT_GE(link(index).damp.usable_at, m_now + HOLD_MIN);
                ASSERT_LE(link(index).damp.usable_at, m_now + HOLD_MAX);
            }
            break;
        default:
            for (unsigned became_up = tick(), i = 0; i < 3; ++i) {
                if (became_up & UCS_BIT(i)) {
                    ASSERT_EQ(UCT_VARUNA_DAMP_UP, link(i).damp.state);
                    ASSERT_LE(link(i).damp.usable_at, m_now);
                }
            }
            break;
        }

        ASSERT_EQ(generations[index], link(index).generation);

        int best = UCT_VARUNA_LINK_NONE, held = UCT_VARUNA_LINK_NONE;
        for (int i = 2; i >= 0; --i) {
            if (link(i).damp.state == UCT_VARUNA_DAMP_UP) {
                best = i;
            } else if (link(i).damp.state == UCT_VARUNA_DAMP_HOLD) {
                held = i;
            }
        }
        if ((current != UCT_VARUNA_LINK_NONE) &&
            (link(current).damp.state == UCT_VARUNA_DAMP_HOLD)) {
            held = current;
        }
        best = (best == UCT_VARUNA_LINK_NONE) ? held : best;
        int selected = select(current);
        ASSERT_EQ(best, selected);
        switches += (selected != current);
        current   = selected;
    }

    EXPECT_GT(switches, 100u);
}

/* It is good only if no detector reports it */
UCS_TEST_F(test_varuna_link, causes) {
    static const unsigned port  = UCT_VARUNA_LINK_CAUSE_PORT;
    static const unsigned admin = UCT_VARUNA_LINK_CAUSE_ADMIN;

    EXPECT_FALSE(uct_varuna_link_remove_cause(&m_table, 0, port, m_now));
    EXPECT_TRUE(uct_varuna_link_add_cause(&m_table, 0, port, m_now));
    EXPECT_FALSE(uct_varuna_link_add_cause(&m_table, 0, admin, m_now));
    EXPECT_EQ(1u, link(0).generation);

    EXPECT_FALSE(uct_varuna_link_remove_cause(&m_table, 0, port, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link(0).damp.state);
    EXPECT_TRUE(uct_varuna_link_remove_cause(&m_table, 0, admin, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link(0).damp.state);

    /* Down again while it is held: the next "up" starts a longer hold-down */
    EXPECT_TRUE(uct_varuna_link_add_cause(&m_table, 0, port, m_now));
    EXPECT_TRUE(uct_varuna_link_remove_cause(&m_table, 0, port, m_now));
    EXPECT_EQ(m_now + (2 * HOLD_MIN), link(0).damp.usable_at);
}

/* What is on a retired link has not failed, unless something else fails */
UCS_TEST_F(test_varuna_link, retire) {
    static const unsigned port  = UCT_VARUNA_LINK_CAUSE_PORT;
    static const unsigned admin = UCT_VARUNA_LINK_CAUSE_ADMIN;

    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_TRUE(uct_varuna_link_retire(&m_table, 0, admin, m_now));
        EXPECT_FALSE(uct_varuna_link_retire(&m_table, 0, admin, m_now));
        EXPECT_TRUE(uct_varuna_link_is_retired(&m_table, 0));
        EXPECT_EQ(0u, link(0).generation);
        EXPECT_EQ(1, select(0));
        EXPECT_EQ(1, select(UCT_VARUNA_LINK_NONE));

        EXPECT_TRUE(uct_varuna_link_remove_cause(&m_table, 0, admin, m_now));
        EXPECT_FALSE(uct_varuna_link_is_retired(&m_table, 0));
        EXPECT_EQ(UCT_VARUNA_DAMP_UP, link(0).damp.state) << "without a hold-down";
        EXPECT_EQ(0, select(1));
    }

    uct_varuna_link_retire(&m_table, 0, admin, m_now);
    EXPECT_TRUE(uct_varuna_link_add_cause(&m_table, 0, port, m_now));
    EXPECT_EQ(1u, link(0).generation);
    EXPECT_FALSE(uct_varuna_link_is_retired(&m_table, 0));
    EXPECT_FALSE(uct_varuna_link_add_cause(&m_table, 0, port, m_now));
    uct_varuna_link_remove_cause(&m_table, 0, admin, m_now);
    EXPECT_TRUE(uct_varuna_link_remove_cause(&m_table, 0, port, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link(0).damp.state) << "the port was down";

    /* In its hold-down it is not as good as new */
    EXPECT_TRUE(uct_varuna_link_retire(&m_table, 0, admin, m_now));
    EXPECT_TRUE(uct_varuna_link_remove_cause(&m_table, 0, admin, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link(0).damp.state);

    /* Marked failed while it is retired, and retired again: it has failed */
    uct_varuna_link_revoke(&m_table, 0, m_now);
    m_table.links[0].damp.state = UCT_VARUNA_DAMP_UP;
    uint32_t generation         = link(0).generation;
    EXPECT_TRUE(uct_varuna_link_retire(&m_table, 0, admin, m_now));
    EXPECT_TRUE(uct_varuna_link_add_cause(&m_table, 0, admin, m_now));
    EXPECT_FALSE(uct_varuna_link_add_cause(&m_table, 0, admin, m_now));
    EXPECT_FALSE(uct_varuna_link_retire(&m_table, 0, admin, m_now));
    EXPECT_FALSE(uct_varuna_link_is_retired(&m_table, 0));
    EXPECT_EQ(generation + 1, link(0).generation);
    EXPECT_TRUE(uct_varuna_link_remove_cause(&m_table, 0, admin, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link(0).damp.state);

    uct_varuna_link_retire(&m_table, 1, admin, m_now);
    EXPECT_TRUE(uct_varuna_link_revoke(&m_table, 1, m_now));
    EXPECT_FALSE(uct_varuna_link_is_retired(&m_table, 1));
    EXPECT_EQ(0u, link(1).generation);
}

UCS_TEST_F(test_varuna_link, revoke) {
    static const unsigned forced = UCT_VARUNA_LINK_CAUSE_FORCED;
    static const unsigned port   = UCT_VARUNA_LINK_CAUSE_PORT;

    EXPECT_FALSE(uct_varuna_link_revoke(&m_table, 0, m_now));
    uct_varuna_link_add_cause(&m_table, 0, forced, m_now);
    EXPECT_EQ(1, select(0));
    EXPECT_TRUE(uct_varuna_link_revoke(&m_table, 0, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link(0).damp.state) << "without a hold-down";
    EXPECT_EQ(0, select(1));
    EXPECT_EQ(1u, link(0).generation);
    EXPECT_EQ(HOLD_MIN, flap(0)) << "it was no failure";

    /* It has no effect on a dead port */
    uct_varuna_link_add_cause(&m_table, 1, forced, m_now);
    uct_varuna_link_add_cause(&m_table, 1, port, m_now);
    EXPECT_FALSE(uct_varuna_link_revoke(&m_table, 1, m_now));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link(1).damp.state);
}

UCS_TEST_F(test_varuna_link, return_delay) {
    m_table.return_delay = 50;
    EXPECT_EQ(0, select(2)) << "a link which never failed has nothing to prove";
    flap(0);
    tick();
    EXPECT_EQ(1, select(1)) << "not good for long enough";
    EXPECT_EQ(0, select(UCT_VARUNA_LINK_NONE)) << "better than nothing";
    m_now += 49;
    tick();
    EXPECT_EQ(1, select(1));
    ++m_now;
    tick();
    EXPECT_EQ(0, select(1));

    flap(0);
    tick();
    EXPECT_EQ(1, select(1)) << "it has to prove it again";
    down(1);
    EXPECT_EQ(0, select(1)) << "unless it is needed";
}

/* A link that fails every 15 for 3000: without damping traffic would return to it 200
 * times */
UCS_TEST_F(test_varuna_link, flapping_is_damped) {
    unsigned returns = 0;
    int current      = 0;

    for (unsigned t = 0; t < 3000; ++t, ++m_now) {
        if (t % 15 == 0) {
            down(0);
        } else if (t % 15 == 5) {
            up(0);
        }
        tick();
        int selected = select(current);
        returns     += (selected == 0) && (current != 0);
        current      = selected;
    }

    EXPECT_LE(returns, 5u);
    EXPECT_EQ(1, current);
}
