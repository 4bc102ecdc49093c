/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * NICs of which the system says that they are gone (DEVICE_FATAL), before the driver has
 * taken them away: until then they may send and write.
 */
#include "test_varuna_recovery.h"
#include "test_varuna_md.h"
#include "fake_verbs.h"

extern "C" {
#include <uct/ib/varuna/lanes/varuna_detector.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
#include <uct/ib/varuna/md/varuna_md.h>
}

static volatile int commands_fail;

static int is_dead(uct_md_h md)
{
    return commands_fail;
}

class test_varuna_gone : public test_varuna_recovery {
protected:
    virtual void init()
    {
        uct_varuna_ctl_t *ctl;

        commands_fail = 0;
        nic           = &verbs.add("fake_0");
        test_varuna_recovery::init();
        ctl = host->ctl();
        host->iface()->md->is_dead = is_dead;
        ASSERT_UCS_OK(uct_varuna_detector_create(ctl->async, ignore, NULL,
                                                 &ctl->detector));
        ASSERT_UCS_OK(uct_varuna_detector_add(ctl->detector, 0,
                                              host->iface()->md->nics[0].dev_name));
    }

    virtual void cleanup()
    {
        uct_varuna_detector_destroy(host->ctl()->detector);
        host->ctl()->detector = NULL;
        uct_varuna_md_end_release(host->iface()->md, 0, 0);
        host->iface()->md->is_dead = NULL;
        test_varuna_recovery::cleanup();
    }

    static void ignore(void *arg, unsigned port, uct_varuna_port_event_t event)
    {
    }

    /* The NIC reports its death, and flushes nothing. The lifetime of a packet is over. */
    void fail_nic()
    {
        nic->query_error = ENODEV;
        uct_varuna_detector_check(host->ctl()->detector, 0, 1);
        ASSERT_TRUE(uct_varuna_detector_is_gone(host->ctl()->detector, 0));
        lane(0).is_drained = false;
        drain();
        step(DRAIN_TIMEOUT * 2);
        ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
        ASSERT_TRUE(ep->recovery.stuck);
        step(LIFETIME * 1.1);
    }

    uint32_t round()
    {
        return host->last_sent(UCT_VARUNA_CTL_FENCE_REQ)
                .as<uct_varuna_ctl_fence_req_t>().round;
    }

    fake_verbs         verbs;
    fake_verbs::device *nic;
};

/* Time counts from when its commands fail */
UCS_TEST_F(test_varuna_gone, nic_that_still_writes) {
    open();
    ASSERT_UCS_OK(put(1));
    fail_nic();
    EXPECT_EQ((uint32_t)UCT_VARUNA_ROUND_LATE, round());
    answer_fence(ep->recovery.dead.epoch, 0, 0, UCT_VARUNA_ROUND_LATE);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "it may still execute the put";

    ep->sm.since -= ucs_time_from_sec(LIFETIME); /* So much time passes */
    commands_fail = 1;
    step(LIFETIME * 0.5);
    EXPECT_EQ((uint32_t)UCT_VARUNA_ROUND_LATE,
              uct_varuna_drain_round(ep, ucs_get_time() + ucs_time_from_sec(LIFETIME / 2)))
            << "its packets live";
    step(LIFETIME * 20);
    EXPECT_EQ((uint32_t)UCT_VARUNA_ROUND_ENDED, round());
    answer_fence(ep->recovery.dead.epoch, 0, 0, UCT_VARUNA_ROUND_LATE);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "the log was read before that";
    answer_fence(ep->recovery.dead.epoch, 0, 0, UCT_VARUNA_ROUND_ENDED);
    EXPECT_NE(UCT_VARUNA_EP_FENCE, state());
    lane(0).is_drained = true;
}

/* What the NIC has sent is executed by nobody once the responder's queue pair is in RESET. But
 * it may still write what it has received */
class test_varuna_gone_rc : public test_varuna_gone {
protected:
    enum {
        FLAGS = UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_QP |
                UCT_VARUNA_FENCE_FLAG_PSN
    };

    void end_nic()
    {
        commands_fail = 1;
        while (uct_varuna_md_ended_at(host->iface()->md, 0) == 0) {
            usleep(1000);
        }
    }

    void answer(unsigned flags)
    {
        answer_fence(ep->recovery.dead.epoch, FLAGS | flags, 101, UCT_VARUNA_ROUND_LATE);
    }

    virtual void cleanup()
    {
        lane(0, UCT_VARUNA_LANE_RC).is_drained = true;
        test_varuna_gone::cleanup();
    }
};

UCS_TEST_F(test_varuna_gone_rc, put) {
    open_rc(100);
    ASSERT_UCS_OK(put(1));
    lane(0, UCT_VARUNA_LANE_RC).is_drained = false;
    fail_nic();
    answer(UCT_VARUNA_FENCE_FLAG_RESET);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "it works";
    end_nic();
    answer(0);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "what it has sent may be executed";
    answer(UCT_VARUNA_FENCE_FLAG_RESET);
    EXPECT_NE(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(1u, ep->stats.fences_reset);
    EXPECT_EQ(0u, ep->stats.fences_lifetime);
}

UCS_TEST_F(test_varuna_gone_rc, read) {
    open_rc(100);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    lane(0, UCT_VARUNA_LANE_RC).is_drained = false;
    fail_nic();
    end_nic();
    answer(UCT_VARUNA_FENCE_FLAG_RESET);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "it may write an answer";
    answer_fence(ep->recovery.dead.epoch, FLAGS | UCT_VARUNA_FENCE_FLAG_RESET, 101,
                 UCT_VARUNA_ROUND_ENDED);
    EXPECT_NE(UCT_VARUNA_EP_FENCE, state());
}

/* The system says nothing, as if the event got lost: that commands fail is as good. A lane that
 * is not flushed asks for that, on RC and on DC */
UCS_TEST_F(test_varuna_gone_rc, silent_death) {
    scoped_log_handler slh(hide_warns_logger);

    open_rc(100);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    lane(0, UCT_VARUNA_LANE_RC).is_drained        = false;
    lane(0, UCT_VARUNA_LANE_RC).invalidate_status = UCS_ERR_IO_ERROR;
    commands_fail = 1;
    host->iface()->links[0].lanes[UCT_VARUNA_LANE_RC].dry_at = UCS_TIME_INFINITY;
    link_down(0);
    step();
    EXPECT_FALSE(uct_varuna_ctl_is_nic_gone(host->ctl(), 0));
    step(CTL_TIMEOUT * 1.1);
    while (!uct_varuna_ctl_is_nic_gone(host->ctl(), 0)) {
        usleep(1000); /* On the NIC's thread */
    }
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state()) << "without DRAIN_TIMEOUT";
    answer_fence(ep->recovery.dead.epoch, FLAGS | UCT_VARUNA_FENCE_FLAG_RESET, 101,
                 UCT_VARUNA_ROUND_ENDED);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    EXPECT_EQ(1u, ep->stats.fences_lifetime);
    lane(0, UCT_VARUNA_LANE_RC).invalidate_status = UCS_OK;
}

UCS_TEST_F(test_varuna_gone, silent_death_on_dc) {
    scoped_log_handler slh(hide_warns_logger);

    open();
    ASSERT_UCS_OK(put(1));
    commands_fail      = 1;
    lane(0).is_drained = false;
    host->iface()->links[0].lanes[UCT_VARUNA_LANE_DC].dry_at = UCS_TIME_INFINITY;
    link_down(0);
    step();
    step(CTL_TIMEOUT * 1.1);
    while (!uct_varuna_ctl_is_nic_gone(host->ctl(), 0)) {
        usleep(1000);
    }
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(ep->recovery.dead.epoch, 0, 0, UCT_VARUNA_ROUND_ENDED);
    EXPECT_NE(UCT_VARUNA_EP_FENCE, state());
    EXPECT_NE(UCT_VARUNA_EP_FAILED, state());
    lane(0).is_drained = true;
}

/* It hangs, and its commands succeed: what it still does is unknown, the responder has nothing
 * of a DC lane that could be stopped, and time proves nothing. So nothing is repeated */
class test_varuna_gone_hopeless : public test_varuna_gone {
protected:
    virtual void init()
    {
        test_varuna_gone::init();
        host->iface()->super.err_handler       = failed;
        host->iface()->super.err_handler_arg   = this;
        host->iface()->super.err_handler_flags = 0;
        error                                  = UCS_OK;
    }

    virtual void cleanup()
    {
        lane(0).is_drained = true;
        test_varuna_gone::cleanup();
    }

    static ucs_status_t failed(void *arg, uct_ep_h, ucs_status_t status)
    {
        ((test_varuna_gone_hopeless*)arg)->error = status;
        return UCS_OK;
    }

    void hang()
    {
        lane(0).is_drained = false;
        host->iface()->links[0].lanes[UCT_VARUNA_LANE_DC].dry_at = UCS_TIME_INFINITY;
        link_down(0);
        step();
        step(DRAIN_TIMEOUT * 0.9);
        ASSERT_EQ(UCT_VARUNA_EP_DRAIN, state());
        ASSERT_FALSE(uct_varuna_ctl_is_nic_gone(host->ctl(), 0));
        {
            scoped_log_handler slh(hide_errors_logger);
            step(DRAIN_TIMEOUT * 0.2);
        }
    }

    void expect_failed()
    {
        ASSERT_EQ(UCT_VARUNA_EP_FAILED, state());
        EXPECT_EQ(UCS_OK, error) << "the lane may still write into the user's buffers";
        step(DRAIN_TIMEOUT * 1.1);
        EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, error);
        EXPECT_EQ(0u, ep->hot.num_reqs);
        EXPECT_EQ(0u, lane(1).posted.size());
        for (const auto &message : host->sent()) {
            EXPECT_NE(UCT_VARUNA_CTL_FENCE_REQ, message.hdr.type);
        }
    }

    ucs_status_t error;
};

UCS_TEST_F(test_varuna_gone_hopeless, put) {
    open();
    ASSERT_UCS_OK(put(1));
    hang();
    expect_failed();
}

/* It owes nothing, but its answer may come after the repetition's */
UCS_TEST_F(test_varuna_gone_hopeless, read) {
    uct_completion_t comp = {};

    comp.count = 1;
    comp.func  = [](uct_completion_t*) {};
    open();
    ASSERT_EQ(UCS_INPROGRESS,
              get(&comp));
    hang();
    expect_failed();
    EXPECT_EQ(0, comp.count);
    EXPECT_EQ(UCS_ERR_ENDPOINT_TIMEOUT, comp.status);
}

class test_varuna_md_end : public test_varuna_md {
protected:
    static void wait_until(const std::function<bool()> &condition)
    {
        const ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(60);

        while (!condition()) {
            ASSERT_LT(ucs_get_time(), deadline);
            usleep(1000);
        }
    }
};

/* The NIC's thread asks until a command fails, and the first failure counts */
UCS_TEST_F(test_varuna_md_end, first_command_that_fails) {
    ucs_time_t begin, ended_at;

    add("mlx5_0", 2);
    open();
    EXPECT_NE(0u, uct_varuna_md_ended_at(m_md, 0)) << "NICs without a death";
    commands_fail = 0;
    m_md->is_dead = is_dead;
    for (unsigned i = 0; i < 10; ++i) {
        EXPECT_EQ(0u, uct_varuna_md_ended_at(m_md, i % 2));
        usleep(1000);
    }

    begin         = ucs_get_time();
    commands_fail = 1;
    do {
        ended_at = uct_varuna_md_ended_at(m_md, 0);
    } while ((ended_at == 0) && (ucs_get_time() < (begin + ucs_time_from_sec(60))));
    EXPECT_GE(ended_at, begin);
    EXPECT_LE(ended_at, ucs_get_time());
    EXPECT_EQ(ended_at, uct_varuna_md_ended_at(m_md, 1)) << "a port of the same NIC";
    commands_fail = 0;
    EXPECT_EQ(ended_at, uct_varuna_md_ended_at(m_md, 0)) << "for good";
}

/* A NIC that was reset is asked less and less often */
UCS_TEST_F(test_varuna_md_end, return_is_noticed) {
    static volatile int asked, answers;
    scoped_log_handler slh(wrap_warns_logger);
    const ucs_time_t second = ucs_time_from_sec(1);
    ucs_time_t now          = ucs_get_time();
    int looks               = 0;

    asked = answers = 0;
    add("mlx5_0", 2);
    open();
    m_md->is_dead = is_dead;
    m_md->answers = [](const char *dev_name) -> int {
        EXPECT_STREQ("mlx5_0:1", dev_name);
        ++asked;
        return answers;
    };
    commands_fail = 1;
    wait_until([&]() { return uct_varuna_md_ended_at(m_md, 1) != 0; });
    EXPECT_EQ(UCT_VARUNA_NIC_DEAD, uct_varuna_md_nic_state(m_md, 1));
    /* The NIC's thread may not have come back from the last question */
    wait_until([&]() {
        now += 16 * second;
        uct_varuna_md_look_for_return(m_md, ++looks % 2, now);
        return asked >= 3;
    });
    for (unsigned i = 0; i < 20; ++i) {
        uct_varuna_md_look_for_return(m_md, i % 2, now);
        usleep(1000);
    }

    EXPECT_LE(asked, looks) << "at one time it is asked once";
    EXPECT_EQ(UCT_VARUNA_NIC_DEAD, uct_varuna_md_nic_state(m_md, 0));
    answers       = 1;
    commands_fail = 0; /* In its next life */
    wait_until([&]() {
        now += 16 * second;
        uct_varuna_md_look_for_return(m_md, 0, now);
        return uct_varuna_md_nic_state(m_md, 1) == UCT_VARUNA_NIC_WORKING;
    });
    EXPECT_EQ(1u, m_warnings.size()) << "that it died";
    EXPECT_EQ(1u, m_md->nics[1].generation);
}
