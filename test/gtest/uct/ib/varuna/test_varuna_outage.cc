/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a user is told of peers without a link, and of endpoints that fail.
 */
#include "log_lines.h"
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/ctl/varuna_witness.h>
#include <uct/ib/varuna/requester/varuna_stat.h>
}

class test_varuna_outage : public test_varuna_recovery {
protected:
    virtual void init()
    {
        test_varuna_recovery::init();
        host->iface()->super.config.failure_level = UCS_LOG_LEVEL_WARN;
        lines.reset(new log_lines());
    }

    virtual void cleanup()
    {
        uct_varuna_outage_cleanup(host->requester());
        lines.reset();
        test_varuna_recovery::cleanup();
    }

    /* Each of our ports in the map is down */
    void ports_down(unsigned links)
    {
        unsigned link;

        host->ctl()->ports.down = links;
        ucs_for_each_bit(link, links) {
            link_down(link);
        }
    }

    /* The endpoint takes steps for this time, and lines are written */
    void pass(double seconds)
    {
        for (double time = 0; time < seconds; time += 0.1) {
            step(0.1);
            uct_varuna_outage_write(host->requester());
        }
    }

    std::string describe()
    {
        ucs_string_buffer_t text;
        std::string result;

        ucs_string_buffer_init(&text);
        uct_varuna_ctl_lock(host->ctl());
        uct_varuna_ways_describe(host->ctl(), ep->peer, &text);
        uct_varuna_ctl_unlock(host->ctl());
        result = ucs_string_buffer_cstr(&text);
        ucs_string_buffer_cleanup(&text);
        return result;
    }

    static bool has(const std::string &text, const std::string &part)
    {
        return text.find(part) != std::string::npos;
    }

    std::unique_ptr<log_lines> lines;
};

UCS_TEST_F(test_varuna_outage, is_said_after_a_second_and_once) {
    open();
    put(1);
    ports_down(3);
    pass(0.9);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(0u, lines->count());
    pass(0.8);
    EXPECT_EQ(1u, lines->count("no link to peer 0x")) << lines->last();
    EXPECT_EQ(1u, lines->count("up here: none; up there, at the ends of: fake_0:1, fake_1:1; "
                               "at both ends: none; fake_0:1: local fault: our port is down; "
                               "fake_1:1: local fault: our port is down"));
    pass(60);
    EXPECT_EQ(1u, lines->count());
}

/* The peer is busy, or its answers are lost: that is not what is said of links */
UCS_TEST_F(test_varuna_outage, not_while_there_is_a_link) {
    open();
    put(1);
    ports_down(1);
    pass(60);
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(0u, lines->count()) << lines->last();
}

UCS_TEST_F(test_varuna_outage, next_one_is_said_again) {
    open();
    put(1);
    ports_down(3);
    pass(2);
    EXPECT_EQ(1u, lines->count());

    uct_varuna_link_up(host->iface(), 1, UCT_VARUNA_LINK_CAUSE_PORT);
    host->ctl()->ports.down = 1;
    pass(0.5);
    ports_down(3);
    pass(0.5);
    EXPECT_EQ(1u, lines->count()) << "it was not for a second";
    pass(2);
    EXPECT_EQ(2u, lines->count());
}

/* Before the user hears of them. Who follows is counted in another line */
UCS_TEST_F(test_varuna_outage, endpoints_that_fail_are_counted) {
    uct_varuna_ep_t *others[3];

    open();
    put(1);
    ports_down(3);
    step();
    step();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    for (uct_varuna_ep_t *&other : others) {
        other = create();
    }

    step(GIVE_UP * 1.1);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
    uct_varuna_outage_give_up(others[0], 1);
    EXPECT_EQ(0u, lines->count());
    uct_varuna_outage_write(host->requester());
    EXPECT_EQ(1u, lines->count("2 endpoints to peer 0x2222 fail, after 11000.0 s without an "
                               "answer: up here: none;")) << lines->last();

    uct_varuna_outage_give_up(others[1], 1);
    uct_varuna_outage_give_up(others[2], 1);
    uct_varuna_outage_write(host->requester());
    EXPECT_EQ(1u, lines->count());
    host->requester()->scan.clock += ucs_time_from_sec(1.1);
    uct_varuna_outage_write(host->requester());
    EXPECT_EQ(2u, lines->count()) << lines->last();
    host->requester()->scan.clock += ucs_time_from_sec(1.1);
    uct_varuna_outage_write(host->requester());
    EXPECT_TRUE(host->requester()->outage.lines == NULL);
    for (uct_varuna_ep_t *other : others) {
        other->ask.retry.tries = 0; /* Nothing to close */
        uct_varuna_ep_t_delete(&other->super.super);
    }
}

/* Ports that are down explain the silence */
UCS_TEST_F(test_varuna_outage, peer_is_not_dead_if_ports_are_down) {
    uct_varuna_peer_t *peer = ep->peer;

    EXPECT_EQ("up here: fake_0:1, fake_1:1; up there, at the ends of: fake_0:1, fake_1:1; at "
              "both ends: fake_0:1, fake_1:1", describe());
    peer->hb.alive.silent = 1;
    EXPECT_TRUE(has(describe(), "it is dead or stopped, or all links are")) << describe();
    host->ctl()->ports.down = 1;
    EXPECT_TRUE(has(describe(), "ports are down, and the others are silent")) << describe();
    EXPECT_FALSE(has(describe(), "dead"));
    peer->hb.far_down = 2;
    EXPECT_TRUE(has(describe(), "at both ends: none;")) << describe();
    EXPECT_TRUE(has(describe(), "no link has a port that is up at both ends"));
    EXPECT_FALSE(has(describe(), "dead"));
    host->ctl()->ports.down = 0;
    EXPECT_FALSE(has(describe(), "dead")) << describe();
}

UCS_TEST_F(test_varuna_outage, list_of_peers) {
    ucs_string_buffer_t text;

    ucs_string_buffer_init(&text);
    uct_varuna_ctl_lock(host->ctl());
    uct_varuna_ways_list(host->ctl(), "iface=3 ", &text);
    EXPECT_STREQ("iface=3 peers=1 no fault is known\n", ucs_string_buffer_cstr(&text));
    ucs_string_buffer_reset(&text);
    ep->peer->hb.far_down = 1;
    uct_varuna_ways_list(host->ctl(), "iface=3 ", &text);
    EXPECT_STREQ("iface=3 peer=0x2222 up here: fake_0:1, fake_1:1; up there, at the ends of: "
                 "fake_1:1; at both ends: fake_1:1; fake_0:1: remote fault: the peer says that "
                 "its port is down\n", ucs_string_buffer_cstr(&text));
    uct_varuna_ctl_unlock(host->ctl());
    ucs_string_buffer_cleanup(&text);
}
