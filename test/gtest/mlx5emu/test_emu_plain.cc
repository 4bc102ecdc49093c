/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirk no-mlx5dv: devices of another vendor, which support only verbs.
 */

#include "test_emu.h"

#include <errno.h>

class test_emu_with_dv : public emu::test_emu {
protected:
    /* By number in the list: is supported, can be opened for DEVX */
    static emu::numbers_t dv(emu::side &s, unsigned device)
    {
        return (*s)("dv", device);
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

    static std::string info(const rcv::fabric &fabric, unsigned host)
    {
        rcv::process_ptr p = fabric.start(host, {"ucx_info", "-d"});

        EXPECT_EQ(0, p->wait()) << p->output();
        return p->output();
    }

    static bool has(const std::string &text, const std::string &word)
    {
        return text.find(word) != std::string::npos;
    }

    int perftest(const std::string &tl, const std::string &device)
    {
        rcv::args_t args = {"stdbuf", "-oL", "ucx_perftest", "-p",
                            std::to_string(21000 + getpid() % 20000), "-x", tl,
                            "-d", device, "-t", "am_lat", "-n", "100", "-w",
                            "10"};
        rcv::process_ptr server = fabric().start(0, args);

        if (!server->wait_for("Waiting for connection")) {
            return -1;
        }

        args.push_back("localhost");
        return fabric().start(1, args)->wait() || server->wait();
    }
};

UCS_TEST_F(test_emu_with_dv, direct_verbs) {
    make_pair();
    EXPECT_EQ((emu::numbers_t{1, 1}), dv(*a, 0));
    EXPECT_EQ(0, error_of(*a, "dci", a->ctx, a->cq));
    EXPECT_TRUE(has(info(fabric(), 0), "Device: mlx5_0:1"));
    EXPECT_EQ(0u, acted("no-mlx5dv"));
}


class test_emu_plain : public test_emu_with_dv {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--quirk", "no-mlx5dv"};
    }
};

UCS_TEST_F(test_emu_plain, direct_verbs_are_refused) {
    make_pair();
    EXPECT_EQ((emu::numbers_t{0, 0}), dv(*a, 0));
    EXPECT_EQ(2u, acted("no-mlx5dv", 0, 0));
    EXPECT_EQ(EOPNOTSUPP, error_of(*a, "raw", a->qp, 0, 0, 0, 0, 0));
    EXPECT_EQ(EOPNOTSUPP, error_of(*a, "dci", a->ctx, a->cq));
    EXPECT_EQ(EOPNOTSUPP, error_of(*a, "devx_uar", a->ctx));
    EXPECT_EQ(EOPNOTSUPP, error_of(*a, "devx_eqn", a->ctx, 0));
    EXPECT_EQ(6u, acted("no-mlx5dv", 0, 0));
    EXPECT_EQ(6u, acted("no-mlx5dv"));
    EXPECT_EQ(6u, quirk_trace("no-mlx5dv").size());
}

UCS_TEST_F(test_emu_plain, verbs_work) {
    make_pair();
    a->put(0, 5);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 64).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(a->faa(*b, 2, 8, 64, 3).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(5u, a->get(8));
    EXPECT_TRUE(a->read(*b, 3, 16, 8, 64).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(8u, a->get(16));
    b->recv(4, 128, 64);
    EXPECT_TRUE(a->send(IBV_WR_SEND, *b, 5, 0, 64, 0).completes(IBV_WC_SUCCESS));
    EXPECT_TRUE(b->completes(4, IBV_WC_SUCCESS));
}

UCS_TEST_F(test_emu_plain, ucx_uses_verbs) {
    std::string list = info(fabric(), 0);

    for (const char *word : {"rc_verbs", "ud_verbs", "verbs_0:1", "verbs_1:1"}) {
        EXPECT_TRUE(has(list, word)) << word << " is not in: " << list;
    }
    EXPECT_FALSE(has(list, "mlx5")) << list;
    EXPECT_FALSE(has(list, "dc_")) << list;
    EXPECT_GT(acted("no-mlx5dv", 0, 0), 0u);
    EXPECT_EQ(0, perftest("rc_verbs", "verbs_0:1"));
    EXPECT_EQ(0, perftest("ud_verbs", "verbs_1:1"));
    EXPECT_GE(executed(0, "send"), 200u);
}

UCS_TEST_F(test_emu_plain, cannot_change) {
    EXPECT_THROW(fabric().command("quirk", {"remove", "no-mlx5dv"}),
                 std::runtime_error);
    EXPECT_THROW(fabric().command("quirk", {"add", "0:0=no-mlx5dv"}),
                 std::runtime_error);
    EXPECT_TRUE(has(fabric().command("status"), "verbs_1"));
    EXPECT_FALSE(has(fabric().command("status"), "mlx5_"));
}


class test_emu_plain_some : public test_emu_with_dv {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--quirk", "0:1=no-mlx5dv"};
    }
};

UCS_TEST_F(test_emu_plain_some, with_mlx5) {
    make_pair(1);
    EXPECT_EQ((emu::numbers_t{1, 1}), dv(*a, 0));
    EXPECT_EQ((emu::numbers_t{0, 0}), dv(*a, 1));
    EXPECT_EQ((emu::numbers_t{1, 1}), dv(*b, 1));
    a->put(0, 5);
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 64).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(5u, b->get(64));
    EXPECT_EQ(2u, acted("no-mlx5dv", 0, 1));
    EXPECT_EQ(2u, acted("no-mlx5dv"));
}
