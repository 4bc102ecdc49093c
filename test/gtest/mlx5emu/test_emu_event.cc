/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion channels, SRQs, asynchronous events, and processes that die.
 */

#include "test_emu.h"

#include <algorithm>

class test_emu_event : public emu::test_emu {
protected:
    void arm(emu::side &s, bool solicited_only = false)
    {
        (*s)("arm", s.cq, (int)solicited_only);
    }

    bool has_event(emu::side &s, unsigned timeout_ms = 10000)
    {
        return !(*s)("event", s.ctx, timeout_ms).empty();
    }
};

UCS_TEST_F(test_emu_event, wake_up_across_processes) {
    make_pair();
    for (int i = 0; i < 3; ++i) {
        b->recv(i, 0, 64);
        EXPECT_FALSE(has_event(*b, 50));
        arm(*b);
        EXPECT_FALSE(has_event(*b, 50));
        a->send(IBV_WR_SEND, *b, i, 0, 8, 0);
        EXPECT_TRUE(has_event(*b));
        EXPECT_TRUE(b->completes(i, IBV_WC_SUCCESS));
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
}

UCS_TEST_F(test_emu_event, one_event_for_one_arming) {
    make_pair();
    arm(*a);
    for (int i = 0; i < 5; ++i) {
        a->write(*b, i, 0, 8, 0);
    }
    EXPECT_TRUE(has_event(*a));
    EXPECT_FALSE(has_event(*a, 100));
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
}

UCS_TEST_F(test_emu_event, not_armed) {
    make_pair();
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_FALSE(has_event(*a, 100));
}

UCS_TEST_F(test_emu_event, solicited_only) {
    make_pair();
    b->recv(1, 0, 64);
    b->recv(2, 0, 64);
    arm(*b, true);
    a->send(IBV_WR_SEND, *b, 1, 0, 8, 0);
    EXPECT_TRUE(b->completes(1, IBV_WC_SUCCESS));
    EXPECT_FALSE(has_event(*b, 100));
    a->send(IBV_WR_SEND, *b, 2, 0, 8, 0, 0, 0,
            IBV_SEND_SIGNALED | IBV_SEND_SOLICITED);
    EXPECT_TRUE(has_event(*b));
}

UCS_TEST_F(test_emu_event, error_wakes_up) {
    make_pair();
    fabric().link(0, 0, "silent");
    arm(*a);
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(has_event(*a));
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
}

UCS_TEST_F(test_emu_event, srq) {
    make_pair(0, 8, 3, 7, true);
    emu::completion c;

    for (int i = 0; i < 10; ++i) {
        b->recv(100 + i, 4096 * i, 4096);
    }
    for (int i = 0; i < 10; ++i) {
        a->fill(0, 3000, i);
        a->send(IBV_WR_SEND, *b, i, 0, 3000, 0);
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    for (int i = 0; i < 10; ++i) {
        c = b->poll();
        ASSERT_TRUE(c.found);
        ASSERT_GE(c.wr_id, 100ul);
        ASSERT_LT(c.wr_id, 110ul);
        EXPECT_EQ(3000ul, c.length);
        EXPECT_EQ(b->qpn, c.qpn);
        EXPECT_EQ(3000ul, b->match(4096 * (c.wr_id - 100), 3000, i));
    }
}

UCS_TEST_F(test_emu_event, srq_goes_round) {
    make_pair(0, 8, 3, 7, true);
    for (int i = 0; i < 200; ++i) {
        b->recv(i, 0, 64);
        a->put(0, i);
        a->send(IBV_WR_SEND, *b, i, 0, 8, 0);
        ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        ASSERT_TRUE(b->completes(i, IBV_WC_SUCCESS));
        ASSERT_EQ((uint64_t)i, b->get(0));
    }
}

UCS_TEST_F(test_emu_event, empty_srq_is_rnr) {
    make_pair(0, 8, 3, 1, true);
    a->send(IBV_WR_SEND, *b, 1, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_RNR_RETRY_EXC_ERR));
}

/* Queue pairs whose completion queue has 8 entries */
class test_emu_overrun : public emu::test_emu {
protected:
    /* A side with such a queue. The two that come with it are not used. */
    std::unique_ptr<emu::side> make_small(unsigned host)
    {
        std::unique_ptr<emu::side> s(new emu::side(fabric(), host, 0));
        emu::numbers_t n;

        s->cq  = (**s)("cq", s->ctx, 7, 0).at(0);
        n      = (**s)("qp", s->ctx, (int)IBV_QPT_RC, s->cq, -1, 1);
        s->qp  = n.at(0);
        s->qpn = n.at(1);
        return s;
    }

    /* The queue's error, then that of each of its queue pairs, and no more */
    void expect_events(emu::side &s, std::vector<uint64_t> qpns)
    {
        std::vector<uint64_t> told;
        emu::numbers_t event;

        event = s.async(20000);
        ASSERT_FALSE(event.empty());
        EXPECT_EQ((uint64_t)IBV_EVENT_CQ_ERR, event.at(0));
        for (size_t i = 0; i < qpns.size(); ++i) {
            event = s.async(20000);
            ASSERT_FALSE(event.empty());
            EXPECT_EQ((uint64_t)IBV_EVENT_QP_FATAL, event.at(0));
            told.push_back(event.at(1));
        }
        std::sort(qpns.begin(), qpns.end());
        std::sort(told.begin(), told.end());
        EXPECT_EQ(qpns, told);
        EXPECT_TRUE(s.async(0).empty());
    }

    static const unsigned size = 8;
};

UCS_TEST_F(test_emu_overrun, of_a_send_cq) {
    a = make_small(0);
    b.reset(new emu::side(fabric(), 1, 0));
    a->connect(*b);
    b->connect(*a);

    for (unsigned i = 0; i < size; ++i) {
        a->write(*b, i, 0, 8, 0);
    }
    EXPECT_TRUE(a->async(0).empty());   /* it is just full */
    EXPECT_EQ((uint64_t)IBV_QPS_RTS, a->state());
    a->write(*b, size, 0, 8, 0);
    expect_events(*a, {a->qpn});
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, a->state());
    EXPECT_EQ((uint64_t)IBV_QPS_RTS, b->state());
    for (unsigned i = 0; i < size; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    a->write(*b, size + 1, 0, 8, 0);
    EXPECT_TRUE(a->is_quiet());         /* it is dead, and tells once */
    EXPECT_TRUE(a->async(0).empty());
    EXPECT_EQ(size + 1, executed(1, "write"));

    /* A queue pair that is started again fails at its first completion */
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*b);
    (**b)("state", b->qp, (int)IBV_QPS_RESET);
    b->connect(*a);
    EXPECT_EQ((uint64_t)IBV_QPS_RTS, a->state());
    a->write(*b, 1, 0, 8, 0);
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_FATAL, a->qpn}), a->async(20000));
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, a->state());
}

/* All that complete to it fail with it, and nobody else */
UCS_TEST_F(test_emu_overrun, takes_its_queue_pairs_along) {
    emu::numbers_t second, third;

    a      = make_small(0);
    b.reset(new emu::side(fabric(), 1, 0));
    second = (**a)("qp", a->ctx, (int)IBV_QPT_RC, a->cq, -1, 1);
    third  = (**a)("qp", a->ctx, (int)IBV_QPT_RC, 0, -1, 1);
    a->connect(*b);
    b->connect(*a);
    (**a)("connect", second.at(0), b->qpn, b->lid, 8, 3, 7);
    (**a)("connect", third.at(0), b->qpn, b->lid, 8, 3, 7);
    for (unsigned i = 0; i <= size; ++i) {
        a->write(*b, i, 0, 8, 0);
    }
    expect_events(*a, {a->qpn, second.at(1)});
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, (**a)("query", second.at(0)).at(0));
    EXPECT_EQ((uint64_t)IBV_QPS_RTS, (**a)("query", third.at(0)).at(0));
}

/* What the receiver is not told of must not be acknowledged */
UCS_TEST_F(test_emu_overrun, of_a_receive_cq) {
    a.reset(new emu::side(fabric(), 0, 0));
    b = make_small(1);
    a->connect(*b);
    b->connect(*a);

    for (unsigned i = 0; i < size + 3; ++i) {
        b->recv(i, 64 * i, 64);
    }
    for (unsigned i = 0; i < size; ++i) {
        a->send(IBV_WR_SEND, *b, i, 0, 8, 0);
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(b->async(0).empty());
    a->send(IBV_WR_SEND, *b, 100, 0, 8, 0);
    a->send(IBV_WR_SEND, *b, 101, 0, 8, 0);
    EXPECT_TRUE(a->completes(100, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(101, IBV_WC_WR_FLUSH_ERR));
    expect_events(*b, {b->qpn});
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, b->state());
    for (unsigned i = 0; i < size; ++i) {
        EXPECT_TRUE(b->completes(i, IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(b->is_quiet(50));
}

/* The same by RDMA write with immediate data: the memory is written, but the
 * writer is told that it may not be */
UCS_TEST_F(test_emu_overrun, of_a_receive_cq_by_immediates) {
    a.reset(new emu::side(fabric(), 0, 0));
    b = make_small(1);
    a->connect(*b);
    b->connect(*a);

    for (unsigned i = 0; i <= size; ++i) {
        b->recv(i, 0, 64);
        a->put(0, 500 + i);
        a->send(IBV_WR_RDMA_WRITE_WITH_IMM, *b, i, 0, 8, 4096);
        EXPECT_TRUE(a->completes(i, (i < size) ? IBV_WC_SUCCESS :
                                                 IBV_WC_RETRY_EXC_ERR));
    }
    EXPECT_EQ(500ul + size, b->get(4096));
    expect_events(*b, {b->qpn});
}

/* Flushes count, too */
UCS_TEST_F(test_emu_overrun, by_a_flush) {
    emu::numbers_t second;

    a      = make_small(0);
    b.reset(new emu::side(fabric(), 1, 0));
    second = (**a)("qp", a->ctx, (int)IBV_QPT_RC, a->cq, -1, 1);
    a->connect(*b);
    (**a)("connect", second.at(0), b->qpn, b->lid, 8, 3, 7);
    for (unsigned i = 0; i < size + 1; ++i) {
        a->recv(i, 0, 64);
    }
    (**a)("state", a->qp, (int)IBV_QPS_ERR);
    /* The one that was in ERR already has nothing to tell */
    expect_events(*a, {second.at(1)});
    for (unsigned i = 0; i < size; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_WR_FLUSH_ERR));
    }
}

UCS_TEST_F(test_emu_event, last_wqe_reached_once) {
    emu::numbers_t event;

    make_pair(0, 8, 3, 7, true);
    b->recv(1, 0, 64);
    for (int i = 0; i < 2; ++i) {
        (**b)("state", b->qp, (int)IBV_QPS_ERR);
        (**b)("state", b->qp, (int)IBV_QPS_ERR);
        EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_LAST_WQE_REACHED, b->qpn}),
                  b->async(10000));
        EXPECT_TRUE(b->async(200).empty());

        /* Receive entries belong to the SRQ, they are not flushed */
        EXPECT_TRUE(b->is_quiet());
        (**b)("state", b->qp, (int)IBV_QPS_RESET);
        b->connect(*a);
    }
}

UCS_TEST_F(test_emu_event, no_last_wqe_without_srq) {
    make_pair();
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    EXPECT_TRUE(b->async(200).empty());
}


class test_emu_proc : public test_emu_event {
};

UCS_TEST_F(test_emu_proc, killed_peer) {
    make_pair();
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    (**b).kill();
    a->write(*b, 2, 0, 8, 0);
    a->read(*b, 3, 0, 8, 0);
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(3, IBV_WC_WR_FLUSH_ERR));
    b.reset();

    /* Others are not touched, and what it had is free again */
    make_pair();
    a->write(*b, 4, 0, 8, 0);
    EXPECT_TRUE(a->completes(4, IBV_WC_SUCCESS));
    EXPECT_EQ(std::string::npos, fabric().command("status").find("dead"));
}

UCS_TEST_F(test_emu_proc, killed_again_and_again_in_the_middle) {
    /* Someone always dies while others work with the same host */
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);

    c.connect(d);
    d.connect(c);
    for (int i = 0; i < 15; ++i) {
        make_pair();
        for (int k = 0; k < 20; ++k) {
            a->write(*b, k, 0, 1 << 20, 0);
        }
        (i % 2 ? **a : **b).kill();
        c.faa(d, i, 0, 0, 1);
        ASSERT_TRUE(c.completes(i, IBV_WC_SUCCESS));
    }
    EXPECT_EQ(15ul, d.get(0));
}

UCS_TEST_F(test_emu_proc, requester_killed_inside_its_doorbell) {
    unsigned seed = ucs::rand();

    UCS_TEST_MESSAGE << "seed " << seed;
    for (int i = 0; i < 30; ++i) {
        a.reset(new emu::side(fabric(), 0, 0));
        emu::side witness(fabric(), 0, 0), c(fabric(), 1, 0), d(fabric(), 1, 0);

        a->connect(c);
        c.connect(*a);
        witness.connect(d);
        d.connect(witness);
        a->begin_storm(c);
        usleep(rand_r(&seed) % 5000);
        (**a).kill();

        /* The same NIC still does atomics, for others */
        witness.faa(d, 1, 0, 0, 1);
        ASSERT_TRUE(witness.completes(1, IBV_WC_SUCCESS)) << i;
        ASSERT_EQ(1ul, d.get(0));
    }
}

UCS_TEST_F(test_emu_proc, responder_killed_under_fire) {
    unsigned seed = ucs::rand();

    UCS_TEST_MESSAGE << "seed " << seed;
    for (int i = 0; i < 20; ++i) {
        make_pair();
        a->begin_storm(*b);
        usleep(rand_r(&seed) % 5000);
        (**b).kill();
        emu::numbers_t result = (**a).finish();
        ASSERT_EQ((uint64_t)IBV_WC_RETRY_EXC_ERR, result.at(0)) << i;
    }
}

UCS_TEST_F(test_emu_proc, atomics_of_several_processes_add_up) {
    static const int num = 3;
    emu::side target(fabric(), 1, 0);
    std::vector<std::unique_ptr<emu::side>> from;
    uint64_t rounds = 0;

    /* One word, and a QP for each requester */
    for (int i = 0; i < num; ++i) {
        from.emplace_back(new emu::side(fabric(), 0, 0));
        emu::side &side   = *from.back();
        emu::numbers_t qp = (*target)("qp", target.ctx, (int)IBV_QPT_RC,
                                      target.cq, -1, 1);

        (*target)("connect", qp.at(0), side.qpn, side.lid, 8, 3, 7);
        (*side)("connect", side.qp, qp.at(1), target.lid, 10, 7, 7);
    }
    for (auto &side : from) {
        side->begin_storm(target);
    }
    usleep(300000);
    fabric().link(1, 0, "silent");
    for (auto &side : from) {
        emu::numbers_t result = (**side).finish();

        EXPECT_EQ((uint64_t)IBV_WC_RETRY_EXC_ERR, result.at(0));
        EXPECT_GT(result.at(1), 0ul);
        rounds += result.at(1);
    }
    /* Of the last round of each, the atomic may have been executed */
    EXPECT_GE(target.get(0), rounds);
    EXPECT_LE(target.get(0), rounds + num);
}

UCS_TEST_F(test_emu_proc, nothing_is_left_of_the_killed) {
    rcv::args_t json = {"--json"};

    for (int i = 0; i < 5; ++i) {
        make_pair();
        (**a).kill();
        (**b).kill();
    }
    a.reset();
    b.reset();
    fabric().command("status");

    std::string status = fabric().command("status", json);
    EXPECT_NE(std::string::npos, status.find("\"qps\": []")) << status;
    EXPECT_NE(std::string::npos, status.find("\"processes\": []")) << status;
    EXPECT_NE(std::string::npos, status.find("\"queue_bytes\": 0,")) << status;
}

UCS_TEST_F(test_emu_proc, two_fabrics_side_by_side) {
    rcv::fabric other;

    make_pair();
    emu::side c(other, 0, 0), d(other, 1, 0);
    c.connect(d);
    d.connect(c);
    other.link(0, 0, "down");
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    c.write(d, 2, 0, 8, 0);
    EXPECT_TRUE(c.completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->async(100).empty());
    EXPECT_EQ(1u, trace(1).size());
    EXPECT_EQ("", other.command("trace"));
}

UCS_TEST_F(test_emu_proc, memory_within_one_process) {
    /* Loopback: host to itself, and two QPs of one host */
    emu::side c(fabric(), 0, 0);

    c.connect(c);
    c.fill(0, 5000, 1);
    c.write(c, 1, 0, 5000, 8192);
    EXPECT_TRUE(c.completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(5000ul, c.match(8192, 5000, 1));
    c.faa(c, 2, 0, 16384, 3);
    EXPECT_TRUE(c.completes(2, IBV_WC_SUCCESS));
    EXPECT_EQ(3ul, c.get(16384));
}


class test_emu_trace : public emu::test_emu {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--trace", "16"};
    }
};

UCS_TEST_F(test_emu_trace, overflow_is_told) {
    make_pair();
    for (int i = 0; i < 20; ++i) {
        a->write(*b, i, 0, 8, 8 * i);
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    rcv::process command({rcv::fabric::tool(), "trace", "-n", fabric().name(),
                          "--json"});
    EXPECT_EQ(3, command.wait(20));
    EXPECT_NE(std::string::npos, command.output().find("{\"lost\":4}"))
            << command.output();
    EXPECT_NE(std::string::npos, command.output().find("larger --trace"));
}

UCS_TEST_F(test_emu_trace, follow) {
    rcv::process command({rcv::fabric::tool(), "trace", "-n", fabric().name(),
                          "--follow", "1"});

    make_pair();
    for (int i = 0; i < 10; ++i) {
        a->write(*b, i, 0, 8, 8 * i);
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(command.wait_for("10 ", 20)) << command.output();
    command.kill(SIGINT);
    EXPECT_EQ(0, command.wait(20)) << command.output();
}


/* Atomics of two processes on one word, through different links of its host */
class test_emu_hca : public emu::test_emu {
protected:
    struct result {
        uint64_t rounds;
        uint64_t value;
    };

    result storm_on_both_links(unsigned ms)
    {
        emu::side target(fabric(), 1, 0);
        emu::side from[2] = {emu::side(fabric(), 0, 0),
                             emu::side(fabric(), 0, 1)};
        result r          = {0, 0};

        for (int link = 0; link < 2; ++link) {
            emu::side view   = target;
            emu::side &side  = from[link];
            emu::numbers_t n;

            view.ctx  = (*target)("open", link).at(0);
            n         = (*target)("alias", view.ctx, target.mem,
                                  emu::all_access);
            view.rkey = n.at(1);
            view.cq   = (*target)("cq", view.ctx, 16, 0).at(0);
            n         = (*target)("qp", view.ctx, (int)IBV_QPT_RC, view.cq, -1,
                                  1);
            view.qp   = n.at(0);
            view.qpn  = n.at(1);
            view.connect(side);
            side.connect(view, 10, 7);
            side.begin_storm(view);
        }
        usleep(ms * 1000);
        for (int link = 0; link < 2; ++link) {
            fabric().link(1, link, "silent");
        }
        for (emu::side &side : from) {
            r.rounds += (*side).finish().at(1);
        }
        for (int link = 0; link < 2; ++link) {
            fabric().link(1, link, "up");
        }
        r.value = target.get(0);
        return r;
    }
};

class test_emu_hca_shared : public test_emu_hca {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--shared-hca", "--trace", "0"};
    }

    bool has_trace() const override
    {
        return false;
    }
};

UCS_TEST_F(test_emu_hca_shared, one_nic_loses_no_update) {
    result r = storm_on_both_links(500);

    EXPECT_GT(r.rounds, 0ul);
    EXPECT_GE(r.value, r.rounds);
    EXPECT_LE(r.value, r.rounds + 2);
}

/* The window between reading and writing, held open */
class test_emu_rmw : public emu::test_emu {
protected:
    /* Adds 1 to a word of b through link 0, and while that is between reading
     * and writing, through link 1, or the CPU of b stores 10 there. @a rules:
     * for how long the first waits. */
    uint64_t race(const rcv::args_t &rules, bool with_cpu)
    {
        make_pair(0, 20, 7);
        emu::side view = *b, other(fabric(), 0, 1);
        emu::numbers_t n;

        view.ctx  = (**b)("open", 1).at(0);
        view.rkey = (**b)("alias", view.ctx, b->mem, emu::all_access).at(1);
        view.cq   = (**b)("cq", view.ctx, 16, 0).at(0);
        n         = (**b)("qp", view.ctx, (int)IBV_QPT_RC, view.cq, -1, 1);
        view.qp   = n.at(0);
        view.qpn  = n.at(1);
        view.connect(other, 20, 7);
        other.connect(view, 20, 7);

        for (const std::string &rule : rules) {
            fault(rule);
        }
        (**a).begin(a->send_line(IBV_WR_ATOMIC_FETCH_AND_ADD, *b, 1, 0, 8, 0,
                                 1));
        while (fired(1) == 0) {
            usleep(1000);
        }
        if (with_cpu) {
            b->put(0, 10);
            fabric().link(0, 1, "down");
        } else {
            other.faa(view, 2, 0, 0, 1);
            EXPECT_TRUE(other.completes(2, IBV_WC_SUCCESS));
        }
        (**a).finish();
        EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
        EXPECT_EQ(with_cpu ? 1u : 2u, executed(1, "faa"));
        return b->get(0);
    }

    /* Until the other atomic was executed, or begun */
    const rcv::args_t until_executed = {
        "rmw op=faa link=0 delay=until:other",
        "exec op=faa link=1 name=other count"
    };
    const rcv::args_t until_begun    = {
        "rmw op=faa link=0 delay=until:other",
        "post op=faa link=1 name=other count"
    };
    const rcv::args_t until_down     = {
        "rmw op=faa link=0 delay=until:down=0:1"
    };
};

class test_emu_rmw_shared : public test_emu_rmw {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--shared-hca"};
    }
};

UCS_TEST_F(test_emu_rmw, two_nics_lose_an_update) {
    EXPECT_EQ(1ul, race(until_executed, false));
}

UCS_TEST_F(test_emu_rmw, nic_and_cpu_lose_an_update) {
    EXPECT_EQ(1ul, race(until_down, true));
}

UCS_TEST_F(test_emu_rmw_shared, one_nic_loses_none) {
    EXPECT_EQ(2ul, race(until_begun, false));
}

UCS_TEST_F(test_emu_rmw_shared, cpu_still_loses) {
    EXPECT_EQ(1ul, race(until_down, true));
}

UCS_TEST_F(test_emu_hca, two_nics_lose_updates) {
    /* As real ones do: atomicity is per NIC. How soon depends on the machine's
     * scheduler only. */
    for (int i = 0; i < 60; ++i) {
        result r = storm_on_both_links(500);

        EXPECT_LE(r.value, r.rounds + 2);
        if (r.value < r.rounds) {
            return;
        }
    }
    ADD_FAILURE() << "no update was lost";
}

class test_emu_exit : public emu::test_emu {
protected:
    bool has_trace() const override
    {
        return false; /* of writes that are never ended */
    }

    rcv::process_ptr start(const rcv::args_t &args)
    {
        rcv::args_t command = {RCV_TOP_BUILDDIR "/test/gtest/scale_agent"};

        command.insert(command.end(), args.begin(), args.end());
        return fabric().start(0, command);
    }

    void expect_nothing_left()
    {
        std::string status = fabric().command("status", {"--json"});

        EXPECT_EQ(std::string::npos, status.find("scale_agent")) << status;
    }
};

/* A program may return from main() while its threads post: it must not crash, and
 * nothing of it may stay */
UCS_TEST_F(test_emu_exit, while_threads_write) {
    for (int i = 0; i < 4; ++i) {
        rcv::process_ptr process = start({"exit", "4"});

        EXPECT_EQ(0, process->wait(120)) << process->output();
    }
    expect_nothing_left();
}

/* ... nor may it wait for one that is in the midst of an atomic, with locks of the
 * NIC; the NIC goes on without it */
UCS_TEST_F(test_emu_exit, while_a_thread_holds_the_nic) {
    fault("rmw delay=until:never");
    rcv::process_ptr process = start({"exit_inside"});

    ASSERT_TRUE(process->wait_for("\n", 60)) << process->output();
    for (int i = 0; (fired(1) == 0) && (i < 3000); ++i) {
        usleep(10000);
    }
    ASSERT_EQ(1ul, fired(1));
    ASSERT_EQ(0, ::kill(std::stoi(process->output().substr(strlen("pid "))),
                        SIGUSR1));
    EXPECT_EQ(0, process->wait(30)) << process->output();
    expect_nothing_left();

    make_pair();
    b->faa(*a, 1, 0, 0, 1);
    EXPECT_TRUE(b->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1ul, a->get(0));
}
