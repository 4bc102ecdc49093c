/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ports that get another address: ours, and those of peers.
 */
#include "fake_host.h"
#include "log_lines.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
}

#include <cstring>

class test_varuna_moves : public fake_host_test {
protected:
    virtual void init()
    {
        ucs::test::init();
        fake_lane::addr_state = UCT_VARUNA_ADDR_SAME;
        host.reset(new fake_host(2));
        host->iface()->config.heartbeat_interval = 0;
        host->iface()->config.ctl_timeout        = ucs_time_from_msec(50);
        host->start_heartbeat();
        uct_varuna_moves_init(host->ctl());
    }

    virtual void cleanup()
    {
        fake_lane::addr_state = UCT_VARUNA_ADDR_SAME;
        fake_host_test::cleanup();
    }

    uct_varuna_peer_t *open_guest()
    {
        std::string addr = host->address(guest);
        uct_varuna_parsed_addr_t parsed;
        uct_varuna_peer_t *self = NULL;
        const char *reason;

        EXPECT_EQ(UCS_OK, uct_varuna_parse_addr(NULL, addr.data(), addr.size(), &parsed,
                                                &reason));
        EXPECT_EQ(UCS_OK, uct_varuna_peer_open(host->ctl(), &parsed, guest.secret, &self));
        return self;
    }

    static std::string device(const uct_varuna_peer_t *peer, unsigned link)
    {
        std::string any = fake_lane::device_addr(1);

        return std::string((const char*)peer->links[link].device_addr, any.size());
    }

    static std::string device(const fake_peer &peer, unsigned link)
    {
        return fake_lane::device_addr(fake_lane::lid(peer.host, link));
    }

    void ports(const fake_peer &peer, uint32_t number, uint16_t moves)
    {
        uct_varuna_ctl_ports_t body = {number, 0, 0, moves};

        host->receive(peer, 0, host->header(peer, UCT_VARUNA_CTL_PORTS, 0, 0), body);
    }

    unsigned num_sent(unsigned type)
    {
        unsigned count = 0;

        for (const fake_host::message &msg : host->sent()) {
            count += (msg.hdr.type == type);
        }
        return count;
    }

    void learn(const fake_peer &peer, uint16_t moves)
    {
        std::string addr            = host->address(peer);
        uct_varuna_ctl_links_t body = {(uint16_t)addr.size(), moves, 0};

        host->receive(peer, 0, host->header(peer, UCT_VARUNA_CTL_LINKS_REP, 0, 0),
                      std::string((char*)&body, sizeof(body)) + addr);
        host->dispatch();
    }

    void tick(double seconds)
    {
        host->advance(seconds);
        uct_varuna_ctl_lock(host->ctl());
        uct_varuna_moves_tick(host->ctl(), uct_varuna_ctl_now(host->ctl()));
        uct_varuna_ctl_unlock(host->ctl());
    }

    const fake_peer            server = {0x5e, 1, 0};     /* We send to it */
    const fake_peer            moved  = {0x5e, 7, 0};     /* The same, elsewhere */
    const fake_peer            guest  = {0x6e, 2, 0x666}; /* It sends to us */
};


/* --- Peers --- */

/* A peer's NIC was opened again: the pair of links stays, with the new generation. A message from
 * before that is late */
UCS_TEST_F(test_varuna_moves, generation_of_a_nic_that_was_reset) {
    std::string addr = host->address(guest);
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_peer_t *peer = open_guest();
    uct_varuna_peer_t *self;
    const char *reason;

    ASSERT_UCS_OK(uct_varuna_parse_addr(NULL, addr.data(), addr.size(), &parsed, &reason));
    for (unsigned generation : {5, 1, 6}) {
        parsed.links[1].generation = generation;
        ASSERT_UCS_OK(uct_varuna_peer_open(host->ctl(), &parsed, guest.secret, &self));
        ASSERT_EQ(peer, self);
        EXPECT_EQ((generation == 1) ? 5u : generation, peer->links[1].generation);
        EXPECT_EQ(1u, peer->links[1].nic);
        EXPECT_EQ(0u, peer->links[0].generation);
        EXPECT_EQ(0x3u, peer->link_map) << "it is in no other pair";
        uct_varuna_peer_put(host->ctl(), self);
    }
    uct_varuna_peer_put(host->ctl(), peer);
}

/* While a NIC of ours is away, a peer whose address has other news is heard, and one that comes
 * then is asked for its address when ours is back */
UCS_TEST_F(test_varuna_moves, link_that_is_closed) {
    uct_varuna_peer_t *other = open_guest();
    std::string addr         = host->address(guest);
    uct_varuna_parsed_addr_t parsed;
    uct_varuna_peer_t *peer, *self;
    const char *reason;

    host->iface()->links[1].is_closed = 1;
    peer                              = host->know(server);
    EXPECT_EQ(0x1u, peer->link_map);
    ASSERT_UCS_OK(uct_varuna_parse_addr(NULL, addr.data(), addr.size(), &parsed, &reason));
    parsed.links[1].generation = 1;
    ASSERT_UCS_OK(uct_varuna_peer_open(host->ctl(), &parsed, guest.secret, &self));
    EXPECT_EQ(1u, other->links[1].generation);
    EXPECT_EQ(0x3u, other->link_map);
    uct_varuna_peer_put(host->ctl(), self);
    host->sent();

    host->iface()->links[1].is_closed = 0;
    uct_varuna_ctl_lock(host->ctl());
    uct_varuna_peers_join(host->ctl(), 1);
    uct_varuna_ctl_unlock(host->ctl());
    std::vector<fake_host::message> sent = host->sent();
    ASSERT_EQ(1u, sent.size());
    EXPECT_EQ(UCT_VARUNA_CTL_LINKS_REQ, sent[0].hdr.type);
    EXPECT_EQ(server.uuid, sent[0].hdr.dest);
    uct_varuna_peer_put(host->ctl(), peer);
    uct_varuna_peer_put(host->ctl(), other);
}

UCS_TEST_F(test_varuna_moves, known_peer_is_asked_and_answers) {
    uct_varuna_peer_t *peer = host->know(server);

    ports(server, 1, 0);
    EXPECT_EQ(0u, num_sent(UCT_VARUNA_CTL_LINKS_REQ)) << "nothing has moved";
    ports(server, 2, 1);
    EXPECT_EQ(1u, num_sent(UCT_VARUNA_CTL_LINKS_REQ));
    ports(server, 2, 1);
    EXPECT_EQ(0u, num_sent(UCT_VARUNA_CTL_LINKS_REQ)) << "it was asked just now";
    ports(server, 3, 2);
    EXPECT_EQ(1u, num_sent(UCT_VARUNA_CTL_LINKS_REQ)) << "that is more recent";
    host->sleep(2);
    ports(server, 3, 2);
    EXPECT_EQ(1u, num_sent(UCT_VARUNA_CTL_LINKS_REQ)) << "the answer was lost";

    EXPECT_EQ(device(server, 1), device(peer, 1));
    learn(moved, 2);
    EXPECT_EQ(device(moved, 0), device(peer, 0));
    EXPECT_EQ(device(moved, 1), device(peer, 1));
    EXPECT_EQ(2u, peer->moves.known);
    host->sleep(2);
    ports(server, 4, 2);
    EXPECT_EQ(0u, num_sent(UCT_VARUNA_CTL_LINKS_REQ)) << "that is known";
    host->drop(peer);
}

/* What was opened to the old address leads nowhere; but not all paths are condemned */
UCS_TEST_F(test_varuna_moves, paths_to_old_addresses_are_left) {
    uct_varuna_peer_t *peer = host->know(server);

    learn(server, 1);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, peer->paths[0].damp.state) << "nothing has moved";
    learn(moved, 2);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, peer->paths[0].damp.state);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, peer->paths[1].damp.state);
    host->drop(peer);
}

/* The network may deliver an old answer after a new one */
UCS_TEST_F(test_varuna_moves, answer_that_was_overtaken) {
    uct_varuna_peer_t *peer = host->know(server);

    learn(moved, 2);
    learn(server, 1);
    EXPECT_EQ(device(moved, 0), device(peer, 0));
    EXPECT_EQ(2u, peer->moves.known);
    learn(server, UINT16_MAX);
    EXPECT_EQ(device(moved, 0), device(peer, 0)) << "that is before 2";
    learn(moved, 2);
    EXPECT_EQ(device(moved, 0), device(peer, 0));
    learn(server, 3);
    EXPECT_EQ(device(server, 0), device(peer, 0)) << "it came back";
    host->drop(peer);
}

UCS_TEST_F(test_varuna_moves, address_of_another_peer) {
    uct_varuna_peer_t *peer     = host->know(server);
    fake_peer other             = {0x77, 7, 0};
    std::string addr            = host->address(other);
    uct_varuna_ctl_links_t body = {(uint16_t)addr.size(), 1, 0};
    scoped_log_handler slh(hide_warns_logger);

    host->receive(server, 0, host->header(server, UCT_VARUNA_CTL_LINKS_REP, 0, 0),
                  std::string((char*)&body, sizeof(body)) + addr);
    host->dispatch();
    EXPECT_EQ(device(server, 0), device(peer, 0));
    EXPECT_EQ(0u, peer->moves.known);
    host->drop(peer);
}

/* A guest's requests say where it is; its control endpoint was to the old address */
UCS_TEST_F(test_varuna_moves, guest_is_answered_where_it_is) {
    uct_varuna_peer_t *peer = open_guest();
    fake_peer elsewhere     = {guest.uuid, 9, guest.secret};

    host->receive(elsewhere, 1, host->header(elsewhere, UCT_VARUNA_CTL_PING, 1, 1));
    EXPECT_EQ(device(guest, 0), device(peer, 0));
    EXPECT_EQ(device(elsewhere, 1), device(peer, 1));
    EXPECT_EQ(1u, num_sent(UCT_VARUNA_CTL_PONG));
    host->drop(peer);
}

/* --- Our ports --- */

/* Its requests may not reach us: it is told until they show that it knows */
UCS_TEST_F(test_varuna_moves, guest_is_told_until_it_knows) {
    uct_varuna_peer_t *known = host->know(server);
    uct_varuna_peer_t *peer  = open_guest();
    uct_varuna_ctl_hdr_t ping;
    unsigned i, told = 0;

    tick(1);
    EXPECT_EQ(0u, num_sent(UCT_VARUNA_CTL_LINKS_REP));
    uct_varuna_ctl_lock(host->ctl());
    uct_varuna_moves_announce(host->ctl());
    uct_varuna_ctl_unlock(host->ctl());
    EXPECT_EQ(1u, num_sent(UCT_VARUNA_CTL_LINKS_REP)) << "only guests send to us";
    tick(0.01);
    EXPECT_EQ(0u, num_sent(UCT_VARUNA_CTL_LINKS_REP)) << "it may answer yet";
    tick(0.05);
    EXPECT_EQ(1u, num_sent(UCT_VARUNA_CTL_LINKS_REP));

    ping       = host->header(guest, UCT_VARUNA_CTL_PING, 0, 1);
    ping.moves = 1;
    host->receive(guest, 0, ping);
    host->sent();
    tick(10);
    EXPECT_EQ(0u, num_sent(UCT_VARUNA_CTL_LINKS_REP)) << "it knows";

    uct_varuna_ctl_lock(host->ctl());
    uct_varuna_moves_announce(host->ctl());
    uct_varuna_ctl_unlock(host->ctl());
    for (i = 0; i < 100; ++i) {
        tick(60);
        told += num_sent(UCT_VARUNA_CTL_LINKS_REP);
    }
    EXPECT_EQ(10u, told) << "not for ever: it may be dead";
    host->drop(peer);
    host->drop(known);
}

/* To peers the port is down until its new address is used */
UCS_TEST_F(test_varuna_moves, port_comes_back_elsewhere) {
    uct_varuna_ctl_t *ctl = host->ctl();

    uct_varuna_ctl_lock(ctl);
    uct_varuna_ports_event(ctl, 1, UCT_VARUNA_PORT_ADDRESS);
    EXPECT_EQ(0u, ctl->ports.down) << "it has what we use";

    uct_varuna_ports_event(ctl, 1, UCT_VARUNA_PORT_DOWN);
    fake_lane::addr_state = UCT_VARUNA_ADDR_UNKNOWN;
    uct_varuna_ports_event(ctl, 1, UCT_VARUNA_PORT_ADDRESS);
    EXPECT_EQ(0u, ctl->moves.links) << "it is not active";

    fake_lane::addr_state = UCT_VARUNA_ADDR_MOVED;
    uct_varuna_ports_event(ctl, 1, UCT_VARUNA_PORT_UP);
    EXPECT_EQ(2u, ctl->ports.down);
    EXPECT_EQ(2u, ctl->moves.links);
    EXPECT_TRUE(ctl->events.pending);
    uct_varuna_ctl_unlock(ctl);

    /* It goes down again before the main thread comes */
    fake_lane::addr_state = UCT_VARUNA_ADDR_UNKNOWN;
    uct_varuna_moves_progress(ctl);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, host->iface()->link_table.links[1].damp.state);
    EXPECT_EQ(2u, ctl->moves.links);

    /* It has the old address again */
    fake_lane::addr_state = UCT_VARUNA_ADDR_SAME;
    uct_varuna_moves_progress(ctl);
    host->dispatch();
    EXPECT_EQ(0u, ctl->moves.links);
    EXPECT_EQ(0u, ctl->ports.down);
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, host->iface()->link_table.links[1].damp.state);
}

/* A subnet manager gives an active port another LID: no event says that it was down */
UCS_TEST_F(test_varuna_moves, active_port_moves) {
    uct_varuna_ctl_t *ctl = host->ctl();

    fake_lane::addr_state = UCT_VARUNA_ADDR_MOVED;
    uct_varuna_ctl_lock(ctl);
    uct_varuna_ports_event(ctl, 0, UCT_VARUNA_PORT_ADDRESS);
    uct_varuna_ctl_unlock(ctl);
    EXPECT_EQ(1u, ctl->ports.down);
    fake_lane::addr_state = UCT_VARUNA_ADDR_GONE;
    uct_varuna_moves_progress(ctl);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, host->iface()->link_table.links[0].damp.state);
    EXPECT_EQ(1u, ctl->moves.links) << "it may come back";
}

/* A port has moved, and the GID that UCX shall use is not there */
class test_varuna_moves_fail : public test_varuna_moves {
protected:
    virtual void init()
    {
        test_varuna_moves::init();
        lines.reset(new log_lines());
        fake_lane::gid_is_missing = true;
        fake_lane::addr_state     = UCT_VARUNA_ADDR_MOVED;
        event();
    }

    virtual void cleanup()
    {
        fake_lane::gid_is_missing = false;
        lines.reset();
        test_varuna_moves::cleanup();
    }

    void event()
    {
        uct_varuna_ctl_lock(host->ctl());
        uct_varuna_ports_event(host->ctl(), 1, UCT_VARUNA_PORT_ADDRESS);
        uct_varuna_ctl_unlock(host->ctl());
    }

    /* As often as an application does that polls */
    void poll(double seconds)
    {
        for (double time = 0; time < seconds; time += 0.1) {
            host->advance(0.1);
            uct_varuna_moves_progress(host->ctl());
        }
    }

    std::unique_ptr<log_lines> lines;
};

UCS_TEST_F(test_varuna_moves_fail, is_logged_once) {
    ucs_time_t *retry_at = &host->ctl()->moves.backoff[1].due;
    ucs_time_t distance  = 0;
    unsigned num_tries   = 0;
    ucs_time_t last;

    for (double time = 0; time < 600; time += 0.5) {
        last = *retry_at;
        poll(0.1);
        host->advance(0.4);
        if (*retry_at != last) {
            ++num_tries;
            EXPECT_GE(*retry_at - host->now(), distance);
            distance = ucs_min(*retry_at - host->now(), ucs_time_from_sec(15));
        }
    }

    EXPECT_EQ(1u, lines->count()) << lines->last();
    EXPECT_EQ(1u, lines->count("fake_1:1 has another address, which cannot be used yet: entry "
                              "3 of its table of GIDs is empty"));
    EXPECT_GE(num_tries, 35u) << "it is tried again all the time";
    EXPECT_LE(num_tries, 45u) << "the distance doubles up to 16 s";
}

UCS_TEST_F(test_varuna_moves_fail, each_reason_is_logged) {
    poll(10);
    EXPECT_EQ(1u, lines->count());

    /* There is a GID, and nothing is opened once more on a NIC that is dead */
    fake_lane::gid_is_missing           = false;
    host->iface()->md->nics[1].is_dead = 1;
    poll(60);
    EXPECT_EQ(2u, lines->count());
    EXPECT_EQ(1u, lines->count(ucs_status_string(UCS_ERR_NO_DEVICE))) << lines->last();
    host->iface()->md->nics[1].is_dead = 0;

    fake_lane::addr_state = UCT_VARUNA_ADDR_SAME;
    poll(60);
    EXPECT_EQ(3u, lines->count());
    EXPECT_EQ(1u, lines->count("fake_1:1 can be used again"));
    EXPECT_EQ(0u, host->ctl()->moves.links);
}

/* What was in the way may be over: an event is not waited for */
UCS_TEST_F(test_varuna_moves_fail, is_tried_at_an_event) {
    poll(60);
    EXPECT_GT(host->ctl()->moves.backoff[1].due, host->now() + ucs_time_from_sec(0.2));
    event();
    EXPECT_EQ(0u, host->ctl()->moves.backoff[1].due);
    poll(0.1);
    EXPECT_GT(host->ctl()->moves.backoff[1].due, 0u);
    EXPECT_EQ(1u, lines->count());
}
