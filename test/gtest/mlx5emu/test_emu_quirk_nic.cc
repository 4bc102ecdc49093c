/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirks of NICs that die, and of queue pairs that fail: commands that take long,
 * writes after DEVICE_FATAL, events that never arrive.
 */

#include "test_emu.h"
#include "test_emu_devx.h"

#include <errno.h>

class test_emu_quirk_nic : public emu::test_emu {
protected:
    void nic(const std::string &port, const std::string &action)
    {
        fabric().command("nic", {port, action});
    }

    void kill_silently(const std::string &port)
    {
        fabric().command("nic", {"--silent", port, "kill"});
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

    static int error_of_state(emu::side &s, ibv_qp_state state)
    {
        return error_of(s, "state", s.qp, (int)state);
    }

    /* Milliseconds of a command that fails with EIO */
    template<typename... T> static double slow(emu::side &s, T... words)
    {
        rcv::stopwatch watch;

        EXPECT_EQ(EIO, error_of(s, words...));
        return watch.ms();
    }

    /* Writes a word, which arrives */
    void expect_write(uint64_t value)
    {
        a->put(0, value);
        EXPECT_TRUE(a->write(*b, value, 0, 8, 0).completes(IBV_WC_SUCCESS));
        EXPECT_EQ(value, b->get(0));
    }

    void expect_no_write(uint64_t value)
    {
        a->put(0, value);
        EXPECT_TRUE(a->write(*b, value, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
        EXPECT_NE(value, b->get(0));
    }

    void expect_fatal_event(emu::side &s)
    {
        EXPECT_EQ((uint64_t)IBV_EVENT_DEVICE_FATAL, s.async().at(0));
    }
};

UCS_TEST_F(test_emu_quirk_nic, slow_cmd) {
    make_pair();
    quirk("0=slow-cmd:200ms");
    (**a)("query", a->qp);                      /* it works */
    EXPECT_EQ(0u, acted("slow-cmd"));

    kill_silently("0:0");
    EXPECT_GE(slow(*a, "query", a->qp), 200);
    EXPECT_GE(slow(*a, "state", a->qp, (int)IBV_QPS_ERR), 200);
    EXPECT_GE(slow(*a, "port", a->ctx), 200);
    EXPECT_GE(slow(*a, "mr", a->ctx, 4096, emu::all_access), 200);
    EXPECT_GE(slow(*a, "cq", a->ctx, 16, 0), 200);
    EXPECT_GE(slow(*a, "open", 0), 200);
    EXPECT_EQ(6u, acted("slow-cmd", 0, 0));

    /* Destroyed objects are finally removed, in any state of the device */
    rcv::stopwatch watch;
    (**a)("destroy", a->qp);
    EXPECT_GE(watch.ms(), 200);
    EXPECT_EQ(7u, acted("slow-cmd", 0, 0));
    EXPECT_EQ(7u, acted("slow-cmd"));

    (**b)("query", b->qp);
    no_quirk("0=slow-cmd");
    EXPECT_EQ(EIO, error_of(*a, "port", a->ctx));
    EXPECT_EQ(7u, acted("slow-cmd"));
}

UCS_TEST_F(test_emu_quirk_nic, fatal_writes) {
    make_pair();
    quirk("1:0=fatal-writes:60s");
    expect_write(1);
    EXPECT_EQ(0u, acted("fatal-writes"));

    nic("1:0", "kill");
    expect_fatal_event(*b);
    expect_write(2);
    EXPECT_EQ(1u, acted("fatal-writes", 1, 0));
    EXPECT_EQ(EIO, error_of(*b, "query", b->qp));
    EXPECT_EQ(EIO, error_of_state(*b, IBV_QPS_RESET));
    EXPECT_EQ(EIO, error_of_state(*b, IBV_QPS_ERR));
    EXPECT_EQ(EIO, error_of(*b, "mr", b->ctx, 4096, emu::all_access));
    EXPECT_EQ(3u, acted("fatal-writes", 1, 0));
    expect_write(3);

    /* Its own requests, and their completions */
    b->put(8, 77);
    EXPECT_TRUE(b->write(*a, 4, 8, 8, 8).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(77u, a->get(8));
    EXPECT_EQ(5u, acted("fatal-writes"));

    /* A reset ends it */
    nic("1:0", "revive");
    expect_no_write(5);
    EXPECT_EQ(5u, acted("fatal-writes"));
}

UCS_TEST_F(test_emu_quirk_nic, fatal_writes_end) {
    uint64_t value = 0;
    emu::completion c;

    make_pair();
    quirk("fatal-writes:50ms");
    nic("1:0", "kill");
    do {
        a->put(0, ++value);
        a->write(*b, value, 0, 8, 0);
        c = a->poll();
        ASSERT_TRUE(c.found);
        if (c.status == IBV_WC_SUCCESS) {
            EXPECT_EQ(value, b->get(0));
        }
    } while (c.status == IBV_WC_SUCCESS);
    EXPECT_EQ((uint64_t)IBV_WC_RETRY_EXC_ERR, c.status);

    /* Under load the time may be over before the first write; the refusal counts */
    EXPECT_EQ(EIO, error_of_state(*b, IBV_QPS_RESET));
    EXPECT_GE(acted("fatal-writes", 1, 0), 1u);
}

/* The driver answers instead of the device */
UCS_TEST_F(test_emu_quirk_nic, fatal_writes_lies) {
    make_pair();
    quirk("1:0=fatal-writes:60s:1");
    nic("1:0", "kill");
    EXPECT_EQ(0, error_of_state(*b, IBV_QPS_ERR));
    expect_write(1);
    EXPECT_EQ(0, error_of_state(*b, IBV_QPS_RESET));
    expect_write(2);
    EXPECT_EQ(EIO, error_of(*b, "query", b->qp));
    EXPECT_EQ(4u, acted("fatal-writes", 1, 0));
}

/* The same with the device's own commands, which the kernel also answers */
UCS_TEST_F(test_emu_quirk_nic, fatal_writes_lies_to_devx) {
    emu::devx_side s(fabric(), 0);

    s.create_qp();
    quirk("fatal-writes:60s:1");
    nic("0:0", "kill");
    EXPECT_EQ(EIO, s.query_qp().error);
    EXPECT_EQ(0, s.to_state(EMU_CMD_2ERR_QP).error);
    EXPECT_EQ(0, s.to_state(EMU_CMD_2RST_QP).error);
    EXPECT_EQ(EIO, s.to_init().error);
    EXPECT_EQ(2u, acted("fatal-writes", 0, 0));
    quirk("fatal-writes:60s");
    EXPECT_EQ(EIO, s.to_state(EMU_CMD_2RST_QP).error);
}

UCS_TEST_F(test_emu_quirk_nic, fatal_writes_need_the_event) {
    make_pair();
    quirk("0:0=fatal-writes:60s");
    kill_silently("1:0");
    expect_no_write(1);

    nic("0:0", "kill");     /* which the quirk is for, so that it acts */
    EXPECT_EQ(EIO, error_of_state(*a, IBV_QPS_RESET));
    EXPECT_EQ(1u, acted("fatal-writes"));
}

/* The behavior without the two quirks */
UCS_TEST_F(test_emu_quirk_nic, dead_nic_without) {
    make_pair();
    nic("1:0", "kill");
    expect_fatal_event(*b);
    EXPECT_EQ(EIO, error_of_state(*b, IBV_QPS_RESET));
    expect_no_write(1);
    EXPECT_EQ(0u, acted("fatal-writes"));
    EXPECT_EQ(0u, acted("slow-cmd"));
}

UCS_TEST_F(test_emu_quirk_nic, no_last_wqe) {
    make_pair(0, 8, 3, 7, true);
    quirk("1:0=no-last-wqe");
    for (emu::side *s : {a.get(), b.get()}) {
        (**s)("state", s->qp, (int)IBV_QPS_ERR);
    }
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_LAST_WQE_REACHED, a->qpn}),
              a->async());
    EXPECT_TRUE(b->async(100).empty());
    EXPECT_EQ(1u, acted("no-last-wqe", 1, 0));
    EXPECT_EQ(1u, acted("no-last-wqe"));
}

/* The event comes, though the queue pair has left ERR meanwhile */
UCS_TEST_F(test_emu_quirk_nic, late_last_wqe) {
    make_pair(0, 8, 3, 7, true);
    quirk("1:0=late-last-wqe:300ms");
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    (**b)("state", b->qp, (int)IBV_QPS_RESET);
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_LAST_WQE_REACHED, b->qpn}),
              b->async());
    EXPECT_EQ(1u, acted("late-last-wqe", 1, 0));
}

UCS_TEST_F(test_emu_quirk_nic, last_wqe_without) {
    make_pair(0, 8, 3, 7, true);
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    EXPECT_EQ((emu::numbers_t{IBV_EVENT_QP_LAST_WQE_REACHED, b->qpn}),
              b->async());
    EXPECT_EQ(0u, acted("no-last-wqe"));
}

/* --- late-flush --- */

/* It is silent in ERR for the time, also for what is posted there */
UCS_TEST_F(test_emu_quirk_nic, late_flush) {
    make_pair(0, 0);
    quirk("0:0=late-flush:300ms");
    fabric().command("link", {"0:0", "silent"});
    for (unsigned i = 0; i < 3; ++i) {
        a->write(*b, i, 0, 8, 0);
    }
    rcv::stopwatch watch;
    (**a)("state", a->qp, (int)IBV_QPS_ERR);
    a->write(*b, 3, 0, 8, 0);
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_TRUE(a->completes(i, IBV_WC_WR_FLUSH_ERR));
        EXPECT_GE(watch.ms(), 300);
    }
    EXPECT_EQ(1u, acted("late-flush", 0, 0));
}

/* Nothing is flushed after a reset. It is tried again if the process had no CPU in between */
UCS_TEST_F(test_emu_quirk_nic, late_flush_ends_with_reset) {
    constexpr unsigned late_ms = 50;
    double ms;

    quirk("0:0=late-flush:50ms");
    do {
        fabric().command("link", {"0:0", "up"});
        make_pair(0, 0);
        fabric().command("link", {"0:0", "silent"});
        a->write(*b, 1, 0, 8, 0);
        rcv::stopwatch watch;
        (**a)("state", a->qp, (int)IBV_QPS_ERR);
        (**a)("state", a->qp, (int)IBV_QPS_RESET);
        ms = watch.ms();
    } while (ms >= late_ms);
    EXPECT_TRUE(a->is_quiet(4 * late_ms));
    EXPECT_LE(1u, acted("late-flush", 0, 0));
}

/* One that fails anew after a reset is silent for the whole time from then on */
UCS_TEST_F(test_emu_quirk_nic, late_flush_begins_anew) {
    make_pair(0, 0);
    quirk("0:0=late-flush:300ms");
    fabric().command("link", {"0:0", "silent"});
    a->write(*b, 1, 0, 8, 0);
    (**a)("state", a->qp, (int)IBV_QPS_ERR);
    (**a)("state", a->qp, (int)IBV_QPS_RESET);
    a->connect(*b);
    usleep(100 * 1000); /* Between the times of the two */
    a->write(*b, 2, 0, 8, 0);
    rcv::stopwatch watch;
    (**a)("state", a->qp, (int)IBV_QPS_ERR);
    EXPECT_TRUE(a->completes(2, IBV_WC_WR_FLUSH_ERR));
    EXPECT_GE(watch.ms(), 300);
    EXPECT_EQ(2u, acted("late-flush", 0, 0));
}

UCS_TEST_F(test_emu_quirk_nic, flush_without) {
    make_pair(0, 0);
    fabric().command("link", {"0:0", "silent"});
    a->write(*b, 1, 0, 8, 0);
    (**a)("state", a->qp, (int)IBV_QPS_ERR);
    EXPECT_TRUE(a->completes(1, IBV_WC_WR_FLUSH_ERR));
    EXPECT_EQ(0u, acted("late-flush"));
}

/* --- dead-sl --- */

UCS_TEST_F(test_emu_quirk_nic, dead_service_level) {
    quirk("0:0=dead-sl:3");
    for (unsigned sl : {2, 3}) {
        make_pair(0, 8, 3, 7, false, sl);
        a->put(0, 7);
        a->write(*b, 1, 0, 8, 0);
        EXPECT_TRUE(a->completes(1, (sl < 3) ? IBV_WC_SUCCESS : IBV_WC_RETRY_EXC_ERR));
        EXPECT_EQ((sl < 3) ? 7u : 0u, b->get(0));
        EXPECT_EQ((sl < 3) ? 0u : 4u, acted("dead-sl", 0, 0));
        EXPECT_EQ(0u, acted("dead-sl", 1, 0));
    }
}
