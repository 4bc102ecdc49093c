/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Peers, and the checks of a control message before the bus: known peers, peers that
 * may answer, and strangers.
 */
#include "fake_host.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/lanes/varuna_link_cmd.h>
}

#include <algorithm>
#include <atomic>
#include <cstring>
#include <unistd.h>

class test_varuna_peer : public fake_host_test {
protected:
    static constexpr unsigned NUM_LINKS = 2;

    virtual void init()
    {
        /* All messages go to the test itself */
        static const uct_varuna_bus_reg_t rows[] = {
            {UCT_VARUNA_CTL_OPEN_REQ,  UCT_VARUNA_BUS_ASYNC, handle},
            {UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_ASYNC, handle},
            {UCT_VARUNA_CTL_CLOSE,     UCT_VARUNA_BUS_ASYNC, handle},
            {UCT_VARUNA_CTL_CLOSE_REP, UCT_VARUNA_BUS_MAIN,  handle},
            {UCT_VARUNA_CTL_REJECT,    UCT_VARUNA_BUS_MAIN,  handle}
        };

        ucs::test::init();
        host.reset(new fake_host(NUM_LINKS));
        host->iface()->config.heartbeat_interval = 0;
        host->start_heartbeat();
        uct_varuna_bus_register(&host->ctl()->bus, rows,
                                ucs_static_array_size(rows), this);
    }

    static void handle(void *arg, unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                       const void *body)
    {
        ((test_varuna_peer*)arg)->handled.push_back(hdr->type);
    }

    uct_varuna_peer_t *open_guest(const fake_peer &peer)
    {
        std::string addr = host->address(peer);
        uct_varuna_parsed_addr_t parsed;
        uct_varuna_peer_t *self = NULL;
        const char *reason;

        EXPECT_EQ(UCS_OK, uct_varuna_parse_addr(NULL, addr.data(), addr.size(), &parsed,
                                                &reason));
        EXPECT_EQ(UCS_OK, uct_varuna_peer_open(host->ctl(), &parsed, peer.secret, &self));
        return self;
    }

    ucs_status_t send(uct_varuna_peer_t *peer, unsigned link, unsigned type)
    {
        uct_varuna_ctl_hdr_t whose = {};

        whose.secret = peer->secret;
        return uct_varuna_ctl_send(host->ctl(), peer, link, (uct_varuna_ctl_type_t)type,
                                   &whose, NULL, 0);
    }

    void receive(const fake_peer &peer, unsigned type)
    {
        uct_varuna_ctl_fence_req_t body = {1, 0, 0};

        if (type == UCT_VARUNA_CTL_FENCE_REQ) {
            host->receive(peer, 0, host->header(peer, type, 1, 1), body);
        } else {
            host->receive(peer, 0, host->header(peer, type, 1, 1));
        }
        host->dispatch();
    }

    std::vector<unsigned>      handled;
    const fake_peer            server = {0x5e, 1, 0};     /* We send to it */
    const fake_peer            guest  = {0x6e, 2, 0x666}; /* It sends to us */
};


/* --- Known peers --- */

UCS_TEST_F(test_varuna_peer, one_object_for_all_endpoints) {
    uct_varuna_peer_t *first = host->know(server);

    EXPECT_EQ(first, host->know(server));
    EXPECT_EQ(2u, first->refcount);
    host->drop(first);
    EXPECT_EQ(1u, kh_size(&host->ctl()->peers));
    host->drop(first);
    EXPECT_EQ(0u, kh_size(&host->ctl()->peers));
}

/* A guest identifies itself, and may lie */
UCS_TEST_F(test_varuna_peer, guest_is_never_taken_for_a_known_peer) {
    fake_peer liar             = {server.uuid, 5, 0x777};
    uct_varuna_peer_t *known   = host->know(server);
    uct_varuna_peer_t *claimed = open_guest(liar);

    EXPECT_NE(known, claimed);
    EXPECT_EQ(known, uct_varuna_peer_find(host->ctl(), server.uuid, known->secret));
    EXPECT_EQ(claimed, uct_varuna_peer_find(host->ctl(), server.uuid, 0x777));
    EXPECT_TRUE(uct_varuna_peer_find(host->ctl(), server.uuid, 0x778) == NULL);
    EXPECT_NE(known->links[0].device_addr, claimed->links[0].device_addr);
    host->drop(claimed);
    host->drop(known);
}

UCS_TEST_F(test_varuna_peer, secrets_differ) {
    uct_varuna_peer_t *first  = host->know(server);
    uct_varuna_peer_t *second = host->know({0x5f, 1, 0});

    EXPECT_NE(0u, first->secret);
    EXPECT_NE(first->secret, second->secret);
    host->drop(first);
    host->drop(second);
}

UCS_TEST_F(test_varuna_peer, links_are_paired_by_what_they_reach) {
    uct_varuna_peer_t *peer = host->know(server);

    EXPECT_EQ(3u, peer->link_map);
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        EXPECT_EQ(link, peer->links[link].nic);
        EXPECT_EQ(0, memcmp(peer->links[link].device_addr,
                            fake_lane::device_addr(fake_lane::lid(1, link)).data(),
                            fake_lane::DEVICE_LEN));
    }
    host->drop(peer);
}

UCS_TEST_F(test_varuna_peer, answer_goes_where_the_peer_is_reached) {
    uct_varuna_peer_t *peer = host->know(server);

    EXPECT_EQ(1u, uct_varuna_ctl_reply_link(host->ctl(), peer, 1));
    peer->link_map = 1;
    EXPECT_EQ(0u, uct_varuna_ctl_reply_link(host->ctl(), peer, 1));
    EXPECT_EQ(UCS_ERR_UNREACHABLE, send(peer, 1, UCT_VARUNA_CTL_CLOSE));
    host->drop(peer);
}

/* The private data of higher layers is first zero, and does not overlap */
UCS_TEST_F(test_varuna_peer, parts_of_the_rooms_above) {
    size_t first  = uct_varuna_peer_add_part(host->ctl(), 5);
    size_t second = uct_varuna_peer_add_part(host->ctl(), 64);
    uct_varuna_peer_t *peer;
    uint8_t *part;

    EXPECT_GE(first, sizeof(uct_varuna_peer_t));
    EXPECT_GE(second, first + 5);
    EXPECT_EQ(0u, second % sizeof(uint64_t));
    peer = host->know(server);
    part = (uint8_t*)uct_varuna_peer_part(peer, second);
    EXPECT_EQ(64, std::count(part, part + 64, 0));
    memset(part, 0xff, 64);
    EXPECT_EQ(0, *(uint8_t*)uct_varuna_peer_part(peer, first));
    host->drop(peer);
}


/* --- Sending --- */

UCS_TEST_F(test_varuna_peer, message_names_both_ends) {
    uct_varuna_peer_t *peer = host->know(server);
    fake_host::message msg;

    EXPECT_EQ(UCS_OK, send(peer, 1, UCT_VARUNA_CTL_CLOSE));
    msg = host->last_sent(UCT_VARUNA_CTL_CLOSE);
    EXPECT_EQ(1u, msg.link);
    EXPECT_EQ(server.uuid, msg.hdr.dest);
    EXPECT_EQ(host->iface()->uuid, msg.hdr.uuid);
    EXPECT_EQ(peer->secret, msg.hdr.secret);
    EXPECT_EQ(UCT_VARUNA_WIRE_VERSION, msg.hdr.version);
    host->drop(peer);
}

/* Messages without resources wait, in order, until there are some */
UCS_TEST_F(test_varuna_peer, messages_wait_for_resources_in_order) {
    uct_varuna_peer_t *peer = host->know(server);
    std::vector<fake_host::message> messages;

    host->ctl_lane(0).post_status = UCS_ERR_NO_RESOURCE;
    EXPECT_EQ(UCS_OK, send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    host->ctl_lane(0).post_status = UCS_OK;
    EXPECT_EQ(UCS_OK, send(peer, 0, UCT_VARUNA_CTL_CLOSE_REP));
    messages = host->sent();
    ASSERT_EQ(2u, messages.size());
    EXPECT_EQ(UCT_VARUNA_CTL_CLOSE, messages[0].hdr.type);
    EXPECT_EQ(0u, host->ctl()->queue.len);
    host->drop(peer);
}

/* An endpoint that failed is replaced with the next message */
UCS_TEST_F(test_varuna_peer, message_after_a_failure) {
    uct_varuna_peer_t *peer = host->know(server);
    unsigned created;

    send(peer, 0, UCT_VARUNA_CTL_CLOSE);
    created = host->ctl_lane(0).num_created;
    host->fail_ctl(peer, 0);
    EXPECT_TRUE(peer->ctl_eps[0] == NULL);
    EXPECT_EQ(1u, peer->failed);
    send(peer, 0, UCT_VARUNA_CTL_CLOSE);
    EXPECT_EQ(created + 1, host->ctl_lane(0).num_created);
    EXPECT_EQ(2u, host->sent().size());
    host->drop(peer);
}

/* Peers that are probably dead occupy two DCIs of a link at most */
UCS_TEST_F(test_varuna_peer, doubtful_peers_share_few_places) {
    std::vector<uct_varuna_peer_t*> peers;
    unsigned sent = 0;

    for (unsigned i = 0; i < 5; ++i) {
        peers.push_back(host->know({0x700 + i, i + 1, 0}));
        send(peers[i], 0, UCT_VARUNA_CTL_CLOSE);
        host->fail_ctl(peers[i], 0);
    }

    host->ctl_lane(0).is_drained = false; /* Nothing leaves */
    for (uct_varuna_peer_t *peer : peers) {
        sent += (send(peer, 0, UCT_VARUNA_CTL_CLOSE) == UCS_OK);
        EXPECT_EQ(UCS_OK, send(peer, 1, UCT_VARUNA_CTL_CLOSE)) << "of this link only";
    }
    EXPECT_EQ((unsigned)UCT_VARUNA_CTL_MAX_DOUBTFUL, sent);

    /* When the messages were sent without an error, the peers are not in doubt any
     * more */
    host->ctl_lane(0).is_drained = true;
    EXPECT_EQ(UCS_OK, send(peers[4], 0, UCT_VARUNA_CTL_CLOSE));
    EXPECT_EQ(0u, peers[0]->doubtful);
    for (uct_varuna_peer_t *peer : peers) {
        host->drop(peer);
    }
}


/* --- Receiving --- */

UCS_TEST_F(test_varuna_peer, message_of_a_guest_is_delivered) {
    uct_varuna_peer_t *peer = open_guest(guest);

    host->advance(1);
    peer->failed = 3;
    receive(guest, UCT_VARUNA_CTL_FENCE_REQ);
    EXPECT_EQ(std::vector<unsigned>({UCT_VARUNA_CTL_FENCE_REQ}), handled);
    EXPECT_EQ(host->now(), peer->heard_at);
    EXPECT_EQ(0u, peer->failed);
    host->drop(peer);
}

/* Only the peer that was asked knows the secret for it */
UCS_TEST_F(test_varuna_peer, answer_of_the_peer_that_was_asked) {
    fake_peer liar = {server.uuid, 1, 0xbad};

    receive(server, UCT_VARUNA_CTL_CLOSE_REP);
    EXPECT_EQ(1u, handled.size());
    receive(liar, UCT_VARUNA_CTL_CLOSE_REP);
    EXPECT_EQ(1u, handled.size());
    EXPECT_EQ(1u, host->ctl()->stats.mismatched);
}

/* A REJECT names the peer of the request, because another process may answer */
UCS_TEST_F(test_varuna_peer, reject_for_the_peer_that_was_asked) {
    uct_varuna_ctl_reject_t body = {};
    uct_varuna_ctl_hdr_t hdr     = host->header(server, UCT_VARUNA_CTL_REJECT, 1, 1);

    body.dest   = server.uuid;
    body.type   = UCT_VARUNA_CTL_FENCE_REQ;
    body.status = UCS_ERR_CONNECTION_RESET;
    hdr.uuid    = 0xabcdef;
    host->receive(server, 0, hdr, body);
    host->dispatch();
    EXPECT_EQ(1u, handled.size());

    body.dest = server.uuid + 1;
    host->receive(server, 0, hdr, body);
    host->dispatch();
    EXPECT_EQ(1u, handled.size());

    /* Of a PING only if that was sent not long ago */
    body.dest = server.uuid;
    body.type = UCT_VARUNA_CTL_PING;
    host->receive(server, 0, hdr, body);
    host->dispatch();
    EXPECT_EQ(1u, handled.size());
}

/* The queue pair belonged to another process before: its peers must learn this, and
 * nothing else happens */
UCS_TEST_F(test_varuna_peer, message_for_a_process_that_was_here_before) {
    uct_varuna_ctl_hdr_t hdr = host->header(guest, UCT_VARUNA_CTL_FENCE_REQ, 7, 3);
    uct_varuna_ctl_fence_req_t body = {3, 0, 0};
    fake_host::message msg;

    hdr.dest = 0xdead;
    host->receive(guest, 1, hdr, body);
    EXPECT_EQ(0u, handled.size());
    EXPECT_EQ(0u, kh_size(&host->ctl()->peers));
    EXPECT_EQ(1u, host->ctl()->stats.stale);
    EXPECT_EQ(1u, host->ctl()->stats.answered);
    msg = host->last_sent(UCT_VARUNA_CTL_REJECT);
    EXPECT_EQ(1u, msg.link);
    EXPECT_EQ(0xdeadu, msg.hdr.uuid) << "strangers do not get our name";
    EXPECT_EQ(guest.uuid, msg.hdr.dest);
    EXPECT_EQ(7u, msg.hdr.vqp);
    EXPECT_EQ(UCS_ERR_CONNECTION_RESET, msg.as<uct_varuna_ctl_reject_t>().status);
}

/* A burst of them is answered at a limited rate */
UCS_TEST_F(test_varuna_peer, answers_to_strangers_are_limited) {
    uct_varuna_ctl_hdr_t hdr = host->header(guest, UCT_VARUNA_CTL_FENCE_REQ, 7, 3);
    uct_varuna_ctl_fence_req_t body = {3, 0, 0};

    hdr.dest = 0xdead;
    for (unsigned i = 0; i < 5000; ++i) {
        host->receive(guest, 1, hdr, body);
    }
    EXPECT_LT(host->ctl()->stats.answered, 4000u);
    EXPECT_EQ(5000u, host->ctl()->stats.answered + host->ctl()->stats.ignored);
    EXPECT_EQ(5000u, host->ctl()->stats.stale);
}

/* A message must not make us send to an unreachable address */
UCS_TEST_F(test_varuna_peer, stranger_that_is_not_on_this_link) {
    uct_varuna_ctl_hdr_t hdr = host->header(guest, UCT_VARUNA_CTL_OPEN_REQ, 7, 3);

    hdr.dest = 0xdead;
    host->receive(guest, 1, hdr, std::string(4, 0));
    EXPECT_EQ(0u, host->sent().size());
}

UCS_TEST_F(test_varuna_peer, malformed_messages_do_nothing) {
    uct_varuna_ctl_hdr_t hdr = host->header(guest, UCT_VARUNA_CTL_FENCE_REQ, 7, 3);
    uct_varuna_ctl_fence_req_t body = {3, 0, 0};
    scoped_log_handler slh(hide_warns_logger);
    uct_varuna_ctl_hdr_t wrong;

    (wrong = hdr).magic = 1;
    host->receive(guest, 0, wrong, body);
    (wrong = hdr).type = UCT_VARUNA_CTL_LAST;
    host->receive(guest, 0, wrong, body);
    (wrong = hdr).type = UCT_VARUNA_CTL_HOME_REQ; /* Nobody handles it here */
    host->receive(guest, 0, wrong, body);
    (wrong = hdr).secret = 0;
    host->receive(guest, 0, wrong, body);
    (wrong = hdr).epoch = 0;
    host->receive(guest, 0, wrong, body);
    host->receive(guest, 0, hdr, std::string("short"));
    EXPECT_EQ(0u, handled.size());
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_EQ(5u, host->ctl()->complaints.unwarned) << "one warning in a while";
}


/* --- Learning the other links of a peer --- */

class test_varuna_peer_learn : public test_varuna_peer {
protected:
    uct_varuna_peer_t *know_part(unsigned planes)
    {
        std::string addr        = host->address(server, planes);
        uct_varuna_peer_t *peer = NULL;

        EXPECT_UCS_OK(uct_varuna_peer_get(host->ctl(), NULL, addr.data(), addr.size(),
                                          &peer));
        return peer;
    }

    void learn(uint64_t uuid, const std::string &addr)
    {
        uct_varuna_peer_learn(host->ctl(), uuid, addr.data(), addr.size());
    }
};

UCS_TEST_F(test_varuna_peer_learn, links_are_added) {
    uct_varuna_peer_t *peer = know_part(1);
    uct_device_addr_t *known = peer->links[0].device_addr;

    EXPECT_EQ(1u, peer->link_map);
    EXPECT_EQ(UCS_ERR_UNREACHABLE, send(peer, 1, UCT_VARUNA_CTL_CLOSE));
    learn(server.uuid, host->address(server, 3));
    EXPECT_EQ(3u, peer->link_map);
    EXPECT_EQ(known, peer->links[0].device_addr) << "endpoints use it";
    EXPECT_EQ(0, memcmp(peer->links[1].device_addr,
                        fake_lane::device_addr(fake_lane::lid(1, 1)).data(),
                        fake_lane::DEVICE_LEN));
    EXPECT_EQ(UCS_OK, send(peer, 1, UCT_VARUNA_CTL_CLOSE));
    EXPECT_EQ(1u, peer->refcount) << "learning holds no reference";
    host->drop(peer);
}

/* What the peer has announced of its ports holds for a link that becomes known later */
UCS_TEST_F(test_varuna_peer_learn, ports_of_links_that_are_added) {
    uct_varuna_ctl_ports_t ports = {1, 2, 2, 0};
    uct_varuna_peer_t *peer      = know_part(1);

    host->receive(server, 0, host->header(server, UCT_VARUNA_CTL_PORTS, 0, 0), ports);
    host->dispatch();
    EXPECT_EQ(0, peer->hb.far_down);
    learn(server.uuid, host->address(server, 3));
    host->dispatch();
    EXPECT_EQ(2, peer->hb.far_down);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, peer->paths[0].damp.state);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, peer->paths[1].damp.state);
    EXPECT_EQ(2, peer->retired);

    ports = {2, 0, 0, 0};
    host->receive(server, 0, host->header(server, UCT_VARUNA_CTL_PORTS, 0, 0), ports);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, peer->paths[1].damp.state);
    EXPECT_EQ(0, peer->retired);
    host->drop(peer);
}

/* A late answer is as valid as an early one */
UCS_TEST_F(test_varuna_peer_learn, nothing_new) {
    uct_varuna_peer_t *peer = know_part(3);

    learn(server.uuid, host->address(server, 3));
    learn(server.uuid, host->address(server, 1));
    EXPECT_EQ(3u, peer->link_map);
    EXPECT_EQ(1u, peer->refcount);
    host->drop(peer);
}

/* A peer may only name its own links */
UCS_TEST_F(test_varuna_peer_learn, address_of_another_peer) {
    scoped_log_handler slh(hide_warns_logger);
    fake_peer other         = {0x5f, 3, 0};
    uct_varuna_peer_t *peer = know_part(1);
    uct_varuna_peer_t *second = host->know(other);

    second->link_map = 1;
    learn(server.uuid, host->address(other, 3));
    EXPECT_EQ(1u, peer->link_map);
    EXPECT_EQ(1u, second->link_map) << "it was not asked";
    ASSERT_EQ(1u, m_warnings.size());
    EXPECT_NE(std::string::npos, m_warnings[0].find("another peer's"));
    host->drop(second);
    host->drop(peer);
}

UCS_TEST_F(test_varuna_peer_learn, truncated_address) {
    scoped_log_handler slh(hide_warns_logger);
    std::string addr        = host->address(server, 3);
    uct_varuna_peer_t *peer = know_part(1);

    for (size_t length = 0; length < addr.size(); ++length) {
        learn(server.uuid, addr.substr(0, length));
    }
    EXPECT_EQ(1u, peer->link_map);
    EXPECT_EQ(1u, m_warnings.size()) << "one warning in a while";
    EXPECT_EQ(addr.size() - 1, host->ctl()->complaints.unwarned);
    host->drop(peer);
}

/* A guest of the same name is another object, whose address is not trusted */
UCS_TEST_F(test_varuna_peer_learn, not_by_a_guest) {
    uct_varuna_peer_t *claimed = open_guest({server.uuid, 5, 0x777});
    uct_varuna_peer_t *peer    = know_part(1);

    learn(server.uuid, host->address(server, 3));
    EXPECT_EQ(3u, peer->link_map);
    EXPECT_EQ(0, memcmp(claimed->links[1].device_addr,
                        fake_lane::device_addr(fake_lane::lid(5, 1)).data(),
                        fake_lane::DEVICE_LEN));
    host->drop(claimed);
    host->drop(peer);
}


/* --- Messages that wait on a link that was dead --- */

/* Messages that wait on a returned link fail together with later ones */
UCS_TEST_F(test_varuna_peer, other_link_lost) {
    uct_varuna_peer_t *peer = host->know(server);
    fake_lane &lane         = host->ctl_lane(0);
    uct_ep_h inner;

    ASSERT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    host->fail_ctl(peer, 0);
    EXPECT_EQ(1u, peer->num_lost[0]);
    lane.is_drained = false;
    ASSERT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    inner = peer->ctl_eps[0];
    ASSERT_TRUE(inner != NULL);

    host->advance(0.001);
    uct_varuna_ports_event(host->ctl(), 1, UCT_VARUNA_PORT_DOWN);
    EXPECT_EQ(inner, peer->ctl_eps[0]) << "it may be on its way";

    host->advance(0.01);
    uct_varuna_ports_event(host->ctl(), 0, UCT_VARUNA_PORT_DOWN);
    EXPECT_EQ(inner, peer->ctl_eps[0]) << "its own link is lost";

    uct_varuna_ports_event(host->ctl(), 1, UCT_VARUNA_PORT_DOWN);
    EXPECT_TRUE(peer->ctl_eps[0] == NULL) << "others would wait for it";
    EXPECT_TRUE(lane.eps.front()->in_err);
    EXPECT_EQ(2u, peer->num_lost[0]);

    EXPECT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE)); /* Its place is free */
    EXPECT_NE(inner, peer->ctl_eps[0]);
    lane.is_drained = true;
    host->drop(peer);
}

UCS_TEST_F(test_varuna_peer, peer_is_heard_again) {
    uct_varuna_peer_t *peer = host->know(server);
    fake_lane &lane         = host->ctl_lane(0);

    ASSERT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    host->fail_ctl(peer, 0);
    lane.is_drained = false;
    ASSERT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    host->advance(0.01);
    receive(server, UCT_VARUNA_CTL_CLOSE_REP);
    EXPECT_TRUE(peer->ctl_eps[0] == NULL) << "the link works, but not for this one";
    EXPECT_EQ(2u, peer->num_lost[0]);
    lane.is_drained = true;
    host->drop(peer);
}

/* Messages to other peers wait without a limit */
UCS_TEST_F(test_varuna_peer, messages_without_doubt_wait) {
    uct_varuna_peer_t *peer = host->know(server);
    fake_lane &lane         = host->ctl_lane(0);
    uct_ep_h inner;

    lane.is_drained = false;
    ASSERT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    inner = peer->ctl_eps[0];
    host->advance(0.1);
    receive(server, UCT_VARUNA_CTL_CLOSE_REP);
    uct_varuna_ports_event(host->ctl(), 1, UCT_VARUNA_PORT_DOWN);
    EXPECT_EQ(inner, peer->ctl_eps[0]);
    EXPECT_EQ(0u, peer->num_lost[0]);
    lane.is_drained = true;
    host->drop(peer);
}

/* --- Address handles that may take a second --- */

/* Its links are on Ethernet */
class test_varuna_seek : public test_varuna_peer {
protected:
    virtual void init()
    {
        test_varuna_peer::init();
        fake_lane::num_ahs = 0;
        m_is_held          = false;
        m_status           = UCS_OK;
        fake_lane::on_ah   = [this]() {
            while (m_is_held) {
                usleep(1000);
            }
            return m_status.load();
        };
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            host->ctl()->links[link].seeks = 1;
            ASSERT_UCS_OK(uct_varuna_cmds_create("fake", handles(link)));
        }
        ASSERT_UCS_OK(uct_varuna_link_cmds_open(host->iface(), host->ctl()->async));
    }

    virtual void cleanup()
    {
        EXPECT_EQ(0u, uct_varuna_link_cmds_close(host->iface()));
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            ASSERT_UCS_OK(uct_varuna_cmds_destroy(*handles(link)));
            *handles(link) = NULL;
        }
        fake_lane::on_ah = nullptr;
        test_varuna_peer::cleanup();
    }

    uct_varuna_cmds_t **handles(unsigned link)
    {
        return &host->iface()->md->nics[link].handles;
    }

    /* The answers of the threads are there */
    template<typename T> void until(T condition)
    {
        for (time_t end = time(NULL) + 60; !condition() && (time(NULL) < end); usleep(100)) {
            uct_varuna_cmd_sink_dispatch(&host->iface()->cmds.sink);
        }
        ASSERT_TRUE(condition());
    }

    void until_found(const uct_varuna_peer_t *peer)
    {
        until([=]() { return peer->sought == 0; });
    }

    std::atomic<bool>         m_is_held;
    std::atomic<ucs_status_t> m_status;
};

/* Messages to a port wait until its handle takes no time. All others go on meanwhile */
UCS_TEST_F(test_varuna_seek, others_go_on) {
    uct_varuna_peer_t *known = host->know({2, 1, 0});
    uct_varuna_peer_t *slow  = host->know({3, 2, 0});

    EXPECT_UCS_OK(send(known, 0, UCT_VARUNA_CTL_CLOSE));
    EXPECT_EQ(0u, host->sent().size());
    until_found(known);
    EXPECT_EQ(1u, host->sent().size());
    EXPECT_EQ(2u, fake_lane::num_ahs) << "for the other link as well";

    m_is_held = true;
    EXPECT_UCS_OK(send(slow, 0, UCT_VARUNA_CTL_CLOSE));
    EXPECT_UCS_OK(send(known, 0, UCT_VARUNA_CTL_CLOSE));
    EXPECT_UCS_OK(send(slow, 1, UCT_VARUNA_CTL_CLOSE));
    EXPECT_UCS_OK(send(known, 1, UCT_VARUNA_CTL_CLOSE));
    EXPECT_EQ(2u, host->sent().size());
    EXPECT_EQ(2u, host->ctl()->queue.len);
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_varuna_ctl_seek(host->ctl(), slow, 0));

    m_is_held = false;
    until_found(slow);
    EXPECT_EQ(2u, host->sent().size());
    EXPECT_EQ(0u, host->ctl()->queue.len);
    EXPECT_EQ(4u, fake_lane::num_ahs);
    host->drop(known);
    host->drop(slow);
}

/* A failure is remembered, for longer after each one, and forgotten with the address */
UCS_TEST_F(test_varuna_seek, port_that_does_not_answer) {
    const fake_peer was     = {2, 1, 0};
    const fake_peer moved   = {2, 2, 0};
    uct_varuna_peer_t *peer = host->know(was);
    uct_varuna_ctl_hdr_t hdr;
    unsigned map = 0;

    m_status = UCS_ERR_UNREACHABLE;
    EXPECT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    until_found(peer);
    EXPECT_EQ(2u, fake_lane::num_ahs);
    EXPECT_EQ(0u, host->ctl()->queue.len);
    EXPECT_EQ(1u, peer->num_lost[0]) << "as after a message that was lost";
    for (unsigned seconds = 1; seconds <= 4; seconds *= 2) {
        unsigned tries = fake_lane::num_ahs;

        EXPECT_EQ(UCS_ERR_UNREACHABLE, send(peer, 0, UCT_VARUNA_CTL_CLOSE));
        host->advance(seconds - 0.1);
        EXPECT_EQ(UCS_ERR_UNREACHABLE, send(peer, 0, UCT_VARUNA_CTL_CLOSE));
        EXPECT_EQ(tries, fake_lane::num_ahs);
        host->advance(0.2);
        EXPECT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
        until_found(peer);
        EXPECT_EQ(tries + 2, fake_lane::num_ahs);
    }

    /* It has another address, where it answers */
    std::string addr = host->address(moved);

    m_status          = UCS_OK;
    hdr               = host->header(moved, UCT_VARUNA_CTL_LINKS_REP, 0, 0);
    peer->no_dc_ep[0] = peer->no_ctl_ep[0];
    ASSERT_EQ(peer, uct_varuna_peer_learn_moves(host->ctl(), &hdr, addr.data(), addr.size(), 1,
                                                &map));
    EXPECT_EQ(3u, map);
    EXPECT_TRUE(uct_varuna_backoff_is_due(&peer->no_dc_ep[0], host->now()));
    EXPECT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    until_found(peer);
    EXPECT_EQ(1u, host->sent().size());
    uct_varuna_peer_put(host->ctl(), peer);
    host->drop(peer);
}

/* It moves while it is sought: what was found is the old address */
UCS_TEST_F(test_varuna_seek, port_that_moves_meanwhile) {
    const fake_peer moved   = {2, 2, 0};
    uct_varuna_peer_t *peer = host->know({2, 1, 0});
    std::string addr        = host->address(moved);
    uct_varuna_ctl_hdr_t hdr;
    unsigned map;

    m_is_held = true;
    EXPECT_UCS_OK(send(peer, 0, UCT_VARUNA_CTL_CLOSE));
    hdr = host->header(moved, UCT_VARUNA_CTL_LINKS_REP, 0, 0);
    ASSERT_EQ(peer, uct_varuna_peer_learn_moves(host->ctl(), &hdr, addr.data(), addr.size(), 1,
                                                &map));
    m_is_held = false;
    until([&]() { return host->ctl()->queue.len == 0; });
    EXPECT_EQ(1u, host->sent().size());
    until_found(peer);
    EXPECT_LE(3u, fake_lane::num_ahs);
    uct_varuna_peer_put(host->ctl(), peer);
    host->drop(peer);
}

/* A peer that is gone when it is found */
UCS_TEST_F(test_varuna_seek, peer_that_is_gone) {
    uct_varuna_peer_t *peer = host->know({2, 1, 0});

    m_is_held = true;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, uct_varuna_ctl_seek(host->ctl(), peer, 0));
    host->drop(peer);
    m_is_held = false;
    until([]() { return fake_lane::num_ahs == 2; });
}

/* A stranger gets its answer when it has repeated its message */
UCS_TEST_F(test_varuna_seek, stranger) {
    uct_varuna_ctl_hdr_t hdr        = host->header(guest, UCT_VARUNA_CTL_FENCE_REQ, 7, 3);
    uct_varuna_ctl_fence_req_t body = {3, 0, 0};

    hdr.dest = 0xdead;
    host->receive(guest, 1, hdr, body);
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_EQ(1u, host->ctl()->stats.ignored);
    until([this]() { return !host->ctl()->links[1].seek.is_on; });
    host->receive(guest, 1, hdr, body);
    EXPECT_EQ(1u, host->sent().size());
    EXPECT_EQ(1u, fake_lane::num_ahs);
}
