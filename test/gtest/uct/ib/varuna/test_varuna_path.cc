/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Paths to peers: when they are probed, with a heartbeat that can be made to refuse.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/ctl/varuna_path.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
}

#include <vector>

namespace {
struct {
    unsigned probes;
    int      refuses;
} heartbeat;
}

extern "C" {
int uct_varuna_heartbeat_probe(uct_varuna_ctl_t *, uct_varuna_peer_t *, unsigned)
{
    ++heartbeat.probes;
    return !heartbeat.refuses;
}
}

class test_varuna_path : public ucs::test {
protected:
    virtual void init()
    {
        ucs::test::init();
        memset(&heartbeat, 0, sizeof(heartbeat));
        memset(&m_peer, 0, sizeof(m_peer));
        m_iface.resize(sizeof(uct_varuna_iface_t));
        m_interval                             = ucs_time_from_msec(50);
        m_now                                  = ucs_get_time();
        m_peer.link_map                        = 1;
        iface()->config.ctl_timeout            = m_interval;
        iface()->link_table.times.hold_min     = 4 * m_interval;
        iface()->link_table.times.hold_max     = 4 * m_interval;
    }

    uct_varuna_iface_t *iface()
    {
        return (uct_varuna_iface_t*)m_iface.data();
    }

    uct_varuna_path_t &path()
    {
        return m_peer.paths[0];
    }

    /* As if the path had just changed to this state */
    void enter(uct_varuna_damp_state_t state)
    {
        path()                = uct_varuna_path_t();
        path().damp.state     = state;
        path().damp.changed   = m_now;
        path().damp.usable_at = m_now + iface()->link_table.times.hold_min;
        heartbeat.probes      = 0;
    }

    /* A hundred scans in each interval */
    void scan(unsigned intervals)
    {
        for (unsigned i = 0; i < (intervals * 100); ++i) {
            m_now += m_interval / 100;
            uct_varuna_peer_probe_paths(iface(), &m_peer, m_now);
        }
    }

    std::vector<uint8_t> m_iface;
    uct_varuna_peer_t    m_peer;
    ucs_time_t           m_interval, m_now;
};

/* A NIC that hangs refuses each PING */
UCS_TEST_F(test_varuna_path, refused_probe_takes_its_interval) {
    heartbeat.refuses = 1;
    for (auto state : {UCT_VARUNA_DAMP_DOWN, UCT_VARUNA_DAMP_HOLD}) {
        enter(state);
        scan(10);
        EXPECT_GE(heartbeat.probes, 4u) << "state " << state;
        EXPECT_LE(heartbeat.probes, 11u) << "state " << state;
        EXPECT_EQ(state, path().damp.state);
        EXPECT_EQ(0u, path().probed_at);
    }
}

/* ... and is not missed: the hold-down does not begin anew, but does not end either */
UCS_TEST_F(test_varuna_path, refused_probe_is_not_missed) {
    ucs_time_t usable_at;

    heartbeat.refuses = 1;
    enter(UCT_VARUNA_DAMP_HOLD);
    usable_at = path().damp.usable_at;
    scan(10);
    EXPECT_EQ(0u, path().misses);
    EXPECT_EQ(usable_at, path().damp.usable_at);
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
    m_peer.hb.alive.paths[0].answered_at = UINT64_MAX;
    scan(3);
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path().damp.state);
    /* path_good() reads the real clock */
    path().damp.usable_at = m_now + m_interval;
    scan(4);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path().damp.state);
    heartbeat.probes = 0;
    scan(3);
    EXPECT_EQ(0u, heartbeat.probes) << "a good path is probed";
}

/* While our own link is down there is no news of the path */
UCS_TEST_F(test_varuna_path, own_link_is_down) {
    enter(UCT_VARUNA_DAMP_DOWN);
    iface()->link_table.links[0].damp.state = UCT_VARUNA_DAMP_DOWN;
    scan(3);
    EXPECT_EQ(0u, heartbeat.probes);
}
