/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fabrics with time: latency, rate, queues, and processes that may end meanwhile.
 */

#include "test_emu_time.h"

#include <signal.h>

/* Two links, both ways */
UCS_TEST_F(test_emu_time, latency) {
    unsigned num = 0;

    make_pair(0, emu::patient_timeout);

    expect_ms(20, 2, [&] {
        return round_trip([&](unsigned i) { a->write(*b, i, 0, 64, 0); });
    });
    expect_ms(20, 2, [&] {
        return round_trip([&](unsigned i) { a->read(*b, i, 0, 64, 0); });
    });
    expect_ms(20, 2, [&] {
        num += 11;
        return round_trip([&](unsigned i) { a->faa(*b, i, 4096, 4096, 1); });
    });
    EXPECT_EQ(num, b->get(4096));

    fabric().command("link", {"1:0", "latency", "15ms"});
    expect_ms(40, 4, [&] {
        return round_trip([&](unsigned i) { a->write(*b, i, 0, 64, 0); });
    });
}

/* The doorbell never waits, not even for the keeper */
UCS_TEST_F(test_emu_time, doorbell_returns_at_once) {
    make_pair(0, emu::patient_timeout);
    for (unsigned i = 0; i < 11; ++i) {
        kill(keepers().at(0), SIGSTOP);
        a->write(*b, i, 0, 4096, 0);
        EXPECT_FALSE(a->poll(0).found);
        kill(keepers().at(0), SIGCONT);
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
}

UCS_TEST_F(test_emu_time, operations_of_all_kinds) {
    const uint64_t size = 1000000;

    make_pair(0, emu::patient_timeout);
    a->fill(0, size, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, size, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(size, b->match(0, size, 1));

    b->fill(size, size, 2);
    EXPECT_TRUE(a->read(*b, 2, 2 * size, size, size).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(size, a->match(2 * size, size, 2));

    b->put(0, 5);
    EXPECT_TRUE(a->cas(*b, 3, 8, 0, 5, 6).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(5u, a->get(8));
    EXPECT_EQ(6u, b->get(0));

    b->recv(4, 0, size);
    a->send(IBV_WR_SEND, *b, 5, 2 * size, size, 0);
    EXPECT_TRUE(b->completes(4, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(5, IBV_WC_SUCCESS));
    EXPECT_EQ(size, b->match(0, size, 2));

    b->recv(6, 0, 64);
    a->send(IBV_WR_RDMA_WRITE_WITH_IMM, *b, 7, 0, 8, 64);
    EXPECT_TRUE(b->completes(6, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(7, IBV_WC_SUCCESS));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

/* Responses of several kinds stay in order, as completions show */
UCS_TEST_F(test_emu_time, many_at_once) {
    const uint64_t size = 100000;
    unsigned wr_id      = 0;

    make_pair(0, emu::patient_timeout);
    b->put(3 << 20, 0);
    for (unsigned round = 0; round < 8; ++round) {
        a->read(*b, wr_id++, 0, size, 0);
        a->faa(*b, wr_id++, 3 << 20, 3 << 20, 1);
        a->write(*b, wr_id++, 1 << 20, 64, 1 << 20);
    }
    for (unsigned i = 0; i < wr_id; ++i) {
        ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    EXPECT_EQ(8u, b->get(3 << 20));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

/* A receiver without an entry: packets in flight get no answer */
UCS_TEST_F(test_emu_time, receiver_not_ready) {
    make_pair(0, emu::patient_timeout);
    for (unsigned i = 0; i < 8; ++i) {
        a->send(IBV_WR_SEND, *b, i, 0, 64, 0);
    }
    EXPECT_TRUE(rcv::wait_until([&] { return counter(0, 0, "rnr_waits") > 0; }));
    for (unsigned i = 0; i < 8; ++i) {
        b->recv(i, 4096, 64);
    }
    for (unsigned i = 0; i < 8; ++i) {
        EXPECT_TRUE(b->completes(i, IBV_WC_SUCCESS));
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
}

/* Within a NIC there is no link */
UCS_TEST_F(test_emu_time, loopback) {
    a.reset(new emu::side(fabric(), 0, 0));
    b.reset(new emu::side(fabric(), 0, 0));
    a->connect(*b, emu::patient_timeout);
    b->connect(*a, emu::patient_timeout);
    a->put(0, 7);
    EXPECT_LT(undisturbed(0, 4.9, [&] {
        return round_trip([&](unsigned i) { a->write(*b, i, 0, 8, 0); });
    }), 5);
    EXPECT_EQ(7u, b->get(0));
}

/* Another process keeps the time: the target need not run, ... */
UCS_TEST_F(test_emu_time, target_is_stopped) {
    make_pair(0, emu::patient_timeout);
    (**b).signal(SIGSTOP);
    a->put(0, 5);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->faa(*b, 2, 8, 0, 1).completes(IBV_WC_SUCCESS));
    (**b).signal(SIGCONT);
    EXPECT_EQ(6u, b->get(0));
}

/* ... nor the requester: all its posted requests are sent */
UCS_TEST_F(test_emu_time, requester_is_stopped) {
    const uint64_t size = 1000000;

    make_pair(0, emu::patient_timeout);
    a->fill(0, size, 1);
    fabric().command("link", {"0:0", "rate", "100Mbps"});
    a->write(*b, 1, 0, size, 0);
    (**a).signal(SIGSTOP);
    EXPECT_TRUE(rcv::wait_until([&] { return executed_bytes(1) == size; }));
    (**a).signal(SIGCONT);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(size, b->match(0, size, 1));
}

UCS_TEST_F(test_emu_time, keeper_sleeps) {
    double before;
    pid_t keeper;

    make_pair(0, emu::patient_timeout);
    ASSERT_EQ(1u, keepers().size());
    keeper = keepers().at(0);
    before = cpu_ms(keeper);
    usleep(1000000);
    EXPECT_LE(cpu_ms(keeper) - before, 20);
}

UCS_TEST_F(test_emu_time, keeper_ends_with_its_fabric) {
    std::unique_ptr<rcv::fabric> other;
    pid_t keeper;

    other.reset(new rcv::fabric(2, 1, {"--rate", "1Gbps"}));
    ASSERT_EQ(1u, keepers_of(*other).size());
    keeper = keepers_of(*other).at(0);
    other.reset();
    EXPECT_TRUE(rcv::wait_until([&] { return has_ended(keeper); }));
    EXPECT_EQ(1u, keepers().size());
}

/* The next program starts a new one: packets in flight continue */
UCS_TEST_F(test_emu_time, keeper_is_killed) {
    make_pair(0, emu::patient_timeout);
    ASSERT_EQ(1u, keepers().size());
    ::kill(keepers().at(0), SIGKILL);
    EXPECT_TRUE(rcv::wait_until([&] { return keepers().empty(); }));
    a->put(0, 5);
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->is_quiet());
    EXPECT_NE(std::string::npos,
              fabric().command("status").find("NOBODY KEEPS IT"));
    fabric().command("exec", {"0", "--", "true"});
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(5u, b->get(0));
}


class test_emu_no_time : public test_emu_time {
protected:
    rcv::args_t fabric_options() const override
    {
        return rcv::args_t();
    }
};

/* A fabric without it has none, until a link gets it */
UCS_TEST_F(test_emu_no_time, until_a_link_has_it) {
    make_pair(0, emu::patient_timeout);
    EXPECT_TRUE(keepers().empty());
    const auto write = [&] {
        return round_trip([&](unsigned i) { a->write(*b, i, 0, 64, 0); });
    };

    EXPECT_LT(undisturbed(0, 9.9, write), 10);
    fabric().command("link", {"0:0", "latency", "10ms", "rate", "1Gbps"});
    EXPECT_EQ(1u, keepers().size());
    expect_ms(20, 2, write);
    fabric().command("link", {"0:0", "latency", "0ms", "rate", "any"});
    EXPECT_LT(undisturbed(0, 9.9, write), 10);
}
