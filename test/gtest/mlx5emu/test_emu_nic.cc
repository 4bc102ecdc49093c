/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * NICs that die, queue pairs that hang, links that flap: checks what both sides see,
 * what was executed, and that the fault fired.
 */

#include "test_emu.h"

#include <errno.h>

class test_emu_nic : public emu::test_emu {
protected:
    void nic(const std::string &port, const std::string &action)
    {
        fabric().command("nic", {port, action});
    }

    /* Which error a command of an agent fails with; 0: none */
    template<typename... T> static int error_of(emu::side &s, T... words)
    {
        try {
            (*s)(words...);
            return 0;
        } catch (const emu::agent_error &e) {
            return e.code();
        }
    }

    /* All commands to a dead NIC fail, and there are no completions */
    void expect_dead(emu::side &s)
    {
        EXPECT_EQ(EIO, error_of(s, "query", s.qp));
        EXPECT_EQ(EIO, error_of(s, "state", s.qp, (int)IBV_QPS_ERR));
        EXPECT_EQ(EIO, error_of(s, "port", s.ctx));
        EXPECT_EQ(EIO, error_of(s, "mr", s.ctx, 4096, emu::all_access));
        EXPECT_EQ(EIO, error_of(s, "cq", s.ctx, 16, 0));
        EXPECT_EQ(EIO, error_of(s, "qp", s.ctx, (int)IBV_QPT_RC, s.cq, -1, 1));
        EXPECT_TRUE(s.is_quiet());
    }

    void expect_works(emu::side &from, emu::side &to, uint64_t value)
    {
        from.put(0, value);
        EXPECT_TRUE(from.write(to, value, 0, 8, 0).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(value, to.get(0));
    }
};

UCS_TEST_F(test_emu_nic, requesters_nic_dies) {
    make_pair();
    nic("0:0", "kill");
    EXPECT_EQ((uint64_t)IBV_EVENT_DEVICE_FATAL, a->async().at(0));
    a->write(*b, 1, 0, 8, 0);   /* posting is between a program and memory */
    expect_dead(*a);
    EXPECT_EQ(0u, trace(1).size());
    EXPECT_TRUE(b->async(0).empty());

    /* The peer's requests are not answered */
    EXPECT_TRUE(b->write(*a, 2, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(0u, trace(0).size());
}

UCS_TEST_F(test_emu_nic, responders_nic_dies_in_silence) {
    make_pair();
    fabric().command("nic", {"--silent", "1:0", "kill"});
    a->write(*b, 1, 0, 8, 0);
    a->write(*b, 2, 0, 8, 0);
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(b->async(100).empty());
    expect_dead(*b);
    EXPECT_EQ(0u, trace(1).size());
}

UCS_TEST_F(test_emu_nic, revived_nic_is_a_new_one) {
    make_pair();
    nic("0:0", "kill");
    EXPECT_THROW(emu::side(fabric(), 0, 0), emu::agent_error);
    nic("0:0", "revive");
    expect_dead(*a);   /* old objects stay dead */
    EXPECT_TRUE(b->write(*a, 2, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(0u, trace(0).size());

    make_pair();
    expect_works(*a, *b, 5);
    expect_works(*b, *a, 6);
}

UCS_TEST_F(test_emu_nic, others_live_on) {
    make_pair(1);
    nic("0:0", "kill");
    expect_works(*a, *b, 5);
    EXPECT_TRUE(a->async(100).empty());
    EXPECT_NE(std::string::npos,
              fabric().command("status").find("mlx5_0  lid 1  dead"));
}

UCS_TEST_F(test_emu_nic, killed_behind_the_execution) {
    make_pair(0, 8, 1);
    fault("exec op=write nth=2 kill=1:0");
    for (int i = 0; i < 4; ++i) {
        a->put(8 * i, i + 1);
        a->write(*b, i, 8 * i, 8, 8 * i);
    }
    EXPECT_TRUE(a->completes(0, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ((uint64_t)IBV_EVENT_DEVICE_FATAL, b->async().at(0));
    EXPECT_EQ(2u, executed(1, "write"));
    EXPECT_EQ(2ul, b->get(8));
    EXPECT_EQ(0ul, b->get(16));
}

UCS_TEST_F(test_emu_nic, kills_its_own_requester) {
    make_pair();
    fault("post op=write nth=2 kill_silent");
    for (int i = 0; i < 3; ++i) {
        a->write(*b, i, 0, 8, 8 * i);
    }
    EXPECT_TRUE(a->completes(0, IBV_WC_SUCCESS));
    expect_dead(*a);
    EXPECT_TRUE(a->async(100).empty());
    EXPECT_EQ(1u, executed(1, "write"));
}


class test_emu_nic_shared : public test_emu_nic {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--shared-hca"};
    }
};

UCS_TEST_F(test_emu_nic_shared, all_its_ports_die) {
    make_pair(1);
    nic("0:0", "kill");
    EXPECT_EQ((uint64_t)IBV_EVENT_DEVICE_FATAL, a->async().at(0));
    expect_dead(*a);
}


class test_emu_hang : public emu::test_emu {
};

UCS_TEST_F(test_emu_hang, hung_request_never_completes) {
    make_pair(0, 1, 0);   /* 8 us: it would time out soon */
    fault("post op=write nth=2 hang");
    for (int i = 0; i < 4; ++i) {
        a->put(8 * i, i + 1);
        a->write(*b, i, 8 * i, 8, 8 * i);
    }
    EXPECT_TRUE(a->completes(0, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->is_quiet(300));
    EXPECT_EQ(0ul, counter(0, 0, "timeouts"));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ((uint64_t)IBV_QPS_RTS, a->state());

    /* Its responder half is not affected */
    b->put(128, 7);
    EXPECT_TRUE(b->write(*a, 9, 128, 8, 128).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(7ul, a->get(128));

    (**a)("state", a->qp, (int)IBV_QPS_ERR);
    for (int i = 1; i < 4; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_WR_FLUSH_ERR));
    }
    EXPECT_EQ(1u, executed(1, "write"));
}

UCS_TEST_F(test_emu_hang, executed_and_hung) {
    make_pair(0, 1, 0);
    fault("exec op=faa hang");
    b->put(0, 5);
    a->faa(*b, 1, 0, 0, 1);
    a->faa(*b, 2, 8, 0, 1);
    EXPECT_TRUE(a->is_quiet(200));
    EXPECT_EQ(6ul, b->get(0));
    EXPECT_EQ(1u, executed(1, "faa"));
    (**a)("destroy", a->qp);
}

UCS_TEST_F(test_emu_hang, works_again_after_reset) {
    make_pair();
    fault("packet op=write hang");
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->is_quiet());
    for (emu::side *s : {a.get(), b.get()}) {
        (**s)("state", s->qp, (int)IBV_QPS_RESET);
    }
    a->connect(*b);
    b->connect(*a);
    a->put(0, 3);
    EXPECT_TRUE(a->write(*b, 2, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(3ul, b->get(0));
}


class test_emu_flap : public emu::test_emu {
protected:
    /* Events of a port, which alternate, the first one is ERR */
    void expect_events(emu::side &s, unsigned num)
    {
        for (unsigned i = 0; i < num; ++i) {
            ASSERT_EQ((emu::numbers_t{(i & 1) ? IBV_EVENT_PORT_ACTIVE :
                                                IBV_EVENT_PORT_ERR, 1}),
                      s.async()) << "event " << i;
        }
    }

    uint64_t changes(unsigned host, unsigned link)
    {
        return number_of_port(host, link, "changes");
    }
};

UCS_TEST_F(test_emu_flap, events_come_to_who_only_waits) {
    make_pair();
    fabric().command("link", {"0:0", "flap", "20ms"});
    expect_events(*a, 8);
    EXPECT_TRUE(b->async(0).empty());

    fabric().link(0, 0, "up");
    uint64_t end = changes(0, 0);
    usleep(100000);
    EXPECT_EQ(end, changes(0, 0));
}

UCS_TEST_F(test_emu_flap, traffic_survives_with_enough_retries) {
    unsigned num = 0;

    make_pair(0, 10, 7);   /* 4 ms */
    fault("packet op=write nth=5 flap=20ms,0.85");
    do {
        for (int i = 0; i < 200; ++i, ++num) {
            a->put(0, num);
            a->write(*b, num, 0, 8, 0);
            ASSERT_TRUE(a->completes(num, IBV_WC_SUCCESS));
            ASSERT_EQ((uint64_t)num, b->get(0));
        }
    } while (counter(0, 0, "dropped_by_link") == 0);
    EXPECT_EQ(num, executed(1, "write"));
    fabric().link(0, 0, "up");
}

UCS_TEST_F(test_emu_flap, a_late_comer_keeps_the_time_too) {
    fabric().command("link", {"0:0", "flap", "20ms,0.5"});
    emu::side late(fabric(), 0, 0);
    unsigned errors = 0;

    for (int i = 0; i < 6; ++i) {
        emu::numbers_t event = late.async();

        ASSERT_EQ(2u, event.size());
        errors += (event.at(0) == IBV_EVENT_PORT_ERR);
    }
    EXPECT_EQ(3u, errors);
}
