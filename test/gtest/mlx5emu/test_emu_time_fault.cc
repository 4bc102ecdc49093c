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
    test_emu_time_fault() : m_step(0)
    {
    }

    rcv::args_t fabric_options() const override
    {
        return {"--latency", std::to_string((unsigned)latency_ms()) + "ms", "--hosts", "3"};
    }

    /* Of a link: a packet is on the first one for so long, then on the second one. Its
     * answer takes the same time. */
    double latency_ms() const
    {
        return 200 << m_step;
    }

    /* Does something to a packet that is on its n-th link. All of it must happen in this
     * time: on a machine that is too slow, again in a slower fabric. Then timers are
     * longer, too. */
    void on_links(const std::function<void()> &post,
                  const std::vector<std::pair<unsigned, std::function<void()>>> &steps)
    {
        while (!try_on_links(post, steps)) {
            ++m_step;
            renew_fabric();
        }
    }

    bool try_on_links(const std::function<void()> &post,
                      const std::vector<std::pair<unsigned, std::function<void()>>> &steps)
    {
        make_pair(0, long_timeout + m_step);
        a->put(0, 5);

        rcv::stopwatch from_before;
        post();
        rcv::stopwatch from_after;

        for (const auto &step : steps) {
            double left = (step.first - 0.75) * latency_ms() - from_after.ms();

            if (left > 0) {
                usleep(left * 1000);
            }
            step.second();
            if (from_before.ms() >= step.first * latency_ms()) {
                return false;
            }
        }
        return true;
    }

    void write_and(unsigned link, const std::function<void()> &step)
    {
        on_links([&] { a->write(*b, 1, 0, 8, 0); }, {{link, step}});
    }

    void cut(unsigned host, const std::string &state)
    {
        fabric().link(host, 0, state);
        fabric().link(host, 0, "up");
    }

    /* The posted write is lost, and sent again */
    void expect_lost(unsigned host)
    {
        EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
        EXPECT_EQ(1u, counter(host, 0, "dropped_by_link"));
        EXPECT_GE(counter(host, 0, "retransmitted_packets"), 1u);
        EXPECT_EQ(5u, b->get(0));
        EXPECT_EQ(1u, executed(1, "write"));
    }

    /* The posted write arrives. There was nothing before. */
    void expect_arrival()
    {
        EXPECT_TRUE(rcv::wait_until([&] { return executed(1, "write") == 1; }));
        EXPECT_EQ(0u, m_early);
        EXPECT_EQ(5u, b->get(0));
    }

    /* Does it after the write has left its sender, and before it arrives */
    void in_flight(const std::function<void()> &step)
    {
        write_and(2, [&] {
            step();
            m_early = executed(1, "write");
        });
    }

    unsigned m_step;  /* How often the machine was too slow */
    unsigned m_early; /* Executed when it was in flight */

    enum { mtu = 1024 }; /* of the agents */

    /* Of a request that is cut off: once 4.3 s, which other requests must not take */
    enum { cut_timeout = 20 };
};

UCS_TEST_F(test_emu_time_fault, killed_requester) {
    in_flight([&] { (**a).kill(); });
    expect_arrival();
}

UCS_TEST_F(test_emu_time_fault, requester_that_ends) {
    in_flight([&] { a.reset(); });
    expect_arrival();
}

UCS_TEST_F(test_emu_time_fault, requester_in_reset) {
    in_flight([&] { (**a)("state", a->qp, (int)IBV_QPS_RESET); });
    expect_arrival();
    EXPECT_TRUE(a->is_quiet());
}

UCS_TEST_F(test_emu_time_fault, killed_target) {
    in_flight([&] { (**b).kill(); });
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(0u, executed(1, "write"));
}

UCS_TEST_F(test_emu_time_fault, cut_before_the_switch) {
    write_and(1, [&] { cut(0, "silent"); });
    expect_lost(0);
}

UCS_TEST_F(test_emu_time_fault, cut_behind_the_switch) {
    write_and(2, [&] { cut(1, "down"); });
    expect_lost(0);
}

/* It has left the cut link, or has not reached it */
UCS_TEST_F(test_emu_time_fault, cut_where_it_is_not) {
    on_links([&] { a->write(*b, 1, 0, 8, 0); },
             {{1, [&] { cut(1, "down"); }}, {2, [&] { cut(0, "down"); }}});
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ(0u, counter(0, 0, "dropped_by_link"));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

/* Executed once, even if the answer is lost */
UCS_TEST_F(test_emu_time_fault, cut_with_the_answer) {
    on_links([&] { a->faa(*b, 1, 0, 0, 1); }, {{3, [&] { cut(1, "silent"); }}});
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1u, b->get(0));
    EXPECT_EQ(1u, counter(1, 0, "dropped_by_link"));
    EXPECT_EQ("lost", trace(1).at(0).ack);
}

UCS_TEST_F(test_emu_time_fault, nic_dies) {
    /* The first ones have left, the last ones have not: each takes 33 ms, or more in a
     * slower fabric */
    on_links([&] {
        fabric().command("link", {"0:0", "rate", std::to_string(1000 >> m_step) + "Kbps"});
        for (unsigned i = 0; i < 16; ++i) {
            a->write(*b, i, 0, 4096, 0);
        }
    }, {{2, [&] { fabric().command("nic", {"0:0", "kill"}); }}});
    EXPECT_TRUE(rcv::wait_until([&] { return executed(1, "write") > 0; }));
    usleep(4e3 * latency_ms());
    EXPECT_LT(executed(1, "write"), 16u);
}

/* Rules see earlier executions */
UCS_TEST_F(test_emu_time_fault, rule_cuts_a_write) {
    make_pair(0, cut_timeout, 0);
    fault("packet op=write pkt=7 silent");
    EXPECT_TRUE(a->write(*b, 1, 0, 16 * mtu, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(6u * mtu, executed_bytes(1));
}

UCS_TEST_F(test_emu_time_fault, rule_cuts_before_the_answer) {
    make_pair(0, cut_timeout, 0);
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
    make_pair(0, cut_timeout, 0);
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
    make_pair(0, long_timeout, 7);
    fault("ack op=cas drop");
    EXPECT_TRUE(a->cas(*b, 1, 8, 0, 0, 7).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(0u, a->get(8));
    EXPECT_EQ(7u, b->get(0));
}

/* Acknowledgements within a message do not count */
UCS_TEST_F(test_emu_time_fault, rule_cuts_the_answer_to_a_long_write) {
    const uint64_t size = 32 * mtu;

    make_pair(0, cut_timeout, 0);
    fault("ack op=write pkt=last nth=2 silent");
    a->fill(0, size, 1);
    a->write(*b, 1, 0, size, 0);
    a->write(*b, 2, 0, size, size);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(size, b->match(size, size, 1));
}

UCS_TEST_F(test_emu_time_fault, rule_drops_a_packet) {
    make_pair(0, emu::patient_timeout);
    fault("packet op=write pkt=3 drop");
    a->fill(0, 32 * 4096, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 32 * 4096, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(32u * 4096, b->match(0, 32 * 4096, 1));
    EXPECT_EQ(0u, counter(0, 0, "timeouts"));
}

/* The requester detects the gap in the responses, and repeats its request once */
UCS_TEST_F(test_emu_time_fault, rule_drops_a_part_of_a_read) {
    make_pair(0, emu::patient_timeout, 1);
    fault("ack op=read pkt=3 drop");
    b->fill(0, 32 * 4096, 1);
    EXPECT_TRUE(a->read(*b, 1, 0, 32 * 4096, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(32u * 4096, a->match(0, 32 * 4096, 1));
    EXPECT_EQ(1u, counter(0, 0, "retransmitted_packets"));
    EXPECT_EQ(0u, counter(0, 0, "timeouts"));
}

UCS_TEST_F(test_emu_time_fault, rule_delays_a_packet) {
    make_pair(0, emu::patient_timeout);
    expect_ms(1100, 110, [&] {
        fault("packet op=faa delay=300ms");

        rcv::stopwatch watch;
        EXPECT_TRUE(a->faa(*b, 1, 0, 0, 1).completes(IBV_WC_SUCCESS));
        return watch.ms();
    });
}

UCS_TEST_F(test_emu_time_fault, delayed_packet_outlives_its_senders_port) {
    make_pair(0, emu::patient_timeout);
    fault("packet op=write delay=until:down=0:0");
    fault("exec op=write count", 1);
    a->put(0, 1);
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(rcv::wait_until([&] { return fired(1) == 1; }));
    fabric().link(0, 0, "down");
    EXPECT_TRUE(rcv::wait_until([&] { return b->get(0) != 0; }));
}

UCS_TEST_F(test_emu_time_fault, quirk_ooo) {
    const uint64_t size = 64 * 4096;

    make_pair(0, emu::patient_timeout);
    quirk("ooo:8:5ms:50");
    fabric().command("link", {"0:0", "rate", "100Mbps"});
    a->fill(0, size, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, size, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(size, b->match(0, size, 1));
    EXPECT_GT(acted("ooo"), 0u);
}

UCS_TEST_F(test_emu_time_fault, quirk_late_write) {
    make_pair(0, emu::patient_timeout);
    quirk("1:0=late-write:60s");
    a->put(0, 5);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->read(*b, 2, 8, 8, 0).completes(IBV_WC_SUCCESS));
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
    make_pair(0, emu::patient_timeout);
    expect_ms(40, 4, [&] {
        return round_trip([&](unsigned i) { a->write(*b, i, 0, 64, 0); });
    });
    expect_ms(40 + 20.9, 6, [&] {
        return round_trip([&](unsigned i) { a->write(*b, i, 0, 1 << 20, 0); }, 5);
    });
}
