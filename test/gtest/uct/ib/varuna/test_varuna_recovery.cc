/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A vQP from its opening to its end: the steps of the recovery, the verdicts, and planned
 * changes of the lane, on fake lanes. The test plays the responder.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/iface/varuna_tl_iface.h>
}

#include <climits>
#include <map>

/* --- Opening --- */

UCS_TEST_F(test_varuna_recovery, opening_asks_over_one_link_after_the_other) {
    const double interval = ucs_time_to_sec(host->iface()->config.ctl_timeout);
    fake_host::message first, second;

    first = host->last_sent(UCT_VARUNA_CTL_OPEN_REQ);
    step(interval / 2);
    EXPECT_EQ(0u, host->sent().size());
    step(interval * 1.1);
    second = host->last_sent(UCT_VARUNA_CTL_OPEN_REQ);
    EXPECT_NE(first.link, second.link);
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state());
}

UCS_TEST_F(test_varuna_recovery, opening_gives_up) {
    step(GIVE_UP * 1.1);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* The peer has answered, but no lane can be had */
UCS_TEST_F(test_varuna_recovery, opening_gives_up_without_a_lane) {
    link_down(0);
    link_down(1);
    opened();
    uct_varuna_ep_open_lane(ep, ucs_get_time());
    step(GIVE_UP * 0.5);
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state());
    step(GIVE_UP * 0.6);
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
}

/* Puts of a new endpoint wait for its first lane, and keep their order */
UCS_TEST_F(test_varuna_recovery, puts_wait_for_the_first_lane) {
    put_all(2);
    EXPECT_EQ(0u, lane(0).posted.size());
    open();
    EXPECT_EQ((std::vector<uint64_t>{1, 2}), puts(lane(0)));
}

/* --- Completions --- */

/* Of puts for which the user waits not, as many as TX_CQ_MODERATION share one */
UCS_TEST_F(test_varuna_recovery, silent_puts_share_a_completion) {
    open();
    lane(0).flush_status = UCS_INPROGRESS;
    for (unsigned number : {1u, 3u, 16u, 64u}) {
        host->iface()->config.tx_cq_moderation = number;
        for (unsigned i = 1; i < number; ++i) {
            ASSERT_UCS_OK(put(i));
            ASSERT_EQ(i, ep->hot.silent);
        }
        ASSERT_UCS_OK(put(number));
        EXPECT_EQ(0u, ep->hot.silent);
        EXPECT_EQ("flush", lane(0).posted.back().op);
        EXPECT_EQ(number, ep->hot.num_reqs);
        lane(0).complete();
        EXPECT_EQ(0u, ep->hot.num_reqs);
    }
}

UCS_TEST_F(test_varuna_recovery, moderation_has_limits) {
    const std::map<unsigned, unsigned> limits = {{0, 1}, {1, 1}, {64, 64}, {65, 64},
                                                 {UINT_MAX, 64}};
    uct_varuna_iface_config_t config          = {};

    config.give_up = GIVE_UP;
    for (const auto &limit : limits) {
        config.tx_cq_moderation = limit.first;
        ASSERT_UCS_OK(uct_varuna_iface_set_config(host->iface(), &config));
        EXPECT_EQ(limit.second, host->iface()->config.tx_cq_moderation);
    }
}

/* --- Recovery --- */

/* The lane is left at once, and nothing more is posted until the verdict */
UCS_TEST_F(test_varuna_recovery, nothing_is_posted_before_the_verdict) {
    open();
    ASSERT_UCS_OK(put(1));
    link_down(0);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(2));
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    EXPECT_TRUE(lane(0).eps[0]->in_err);
    lane(0).is_drained = false;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    lane(0).is_drained = true;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(2));
    EXPECT_EQ(0u, lane(1).posted.size());
}

/* Packets of DC cannot be stopped: the log is valid after their lifetime */
UCS_TEST_F(test_varuna_recovery, dc_is_fenced_by_time) {
    open();
    ASSERT_UCS_OK(put(1));
    link_down(0);
    step();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    step(LIFETIME / 2);
    EXPECT_EQ(0u, host->sent().size());
    step(LIFETIME * 1.1);
    EXPECT_EQ(1u, host->last_sent(UCT_VARUNA_CTL_FENCE_REQ)
                          .as<uct_varuna_ctl_fence_req_t>().round);
}

UCS_TEST_F(test_varuna_recovery, what_the_log_proves_is_not_repeated) {
    put_and_fail(4);
    execute(lane(0), 4); /* Two puts and their entries */
    answer_fence(1);
    ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
    EXPECT_EQ(0u, lane(0).eps.size()) << "the old lane is still there";
    compare(lane(1), 0);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{3, 4}), puts(lane(1)));
    EXPECT_EQ(2u, ep->stats.executed);
    EXPECT_EQ(1u, ep->stats.compared_different);
    EXPECT_EQ(2u, ep->hot.num_reqs);
}

/* The log proves something if the network keeps the order, or the peer's queue pairs, or if
 * the user says so; but not against what the NICs say */
UCS_TEST_F(test_varuna_recovery, log_needs_order) {
    static const struct {
        uct_varuna_order_policy_t policy;
        uint8_t                   dc_ordered, dc_unordered;
        unsigned                  executed, ambiguous;
    } cases[] = {
        {UCT_VARUNA_ORDER_POLICY_AUTO,    0, 0, 0, 4},
        {UCT_VARUNA_ORDER_POLICY_AUTO,    2, 0, 0, 4}, /* Another NIC's */
        {UCT_VARUNA_ORDER_POLICY_AUTO,    1, 0, 2, 1},
        {UCT_VARUNA_ORDER_POLICY_CERTAIN, 0, 0, 2, 1},
        {UCT_VARUNA_ORDER_POLICY_CERTAIN, 0, 1, 0, 4},
        {UCT_VARUNA_ORDER_POLICY_UNKNOWN, 1, 0, 0, 4}
    };

    for (auto &c : cases) {
        host->iface()->config.order = c.policy;
        host->iface()->links[0].lanes[UCT_VARUNA_LANE_DC].order = UCT_VARUNA_ORDER_UNKNOWN;
        dc_ordered   = c.dc_ordered;
        dc_unordered = c.dc_unordered;
        open();
        for (unsigned i = 1; i <= 4; ++i) {
            ASSERT_UCS_OK(put(i));
        }
        fail_link();
        execute(lane(0), 4); /* Two puts and their entries */
        answer_fence(1);
        EXPECT_EQ(c.executed, ep->stats.executed);
        EXPECT_EQ(c.ambiguous, ep->stats.ambiguous);
        cleanup();
        init();
    }
}

/* The put in the gap was executed, as its target shows; the next one was not */
UCS_TEST_F(test_varuna_recovery, what_the_target_shows_is_not_repeated) {
    put_and_fail(3);
    execute(lane(0), 2);
    answer_fence(1);
    compare(lane(1), 2);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{3}), puts(lane(1)));
    EXPECT_EQ(1u, ep->stats.compared_equal);
}

/* The policy for an ambiguous put */
UCS_TEST_F(test_varuna_recovery, ambiguous_put_fails_the_endpoint) {
    host->iface()->config.ambiguous = UCT_VARUNA_AMBIGUOUS_FAIL;
    put_and_fail();
    answer_fence(1);
    compare(lane(1), 0);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
    EXPECT_EQ(0u, puts(lane(1)).size());
}

/* With everything executed there is nothing to repeat, and all requests are done */
UCS_TEST_F(test_varuna_recovery, all_executed) {
    put_and_fail(2);
    execute(lane(0), lane(0).posted.size());
    answer_fence(1);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(0u, puts(lane(1)).size());
    EXPECT_EQ(0u, ep->hot.num_reqs);
    ASSERT_UCS_OK(put(3));
    EXPECT_EQ((std::vector<uint64_t>{3}), puts(lane(1)));
}

/* A late answer for another incarnation is no evidence for this one */
UCS_TEST_F(test_varuna_recovery, answer_of_another_incarnation) {
    put_and_fail();
    answer_fence(2);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(1, 0, 0, 0); /* Read before the end of the packets' lifetime */
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(1);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    answer_fence(1); /* Once more */
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

UCS_TEST_F(test_varuna_recovery, fence_is_repeated_over_the_other_link) {
    const double interval = ucs_time_to_sec(host->iface()->config.ctl_timeout);
    fake_host::message first;

    put_and_fail();
    first = host->last_sent(UCT_VARUNA_CTL_FENCE_REQ);
    EXPECT_EQ(1u, first.link) << "the port of link 0 is down";
    EXPECT_EQ(1u, first.hdr.epoch);
    EXPECT_EQ(OPENING, first.hdr.opening);
    step(LIFETIME + (2.2 * interval));
    host->last_sent(UCT_VARUNA_CTL_FENCE_REQ);
}

/* Don't wait after a failed message, but do after repeated failures */
UCS_TEST_F(test_varuna_recovery, lost_fence_is_repeated_at_once) {
    const double interval = ucs_time_to_sec(host->iface()->config.ctl_timeout);

    put_and_fail();
    host->last_sent(UCT_VARUNA_CTL_FENCE_REQ);
    step(LIFETIME * 1.1);
    EXPECT_TRUE(host->sent().empty()) << "nothing is lost, and the answer may come";

    host->fail_ctl(ep->peer, 1);
    step(LIFETIME * 1.1);
    host->last_sent(UCT_VARUNA_CTL_FENCE_REQ);

    host->fail_ctl(ep->peer, 1);
    step(LIFETIME * 1.1);
    EXPECT_TRUE(host->sent().empty());
    step((LIFETIME * 1.1) + (1.1 * interval));
    host->last_sent(UCT_VARUNA_CTL_FENCE_REQ);

    host->fail_ctl(ep->peer, 1);
    step((LIFETIME * 1.1) + (1.1 * interval));
    host->last_sent(UCT_VARUNA_CTL_FENCE_REQ);
}

/* Each step takes its time, and the counters have it */
UCS_TEST_F(test_varuna_recovery, times_are_counted) {
    const useconds_t pause = 2000;
    ucs_time_t begin;
    uint64_t sum;

    open();
    ASSERT_UCS_OK(put(1));
    host->requester()->scan.clock += ucs_time_from_msec(30);
    drain();
    begin = ep->sm.since;
    usleep(pause);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    usleep(2 * pause);
    step(LIFETIME * 1.1);
    answer_fence(1);
    ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
    usleep(3 * pause);
    step();
    lane(1).complete(std::string(8, 0)); /* The put is compared */
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());

    sum = ep->stats.drain_usec + ep->stats.fence_usec + ep->stats.repeat_usec;
    EXPECT_NEAR(30000, (double)ep->stats.detect_usec, 10);
    EXPECT_GE(ep->stats.drain_usec, pause);
    EXPECT_GE(ep->stats.fence_usec, 2 * pause);
    EXPECT_GE(ep->stats.repeat_usec, 3 * pause);
    EXPECT_LE(sum, ep->stats.recovery_usec + 3); /* Each is rounded */
    EXPECT_NEAR(ucs_time_to_usec(ep->sm.since - begin), sum, 3);
}

/* Our NIC hangs. The responder may be too busy to stop its end at once: its answer says
 * so, and the next one may say otherwise */
UCS_TEST_F(test_varuna_recovery, lane_that_hangs_is_asked_about_again) {
    uint32_t epoch;

    open_rc(100);
    ASSERT_UCS_OK(put(1));
    lane(0, UCT_VARUNA_LANE_RC).is_drained = false;
    drain();
    step(DRAIN_TIMEOUT * 2.4);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    ASSERT_TRUE(ep->recovery.stuck);
    epoch = ep->recovery.dead.epoch;

    answer_fence(epoch, 0);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(epoch, UCT_VARUNA_FENCE_FLAG_ERR);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "its answers may be on their way";
    age_fence(LIFETIME * 1.5);
    answer_fence(epoch, 0);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state()) << "it is not stopped, says this one";
    answer_fence(epoch, UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_QP);
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
}

/* ... but not for ever */
UCS_TEST_F(test_varuna_recovery, lane_that_hangs_and_is_never_stopped) {
    open_rc(100);
    ASSERT_UCS_OK(put(1));
    lane(0, UCT_VARUNA_LANE_RC).is_drained = false;
    link_down(0);
    step();
    step(DRAIN_TIMEOUT * 2.4);
    answer_fence(ep->recovery.dead.epoch, 0);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    step(GIVE_UP * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
    lane(0, UCT_VARUNA_LANE_RC).is_drained = true;
    step();
    uct_varuna_graves_progress(host->iface());
}

UCS_TEST_F(test_varuna_recovery, no_answer_to_the_fence) {
    put_and_fail();
    step(GIVE_UP * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}

/* The lane that takes over also fails: the lost put is posted on a third incarnation,
 * and the log of the second one decides */
UCS_TEST_F(test_varuna_recovery, second_failure) {
    put_and_fail();
    answer_fence(1);
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_EQ((std::vector<uint64_t>{1}), puts(lane(1)));
    EXPECT_EQ(2u, ep->lane.epoch);
    host->sent();

    fail_link(1);
    memset(ring, 0, sizeof(ring));
    execute(lane(1), lane(1).posted.size());
    answer_fence(2);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state()) << "there is no link";
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(2));
}

/* --- The PSN --- */

UCS_TEST_F(test_varuna_recovery, psn_decides_without_a_log) {
    open_rc(0xfffffe);
    put_all(3);
    fail_link();
    /* The first write, two puts and their entries, which are not in the log: */
    answer_fence(ep->recovery.dead.epoch,
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN,
                 (0xfffffe + 1 + 3) & 0xffffff, 0);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state()) << "the log says otherwise: look again";
    execute(lane(0, UCT_VARUNA_LANE_RC), 3);
    answer_fence(ep->recovery.dead.epoch,
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN,
                 (0xfffffe + 1 + 3) & 0xffffff, 1);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{3}), puts(lane(1)));
}

/* A put is one message on RC, where the PSN decides, and two on DC */
UCS_TEST_F(test_varuna_recovery, log_is_written_on_the_fallback_lane_only) {
    host->iface()->config.log = UCT_VARUNA_LOG_FALLBACK;
    open_rc(100);
    lane(0, UCT_VARUNA_LANE_RC).posted.clear();
    put_all(3);
    EXPECT_EQ(3u, lane(0, UCT_VARUNA_LANE_RC).posted.size());
    EXPECT_EQ(104u, ep->lane.psn);
    fail_link();
    answer_fence(ep->recovery.dead.epoch,
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN, 102, 0);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{2, 3}), puts(lane(1)));
    EXPECT_EQ(4u, lane(1).posted.size()) << "two puts, and their entries";
}

/* The responder's NIC is dead: no PSN, no log. All puts were executed, and the last one has
 * overwritten the others. */
UCS_TEST_F(test_varuna_recovery, dead_nic_without_a_log) {
    host->iface()->config.log = UCT_VARUNA_LOG_FALLBACK;
    open_rc(100);
    put_all(3);
    fail_link();
    answer_fence(ep->recovery.dead.epoch, 0, 0, 1);
    for (unsigned i = 0; i < 3; ++i) {
        compare(lane(1), 2);
    }
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{3}), puts(lane(1)));
    EXPECT_EQ(3u, ep->stats.ambiguous);
    EXPECT_EQ(2u, ep->stats.compared_equal);
    EXPECT_EQ(0u, ep->stats.undecided);
}

/* Nothing of the window is there: the policy decides about all of it */
UCS_TEST_F(test_varuna_recovery, dead_nic_and_other_contents) {
    host->iface()->config.log = UCT_VARUNA_LOG_FALLBACK;
    open_rc(100);
    put_all(2);
    fail_link();
    answer_fence(ep->recovery.dead.epoch, 0, 0, 1);
    compare(lane(1), 77);
    compare(lane(1), 77);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{1, 2}), puts(lane(1)));
    EXPECT_EQ(1u, ep->stats.undecided);
}

/* The contradiction persists: a lost write is worse than a lost endpoint */
UCS_TEST_F(test_varuna_recovery, log_contradicts_the_psn) {
    open_rc(100);
    put_all(2);
    fail_link();
    answer_fence(ep->recovery.dead.epoch,
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN, 105, 0);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    {
        scoped_log_handler slh(hide_errors_logger);
        answer_fence(ep->recovery.dead.epoch,
                     UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN, 105, 1);
    }
    expect_failed(UCS_ERR_IO_ERROR);
}

/* The device reports the PSN of the connection's start. The first write shows that it
 * is not the present one, although no put has completed. */
UCS_TEST_F(test_varuna_recovery, stale_psn_is_not_believed) {
    open_rc(100);
    put_all(2);
    fail_link();
    execute(lane(0, UCT_VARUNA_LANE_RC), 3);
    answer_fence(ep->recovery.dead.epoch,
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN, 100, 0);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(ep->recovery.dead.epoch,
                 UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN, 100, 1);
    ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
    compare(lane(1), 2);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(0u, puts(lane(1)).size());
    EXPECT_EQ(1u, uct_varuna_requester_peer(host->iface(), ep->peer)->no_psn);
}

/* A connection is used when its first write is acknowledged */
UCS_TEST_F(test_varuna_recovery, connection_is_proved_by_its_first_write) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

    open();
    rc.sq_mtu       = 1024;
    rc.flush_status = UCS_INPROGRESS;
    connect_rc(0);
    EXPECT_NE(0, step());
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state()) << "it is not known to work";
    ASSERT_EQ("put", rc.posted[0].op);
    EXPECT_EQ(ep->remote.logs_addr + UCT_VARUNA_LOG_SCRATCH, rc.posted[0].addr)
            << "late, it would change a log";
    ASSERT_UCS_OK(put(1));
    EXPECT_EQ((std::vector<uint64_t>{1}), puts(lane(0)));
    rc.flush_status = UCS_OK;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_SWAP, state());
    lane(0).complete();
    step();
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
}

UCS_TEST_F(test_varuna_recovery, connection_whose_first_write_fails) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

    open();
    rc.sq_mtu      = 1024;
    rc.post_status = UCS_ERR_ENDPOINT_TIMEOUT;
    connect_rc(0);
    step();
    step();
    EXPECT_TRUE(ep->next.lane.ep == NULL);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_UCS_OK(put(1));
    EXPECT_EQ((std::vector<uint64_t>{1}), puts(lane(0)));
    lane(0).complete();
}

/* A DC lane that its NIC does not flush can still write at any time */
UCS_TEST_F(test_varuna_recovery, lane_that_never_comes_to_rest) {
    open();
    ASSERT_UCS_OK(put(1));
    lane(0).is_drained = false;
    link_down(0);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    {
        scoped_log_handler slh(hide_errors_logger);
        step(DRAIN_TIMEOUT * 2.2);
    }
    expect_failed(UCS_ERR_ENDPOINT_TIMEOUT);
    lane(0).is_drained = true;
}

/* --- Planned changes --- */

/* The read is the last operation on the old lane; later ones wait for it, and are
 * posted on the new lane */
UCS_TEST_F(test_varuna_recovery, swap_waits_for_its_read) {
    open();
    ASSERT_UCS_OK(put(1));
    connect_rc(0);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());
    ASSERT_EQ("get", lane(0).posted.back().op);
    ASSERT_UCS_OK(put(2));
    step();
    EXPECT_EQ(UCT_VARUNA_EP_SWAP, state());
    EXPECT_EQ((std::vector<uint64_t>{1}), puts(lane(0)));
    EXPECT_EQ(0u, lane(0, UCT_VARUNA_LANE_RC).posted.size());

    lane(0).complete();
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
    EXPECT_EQ((std::vector<uint64_t>{2}), puts(lane(0, UCT_VARUNA_LANE_RC)));
    EXPECT_EQ(0u, ep->stats.switches);
}

/* The old lane fails in between: a recovery, which repeats the read or forgets it, and
 * the connected lane is destroyed */
UCS_TEST_F(test_varuna_recovery, lane_fails_during_a_swap) {
    open();
    ASSERT_UCS_OK(put(1));
    connect_rc(0);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());
    ASSERT_UCS_OK(put(2));
    fail_link();
    EXPECT_TRUE(ep->next.lane.ep == NULL);
    EXPECT_EQ(ep->lanes.epoch, host->last_sent(UCT_VARUNA_CTL_FENCE_REQ)
                                       .as<uct_varuna_ctl_fence_req_t>().newest)
            << "a connection that was asked for is given up, too";
    answer_fence(1);
    compare(lane(1), 0);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{1, 2}), puts(lane(1)));
    lane(1).complete();
}

/* The new lane fails in between: the vQP stays */
UCS_TEST_F(test_varuna_recovery, new_lane_fails_during_a_swap) {
    open();
    connect_rc(1);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->next.lane.ep, UCS_ERR_CANCELED);
    step();
    EXPECT_EQ(UCT_VARUNA_LANE_DC, ep->lane.kind);
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((std::vector<uint64_t>{1}), puts(lane(0)));
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0u, lane(1, UCT_VARUNA_LANE_RC).eps.size());
    lane(0).complete();
}

/* A NIC without a route is one more failed path */
UCS_TEST_F(test_varuna_recovery, nothing_is_sent) {
    open();
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_UNREACHABLE);
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_UNREACHABLE);
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    EXPECT_EQ(1u, ep->lanes.unsent) << "once for each lane";
}

/* ... but if no lane can send a request, that is the request's fault */
UCS_TEST_F(test_varuna_recovery, no_lane_sends_anything) {
    open();
    ASSERT_UCS_OK(put(1));
    ep->lanes.unsent = UCT_VARUNA_MAX_UNSENT - 1;
    {
        scoped_log_handler slh(hide_errors_logger);
        uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_UNREACHABLE);
    }
    expect_failed(UCS_ERR_IO_ERROR);
}

/* A lane that has completed something shows that it is the links' fault */
UCS_TEST_F(test_varuna_recovery, lane_sends_something) {
    open();
    ep->lanes.unsent   = UCT_VARUNA_MAX_UNSENT - 1;
    ep->lane.acked_psn = ep->lanes.first_acked + 1;
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_UNREACHABLE);
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    EXPECT_EQ(1u, ep->lanes.unsent);
}

/* A completion of its first write may be there: UCX ends the process if it finds one of an
 * endpoint that is gone */
UCS_TEST_F(test_varuna_recovery, connection_with_work_is_drained_before_it_is_destroyed) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

    open();
    connect_rc(0);
    ASSERT_EQ(1u, rc.eps.size());
    rc.is_drained = false;
    uct_varuna_ep_drop_next(ep);
    EXPECT_TRUE(ep->next.lane.ep == NULL);
    ASSERT_EQ(1u, rc.eps.size());
    EXPECT_TRUE(rc.eps[0]->in_err);
    rc.is_drained = true;
    uct_varuna_graves_progress(host->iface());
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0u, rc.eps.size());
}
