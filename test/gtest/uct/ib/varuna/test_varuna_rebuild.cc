/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * How an endpoint that has no lane chooses links: with the lanes of mlx5, and with those of
 * other NICs, which have no fallback and connect RC instead.
 */
#include "fake_ib.h"
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/varuna_baseline.h>
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_pending.h>

/* Of the hot path, which C++ does not understand (varuna.inl) */
uct_varuna_req_t *
uct_varuna_req_get_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_type_t type, uct_completion_t *comp,
                        uct_rkey_t rkey);
}

class test_varuna_rebuild : public test_varuna_recovery {
protected:
    /* No DC: the next lane is connected */
    void use_no_fallback()
    {
        static const uct_varuna_set_t set = {"rc only", UCT_VARUNA_LANE_RC,
                                             UCT_VARUNA_LANE_NONE, UCT_VARUNA_LANE_DC};

        for (unsigned link = 0; link < num_links(); ++link) {
            host->iface()->links[link].set = &set;
        }
    }

    /* One step at a time takes a lane */
    void take(double seconds = 0)
    {
        step(seconds);
        uct_varuna_ep_open_lane(ep, ucs_get_time() + ucs_time_from_sec(seconds));
    }

    /* The peer cannot connect */
    void refuse()
    {
        uct_varuna_ctl_connect_t rep = {};
        uct_varuna_ctl_hdr_t hdr     = {};

        ASSERT_TRUE(ep->next.lane.ep != NULL);
        rep.status = -UCS_ERR_NO_RESOURCE;
        hdr.epoch  = ep->next.lane.epoch;
        uct_varuna_ep_handle_connect_rep(ep, &hdr, &rep);
    }

    unsigned num_created(uct_varuna_lane_kind_t kind)
    {
        return lane(0, kind).num_created + lane(1, kind).num_created;
    }

    /* More than CONNECT_REQ's interval */
    double pause()
    {
        return 4.1 * ucs_time_to_sec(host->iface()->config.ctl_timeout);
    }
};

/* The peer refuses on one link, and then on the other one: they have a pause before they
 * are asked again */
UCS_TEST_F(test_varuna_rebuild, refused_link_is_left) {
    use_no_fallback();
    opened();
    take();
    EXPECT_EQ(0u, host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ).link);
    refuse();
    take();
    EXPECT_EQ(1u, host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ).link);
    refuse();
    for (unsigned i = 0; i < 10; ++i) {
        take();
    }
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_EQ(2u, num_created(UCT_VARUNA_LANE_RC));
    take(pause());
    EXPECT_EQ(0u, host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ).link);
}

/* A connection is asked for with the generation that the peer's NIC had when its lane was made */
UCS_TEST_F(test_varuna_rebuild, connection_to_one_life) {
    fake_host::message first, again;

    use_no_fallback();
    opened();
    ep->peer->links[0].generation = rkey.generations[0] = 3;
    take();
    first = host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ);
    EXPECT_EQ(0u, first.link);
    EXPECT_EQ(3u, first.as<uct_varuna_ctl_connect_t>().generation);
    take(pause());
    again = host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ);
    EXPECT_EQ(first.hdr.epoch, again.hdr.epoch);
    EXPECT_EQ(3u, again.as<uct_varuna_ctl_connect_t>().generation);

    ep->peer->links[0].generation = rkey.generations[0] = 4;
    take(2 * pause());
    EXPECT_EQ(0u, host->sent().size());
    take(2 * pause());
    again = host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ);
    EXPECT_NE(first.hdr.epoch, again.hdr.epoch);
    EXPECT_EQ(1u, again.link) << "the other one may be tried later";
}

/* Nothing can be connected on link 0, and link 1 works */
UCS_TEST_F(test_varuna_rebuild, link_that_cannot_be_connected_is_left) {
    scoped_log_handler slh(hide_warns_logger);
    use_no_fallback();
    lane(0, UCT_VARUNA_LANE_RC).create_status = UCS_ERR_NO_MEMORY;
    opened();
    take();
    take();
    ASSERT_TRUE(ep->next.lane.ep != NULL);
    EXPECT_EQ(1u, ep->next.lane.link);
    answer_connect();
    step();
    EXPECT_EQ(0u, ep->next.tried) << "a lane was had";
    EXPECT_EQ(1u, ep->lane.link);
}

/* The same after a failure: the peer refuses, so the link that failed has its turn */
UCS_TEST_F(test_varuna_rebuild, refused_link_is_left_in_a_recovery) {
    use_no_fallback();
    opened();
    take();
    answer_connect();
    take();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_EQ(0u, ep->lane.link);
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_CANCELED);
    step();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(ep->recovery.dead.epoch);
    ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
    step();
    ASSERT_TRUE(ep->next.lane.ep != NULL);
    EXPECT_EQ(1u, ep->next.lane.link);
    refuse();
    step();
    ASSERT_TRUE(ep->next.lane.ep != NULL);
    EXPECT_EQ(0u, ep->next.lane.link);
}

/* One that is connected in vain gives up, too, although OPEN_REQ was answered */
UCS_TEST_F(test_varuna_rebuild, first_connection_gives_up) {
    use_no_fallback();
    opened();
    take();
    step(GIVE_UP * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}

/* A link on which no DC lane can be made is left for the next one */
UCS_TEST_F(test_varuna_rebuild, link_without_dc_is_left) {
    scoped_log_handler slh(hide_warns_logger);
    lane(0).create_status = UCS_ERR_NO_MEMORY;
    opened();
    take();
    take();
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(1u, ep->lane.link);
    EXPECT_EQ(0u, ep->next.tried);
}

/* DC does not suit a peer with another path MTU, be it on one link only */
UCS_TEST_F(test_varuna_rebuild, no_dc_if_mtus_differ) {
    ep->peer->mtu_differs = UCS_BIT(1);
    opened();
    take();
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state());
    EXPECT_EQ(0u, host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ).link);
    answer_connect();
    take();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_CANCELED);
    step();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    answer_fence(ep->recovery.dead.epoch);
    step();
    EXPECT_EQ(1u, host->last_sent(UCT_VARUNA_CTL_CONNECT_REQ).link);
    EXPECT_EQ(0u, num_created(UCT_VARUNA_LANE_DC));
}

/* ... known after a lane over DC was had: its peer's port came up late */
UCS_TEST_F(test_varuna_rebuild, no_dc_once_mtus_differ) {
    opened();
    take();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_EQ(UCT_VARUNA_LANE_DC, ep->lane.kind);
    ep->peer->mtu_differs = UCS_BIT(1);
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_CANCELED);
    step();
    step(LIFETIME * 1.1);
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(1u, num_created(UCT_VARUNA_LANE_DC));
    ASSERT_TRUE(ep->next.lane.ep != NULL);
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->next.lane.kind);
    EXPECT_EQ(1u, ep->next.lane.link);
}

UCS_TEST_F(test_varuna_rebuild, no_dc_anywhere) {
    scoped_log_handler slh(hide_warns_logger);
    ucs_time_t due;

    lane(0).create_status = UCS_ERR_NO_MEMORY;
    lane(1).create_status = UCS_ERR_NO_MEMORY;
    opened();
    take();
    take();
    EXPECT_EQ(3u, ep->next.tried);
    due = ep->next.retry.due;
    take();
    EXPECT_EQ(due, ep->next.retry.due) << "they have no pause";
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state());
    EXPECT_EQ(2u, m_warnings.size());
    lane(0).create_status = UCS_OK;
    take(pause());
    EXPECT_EQ(UCT_VARUNA_EP_OPENING, state()) << "the NIC is not asked again so soon";
    host->sleep(1.1);
    take(2 * pause()); /* The other one is still to be tried */
    take(4 * pause());
    EXPECT_EQ(0u, ep->lane.link);
}

class test_varuna_rebuild_retired : public test_varuna_rebuild {
protected:
    virtual unsigned num_links() const
    {
        return 3;
    }

    virtual void init()
    {
        test_varuna_rebuild::init();
        host->drop(host->know(name)); /* Learn its third link */
    }
};

/* The peer wants link 1 to be left: a recovery takes another one, if there is one that has
 * not failed */
UCS_TEST_F(test_varuna_rebuild_retired, recovery_avoids_links_to_be_left) {
    open();
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_CANCELED);
    EXPECT_EQ(1u, uct_varuna_ep_select_link(ep));
    ep->peer->retired = UCS_BIT(1);
    EXPECT_EQ(2u, uct_varuna_ep_select_link(ep));
    ep->peer->retired = UCS_BIT(1) | UCS_BIT(2);
    EXPECT_EQ(1u, uct_varuna_ep_select_link(ep));
    link_down(1);
    link_down(2);
    EXPECT_EQ(0u, uct_varuna_ep_select_link(ep));
    lane(0).complete();
}

/* --- The baseline resend --- */

UCS_TEST_F(test_varuna_rebuild, resend_leaves_a_silent_link) {
    host->requester()->baseline = uct_varuna_baseline_find("resend");
    ASSERT_TRUE(host->requester()->baseline != NULL);
    open();
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_CANCELED);
    step();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
    step();
    ASSERT_TRUE(ep->next.lane.ep != NULL);
    EXPECT_EQ(1u, ep->next.lane.link);
    for (unsigned i = 1; i <= 4; ++i) {
        step(i * pause());
    }
    ASSERT_TRUE(ep->next.lane.ep != NULL);
    EXPECT_EQ(0u, ep->next.lane.link);
    lane(0).complete();
}

/* --- Keys for NICs of the peer that were opened again --- */

class test_varuna_key : public test_varuna_recovery {
protected:
    static constexpr uint64_t TOKEN    = 0x70ce4;
    static constexpr uint64_t LOGS_KEY = 0x1065;
    static constexpr unsigned NIC   = 0;
    static constexpr unsigned NONE  = NUM_LINKS; /* There is no such NIC */

    virtual void init()
    {
        test_varuna_recovery::init();
        host->iface()->md->ib = m_ib.component();
        for (unsigned nic = NONE; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
            rkey.keys[nic] = UCT_INVALID_RKEY;
        }
        m_logs     = rkey;
        rkey.token = TOKEN;
        ASSERT_UCS_OK(uct_rkey_unpack(m_ib.component(), &LOGS_KEY, &m_logs.inner[NIC]));
        m_logs.keys[NIC] = m_logs.inner[NIC].rkey;
    }

    virtual void cleanup()
    {
        uct_varuna_keys_cleanup(host->requester());
        if (m_logs.keys[NIC] != UCT_INVALID_RKEY) {
            uct_rkey_release(m_ib.component(), &m_logs.inner[NIC]);
        }
        EXPECT_EQ(0u, m_ib.num_rkeys);
        test_varuna_recovery::cleanup();
    }

    /* @return A key of the user's that was packed in this life of the NIC */
    uct_varuna_rkey_t *unpacked(unsigned generation)
    {
        uint8_t buffer[128];
        uct_varuna_rkey_t *key = NULL;

        uct_varuna_rkey_pack_key(0x4b, generation,
                                 uct_varuna_rkey_pack_header(UCS_BIT(NIC),
                                                             UCT_VARUNA_ATOMIC_NATIVE,
                                                             UCT_VARUNA_DEVICE_HOST, TOKEN,
                                                             buffer));
        EXPECT_UCS_OK(uct_varuna_rkey_unpack(m_ib.component(), buffer, &key));
        return key;
    }

    /* The peer's address shows it */
    void reset_far_nic()
    {
        ++ep->peer->links[0].generation;
        uct_varuna_rkeys_renew(ep->peer->uuid, NIC, ep->peer->links[0].generation);
        ep->peer->returned            = UCS_BIT(0);
        uct_varuna_link_raise(host->iface());
    }

    /* @return The only question, if there is one */
    uct_varuna_ctl_key_req_t asked()
    {
        std::vector<fake_host::message> sent = host->sent();
        uct_varuna_ctl_key_req_t req         = {};

        EXPECT_GE(1u, sent.size());
        for (const fake_host::message &msg : sent) {
            EXPECT_EQ(UCT_VARUNA_CTL_KEY_REQ, msg.hdr.type);
            EXPECT_EQ(OPENING, msg.hdr.opening);
            req = msg.as<uct_varuna_ctl_key_req_t>();
        }
        return req;
    }

    void answer(uint64_t token, ucs_status_t status, uint64_t key = 0, unsigned nic = NIC,
                unsigned generation = 1)
    {
        uct_varuna_ctl_key_rep_t rep = {};

        rep.token      = token;
        rep.key        = key;
        rep.status     = status;
        rep.nic        = nic;
        rep.generation = generation;
        uct_varuna_ep_handle_key_rep(ep, &rep);
    }

    /* Whether a request with this key, or a message, would be posted on RC by the functions that
     * know mlx5. If not, one is posted, here on DC */
    bool is_fast(const uct_varuna_rkey_t *key)
    {
        uct_rkey_t rkey = (key == NULL) ? UCT_INVALID_RKEY : (uct_rkey_t)key;
        uint8_t lacks   = (key == NULL) ? UCT_VARUNA_GATE_CLOSED : uct_varuna_rkey_lacks(rkey);
        bool is_open    = true;

        ep->lane.kind = UCT_VARUNA_LANE_RC;
        if (!uct_varuna_gate_is_open(host->iface(), ep, lacks)) {
            EXPECT_TRUE(uct_varuna_req_get_slow(host->iface(), ep,
                                                (key == NULL) ? UCT_VARUNA_REQ_AM_SHORT :
                                                UCT_VARUNA_REQ_PUT_SHORT, NULL, rkey) != NULL);
            is_open = !(ep->hot.gate & UCT_VARUNA_GATE_CLOSED);
        }

        ep->lane.kind = UCT_VARUNA_LANE_DC;
        if (!is_open) {
            uint64_t slow = ep->stats.slow;

            EXPECT_TRUE(key != NULL);
            EXPECT_UCS_OK(uct_varuna_ep_put_short(&ep->super.super, &slow, sizeof(slow), TARGET,
                                                  rkey));
            EXPECT_EQ(slow + 1, ep->stats.slow);
        }
        return is_open;
    }

    const uct_varuna_req_t *newest()
    {
        uct_varuna_req_t *req, *last = NULL;

        uct_varuna_ring_for_each(req, &ep->hot.reqs) {
            last = req;
        }
        return last;
    }

    fake_ib           m_ib;
    uct_varuna_rkey_t m_logs;
};

/* An endpoint asks for the key of the logs, and for those that it uses, once; it gets what it
 * has asked for, and nothing else */
UCS_TEST_F(test_varuna_key, is_completed_before_the_link_is_used) {
    link_down(0);
    open();
    ep->remote.log_bundle.rkey = (uct_rkey_t)&m_logs;
    ASSERT_EQ(1u, ep->lane.link);
    EXPECT_EQ(0u, uct_varuna_ep_keyless_links(ep));
    ASSERT_UCS_OK(put(1));
    EXPECT_EQ(0u, asked().generation) << "nothing was reset";

    reset_far_nic();
    EXPECT_EQ(UCS_BIT(0), uct_varuna_ep_keyless_links(ep));
    EXPECT_EQ(0u, newest()->keys[NIC]);
    uct_varuna_ep_complete_logs(ep, ucs_get_time());
    uct_varuna_ep_complete_logs(ep, ucs_get_time());
    uct_varuna_ctl_key_req_t req = asked();
    EXPECT_EQ(NIC, req.nic);
    EXPECT_EQ(1u, req.generation);
    EXPECT_EQ(0u, req.token);
    EXPECT_EQ(UCT_INVALID_RKEY, m_logs.keys[NIC]) << "its former life";
    EXPECT_EQ(0u, m_ib.num_rkeys);
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NIC]) << "it was posted before";
    EXPECT_EQ(0u, newest()->keys[NIC + 1]);
    ASSERT_UCS_OK(put(2));
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NIC]);
    req = asked();
    EXPECT_EQ(NIC, req.nic);
    EXPECT_EQ(1u, req.generation);
    EXPECT_EQ(TOKEN, req.token);
    EXPECT_EQ(TARGET, req.addr);
    ASSERT_UCS_OK(put(3));
    EXPECT_EQ(0u, asked().generation) << "it was asked";

    answer(TOKEN + 1, UCS_OK, 0x1234);
    answer(TOKEN, UCS_OK, 0x1234, NONE);
    answer(TOKEN, UCS_OK, 0x1234, NIC, 0);
    answer(TOKEN, UCS_OK, 0x1234, NIC, 2);
    answer(TOKEN, UCS_ERR_NO_RESOURCE);
    ASSERT_UCS_OK(put(4));
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NIC]);
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NONE]);
    answer(TOKEN, UCS_OK, 0x1234);
    ASSERT_UCS_OK(put(5));
    EXPECT_EQ(0x1234u, newest()->keys[NIC]);
    EXPECT_EQ(UCT_INVALID_RKEY, rkey.keys[NONE]);

    answer(0, UCS_OK, 0x5678, NIC, 0);
    answer(0, UCS_OK, 0x5678, NIC, 2);
    EXPECT_EQ(UCT_INVALID_RKEY, m_logs.keys[NIC]);
    answer(0, UCS_OK, 0x5678);
    EXPECT_EQ(0x5678u, m_logs.keys[NIC]);
    EXPECT_EQ(1u, m_logs.generations[NIC]);
    EXPECT_EQ(UCS_BIT(0), uct_varuna_ep_keyless_links(ep)) << "it finds out what it uses";
    EXPECT_EQ(0u, asked().generation);
}

/* A request whose key is not complete leaves the link before it is posted there. To a region
 * that is gone it is posted, to fail as on any link */
UCS_TEST_F(test_varuna_key, first_use_leaves_the_link) {
    reset_far_nic();
    m_logs.generations[NIC]    = 1;
    ep->remote.logs_addr       = LOGS;
    ep->remote.opening         = OPENING;
    ep->remote.log_bundle.rkey = (uct_rkey_t)&m_logs;
    uct_varuna_ep_open_lane(ep, ucs_get_time());
    step();
    host->sent();
    ASSERT_EQ(0u, ep->lane.link);
    ASSERT_EQ(NIC, ep->hot.far_nic);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, put(1));
    EXPECT_EQ(0u, puts(lane(0)).size());
    EXPECT_EQ(TOKEN, asked().token);
    EXPECT_EQ(UCS_BIT(0), uct_varuna_ep_keyless_links(ep));
    for (unsigned i = 0; (i < 10) && (state() != UCT_VARUNA_EP_ACTIVE); ++i) {
        step();
    }
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(1u, ep->lane.link);
    ASSERT_UCS_OK(put(1));
    EXPECT_EQ(1u, puts(lane(1)).size());
    answer(TOKEN, UCS_ERR_NO_ELEM);
    ep->hot.far_nic = NIC;
    ASSERT_UCS_OK(put(2));
    EXPECT_EQ(2u, puts(lane(1)).size());
}

/* While what waits lacks keys on all links, they are asked for. A link is used as soon as its key is
 * there, however long the distance of the tries has become */
UCS_TEST_F(test_varuna_key, link_is_used_again_with_its_key) {
    const ucs_time_t now = ucs_get_time();

    link_down(0);
    open();
    ep->remote.log_bundle.rkey = (uct_rkey_t)&m_logs;
    ASSERT_UCS_OK(put(1));
    reset_far_nic();
    m_logs.generations[NIC] = 1;
    host->sent();
    for (unsigned i = 0; i < 10; ++i) {
        uct_varuna_ep_avoid_links(ep, 3, 3);
    }
    ASSERT_FALSE(uct_varuna_backoff_is_due(&ep->keyless.backoff, now + ucs_time_from_sec(1)));

    /* No connection is asked for */
    uct_varuna_requester_peer(host->iface(), ep->peer)->connecting += UCT_VARUNA_MAX_CONNECTING;
    uct_varuna_ep_connect_next(ep, now);
    EXPECT_EQ(TOKEN, asked().token);
    EXPECT_EQ(UCS_BIT(0), ep->keyless.links) << "the other one has its key";
    uct_varuna_ep_connect_next(ep, now);
    EXPECT_EQ(UCS_BIT(0), ep->keyless.links);

    answer(TOKEN, UCS_OK, 0x1234);
    uct_varuna_ep_connect_next(ep, now);
    EXPECT_EQ(0u, ep->keyless.links);
    EXPECT_TRUE(uct_varuna_backoff_is_due(&ep->keyless.backoff, now));
    uct_varuna_requester_peer(host->iface(), ep->peer)->connecting -= UCT_VARUNA_MAX_CONNECTING;
}

/* A NIC that is short has refused a request. It is not tried again for the others, which lack
 * nothing, before the distance is over: the next one of that kind would fail its lane */
UCS_TEST_F(test_varuna_key, link_that_has_refused_one_is_avoided) {
    const ucs_time_t now = ucs_get_time();

    open();
    ep->remote.log_bundle.rkey = (uct_rkey_t)&m_logs;
    uct_varuna_requester_peer(host->iface(), ep->peer)->connecting += UCT_VARUNA_MAX_CONNECTING;
    ASSERT_UCS_OK(put(1));
    uct_varuna_ep_avoid_links(ep, UCS_BIT(0), UCS_BIT(0));
    uct_varuna_ep_connect_next(ep, now);
    EXPECT_EQ(UCS_BIT(0), ep->keyless.links);
    EXPECT_FALSE(uct_varuna_backoff_is_due(&ep->keyless.backoff, now));
    uct_varuna_ep_avoid_links(ep, UCS_BIT(1), UCS_BIT(1));
    uct_varuna_ep_connect_next(ep, now);
    EXPECT_EQ(0u, ep->keyless.links) << "there is no other one";
    EXPECT_FALSE(uct_varuna_backoff_is_due(&ep->keyless.backoff, now)) << "it may be short still";
    uct_varuna_requester_peer(host->iface(), ep->peer)->connecting -= UCT_VARUNA_MAX_CONNECTING;
}

/* On RC the gate is closed for a request whose key lacks a NIC, whatever lane the endpoint has. It
 * is open again for the same key once that is complete, and for messages at any time */
UCS_TEST_F(test_varuna_key, gate_is_open_for_what_has_it) {
    uct_varuna_rkey_t *old   = unpacked(0);
    uct_varuna_rkey_t *fresh = unpacked(1);

    link_down(0);
    open();
    ep->remote.log_bundle.rkey = (uct_rkey_t)&m_logs;
    EXPECT_TRUE(is_fast(old));

    reset_far_nic();
    EXPECT_FALSE(is_fast(old));
    EXPECT_EQ(TOKEN, asked().token);
    EXPECT_FALSE(is_fast(old));
    EXPECT_TRUE(is_fast(fresh)) << "it was packed after the reset";
    EXPECT_FALSE(is_fast(old));
    EXPECT_TRUE(is_fast(NULL)) << "a message";

    answer(TOKEN, UCS_OK, 0x1234);
    EXPECT_TRUE(is_fast(old));
    EXPECT_EQ(0x1234u, old->keys[NIC]);
    EXPECT_TRUE(is_fast(old));

    /* It is reset once more: the same again */
    asked();
    reset_far_nic();
    EXPECT_FALSE(is_fast(old));
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NIC]);
    EXPECT_EQ(2u, asked().generation);
    EXPECT_FALSE(is_fast(fresh));
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NIC]);
    answer(TOKEN, UCS_OK, 0x4321, NIC, 1);
    EXPECT_FALSE(is_fast(old));
    EXPECT_EQ(UCT_INVALID_RKEY, newest()->keys[NIC]);
    answer(TOKEN, UCS_OK, 0x5678, NIC, 2);
    EXPECT_TRUE(is_fast(old));
    EXPECT_TRUE(is_fast(fresh));
    EXPECT_EQ(0x5678u, old->keys[NIC]);
    EXPECT_EQ(0x5678u, fresh->keys[NIC]);
    EXPECT_EQ(0u, asked().generation);
    uct_varuna_rkey_release(m_ib.component(), old);
    uct_varuna_rkey_release(m_ib.component(), fresh);
}

/* A put that turns out to be empty needs no key. One that is not takes the slow path if its key
 * lacks a NIC */
UCS_TEST_F(test_varuna_key, packed_put) {
    static const auto pack = [](void *dest, void *arg) -> size_t {
        memset(dest, 0, *(size_t*)arg);
        return *(size_t*)arg;
    };
    static ucs_mpool_ops_t mpool_ops = {
        ucs_mpool_chunk_malloc, ucs_mpool_chunk_free,
        [](ucs_mpool_t*, void *obj, void*) {
            ((uct_varuna_bcopy_t*)obj)->memh = UCT_MEM_HANDLE_NULL;
        }
    };
    size_t nothing = 0, word = sizeof(uint64_t);
    uint64_t slow;

    ASSERT_UCS_OK(uct_varuna_compat_mpool_init(&host->requester()->pools.bcopies, 512, 4,
                                               &mpool_ops, "bcopy"));
    link_down(0);
    open();
    ep->remote.log_bundle.rkey = (uct_rkey_t)&m_logs;
    EXPECT_EQ(0, uct_varuna_ep_put_bcopy(&ep->super.super, pack, &nothing, 0,
                                         UCT_INVALID_RKEY));
    reset_far_nic();
    EXPECT_EQ(0, uct_varuna_ep_put_bcopy(&ep->super.super, pack, &nothing, 0,
                                         UCT_INVALID_RKEY));

    slow = ep->stats.slow;
    EXPECT_EQ((ssize_t)word, uct_varuna_ep_put_bcopy(&ep->super.super, pack, &word, TARGET,
                                                     (uct_rkey_t)&rkey));
    EXPECT_EQ(slow + 1, ep->stats.slow);
    EXPECT_EQ(TOKEN, asked().token);
    acknowledge();
    ucs_mpool_cleanup(&host->requester()->pools.bcopies, 1);
}
