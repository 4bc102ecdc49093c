/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Failures in fabrics with time: packets in flight when links, NICs and processes fail,
 * and fault rules and quirks.
 */

#include "test_emu_time.h"

#include <signal.h>

class test_emu_time_fault : public test_emu_time {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--latency", "200ms", "--hosts", "3"};
    }

    /* Times since the write was posted */
    void wait_for(double ms)
    {
        double left = m_begin + ms - now_ms();

        if (left > 0) {
            usleep(left * 1000);
        }
    }

    void be_on_the_first_link()
    {
        wait_for(50);
    }

    void be_on_the_second_link()
    {
        wait_for(250);
    }

    void arrive()
    {
        wait_for(600);
    }

    void cut(unsigned host, const std::string &state)
    {
        fabric().link(host, 0, state);
        fabric().link(host, 0, "up");
    }

    /* The posted write is lost, and sent again */
    void expect_lost(unsigned host)
    {
        arrive();
        EXPECT_EQ(0u, executed(1, "write"));
        EXPECT_EQ(1u, counter(host, 0, "dropped_by_link"));
        EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
        EXPECT_EQ(5u, b->get(0));
        EXPECT_EQ(1u, executed(1, "write"));
    }

    void begin_write()
    {
        make_pair(0, long_timeout);
        a->put(0, 5);
        m_begin = now_ms();
        a->write(*b, 1, 0, 8, 0);
    }

    double m_begin;

    enum { mtu = 1024 }; /* of the agents */
};

UCS_TEST_F(test_emu_time_fault, killed_requester) {
    begin_write();
    (**a).kill();
    EXPECT_EQ(0u, executed(1, "write"));
    arrive();
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ(5u, b->get(0));
}

UCS_TEST_F(test_emu_time_fault, requester_that_ends) {
    begin_write();
    a.reset();
    EXPECT_EQ(0u, executed(1, "write"));
    arrive();
    EXPECT_EQ(5u, b->get(0));
}

UCS_TEST_F(test_emu_time_fault, requester_in_reset) {
    begin_write();
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    EXPECT_EQ(0u, executed(1, "write"));
    arrive();
    EXPECT_EQ(5u, b->get(0));
    EXPECT_TRUE(a->is_quiet());
}

UCS_TEST_F(test_emu_time_fault, killed_target) {
    begin_write();
    (**b).kill();
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(0u, executed(1, "write"));
}

UCS_TEST_F(test_emu_time_fault, cut_before_the_switch) {
    begin_write();
    be_on_the_first_link();
    cut(0, "silent");
    expect_lost(0);
}

UCS_TEST_F(test_emu_time_fault, cut_behind_the_switch) {
    begin_write();
    be_on_the_second_link();
    cut(1, "down");
    expect_lost(0);
}

/* It has left the cut link, or has not reached it */
UCS_TEST_F(test_emu_time_fault, cut_where_it_is_not) {
    begin_write();
    be_on_the_first_link();
    cut(1, "down");
    be_on_the_second_link();
    cut(0, "down");
    arrive();
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
}

/* Executed once, even if the answer is lost */
UCS_TEST_F(test_emu_time_fault, cut_with_the_answer) {
    make_pair(0, long_timeout);
    m_begin = now_ms();
    a->faa(*b, 1, 0, 0, 1);
    wait_for(450);
    cut(1, "silent");
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1u, b->get(0));
    EXPECT_EQ(1u, counter(1, 0, "dropped_by_link"));
    EXPECT_EQ("lost", trace(1).at(0).ack);
}

UCS_TEST_F(test_emu_time_fault, nic_dies) {
    make_pair(0, long_timeout);
    fabric().command("link", {"0:0", "rate", "1Mbps"});
    m_begin = now_ms();
    for (unsigned i = 0; i < 16; ++i) {
        a->write(*b, i, 0, 4096, 0); /* 33 ms each */
    }
    wait_for(250);
    fabric().command("nic", {"0:0", "kill"});
    wait_for(1100);
    EXPECT_GT(executed(1, "write"), 0u);
    EXPECT_LT(executed(1, "write"), 16u);
}

/* Rules see earlier executions */
UCS_TEST_F(test_emu_time_fault, rule_cuts_a_write) {
    make_pair(0, long_timeout, 1);
    fault("packet op=write pkt=7 silent");
    a->write(*b, 1, 0, 16 * mtu, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(6u * mtu, executed_bytes(1));
}

UCS_TEST_F(test_emu_time_fault, rule_cuts_before_the_answer) {
    make_pair(0, long_timeout, 1);
    fault("exec op=faa silent");
    for (unsigned i = 0; i < 4; ++i) {
        a->faa(*b, i, 0, 0, 1);
    }
    EXPECT_TRUE(a->completes(0, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(1u, b->get(0));
    EXPECT_EQ("lost", trace(1).at(0).ack);
}

/* The answers to the first two have arrived */
UCS_TEST_F(test_emu_time_fault, rule_cuts_the_third_answer) {
    make_pair(0, long_timeout, 1);
    fault("ack op=faa nth=3 silent");
    for (unsigned i = 0; i < 4; ++i) {
        a->faa(*b, i, 0, 0, 1);
    }
    EXPECT_TRUE(a->completes(0, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(4u, b->get(0));
}

UCS_TEST_F(test_emu_time_fault, rule_drops_an_answer) {
    make_pair(0, long_timeout);
    fault("ack op=cas drop");
    a->cas(*b, 1, 8, 0, 0, 7);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(0u, a->get(8));
    EXPECT_EQ(7u, b->get(0));
}

/* Acknowledgements within a message do not count */
UCS_TEST_F(test_emu_time_fault, rule_cuts_the_answer_to_a_long_write) {
    const uint64_t size = 32 * mtu;

    make_pair(0, long_timeout, 1);
    fault("ack op=write pkt=last nth=2 silent");
    a->fill(0, size, 1);
    a->write(*b, 1, 0, size, 0);
    a->write(*b, 2, 0, size, size);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(size, b->match(size, size, 1));
}

UCS_TEST_F(test_emu_time_fault, rule_drops_a_packet) {
    make_pair(0, long_timeout);
    fault("packet op=write pkt=3 drop");
    a->fill(0, 32 * 4096, 1);
    a->write(*b, 1, 0, 32 * 4096, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(32u * 4096, b->match(0, 32 * 4096, 1));
    EXPECT_EQ(0u, counter(0, 0, "timeouts"));
}

/* The requester detects the gap in the responses, and repeats its request once */
UCS_TEST_F(test_emu_time_fault, rule_drops_a_part_of_a_read) {
    make_pair(0, long_timeout, 1);
    fault("ack op=read pkt=3 drop");
    b->fill(0, 32 * 4096, 1);
    a->read(*b, 1, 0, 32 * 4096, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(32u * 4096, a->match(0, 32 * 4096, 1));
    EXPECT_EQ(1u, counter(0, 0, "retransmitted_packets"));
    EXPECT_EQ(0u, counter(0, 0, "timeouts"));
}

UCS_TEST_F(test_emu_time_fault, rule_delays_a_packet) {
    double begin;

    make_pair(0, 20);
    fault("packet op=faa delay=300ms");
    begin = now_ms();
    a->faa(*b, 1, 0, 0, 1);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_NEAR(1100, now_ms() - begin, 110);
}

UCS_TEST_F(test_emu_time_fault, quirk_ooo) {
    const uint64_t size = 64 * 4096;

    make_pair(0, long_timeout);
    quirk("ooo:8:5ms:50");
    fabric().command("link", {"0:0", "rate", "100Mbps"});
    a->fill(0, size, 1);
    a->write(*b, 1, 0, size, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(size, b->match(0, size, 1));
    EXPECT_GT(acted("ooo"), 0u);
}

UCS_TEST_F(test_emu_time_fault, quirk_late_write) {
    make_pair(0, long_timeout);
    quirk("1:0=late-write:60s");
    a->put(0, 5);
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    a->read(*b, 2, 8, 8, 0);
    EXPECT_TRUE(a->completes(2, IBV_WC_SUCCESS));
    EXPECT_EQ(5u, a->get(8));
}

/* Timers, delays and links: all of it runs faster */
class test_emu_time_scale : public test_emu_time {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--latency", "100ms", "--rate", "40Mbps", "--time-scale", "10"};
    }
};

UCS_TEST_F(test_emu_time_scale, of_links) {
    make_pair(0, 20);
    EXPECT_NEAR(40, round_trip([&](unsigned i) { a->write(*b, i, 0, 64, 0); }),
                4);
    EXPECT_NEAR(40 + 20.9, round_trip([&](unsigned i) {
        a->write(*b, i, 0, 1 << 20, 0);
    }, 5), 6);
}
