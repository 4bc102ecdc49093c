/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Reports of ports, and how real ones differ.
 */

#include "test_emu.h"

class test_emu_port : public emu::test_emu {
protected:
    static uint64_t subnet_timeout_of(emu::side &s)
    {
        return (*s)("port", s.ctx).at(4);
    }

    rcv::args_t subnet_timeout() const override
    {
        return rcv::args_t();
    }
};

UCS_TEST_F(test_emu_port, subnet_timeout_is_opensms) {
    make_pair();
    EXPECT_EQ(18u, subnet_timeout_of(*a));
}

class test_emu_subnet : public test_emu_port {
protected:
    rcv::args_t subnet_timeout() const override
    {
        return {"--subnet-timeout", "10"};
    }
};

UCS_TEST_F(test_emu_subnet, timeout) {
    make_pair(1);
    EXPECT_EQ(10u, subnet_timeout_of(*a));
    EXPECT_EQ(10u, subnet_timeout_of(*b));
    EXPECT_NE(std::string::npos, fabric().command("status", {"--json"}).find(
              "\"subnet_timeout\": 10"));
}


class test_emu_fixed_port : public test_emu_port {
protected:
    static uint64_t state(emu::side &s)
    {
        return (*s)("port", s.ctx).at(0);
    }

    void expect_writes(uint64_t value, ibv_wc_status status)
    {
        a->write(*b, value, 0, 8, 0);
        EXPECT_TRUE(a->completes(value, status));
    }
};

UCS_TEST_F(test_emu_fixed_port, never_reports_down) {
    make_pair();
    quirk("0:0=fixed-port");
    expect_writes(1, IBV_WC_SUCCESS);
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, state(*a));
    EXPECT_EQ(0u, acted("fixed-port"));

    fabric().link(0, 0, "down");
    EXPECT_EQ(1u, acted("fixed-port", 0, 0));
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, state(*a));
    EXPECT_EQ(2u, acted("fixed-port", 0, 0));
    expect_writes(2, IBV_WC_RETRY_EXC_ERR);
    fabric().link(0, 0, "up");
    EXPECT_EQ(3u, acted("fixed-port", 0, 0));
    EXPECT_TRUE(a->async(100).empty());

    /* The other end is not a virtual function */
    fabric().link(1, 0, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), b->async());
    EXPECT_EQ((uint64_t)IBV_PORT_DOWN, state(*b));
    EXPECT_EQ(3u, acted("fixed-port"));
}

/* Functions of one NIC reach each other in any state of the link */
UCS_TEST_F(test_emu_fixed_port, loopback) {
    make_pair();
    quirk("fixed-port");
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*a);
    fabric().link(0, 0, "down");
    EXPECT_TRUE(a->write(*a, 1, 0, 8, 64).completes(IBV_WC_SUCCESS));
}

UCS_TEST_F(test_emu_fixed_port, ports_report_down_without) {
    make_pair();
    fabric().link(0, 0, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), a->async());
    EXPECT_EQ((uint64_t)IBV_PORT_DOWN, state(*a));
    fabric().link(0, 0, "up");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ACTIVE, 1}), a->async());
    EXPECT_EQ(0u, acted("fixed-port"));
}
