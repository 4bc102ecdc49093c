/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Processes that die, the trace, and which accesses are atomic with each other.
 */
#include "test_emu_event.h"

#include <algorithm>
#include <functional>

class test_emu_proc : public test_emu_event {
};

UCS_TEST_F(test_emu_proc, killed_peer) {
    make_pair();
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    (**b).kill();
    a->write(*b, 2, 0, 8, 0);
    a->read(*b, 3, 0, 8, 0);
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(3, IBV_WC_WR_FLUSH_ERR));
    b.reset();

    /* Others are not affected, and its resources are free again */
    make_pair();
    EXPECT_TRUE(a->write(*b, 4, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(std::string::npos, fabric().command("status").find("dead"));
}

UCS_TEST_F(test_emu_proc, killed_again_and_again_in_the_middle) {
    /* Processes die while others use the same host */
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
    static const unsigned num = 3;
    emu::side target(fabric(), 1, 0);
    std::vector<std::unique_ptr<emu::side>> from;
    uint64_t rounds = 0;

    /* One word, and a QP for each requester */
    for (unsigned i = 0; i < num; ++i) {
        from.emplace_back(new emu::side(fabric(), 0, 0));
        emu::side &side   = *from.back();
        emu::numbers_t qp = (*target)("qp", target.ctx, (int)IBV_QPT_RC,
                                      target.cq, -1, 1);

        (*target)("connect", qp.at(0), side.qpn, side.lid, 8, 3, 7);
        (*side)("connect", side.qp, qp.at(1), target.lid, 10, 7, 7);
    }
    for (unsigned i = 0; i < num; ++i) {
        fault("exec op=faa qp=" + std::to_string(from[i]->qpn) + " nth=1000 count");
    }
    for (auto &side : from) {
        side->begin_storm(target);
    }
    for (unsigned i = 0; i < num; ++i) {
        EXPECT_TRUE(rcv::wait_until([&] { return fired(i + 1) == 1; }));
    }
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
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(c.write(d, 2, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->async(100).empty());
    EXPECT_EQ(1u, trace(1).size());
    EXPECT_EQ("", other.command("trace"));
}

UCS_TEST_F(test_emu_proc, memory_within_one_process) {
    /* Loopback: host to itself, and two QPs of one host */
    emu::side c(fabric(), 0, 0);

    c.connect(c);
    c.fill(0, 5000, 1);
    EXPECT_TRUE(c.write(c, 1, 0, 5000, 8192).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(5000ul, c.match(8192, 5000, 1));
    EXPECT_TRUE(c.faa(c, 2, 0, 16384, 3).completes(IBV_WC_SUCCESS));
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
        EXPECT_TRUE(a->write(*b, i, 0, 8, 8 * i).completes(IBV_WC_SUCCESS));
    }
    rcv::process command({rcv::fabric::tool(), "trace", "-n", fabric().name(),
                          "--json"});
    EXPECT_EQ(3, command.wait());
    EXPECT_NE(std::string::npos, command.output().find("{\"lost\":4}"))
            << command.output();
    EXPECT_NE(std::string::npos, command.output().find("larger --trace"));
}

UCS_TEST_F(test_emu_trace, follow) {
    rcv::process command({rcv::fabric::tool(), "trace", "-n", fabric().name(),
                          "--follow", "1"});

    make_pair();
    for (int i = 0; i < 10; ++i) {
        EXPECT_TRUE(a->write(*b, i, 0, 8, 8 * i).completes(IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(command.wait_for("10 ")) << command.output();
    command.kill(SIGINT);
    EXPECT_EQ(0, command.wait()) << command.output();
}


/* Atomics of two processes on one word, through different links of its host */
class test_emu_hca : public emu::test_emu {
protected:
    struct result {
        uint64_t rounds;
        uint64_t value;
    };

    /* Until a condition is met */
    result storm_on_both_links(const std::function<bool()> &is_met)
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
        EXPECT_TRUE(rcv::wait_until(is_met));
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
        return {"--shared-hca", "--trace", "1000000"};
    }

    bool has_trace() const override
    {
        return false; /* that ends with whole writes */
    }
};

UCS_TEST_F(test_emu_hca_shared, one_nic_loses_no_update) {
    /* Of each round two */
    result r = storm_on_both_links([&] {
        return (counter(0, 0, "wqes") >= 5000) && (counter(0, 1, "wqes") >= 5000);
    });

    EXPECT_GE(r.rounds, 2 * 2499ul);
    EXPECT_GE(r.value, r.rounds);
    EXPECT_LE(r.value, r.rounds + 2);

    /* The trace has them in the order in which they were executed */
    std::vector<uint64_t> values;
    for (const emu::trace_entry &entry : trace(1)) {
        if ((entry.op == "faa") && !entry.duplicate) {
            values.push_back(entry.data);
        }
    }
    EXPECT_GE(values.size(), 1000u);
    EXPECT_TRUE(std::is_sorted(values.begin(), values.end()));
}

/* The window between reading and writing, held open */
class test_emu_rmw : public emu::test_emu {
protected:
    /* Adds 1 to a word of b through link 0. Between its read and its write, adds 1
     * through link 1, or the CPU of b stores 10. @a rules: the delay of the first
     * one. */
    uint64_t race(const rcv::args_t &rules, bool with_cpu)
    {
        make_pair(0, emu::patient_timeout, 7);
        emu::side view = *b, other(fabric(), 0, 1);
        emu::numbers_t n;

        view.ctx  = (**b)("open", 1).at(0);
        view.rkey = (**b)("alias", view.ctx, b->mem, emu::all_access).at(1);
        view.cq   = (**b)("cq", view.ctx, 16, 0).at(0);
        n         = (**b)("qp", view.ctx, (int)IBV_QPT_RC, view.cq, -1, 1);
        view.qp   = n.at(0);
        view.qpn  = n.at(1);
        view.connect(other, emu::patient_timeout, 7);
        other.connect(view, emu::patient_timeout, 7);

        for (const std::string &rule : rules) {
            fault(rule);
        }
        (**a).begin(a->send_line(IBV_WR_ATOMIC_FETCH_AND_ADD, *b, 1, 0, 8, 0,
                                 1));
        EXPECT_TRUE(rcv::wait_until([&] { return fired(1) == 1; }));
        if (with_cpu) {
            b->put(0, 10);
            fabric().link(0, 1, "down");
        } else {
            EXPECT_TRUE(other.faa(view, 2, 0, 0, 1).completes(IBV_WC_SUCCESS));
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

/* As with real ones: atomicity is per NIC. Some atomics of one link wait for one of the
 * other link between their read and their write */
UCS_TEST_F(test_emu_hca, two_nics_lose_updates) {
    fault("rmw op=faa link=0 nth=100 count=3 delay=until:other", 3);
    fault("exec op=faa link=0 nth=103 count"); /* They are over */
    fabric().command("fault", {"add", "exec op=faa link=1 name=other count=all count"});
    result r = storm_on_both_links([&] { return fired(2) == 1; });

    EXPECT_LE(r.value, r.rounds + 2);
    EXPECT_LT(r.value, r.rounds);
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

/* A program may return from main() while its threads post: it must not crash, and must
 * not leave anything */
UCS_TEST_F(test_emu_exit, while_threads_write) {
    for (int i = 0; i < 4; ++i) {
        rcv::process_ptr process = start({"exit", "4"});

        EXPECT_EQ(0, process->wait()) << process->output();
    }
    expect_nothing_left();
}

/* ... nor wait for a thread in an atomic, with locks of the NIC; the NIC continues
 * without it */
UCS_TEST_F(test_emu_exit, while_a_thread_holds_the_nic) {
    fault("rmw delay=until:never");
    rcv::process_ptr process = start({"exit_inside"});

    ASSERT_TRUE(process->wait_for("\n")) << process->output();
    ASSERT_TRUE(rcv::wait_until([&] { return fired(1) == 1; }));
    ASSERT_EQ(0, ::kill(std::stoi(process->output().substr(strlen("pid "))),
                        SIGUSR1));
    EXPECT_EQ(0, process->wait()) << process->output();
    expect_nothing_left();

    make_pair();
    EXPECT_TRUE(b->faa(*a, 1, 0, 0, 1).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(1ul, a->get(0));
}
