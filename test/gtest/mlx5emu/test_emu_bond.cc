/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirk bond: one device on two ports.
 */

#include "test_emu.h"

class test_emu_unbonded : public emu::test_emu {
protected:
    static uint64_t state(emu::side &s)
    {
        return (*s)("port", s.ctx).at(0);
    }

    /* Host 0 writes a word to host 1 */
    void expect_write(uint64_t value, ibv_wc_status status = IBV_WC_SUCCESS)
    {
        a->put(0, value);
        a->write(*b, value, 0, 8, 0);
        EXPECT_TRUE(a->completes(value, status));
        EXPECT_EQ(status == IBV_WC_SUCCESS, b->get(0) == value);
    }

    std::string run(const rcv::args_t &args)
    {
        rcv::process_ptr p = fabric().start(0, args);

        EXPECT_EQ(0, p->wait()) << p->output();
        return p->output();
    }

    static bool has(const std::string &text, const std::string &word)
    {
        return text.find(word) != std::string::npos;
    }
};

UCS_TEST_F(test_emu_unbonded, two_devices) {
    make_pair();
    EXPECT_EQ(2u, (**a)("devices").at(0));
    fabric().link(0, 0, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), a->async());
    EXPECT_EQ((uint64_t)IBV_PORT_DOWN, state(*a));
    expect_write(1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(0u, acted("bond"));
}


class test_emu_bond : public test_emu_unbonded {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--links", "3", "--quirk", "bond:0s"};
    }

    void perftest(const char *tl)
    {
        rcv::args_t args = {"stdbuf", "-oL", "ucx_perftest", "-p",
                            std::to_string(21000 + getpid() % 20000), "-x", tl,
                            "-d", "mlx5_bond_0:1", "-t", "am_lat", "-n", "100",
                            "-w", "10"};
        rcv::process_ptr server = fabric().start(0, args);

        ASSERT_TRUE(server->wait_for("Waiting for connection"))
                << server->output();
        args.push_back("localhost");
        rcv::process_ptr client = fabric().start(1, args);

        EXPECT_EQ(0, client->wait()) << client->output();
        EXPECT_EQ(0, server->wait()) << server->output();
    }
};

UCS_TEST_F(test_emu_bond, one_device) {
    std::string list = run({"ibv_devinfo", "-l"});

    EXPECT_TRUE(has(list, "2 HCAs found")) << list;
    EXPECT_TRUE(has(list, "mlx5_bond_0")) << list;
    EXPECT_TRUE(has(list, "mlx5_2")) << list;
    EXPECT_FALSE(has(list, "mlx5_1")) << list;
    EXPECT_TRUE(has(fabric().command("status"), "link 0:0  mlx5_bond_0"));
    EXPECT_THROW(fabric().command("quirk", {"remove", "bond"}),
                 std::runtime_error);
}

UCS_TEST_F(test_emu_bond, second_port_takes_over) {
    make_pair();
    expect_write(1);
    EXPECT_EQ(0u, acted("bond"));

    fabric().link(0, 0, "down");
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, state(*a));
    expect_write(2);
    EXPECT_EQ(1u, acted("bond", 0, 0));
    fabric().link(1, 0, "down");
    expect_write(3);
    EXPECT_EQ(2u, acted("bond", 0, 0));
    EXPECT_EQ(1u, acted("bond", 1, 0));
    EXPECT_EQ(3u, quirk_trace("bond").size());

    fabric().link(0, 0, "up");
    fabric().link(1, 0, "up");
    expect_write(4);
    EXPECT_EQ(3u, acted("bond"));
    EXPECT_TRUE(a->async(100).empty());
    EXPECT_TRUE(b->async(0).empty());
}

UCS_TEST_F(test_emu_bond, both_ports_down) {
    make_pair();
    fabric().link(0, 1, "down");
    EXPECT_TRUE(a->async(100).empty());
    expect_write(1);
    fabric().link(0, 0, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), a->async());
    EXPECT_EQ((uint64_t)IBV_PORT_DOWN, state(*a));
    expect_write(2, IBV_WC_RETRY_EXC_ERR);

    fabric().link(0, 1, "up");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ACTIVE, 1}), a->async());
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, state(*a));
    for (emu::side *s : {a.get(), b.get()}) {
        (**s)("state", s->qp, (int)IBV_QPS_RESET);
    }
    a->connect(*b);
    b->connect(*a);
    expect_write(3);
    EXPECT_GE(acted("bond", 0, 0), 1u);
}

/* A bond follows the states that its ports report */
UCS_TEST_F(test_emu_bond, silence_is_not_noticed) {
    make_pair();
    fabric().link(0, 0, "silent");
    expect_write(1, IBV_WC_RETRY_EXC_ERR);
    EXPECT_EQ(0u, acted("bond"));
}

UCS_TEST_F(test_emu_bond, both_ports_die_with_the_nic) {
    make_pair();
    fabric().command("nic", {"0:1", "kill"});
    EXPECT_EQ((uint64_t)IBV_EVENT_DEVICE_FATAL, a->async().at(0));
    EXPECT_TRUE(has(fabric().command("status"), "mlx5_bond_0  lid 1  dead"));
}

UCS_TEST_F(test_emu_bond, links_without_a_partner) {
    make_pair(2);
    fabric().link(0, 2, "down");
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_PORT_ERR, 1}), a->async());
    expect_write(1, IBV_WC_RETRY_EXC_ERR);
}

UCS_TEST_F(test_emu_bond, flap) {
    make_pair(0, 10, 7);
    fabric().command("link", {"0:0", "flap", "20ms,0.5"});
    for (uint64_t i = 1; i <= 200; ++i) {
        expect_write(i);
    }
    EXPECT_TRUE(a->async(0).empty());
    fabric().link(0, 0, "down");
    expect_write(1000);
    EXPECT_GE(acted("bond", 0, 0), 1u);
}

UCS_TEST_F(test_emu_bond, ucx) {
    fabric().link(0, 0, "down");
    perftest("rc_mlx5");
    perftest("dc_mlx5");
    EXPECT_GE(acted("bond", 0, 0), 200u);
}


class test_emu_bond_slow : public test_emu_bond {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--quirk", "0=bond:60s:0"};
    }
};

/* During the failover packets are lost, without an event */
UCS_TEST_F(test_emu_bond_slow, loses_packets) {
    make_pair();
    fabric().link(0, 1, "down");        /* not in use */
    expect_write(1);
    fabric().link(0, 1, "up");
    fabric().link(0, 0, "down");
    expect_write(2, IBV_WC_RETRY_EXC_ERR);
    EXPECT_TRUE(a->async(100).empty());
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE, state(*a));
}

/* The other host has two devices, and UCX sees that the firmware lacks DC */
UCS_TEST_F(test_emu_bond_slow, no_dc) {
    std::string list = run({"ucx_info", "-d"});

    EXPECT_TRUE(has(list, "Device: mlx5_bond_0:1")) << list;
    EXPECT_TRUE(has(list, "rc_mlx5")) << list;
    EXPECT_FALSE(has(list, "dc_mlx5")) << list;

    rcv::process_ptr p = fabric().start(1, {"ucx_info", "-d"});
    EXPECT_EQ(0, p->wait());
    EXPECT_TRUE(has(p->output(), "Device: mlx5_1:1")) << p->output();
    EXPECT_TRUE(has(p->output(), "dc_mlx5")) << p->output();
}


/* As real bonds are */
class test_emu_bond_roce : public test_emu_bond {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--quirk", "roce,bond:0s"};
    }
};

UCS_TEST_F(test_emu_bond_roce, ucx) {
    fabric().link(1, 0, "down");
    perftest("rc_mlx5");
    perftest("dc_mlx5");
    EXPECT_GE(acted("bond", 1, 0), 200u);
}
