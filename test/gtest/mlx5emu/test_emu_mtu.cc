/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * MTUs: those of ports, and those of two ends of a connection that differ.
 */

#include "test_emu.h"

#include <cerrno>

class test_emu_mtu : public emu::test_emu {
protected:
    /* A connection from host 0 to host 1, whose ends have these path MTUs */
    void make_pair_of(unsigned mtu_a, unsigned mtu_b)
    {
        a.reset(new emu::side(fabric(), 0, 0));
        b.reset(new emu::side(fabric(), 1, 0));
        (**a)("mtu", mtu_a);
        (**b)("mtu", mtu_b);
        a->connect(*b);
        b->connect(*a);
    }

    uint64_t port_mtu(unsigned host, unsigned link)
    {
        emu::side s(fabric(), host, link);

        return (*s)("port", s.ctx).at(3);
    }
};

/* A first or middle packet is exactly as long as the responder's path MTU, and others are
 * not longer: Linux, rxe_resp_check_length() */
UCS_TEST_F(test_emu_mtu, the_responder_refuses_packets_of_another_size) {
    const struct {
        unsigned      mtu_a, mtu_b, length;
        ibv_wr_opcode opcode;
        ibv_wc_status status;
    } cases[] = {
        {2048, 1024, 1024, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS},
        {2048, 1024, 1025, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR},
        {2048, 1024, 60000, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR},
        {1024, 2048, 1024, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS},
        {1024, 2048, 1025, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR},
        {1024, 2048, 60000, IBV_WR_RDMA_WRITE, IBV_WC_REM_INV_REQ_ERR},
        {2048, 2048, 60000, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS},
        {2048, 1024, 0, IBV_WR_RDMA_WRITE, IBV_WC_SUCCESS},
        {2048, 1024, 1024, IBV_WR_SEND, IBV_WC_SUCCESS},
        {2048, 1024, 1025, IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR},
        {1024, 2048, 3000, IBV_WR_SEND, IBV_WC_REM_INV_REQ_ERR},
        {1024, 2048, 8, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_WC_SUCCESS},
        {2048, 1024, 1024, IBV_WR_RDMA_READ, IBV_WC_SUCCESS},
        {2048, 1024, 1025, IBV_WR_RDMA_READ, IBV_WC_BAD_RESP_ERR},
        {1024, 2048, 1025, IBV_WR_RDMA_READ, IBV_WC_BAD_RESP_ERR},
    };

    for (const auto &c : cases) {
        make_pair_of(c.mtu_a, c.mtu_b);
        b->recv(1, 1 << 20, 65536);
        a->fill(0, 65536, 7);
        a->send(c.opcode, *b, 2, 0, c.length, 65536);
        EXPECT_TRUE(a->completes(2, c.status))
                << c.mtu_a << " " << c.mtu_b << " " << c.length << " " << c.opcode;
        if (c.status != IBV_WC_SUCCESS) {
            EXPECT_EQ(65536u, b->zeroes(65536, 65536)) << "nothing may be written";
            EXPECT_EQ(65536u, b->zeroes(1 << 20, 65536)) << "nothing may be received";
        }
    }
}

/* Packet by packet, as rules see them */
UCS_TEST_F(test_emu_mtu, single_packets_are_refused_too) {
    make_pair_of(2048, 1024);
    fault("packet count=all count", 1);
    fault("ack count=all count", 1);
    EXPECT_TRUE(a->write(*b, 2, 0, 60000, 0).completes(IBV_WC_REM_INV_REQ_ERR));
    EXPECT_EQ(0u, trace(1).size());
}

/* Nor is a packet of a wrong size placed that comes before its predecessors */
UCS_TEST_F(test_emu_mtu, early_packets_are_refused_too) {
    quirk("ooo-all:8:1ms:100");
    make_pair_of(1024, 1024);
    EXPECT_TRUE(a->write(*b, 1, 0, 60000, 0).completes(IBV_WC_SUCCESS));

    make_pair_of(2048, 1024);
    a->fill(0, 65536, 7);
    EXPECT_TRUE(a->write(*b, 2, 0, 60000, 65536).completes(IBV_WC_REM_INV_REQ_ERR));
    EXPECT_EQ(65536u, b->zeroes(65536, 65536));
}


class test_emu_mtu_ports : public test_emu_mtu {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--mtu", "2048", "--mtu", "1=1024", "--mtu", "1:1=512"};
    }

    /* What host 0 sends, and what it is sent, is too long for host 1's port */
    void expect_lost()
    {
        make_pair_of(2048, 1024);
        EXPECT_TRUE(a->write(*b, 1, 0, 2000, 0).completes(IBV_WC_RETRY_EXC_ERR));
        EXPECT_EQ(4u, counter(0, 0, "dropped_by_mtu")) << "the packet, and 3 retries";

        make_pair_of(2048, 1024);
        a->write(*b, 2, 0, 3000, 0); /* its last packet arrives, and shows the gap */
        EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
        EXPECT_GT(counter(0, 0, "dropped_by_mtu"), 4u);
        EXPECT_GT(counter(1, 0, "sequence_errors"), 0u);
        EXPECT_EQ(0u, trace(1).size());

        make_pair_of(2048, 1024);
        EXPECT_TRUE(b->read(*a, 3, 0, 2000, 0).completes(IBV_WC_RETRY_EXC_ERR));
        EXPECT_GT(counter(0, 0, "dropped_by_mtu"), 6u);

        make_pair_of(1024, 1024);
        EXPECT_TRUE(a->write(*b, 4, 0, 60000, 0).completes(IBV_WC_SUCCESS));
    }
};

UCS_TEST_F(test_emu_mtu_ports, of_a_host_and_of_a_port) {
    const unsigned mtus[2][2] = {{2048, 2048}, {1024, 512}};

    for (unsigned host = 0; host < 2; ++host) {
        for (unsigned link = 0; link < 2; ++link) {
            EXPECT_EQ(mtus[host][link], port_mtu(host, link));
            EXPECT_EQ(mtus[host][link], number_of_port(host, link, "mtu"));
        }
    }

    std::string status = fabric().command("status");
    EXPECT_NE(std::string::npos, status.find("MTU 2048 and less, up for")) << status;
    EXPECT_NE(std::string::npos, status.find("mlx5_1  lid 2  up  MTU 512")) << status;
}

UCS_TEST_F(test_emu_mtu_ports, a_longer_path_mtu_is_refused) {
    make_pair_of(2048, 1024);
    try {
        make_pair_of(2048, 2048);
        ADD_FAILURE() << "should be refused";
    } catch (const emu::agent_error &error) {
        EXPECT_EQ(EINVAL, error.code()) << error.what();
    }
}

UCS_TEST_F(test_emu_mtu_ports, a_port_gets_no_longer_packets) {
    expect_lost();
}


/* The same where packets take their time */
class test_emu_mtu_time : public test_emu_mtu_ports {
protected:
    rcv::args_t fabric_options() const override
    {
        rcv::args_t options = test_emu_mtu_ports::fabric_options();

        options.insert(options.end(), {"--latency", "1us"});
        return options;
    }
};

UCS_TEST_F(test_emu_mtu_time, a_port_gets_no_longer_packets) {
    expect_lost();
}

UCS_TEST_F(test_emu_mtu_time, the_responder_refuses_packets_of_another_size) {
    make_pair_of(512, 1024);
    EXPECT_TRUE(a->write(*b, 1, 0, 3000, 0).completes(IBV_WC_REM_INV_REQ_ERR));

    make_pair_of(512, 1024);
    EXPECT_TRUE(a->read(*b, 1, 0, 1000, 0).completes(IBV_WC_BAD_RESP_ERR));
    EXPECT_EQ(0u, executed(1, "write"));
}
