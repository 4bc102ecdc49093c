/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Paths to peers: when they are probed, held down and used again.
 */
#include "fake_host.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_peer.h>
}

class test_varuna_path : public fake_host_test {
protected:
    static constexpr double INTERVAL = 0.05;

    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(1));
        host->iface()->config.ctl_timeout        = ucs_time_from_sec(INTERVAL);
        host->iface()->link_table.times.hold_min = ucs_time_from_sec(4 * INTERVAL);
        host->iface()->link_table.times.hold_max = ucs_time_from_sec(16 * INTERVAL);
        peer = host->know({0xb0b, 1, 0});
    }

    virtual void cleanup()
    {
        host->drop(peer);
        fake_host_test::cleanup();
    }

    uct_varuna_iface_t *iface()
    {
        return host->iface();
    }

    uct_varuna_path_t &path()
    {
        return peer->paths[0];
    }

    /* The NIC takes no PING */
    void refuse()
    {
        host->ctl_lane(0).post_status = UCS_ERR_NO_RESOURCE;
    }

    unsigned probes()
    {
        return peer->hb.alive.paths[0].seq + host->ctl_lane(0).num_refused - m_first;
    }

    /* As if the path had just changed to this state */
    void enter(uct_varuna_damp_state_t state)
    {
        path()                = uct_varuna_path_t();
        path().damp.state     = state;
        path().damp.changed   = host->now();
        path().damp.usable_at = host->now() + iface()->link_table.times.hold_min;
        m_first               = 0;
        m_first               = probes();
    }

    /* A hundred scans in each interval */
    void scan(unsigned intervals)
    {
        for (unsigned i = 0; i < (intervals * 100); ++i) {
            host->advance(INTERVAL / 100);
            uct_varuna_peer_probe_paths(iface(), peer, host->now());
        }
    }

    /* The peer answers the newest probe */
    void answer()
    {
        peer->hb.alive.paths[0].answered_at = host->now();
    }

    uct_varuna_peer_t          *peer;

private:
    uint32_t                   m_first;
};

/* A link that has no buffer refuses each PING. It is not missed: the hold-down does not begin
 * anew, but does not end either */
UCS_TEST_F(test_varuna_path, refused_probe_takes_its_interval) {
    ucs_time_t usable_at;

    refuse();
    for (auto state : {UCT_VARUNA_DAMP_DOWN, UCT_VARUNA_DAMP_HOLD}) {
        enter(state);
        usable_at = path().damp.usable_at;
        for (unsigned i = 0; i < 10; ++i) {
            host->ctl()->links[0].full.since = 0; /* There was room for others meanwhile */
            scan(1);
        }
        EXPECT_GE(probes(), 4u) << "state " << state;
        EXPECT_LE(probes(), 11u) << "state " << state;
        EXPECT_EQ(state, path().damp.state);
        EXPECT_EQ(0u, path().probed_at);
        EXPECT_EQ(0u, path().misses);
        EXPECT_EQ(usable_at, path().damp.usable_at);
    }
}

/* If it has none all the time, the NIC hangs: it is missed, and the hold-down begins anew */
UCS_TEST_F(test_varuna_path, refused_probe_of_a_nic_that_hangs) {
    ucs_time_t usable_at;

    refuse();
    enter(UCT_VARUNA_DAMP_HOLD);
    usable_at = path().damp.usable_at;
    scan(10);
    EXPECT_GT(path().damp.usable_at, usable_at);
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path().damp.state);
}

/* The hold-down begins anew if probes are not answered */
UCS_TEST_F(test_varuna_path, missed_probes_begin_hold_anew) {
    ucs_time_t usable_at;

    enter(UCT_VARUNA_DAMP_HOLD);
    usable_at = path().damp.usable_at;
    scan(10);
    EXPECT_GT(path().damp.usable_at, usable_at);
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path().damp.state);
}

UCS_TEST_F(test_varuna_path, answers_lead_to_hold_and_up) {
    enter(UCT_VARUNA_DAMP_DOWN);
    for (unsigned i = 0; (i < 100) && (path().damp.state == UCT_VARUNA_DAMP_DOWN); ++i) {
        scan(1);
        answer();
    }
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path().damp.state);

    /* Good all the time until the hold-down is over */
    for (unsigned i = 0; i < 3; ++i) {
        scan(1);
        answer();
        EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path().damp.state);
    }
    scan(2);
    answer();
    scan(1);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path().damp.state);

    enter(UCT_VARUNA_DAMP_UP);
    scan(3);
    EXPECT_EQ(0u, probes()) << "a good path is probed";
}

/* Only answers to probes of this state count */
UCS_TEST_F(test_varuna_path, answer_from_before_the_failure) {
    answer();
    enter(UCT_VARUNA_DAMP_DOWN);
    scan(10);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path().damp.state);
}

/* A path that is down for long is asked less often */
UCS_TEST_F(test_varuna_path, patience) {
    unsigned early, late;

    iface()->link_table.times.hold_max = ucs_time_from_sec(1000 * INTERVAL);
    enter(UCT_VARUNA_DAMP_DOWN);
    scan(20);
    early = probes();
    scan(400);
    late = probes();
    scan(20);
    late = probes() - late;
    EXPECT_GE(early, 8u);
    EXPECT_LE(late, 1u);
}

/* One failure moves all endpoints, by the generation; another one of a failed path has
 * no effect */
UCS_TEST_F(test_varuna_path, failure_is_one_generation) {
    unsigned failures = iface()->failures;

    uct_varuna_peer_path_down(iface(), peer, 0, "test");
    EXPECT_EQ(1u, path().generation);
    EXPECT_EQ(failures + 1, iface()->failures);
    uct_varuna_peer_path_down(iface(), peer, 0, "test");
    EXPECT_EQ(1u, path().generation);
    EXPECT_EQ(failures + 1, iface()->failures);
    EXPECT_EQ(0u, uct_varuna_peer_usable_links(peer));
    EXPECT_GT(path().retry_at, host->now());
}

/* Flapping is damped: each hold-down is twice as long, up to a limit */
UCS_TEST_F(test_varuna_path, hold_down_doubles) {
    for (unsigned factor : {4, 8, 16, 16}) {
        uct_varuna_peer_path_down(iface(), peer, 0, "test");
        uct_varuna_peer_path_good(iface(), peer, 0);
        EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path().damp.state);
        EXPECT_NEAR(factor * INTERVAL,
                    ucs_time_to_sec(path().damp.usable_at - host->now()), 1e-6);
    }
}

/* Traffic returns only to a path that has worked for RETURN_DELAY */
UCS_TEST_F(test_varuna_path, return_delay) {
    iface()->link_table.return_delay = ucs_time_from_sec(1);
    enter(UCT_VARUNA_DAMP_UP);
    host->advance(0.9);
    EXPECT_EQ(1u, uct_varuna_peer_usable_links(peer));
    EXPECT_EQ(0u, uct_varuna_peer_returnable_links(iface(), peer, host->now()));
    host->advance(0.2);
    EXPECT_EQ(1u, uct_varuna_peer_returnable_links(iface(), peer, host->now()));
}

/* While the local link is down the path's state does not change */
UCS_TEST_F(test_varuna_path, own_link_is_down) {
    enter(UCT_VARUNA_DAMP_DOWN);
    iface()->link_table.links[0].damp.state = UCT_VARUNA_DAMP_DOWN;
    scan(3);
    EXPECT_EQ(0u, probes());
}
