/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirk no-route: a port that is down refuses what is posted to it, as soft-RoCE does.
 */

#include "test_emu.h"

class test_emu_no_route : public emu::test_emu {
protected:
    void write(uint64_t id, uint64_t length = 8)
    {
        a->write(*b, id, 0, length, 0);
    }

    /* Timer and retries that no test can wait for: 4.3 s, 7 times */
    void make_patient_pair()
    {
        make_pair(0, 20, 7);
    }
};

UCS_TEST_F(test_emu_no_route, fails_at_once) {
    make_patient_pair();
    quirk("0:0=no-route");
    write(1);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    a->recv(2, 0, 8);
    EXPECT_EQ(0u, acted("no-route"));

    fabric().link(0, 0, "down");
    write(3);
    EXPECT_TRUE(a->completes(3, IBV_WC_LOC_QP_OP_ERR));
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, a->state());
    write(4);
    EXPECT_TRUE(a->completes(4, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(1u, acted("no-route", 0, 0));
    EXPECT_EQ(1u, executed(1, "write"));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));

    /* What was refused has no PSN: the peer expects the next one */
    EXPECT_EQ(0xfffff1u, (**a)("query", a->qp).at(2));
    EXPECT_EQ(0xfffff1u, (**b)("query", b->qp).at(1));
}

/* What is on its way waits for its acknowledgement; the timer finds no route */
UCS_TEST_F(test_emu_no_route, what_is_in_flight_fails_when_it_is_repeated) {
    make_pair(0, 14, 7);
    quirk("0:0=no-route");
    fault("ack op=write down=0:0");
    write(1);
    write(2);
    EXPECT_TRUE(a->completes(1, IBV_WC_LOC_QP_OP_ERR));
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(1u, acted("no-route", 0, 0));
    EXPECT_EQ(1u, counter(0, 0, "timeouts"));
    EXPECT_EQ(1u, executed(1, "write"));
}

/* A rest of a message has no route either; its first packet has arrived */
UCS_TEST_F(test_emu_no_route, in_the_middle_of_a_message) {
    make_patient_pair();
    quirk("0:0=no-route");
    fault("packet op=write pkt=2 down");
    write(1, 4096);
    EXPECT_TRUE(a->completes(1, IBV_WC_LOC_QP_OP_ERR));
    EXPECT_EQ(1u, acted("no-route", 0, 0));
}

UCS_TEST_F(test_emu_no_route, down_as_it_is_begun) {
    make_patient_pair();
    quirk("0:0=no-route");
    fault("post op=write down");
    write(1);
    EXPECT_TRUE(a->completes(1, IBV_WC_LOC_QP_OP_ERR));
    EXPECT_EQ(0u, executed(1, "write"));
}

UCS_TEST_F(test_emu_no_route, datagrams) {
    emu::side c(fabric(), 0, 0, false, true, IBV_QPT_UD);
    emu::side d(fabric(), 1, 0, false, true, IBV_QPT_UD);

    quirk("0:0=no-route");
    (*c)("ud", c.qp);
    (*d)("ud", d.qp);
    uint64_t ah = (*c)("ah", c.ctx, d.lid).at(0);
    c.recv(1, 0, 4096);
    fabric().link(0, 0, "down");
    c.send(IBV_WR_SEND, d, 2, 0, 16, 0, ah, d.qpn);
    EXPECT_TRUE(c.completes(2, IBV_WC_LOC_QP_OP_ERR));
    EXPECT_TRUE(c.completes(1, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, c.state());
    EXPECT_EQ(1u, acted("no-route", 0, 0));
}

/* Only a port's own link counts, and only if its host knows that it is down */
UCS_TEST_F(test_emu_no_route, retries_without) {
    make_pair();
    quirk("0:0=no-route");
    fabric().link(1, 0, "down");
    write(1);
    EXPECT_TRUE(a->completes(1, IBV_WC_RETRY_EXC_ERR));

    fabric().link(1, 0, "up");
    make_pair();
    fabric().link(0, 0, "silent");
    write(2);
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_EQ(0u, acted("no-route"));

    fabric().link(0, 0, "up");
    make_pair();
    no_quirk("0:0=no-route");
    fabric().link(0, 0, "down");
    write(3);
    EXPECT_TRUE(a->completes(3, IBV_WC_RETRY_EXC_ERR));
    fabric().link(0, 0, "up");
    make_pair();
    quirk("0:0=no-route");
    fabric().link(0, 0, "down");
    write(4);
    EXPECT_TRUE(a->completes(4, IBV_WC_LOC_QP_OP_ERR));
}

UCS_TEST_F(test_emu_no_route, works_again) {
    make_patient_pair();
    quirk("0:0=no-route");
    fabric().link(0, 0, "down");
    write(1);
    EXPECT_TRUE(a->completes(1, IBV_WC_LOC_QP_OP_ERR));
    fabric().link(0, 0, "up");
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    (**b)("state", b->qp, (int)IBV_QPS_RESET);
    a->connect(*b);
    b->connect(*a);
    write(2);
    EXPECT_TRUE(a->completes(2, IBV_WC_SUCCESS));
}
