/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion channels, shared receive queues, asynchronous events, and queues that overrun.
 */
#include "test_emu_event.h"

#include <algorithm>

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
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_FALSE(has_event(*a, 100));
}

UCS_TEST_F(test_emu_event, early_completion_without) {
    make_pair();
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    b->recv(1, 0, 64);
    EXPECT_TRUE(a->send(IBV_WR_SEND, *b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    arm(*b);
    EXPECT_TRUE(has_event(*b));
    EXPECT_TRUE(b->completes(1, IBV_WC_SUCCESS));
}

/* Only the next completion raises an event */
UCS_TEST_F(test_emu_event, blind_arm) {
    quirk("1:0=blind-arm");
    make_pair();
    arm(*b);
    EXPECT_EQ(0u, acted("blind-arm"));
    b->recv(1, 0, 64);
    b->recv(2, 0, 64);
    EXPECT_TRUE(a->send(IBV_WR_SEND, *b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(has_event(*b));
    arm(*b);
    EXPECT_FALSE(has_event(*b, 100));
    EXPECT_EQ(1u, acted("blind-arm", 1, 0));
    a->send(IBV_WR_SEND, *b, 2, 0, 8, 0);
    EXPECT_TRUE(has_event(*b));
    EXPECT_TRUE(b->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(b->completes(2, IBV_WC_SUCCESS));
    arm(*b);
    EXPECT_EQ(1u, acted("blind-arm"));
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
        EXPECT_TRUE(a->send(IBV_WR_SEND, *b, i, 0, 3000, 0).completes(IBV_WC_SUCCESS));
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
    EXPECT_TRUE(a->send(IBV_WR_SEND, *b, 1, 0, 8, 0).completes(IBV_WC_RNR_RETRY_EXC_ERR));
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

    /* The error of the queue, then that of each of its queue pairs, and no more */
    void expect_events(emu::side &s, std::vector<uint64_t> qpns)
    {
        std::vector<uint64_t> told;
        emu::numbers_t event;

        event = s.async();
        ASSERT_FALSE(event.empty());
        EXPECT_EQ((uint64_t)IBV_EVENT_CQ_ERR, event.at(0));
        for (size_t i = 0; i < qpns.size(); ++i) {
            event = s.async();
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
    EXPECT_TRUE(a->is_quiet());         /* it is dead, and reports this once */
    EXPECT_TRUE(a->async(0).empty());
    EXPECT_EQ(size + 1, executed(1, "write"));

    /* A restarted queue pair fails at its first completion */
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*b);
    (**b)("state", b->qp, (int)IBV_QPS_RESET);
    b->connect(*a);
    EXPECT_EQ((uint64_t)IBV_QPS_RTS, a->state());
    a->write(*b, 1, 0, 8, 0);
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_FATAL, a->qpn}), a->async());
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, a->state());
}

/* All queue pairs that complete to it fail with it, and no others */
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

/* A message without a completion at the receiver must not be acknowledged */
UCS_TEST_F(test_emu_overrun, of_a_receive_cq) {
    a.reset(new emu::side(fabric(), 0, 0));
    b = make_small(1);
    a->connect(*b);
    b->connect(*a);

    for (unsigned i = 0; i < size + 3; ++i) {
        b->recv(i, 64 * i, 64);
    }
    for (unsigned i = 0; i < size; ++i) {
        EXPECT_TRUE(a->send(IBV_WR_SEND, *b, i, 0, 8, 0).completes(IBV_WC_SUCCESS));
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

/* The same by RDMA write with immediate data: the memory is written, but the writer
 * gets an error */
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

/* Flushes also count */
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
    /* The one that was already in ERR raises no event */
    expect_events(*a, {second.at(1)});
    for (unsigned i = 0; i < size; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_WR_FLUSH_ERR));
    }
}

/* Entries that go with their queue pair, or are skipped since it is gone, need no room */
UCS_TEST_F(test_emu_overrun, not_by_destroyed_queue_pairs) {
    a = make_small(0);
    b.reset(new emu::side(fabric(), 1, 0));

    for (unsigned i = 0; i < size; ++i) {
        emu::numbers_t qp = (**a)("qp", a->ctx, (int)IBV_QPT_RC, a->cq, -1, 1);

        (**a)("connect", qp.at(0), b->qpn, b->lid, 8, 3, 7);
        for (unsigned j = 0; j < size / 2; ++j) {
            (**a)("recv", qp.at(0), j, a->addr, 64, a->lkey);
        }
        (**a)("state", qp.at(0), (int)IBV_QPS_ERR);
        (**a)("destroy", qp.at(0));
    }
    EXPECT_TRUE(a->async(0).empty());

    a->connect(*b);
    b->connect(*a);
    for (unsigned i = 0; i < size; ++i) {
        a->write(*b, i, 0, 8, 0);
    }
    for (unsigned i = 0; i < size; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(a->async(0).empty());
}

/* The entry that a message of which the rest is missing has taken from the SRQ belongs
 * to the queue pair, and is flushed with it: before the event */
UCS_TEST_F(test_emu_event, entry_of_a_broken_message_is_flushed) {
    make_pair(0, emu::patient_timeout, 7, 7, true);
    fault("packet op=send pkt=3 silent=0:0");
    b->recv(1, 0, 8192);
    b->recv(2, 0, 8192);
    a->send(IBV_WR_SEND, *b, 3, 0, 4096, 0);
    EXPECT_TRUE(b->is_quiet());
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    EXPECT_TRUE(b->completes(1, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_LAST_WQE_REACHED, b->qpn}),
              b->async());
    EXPECT_TRUE(b->is_quiet());

    /* The other one is still there, and the flushed one can be posted again */
    fabric().link(0, 0, "up");
    b->recv(4, 0, 8192);
    for (emu::side *s : {a.get(), b.get()}) {
        (**s)("state", s->qp, (int)IBV_QPS_RESET);
    }
    a->connect(*b);
    b->connect(*a);
    for (uint64_t id : {2, 4}) {
        EXPECT_TRUE(a->send(IBV_WR_SEND, *b, id, 0, 4096, 0).completes(IBV_WC_SUCCESS));
        EXPECT_TRUE(b->completes(id, IBV_WC_SUCCESS));
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
                  b->async());
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
