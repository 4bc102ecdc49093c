/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirk late-write: writes are acknowledged before they are in memory. Which operations
 * guarantee that they are placed, and which do not.
 */

#include "test_emu.h"

#include <errno.h>
#include <functional>
#include <unistd.h>

static const unsigned num_writes = 20;

class test_emu_late : public emu::test_emu {
protected:
    /* Word i of the target becomes i + 1, and the requester gets completions */
    void write_words(unsigned num = num_writes)
    {
        for (unsigned i = 0; i < num; ++i) {
            a->put(i * 8, i + 1);
            a->write(*b, i, i * 8, 8, i * 8);
            ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        }
    }

    /* A new pair with the quirk at @a place writes, and something happens. The words are
     * looked at before the first of them is due: a slow machine gets more time, in a new
     * fabric. */
    void write_late(const std::string &place,
                    const std::function<void()> &then = [] {})
    {
        unsigned ms = 1500, num;

        for (;;) {
            make_pair();
            quirk(place + "late-write:" + std::to_string(ms) + "ms");

            rcv::stopwatch watch;
            write_words();
            then();
            num = placed();
            if (watch.ms() < ms) {
                EXPECT_LT(num, num_writes);
                return;
            }

            ms *= 2;
            renew_fabric();
        }
    }

    /* Words that are in memory, placed in order. */
    unsigned placed()
    {
        emu::numbers_t bytes = (**b)("peek", b->mem, 0, num_writes * 8);
        unsigned num         = 0;
        bool is_over         = false;

        for (unsigned i = 0; i < num_writes; ++i) {
            if (bytes.at(i * 8) == i + 1) {
                EXPECT_FALSE(is_over) << "word " << i;
                ++num;
            } else {
                EXPECT_EQ(0u, bytes.at(i * 8));
                is_over = true;
            }
        }
        return num;
    }

    void expect_placed_in_time()
    {
        EXPECT_TRUE(rcv::wait_until([&] { return placed() == num_writes; }));
    }

    uint64_t accepted()
    {
        return ((**b)("query", b->qp).at(1) - 0xfffff0) & 0xffffff;
    }

    void to_state(ibv_qp_state state)
    {
        (**b)("state", b->qp, (int)state);
    }
};

UCS_TEST_F(test_emu_late, in_memory_at_once_without) {
    make_pair();
    for (unsigned i = 0; i < num_writes; ++i) {
        a->put(i * 8, i + 1);
        EXPECT_TRUE(a->write(*b, i, i * 8, 8, i * 8).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(i + 1, placed());
    }
    EXPECT_EQ(0u, acted("late-write"));
}

UCS_TEST_F(test_emu_late, acknowledged_before_it_is_placed) {
    write_late("1:0=");
    EXPECT_EQ(num_writes, accepted());
    expect_placed_in_time();
    EXPECT_EQ(num_writes, acted("late-write", 1, 0));
    EXPECT_EQ(num_writes, acted("late-write"));
}

/* Only the quirk of the responder's port matters */
UCS_TEST_F(test_emu_late, of_the_other_side) {
    make_pair();
    quirk("0:0=late-write:60s");
    write_words();
    EXPECT_EQ(num_writes, placed());
    EXPECT_EQ(0u, acted("late-write"));
    b->put(8, 7);
    EXPECT_TRUE(b->write(*a, 1, 8, 8, 4096).completes(IBV_WC_SUCCESS));
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    EXPECT_EQ(7u, a->get(4096));
}

UCS_TEST_F(test_emu_late, placed_after_err) {
    write_late("", [&] { to_state(IBV_QPS_ERR); });
    EXPECT_EQ(num_writes, accepted());
    expect_placed_in_time();
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, b->state());
}

UCS_TEST_F(test_emu_late, reset_is_a_barrier) {
    make_pair();
    quirk("late-write:60s");
    write_words();
    to_state(IBV_QPS_ERR);
    EXPECT_LT(placed(), num_writes);
    to_state(IBV_QPS_RESET);
    EXPECT_EQ(num_writes, placed());
    EXPECT_EQ(num_writes, acted("late-write"));
}

UCS_TEST_F(test_emu_late, destroying_is_a_barrier) {
    make_pair();
    quirk("late-write:60s");
    write_words();
    EXPECT_LT(placed(), num_writes);
    (**b)("destroy", b->qp);
    EXPECT_EQ(num_writes, placed());
}

UCS_TEST_F(test_emu_late, deregistering_is_a_barrier) {
    make_pair();
    quirk("late-write:60s");
    write_words();
    EXPECT_LT(placed(), num_writes);
    (**b)("dereg", b->mem);
    EXPECT_EQ(num_writes, placed());
}

/* The requester's process is not needed any more, nor its queue pair */
UCS_TEST_F(test_emu_late, requester_dies) {
    write_late("", [&] { (**a).kill(); });
    expect_placed_in_time();
}

UCS_TEST_F(test_emu_late, requester_resets) {
    write_late("", [&] { (**a)("state", a->qp, (int)IBV_QPS_RESET); });
    expect_placed_in_time();
}

UCS_TEST_F(test_emu_late, what_follows_sees_it) {
    make_pair();
    quirk("late-write:60s");

    write_words();
    a->read(*b, 100, 4096, 8, (num_writes - 1) * 8);
    EXPECT_TRUE(a->completes(100, IBV_WC_SUCCESS));
    EXPECT_EQ(num_writes, a->get(4096));
    EXPECT_EQ(num_writes, placed());

    a->put(0, 5);
    a->write(*b, 101, 0, 8, 4096);
    a->faa(*b, 102, 4096, 4096, 1);
    EXPECT_TRUE(a->completes(101, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(102, IBV_WC_SUCCESS));
    EXPECT_EQ(5u, a->get(4096));
    EXPECT_EQ(6u, b->get(4096));

    a->put(0, 7);
    EXPECT_TRUE(a->write(*b, 103, 0, 8, 4096).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(6u, b->get(4096));
    b->recv(200, 8192, 64);
    a->send(IBV_WR_SEND, *b, 104, 0, 8, 0);
    EXPECT_TRUE(b->completes(200, IBV_WC_SUCCESS));
    EXPECT_EQ(7u, b->get(4096));

    a->put(0, 8);
    b->recv(201, 8192, 64);
    a->send(IBV_WR_RDMA_WRITE_WITH_IMM, *b, 105, 0, 8, 4096);
    EXPECT_TRUE(b->completes(201, IBV_WC_SUCCESS));
    EXPECT_EQ(8u, b->get(4096));
}

/* What is for a device goes another way than what is for the host: only a read of the same
 * device, over the same NIC, comes behind it */
UCS_TEST_F(test_emu_late, of_a_device) {
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);

    make_pair();
    c.connect(d);
    d.connect(c);
    b->use_memory("dmabuf");
    quirk("late-write:60s");
    write_words();
    EXPECT_TRUE(c.read(d, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    to_state(IBV_QPS_ERR);
    to_state(IBV_QPS_RESET);
    EXPECT_LT(placed(), num_writes);

    make_pair();
    b->use_memory("dmabuf");
    write_words();
    EXPECT_LT(placed(), num_writes);
    EXPECT_TRUE(a->read(*b, 2, 4096, 8, 8192).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(num_writes, placed());
}

/* Requests to the port by another queue pair do not pass it either, ... */
UCS_TEST_F(test_emu_late, another_queue_pair_sees_it) {
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);

    make_pair();
    c.connect(d);
    d.connect(c);
    quirk("late-write:60s");
    write_words();
    EXPECT_TRUE(c.read(d, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(num_writes, placed());
}

/* ... unless the quirk demands it; and another link is another NIC */
UCS_TEST_F(test_emu_late, others_do_not_see_it) {
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);
    emu::side e(fabric(), 0, 1), f(fabric(), 1, 1);

    make_pair();
    e.connect(f);
    f.connect(e);
    quirk("late-write:60s");
    write_words();
    EXPECT_TRUE(e.read(f, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_LT(placed(), num_writes);

    c.connect(d);
    d.connect(c);
    quirk("late-write:60s:1");
    EXPECT_TRUE(c.read(d, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_LT(placed(), num_writes);
    to_state(IBV_QPS_RESET);
    EXPECT_EQ(num_writes, placed());
}

/* The room is limited: then the oldest are placed */
UCS_TEST_F(test_emu_late, more_than_there_is_room_for) {
    const uint64_t size = emu::side::mem_size - 4096;

    make_pair(0, emu::patient_timeout);
    quirk("late-write:60s");
    for (unsigned round = 1; round <= 3; ++round) {
        a->fill(4096, size, round);
        EXPECT_TRUE(a->write(*b, round, 4096, size, 4096).completes(IBV_WC_SUCCESS));
    }
    EXPECT_LT(b->match(4096, size, 3), size);
    to_state(IBV_QPS_RESET);
    EXPECT_EQ(size, b->match(4096, size, 3));
}

/* Writes that a dead NIC has accepted are lost with it */
UCS_TEST_F(test_emu_late, nic_dies) {
    make_pair();
    quirk("late-write:60s");
    write_words();
    EXPECT_TRUE(a->read(*b, 100, 4096, 8, 0).completes(IBV_WC_SUCCESS));
    a->put(4096, 3);
    EXPECT_TRUE(a->write(*b, 101, 4096, 8, 4096).completes(IBV_WC_SUCCESS));
    fabric().command("nic", {"1:0", "kill"});
    (**b)("destroy", b->qp);
    EXPECT_EQ(0u, b->get(4096));
    EXPECT_EQ(num_writes, acted("late-write"));
}

/* The delayed writes of a dead target are dropped, and free their room */
UCS_TEST_F(test_emu_late, target_dies) {
    make_pair();
    quirk("late-write:60s");
    write_words();
    a->read(*b, 100, 4096, 8, 0); /* one occurrence at least */
    EXPECT_TRUE(a->completes(100, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->write(*b, 101, 4096, 8, 4096).completes(IBV_WC_SUCCESS));
    (**b).kill();
    EXPECT_NE(std::string::npos, fabric().command("status").find("processes 1"));
    EXPECT_TRUE(a->write(*b, 102, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(num_writes, acted("late-write"));
}
