/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The heartbeat: which peers it pings, and its conclusions from answers and missing
 * answers. The test plays the peers; each answers on selected links.
 */
#include "fake_host.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_heartbeat.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/ctl/varuna_witness.h>
}

#include <algorithm>
#include <cstring>
#include <random>

class test_varuna_heartbeat : public fake_host_test {
protected:
    static constexpr unsigned NUM_LINKS = 2;
    static constexpr unsigned MISSES    = 3;
    static constexpr double INTERVAL    = 0.01;

    /* A process and its answers */
    struct process {
        fake_peer             name;
        uct_varuna_peer_t     *peer;
        unsigned              used;     /* Links with traffic */
        unsigned              answers;  /* Links on which it answers */
        uct_varuna_ctl_pong_t pong;
    };

    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(NUM_LINKS));
        host->iface()->config.heartbeat_interval = ucs_time_from_sec(INTERVAL);
        host->iface()->config.heartbeat_misses   = MISSES;
        host->start_heartbeat();
    }

    virtual void cleanup()
    {
        for (process &proc : m_processes) {
            host->drop(proc.peer);
        }
        fake_host_test::cleanup();
    }

    /* Its endpoints use link 0 unless the test changes it. A reference is valid until
     * the next one is added. */
    process &add(unsigned host_number, unsigned used = 1, unsigned answers = 3)
    {
        fake_peer name = {0x100 + m_processes.size(), host_number, 0};

        m_processes.push_back({name, host->know(name), used, answers, {}});
        return m_processes.back();
    }

    process &proc(unsigned index)
    {
        return m_processes[index];
    }

    void answer(const process &proc, unsigned link, uint32_t number)
    {
        host->receive(proc.name, link,
                      host->header(proc.name, UCT_VARUNA_CTL_PONG, link, number),
                      proc.pong);
    }

    /* One interval. @return The pings that were sent */
    std::vector<fake_host::message> tick()
    {
        std::vector<fake_host::message> pings;

        for (process &proc : m_processes) {
            for (unsigned link = 0; link < NUM_LINKS; ++link) {
                if (proc.used & UCS_BIT(link)) {
                    uct_varuna_heartbeat_use(proc.peer, link, host->now());
                }
            }
        }

        host->advance(INTERVAL);
        for (const fake_host::message &msg : host->sent()) {
            if (msg.hdr.type != UCT_VARUNA_CTL_PING) {
                continue;
            }
            pings.push_back(msg);
            for (const process &proc : m_processes) {
                if ((proc.name.uuid == msg.hdr.dest) &&
                    (proc.answers & UCS_BIT(msg.link))) {
                    answer(proc, msg.link, msg.hdr.epoch);
                }
            }
        }
        host->dispatch();
        return pings;
    }

    void ticks(unsigned num)
    {
        while (num-- > 0) {
            tick();
        }
    }

    uct_varuna_damp_state_t path(unsigned index, unsigned link)
    {
        return (uct_varuna_damp_state_t)proc(index).peer->paths[link].damp.state;
    }

    uct_varuna_damp_state_t link_state(unsigned link)
    {
        return (uct_varuna_damp_state_t)host->iface()->link_table.links[link].damp.state;
    }

    /* What all others show, one after the other */
    uct_varuna_symptoms_t evidence(const process &judged, unsigned link)
    {
        ucs_time_t lately              = 2 * host->ctl()->hb.interval;
        ucs_time_t since               = judged.peer->hb.alive.paths[link].since;
        uct_varuna_symptoms_t evidence = {};

        evidence.inside = (judged.name.host == 0);
        for (const process &other : m_processes) {
            const uct_varuna_alive_t &alive     = other.peer->hb.alive;
            const uct_varuna_alive_path_t &path = alive.paths[link];
            bool is_neighbour = (other.name.host == judged.name.host);
            bool is_fresh     = (path.proved_at != 0) && !path.condemned &&
                                ((host->now() - path.proved_at) <= lately);

            if ((&other == &judged) || (!is_neighbour && (other.name.host == 0))) {
                continue;
            }

            if (is_fresh && (path.proved_at > since)) {
                (is_neighbour ? evidence.neighbours_answer : evidence.others_answer) = 1;
            } else if (!is_neighbour && !is_fresh) {
                evidence.others_silent |= uct_varuna_alive_is_silent(&alive, 3, link,
                                                                     MISSES - 1);
            }
        }
        return evidence;
    }

private:
    std::vector<process>       m_processes;
};


/* --- Which peers it pings --- */

UCS_TEST_F(test_varuna_heartbeat, idle_paths_are_not_asked) {
    add(1, 0);
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_EQ(0u, tick().size());
    }
}

UCS_TEST_F(test_varuna_heartbeat, path_in_use_is_asked_in_each_interval) {
    std::vector<fake_host::message> pings;

    add(1);
    tick();
    for (unsigned i = 0; i < 100; ++i) {
        pings = tick();
        ASSERT_EQ(1u, pings.size());
        EXPECT_EQ(0u, pings[0].link);
        EXPECT_EQ(0u, pings[0].hdr.vqp);
        EXPECT_EQ(proc(0).name.uuid, pings[0].hdr.dest);
    }

    /* For a second after the last traffic: the background scan may be slow */
    proc(0).used = 0;
    ticks(90);
    EXPECT_EQ(1u, tick().size());
    ticks(20);
    EXPECT_EQ(0u, tick().size());
}

/* While answers on a path are missing, the other paths are pinged as witnesses */
UCS_TEST_F(test_varuna_heartbeat, witnesses_are_called) {
    add(1, 1, 0);
    ticks(2);
    EXPECT_EQ(2u, tick().size());
}

/* ... and other peers on this link: a few of many, different ones each time */
UCS_TEST_F(test_varuna_heartbeat, other_peers_are_witnesses) {
    std::vector<uint64_t> asked;

    add(1, 1, 2);
    for (unsigned i = 2; i < 22; ++i) {
        add(i, 0);
    }
    ticks(2);
    for (unsigned i = 0; i < 40; ++i) {
        unsigned num = 0;
        for (const fake_host::message &msg : tick()) {
            if ((msg.hdr.dest != proc(0).name.uuid) && (msg.link == 0)) {
                asked.push_back(msg.hdr.dest);
                ++num;
            }
        }
        EXPECT_LE(num, 4u);
    }
    std::sort(asked.begin(), asked.end());
    EXPECT_GE(std::unique(asked.begin(), asked.end()) - asked.begin(), 15);
}


/* --- Its conclusions --- */

UCS_TEST_F(test_varuna_heartbeat, silent_path_beside_a_good_one_is_dead) {
    add(1, 1, 2);
    ticks(MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0)) << "one interval is too few";
    ticks(3);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 1));
    EXPECT_EQ(1u, proc(0).peer->paths[0].generation);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(0)) << "others may use it";
}

UCS_TEST_F(test_varuna_heartbeat, answered_path_is_alive) {
    add(1);
    ticks(100);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
    EXPECT_EQ(0u, proc(0).peer->hb.alive.paths[0].misses);
}

/* Fewer misses in a row than MISSES are forgotten with the next answer */
UCS_TEST_F(test_varuna_heartbeat, misses_count_in_a_row) {
    add(1, 1, 2);
    for (unsigned i = 0; i < 20; ++i) {
        proc(0).answers = 2;
        ticks(MISSES - 1);
        proc(0).answers = 3;
        ticks(1);
    }
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
}

/* The peer is dead, stopped, or has no CPU: no path is better than another */
UCS_TEST_F(test_varuna_heartbeat, silent_peer_condemns_nothing) {
    add(1, 3, 0);
    ticks(100);
    EXPECT_TRUE(proc(0).peer->hb.alive.silent);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 1));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(0));
    proc(0).answers = 3;
    ticks(3);
    EXPECT_FALSE(proc(0).peer->hb.alive.silent);
}

/* After a time without a CPU, the silence of others proves nothing */
UCS_TEST_F(test_varuna_heartbeat, we_slept) {
    add(1, 1, 2);
    ticks(MISSES);
    host->sleep(1);
    ticks(1);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
    ticks(MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
}

/* Pings that wait for a buffer are not missed, ... */
UCS_TEST_F(test_varuna_heartbeat, no_resources_for_pings) {
    add(1, 1, 2);
    for (unsigned i = 0; i < 20; ++i) {
        host->ctl_lane(0).post_status = UCS_ERR_NO_RESOURCE;
        tick();
        host->ctl_lane(0).post_status = UCS_OK;
        EXPECT_TRUE(uct_varuna_heartbeat_probe(host->ctl(), proc(0).peer, 0));
        uct_varuna_alive_unask(&proc(0).peer->hb.alive, 0); /* As if it had an answer */
    }
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
}

/* ... but a NIC that returns none for an interval hangs, with any number of peers. Messages
 * for it are refused then, so that their senders take another link, and none waits */
UCS_TEST_F(test_varuna_heartbeat, our_nic_returns_no_buffer) {
    uct_varuna_ctl_hdr_t whose = {};

    add(1, 1, 2);
    add(2, 1, 2);
    host->ctl_lane(0).post_status = UCS_ERR_NO_RESOURCE;
    EXPECT_UCS_OK(uct_varuna_ctl_send(host->ctl(), proc(0).peer, 0, UCT_VARUNA_CTL_CLOSE,
                                      &whose, NULL, 0));
    EXPECT_EQ(1u, host->ctl()->queue.len);
    ticks(2 * MISSES + 2);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link_state(0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(1));
    for (unsigned i = 0; i < 2; ++i) { /* The first one after a pause waits */
        (void)uct_varuna_ctl_send(host->ctl(), proc(0).peer, 0, UCT_VARUNA_CTL_CLOSE,
                                  &whose, NULL, 0);
        ticks(1);
    }
    EXPECT_EQ(0u, host->ctl()->queue.len);
    EXPECT_NE(0u, proc(0).peer->num_lost[0]) << "nobody waits for an answer";

    host->ctl_lane(0).post_status = UCS_OK;
    EXPECT_UCS_OK(uct_varuna_ctl_send(host->ctl(), proc(0).peer, 0, UCT_VARUNA_CTL_CLOSE,
                                      &whose, NULL, 0));
}

/* A path that was not used for long starts without misses, and can fail again */
/* Endpoints that wait for the path probe it shortly before each tick */
UCS_TEST_F(test_varuna_heartbeat, path_that_is_probed_all_the_time) {
    add(1, 3, 2);
    host->advance(0.8 * INTERVAL);
    for (unsigned i = 0; i <= (2 * MISSES); ++i) {
        EXPECT_TRUE(uct_varuna_heartbeat_probe(host->ctl(), proc(0).peer, 0));
        tick();
    }
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 1));
}

UCS_TEST_F(test_varuna_heartbeat, path_that_is_used_again) {
    add(1, 1, 2);
    ticks(2 * MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    proc(0).used = 0;
    ticks(150);
    proc(0).peer->paths[0].damp.state = UCT_VARUNA_DAMP_UP;
    proc(0).used                      = 1;
    ticks(MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
    ticks(3);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
}

/* The same after its hold-down, though it was used all the time */
UCS_TEST_F(test_varuna_heartbeat, path_that_was_proved_to_be_good) {
    add(1, 1, 2);
    ticks(2 * MISSES);
    proc(0).peer->paths[0].damp.state = UCT_VARUNA_DAMP_UP;
    ticks(100);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0)) << "it was reported";
    uct_varuna_heartbeat_renew(proc(0).peer, 0);
    ticks(2 * MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
}


/* --- Links --- */

UCS_TEST_F(test_varuna_heartbeat, link_on_which_several_ports_are_silent) {
    add(1, 1, 2);
    add(2, 1, 2);
    ticks(2 * MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link_state(0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(1));

    /* One answer is enough to use it again, after a hold-down */
    proc(0).answers = 3;
    ticks(3);
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link_state(0));
}

/* A peer answers on it, so the paths to the others have failed */
UCS_TEST_F(test_varuna_heartbeat, link_on_which_somebody_answers) {
    add(1, 1, 2);
    add(2, 1, 2);
    add(3, 1, 3);
    ticks(100);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(0));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(1, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(2, 0));
}

/* Processes on one port, which may have failed itself */
UCS_TEST_F(test_varuna_heartbeat, link_on_which_one_port_is_silent) {
    add(1, 1, 2);
    add(1, 1, 2);
    ticks(100);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(0));
}

/* Loopback in our NIC proves nothing about the cable: neither an answer... */
UCS_TEST_F(test_varuna_heartbeat, own_loopback_is_no_witness) {
    add(1, 1, 2);
    add(2, 1, 2);
    add(0, 1, 3);
    ticks(2 * MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link_state(0));
}

/* ... nor silence */
UCS_TEST_F(test_varuna_heartbeat, own_loopback_is_no_suspect) {
    add(1, 1, 2);
    add(0, 1, 2);
    ticks(100);
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, link_state(0));
}


/* --- Dead processes --- */

UCS_TEST_F(test_varuna_heartbeat, process_is_gone_beside_its_neighbour) {
    ucs_time_t timeout = ucs_time_from_sec(0.5);

    add(1, 1, 0);
    add(1, 0, 3);
    ticks(30);
    EXPECT_FALSE(uct_varuna_heartbeat_is_gone(proc(0).peer, timeout));
    ticks(50);
    EXPECT_TRUE(uct_varuna_heartbeat_is_gone(proc(0).peer, timeout));
    EXPECT_FALSE(uct_varuna_heartbeat_is_gone(proc(0).peer, 0)) << "0 is for ever";
    EXPECT_FALSE(uct_varuna_heartbeat_is_gone(proc(1).peer, timeout));
    proc(0).answers = 1;
    ticks(3);
    EXPECT_FALSE(uct_varuna_heartbeat_is_gone(proc(0).peer, timeout));
}

/* An old answer proves nothing */
UCS_TEST_F(test_varuna_heartbeat, process_whose_neighbour_has_answered_before) {
    add(1, 1, 0);
    add(1, 1, 3);
    ticks(10);
    proc(1).answers = 0;
    ticks(100);
    EXPECT_FALSE(uct_varuna_heartbeat_is_gone(proc(0).peer, ucs_time_from_sec(0.5)));
}

/* Alone on its host, it may be cut off instead */
UCS_TEST_F(test_varuna_heartbeat, process_without_neighbours) {
    add(1, 1, 0);
    add(2, 1, 3);
    ticks(100);
    EXPECT_FALSE(uct_varuna_heartbeat_is_gone(proc(0).peer, ucs_time_from_sec(0.5)));
}


/* --- PING, PONG and PORTS --- */

UCS_TEST_F(test_varuna_heartbeat, ping_is_answered_on_its_link) {
    fake_host::message pong;

    add(1);
    host->iface()->app_beat = 5;
    host->ctl()->ports.down = 1;
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PING, 1, 99));
    pong = host->last_sent(UCT_VARUNA_CTL_PONG);
    EXPECT_EQ(1u, pong.link);
    EXPECT_EQ(1u, pong.hdr.vqp);
    EXPECT_EQ(99u, pong.hdr.epoch);
    EXPECT_EQ(5u, pong.as<uct_varuna_ctl_pong_t>().beat);
    EXPECT_EQ(1u, pong.as<uct_varuna_ctl_pong_t>().ports.down);
}

UCS_TEST_F(test_varuna_heartbeat, ping_of_somebody_unknown) {
    host->receive({7, 7, 7}, 0, host->header({7, 7, 7}, UCT_VARUNA_CTL_PING, 0, 1));
    EXPECT_EQ(0u, host->sent().size());
}

/* The answer could not come back to where it was asked */
UCS_TEST_F(test_varuna_heartbeat, ping_on_a_link_that_does_not_reach_the_peer) {
    add(1);
    proc(0).peer->link_map = 1;
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PING, 1, 99));
    EXPECT_EQ(0u, host->sent().size());
}

/* An answer without a ping proves nothing */
UCS_TEST_F(test_varuna_heartbeat, pong_that_nobody_asked_for) {
    fake_peer liar;

    add(1);
    tick();
    tick();
    host->advance(1);
    host->sent();

    ucs_time_t answered_at = uct_varuna_heartbeat_answered_at(proc(0).peer, 0);
    EXPECT_NE(0u, answered_at);
    answer(proc(0), 0, 1000000);
    host->receive(proc(0).name, 0, /* Not a local link */
                  host->header(proc(0).name, UCT_VARUNA_CTL_PONG, 100000000, 1),
                  proc(0).pong);
    liar        = proc(0).name;
    liar.secret = 0xbad;
    host->receive(liar, 0, host->header(liar, UCT_VARUNA_CTL_PONG, 0, 1),
                  proc(0).pong);
    EXPECT_EQ(answered_at, uct_varuna_heartbeat_answered_at(proc(0).peer, 0));
    EXPECT_EQ(1u, host->ctl()->stats.mismatched);
}

UCS_TEST_F(test_varuna_heartbeat, pong_tells_of_the_application) {
    add(1).pong.beat = 12;
    ticks(2);
    EXPECT_EQ(12u, uct_varuna_heartbeat_app_beat(proc(0).peer));
}

/* The peer reports that its port is down: no detection is needed */
UCS_TEST_F(test_varuna_heartbeat, peer_tells_of_its_ports) {
    add(1);
    proc(0).pong.ports = {1, 1, 0, 0};
    proc(0).answers    = 2;
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PORTS, 0, 0),
                  proc(0).pong.ports);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));

    /* What was overtaken is old */
    uct_varuna_ctl_ports_t old = {0, 0, 0, 0};
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PORTS, 0, 0), old);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));

    uct_varuna_ctl_ports_t up = {2, 0, 0, 0};
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PORTS, 0, 0), up);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, path(0, 0));
}

/* The link of this message works */
UCS_TEST_F(test_varuna_heartbeat, port_that_is_down_cannot_say_so) {
    uct_varuna_ctl_ports_t ports = {1, 3, 0, 0};

    add(1);
    host->receive(proc(0).name, 0,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PORTS, 0, 0), ports);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 1));
}

/* PORTS is sent once, so PONG repeats it */
UCS_TEST_F(test_varuna_heartbeat, pong_tells_of_the_ports) {
    add(1, 2, 2).pong.ports = {1, 1, 0, 0};
    ticks(2);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
}

/* On the only path, waiting is best */
UCS_TEST_F(test_varuna_heartbeat, last_path_whose_far_port_is_down) {
    uct_varuna_ctl_ports_t ports = {1, 1, 0, 0};

    add(1);
    proc(0).peer->paths[1].damp.state = UCT_VARUNA_DAMP_DOWN;
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PORTS, 0, 0), ports);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 0));
}

/* A port of the peer that is marked failed answers, but we do not return to it */
UCS_TEST_F(test_varuna_heartbeat, port_that_is_marked_failed) {
    uct_varuna_ctl_ports_t ports = {1, 1, 1, 0};

    add(1);
    host->receive(proc(0).name, 1,
                  host->header(proc(0).name, UCT_VARUNA_CTL_PORTS, 0, 0), ports);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    EXPECT_EQ(1u, proc(0).peer->retired);
}

/* Requesters are informed over another link, once */
UCS_TEST_F(test_varuna_heartbeat, own_port_event_is_announced) {
    fake_peer guest = {0x9, 1, 0x9999};
    std::string addr = host->address(guest);
    uct_varuna_parsed_addr_t parsed;
    std::vector<fake_host::message> messages;
    uct_varuna_peer_t *peer;
    const char *reason;

    add(2, 0);
    ASSERT_EQ(UCS_OK, uct_varuna_parse_addr(NULL, addr.data(), addr.size(), &parsed,
                                            &reason));
    ASSERT_EQ(UCS_OK, uct_varuna_peer_open(host->ctl(), &parsed, guest.secret, &peer));

    uct_varuna_ports_event(host->ctl(), 0, UCT_VARUNA_PORT_DOWN);
    messages = host->sent();
    ASSERT_EQ(1u, messages.size()) << "peers that are no guests do not send to us";
    EXPECT_EQ(UCT_VARUNA_CTL_PORTS, messages[0].hdr.type);
    EXPECT_EQ(1u, messages[0].link);
    EXPECT_EQ(guest.uuid, messages[0].hdr.dest);
    EXPECT_EQ(guest.secret, messages[0].hdr.secret);
    EXPECT_EQ(1u, messages[0].as<uct_varuna_ctl_ports_t>().down);

    uct_varuna_ports_announce(host->ctl());
    EXPECT_EQ(0u, host->sent().size()) << "it knows that";

    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, link_state(0));
    uct_varuna_ports_event(host->ctl(), 0, UCT_VARUNA_PORT_UP);
    EXPECT_EQ(0u, host->last_sent(UCT_VARUNA_CTL_PORTS)
                  .as<uct_varuna_ctl_ports_t>().down);
    host->dispatch();
    EXPECT_EQ(UCT_VARUNA_DAMP_HOLD, link_state(0));

    /* A link that is marked failed has a port that is up */
    uct_varuna_ports_retire(host->ctl(), 1, 1);
    messages = host->sent();
    ASSERT_EQ(1u, messages.size());
    EXPECT_EQ(1u, messages[0].link);
    EXPECT_EQ(1u, messages[0].as<uct_varuna_ctl_ports_t>().down);
    EXPECT_EQ(1u, messages[0].as<uct_varuna_ctl_ports_t>().retired);
    uct_varuna_ports_retire(host->ctl(), 1, 0);
    EXPECT_EQ(0u, host->last_sent(UCT_VARUNA_CTL_PORTS)
                  .as<uct_varuna_ctl_ports_t>().down);
    uct_varuna_ports_retire(host->ctl(), 1, 0);
    EXPECT_EQ(0u, host->sent().size()) << "nothing has changed";
    host->drop(peer);
}


/* --- Witnesses --- */

/* Peers are gone through once for all that are silent, with the same result */
UCS_TEST_F(test_varuna_heartbeat, evidence_of_all_peers) {
    static constexpr unsigned NUM_PEERS = 16;
    std::mt19937 rng(ucs::rand());

    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        add(i % 5);
    }
    host->advance(1);
    for (unsigned round = 0; round < 300; ++round) {
        unsigned sparse = 1 + (rng() % 8); /* The fewer show something */

        for (unsigned i = 0; i < NUM_PEERS; ++i) {
            for (unsigned link = 0; link < NUM_LINKS; ++link) {
                uct_varuna_alive_path_t &path = proc(i).peer->hb.alive.paths[link];
                ucs_time_t step               = host->ctl()->hb.interval / 2;

                path             = uct_varuna_alive_path_t();
                path.proved_at   = (rng() % sparse) ? 0 :
                                   host->now() - (step * (rng() % 8));
                path.answered_at = path.proved_at;
                path.since       = host->now() - (step * (rng() % 8)) - 1;
                path.misses      = (rng() % sparse) ? 0 : (rng() % (2 * MISSES));
                path.condemned   = (rng() % 4) == 0;
            }
        }

        uct_varuna_crowd_t crowd;
        uct_varuna_crowd_init(&crowd, host->ctl(), host->now());
        for (unsigned i = 0; i < NUM_PEERS; ++i) {
            uct_varuna_symptoms_t expected = evidence(proc(i), 0);
            uct_varuna_symptoms_t actual;

            uct_varuna_witness_gather(&crowd, proc(i).peer, 0, &actual);
            EXPECT_EQ(expected.inside, actual.inside);
            EXPECT_EQ(expected.neighbours_answer, actual.neighbours_answer);
            EXPECT_EQ(expected.others_answer, actual.others_answer);
            EXPECT_EQ(expected.others_silent, actual.others_silent);

            unsigned pos = 0, count = 0;
            while (uct_varuna_crowd_neighbour(&crowd, proc(i).peer, 0, &pos) != NULL) {
                ++count;
            }
            EXPECT_EQ((proc(i).name.host == 0) ? 3u : 2u, count);
        }
        EXPECT_EQ(1u, crowd.gathered) << "nobody has asked for the other link";
        uct_varuna_crowd_cleanup(&crowd);
    }
}


/* --- Many peers --- */

/* The defaults; the resources of a link come back when it is polled, once a millisecond,
 * and until nothing more comes */
class test_varuna_heartbeat_many : public test_varuna_heartbeat {
protected:
    static constexpr unsigned NUM_PEERS = 512;
    static constexpr int ROOM           = 4;
    static constexpr int MAX_BURST      = 64;

    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(NUM_LINKS));
        host->iface()->config.heartbeat_interval = ucs_time_from_sec(0.1);
        host->iface()->config.heartbeat_misses   = 5;
        host->start_heartbeat();
        m_poll_id = UCS_CALLBACKQ_ID_NULL;
        uct_worker_progress_register_safe(host->ctl()->worker, poll_cb, this, 0,
                                          &m_poll_id);
    }

    virtual void cleanup()
    {
        uct_worker_progress_unregister_safe(host->ctl()->worker, &m_poll_id);
        test_varuna_heartbeat::cleanup();
    }

    void set_room(int room)
    {
        m_room = room;
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            host->ctl_lane(link).room = room;
        }
    }

    /* @return Pings in that time */
    unsigned run(double seconds)
    {
        ucs_time_t end = host->now() + ucs_time_from_sec(seconds);

        m_num_pings = 0;
        while (host->now() < end) {
            for (unsigned i = 0; i < NUM_PEERS; ++i) {
                uct_varuna_heartbeat_use(proc(i).peer, 0, host->now());
            }
            host->advance(fake_host::MSEC);
            while (uct_varuna_ctl_progress(host->ctl()) > 0);
            host->dispatch();
        }
        return m_num_pings;
    }

    unsigned num_down()
    {
        unsigned count = 0;

        for (unsigned i = 0; i < NUM_PEERS; ++i) {
            count += (path(i, 0) == UCT_VARUNA_DAMP_DOWN);
        }
        return count;
    }

    unsigned m_max_sent = 0; /* On a link, in one call */

private:
    static unsigned poll_cb(void *arg)
    {
        return static_cast<test_varuna_heartbeat_many*>(arg)->poll();
    }

    unsigned poll()
    {
        std::vector<fake_host::message> sent = host->sent();
        unsigned num[NUM_LINKS]              = {};

        for (const fake_host::message &msg : sent) {
            const process &to = proc(msg.hdr.dest - 0x100);

            m_max_sent   = std::max(m_max_sent, ++num[msg.link]);
            m_num_pings += (msg.hdr.type == UCT_VARUNA_CTL_PING);
            if ((msg.hdr.type == UCT_VARUNA_CTL_PING) &&
                (to.answers & UCS_BIT(msg.link))) {
                answer(to, msg.link, msg.hdr.epoch);
            }
        }
        set_room(m_room);
        return sent.size();
    }

    uct_worker_cb_id_t m_poll_id;
    int                m_room      = ROOM;
    unsigned           m_num_pings = 0;
};

/* A tick asks all, although there are resources for a few at a time */
UCS_TEST_F(test_varuna_heartbeat_many, all_are_asked) {
    set_room(ROOM);
    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        add(i + 1);
    }
    run(0.1);
    EXPECT_NEAR(5 * NUM_PEERS, run(0.5), NUM_PEERS);
    EXPECT_EQ((unsigned)ROOM, m_max_sent);
}

UCS_TEST_F(test_varuna_heartbeat_many, all_dead_paths_are_found_in_time) {
    set_room(ROOM);
    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        add(i + 1);
    }
    run(0.35);
    EXPECT_EQ(0u, num_down());
    for (unsigned i = 0; i < NUM_PEERS; i += 2) {
        proc(i).answers = 2;
    }
    run(1.4);
    EXPECT_EQ(NUM_PEERS / 2, num_down());
    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        EXPECT_EQ((i % 2) ? UCT_VARUNA_DAMP_UP : UCT_VARUNA_DAMP_DOWN, path(i, 0));
    }
}

/* Resources for all: the lock is held for some of them only */
UCS_TEST_F(test_varuna_heartbeat_many, burst_is_limited) {
    set_room(-1);
    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        add(i + 1);
    }
    run(0.1);
    EXPECT_NEAR(5 * NUM_PEERS, run(0.5), NUM_PEERS);
    EXPECT_EQ((unsigned)MAX_BURST, m_max_sent);
}

/* Somebody's address may take a second to be resolved: nobody else waits for that, and each
 * is asked when it is known */
UCS_TEST_F(test_varuna_heartbeat_many, nobody_waits_for_those_that_are_sought) {
    static constexpr unsigned NUM_SOUGHT = 100;

    set_room(ROOM);
    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        add(i + 1);
        proc(i).peer->found = 1;
    }
    for (unsigned i = 0; i < NUM_SOUGHT; ++i) {
        proc(i).peer->found  = 0;
        proc(i).peer->sought = 1;
    }
    host->ctl()->links[0].seeks = 1;
    run(0.1);
    EXPECT_NEAR(5 * (NUM_PEERS - NUM_SOUGHT), run(0.5), NUM_PEERS);
    EXPECT_EQ(0u, proc(0).peer->hb.alive.paths[0].seq);
    EXPECT_NE(0u, proc(NUM_SOUGHT).peer->hb.alive.paths[0].seq);

    for (unsigned i = 0; i < NUM_SOUGHT; ++i) {
        proc(i).peer->found  = 1;
        proc(i).peer->sought = 0;
    }
    run(0.2);
    for (unsigned i = 0; i < NUM_SOUGHT; ++i) {
        EXPECT_NE(0u, proc(i).peer->hb.alive.paths[0].seq) << i;
    }
}

/* What is due may go, or be of no interest any more */
UCS_TEST_F(test_varuna_heartbeat_many, who_is_due_may_go) {
    fake_peer name         = {0x9999, 9999, 0};
    uct_varuna_peer_t *due = host->know(name);

    for (unsigned i = 0; i < NUM_PEERS; ++i) {
        add(i + 1);
    }
    set_room(0);
    uct_varuna_heartbeat_use(due, 0, host->now());
    host->advance(0.1);
    EXPECT_EQ(1u, due->hb.due);
    host->drop(due);

    uct_varuna_heartbeat_use(proc(0).peer, 0, host->now());
    for (unsigned i = 0; i < 2; ++i) {
        host->ctl()->links[0].full.since = 0; /* There was room for others meanwhile */
        host->advance(0.1);
        EXPECT_EQ(1u, proc(0).peer->hb.due) << "it keeps its turn";
    }
    EXPECT_EQ(0u, proc(0).peer->hb.alive.paths[0].misses) << "nobody has asked it";
    EXPECT_EQ(0u, proc(0).peer->hb.alive.paths[0].seq);
    for (unsigned i = 0; i < 15; ++i) {
        host->advance(0.1);
    }
    EXPECT_EQ(0u, proc(0).peer->hb.due) << "it is not used";
}


/* --- Which silence counts --- */

/* An endpoint of another thread may have used a path since the time that the tick goes
 * by */
UCS_TEST_F(test_varuna_heartbeat, path_is_used_in_this_moment) {
    add(1, 0, 3);
    uct_varuna_heartbeat_use(proc(0).peer, 0, host->now() + ucs_time_from_sec(1));
    EXPECT_EQ(1u, tick().size());
}

/* Where a port cannot be reached at all, no answer comes either */
UCS_TEST_F(test_varuna_heartbeat, port_without_a_route_is_silent) {
    add(1, 1, 2);
    host->ctl_lane(0).create_status = UCS_ERR_UNREACHABLE;
    ticks(2 * MISSES);
    EXPECT_EQ(UCT_VARUNA_DAMP_DOWN, path(0, 0));
    EXPECT_EQ(UCT_VARUNA_DAMP_UP, path(0, 1));
}

/* A link without resources is no fault, whatever happened to messages on another one */
UCS_TEST_F(test_varuna_heartbeat, doubt_of_another_link_does_not_count) {
    add(1, 1, 2);
    proc(0).peer->doubtful        = 2;
    host->ctl_lane(0).post_status = UCS_ERR_NO_RESOURCE;
    tick();
    EXPECT_EQ(0, proc(0).peer->hb.alive.paths[0].asked);
}
