/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Verdicts and diagnoses of the heartbeat, and the pace of rebuilding.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_alive.h>
#include <uct/ib/varuna/core/varuna_clock.h>
}

#include <cstring>

class test_varuna_alive : public ucs::test {
protected:
    static constexpr unsigned MISSES = 3;

    virtual void init()
    {
        ucs::test::init();
        memset(&m_alive, 0, sizeof(m_alive));
        m_now = 1000;
    }

    /* One interval: those in @answering answer */
    void interval(unsigned used, unsigned answering, unsigned reach = 3,
                  unsigned far_down = 0)
    {
        unsigned link;

        uct_varuna_alive_tick(&m_alive, reach, used, far_down, MISSES, &m_v);
        ucs_for_each_bit(link, m_v.ping) {
            uint32_t seq = uct_varuna_alive_ping(&m_alive, link, ++m_now);
            if (answering & UCS_BIT(link)) {
                EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, link, seq,
                                                  ++m_now));
            }
        }
    }

    uct_varuna_alive_t         m_alive;
    uct_varuna_alive_verdict_t m_v;
    ucs_time_t                 m_now;
};

UCS_TEST_F(test_varuna_alive, only_used_paths_are_asked) {
    for (unsigned i = 0; i < 10; ++i) {
        interval(1, 3);
        EXPECT_EQ(1u, m_v.ping);
        EXPECT_EQ(0u, m_v.dead);
    }
}

UCS_TEST_F(test_varuna_alive, dead_path_with_witness) {
    interval(1, 3);
    for (unsigned i = 0; i < MISSES; ++i) {
        interval(1, 2);
        EXPECT_EQ(0u, m_v.dead) << i;
        EXPECT_EQ((i == 0) ? 1u : 3u, m_v.ping) << i;
    }

    interval(1, 2);
    EXPECT_EQ(1u, m_v.dead);
    EXPECT_FALSE(m_v.became_silent);

    /* Reported once */
    interval(1, 2);
    EXPECT_EQ(0u, m_v.dead);
}

UCS_TEST_F(test_varuna_alive, silent_peer_condemns_no_path) {
    unsigned silent = 0;

    interval(1, 3);
    for (unsigned i = 0; i < 10 * MISSES; ++i) {
        interval(1, 0);
        EXPECT_EQ(0u, m_v.dead);
        silent += m_v.became_silent;
    }
    EXPECT_EQ(1u, silent);

    interval(1, 3);
    interval(1, 3);
    EXPECT_TRUE(m_v.spoke);
    EXPECT_EQ(0u, m_v.dead);
}

/* A peer that answered before the silence is no witness */
UCS_TEST_F(test_varuna_alive, old_answer_is_no_witness) {
    for (unsigned i = 0; i < 5; ++i) {
        interval(3, 3);
    }
    for (unsigned i = 0; i < 10 * MISSES; ++i) {
        interval(3, 0);
        EXPECT_EQ(0u, m_v.dead);
    }
}

UCS_TEST_F(test_varuna_alive, single_path_is_never_condemned) {
    for (unsigned i = 0; i < 10 * MISSES; ++i) {
        interval(1, 0, 1);
        EXPECT_EQ(0u, m_v.dead);
    }
}

UCS_TEST_F(test_varuna_alive, far_port_down_needs_no_patience) {
    interval(1, 3);
    interval(1, 2);
    interval(1, 2, 3, 1); /* First miss: a witness is pinged, and answers */
    EXPECT_EQ(0u, m_v.dead);
    interval(1, 2, 3, 1);
    EXPECT_EQ(1u, m_v.dead);
}

UCS_TEST_F(test_varuna_alive, late_answer_saves) {
    uint32_t seq;

    interval(1, 3);
    for (unsigned i = 0; i < MISSES; ++i) {
        interval(1, 2);
    }
    seq = m_alive.paths[0].seq;
    EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, 0, seq - 2, ++m_now));
    interval(1, 2);
    EXPECT_EQ(0u, m_v.dead);
}

UCS_TEST_F(test_varuna_alive, unsent_pings_are_not_missed) {
    interval(1, 3);
    for (unsigned i = 0; i < 10 * MISSES; ++i) {
        interval(1, 2);
        uct_varuna_alive_unask(&m_alive, 0);
    }
    EXPECT_EQ(0u, m_v.dead);
}

/* A ping that was sent late is judged an interval later, and not repeated meanwhile */
UCS_TEST_F(test_varuna_alive, late_ping_has_time_for_its_answer) {
    uint32_t seq;

    interval(1, 3);
    for (unsigned i = 0; i < (MISSES - 1); ++i) {
        interval(1, 2);
    }
    seq = m_alive.paths[0].seq;
    uct_varuna_alive_hold(&m_alive, 0);
    interval(1, 2);
    EXPECT_EQ(0u, m_v.ping & 1);
    EXPECT_EQ(seq, m_alive.paths[0].seq);
    EXPECT_EQ(MISSES - 2, m_alive.paths[0].misses);
    interval(1, 2);
    EXPECT_EQ(1u, m_v.ping & 1);
    EXPECT_EQ(MISSES - 1, m_alive.paths[0].misses);
    EXPECT_EQ(0u, m_v.dead);

    /* One that was answered needs no time */
    interval(1, 3);
    uct_varuna_alive_hold(&m_alive, 0);
    interval(1, 3);
    EXPECT_EQ(1u, m_v.ping);
    EXPECT_EQ(0u, m_alive.paths[0].misses);
}

UCS_TEST_F(test_varuna_alive, next_number) {
    EXPECT_EQ(1u, uct_varuna_alive_next(&m_alive, 0));
    EXPECT_EQ(1u, uct_varuna_alive_ping(&m_alive, 0, ++m_now));
    m_alive.paths[0].seq = UINT32_MAX;
    EXPECT_EQ(1u, uct_varuna_alive_next(&m_alive, 0)) << "0 means none";
    EXPECT_EQ(1u, uct_varuna_alive_ping(&m_alive, 0, ++m_now));
}

UCS_TEST_F(test_varuna_alive, dies_again_after_reset) {
    for (unsigned round = 0; round < 3; ++round) {
        unsigned dead = 0;

        interval(1, 3);
        for (unsigned i = 0; i < 2 * MISSES; ++i) {
            interval(1, 2);
            dead += m_v.dead;
        }
        EXPECT_EQ(1u, dead);
        uct_varuna_alive_reset(&m_alive, 0);
    }
}

UCS_TEST_F(test_varuna_alive, answers_which_make_no_sense) {
    EXPECT_FALSE(uct_varuna_alive_pong(&m_alive, 0, 1, m_now)); /* None asked */
    uct_varuna_alive_ping(&m_alive, 0, m_now);
    EXPECT_FALSE(uct_varuna_alive_pong(&m_alive, 0, 2, m_now));
    EXPECT_FALSE(uct_varuna_alive_pong(&m_alive, 0, 0x80000000u, m_now));
    EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, 0, 1, m_now));
}

UCS_TEST_F(test_varuna_alive, number_wraps_around_zero) {
    m_alive.paths[0].seq = UINT32_MAX;
    EXPECT_EQ(1u, uct_varuna_alive_ping(&m_alive, 0, m_now));
    EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, 0, 1, m_now));
    EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, 0, UINT32_MAX, m_now));
}

/* An answer proves that the path worked when its ping was sent, not later. An answer
 * that arrives after the next ping has no date */
UCS_TEST_F(test_varuna_alive, answer_proves_the_time_of_its_ping) {
    uint32_t seq = uct_varuna_alive_ping(&m_alive, 0, 100);

    EXPECT_EQ(0u, m_alive.paths[0].proved_at);
    EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, 0, seq, 200));
    EXPECT_EQ(100u, m_alive.paths[0].proved_at);
    EXPECT_EQ(200u, m_alive.paths[0].answered_at);

    seq = uct_varuna_alive_ping(&m_alive, 0, 300);
    uct_varuna_alive_ping(&m_alive, 0, 400);
    EXPECT_TRUE(uct_varuna_alive_pong(&m_alive, 0, seq, 500));
    EXPECT_EQ(100u, m_alive.paths[0].proved_at);
    EXPECT_EQ(500u, m_alive.paths[0].answered_at);
}

UCS_TEST_F(test_varuna_alive, is_silent_beside_a_witness) {
    interval(3, 3);
    interval(3, 2);
    for (unsigned i = 1; i < MISSES; ++i) {
        interval(3, 2);
        EXPECT_TRUE(uct_varuna_alive_is_silent(&m_alive, 3, 0, i));
        EXPECT_FALSE(uct_varuna_alive_is_silent(&m_alive, 3, 0, i + 1));
        EXPECT_FALSE(uct_varuna_alive_is_silent(&m_alive, 1, 0, i));
        EXPECT_FALSE(uct_varuna_alive_is_silent(&m_alive, 3, 1, i));
    }
}


class test_varuna_diagnosis : public ucs::test {
protected:
    /* The reasons, on which an operator acts */
    static uct_varuna_fault_t judge(const uct_varuna_symptoms_t &evidence,
                                    const std::string &words)
    {
        const char *why          = NULL;
        uct_varuna_fault_t fault = uct_varuna_diagnose(&evidence, &why);

        EXPECT_NE(std::string::npos, std::string(why).find(words)) << why;
        return fault;
    }
};

UCS_TEST_F(test_varuna_diagnosis, no_more_than_the_evidence_says) {
    uct_varuna_symptoms_t evidence = {};

    EXPECT_EQ(UCT_VARUNA_FAULT_UNKNOWN, judge(evidence, "no other peer answered"));
    evidence.others_silent = 1;
    EXPECT_EQ(UCT_VARUNA_FAULT_LOCAL, judge(evidence, "our port, its cable"));
    evidence.others_answer = 1; /* So the silent ones are remote faults */
    EXPECT_EQ(UCT_VARUNA_FAULT_REMOTE, judge(evidence, "other peers answer"));
    evidence.neighbours_answer = 1;
    EXPECT_EQ(UCT_VARUNA_FAULT_REMOTE, judge(evidence, "behind the same port"));
}

UCS_TEST_F(test_varuna_diagnosis, ports_know_best) {
    uct_varuna_symptoms_t evidence = {};

    evidence.others_answer = 1;
    evidence.our_port_down = 1;
    EXPECT_EQ(UCT_VARUNA_FAULT_LOCAL, judge(evidence, "our port is down"));
    evidence.far_port_down = 1;
    EXPECT_EQ(UCT_VARUNA_FAULT_BOTH, judge(evidence, "our port is down, and"));
    evidence.our_port_down = 0;
    EXPECT_EQ(UCT_VARUNA_FAULT_REMOTE, judge(evidence, "its port is down"));
}

UCS_TEST_F(test_varuna_diagnosis, what_does_not_leave_the_port_is_local) {
    uct_varuna_symptoms_t evidence = {};

    evidence.inside            = 1;
    evidence.neighbours_answer = 1;
    EXPECT_EQ(UCT_VARUNA_FAULT_LOCAL, judge(evidence, "does not leave our port"));
}

UCS_TEST_F(test_varuna_diagnosis, each_fault_has_a_name) {
    for (unsigned i = 0; i < UCT_VARUNA_FAULT_LAST; ++i) {
        EXPECT_TRUE(uct_varuna_fault_names[i] != NULL) << i;
    }
    EXPECT_TRUE(uct_varuna_fault_names[UCT_VARUNA_FAULT_LAST] == NULL);
}


class test_varuna_pace : public ucs::test {
};

/* 4,096 endpoints request a connection at once: a burst, then the rate */
UCS_TEST_F(test_varuna_pace, burst_then_rate) {
    static const unsigned eps = 4096, rate = 1000;
    ucs_time_t start          = ucs_time_from_sec(5.0), step, now;
    unsigned taken            = 0, at_once = 0;
    uct_varuna_pace_t pace;

    uct_varuna_pace_init(&pace, rate);
    while (uct_varuna_pace_take(&pace, start)) {
        ++at_once;
    }
    EXPECT_EQ((unsigned)UCT_VARUNA_PACE_BURST, at_once);

    taken = at_once;
    step  = ucs_time_from_sec(0.5e-3);
    for (now = start + step; taken < eps; now += step) {
        unsigned now_taken = 0;

        while (uct_varuna_pace_take(&pace, now)) {
            ++now_taken;
        }
        EXPECT_LE(now_taken, 1u);
        taken += now_taken;
    }
    EXPECT_NEAR((double)(eps - at_once) / rate, ucs_time_to_sec(now - start),
                0.05);

    /* Idle for long: one burst again, no more */
    now += ucs_time_from_sec(100.0);
    for (at_once = 0; uct_varuna_pace_take(&pace, now); ++at_once);
    EXPECT_EQ((unsigned)UCT_VARUNA_PACE_BURST, at_once);
}

/* Slow connections take at most a fifth of the time, independent of the rate */
UCS_TEST_F(test_varuna_pace, share_of_time) {
    const ucs_time_t cost = ucs_time_from_sec(3e-3);
    ucs_time_t now        = ucs_time_from_sec(5.0), start = now, spent = 0;
    ucs_time_t in_a_row   = 0, longest = 0;
    uct_varuna_pace_t pace;

    uct_varuna_pace_init(&pace, 1000);
    while ((now - start) < ucs_time_from_sec(20.0)) {
        if (uct_varuna_pace_take(&pace, now)) {
            now      += cost;
            spent    += cost;
            in_a_row += cost;
            uct_varuna_pace_spent(&pace, cost);
        } else {
            now     += ucs_time_from_sec(0.1e-3);
            longest  = std::max(longest, in_a_row);
            in_a_row = 0;
        }
    }

    EXPECT_NEAR(1.0 / UCT_VARUNA_PACE_SHARE, (double)spent / (now - start), 0.05);
    EXPECT_LE(longest, 2 * cost);
}
