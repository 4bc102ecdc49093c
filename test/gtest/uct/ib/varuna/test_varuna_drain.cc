/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A lane whose NIC hangs: what the responder's fence proves about it.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/md/varuna_cmd.h>
}

#include <semaphore.h>

class test_varuna_drain : public test_varuna_recovery {
protected:
    static constexpr uint32_t PSN = 100;

    fake_lane &rc()
    {
        return lane(0, UCT_VARUNA_LANE_RC);
    }

    /* Nothing is flushed, and the lane counts as stuck */
    void hang()
    {
        rc().is_drained = false;
        drain();
        host->iface()->links[0].lanes[UCT_VARUNA_LANE_RC].dry_at = UCS_TIME_INFINITY;
        step(DRAIN_TIMEOUT * 2.2);
        ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
        ASSERT_TRUE(ep->recovery.stuck);
    }

    /* The responder has fenced its end, and a packet lifetime has passed since */
    void fence(uint32_t num_accepted)
    {
        const uint32_t flags = UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_QP |
                               UCT_VARUNA_FENCE_FLAG_PSN;

        answer_fence(ep->recovery.dead.epoch, flags, PSN + 1 + num_accepted);
        if (ep->hot.state == UCT_VARUNA_EP_FENCE) {
            age_fence(LIFETIME * 1.1);
            answer_fence(ep->recovery.dead.epoch, flags, PSN + 1 + num_accepted);
        }
    }

    virtual void cleanup()
    {
        rc().is_drained        = true;
        rc().invalidate_status = UCS_OK;
        test_varuna_recovery::cleanup();
    }
};

/* Nothing of a write comes back: the first answer decides, and no time has to pass */
UCS_TEST_F(test_varuna_drain, writes_do_not_need_our_queue_pair) {
    const uint32_t reset = UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_QP |
                           UCT_VARUNA_FENCE_FLAG_RESET | UCT_VARUNA_FENCE_FLAG_PSN;

    open_rc(PSN);
    ASSERT_UCS_OK(put(1));
    rc().invalidate_status = UCS_ERR_IO_ERROR;
    hang();
    answer_fence(ep->recovery.dead.epoch, reset, PSN + 1);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    EXPECT_EQ(1u, ep->stats.fences_reset);
    EXPECT_EQ(0u, ep->stats.fences_lifetime);
}

/* ... but for the answer's data */
UCS_TEST_F(test_varuna_drain, read_waits_for_the_lifetime) {
    const uint32_t reset = UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_QP |
                           UCT_VARUNA_FENCE_FLAG_RESET | UCT_VARUNA_FENCE_FLAG_PSN;

    open_rc(PSN);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    hang();
    answer_fence(ep->recovery.dead.epoch, reset, PSN + 1);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    age_fence(LIFETIME * 1.1);
    answer_fence(ep->recovery.dead.epoch, reset, PSN + 1);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    EXPECT_EQ(1u, ep->stats.fences_lifetime);
}

UCS_TEST_F(test_varuna_drain, read_on_a_stopped_queue_pair_is_repeated) {
    open_rc(PSN);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    hang();
    fence(0);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

/* The NIC may hold the answer: it would be written over what the user has put into its
 * buffer since the repetition */
UCS_TEST_F(test_varuna_drain, read_waits_until_our_queue_pair_is_stopped) {
    open_rc(PSN);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    rc().invalidate_status = UCS_ERR_IO_ERROR;
    hang();
    fence(0);
    fence(0);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    step(GIVE_UP / 2);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());

    rc().invalidate_status = UCS_OK;
    answer_fence(ep->recovery.dead.epoch, UCT_VARUNA_FENCE_FLAG_ERR |
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN, PSN + 1);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "what it holds has not expired";
    fence(0);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

UCS_TEST_F(test_varuna_drain, read_gives_up) {
    open_rc(PSN);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    rc().invalidate_status = UCS_ERR_IO_ERROR;
    hang();
    fence(0);
    step(GIVE_UP * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}

/* A command on the NIC's own thread, which comes back when the test says so */
class test_varuna_drain_hung : public test_varuna_drain {
protected:
    virtual void init()
    {
        test_varuna_drain::init();
        sem_init(&m_go, 0, 0);
        ASSERT_UCS_OK(uct_varuna_cmds_create("nic", &m_cmds));
        host->iface()->md->cmds[0] = m_cmds;
        m_cmd.test                 = this;
        m_cmd.super                = uct_varuna_cmd_t();
        m_cmd.super.run            = run;
        m_cmd.super.done           = done;
    }

    virtual void cleanup()
    {
        sem_post(&m_go);
        host->iface()->md->cmds[0] = NULL;
        test_varuna_drain::cleanup();
        EXPECT_UCS_OK(uct_varuna_cmds_destroy(m_cmds));
        sem_destroy(&m_go);
    }

    void hang_thread()
    {
        uct_varuna_cmds_submit(m_cmds, &m_cmd.super);
        while (!uct_varuna_cmds_is_hung(m_cmds)) {
            usleep(1000);
        }
    }

    void release_thread()
    {
        sem_post(&m_go);
        while (uct_varuna_cmds_is_hung(m_cmds)) {
            usleep(1000);
        }
    }

private:
    struct command {
        uct_varuna_cmd_t       super;
        test_varuna_drain_hung *test;
    };

    static ucs_status_t run(uct_varuna_cmd_t *cmd)
    {
        sem_wait(&ucs_container_of(cmd, command, super)->test->m_go);
        return UCS_OK;
    }

    static void done(uct_varuna_cmd_t *cmd, ucs_status_t status)
    {
    }

    uct_varuna_cmds_t *m_cmds;
    command           m_cmd;
    sem_t             m_go;
};

/* The application's thread would wait with it */
UCS_TEST_F(test_varuna_drain_hung, nic_gets_no_command_from_this_thread) {
    open_rc(PSN);
    ASSERT_UCS_OK_OR_INPROGRESS(get());
    rc().invalidate_status = UCS_ERR_IO_ERROR;
    hang();
    hang_thread();
    rc().invalidate_status = UCS_OK;
    fence(0);
    EXPECT_TRUE(ep->recovery.running) << "the command was given";
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());

    release_thread();
    fence(0);
    EXPECT_FALSE(ep->recovery.running);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}
