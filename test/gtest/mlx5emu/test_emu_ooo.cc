/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirks ooo and ooo-all: effects of writes that are placed out of order, what does not
 * change, and how a program gets order again.
 */

#include "test_emu.h"
#include "test_emu_devx.h"

#include <unistd.h>

static const unsigned num_writes = 40;

class test_emu_ooo : public emu::test_emu {
protected:
    /* Writes word i of the target, one after the other */
    void post_words(unsigned num = num_writes)
    {
        for (unsigned i = 0; i < num; ++i) {
            a->put(i * 8, i + 1);
            a->write(*b, i + 1, i * 8, 8, i * 8);
        }
    }

    std::vector<uint64_t> words()
    {
        emu::numbers_t bytes = (**b)("peek", b->mem, 0, num_writes * 8);
        std::vector<uint64_t> result(num_writes);

        for (unsigned i = 0; i < bytes.size(); ++i) {
            result[i / 8] |= bytes[i] << (i % 8 * 8);
        }
        return result;
    }

    /* Words of the target before the first unwritten one, and written words after it */
    void count_words(unsigned *prefix, unsigned *behind)
    {
        std::vector<uint64_t> all = words();

        *prefix = *behind = 0;
        for (unsigned i = 0; i < num_writes; ++i) {
            if ((all[i] != 0) && (*prefix == i)) {
                ++*prefix;
            } else if (all[i] != 0) {
                ++*behind;
            }
        }
    }

    void expect_all_complete(unsigned num = num_writes)
    {
        std::vector<uint64_t> all;

        for (unsigned i = 0; i < num; ++i) {
            EXPECT_TRUE(a->completes(i + 1, IBV_WC_SUCCESS));
        }

        all = words();
        for (unsigned i = 0; i < num; ++i) {
            EXPECT_EQ(i + 1, all[i]);
        }
    }

    /* A read is executed after all earlier requests */
    void flush()
    {
        a->read(*b, 1000, 1 << 20, 8, 1 << 20);
    }

    /* PSNs that the target has accepted */
    uint64_t accepted()
    {
        return ((**b)("query", b->qp).at(1) - 0xfffff0) & 0xffffff;
    }

    uint64_t ooo_sl_mask()
    {
        emu::devx_side s(fabric(), 0);
        emu::mailbox in(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_VPORT);
        const size_t size = EMU_VPORT_OUT_OFFSET + EMU_VPORT_SIZE;
        emu::mailbox cap(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_CAP);
        emu::answer answer = s.general(cap, size);

        EXPECT_EQ(1ul, answer.get(EMU_CAP_OUT_OFFSET, EMU_CAP_OOO_SL_MASK));
        in.set(0, EMU_VPORT_IN_PORT_NUM, 1);
        answer = s.general(in, size);
        EXPECT_EQ(0, answer.error);
        return answer.get(EMU_VPORT_OUT_OFFSET, EMU_VPORT_OOO_SL_MASK);
    }

    /* UCX over rc_mlx5 between two hosts. @return whether it worked */
    bool perftest(const std::string &setting)
    {
        rcv::args_t args = {"ucx_perftest", "-p",
                            std::to_string(20000 + getpid() % 20000), "-x",
                            "rc_mlx5", "-d", "mlx5_0:1", "-t", "put_bw", "-s",
                            "16384", "-D", "zcopy", "-n", "300", "-w",
                            "0"};
        rcv::process_ptr server = fabric().start(0, args, {setting});
        rcv::process_ptr client;
        int status              = -1;

        /* The server does not report that it listens: try again */
        args.insert(args.begin() + 1, "localhost");
        rcv::wait_until([&] {
            client = fabric().start(1, args, {setting});
            status = client->wait();
            return (status == 0) ||
                   (client->output().find("connect") == std::string::npos);
        });

        m_output = client->output();
        if (status == 0) {
            EXPECT_EQ(0, server->wait()) << server->output();
        }
        return status == 0;
    }

    std::string m_output;
};

UCS_TEST_F(test_emu_ooo, order_is_kept_without) {
    unsigned prefix, behind;

    make_pair();
    for (unsigned i = 0; i < num_writes; ++i) {
        a->put(i * 8, i + 1);
        a->write(*b, i + 1, i * 8, 8, i * 8);
        count_words(&prefix, &behind);
        EXPECT_EQ(i + 1, prefix);
        EXPECT_EQ(0u, behind);
    }
    expect_all_complete();
    EXPECT_EQ(0u, ooo_sl_mask());
    EXPECT_EQ(0u, acted("ooo"));
}

UCS_TEST_F(test_emu_ooo, consecutive_writes) {
    unsigned prefix, behind;

    make_pair(0, emu::patient_timeout);
    quirk("0:0=ooo:8:60s");
    post_words();
    count_words(&prefix, &behind);
    EXPECT_LT(prefix, num_writes);
    EXPECT_GT(behind, 0u);
    EXPECT_LE(behind, 8u + 8u);

    /* The PSN covers only writes without a gap before them, and only these complete, in
 * order, with any delay */
    EXPECT_EQ(prefix, accepted());
    flush();
    expect_all_complete();
    EXPECT_TRUE(a->completes(1000, IBV_WC_SUCCESS));
    EXPECT_EQ(num_writes + 1, accepted());
    EXPECT_GT(acted("ooo", 0, 0), 0u);
    EXPECT_EQ(0u, acted("ooo", 1));
    EXPECT_EQ(0u, counter(0, 0, "timeouts"));
    EXPECT_EQ(0u, counter(0, 0, "retransmitted_packets"));
}

UCS_TEST_F(test_emu_ooo, packets_of_a_large_write) {
    make_pair(0, emu::patient_timeout);
    quirk("ooo");
    a->fill(0, 1 << 20, 7);
    EXPECT_TRUE(a->write(*b, 1, 0, 1 << 20, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(1ul << 20, b->match(0, 1 << 20, 7));
    EXPECT_GT(acted("ooo"), 100u);
}

/* At most three packets are in flight, and at most three overtake one */
UCS_TEST_F(test_emu_ooo, bound_in_packets) {
    unsigned prefix, behind;

    make_pair(0, emu::patient_timeout);
    quirk("ooo:3:60s:90");
    for (unsigned i = 0; i < num_writes; ++i) {
        a->put(i * 8, i + 1);
        a->write(*b, i + 1, i * 8, 8, i * 8);
        count_words(&prefix, &behind);
        EXPECT_GE(prefix + behind + 3, i + 1); /* held */
        EXPECT_LE(behind, 3u + 2u); /* passed the oldest, and those that they
                                       set free */
    }
    flush();
    expect_all_complete();
}

UCS_TEST_F(test_emu_ooo, bound_in_time) {
    unsigned ms = 100;
    uint64_t num;

    for (;;) {
        make_pair(0, emu::patient_timeout);
        quirk("ooo:32:" + std::to_string(ms) + "ms:100");

        rcv::stopwatch watch;
        post_words(20);
        num = accepted();
        if (watch.ms() < ms) {
            break;
        }

        /* The machine was too slow */
        ms *= 2;
        renew_fabric();
    }

    EXPECT_EQ(0u, num);
    expect_all_complete(20);
}

/* Writes after a gap are in memory, independent of the PSN, if the gap is never
 * filled */
UCS_TEST_F(test_emu_ooo, a_cut_leaves_holes) {
    unsigned prefix, behind, prefix2, behind2;
    unsigned timeout = 17;

    for (;;) {
        make_pair(0, timeout, 0); /* nothing is sent again */
        quirk("ooo:8:60s");

        rcv::stopwatch watch;
        post_words(20);
        fabric().link(0, 0, "silent");
        if (watch.ms() < 4096e-6 * (1u << timeout)) {
            break;
        }

        /* The machine was too slow: the timer may have expired before the cut */
        ++timeout;
        renew_fabric();
    }

    count_words(&prefix, &behind);
    EXPECT_GT(behind, 0u);
    EXPECT_EQ(prefix, accepted());
    for (unsigned i = 0; i < prefix; ++i) {
        EXPECT_TRUE(a->completes(i + 1, IBV_WC_SUCCESS));
    }
    EXPECT_TRUE(a->completes(prefix + 1, IBV_WC_RETRY_EXC_ERR));
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    EXPECT_EQ(prefix, accepted());
    count_words(&prefix2, &behind2);
    EXPECT_EQ(prefix, prefix2);
    EXPECT_EQ(behind, behind2);
}

/* Lost packets are sent again, and nothing is written twice */
UCS_TEST_F(test_emu_ooo, losses) {
    make_pair(0, 8, 7);
    quirk("ooo:8:100us");
    fault("packet prob=0.1 seed=3 count=10 drop", 10);
    for (unsigned round = 0; round < 6; ++round) {
        post_words();
        expect_all_complete();
        a->fill(4096, 40000, round);
        EXPECT_TRUE(a->write(*b, 1, 4096, 40000, 4096).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(40000u, b->match(4096, 40000, round));
    }
    EXPECT_GT(counter(0, 0, "retransmitted_packets"), 0u);
}

/* Other operations are executed after all earlier ones */
UCS_TEST_F(test_emu_ooo, others_are_in_order) {
    make_pair(0, emu::patient_timeout);
    quirk("ooo:32:60s:100");
    for (unsigned round = 1; round <= 3; ++round) {
        uint64_t base = round * 4096;

        for (unsigned i = 0; i < 5; ++i) {
            a->put(base + i * 8, round);
            a->write(*b, i, base + i * 8, 8, base + i * 8);
        }

        switch (round) {
        case 1:
            b->recv(10, 0, 64);
            a->send(IBV_WR_SEND, *b, 9, 0, 8, 0);
            EXPECT_TRUE(b->completes(10, IBV_WC_SUCCESS));
            break;
        case 2:
            b->recv(10, 0, 64);
            a->send(IBV_WR_RDMA_WRITE_WITH_IMM, *b, 9, base, 8, base);
            EXPECT_TRUE(b->completes(10, IBV_WC_SUCCESS));
            break;
        default:
            a->read(*b, 9, 64, 8, base + 4 * 8);
            break;
        }

        for (unsigned i = 0; i < 5; ++i) {
            EXPECT_EQ(round, b->get(base + i * 8)) << "write " << i;
            EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        }
        EXPECT_TRUE(a->completes(9, IBV_WC_SUCCESS));
        if (round == 3) {
            EXPECT_EQ(round, a->get(64));
        }
    }
}

/* Two queue pairs of one port: their packets stay within the NIC */
UCS_TEST_F(test_emu_ooo, within_a_port) {
    unsigned prefix, behind;

    a.reset(new emu::side(fabric(), 0, 0));
    b.reset(new emu::side(fabric(), 0, 0));
    a->connect(*b, emu::patient_timeout);
    b->connect(*a, emu::patient_timeout);
    quirk("ooo:8:60s");
    post_words();
    count_words(&prefix, &behind);
    EXPECT_EQ(num_writes, prefix);
    EXPECT_EQ(0u, acted("ooo"));
    expect_all_complete();

    quirk("ooo:8:60s:50:1");
    for (unsigned i = 0; i < num_writes; ++i) {
        b->put(i * 8, 0);
    }
    post_words();
    count_words(&prefix, &behind);
    EXPECT_GT(behind, 0u);
    flush();
    expect_all_complete();
}

UCS_TEST_F(test_emu_ooo, some_service_levels) {
    unsigned prefix, behind;

    make_pair(0, emu::patient_timeout, 3, 7, false, 8);
    fabric().command("quirk", {"add", "ooo:8:60s"});
    EXPECT_EQ(0xffu, ooo_sl_mask());
    post_words();
    count_words(&prefix, &behind);
    EXPECT_EQ(num_writes, prefix);
    EXPECT_EQ(0u, acted("ooo"));
    expect_all_complete();

    quirk("ooo-all:8:60s");
    EXPECT_EQ(0xffffu, ooo_sl_mask());
    for (unsigned i = 0; i < num_writes; ++i) {
        b->put(i * 8, 0);
    }
    post_words();
    count_words(&prefix, &behind);
    EXPECT_GT(behind, 0u);
    flush();
    expect_all_complete();
}

/* The order depends only on the seed */
UCS_TEST_F(test_emu_ooo, repeats_by_its_seed) {
    std::vector<uint64_t> order[2];

    for (unsigned round = 0; round < 2; ++round) {
        rcv::fabric other(2, 1, {"--seed", "5", "--quirk", "ooo:8:60s"});
        emu::side from(other, 0, 0), to(other, 1, 0);

        from.connect(to, emu::patient_timeout);
        to.connect(from, emu::patient_timeout);
        for (unsigned i = 0; i < num_writes; ++i) {
            from.put(i * 8, i + 1);
            from.write(to, i + 1, i * 8, 8, i * 8);
        }
        for (unsigned i = 0; i < num_writes; ++i) {
            order[round].push_back(to.get(i * 8));
        }
    }
    EXPECT_EQ(order[0], order[1]);
}

UCS_TEST_F(test_emu_ooo, vport_context) {
    emu::devx_side s(fabric(), 0);
    emu::mailbox in(EMU_CMD_MIN_LEN, EMU_CMD_QUERY_HCA_VPORT);
    emu::answer answer;

    in.set(0, EMU_VPORT_IN_PORT_NUM, 1);
    answer = s.general(in, 524); /* as UCX asks */
    EXPECT_EQ(0, answer.error);
    EXPECT_EQ(1ul, answer.get(EMU_VPORT_OUT_OFFSET, EMU_VPORT_LID));
    EXPECT_EQ((uint64_t)IBV_PORT_ACTIVE,
              answer.get(EMU_VPORT_OUT_OFFSET, EMU_VPORT_PORT_STATE));
    EXPECT_EQ(0, s.general(in, EMU_CMD_MIN_LEN).error);
    in.set(0, EMU_VPORT_IN_PORT_NUM, 2);
    EXPECT_EQ((unsigned)EMU_CMD_ST_BAD_PARAM, s.general(in, 524).status());
    in.set(0, EMU_VPORT_IN_PORT_NUM, 1).set(0, EMU_VPORT_IN_OTHER, 1);
    EXPECT_EQ((unsigned)EMU_CMD_ST_BAD_PARAM, s.general(in, 524).status());
}

/* UCX uses the first service level, or on request one without adaptive routing; if
 * there is none, it fails */
UCS_TEST_F(test_emu_ooo, ucx_asks_for_order) {
    quirk("ooo");
    EXPECT_TRUE(perftest("UCX_IB_AR_ENABLE=n")) << m_output;
    EXPECT_EQ(0u, acted("ooo"));
    EXPECT_TRUE(perftest("UCX_IB_AR_ENABLE=auto")) << m_output;
    EXPECT_GT(acted("ooo"), 0u);
}

UCS_TEST_F(test_emu_ooo, ucx_cannot_have_order) {
    quirk("ooo-all");
    EXPECT_FALSE(perftest("UCX_IB_AR_ENABLE=n"));
    EXPECT_NE(std::string::npos, m_output.find("could not select SL without AR"))
            << m_output;
    EXPECT_TRUE(perftest("UCX_IB_AR_ENABLE=y")) << m_output;
}
