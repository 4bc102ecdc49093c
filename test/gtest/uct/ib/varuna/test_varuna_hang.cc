/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs that hang: failures of the path, and requests that only take long.
 */
#include "fake_host.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_lane.h>
#include <ucs/debug/memtrack_int.h>
}

#include <cstring>

class test_varuna_hang : public fake_host_test {
protected:
    static constexpr unsigned NUM_LINKS = 2;
    static constexpr double TIMEOUT     = 1.0;
    static constexpr double GIVE_UP     = 4.0;
    static constexpr double SCAN        = 0.01; /* Between two scans */

    virtual void init()
    {
        uct_ep_params_t params = {};

        ucs::test::init();
        host.reset(new fake_host(NUM_LINKS));
        host->iface()->config.heartbeat_interval = 0;
        host->iface()->config.hang_timeout       = ucs_time_from_sec(TIMEOUT);
        host->iface()->config.give_up            = ucs_time_from_sec(GIVE_UP);
        host->start_heartbeat();
        peer = host->know(name);

        params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
        params.iface      = lane().iface();
        ep = (uct_varuna_ep_t*)ucs_calloc(1, sizeof(*ep), "ep");
        ASSERT_TRUE(ep != NULL);
        ep->super.super.iface = &host->iface()->super.super;
        ep->peer              = peer;
        ep->lane.kind         = UCT_VARUNA_LANE_RC;
        ep->lane.link         = 0;
        ASSERT_UCS_OK(uct_ep_create(&params, &ep->lane.ep));

        memset((void*)reqs, 0, sizeof(reqs));
        req().type        = UCT_VARUNA_REQ_PUT_SHORT;
        req().flags       = UCT_VARUNA_REQ_FLAG_POSTED;
        req().size        = sizeof(reqs[0]);
        ep->hot.reqs.tail = &reqs[0];
        ep->hot.reqs.head = &reqs[1];

        lane().has_work    = true;
        answers            = 3;
        beat               = 0;
        is_dry             = true;
        does_beat          = false;
        calls_progress     = true;
        num_pings          = 0;
        uct_varuna_hang_restart(ep);
    }

    virtual void cleanup()
    {
        uct_ep_destroy(ep->lane.ep);
        ucs_free(ep);
        host->drop(peer);
        fake_host_test::cleanup();
    }

    fake_lane &lane()
    {
        return host->lane(0, UCT_VARUNA_LANE_RC);
    }

    uct_varuna_req_t &req()
    {
        return reqs[0];
    }

    void answer_pings()
    {
        uct_varuna_ctl_pong_t pong = {};

        pong.beat = beat;
        for (const fake_host::message &msg : host->sent()) {
            if (msg.hdr.type != UCT_VARUNA_CTL_PING) {
                continue;
            }
            ++num_pings;
            if (answers & UCS_BIT(msg.link)) {
                host->receive(name, msg.link,
                              host->header(name, UCT_VARUNA_CTL_PONG, msg.link,
                                           msg.hdr.epoch), pong);
            }
        }
    }

    /* Run the background scan of the endpoint for this time */
    void pass(double seconds)
    {
        uct_varuna_iface_t *iface = host->iface();

        for (double past = 0; past < seconds; past += SCAN) {
            host->advance(SCAN);
            beat += does_beat;
            if (!calls_progress) {
                continue;
            }

            host->requester()->scan.clock += ucs_time_from_sec(SCAN);
            if (iface->want_dry && is_dry) {
                iface->links[0].lanes[UCT_VARUNA_LANE_RC].dry_at = host->now();
                iface->want_dry                                  = 0;
            }
            uct_varuna_hang_check(ep, host->now());
            answer_pings();
        }
    }

    bool has_failed(unsigned link = 0)
    {
        return peer->paths[link].damp.state == UCT_VARUNA_DAMP_DOWN;
    }

    const fake_peer            name = {0x5e, 1, 0};
    uct_varuna_peer_t          *peer;
    uct_varuna_ep_t            *ep;
    uct_varuna_req_t           reqs[2];
    unsigned                   answers;        /* Links on which the peer does */
    uint32_t                   beat;           /* Of its application */
    bool                       does_beat;      /* It calls progress */
    bool                       is_dry;         /* Queues are found empty */
    bool                       calls_progress; /* We do */
    unsigned                   num_pings;
};

UCS_TEST_F(test_varuna_hang, queue_pair_that_completes_nothing) {
    pass(TIMEOUT * 0.95);
    EXPECT_FALSE(has_failed());
    pass(TIMEOUT * 0.15);
    EXPECT_TRUE(has_failed());
    EXPECT_FALSE(has_failed(1));
}

UCS_TEST_F(test_varuna_hang, queue_pair_that_moves_on) {
    for (unsigned i = 0; i < 20; ++i) {
        pass(TIMEOUT * 0.9);
        ++lane().mark;
    }
    EXPECT_FALSE(has_failed());
}

/* It waits for its turn: another one has the DCI */
UCS_TEST_F(test_varuna_hang, endpoint_without_work_on_the_queue_pair) {
    lane().has_work = false;
    pass(10 * TIMEOUT);
    EXPECT_FALSE(has_failed());
    EXPECT_EQ(0u, num_pings);
}

UCS_TEST_F(test_varuna_hang, no_timeout) {
    host->iface()->config.hang_timeout = 0;
    pass(10 * TIMEOUT);
    EXPECT_FALSE(has_failed());
}

/* The watch's clock stops while the application computes */
UCS_TEST_F(test_varuna_hang, we_compute) {
    pass(TIMEOUT * 0.9);
    calls_progress = false;
    pass(10 * TIMEOUT);
    calls_progress = true;
    pass(TIMEOUT * 0.05);
    EXPECT_FALSE(has_failed());
    pass(TIMEOUT * 0.2);
    EXPECT_TRUE(has_failed());
}

/* Completions may wait to be polled, but not forever */
UCS_TEST_F(test_varuna_hang, completions_are_polled_first) {
    is_dry = false;
    pass(TIMEOUT * 1.9);
    EXPECT_FALSE(has_failed());
    is_dry = true;
    pass(SCAN * 2);
    EXPECT_TRUE(has_failed());
}

UCS_TEST_F(test_varuna_hang, completions_that_come_faster_than_they_are_polled) {
    is_dry = false;
    pass(TIMEOUT * 1.9);
    EXPECT_FALSE(has_failed());
    pass(TIMEOUT * 0.2);
    EXPECT_TRUE(has_failed());
}


/* --- Answers of the peer --- */

/* In the second half of the timeout, on all links, once in an interval */
UCS_TEST_F(test_varuna_hang, peer_is_asked) {
    pass(TIMEOUT * 0.45);
    EXPECT_EQ(0u, num_pings);
    pass(TIMEOUT * 0.5);
    EXPECT_GE(num_pings, 8u * NUM_LINKS);
    EXPECT_LE(num_pings, 10u * NUM_LINKS);
}

/* Another endpoint of the same peer has just asked */
UCS_TEST_F(test_varuna_hang, peer_is_asked_once_for_all_endpoints) {
    pass(TIMEOUT * 0.6);
    num_pings        = 0;
    ep->hang.asked_at = 0;
    uct_varuna_hang_check(ep, host->now());
    answer_pings();
    EXPECT_EQ(0u, num_pings);
    EXPECT_NE(0u, ep->hang.asked_at);
}

UCS_TEST_F(test_varuna_hang, link_that_is_down_is_not_asked) {
    host->iface()->link_table.links[1].damp.state = UCT_VARUNA_DAMP_DOWN;
    pass(TIMEOUT * 0.9);
    EXPECT_GE(num_pings, 7u);
    EXPECT_LE(num_pings, 10u);
}

UCS_TEST_F(test_varuna_hang, peer_that_is_silent_on_this_link_alone) {
    answers = 2;
    pass(TIMEOUT * 1.2);
    EXPECT_TRUE(has_failed());
}

/* No answer: the peer may be stopped */
UCS_TEST_F(test_varuna_hang, peer_that_is_silent_on_all_links) {
    answers = 0;
    pass(GIVE_UP * 0.95);
    EXPECT_FALSE(has_failed());
    pass(GIVE_UP * 0.1);
    EXPECT_TRUE(has_failed());
}

/* GIVE_UP includes the detection, also if that takes longer, or is off */
UCS_TEST_F(test_varuna_hang, give_up_before_the_timeout) {
    ucs_time_t begin = host->requester()->scan.clock;

    for (double timeout : {10 * GIVE_UP, 0.0}) {
        host->iface()->config.hang_timeout = ucs_time_from_sec(timeout);
        answers                            = 0;
        pass(GIVE_UP * 0.95);
        EXPECT_FALSE(has_failed());
        pass(GIVE_UP * 0.1);
        EXPECT_TRUE(has_failed());
        EXPECT_GE(num_pings, NUM_LINKS);
        EXPECT_LE(uct_varuna_hang_silent_since(ep), begin + ucs_time_from_sec(SCAN));

        peer->paths[0].damp.state = UCT_VARUNA_DAMP_UP;
        num_pings                 = 0;
        uct_varuna_hang_restart(ep);
        begin = host->requester()->scan.clock;
    }
}

UCS_TEST_F(test_varuna_hang, answer_on_another_link_is_no_silence) {
    host->iface()->config.hang_timeout = ucs_time_from_sec(10 * GIVE_UP);
    answers                            = 2;
    pass(GIVE_UP * 2);
    EXPECT_FALSE(has_failed());
    EXPECT_EQ(0u, uct_varuna_hang_silent_since(ep));
}

/* It has no receive buffers, answers for a while, and dies */
UCS_TEST_F(test_varuna_hang, peer_dies_after_it_has_answered) {
    ucs_time_t died;

    host->iface()->config.hang_timeout = ucs_time_from_sec(100 * GIVE_UP);
    req().type                         = UCT_VARUNA_REQ_AM_ZCOPY;
    pass(GIVE_UP * 3);
    EXPECT_FALSE(has_failed());
    died    = host->requester()->scan.clock;
    answers = 0;
    pass(GIVE_UP * 0.4);
    EXPECT_FALSE(has_failed());
    pass(GIVE_UP * 0.8);
    EXPECT_TRUE(has_failed());
    EXPECT_GE(uct_varuna_hang_silent_since(ep), died - ucs_time_from_sec(GIVE_UP * 0.6));
}

/* It has no receive buffers while its application computes */
UCS_TEST_F(test_varuna_hang, message_to_a_peer_that_computes) {
    req().type = UCT_VARUNA_REQ_AM_ZCOPY;
    pass(10 * TIMEOUT);
    EXPECT_FALSE(has_failed());
    EXPECT_LE(num_pings, 120u * NUM_LINKS) << "the first half of each timeout is quiet";
}

UCS_TEST_F(test_varuna_hang, message_to_a_peer_that_progresses) {
    req().type  = UCT_VARUNA_REQ_AM_ZCOPY;
    does_beat = true;
    pass(TIMEOUT * 0.95);
    EXPECT_FALSE(has_failed());
    pass(TIMEOUT * 2);
    EXPECT_TRUE(has_failed());
}

/* Some calls of progress after a long computation prove nothing */
UCS_TEST_F(test_varuna_hang, message_to_a_peer_that_progresses_for_a_moment) {
    host->iface()->config.ctl_timeout = ucs_time_from_sec(SCAN); /* It is asked often */
    req().type                          = UCT_VARUNA_REQ_AM_ZCOPY;
    pass(TIMEOUT * 0.8);
    does_beat = true;
    pass(5 * SCAN);
    does_beat = false;
    pass(10 * TIMEOUT);
    EXPECT_FALSE(has_failed());
}

/* ... but those in several intervals do, and are remembered */
UCS_TEST_F(test_varuna_hang, message_to_a_peer_that_progresses_now_and_then) {
    req().type = UCT_VARUNA_REQ_AM_ZCOPY;
    for (unsigned i = 0; i < 30; ++i) {
        pass(TIMEOUT * 0.3);
        ++beat;
    }
    EXPECT_TRUE(has_failed());
}

/* Others wait after a message that was posted */
UCS_TEST_F(test_varuna_hang, write_behind_a_message) {
    uct_varuna_req_t &message = reqs[1];

    message.type      = UCT_VARUNA_REQ_AM_SHORT;
    message.size      = sizeof(message);
    ep->hot.reqs.head = &reqs[2];
    message.flags = UCT_VARUNA_REQ_FLAG_POSTED;
    pass(3 * TIMEOUT);
    EXPECT_FALSE(has_failed());

    /* One that was not posted blocks no others */
    message.flags = 0;
    uct_varuna_hang_restart(ep);
    pass(1.2 * TIMEOUT);
    EXPECT_TRUE(has_failed());
}
