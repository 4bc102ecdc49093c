/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The lifetime of packets and of their senders: nothing is older than ports report, and
 * nothing is sent in the name of a process that is gone.
 */

#include "test_emu_time.h"

#include <signal.h>

class test_emu_time_life : public test_emu_time {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--latency", "1ms", "--rate", "100Mbps"};
    }

    rcv::args_t subnet_timeout() const override
    {
        return {"--subnet-timeout", "16"}; /* 268 ms */
    }

    /* More than a lifetime */
    static void grow_old()
    {
        usleep(400000);
    }
};

/* The keeper sleeps as the fabric of a machine that is too slow would */
UCS_TEST_F(test_emu_time_life, old_packets_are_discarded) {
    make_pair(0, long_timeout, 7);
    kill(keepers().at(0), SIGSTOP);
    a->put(0, 5);
    a->write(*b, 1, 0, 8, 0);
    grow_old();
    kill(keepers().at(0), SIGCONT);
    EXPECT_TRUE(rcv::wait_until([&]() {
        return counter(0, 0, "dropped_by_queue") > 0;
    }));
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(5u, b->get(0));
    EXPECT_EQ(1u, executed(1, "write"));
    /* Once, unless the keeper had no CPU again */
    EXPECT_GE(counter(0, 0, "retransmitted_packets"),
              counter(0, 0, "dropped_by_queue"));
}

/* What a dead process had posted stays unsent, and was not something else */
UCS_TEST_F(test_emu_time_life, killed_requester_sends_no_more) {
    const uint64_t size = emu::side::mem_size;
    unsigned mbps       = 100;

    for (;;) {
        make_pair(0, emu::patient_timeout);
        fabric().command("link", {"0:0", "rate", std::to_string(mbps) + "Mbps"});
        a->fill(0, size, 1);

        rcv::stopwatch watch;
        a->write(*b, 1, 0, size, 0);
        a->write(*b, 2, 0, size, 0);
        EXPECT_TRUE(rcv::wait_until([&]() { return executed_bytes(1) > 0; }));
        (**a).kill();
        if (watch.ms() < size * 8e-3 / mbps) {
            break; /* In the middle of the first write */
        }

        ASSERT_GT(mbps, 1u);
        mbps /= 2;
        renew_fabric();
    }

    /* What is on its way arrives, or grows too old */
    uint64_t bytes = 0, before;
    do {
        before = bytes;
        grow_old();
        bytes  = executed_bytes(1);
    } while (bytes != before);
    EXPECT_LT(bytes, size);
    EXPECT_EQ(bytes, b->match(0, size, 1));
    EXPECT_EQ(size - bytes, b->zeroes(bytes, size - bytes));
}

/* Rules see a request that another one has delayed once */
UCS_TEST_F(test_emu_time_life, delayed_request_is_executed_once) {
    make_pair(0, long_timeout);
    fault("packet op=write delay=20ms");
    fault("exec op=write count=all count", 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
}


class test_emu_life : public emu::test_emu {
protected:
    rcv::args_t subnet_timeout() const override
    {
        return {"--subnet-timeout", "16"};
    }
};

/* A process that was stopped holds a packet no longer than a fabric would */
UCS_TEST_F(test_emu_life, old_packets_are_discarded) {
    unsigned ms = 50;

    for (;;) {
        make_pair(0, 18);
        fault("packet op=write delay=" + std::to_string(ms) + "ms");
        a->put(0, 5);

        rcv::stopwatch watch;
        a->write(*b, 1, 0, 8, 0);
        (**a).signal(SIGSTOP);
        if (watch.ms() < ms) {
            break; /* It was stopped in time */
        }

        (**a).signal(SIGCONT);
        ms *= 2;
        renew_fabric();
    }

    usleep((ms + 550) * 1000);
    (**a).signal(SIGCONT);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1u, counter(0, 0, "dropped_by_queue"));
    EXPECT_EQ(1u, counter(0, 0, "retransmitted_packets"));
    EXPECT_EQ(1u, executed(1, "write"));
}

/* So does quirk ooo */
UCS_TEST_F(test_emu_life, overtaken_packets_are_discarded) {
    make_pair(0, 18);
    quirk("ooo-all:8:2s:100");
    for (unsigned value = 1;; ++value) {
        a->put(0, value);
        a->write(*b, value, 0, 8, 0);
        (**a).signal(SIGSTOP);
        if (b->get(0) != value) {
            break; /* It was stopped in time */
        }

        (**a).signal(SIGCONT);
        ASSERT_TRUE(a->completes(value, IBV_WC_SUCCESS));
    }

    usleep(2550000);
    (**a).signal(SIGCONT);
    EXPECT_TRUE(a->poll().found);
    EXPECT_EQ(1u, counter(0, 0, "dropped_by_queue"));

    for (unsigned i = 0; i < 40; ++i) {
        a->write(*b, 1000 + i, 0, 8, 8 * i);
    }
    for (unsigned i = 0; i < 40; ++i) {
        EXPECT_TRUE(a->completes(1000 + i, IBV_WC_SUCCESS));
    }
}
