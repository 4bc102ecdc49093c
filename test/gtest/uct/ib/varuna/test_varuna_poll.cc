/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Control messages are received by the application's progress, if it is called,
 * otherwise by the async thread. Neither waits for the other.
 */
#include <common/test.h>

#include "fake_host.h"

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_bus.h>
#include <uct/ib/varuna/iface/varuna_progress.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
}

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <thread>

class test_varuna_poll : public ucs::test {
protected:
    static constexpr unsigned BUS_CALLS = 32; /* Maximum calls between two polls */

    static void ignored(void *, unsigned, const uct_varuna_ctl_hdr_t *, const void *)
    {
    }

    static void progressed(void *arg, unsigned, const uct_varuna_ctl_hdr_t *,
                           const void *)
    {
        ++*(unsigned*)arg;
    }

    virtual void init()
    {
        ucs::test::init();
        fake_lane::arm_is_blind = false;
        open(UCS_ASYNC_MODE_THREAD_SPINLOCK);
        uct_varuna_lanes_poll_init(m_host->iface());
        uct_varuna_iface_init_pace(m_host->tl_iface());
    }

    void open(ucs_async_mode_t mode)
    {
        static const uct_varuna_bus_reg_t rows[] = {
            {UCT_VARUNA_BUS_PROGRESSED, UCT_VARUNA_BUS_ASYNC, progressed},
            {UCT_VARUNA_CTL_CLOSE_REP, UCT_VARUNA_BUS_ASYNC, ignored},
            {UCT_VARUNA_CTL_PONG, UCT_VARUNA_BUS_ASYNC, ignored}
        };

        m_num_progressed = 0;
        m_host.reset(new fake_host(2, mode));
        uct_varuna_bus_register(&ctl()->bus, rows, 3, &m_num_progressed);
        ASSERT_UCS_OK(uct_varuna_ctl_rest_init(ctl()));
        open_slow();
    }

    /* What slow-path work looks at: there is none */
    void open_slow()
    {
        memset(&m_responder, 0, sizeof(m_responder));
        m_responder.iface                 = m_host->iface();
        m_responder.ctl                   = ctl();
        m_host->iface()->responder        = &m_responder;
        m_host->iface()->config.spare_qps = 0;
        ucs_list_head_init(&m_responder.received.gaps);
        ucs_list_head_init(&m_responder.spares.old);
        ucs_list_head_init(&m_responder.targets.closed);
        ucs_ptr_array_init(&m_host->requester()->eps, "eps");
    }

    void close_ctl()
    {
        uct_varuna_ctl_rest_cleanup(ctl());
        ucs_ptr_array_cleanup(&m_host->requester()->eps, 0);
        m_host->iface()->responder = NULL; /* It was never opened */
        m_host.reset();
    }

    virtual void cleanup()
    {
        close_ctl();
        fake_lane::arm_is_blind = false;
        ucs::test::cleanup();
    }

    uct_varuna_ctl_t *ctl()
    {
        return m_host->ctl();
    }

    void progress()
    {
        uct_varuna_iface_progress(&m_host->iface()->super.super);
    }

    void receive(unsigned type = UCT_VARUNA_CTL_CLOSE_REP)
    {
        static const fake_peer peer = {0x2222, 1, 0};
        size_t size                 = (type == UCT_VARUNA_CTL_PONG) ?
                                      sizeof(uct_varuna_ctl_pong_t) : 0;

        m_host->receive(peer, 0, m_host->header(peer, type, 1, 1),
                        std::string(size, 0));
    }

    bool decide(bool is_timer = false)
    {
        uct_varuna_ctl_lock(ctl());
        if (is_timer) {
            uct_varuna_ctl_rest_expired(ctl());
        }
        int rests = uct_varuna_ctl_rest_decide(ctl());
        uct_varuna_ctl_unlock(ctl());
        return rests;
    }

    void check_never_blocks();

    static bool is_readable(int fd, int timeout_ms)
    {
        struct pollfd entry = {fd, POLLIN, 0};

        return poll(&entry, 1, timeout_ms) == 1;
    }

    std::unique_ptr<fake_host> m_host;
    unsigned                   m_num_progressed;
    uct_varuna_responder_t     m_responder;
};

UCS_TEST_F(test_varuna_poll, every_32nd_call) {
    for (unsigned before = 0; before < 2 * BUS_CALLS; ++before) {
        unsigned calls = 0;

        uct_varuna_iface_init_pace(m_host->tl_iface());
        m_host->ctl_lane(1).has_input = false;
        for (unsigned i = 0; i < before; ++i) {
            progress();
        }

        m_num_progressed              = 0;
        m_host->ctl_lane(1).has_input = true;
        while ((m_num_progressed == 0) && (calls < BUS_CALLS)) {
            progress();
            ++calls;
        }
        EXPECT_EQ(1u, m_num_progressed) << "after " << before << " calls";
    }
}

/* An atomic that waits for its answer is slow-path work: the answer comes over the bus */
UCS_TEST_F(test_varuna_poll, while_there_is_slow_work) {
    m_host->ctl_lane(0).has_input = true;
    for (unsigned i = 1; i <= 3; ++i) {
        uct_varuna_iface_set_slow(m_host->iface());
        progress();
        EXPECT_EQ(i, m_num_progressed);
    }
}

/* ... and does nothing if there is nothing */
UCS_TEST_F(test_varuna_poll, idle_calls_take_no_lock) {
    uct_varuna_ctl_lock(ctl());
    std::thread([this] {
        for (unsigned i = 0; i < 3 * BUS_CALLS; ++i) {
            progress();
        }
    }).join();
    uct_varuna_ctl_unlock(ctl());
    EXPECT_EQ(0u, m_num_progressed);
}

UCS_TEST_F(test_varuna_poll, each_call_after_a_message) {
    m_host->ctl_lane(0).has_input = true;
    receive();
    for (unsigned i = 0; i < BUS_CALLS; ++i) {
        progress();
    }

    m_num_progressed = 0;
    for (unsigned i = 0; i < BUS_CALLS; ++i) {
        progress();
    }
    EXPECT_EQ(BUS_CALLS, m_num_progressed);
}

/* A thread that has the lock is receiving: the application continues */
void test_varuna_poll::check_never_blocks()
{
    m_host->ctl_lane(0).has_input = true;
    uct_varuna_ctl_lock(ctl());
    std::thread([this] {
        uct_varuna_ctl_poll(ctl());
        EXPECT_EQ(0u, uct_varuna_ctl_dispatch(ctl()));
    }).join();
    uct_varuna_ctl_unlock(ctl());
    EXPECT_EQ(0u, m_num_progressed);

    uct_varuna_ctl_poll(ctl());
    EXPECT_EQ(1u, m_num_progressed);
    uct_varuna_ctl_dispatch(ctl());
    EXPECT_EQ(2u, m_num_progressed);
}

UCS_TEST_F(test_varuna_poll, never_blocks) {
    check_never_blocks();
    close_ctl();
    open(UCS_ASYNC_MODE_THREAD_MUTEX);
    check_never_blocks();
}

/* The lock may be ours: a callback calls progress, or the caller has blocked it */
UCS_TEST_F(test_varuna_poll, own_lock) {
    m_host->ctl_lane(0).has_input = true;
    uct_varuna_ctl_lock(ctl());
    uct_varuna_ctl_poll(ctl());
    uct_varuna_ctl_unlock(ctl());
    EXPECT_EQ(1u, m_num_progressed);
}

/* Messages that are not dispatched without the lock are dispatched later */
UCS_TEST_F(test_varuna_poll, events_stay) {
    uct_varuna_ctl_notify(ctl());
    uct_varuna_ctl_lock(ctl());
    std::thread([this] { uct_varuna_ctl_dispatch(ctl()); }).join();
    uct_varuna_ctl_unlock(ctl());
    EXPECT_TRUE(uct_varuna_ctl_has_events(ctl()));
    uct_varuna_ctl_dispatch(ctl());
    EXPECT_FALSE(uct_varuna_ctl_has_events(ctl()));
}

UCS_TEST_F(test_varuna_poll, rest_while_main_thread_polls) {
    EXPECT_FALSE(decide()) << "nothing has arrived, and no thread polls";
    receive();
    EXPECT_FALSE(decide()) << "no thread polls";
    uct_varuna_ctl_poll(ctl());
    EXPECT_FALSE(decide()) << "nothing has come";

    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide());
    EXPECT_TRUE(decide()) << "other events do not end it";
    EXPECT_TRUE(is_readable(ctl()->rest.timer_fd, 10000));

    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide(true)) << "it continues";
    receive();
    EXPECT_FALSE(decide(true)) << "the main thread computes";

    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide());
    uct_varuna_ctl_poll(ctl());
    EXPECT_FALSE(decide(true)) << "nothing comes any more";
}

/* So much has come that the handler of the timer gave up the lock before it decided, and
 * another event continues: it decides, as no timer is set any more */
UCS_TEST_F(test_varuna_poll, expired_timer_is_not_forgotten) {
    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide());
    uct_varuna_ctl_rest_expired(ctl());
    receive();
    EXPECT_FALSE(decide()) << "nobody polls, and nothing would wake the thread";

    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide());
    EXPECT_TRUE(is_readable(ctl()->rest.timer_fd, 10000));
    uct_varuna_ctl_rest_expired(ctl());
    uct_varuna_ctl_drain_signal(ctl()->rest.timer_fd);
    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide());
    EXPECT_TRUE(is_readable(ctl()->rest.timer_fd, 10000)) << "rest without an end";
}

/* Pings come all the time */
UCS_TEST_F(test_varuna_poll, no_rest_for_pings) {
    receive(UCT_VARUNA_CTL_PONG);
    uct_varuna_ctl_poll(ctl());
    EXPECT_FALSE(decide());
}

/* A sleeping application does not poll: in any order, one of them sees the message */
UCS_TEST_F(test_varuna_poll, no_rest_while_application_sleeps) {
    ctl()->events.kick_fd = eventfd(0, EFD_NONBLOCK);
    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_UCS_OK(uct_varuna_ctl_event_arm(ctl()));
    EXPECT_FALSE(is_readable(ctl()->events.kick_fd, 0)) << "no application sleeps";
    EXPECT_FALSE(decide());

    __atomic_store_n(&ctl()->events.armed, 0, __ATOMIC_SEQ_CST);
    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_TRUE(decide());
    EXPECT_UCS_OK(uct_varuna_ctl_event_arm(ctl()));
    EXPECT_TRUE(is_readable(ctl()->events.kick_fd, 0));
    EXPECT_FALSE(decide());
    close(ctl()->events.kick_fd);
}

UCS_TEST_F(test_varuna_poll, no_rest_without_thread) {
    close_ctl();
    open(UCS_ASYNC_MODE_POLL);
    receive();
    uct_varuna_ctl_poll(ctl());
    EXPECT_FALSE(decide());
}

/* A NIC that raises no event for what is there is polled once more after arming */
UCS_TEST_F(test_varuna_poll, looks_again_after_arming) {
    fake_lane &lane = m_host->lane(1, UCT_VARUNA_LANE_RC);
    auto arm        = [&](unsigned events) {
        return uct_varuna_lanes_event_arm(m_host->iface(), events);
    };
    auto poll       = [&]() { return uct_varuna_lanes_poll(m_host->iface()); };

    fake_lane::arm_is_blind = true;
    EXPECT_EQ(0u, poll());
    EXPECT_EQ(UCS_ERR_BUSY, arm(UCT_EVENT_RECV));
    EXPECT_EQ(UCS_ERR_BUSY, arm(UCT_EVENT_RECV)) << "without a poll";
    EXPECT_EQ(0u, poll());
    EXPECT_UCS_OK(arm(UCT_EVENT_RECV));

    /* Something else woke the program: the lanes are still armed */
    EXPECT_EQ(0u, poll());
    EXPECT_UCS_OK(arm(UCT_EVENT_RECV));

    /* For another event they are not */
    EXPECT_EQ(0u, poll());
    EXPECT_EQ(UCS_ERR_BUSY, arm(UCT_EVENT_RECV | UCT_EVENT_SEND_COMP));
    EXPECT_EQ(0u, poll());
    EXPECT_UCS_OK(arm(UCT_EVENT_RECV | UCT_EVENT_SEND_COMP));

    /* What was found may not have been all */
    lane.on_poll = [] { return 1; };
    EXPECT_GT(poll(), 0u);
    EXPECT_EQ(UCS_ERR_BUSY, arm(UCT_EVENT_RECV));
    lane.on_poll = nullptr;
    EXPECT_EQ(0u, poll());
    EXPECT_UCS_OK(arm(UCT_EVENT_RECV));

    /* An event disarms */
    EXPECT_EQ(0u, poll());
    lane.arm_status = UCS_ERR_BUSY;
    EXPECT_EQ(UCS_ERR_BUSY, arm(UCT_EVENT_RECV));
    lane.arm_status = UCS_OK;
    EXPECT_EQ(0u, poll());
    EXPECT_EQ(UCS_ERR_BUSY, arm(UCT_EVENT_RECV));
    EXPECT_EQ(0u, poll());
    EXPECT_UCS_OK(arm(UCT_EVENT_RECV));
}

/* ... which costs others nothing */
UCS_TEST_F(test_varuna_poll, arms_at_once) {
    EXPECT_UCS_OK(uct_varuna_lanes_event_arm(m_host->iface(), UCT_EVENT_RECV));
}

/* A NIC that is gone cannot be armed. Its failure is found by others, and what the living
 * ones bring must wake the application */
UCS_TEST_F(test_varuna_poll, dead_nic_does_not_keep_others_from_being_armed) {
    for (int kind : {UCT_VARUNA_LANE_RC, UCT_VARUNA_LANE_DC}) {
        m_host->lane(0, (uct_varuna_lane_kind_t)kind).arm_status = UCS_ERR_IO_ERROR;
    }
    EXPECT_UCS_OK(uct_varuna_lanes_event_arm(m_host->iface(), UCT_EVENT_RECV));
    EXPECT_EQ(1u, m_host->lane(1, UCT_VARUNA_LANE_RC).num_armed);
    EXPECT_EQ(1u, m_host->lane(1, UCT_VARUNA_LANE_DC).num_armed);

    /* There is something to poll */
    m_host->lane(1, UCT_VARUNA_LANE_DC).arm_status = UCS_ERR_BUSY;
    EXPECT_EQ(UCS_ERR_BUSY,
              uct_varuna_lanes_event_arm(m_host->iface(), UCT_EVENT_RECV));
}
