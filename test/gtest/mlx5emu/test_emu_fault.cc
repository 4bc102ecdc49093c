/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links that fail and faults at exact points: checks what the requester sees, what was
 * executed (memory and trace), and that the fault fired.
 */

#include "test_emu.h"

#include "tools/mlx5emu/rules/emu_fault_rule.h"

class test_emu_link : public emu::test_emu {
protected:
    /* Fails within the retries; later requests are flushed */
    void expect_dead()
    {
        for (int i = 0; i < 4; ++i) {
            a->write(*b, i, 0, 8, 8 * i);
        }
        EXPECT_TRUE(a->completes(0, IBV_WC_RETRY_EXC_ERR));
        for (int i = 1; i < 4; ++i) {
            EXPECT_TRUE(a->completes(i, IBV_WC_WR_FLUSH_ERR));
        }
        EXPECT_TRUE(a->is_quiet());
        EXPECT_EQ(0u, trace(1).size());
        EXPECT_GT(counter(0, 0, "timeouts"), 0ul);
    }

    void expect_works(emu::side &from, emu::side &to, uint64_t value)
    {
        from.put(0, value);
        EXPECT_TRUE(from.write(to, value, 0, 8, 0).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(value, to.get(0));
    }
};

UCS_TEST_F(test_emu_link, down_raises_an_event) {
    make_pair();
    fabric().link(0, 0, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), a->async());
    EXPECT_EQ((uint64_t)IBV_PORT_DOWN, (**a)("port", a->ctx).at(0));
    expect_dead();
    EXPECT_TRUE(b->async(0).empty());

    fabric().link(0, 0, "up");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ACTIVE, 1}), a->async());
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, (**a)("port", a->ctx).at(0));
    make_pair();
    expect_works(*a, *b, 5);
}

UCS_TEST_F(test_emu_link, silent_raises_none) {
    make_pair();
    fabric().link(0, 0, "silent");
    expect_dead();
    EXPECT_TRUE(a->async(200).empty());
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, (**a)("port", a->ctx).at(0));

    fabric().link(0, 0, "up");
    EXPECT_TRUE(a->async(200).empty());
    make_pair();
    expect_works(*a, *b, 5);
}

UCS_TEST_F(test_emu_link, loopback_needs_a_port_that_is_not_down) {
    a.reset(new emu::side(fabric(), 0, 0));
    b.reset(new emu::side(fabric(), 0, 0));
    a->connect(*b);
    b->connect(*a);
    expect_works(*a, *b, 5);
    fabric().link(0, 0, "silent");   /* the fault is after the NIC */
    expect_works(*a, *b, 6);
    fabric().link(0, 0, "down");
    EXPECT_TRUE(a->write(*b, 7, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(2u, executed(0, "write"));
}

UCS_TEST_F(test_emu_link, the_responders_link_counts_too) {
    make_pair();
    fabric().link(1, 0, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), b->async());
    expect_dead();
    EXPECT_TRUE(a->async(0).empty());
}

UCS_TEST_F(test_emu_link, planes_are_separate) {
    make_pair(1);
    fabric().link(0, 0, "down");
    expect_works(*a, *b, 5);
    EXPECT_TRUE(a->async(100).empty());
    fabric().link(0, 1, "silent");
    EXPECT_TRUE(a->write(*b, 6, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
}

UCS_TEST_F(test_emu_link, rules_change_two_links_at_one_event) {
    make_pair();
    fault("post nth=2 down=0:1", 1);
    fault("post nth=2 silent=1:0", 1);
    expect_works(*a, *b, 5);
    EXPECT_TRUE(a->write(*b, 6, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));

    std::string status = fabric().command("status");
    EXPECT_NE(std::string::npos, status.find("mlx5_1  lid 1  down")) << status;
    EXPECT_NE(std::string::npos, status.find("mlx5_0  lid 2  silent")) << status;
}

UCS_TEST_F(test_emu_link, back_before_the_retries_run_out) {
    make_pair(0, 14, 7);  /* 67 ms each */
    fault("packet op=write try=again nth=2 up");
    fabric().link(0, 0, "silent");
    a->put(0, 9);
    a->write(*b, 1, 0, 8, 0);
    a->faa(*b, 2, 8, 8, 1);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_SUCCESS));
    EXPECT_EQ(9ul, b->get(0));
    EXPECT_EQ(1ul, b->get(8));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ(1u, executed(1, "faa"));
    EXPECT_GT(counter(0, 0, "retransmitted_packets"), 0ul);
}

UCS_TEST_F(test_emu_link, retry_count_is_kept) {
    make_pair(0, 10, 2);
    fabric().link(0, 0, "silent");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    /* Two retries: three times without an answer */
    EXPECT_EQ(3ul, counter(0, 0, "timeouts"));
    EXPECT_EQ(2ul, counter(0, 0, "retransmitted_packets"));
}


class test_emu_fault : public emu::test_emu {
protected:
    static const uint64_t mtu = 1024;
};

UCS_TEST_F(test_emu_fault, multi_packet_write_is_cut) {
    uint64_t size = 10 * mtu;

    for (unsigned n = 1; n <= 10; ++n) {
        make_pair(0, 8, 1);
        a->fill(0, size, n);
        fault("packet op=write qp=" + std::to_string(a->qpn) + " pkt=" +
              std::to_string(n) + " silent");
        EXPECT_TRUE(a->write(*b, 1, 0, size, 0).completes(IBV_WC_RETRY_EXC_ERR));

        /* Exactly the packets before the cut */
        EXPECT_EQ((n - 1) * mtu, b->match(0, size, n)) << "cut at " << n;
        EXPECT_EQ(size - (n - 1) * mtu,
                  b->zeroes((n - 1) * mtu, size - (n - 1) * mtu));
        EXPECT_EQ(0u, executed(1, "write"));
        fabric().link(0, 0, "up");
    }
}

UCS_TEST_F(test_emu_fault, lost_packet_in_the_middle_is_sent_again) {
    uint64_t size = 10 * mtu;

    make_pair();
    a->fill(0, size, 1);
    fault("packet op=write pkt=5 drop");
    EXPECT_TRUE(a->write(*b, 1, 0, size, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(size, b->match(0, size, 1));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ(1ul, counter(0, 0, "dropped_by_fault"));
    EXPECT_GT(counter(0, 0, "retransmitted_packets"), 0ul);
}

UCS_TEST_F(test_emu_fault, lost_ack_of_a_write) {
    make_pair();
    fault("ack op=write drop");
    a->put(0, 3);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(3ul, b->get(0));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_GT(counter(1, 0, "duplicate_requests"), 0ul);

    /* The trace shows which answer was lost, and which arrived */
    std::vector<emu::trace_entry> t = trace(1);
    ASSERT_GE(t.size(), 2u);
    EXPECT_EQ("lost", t.front().ack);
    EXPECT_FALSE(t.front().duplicate);
    EXPECT_EQ("sent", t.back().ack);
    EXPECT_TRUE(t.back().duplicate);
    EXPECT_EQ(t.front().id, t.back().id);

    EXPECT_TRUE(a->write(*b, 2, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_NE(t.front().id, trace(1).back().id);
}

UCS_TEST_F(test_emu_fault, lost_response_does_not_repeat_an_atomic) {
    make_pair();
    b->put(0, 100);
    b->put(8, 7);
    fault("ack op=faa count=3 drop", 3);
    EXPECT_TRUE(a->faa(*b, 1, 0, 0, 1).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(100ul, a->get(0));
    EXPECT_EQ(101ul, b->get(0));
    EXPECT_EQ(1u, executed(1, "faa"));

    fault("ack op=cas drop");
    EXPECT_TRUE(a->cas(*b, 2, 8, 8, 7, 8).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(7ul, a->get(8));   /* the second answer would be 8 */
    EXPECT_EQ(8ul, b->get(8));
    EXPECT_EQ(1u, executed(1, "cas"));

    unsigned duplicates = 0;
    for (const emu::trace_entry &entry : trace(1)) {
        duplicates += entry.duplicate;
    }
    EXPECT_EQ(4u, duplicates);
}

UCS_TEST_F(test_emu_fault, many_atomics_with_losses) {
    make_pair(0, 8, 7);
    fault("ack op=faa nth=3 count=1 drop");
    fault("packet op=faa nth=9 count=1 drop");
    fault("ack op=faa nth=20 count=1 drop");
    for (int i = 0; i < 40; ++i) {
        a->faa(*b, i, 8 * i, 0, 1);
    }
    for (int i = 0; i < 40; ++i) {
        ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        EXPECT_EQ((uint64_t)i, a->get(8 * i));
    }
    EXPECT_EQ(40ul, b->get(0));
    EXPECT_EQ(40u, executed(1, "faa"));
}

UCS_TEST_F(test_emu_fault, lost_response_of_a_read) {
    make_pair();
    b->fill(0, 4 * mtu, 9);
    fault("ack op=read drop");
    EXPECT_TRUE(a->read(*b, 1, 0, 4 * mtu, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(4 * mtu, a->match(0, 4 * mtu, 9));
}

UCS_TEST_F(test_emu_fault, executed_but_never_acknowledged) {
    make_pair(0, 8, 1);
    fault("exec op=faa silent");
    b->put(0, 50);
    EXPECT_TRUE(a->faa(*b, 1, 0, 0, 1).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(51ul, b->get(0));
    EXPECT_EQ(0ul, a->get(0));
    EXPECT_EQ(1u, executed(1, "faa"));
}

UCS_TEST_F(test_emu_fault, between_two_operations_of_a_qp) {
    for (const char *state : {"silent", "down"}) {
        make_pair(0, 8, 1);
        fault("post qp=" + std::to_string(a->qpn) + " nth=3 " + state);
        for (int i = 0; i < 4; ++i) {
            a->put(8 * i, i + 1);
            a->write(*b, i, 8 * i, 8, 8 * i);
        }
        EXPECT_TRUE(a->completes(0, IBV_WC_SUCCESS));
        EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
        EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
        EXPECT_TRUE(a->completes(3, IBV_WC_WR_FLUSH_ERR));
        EXPECT_EQ(2ul, b->get(8));
        EXPECT_EQ(0ul, b->get(16));
        EXPECT_EQ(0ul, b->get(24));
        if (!strcmp(state, "down")) {
            EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), a->async());
        } else {
            EXPECT_TRUE(a->async(300).empty());
        }
        fabric().link(0, 0, "up");
    }
    EXPECT_EQ(4u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, duplicated_packets_are_executed_once) {
    make_pair();
    fault("packet op=faa count=5 dup", 5);
    fault("packet op=write count=5 dup=2ms", 5);
    for (int i = 0; i < 5; ++i) {
        EXPECT_TRUE(a->faa(*b, i, 0, 0, 1).completes(IBV_WC_SUCCESS));
        EXPECT_EQ((uint64_t)i, a->get(0));
        a->put(8, i);
        EXPECT_TRUE(a->write(*b, 100 + i, 8, 8, 8 + 8 * i).completes(IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(rcv::wait_until([&] {
        return counter(1, 0, "duplicate_requests") >= 10;
    }));
    EXPECT_TRUE(a->is_quiet(0));
    EXPECT_EQ(5ul, b->get(0));
    EXPECT_EQ(5u, executed(1, "faa"));
    EXPECT_EQ(5u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, late_duplicate_does_not_undo_a_later_write) {
    make_pair();
    fault("packet op=write dup=until:down=0:1");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    a->put(0, 2);
    EXPECT_TRUE(a->write(*b, 2, 0, 8, 0).completes(IBV_WC_SUCCESS));
    fabric().link(0, 1, "down");
    EXPECT_TRUE(rcv::wait_until([&] {
        return counter(1, 0, "duplicate_requests") > 0;
    }));
    EXPECT_TRUE(a->is_quiet(0));
    EXPECT_EQ(2ul, b->get(0));
    EXPECT_EQ(1ul, counter(1, 0, "duplicate_requests"));
}

UCS_TEST_F(test_emu_fault, delayed_packet) {
    make_pair(0, emu::patient_timeout, 7);  /* no retransmission meanwhile */
    fault("packet op=write delay=300ms");
    a->put(0, 1);

    rcv::stopwatch watch;
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_GE(watch.ms(), 300);
    EXPECT_EQ(1ul, b->get(0));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ(0ul, counter(0, 0, "retransmitted_packets"));
}

UCS_TEST_F(test_emu_fault, delayed_packet_outlives_its_requester) {
    /* Why a recovery needs a fence at the responder */
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:down=0:1");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(0ul, b->get(0));
    a->put(0, 99);   /* the packet has its own copy */
    fabric().link(0, 1, "down");
    EXPECT_TRUE(rcv::wait_until([&] { return b->get(0) != 0; }));
    EXPECT_TRUE(a->is_quiet());
    EXPECT_EQ(1ul, b->get(0));
    EXPECT_EQ(1u, executed(1, "write"));
}

/* A switch delivers what it has, whatever becomes of the port that sent it */
UCS_TEST_F(test_emu_fault, delayed_packet_outlives_its_senders_port) {
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:down=0:0");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    fabric().link(0, 0, "down");
    EXPECT_TRUE(rcv::wait_until([&] { return b->get(0) != 0; }));
    EXPECT_EQ(1u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, delayed_packet_outlives_its_senders_nic) {
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:down=0:1");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    fabric().command("nic", {"0:0", "kill"});
    fabric().link(0, 1, "down");
    EXPECT_TRUE(rcv::wait_until([&] { return b->get(0) != 0; }));
    EXPECT_EQ(1u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, delayed_packet_needs_the_port_that_it_is_for) {
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:down=1:0");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    fabric().link(1, 0, "down");
    EXPECT_TRUE(rcv::wait_until([&] { return counter(0, 0, "dropped_by_link") > 0; }));
    EXPECT_EQ(0u, trace(1).size());
}

/* What a rule would delay has not left a port whose link is cut */
UCS_TEST_F(test_emu_fault, delayed_packet_has_to_leave) {
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:down=0:1");
    fault("packet op=write silent", 1);
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    fabric().link(0, 0, "up");
    fabric().link(0, 1, "down");
    EXPECT_TRUE(a->is_quiet());
    EXPECT_EQ(0u, trace(1).size());
}

UCS_TEST_F(test_emu_fault, fence_at_the_responder_stops_a_delayed_packet) {
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:down=0:1");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    fabric().link(0, 1, "down");
    EXPECT_TRUE(a->is_quiet(500));
    EXPECT_EQ(0ul, b->get(0));
    EXPECT_EQ(0u, trace(1).size());
}

UCS_TEST_F(test_emu_fault, what_is_behind_an_executed_write_never_was) {
    /* A big write, followed by a small one that shows its end */
    make_pair(0, 8, 1);
    a->fill(0, 3 * mtu, 1);
    fault("post op=write size=8 prev=write prev_size=1k- nth=2 silent");
    for (int i = 0; i < 2; ++i) {
        a->write(*b, 10 + i, 0, 3 * mtu, 4 * mtu * i);
        a->write(*b, 20 + i, 0, 8, 65536 + 8 * i);
    }
    EXPECT_TRUE(a->completes(10, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(20, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(11, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(21, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(3 * mtu, b->match(4 * mtu, 3 * mtu, 1));
    EXPECT_NE(0ul, b->get(65536));
    EXPECT_EQ(0ul, b->get(65536 + 8));
    EXPECT_EQ(3u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, executed_unacknowledged_and_nothing_behind_it) {
    make_pair(0, 8, 1);
    fault("exec op=write size=3k silent");
    a->fill(0, 3 * mtu, 1);
    a->write(*b, 1, 0, 3 * mtu, 0);
    a->write(*b, 2, 0, 8, 65536);
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(3 * mtu, b->match(0, 3 * mtu, 1));
    EXPECT_EQ(0ul, b->get(65536));
    EXPECT_EQ(1u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, middle_packet) {
    make_pair(0, 8, 1);
    fault("packet op=write pkt=middle silent");
    a->fill(0, 3 * mtu, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 3 * mtu, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(1 * mtu, b->match(0, 3 * mtu, 1));
    EXPECT_EQ(0u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, held_until_a_rule_fires) {
    make_pair(0, 8, 0);
    fault("packet op=write delay=until:later");
    fault("exec op=faa nth=2 name=later count");
    a->put(0, 1);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->is_quiet(100));
    EXPECT_EQ(0ul, b->get(0));

    /* The later event is one of another queue pair */
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);
    c.connect(d);
    d.connect(c);
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(0ul, b->get(0));
        EXPECT_TRUE(c.faa(d, i, 0, 0, 1).completes(IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(rcv::wait_until([&] { return b->get(0) != 0; }));
    EXPECT_EQ(1ul, b->get(0));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ("write", trace(1).back().op);   /* after both atomics */
}

UCS_TEST_F(test_emu_fault, held_until_the_queue_pair_goes_on) {
    make_pair(0, emu::patient_timeout, 7);
    fault("packet op=write dup=until:post+2");
    for (int i = 0; i < 3; ++i) {
        a->put(0, i + 1);
        EXPECT_TRUE(a->write(*b, i, 0, 8, 0).completes(IBV_WC_SUCCESS));
        EXPECT_TRUE(a->is_quiet(50));
        EXPECT_TRUE((i == 2) || !counter(1, 0, "duplicate_requests"));
    }

    /* The copy of the first arrives after the third, and is refused */
    EXPECT_TRUE(rcv::wait_until([&] {
        return counter(1, 0, "duplicate_requests") > 0;
    }));
    EXPECT_EQ(3ul, b->get(0));
    EXPECT_EQ(3u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, held_until_a_link_changes) {
    make_pair(0, emu::patient_timeout, 7);
    fault("packet op=write delay=until:down=0:1");
    a->put(0, 1);
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->is_quiet(100));
    fabric().link(0, 1, "down");
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_EQ(1ul, b->get(0));
}

UCS_TEST_F(test_emu_fault, delayed_ack) {
    make_pair(0, emu::patient_timeout, 7);
    fault("ack op=faa delay=until:post+1");
    b->put(0, 5);
    a->faa(*b, 1, 0, 0, 1);
    EXPECT_TRUE(a->is_quiet());
    EXPECT_EQ(6ul, b->get(0));
    a->faa(*b, 2, 8, 0, 1);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_SUCCESS));
    EXPECT_EQ(5ul, a->get(0));
    EXPECT_EQ(6ul, a->get(8));
    EXPECT_EQ(7ul, b->get(0));
    EXPECT_EQ(2u, executed(1, "faa"));
}

UCS_TEST_F(test_emu_fault, delayed_ack_outlives_the_responders_port) {
    make_pair(0, emu::patient_timeout, 7);
    fault("ack op=write delay=until:down=1:0");
    a->write(*b, 1, 0, 8, 0);
    EXPECT_TRUE(a->is_quiet());
    fabric().link(1, 0, "down");
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
}

/* The memory of a request is gone when it is sent again. Errors come in order: the one
 * before it may still complete */
UCS_TEST_F(test_emu_fault, error_of_a_retransmission_comes_in_order) {
    static const int fm_cq_update = 8, op_write = 0x08;

    make_pair(0, 17, 7);   /* 537 ms */
    emu::numbers_t mr = (**a)("mr", a->ctx, 4096, emu::all_access);
    fault("packet op=write size=16 count=2 drop", 2);
    fault("packet op=write size=8 drop");
    fault("ack op=write size=16 drop");
    (**a)("raw", a->qp, op_write, fm_cq_update, a->addr, 16, a->lkey, b->addr, b->rkey,
          0, 0);
    (**a)("raw", a->qp, op_write, fm_cq_update, mr.at(1), 8, mr.at(2), b->addr, b->rkey,
          0, 0);
    (**a)("dereg", mr.at(0));
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
    EXPECT_EQ((uint64_t)IBV_WC_LOC_PROT_ERR, a->poll().status);
}

UCS_TEST_F(test_emu_fault, only_the_chosen_operation) {
    make_pair(0, 8, 1);
    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);
    c.connect(d);
    d.connect(c);
    fault("packet qp=" + std::to_string(a->qpn) +
          " op=write size=16 count=all drop", 2);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(c.write(d, 2, 0, 16, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->read(*b, 3, 0, 16, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->write(*b, 4, 0, 16, 0).completes(IBV_WC_RETRY_EXC_ERR));
}

UCS_TEST_F(test_emu_fault, first_transmissions_only) {
    make_pair(0, 8, 1);
    fault("packet op=write try=first count=all drop", 3);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(a->write(*b, i, 0, 8, 8 * i).completes(IBV_WC_SUCCESS));
    }
    EXPECT_EQ(3u, executed(1, "write"));
}

UCS_TEST_F(test_emu_fault, sweep_one_loss_at_every_packet) {
    /* Fail at event 1, 2, 3, ... until a run has no such event */
    unsigned n = 0;
    bool found = true;

    make_pair();
    for (const char *point : {"packet", "ack"}) {
        for (n = 1, found = true; found; ++n) {
            ASSERT_LT(n, 100u);
            uint64_t before = b->get(0);
            std::string id  = fabric().command("fault",
                    {"add", std::string(point) + " nth=" + std::to_string(n) +
                     " drop"});
            uint64_t number = strtoull(id.c_str(), NULL, 10);

            a->fill(64, 3 * mtu, n);
            a->faa(*b, 1, 0, 0, 1);
            a->write(*b, 2, 64, 3 * mtu, 64);
            a->read(*b, 3, 8192, 2 * mtu, 64);
            for (int i = 1; i <= 3; ++i) {
                ASSERT_TRUE(a->completes(i, IBV_WC_SUCCESS)) << id;
            }
            EXPECT_EQ(before, a->get(0)) << id;
            EXPECT_EQ(before + 1, b->get(0)) << id;
            EXPECT_EQ(3 * mtu, b->match(64, 3 * mtu, n)) << id;
            EXPECT_EQ(2 * mtu, a->match(8192, 2 * mtu, n)) << id;
            found = fired(number) > 0;
            fabric().command("fault", {"clear"});
        }
        EXPECT_GT(n, 3u) << point;
    }
}

UCS_TEST_F(test_emu_fault, random_losses) {
    make_pair(0, 8, 7);
    fabric().command("fault",
                     {"add", "packet prob=0.05 seed=1 count=all drop"});
    fabric().command("fault", {"add", "ack prob=0.05 seed=2 count=all drop"});
    for (int i = 0; i < 300; ++i) {
        a->faa(*b, 1, 0, 0, 1);
        ASSERT_TRUE(a->completes(1, IBV_WC_SUCCESS)) << i;
        ASSERT_EQ((uint64_t)i, a->get(0));
    }
    EXPECT_EQ(300u, executed(1, "faa"));
    EXPECT_GT(fired(1), 3ul);
    EXPECT_GT(fired(2), 3ul);
}


class test_emu_scale : public emu::test_emu {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--time-scale", "200", "--seed", "77"};
    }
};

UCS_TEST_F(test_emu_scale, timers_run_faster) {
    rcv::stopwatch watch;

    /* 4 times 69 s, which is longer than the test waits */
    make_pair(0, 24, 3);
    fabric().link(0, 0, "silent");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(4ul, counter(0, 0, "timeouts"));
    EXPECT_GT(watch.ms(), 4 * 68.7e3 / 200);
}

UCS_TEST_F(test_emu_scale, delays_run_faster) {
    rcv::stopwatch watch;

    /* Longer than the test waits */
    make_pair(0, 31, 7);
    fault("packet op=write delay=240s");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_GT(watch.ms(), 240e3 / 200);
}

UCS_TEST_F(test_emu_scale, the_seed_of_the_fabric_is_that_of_its_rules) {
    std::string list;

    EXPECT_NE(std::string::npos,
              fabric().command("status").find("seed 77, time scale 200"));
    fabric().command("fault", {"add", "packet prob=0.5 count=all drop"});
    fabric().command("fault", {"add", "packet prob=0.5 count=all drop"});
    fabric().command("fault", {"add", "packet prob=0.5 seed=5 drop"});
    list = fabric().command("fault", {"list"});

    /* Printed, to repeat a run; made of 77 and the rule's number */
    EXPECT_NE(std::string::npos, list.find(std::string("seed=") +
              std::to_string(emu_fault_derive_seed(77, 1)))) << list;
    EXPECT_NE(std::string::npos, list.find(std::string("seed=") +
              std::to_string(emu_fault_derive_seed(77, 2)))) << list;
    EXPECT_NE(std::string::npos, list.find("seed=5 ")) << list;
}
