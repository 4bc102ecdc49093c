/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Spare queue pairs of the responder, alone: their number, when they are created, and
 * how those that were used rest and are destroyed.
 */
#include "fake_host.h"

#include <common/test.h>

#include <algorithm>

extern "C" {
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
}

class test_varuna_spare : public fake_host_test {
protected:
    static constexpr unsigned NUM_LINKS = 2;
    static constexpr unsigned SPARES    = 3;

    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(NUM_LINKS));
        host->iface()->config.spare_qps = SPARES;
        memset((void*)&resp, 0, sizeof(resp));
        resp.iface = host->iface();
        resp.ctl   = host->ctl();
        kh_init_inplace(uct_varuna_rc_eps, &resp.targets.rc_eps);
    }

    virtual void cleanup()
    {
        uct_varuna_spares_cleanup(&resp);
        kh_destroy_inplace(uct_varuna_rc_eps, &resp.targets.rc_eps);
        fake_host_test::cleanup();
    }

    fake_lane &lane(unsigned link)
    {
        return host->lane(link, UCT_VARUNA_LANE_RC);
    }

    void start()
    {
        ASSERT_UCS_OK(uct_varuna_spares_init(&resp));
    }

    uct_ep_h take(unsigned link)
    {
        uct_ep_h ep;

        uct_varuna_ctl_lock(resp.ctl);
        ep = uct_varuna_spare_take(&resp, link);
        uct_varuna_ctl_unlock(resp.ctl);
        return ep;
    }

    void drop(uct_ep_h ep, int is_reset = 0)
    {
        uct_varuna_ctl_lock(resp.ctl);
        uct_varuna_spare_drop(&resp, ep, 0, is_reset);
        uct_varuna_ctl_unlock(resp.ctl);
    }

    /* As a fence leaves it, with credits of flow control that are unfinished */
    fake_lane::ep *drop_reset(unsigned link)
    {
        fake_lane::ep *ep = (fake_lane::ep*)take(link);

        uct_varuna_tl_stop(&ep->super, UCT_VARUNA_LANE_RC);
        uct_varuna_tl_reset(&ep->super, UCT_VARUNA_LANE_RC);
        drop(&ep->super, 1);
        return ep;
    }

    /* A packet lifetime, and a little more than real time may have passed meanwhile */
    void rest(double lifetimes = 1)
    {
        uct_varuna_rest_progress(host->iface(),
                                 ucs_get_time() + (ucs_time_t)(
                                 lifetimes * host->iface()->config.packet_lifetime) + 1);
    }

    uct_varuna_responder_t     resp;
};

UCS_TEST_F(test_varuna_spare, ready_on_each_link) {
    start();
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        EXPECT_EQ(SPARES, resp.spares.count[link]);
        EXPECT_EQ(SPARES, lane(link).eps.size());
        EXPECT_EQ(0u, host->lane(link, UCT_VARUNA_LANE_DC).eps.size());
    }
}

/* A NIC without queue pairs is no error: others have theirs, the user is told once, and they
 * are made when the NIC has some again */
UCS_TEST_F(test_varuna_spare, opens_without_them) {
    scoped_log_handler slh(hide_warns_logger);

    lane(1).create_status = UCS_ERR_NO_MEMORY;
    start();
    EXPECT_EQ(SPARES, resp.spares.count[0]);
    EXPECT_EQ(0u, resp.spares.count[1]);

    lane(1).create_status = UCS_OK;
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(0u, resp.spares.count[1]) << "not asked again at once";
    host->advance(1.1);
    for (unsigned i = 0; i < SPARES; ++i) {
        uct_varuna_spares_progress(&resp);
    }
    EXPECT_EQ(SPARES, resp.spares.count[1]);
    ASSERT_EQ(1u, m_warnings.size());
    EXPECT_NE(std::string::npos, m_warnings[0].find("fake_1:1 gives no queue pair"));
}

/* Progress is called all the time, and UCX logs an error at each try */
UCS_TEST_F(test_varuna_spare, short_nic_is_asked_seldom) {
    scoped_log_handler slh(hide_warns_logger);
    unsigned tries;

    start();
    drop(take(0));
    lane(0).create_status = UCS_ERR_NO_MEMORY;
    tries                 = lane(0).num_tries;
    for (unsigned i = 0; i < 6000; ++i) {
        uct_varuna_spares_progress(&resp);
        EXPECT_NE(UCS_OK, uct_varuna_spares_make(&resp, 0, SPARES));
        host->advance(10e-3);
    }
    EXPECT_EQ(7u, lane(0).num_tries - tries) << "in a minute";
    EXPECT_EQ(1u, m_warnings.size());
    EXPECT_EQ(SPARES - 1, resp.spares.count[0]) << "those that are there stay";
}

UCS_TEST_F(test_varuna_spare, each_is_taken_once) {
    std::vector<uct_ep_h> taken;

    start();
    for (unsigned i = 0; i < SPARES; ++i) {
        taken.push_back(take(0));
        ASSERT_TRUE(taken[i] != NULL);
        for (unsigned j = 0; j < i; ++j) {
            EXPECT_NE(taken[j], taken[i]);
        }
    }
    EXPECT_TRUE(take(0) == NULL);
    EXPECT_EQ(SPARES, resp.spares.count[1]) << "of this link only";
    EXPECT_EQ(SPARES, lane(0).num_created) << "the async context makes none";
    for (uct_ep_h ep : taken) {
        drop(ep);
    }
}

/* Creating one takes long: a call of progress creates at most one on each link */
UCS_TEST_F(test_varuna_spare, progress_replaces_one_at_a_time) {
    start();
    drop(take(0));
    drop(take(0));
    drop(take(1));
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(SPARES - 1, resp.spares.count[0]);
    EXPECT_EQ(SPARES, resp.spares.count[1]);
    uct_varuna_spares_progress(&resp);
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(SPARES, resp.spares.count[0]);
    EXPECT_EQ(SPARES + 2, lane(0).num_created);
}

/* If a device creates none now, the next call tries again */
UCS_TEST_F(test_varuna_spare, progress_goes_on_after_a_failure) {
    scoped_log_handler slh(hide_warns_logger);

    start();
    drop(take(0));
    drop(take(1));
    lane(0).create_status = UCS_ERR_NO_MEMORY;
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(SPARES - 1, resp.spares.count[0]);
    EXPECT_EQ(SPARES, resp.spares.count[1]) << "the next link has its turn";
    lane(0).create_status = UCS_OK;
    host->advance(1.1);
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(SPARES, resp.spares.count[0]);
}

/* If none is created in advance, there is room for one for a waiting request */
UCS_TEST_F(test_varuna_spare, one_on_demand) {
    scoped_log_handler slh(hide_warns_logger);

    host->iface()->config.spare_qps = 0;
    start();
    EXPECT_TRUE(take(0) == NULL);
    EXPECT_EQ(UCS_OK, uct_varuna_spares_make(&resp, 0, 1));
    EXPECT_EQ(UCS_OK, uct_varuna_spares_make(&resp, 0, 1));
    EXPECT_EQ(1u, lane(0).num_created);
    drop(take(0));
    lane(0).create_status = UCS_ERR_NO_MEMORY;
    EXPECT_EQ(UCS_ERR_NO_MEMORY, uct_varuna_spares_make(&resp, 0, 1));
    EXPECT_TRUE(take(0) == NULL);
}

/* Only the main thread destroys endpoints */
UCS_TEST_F(test_varuna_spare, dropped_is_destroyed_by_the_main_thread) {
    uct_ep_h ep;

    start();
    ep = take(0);
    drop(ep);
    EXPECT_EQ(SPARES, lane(0).eps.size());
    uct_varuna_spares_progress(&resp);
    rest();
    EXPECT_EQ(SPARES, lane(0).eps.size()) << "one destroyed, one made";
    EXPECT_EQ(SPARES + 1, lane(0).num_created);
    EXPECT_TRUE(ucs_list_is_empty(&resp.spares.old));
}

/* UCX does not expect completions of a destroyed queue pair, so it is moved to ERR, and
 * polled until it has none */
UCS_TEST_F(test_varuna_spare, drained_before_it_is_destroyed) {
    fake_lane::ep *ep;

    start();
    lane(0).is_drained = false;
    ep                 = (fake_lane::ep*)take(0);
    drop(&ep->super);
    EXPECT_FALSE(ep->in_err);
    uct_varuna_spares_progress(&resp);
    EXPECT_TRUE(ep->in_err);
    EXPECT_EQ(SPARES + 1, lane(0).eps.size());
    uct_varuna_graves_progress(host->iface());
    EXPECT_EQ(SPARES + 1, lane(0).eps.size());
    rest();
    EXPECT_EQ(SPARES + 1, lane(0).eps.size());
    lane(0).is_drained = true;
    uct_varuna_graves_progress(host->iface());
    rest();
    EXPECT_EQ(SPARES, lane(0).eps.size());
}

/* Packets for it may be on their way, and its number must not be another one's by then */
UCS_TEST_F(test_varuna_spare, rests_for_the_packet_lifetime) {
    fake_lane::ep *ep;

    start();
    host->iface()->config.packet_lifetime = ucs_time_from_sec(1000);
    ep = (fake_lane::ep*)take(0);
    drop(&ep->super);
    uct_varuna_spares_progress(&resp);
    EXPECT_TRUE(ep->in_err);
    rest(0.5);
    EXPECT_EQ(SPARES + 1, lane(0).eps.size());
    EXPECT_EQ(1u, host->iface()->rest.num);
    rest();
    EXPECT_EQ(SPARES, lane(0).eps.size());
    EXPECT_EQ(0u, host->iface()->rest.num);
    EXPECT_EQ(0u, host->iface()->rest.num_early);
}

/* The oldest goes first, and is counted */
UCS_TEST_F(test_varuna_spare, no_more_than_some_rest) {
    const unsigned extra = 3;

    start();
    for (unsigned i = 0; i < (UCT_VARUNA_REST_MAX + extra); ++i) {
        drop(take(i % NUM_LINKS));
        uct_varuna_spares_progress(&resp);
    }
    EXPECT_EQ((unsigned)UCT_VARUNA_REST_MAX, host->iface()->rest.num);
    EXPECT_EQ(extra, host->iface()->rest.num_early);
    EXPECT_EQ((UCT_VARUNA_REST_MAX / NUM_LINKS) + SPARES, lane(0).eps.size());
    EXPECT_EQ((UCT_VARUNA_REST_MAX / NUM_LINKS) + SPARES, lane(1).eps.size());
}

/* A NIC has use for what rests on it, and for nothing else */
UCS_TEST_F(test_varuna_spare, short_nic_gets_the_oldest) {
    scoped_log_handler slh(hide_warns_logger);
    uct_ep_h first;

    start();
    drop(take(0));
    uct_varuna_spares_progress(&resp);
    drop(first = take(1));
    uct_varuna_spares_progress(&resp);
    drop(take(1));
    lane(1).create_status = UCS_ERR_NO_MEMORY;
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(2u, host->iface()->rest.num);
    EXPECT_EQ(1u, host->iface()->rest.num_early);
    EXPECT_EQ(SPARES + 1, lane(0).eps.size());
    EXPECT_EQ(SPARES, lane(1).eps.size());
    EXPECT_EQ(0, std::count(lane(1).eps.begin(), lane(1).eps.end(), (fake_lane::ep*)first));
}

/* A queue pair that was fenced rests with the others. It leaves RESET, and is destroyed, by
 * progress alone: that polls, and who needs a queue pair may be in the middle of something */
UCS_TEST_F(test_varuna_spare, fenced_rests_in_reset) {
    fake_lane::ep *ep;

    start();
    host->iface()->config.packet_lifetime = ucs_time_from_sec(1000);
    lane(0).is_drained                    = false;
    ep                                    = drop_reset(0);
    uct_varuna_spares_progress(&resp);
    rest(0.5);
    EXPECT_EQ(1u, host->iface()->rest.num);
    EXPECT_TRUE(ep->in_reset);
    rest();
    EXPECT_EQ(0u, host->iface()->rest.num);
    EXPECT_EQ(0u, host->iface()->rest.num_early);
    EXPECT_EQ(SPARES, lane(0).eps.size());
    lane(0).is_drained = true;
}

UCS_TEST_F(test_varuna_spare, short_nic_gets_a_fenced_one) {
    scoped_log_handler slh(hide_warns_logger);
    fake_lane::ep *ep;

    start();
    host->iface()->config.packet_lifetime = ucs_time_from_sec(1000);
    drop_reset(0);
    ep                    = drop_reset(1);
    lane(1).create_status = UCS_ERR_NO_MEMORY;
    uct_varuna_spares_progress(&resp);
    EXPECT_TRUE(ep->in_reset) << "not in the middle of something";
    rest(0);
    EXPECT_EQ(1u, host->iface()->rest.num);
    EXPECT_EQ(1u, host->iface()->rest.num_early);
    EXPECT_EQ(SPARES + 1, lane(0).eps.size());
    EXPECT_EQ(SPARES - 1, lane(1).eps.size());
}

UCS_TEST_F(test_varuna_spare, no_more_than_some_rest_in_reset) {
    const unsigned extra = 3;

    start();
    host->iface()->config.packet_lifetime = ucs_time_from_sec(1000);
    for (unsigned i = 0; i < (UCT_VARUNA_REST_MAX + extra); ++i) {
        drop_reset(0);
        uct_varuna_spares_progress(&resp);
    }
    rest(0);
    EXPECT_EQ((unsigned)UCT_VARUNA_REST_MAX, host->iface()->rest.num);
    EXPECT_EQ(extra, host->iface()->rest.num_early);
}

/* UCX cancels what is unfinished when it destroys an endpoint, which must be while it exists */
UCS_TEST_F(test_varuna_spare, unfinished_requests_do_not_rest) {
    uct_ep_h ep;

    start();
    ep                 = take(0);
    lane(0).is_drained = false;
    uct_varuna_rest_begin(host->iface(), ep, UCT_VARUNA_LANE_RC);
    EXPECT_EQ(SPARES - 1, lane(0).eps.size());
    EXPECT_EQ(0u, host->iface()->rest.num);
    lane(0).is_drained = true;
}

/* DC's queue pairs are shared, and go on */
UCS_TEST_F(test_varuna_spare, dc_does_not_rest) {
    uct_ep_params_t params = {};
    uct_ep_h ep;

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface      = host->lane(0, UCT_VARUNA_LANE_DC).iface();
    ASSERT_UCS_OK(uct_ep_create(&params, &ep));
    host->iface()->links[0].lanes[UCT_VARUNA_LANE_DC].num_eps = 1;
    uct_varuna_rest_begin(host->iface(), ep, UCT_VARUNA_LANE_DC);
    EXPECT_EQ(0u, host->lane(0, UCT_VARUNA_LANE_DC).eps.size());
    start(); /* As cleanup() expects */
}

/* Another endpoint may have the address of a destroyed one */
UCS_TEST_F(test_varuna_spare, destroyed_is_no_target_s) {
    uct_ep_h ep;
    int ret;

    start();
    ep = take(0);
    kh_put(uct_varuna_rc_eps, &resp.targets.rc_eps, (uintptr_t)ep, &ret);
    drop(ep);
    EXPECT_EQ(1u, kh_size(&resp.targets.rc_eps));
    uct_varuna_spares_progress(&resp);
    EXPECT_EQ(0u, kh_size(&resp.targets.rc_eps));
}

UCS_TEST_F(test_varuna_spare, cleanup_destroys_all) {
    start();
    drop(take(0));
    uct_varuna_spares_cleanup(&resp);
    uct_varuna_rest_cleanup(host->iface());
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        EXPECT_EQ(0u, lane(link).eps.size());
        EXPECT_EQ(0u, resp.spares.count[link]);
    }
}
