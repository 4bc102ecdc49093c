/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * DC over mlx5 direct verbs: one initiator, several targets; UD.
 */

#include "test_emu.h"

#include <infiniband/mlx5dv.h>

class test_emu_dc : public emu::test_emu {
protected:
    static const uint64_t key = 0x1122334455667788ul;

    struct node {
        std::unique_ptr<emu::agent> agent;
        uint64_t                    ctx, mem, addr, lkey, rkey, cq, srq, lid;
        uint64_t                    qp, qpn;
    };

    rcv::args_t fabric_options() const override
    {
        return {"--hosts", "4"};
    }

    node make_node(unsigned host)
    {
        emu::numbers_t mr;
        node n;

        n.agent.reset(new emu::agent(fabric(), host));
        emu::agent &agent = *n.agent;

        n.ctx  = agent("open", 0).at(0);
        n.lid  = agent("port", n.ctx).at(1);
        mr     = agent("mr", n.ctx, 1 << 20, emu::all_access);
        n.mem  = mr.at(0);
        n.addr = mr.at(1);
        n.lkey = mr.at(2);
        n.rkey = mr.at(3);
        n.cq   = agent("cq", n.ctx, 256, 1).at(0);
        n.srq  = agent("srq", n.ctx, 64).at(0);
        return n;
    }

    node make_target(unsigned host)
    {
        node n = make_node(host);

        n.qp  = (*n.agent)("dct", n.ctx, n.cq, n.srq, key).at(0);
        n.qpn = (*n.agent)("dc_modify", n.qp, 0, 0, 0).at(0);
        return n;
    }

    node make_initiator(unsigned host, unsigned timeout = 8,
                        unsigned retry = 3, unsigned rnr_retry = 7)
    {
        node n = make_node(host);

        n.qp  = (*n.agent)("dci", n.ctx, n.cq).at(0);
        n.qpn = (*n.agent)("dc_modify", n.qp, timeout, retry, rnr_retry).at(0);
        return n;
    }

    uint64_t make_ah(node &from, const node &to)
    {
        return (*from.agent)("ah", from.ctx, to.lid).at(0);
    }

    /* A work request, filled directly */
    void post(node &from, const node &to, uint64_t ah, unsigned opcode,
              uint64_t local, uint64_t length, uint64_t remote, uint64_t a = 0,
              uint64_t b = 0, uint64_t dc_key = key)
    {
        (*from.agent)("raw", from.qp, opcode, (int)MLX5_WQE_CTRL_CQ_UPDATE,
                      from.addr + local, length, from.lkey, to.addr + remote,
                      to.rkey, a, b, ah, to.qpn, dc_key);
    }

    uint64_t status(node &n)
    {
        emu::numbers_t wc = (*n.agent)("poll", n.cq, 10000);

        return wc.empty() ? ~0ul : wc.at(0);
    }

    void recv(node &n, uint64_t wr_id, uint64_t offset)
    {
        (*n.agent)("srq_recv", n.srq, wr_id, n.addr + offset, 4096, n.lkey);
    }

    uint64_t get(node &n, uint64_t offset)
    {
        return (*n.agent)("get", n.mem, offset).at(0);
    }

    void put(node &n, uint64_t offset, uint64_t value)
    {
        (*n.agent)("put", n.mem, offset, value);
    }
};

/* The initiator's packets are as long as its own path MTU, whichever target they are for */
UCS_TEST_F(test_emu_dc, a_target_has_an_mtu_of_its_own) {
    node fitting = make_target(1), other = make_node(2);
    const struct {
        unsigned      opcode, length;
        ibv_wc_status status;
    } cases[] = {{MLX5_OPCODE_RDMA_WRITE, 512, IBV_WC_SUCCESS},
                 {MLX5_OPCODE_RDMA_WRITE, 513, IBV_WC_REM_INV_REQ_ERR},
                 {MLX5_OPCODE_RDMA_WRITE, 5000, IBV_WC_REM_INV_REQ_ERR},
                 {MLX5_OPCODE_SEND, 513, IBV_WC_REM_INV_REQ_ERR},
                 {MLX5_OPCODE_RDMA_READ, 512, IBV_WC_SUCCESS},
                 {MLX5_OPCODE_RDMA_READ, 513, IBV_WC_BAD_RESP_ERR}};

    (*other.agent)("mtu", 512);
    other.qp  = (*other.agent)("dct", other.ctx, other.cq, other.srq, key).at(0);
    other.qpn = (*other.agent)("dc_modify", other.qp, 0, 0, 0).at(0);
    recv(other, 1, 0);
    for (const auto &c : cases) {
        node initiator = make_initiator(0);

        post(initiator, fitting, make_ah(initiator, fitting), MLX5_OPCODE_RDMA_WRITE, 0,
             5000, 0);
        ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
        post(initiator, other, make_ah(initiator, other), c.opcode, 0, c.length, 0);
        EXPECT_EQ((uint64_t)c.status, status(initiator)) << c.opcode << " " << c.length;
    }
}

UCS_TEST_F(test_emu_dc, one_initiator_several_targets) {
    node initiator = make_initiator(0);
    std::vector<node> targets;
    std::vector<uint64_t> ahs;

    for (unsigned host = 1; host < 4; ++host) {
        targets.push_back(make_target(host));
        ahs.push_back(make_ah(initiator, targets.back()));
    }

    for (unsigned i = 0; i < 30; ++i) {
        node &target = targets[i % 3];

        put(initiator, 0, i);
        post(initiator, target, ahs[i % 3], MLX5_OPCODE_RDMA_WRITE, 0, 8,
             8 * i);
        ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
        EXPECT_EQ((uint64_t)i, get(target, 8 * i));
        post(initiator, target, ahs[i % 3], MLX5_OPCODE_ATOMIC_FA, 64, 8, 4096,
             1);
        ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
        EXPECT_EQ((uint64_t)i / 3, get(initiator, 64));
    }
    for (unsigned host = 1; host < 4; ++host) {
        EXPECT_EQ(10u, executed(host, "write"));
        EXPECT_EQ(10u, executed(host, "faa"));
    }
}

UCS_TEST_F(test_emu_dc, several_initiators_one_target) {
    node target = make_target(3);
    std::vector<node> initiators;
    std::vector<uint64_t> ahs;

    for (unsigned host = 0; host < 3; ++host) {
        initiators.push_back(make_initiator(host));
        ahs.push_back(make_ah(initiators.back(), target));
    }
    for (unsigned i = 0; i < 30; ++i) {
        post(initiators[i % 3], target, ahs[i % 3], MLX5_OPCODE_ATOMIC_FA, 0,
             8, 0, 1);
        ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiators[i % 3]));
        EXPECT_EQ((uint64_t)i, get(initiators[i % 3], 0));
    }
    EXPECT_EQ(30ul, get(target, 0));
}

UCS_TEST_F(test_emu_dc, messages_to_the_srq) {
    node initiator = make_initiator(0);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);

    for (unsigned i = 0; i < 5; ++i) {
        recv(target, 100 + i, 8192 + 4096 * i);
    }
    for (unsigned i = 0; i < 5; ++i) {
        (*initiator.agent)("fill", initiator.mem, 0, 3000, i);
        post(initiator, target, ah, MLX5_OPCODE_SEND, 0, 3000, 0);
        ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));

        emu::numbers_t wc = (*target.agent)("poll", target.cq, 10000);
        ASSERT_EQ(7u, wc.size());
        EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, wc.at(0));
        EXPECT_EQ(3000ul, wc.at(3));
        EXPECT_EQ(3000ul, (*target.agent)("match", target.mem,
                                          8192 + 4096 * (wc.at(2) - 100), 3000,
                                          i).at(0));
    }
}

UCS_TEST_F(test_emu_dc, big_write_and_read) {
    node initiator = make_initiator(0);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);

    (*initiator.agent)("fill", initiator.mem, 0, 100000, 4);
    post(initiator, target, ah, MLX5_OPCODE_RDMA_WRITE, 0, 100000, 0);
    ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
    EXPECT_EQ(100000ul,
              (*target.agent)("match", target.mem, 0, 100000, 4).at(0));
    post(initiator, target, ah, MLX5_OPCODE_RDMA_READ, 200000, 100000, 0);
    ASSERT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
    EXPECT_EQ(100000ul, (*initiator.agent)("match", initiator.mem, 200000,
                                           100000, 4).at(0));
}

UCS_TEST_F(test_emu_dc, wrong_key_of_the_target) {
    node initiator = make_initiator(0);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);

    post(initiator, target, ah, MLX5_OPCODE_RDMA_WRITE, 0, 8, 0, 0, 0,
         key + 1);
    EXPECT_NE((uint64_t)IBV_WC_SUCCESS, status(initiator));
    EXPECT_EQ(0u, trace(1).size());
}

UCS_TEST_F(test_emu_dc, lost_response_does_not_repeat_an_atomic) {
    node initiator = make_initiator(0);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);

    fault("ack op=faa drop");
    post(initiator, target, ah, MLX5_OPCODE_ATOMIC_FA, 0, 8, 0, 1);
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
    EXPECT_EQ(0ul, get(initiator, 0));
    EXPECT_EQ(1ul, get(target, 0));
    EXPECT_EQ(1u, executed(1, "faa"));
}

UCS_TEST_F(test_emu_dc, silent_link) {
    node initiator = make_initiator(0, 8, 1);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);

    fabric().link(1, 0, "silent");
    post(initiator, target, ah, MLX5_OPCODE_RDMA_WRITE, 0, 8, 0);
    post(initiator, target, ah, MLX5_OPCODE_RDMA_WRITE, 0, 8, 8);
    EXPECT_EQ((uint64_t)IBV_WC_RETRY_EXC_ERR, status(initiator));
    EXPECT_EQ((uint64_t)IBV_WC_WR_FLUSH_ERR, status(initiator));
    EXPECT_EQ(0u, trace(1).size());

    /* The initiator is used again, for another connection */
    fabric().link(1, 0, "up");
    (*initiator.agent)("state", initiator.qp, (int)IBV_QPS_RESET);
    (*initiator.agent)("dc_modify", initiator.qp, 8, 1, 7);
    post(initiator, target, ah, MLX5_OPCODE_RDMA_WRITE, 0, 8, 8);
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
}

/* A rule for one kind of queue pair does not affect others */
UCS_TEST_F(test_emu_dc, faults_by_type) {
    node initiator = make_initiator(0);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);
    emu::side c(fabric(), 0, 0, false, true, IBV_QPT_UD);
    emu::side d(fabric(), 1, 0, false, true, IBV_QPT_UD);

    make_pair();
    (*c)("ud", c.qp);
    (*d)("ud", d.qp);
    fault("packet type=dc drop", 1);
    fault("packet type=dc count=all count", 2);
    fault("packet type=rc count=all count", 1);
    fault("packet type=ud count=all count", 1);
    fault("packet type=rc,ud count=all count", 2);
    fault("post type=dc,ud count=all count", 2);
    fault("exec type=ud count=all count", 1);

    d.recv(1, 0, 4096);
    EXPECT_TRUE(c.send(IBV_WR_SEND, d, 2, 0, 16, 0, (*c)("ah", c.ctx, d.lid).at(0), d.qpn)
                .completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(d.completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->write(*b, 3, 0, 8, 0).completes(IBV_WC_SUCCESS));
    post(initiator, target, ah, MLX5_OPCODE_RDMA_WRITE, 0, 8, 8);
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, status(initiator));
}

UCS_TEST_F(test_emu_dc, no_receiver) {
    node initiator = make_initiator(0, 8, 1, 1);
    node target    = make_target(1);
    uint64_t ah    = make_ah(initiator, target);

    post(initiator, target, ah, MLX5_OPCODE_SEND, 0, 8, 0);
    EXPECT_EQ((uint64_t)IBV_WC_RNR_RETRY_EXC_ERR, status(initiator));
}


class test_emu_ud : public emu::test_emu {
};

UCS_TEST_F(test_emu_ud, datagrams) {
    emu::side c(fabric(), 0, 0, false, true, IBV_QPT_UD);
    emu::side d(fabric(), 1, 0, false, true, IBV_QPT_UD);
    emu::completion wc;

    (*c)("ud", c.qp);
    (*d)("ud", d.qp);
    uint64_t ah = (*c)("ah", c.ctx, d.lid).at(0);
    d.recv(1, 0, 4096);
    c.fill(0, 500, 1);
    c.send(IBV_WR_SEND, d, 2, 0, 500, 0, ah, d.qpn);
    EXPECT_TRUE(c.completes(2, IBV_WC_SUCCESS));
    wc = d.poll();
    EXPECT_EQ(1ul, wc.wr_id);
    EXPECT_EQ(540ul, wc.length);              /* with 40 bytes of GRH */
    EXPECT_EQ(500ul, d.match(40, 500, 1));

    /* No receiver, or the link is down: it is lost without an error */
    c.send(IBV_WR_SEND, d, 3, 0, 500, 0, ah, d.qpn);
    EXPECT_TRUE(c.completes(3, IBV_WC_SUCCESS));
    d.recv(4, 0, 4096);
    fabric().link(1, 0, "silent");
    c.send(IBV_WR_SEND, d, 5, 0, 500, 0, ah, d.qpn);
    EXPECT_TRUE(c.completes(5, IBV_WC_SUCCESS));
    EXPECT_TRUE(d.is_quiet());
}


class test_emu_dc_reuse : public test_emu_dc {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--hosts", "4", "--reuse-qpns"};
    }
};

/* The number of the initiator is an RC queue pair's when its packet arrives */
UCS_TEST_F(test_emu_dc_reuse, late_packet_is_of_nobody) {
    node target = make_target(1), initiator = make_initiator(0, 8, 0);

    fault("packet type=dc op=write delay=until:down=0:1");
    put(initiator, 0, 1);
    post(initiator, target, make_ah(initiator, target), MLX5_OPCODE_RDMA_WRITE, 0, 8, 0);
    ASSERT_EQ((uint64_t)IBV_WC_RETRY_EXC_ERR, status(initiator));
    (*initiator.agent)("destroy", initiator.qp);

    emu::side c(fabric(), 0, 0), d(fabric(), 1, 0);
    ASSERT_EQ(initiator.qpn, c.qpn);
    c.connect(d);
    d.connect(c);
    fabric().link(0, 1, "down");
    EXPECT_TRUE(rcv::wait_until([&] {
        return counter(0, 0, "dropped_at_destination") > 0;
    }));
    EXPECT_EQ(0ul, get(target, 0));
    EXPECT_TRUE(d.write(c, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
}
