/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which lanes are left without a fence ("Is a fence needed?" in docs/RECOVERY.md).
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/requester/varuna_completion.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
}

class test_varuna_unfenced : public test_varuna_recovery {
protected:
    void message()
    {
        ASSERT_UCS_OK(uct_varuna_ep_am_short(&ep->super.super, 1, 2, NULL, 0));
    }

    void read(unsigned *num_read = NULL)
    {
        static unsigned ignored;

        ASSERT_EQ(UCS_INPROGRESS,
                  uct_varuna_ep_get_bcopy(&ep->super.super, count, num_read ? num_read :
                                          &ignored, sizeof(uint64_t), TARGET,
                                          (uct_rkey_t)&rkey, NULL));
    }

    /* The link of the lane fails, and the lane is drained */
    void fail(unsigned link = 0)
    {
        link_down(link);
        lane(link).posted.clear(); /* Nothing of it completes any more */
        step();
        ASSERT_EQ(UCT_VARUNA_EP_DRAIN, state());
        step();
    }

    void link_up(unsigned link)
    {
        uct_varuna_link_up(host->iface(), link, UCT_VARUNA_LINK_CAUSE_PORT);
        host->iface()->link_table.links[link].damp.state = UCT_VARUNA_DAMP_UP;
    }

    /* Which operations were posted on a lane */
    static names ops(const fake_lane &lane)
    {
        names found;

        for (const fake_lane::post &post : lane.posted) {
            found.push_back(post.op);
        }
        return found;
    }

    static void count(void *arg, const void*, size_t)
    {
        ++*(unsigned*)arg;
    }
};

/* The peer is not asked, whatever has become of the old lane's packets */
UCS_TEST_F(test_varuna_unfenced, messages_and_reads_are_repeated_at_once) {
    unsigned num_read = 0;

    open();
    message();
    read(&num_read);
    message();
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    EXPECT_EQ(0u, lane(0).eps.size()) << "the old lane is still there";
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((names{"am", "get", "am"}), ops(lane(1)));
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_EQ(3u, ep->stats.repeated);
    EXPECT_EQ(0u, ep->stats.fences_lifetime);
    lane(1).complete();
    EXPECT_EQ(1u, num_read);
}

/* An endpoint without requests finds out whether its peer lives all the same */
UCS_TEST_F(test_varuna_unfenced, idle_lane) {
    open();
    fail();
    lane(1).post_status = UCS_ERR_NO_RESOURCE;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    lane(1).post_status = UCS_OK;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_EQ((names{"put"}), ops(lane(1)));
    EXPECT_EQ(ep->remote.logs_addr + UCT_VARUNA_LOG_SCRATCH, lane(1).posted[0].addr);
}

/* Nothing has shown that the peer lives since the first failure: it is asked at once */
UCS_TEST_F(test_varuna_unfenced, peer_without_a_sign_of_life_is_asked) {
    uint32_t epoch;

    open();
    read();
    fail();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    host->sent();
    link_up(0);
    fail(1);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    epoch = ep->recovery.dead.epoch;
    step();
    EXPECT_EQ(epoch, host->last_sent(UCT_VARUNA_CTL_FENCE_REQ).hdr.epoch);
    answer_fence(epoch, 0, 0, UCT_VARUNA_ROUND_EARLY);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state()) << "no time has to pass";
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(0u, ep->stats.fences_lifetime);
    link_up(1);
    fail(0);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state()) << "the answer was a sign of life";
}

UCS_TEST_F(test_varuna_unfenced, peer_that_does_not_answer_is_given_up) {
    open();
    read();
    fail();
    step();
    link_up(0);
    fail(1);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    step(GIVE_UP * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}

/* A completion on the new lane, or CONNECT_REP, is a sign of life */
UCS_TEST_F(test_varuna_unfenced, signs_of_life) {
    open();
    read();
    fail();
    step();
    EXPECT_TRUE(ep->recovery.unproven);
    lane(1).complete();
    EXPECT_FALSE(ep->recovery.unproven);
    link_up(0);
    fail(1);
    step();
    EXPECT_TRUE(ep->recovery.unproven);
    connect_rc(0);
    EXPECT_FALSE(ep->recovery.unproven);
}

UCS_TEST_F(test_varuna_unfenced, unfinished_put_needs_a_fence) {
    open();
    ASSERT_UCS_OK(put(1));
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
}

/* It may be on its way to memory, and what follows would overtake it */
UCS_TEST_F(test_varuna_unfenced, acknowledged_put_needs_a_fence) {
    open();
    ASSERT_UCS_OK(put(1));
    acknowledge();
    message();
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(0u, lane(1).posted.size());
}

/* A read that was posted after it proves that it is in memory, once it has returned */
UCS_TEST_F(test_varuna_unfenced, put_before_a_read_that_returned) {
    open();
    ASSERT_UCS_OK(put(1));
    read();
    lane(0).complete();
    EXPECT_EQ(0u, ep->hot.num_reqs);
    message();
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

UCS_TEST_F(test_varuna_unfenced, put_before_a_read_that_did_not_return) {
    open();
    ASSERT_UCS_OK(put(1));
    acknowledge();
    read();
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
}

UCS_TEST_F(test_varuna_unfenced, put_after_a_read_that_returned) {
    open();
    read();
    ASSERT_UCS_OK(put(1));
    lane(0).complete();
    acknowledge();
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
}

/* What was fenced is settled */
UCS_TEST_F(test_varuna_unfenced, put_before_the_last_fence) {
    put_and_fail();
    execute(lane(0), 2);
    answer_fence(1);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    message();
    link_up(0);
    fail(1);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

/* ... but a put that is repeated is a new write */
UCS_TEST_F(test_varuna_unfenced, put_that_was_repeated) {
    put_and_fail();
    answer_fence(1);
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    link_up(0);
    fail(1);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
}

/* Puts that wait for the end of a swap are still to be judged */
UCS_TEST_F(test_varuna_unfenced, put_in_the_backlog_of_a_swap) {
    open();
    connect_rc(0);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());
    ASSERT_UCS_OK(put(1));
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
}

UCS_TEST_F(test_varuna_unfenced, atomic_needs_a_fence) {
    open();
    ep->hot.num_amos = 1;
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    ep->hot.num_amos = 0;
}

/* A lane that is not drained may still write into the user's buffers */
UCS_TEST_F(test_varuna_unfenced, not_before_the_lane_is_drained) {
    open();
    read();
    lane(0).is_drained = false;
    fail();
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    lane(0).is_drained = true;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

/* A CONNECT_REQ that was given up may be executed late, and clears its ring. So what follows
 * a lane without a fence never takes that ring. */
UCS_TEST_F(test_varuna_unfenced, goes_on_in_its_ring) {
    uint32_t epoch, asked;

    open();
    for (unsigned link = 0; link < 4; ++link) {
        epoch = ep->lane.epoch;
        uct_varuna_ep_connect_rc(ep, link % 2, ucs_get_time());
        asked = ep->next.lane.epoch;
        EXPECT_NE(uct_varuna_log_ring(epoch), uct_varuna_log_ring(asked));
        read();
        fail(link % 2);
        link_up(link % 2);
        step();
        ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
        lane(1 - (link % 2)).complete();
        EXPECT_LT(asked, ep->lane.epoch);
        EXPECT_EQ(uct_varuna_log_ring(epoch), uct_varuna_log_ring(ep->lane.epoch));
    }

    /* After a fence, the other one is empty */
    epoch = ep->lane.epoch;
    ASSERT_UCS_OK(put(1));
    fail_link(0);
    answer_fence(epoch);
    step();
    EXPECT_NE(uct_varuna_log_ring(epoch), uct_varuna_log_ring(ep->lane.epoch));
}

/* The responder learns from the next CONNECT_REQ what is over, and until it has answered, the
 * old queue pair keeps its number */
UCS_TEST_F(test_varuna_unfenced, connecting_ends_what_was_left) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);
    uct_varuna_ctl_connect_t req;

    open_rc(100);
    message();
    message();
    fail();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_EQ(1u, rc.eps.size());
    EXPECT_TRUE(rc.eps[0]->in_err);
    host->sent();
    uct_varuna_ep_connect_rc(ep, 1, ucs_get_time());
    req = host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ).as<uct_varuna_ctl_connect_t>();
    EXPECT_EQ(ep->lane.epoch, req.in_use);
    EXPECT_EQ(ep->hot.am_seq - 2, req.am_acked);
    EXPECT_EQ(1u, rc.eps.size());
    answer_connect();
    EXPECT_EQ(1u, host->iface()->rest.num);
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0u, rc.eps.size());
}

/* ... and so does a fence of what follows it */
UCS_TEST_F(test_varuna_unfenced, fence_ends_what_was_left) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

    open_rc(100);
    fail();
    step();
    ASSERT_EQ(1u, rc.eps.size());
    link_up(0);
    ASSERT_UCS_OK(put(1));
    fail_link(1);
    answer_fence(ep->recovery.dead.epoch);
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0u, rc.eps.size());
}

/* ... and the endpoint's end */
UCS_TEST_F(test_varuna_unfenced, left_lane_of_a_destroyed_endpoint) {
    open_rc(100);
    fail();
    step();
    ASSERT_TRUE(ep->recovery.left != NULL);
}
