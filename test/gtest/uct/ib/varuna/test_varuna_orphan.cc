/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Targets whose requester is dead, and targets whose requester may not know of them.
 */
#include "fake_target.h"

extern "C" {
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
#include <uct/ib/varuna/responder/varuna_fence.h>
}

#include <cstring>

/* Requesters that ended without CLOSE. The timeout is 0.8 s, checked every 0.1 s. */
class test_varuna_orphan : public fake_target_test {
protected:
    static constexpr double TIMEOUT = 0.8;

    virtual void init()
    {
        fake_target_test::init();
        open(alice);
        connect(alice, target(alice)->opening, 1);
        host->sent();
    }

    uct_varuna_peer_t *peer()
    {
        return target(alice)->peer;
    }

    /* All messages to the peer fail on these links */
    void fail(unsigned map)
    {
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            if ((map & UCS_BIT(link)) && (peer()->ctl_eps[link] != NULL)) {
                host->fail_ctl(peer(), link);
            }
        }
    }

    /* Send pings for this time, which fail or get no answer */
    void pass(double seconds, unsigned failing)
    {
        for (double past = 0; (past < seconds) && (target(alice) != NULL);
             past += TIMEOUT / 8) {
            host->advance(TIMEOUT / 8);
            if (target(alice) != NULL) {
                fail(failing);
            }
        }
    }

    void ping()
    {
        host->receive(alice, 0, host->header(alice, UCT_VARUNA_CTL_PING, 0, 1));
    }
};

UCS_TEST_F(test_varuna_orphan, quiet_peer_is_asked_on_all_links) {
    std::vector<fake_host::message> messages;

    host->advance(0.15);
    EXPECT_EQ(0u, count(host->sent(), UCT_VARUNA_CTL_PING)) << "it was heard just now";
    host->advance(0.2);
    messages = host->sent();
    EXPECT_GE(count(messages, UCT_VARUNA_CTL_PING), 1u * NUM_LINKS);
    EXPECT_LE(count(messages, UCT_VARUNA_CTL_PING), 2u * NUM_LINKS);
    EXPECT_NE(messages.front().link, messages.back().link);
}

UCS_TEST_F(test_varuna_orphan, dead_peer_is_given_up) {
    fake_lane::ep *qp = (fake_lane::ep*)target(alice)->qps[1].ep;
    fake_lane &rc     = host->lane(0, UCT_VARUNA_LANE_RC);
    uint32_t number   = target(alice)->am.number;

    pass(TIMEOUT * 0.8, 3);
    EXPECT_TRUE(target(alice) != NULL);
    pass(TIMEOUT * 0.5, 3);
    EXPECT_TRUE(target(alice) == NULL);
    EXPECT_EQ(1u, host->responder()->stats.given_up);

    host->dispatch();
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0, std::count(rc.eps.begin(), rc.eps.end(), qp));
    EXPECT_EQ(1u, host->responder()->stats.orphans);
    EXPECT_EQ(1u, host->responder()->targets.count) << "its logs have no other owner";
    EXPECT_TRUE(uct_varuna_numbers_find(&host->responder()->targets.numbers, number) !=
                NULL);
}

/* Its NIC receives messages: it may be stopped */
UCS_TEST_F(test_varuna_orphan, silent_peer_whose_nic_lives_is_kept) {
    pass(20 * TIMEOUT, 0);
    EXPECT_TRUE(target(alice) != NULL);
}

UCS_TEST_F(test_varuna_orphan, one_link_that_does_not_fail_is_enough) {
    pass(20 * TIMEOUT, 1);
    EXPECT_TRUE(target(alice) != NULL);
}

UCS_TEST_F(test_varuna_orphan, peer_that_is_heard_is_kept) {
    for (unsigned i = 0; i < 20; ++i) {
        pass(TIMEOUT * 0.7, 3);
        ASSERT_TRUE(target(alice) != NULL);
        ping();
    }
}

/* With all local ports down, we are cut off */
UCS_TEST_F(test_varuna_orphan, own_ports_are_down) {
    fail(3);
    host->ctl()->ports.down = 3;
    pass(TIMEOUT / 2, 3);
    peer()->failed = 3;
    pass(20 * TIMEOUT, 3);
    EXPECT_TRUE(target(alice) != NULL);
}

/* ... and a port that is down proves nothing, but the others do */
UCS_TEST_F(test_varuna_orphan, one_own_port_is_down) {
    host->ctl()->ports.down = 2;
    pass(2 * TIMEOUT, 1);
    EXPECT_TRUE(target(alice) == NULL);
    host->dispatch();
}

/* After a time without a CPU, the silence of others proves nothing */
UCS_TEST_F(test_varuna_orphan, we_slept) {
    pass(TIMEOUT / 2, 3);
    host->sleep(10 * TIMEOUT);
    pass(TIMEOUT * 0.8, 3);
    EXPECT_TRUE(target(alice) != NULL);
    pass(TIMEOUT * 0.5, 3);
    EXPECT_TRUE(target(alice) == NULL);
    host->dispatch();
}

/* A peer that is stopped for long has a receive queue that fills up */
UCS_TEST_F(test_varuna_orphan, is_asked_less_often_in_the_end) {
    unsigned early, late;

    host->advance(3.0);
    early = count(host->sent(), UCT_VARUNA_CTL_PING);
    host->advance(100);
    host->sent();
    host->advance(3.2);
    late = count(host->sent(), UCT_VARUNA_CTL_PING);
    EXPECT_GE(early, 25u * NUM_LINKS);
    EXPECT_LE(late, 3u * NUM_LINKS);
    EXPECT_GE(late, 1u * NUM_LINKS);
}

/* The peer was cut off, and returns: its requests are refused, so that its endpoints
 * fail */
UCS_TEST_F(test_varuna_orphan, peer_that_comes_back_is_refused) {
    uct_varuna_target_t *orphan;

    pass(2 * TIMEOUT, 3);
    host->dispatch();
    orphan = ucs_list_head(&host->responder()->targets.orphans, uct_varuna_target_t,
                           list);
    EXPECT_TRUE(orphan->broken) << "nothing is delivered any more";
    host->sent();
    uct_varuna_gap_refuse(host->responder(), orphan);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, host->last_sent(UCT_VARUNA_CTL_REJECT)
                                        .as<uct_varuna_ctl_reject_t>().status);
    uct_varuna_gap_refuse(host->responder(), orphan);
    EXPECT_EQ(0u, host->sent().size()) << "once in an interval";
}


/* Targets that were opened by a late request */
class test_varuna_unused : public fake_target_test {
protected:
    virtual void configure()
    {
        host->iface()->config.orphan_timeout = 0;
    }

    unsigned reminders()
    {
        return count(host->sent(), UCT_VARUNA_CTL_OPEN_REP);
    }
};

/* The clock looks once in a second, so each may come up to that later */
UCS_TEST_F(test_varuna_unused, reminders_are_sent_ever_less_often) {
    uint64_t opening   = open(alice).hdr.opening;
    unsigned last_link = 77;
    unsigned last      = 0;
    std::vector<unsigned> intervals;

    for (unsigned second = 1; second < 10000; ++second) {
        host->advance(1);
        for (const fake_host::message &msg : host->sent()) {
            EXPECT_EQ(UCT_VARUNA_CTL_OPEN_REP, msg.hdr.type);
            EXPECT_EQ(opening, msg.hdr.opening);
            EXPECT_EQ(VQP, msg.hdr.vqp);
            EXPECT_NE(last_link, msg.link);
            last_link = msg.link;
            intervals.push_back(second - last);
            last      = second;
        }
    }

    ASSERT_EQ(12u, intervals.size());
    for (unsigned i = 1; i < intervals.size(); ++i) {
        EXPECT_GE(intervals[i], 1u << i);
        EXPECT_LE(intervals[i], (1u << i) + 2);
    }
    EXPECT_EQ(0u, host->responder()->unused.num) << "nothing is looked at any more";
}

UCS_TEST_F(test_varuna_unused, message_about_it_proves_its_use) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    host->advance(10);
    EXPECT_EQ(0u, reminders());
}

UCS_TEST_F(test_varuna_unused, received_message_proves_its_use) {
    open(alice);
    ++target(alice)->next_seq;
    host->advance(10);
    EXPECT_EQ(0u, reminders());
}

UCS_TEST_F(test_varuna_unused, port_that_is_down_is_not_used) {
    open(alice);
    host->ctl()->ports.down = 1;
    host->advance(4.5);
    for (const fake_host::message &msg : host->sent()) {
        EXPECT_EQ(1u, msg.link);
    }
    host->ctl()->ports.down = 3;
    host->advance(100);
    EXPECT_EQ(0u, reminders());
    host->ctl()->ports.down = 0;
    host->advance(1);
    EXPECT_EQ(1u, reminders()) << "its turn comes when a port is up";
}
