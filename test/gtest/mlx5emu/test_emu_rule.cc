/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Fault rules: text form and matching. Needs no fabric.
 */

#include <common/test.h>

#include "tools/mlx5emu/rules/emu_fault_rule.h"

#include <string.h>

class test_emu_rule : public ucs::test {
protected:
    static std::string error_of(const std::string &line)
    {
        emu_fault_rule_t rule;
        char err[512] = "";

        return emu_fault_rule_parse(line.c_str(), &rule, err, sizeof(err)) ?
               err : "";
    }

    static emu_fault_rule_t make(const std::string &line)
    {
        emu_fault_rule_t rule = {};
        char err[512]         = "";

        EXPECT_EQ(0, emu_fault_rule_parse(line.c_str(), &rule, err,
                                          sizeof(err))) << line << ": " << err;
        rule.id = 1;
        return rule;
    }

    static std::string reformat(const std::string &line)
    {
        emu_fault_rule_t rule = make(line);
        char buf[EMU_FAULT_LINE_MAX];

        return emu_fault_rule_format(&rule, buf, sizeof(buf));
    }

    static emu_fault_event_t event(emu_fault_point_t point, emu_fault_op_t op)
    {
        emu_fault_event_t e = {};

        e.point    = point;
        e.op       = op;
        e.peer     = 1;
        e.qpn      = 0x100;
        e.pkt      = 1;
        e.num_pkts = 1;
        e.size     = 8;
        return e;
    }

    static emu_fault_event_t packet(unsigned pkt, unsigned num_pkts)
    {
        emu_fault_event_t e = event(EMU_FAULT_POINT_PACKET,
                                    EMU_FAULT_OP_WRITE);

        e.pkt      = pkt;
        e.num_pkts = num_pkts;
        e.size     = num_pkts * 1024;
        return e;
    }

    /* Which of the first matches fire, as "0100..." */
    static std::string fires(const std::string &line, unsigned num)
    {
        emu_fault_rule_t rule = make(line);
        emu_fault_event_t e   = packet(1, 1);
        std::string result;

        for (unsigned i = 0; i < num; ++i) {
            result += emu_fault_rule_match(&rule, &e) ? "1" : "0";
        }
        EXPECT_EQ(num, rule.matched);
        return result;
    }

    static bool fits(const std::string &line, const emu_fault_event_t &e)
    {
        emu_fault_rule_t rule = make(line);

        return emu_fault_rule_fits(&rule, &e);
    }
};

UCS_TEST_F(test_emu_rule, text_is_kept) {
    static const char *lines[] = {
        "packet drop",
        "packet count",
        "ack op=cas host=0 nth=3 drop",
        "packet op=write size=64k- pkt=7 silent",
        "packet op=send,write_imm peer=1 link=1 qp=70 wqe=3 count=all drop",
        "packet size=-4k pkt=last try=first count=2 delay=20ms",
        "packet size=8 pkt=middle try=again dup=1500us",
        "packet size=0 prob=0.01 seed=7 dup",
        "packet size=1-100 up=1:0",
        "exec op=faa down=1:0",
        "packet op=read type=rc,dc prev=write,cas prev_size=-4k hang",
        "exec kill",
        "exec nth=2 name=later kill_silent=1:0",
        "post flap=20ms",
        "post flap=20ms,0.25@1:1",
        "packet delay=until:later",
        "ack dup=until:post+3",
        "packet delay=until:up=0:1",
        "rmw op=faa delay=2ms",
        "err type=rc host=1 link=0 qp=7 silent=1:2",
        "rmw op=faa delay=until:later",
        "packet prob=0.5 drop",
        "post nth=2 silent"
    };

    for (const char *line : lines) {
        EXPECT_EQ(line, reformat(line));
    }
}

UCS_TEST_F(test_emu_rule, other_spellings) {
    EXPECT_EQ("packet size=4k drop", reformat("  packet\tsize=4096   drop\n"));
    EXPECT_EQ("packet pkt=1 drop", reformat("packet drop pkt=first"));
    EXPECT_EQ("packet op=write,read drop",
              reformat("packet drop op=read,write"));
    EXPECT_EQ("packet qp=255 delay=1s",
              reformat("packet qp=0xff delay=1000ms"));
}

UCS_TEST_F(test_emu_rule, errors_say_what_to_do) {
    static const char *bad[][2] = {
        {"",                           "empty"},
        {"drop",                       "post, packet, exec, ack, rmw or err"},
        {"nowhere drop",               "\"nowhere\""},
        {"packet",                     "no action"},
        {"packet drop up",             "second one"},
        {"packet drop=1",              "takes no value"},
        {"packet delay",               "needs a time"},
        {"packet delay=5",             "20ms"},
        {"packet delay=-5ms",          "20ms"},
        {"packet delay=99999999999s",  "20ms"},
        {"packet host drop",           "needs a value"},
        {"packet host=x drop",         "number"},
        {"packet host=-1 drop",        "number"},
        {"packet host=0 host=1 drop",  "twice"},
        {"packet colour=red drop",     "\"colour\""},
        {"packet op=poke drop",        "write_imm"},
        {"packet op= drop",            "needs a kind"},
        {"packet size=9-3 drop",       "larger"},
        {"packet size=- drop",         "MIN-MAX"},
        {"packet size=3q drop",        "MIN-MAX"},
        {"packet pkt=0 drop",          "first, middle"},
        {"packet nth=0 drop",          "1, 2, 3"},
        {"packet count=0 drop",        "or all"},
        {"packet prob=1.5 drop",       "from 0 to 1"},
        {"packet prob=nan drop",       "from 0 to 1"},
        {"packet try=twice drop",      "retransmission"},
        {"packet down=1 drop",         "HOST:LINK"},
        {"packet type=xrc drop",       "rc, ud or dc"},
        {"packet name=a.b drop",       "a word"},
        {"packet flap",                "needs a period"},
        {"packet flap=5",              "PERIOD,DUTY"},
        {"packet flap=5ms,1",          "PERIOD,DUTY"},
        {"packet flap=5ms@1",          "HOST:LINK"},
        {"packet kill=1",              "HOST:LINK"},
        {"packet hang=1",              "takes no value"},
        {"packet delay=until:",        "a word"},
        {"packet delay=until:post+0",  "post+1"},
        {"packet delay=until:on=0:1",  "until:up=HOST:LINK"},
        {"rmw delay=until:post+1",     "meanwhile"},
        {"rmw drop",                   "no packet"},
        {"post drop",                  "no packet"},
        {"exec delay=1ms",             "no packet"},
        {"exec pkt=1 silent",          "packet or ack"},
        {"post try=first silent",      "packet or ack"},
        {"err drop",                   "no packet"},
        {"err hang",                   "cannot hang"},
        {"err op=read silent",         "no request"},
        {"err size=8- silent",         "no request"},
        {"err prev=read silent",       "no request"},
        {"err peer=1 silent",          "no request"}
    };

    for (auto &line : bad) {
        EXPECT_NE(std::string::npos, error_of(line[0]).find(line[1]))
                << line[0] << ": " << error_of(line[0]);
    }
    EXPECT_NE("", error_of("packet drop " + std::string(300, ' ')));
}

UCS_TEST_F(test_emu_rule, selectors) {
    emu_fault_event_t e = event(EMU_FAULT_POINT_ACK, EMU_FAULT_OP_CAS);

    e.host      = 2;
    e.peer      = 3;
    e.link      = 1;
    e.wqe_index = 9;
    EXPECT_TRUE(fits("ack drop", e));
    EXPECT_FALSE(fits("packet drop", e));
    EXPECT_FALSE(fits("exec down", e));
    EXPECT_TRUE(fits("ack op=cas drop", e));
    EXPECT_TRUE(fits("ack op=write,cas drop", e));
    EXPECT_FALSE(fits("ack op=faa drop", e));
    EXPECT_TRUE(fits("ack host=2 peer=3 link=1 qp=0x100 wqe=9 drop", e));
    EXPECT_FALSE(fits("ack host=3 drop", e));
    EXPECT_FALSE(fits("ack peer=2 drop", e));
    EXPECT_FALSE(fits("ack link=0 drop", e));
    EXPECT_FALSE(fits("ack qp=1 drop", e));
    EXPECT_FALSE(fits("ack wqe=8 drop", e));
    EXPECT_TRUE(fits("ack size=8 drop", e));
    EXPECT_TRUE(fits("ack size=8- drop", e));
    EXPECT_TRUE(fits("ack size=-8 drop", e));
    EXPECT_FALSE(fits("ack size=9- drop", e));
    EXPECT_FALSE(fits("ack size=-7 drop", e));
    EXPECT_TRUE(fits("ack try=first drop", e));
    EXPECT_FALSE(fits("ack try=again drop", e));
    e.is_retry = 1;
    EXPECT_FALSE(fits("ack try=first drop", e));
    EXPECT_TRUE(fits("ack try=again drop", e));
}

UCS_TEST_F(test_emu_rule, what_was_posted_before) {
    emu_fault_event_t e = event(EMU_FAULT_POINT_POST, EMU_FAULT_OP_WRITE);

    e.prev_op = EMU_FAULT_OP_LAST;   /* the first one of its queue pair */
    EXPECT_TRUE(fits("post hang", e));
    EXPECT_FALSE(fits("post prev=write hang", e));
    EXPECT_FALSE(fits("post prev_size=-8 hang", e));
    e.prev_op   = EMU_FAULT_OP_WRITE;
    e.prev_size = 4096;
    EXPECT_TRUE(fits("post prev=write hang", e));
    EXPECT_TRUE(fits("post prev=read,write prev_size=4k- hang", e));
    EXPECT_FALSE(fits("post prev=read hang", e));
    EXPECT_FALSE(fits("post prev=write prev_size=-4095 hang", e));
    EXPECT_TRUE(fits("post type=rc hang", e));
    EXPECT_FALSE(fits("post type=dc,ud hang", e));
}

UCS_TEST_F(test_emu_rule, seeds_of_rules_differ) {
    EXPECT_NE(emu_fault_derive_seed(1, 1), emu_fault_derive_seed(1, 2));
    EXPECT_NE(emu_fault_derive_seed(1, 1), emu_fault_derive_seed(2, 1));
    EXPECT_EQ(emu_fault_derive_seed(7, 3), emu_fault_derive_seed(7, 3));
}

UCS_TEST_F(test_emu_rule, several_kinds_of_actions_at_once) {
    emu_fault_rule_t rules[3] = {make("post flap=20ms,0.25@1:1"),
                                 make("post kill_silent=0:1"),
                                 make("post hang")};
    emu_fault_event_t e       = event(EMU_FAULT_POINT_POST,
                                      EMU_FAULT_OP_WRITE);
    emu_fault_verdict_t v;

    emu_fault_rules_apply(rules, 3, &e, &v);
    ASSERT_EQ(2u, v.num_changes);
    EXPECT_EQ(EMU_FAULT_ACTION_FLAP, v.changes[0].op);
    EXPECT_EQ(1, v.changes[0].host);
    EXPECT_EQ(20000000ul, v.changes[0].flap_ns);
    EXPECT_EQ(250000u, v.changes[0].flap_ppm);
    EXPECT_EQ(EMU_FAULT_ACTION_KILL_SILENT, v.changes[1].op);
    EXPECT_EQ(1, v.changes[1].index);
    EXPECT_TRUE(v.hang);
    EXPECT_EQ(EMU_FAULT_ACTION_NONE, v.fate);
}

UCS_TEST_F(test_emu_rule, packets_of_a_message) {
    EXPECT_TRUE(fits("packet pkt=first drop", packet(1, 1)));
    EXPECT_TRUE(fits("packet pkt=last drop", packet(1, 1)));
    EXPECT_FALSE(fits("packet pkt=middle drop", packet(1, 1)));
    EXPECT_TRUE(fits("packet pkt=first drop", packet(1, 5)));
    EXPECT_FALSE(fits("packet pkt=middle drop", packet(1, 5)));
    EXPECT_TRUE(fits("packet pkt=middle drop", packet(2, 5)));
    EXPECT_TRUE(fits("packet pkt=middle drop", packet(4, 5)));
    EXPECT_FALSE(fits("packet pkt=middle drop", packet(5, 5)));
    EXPECT_TRUE(fits("packet pkt=last drop", packet(5, 5)));
    EXPECT_TRUE(fits("packet pkt=3 drop", packet(3, 5)));
    EXPECT_FALSE(fits("packet pkt=3 drop", packet(4, 5)));
}

UCS_TEST_F(test_emu_rule, when_it_fires) {
    EXPECT_EQ("100000", fires("packet drop", 6));
    EXPECT_EQ("001000", fires("packet nth=3 drop", 6));
    EXPECT_EQ("011000", fires("packet nth=2 count=2 drop", 6));
    EXPECT_EQ("000111", fires("packet nth=4 count=all drop", 6));
    EXPECT_EQ("000000", fires("packet prob=0 count=all drop", 6));
}

UCS_TEST_F(test_emu_rule, chance_is_replayed_by_its_seed) {
    std::string first = fires("packet prob=0.25 seed=5 count=all drop", 4000);
    size_t ones       = std::count(first.begin(), first.end(), '1');

    EXPECT_EQ(first, fires("packet prob=0.25 seed=5 count=all drop", 4000));
    EXPECT_NE(first, fires("packet prob=0.25 seed=6 count=all drop", 4000));
    EXPECT_GT(ones, 850u);
    EXPECT_LT(ones, 1150u);
}

UCS_TEST_F(test_emu_rule, several_rules) {
    emu_fault_rule_t rules[4] = {make("packet nth=2 drop"),
                                 make("packet delay=1ms count=all"),
                                 make("packet silent=1:0"), {}};
    emu_fault_event_t e       = packet(1, 1);
    emu_fault_verdict_t v;

    emu_fault_rules_apply(rules, 4, &e, &v);
    EXPECT_EQ(EMU_FAULT_ACTION_DELAY, v.fate);
    EXPECT_EQ(1000000ul, v.value_ns);
    ASSERT_EQ(1u, v.num_changes);
    EXPECT_EQ(EMU_FAULT_ACTION_SILENT, v.changes[0].op);
    EXPECT_EQ(1, v.changes[0].host);
    EXPECT_EQ(0, v.changes[0].index);

    emu_fault_rules_apply(rules, 4, &e, &v);
    EXPECT_EQ(EMU_FAULT_ACTION_DROP, v.fate);
    EXPECT_EQ(0u, v.num_changes);
    EXPECT_EQ(2ul, rules[2].matched);
    EXPECT_EQ(0ul, rules[3].matched);
}

UCS_TEST_F(test_emu_rule, all_changes_of_an_event_are_made) {
    emu_fault_rule_t rules[6] = {make("post down=0:0"), make("post silent=1:0"),
                                 make("post kill=0:1"), make("post up=0:0"),
                                 make("post down=0:0"), make("post kill=0:0")};
    emu_fault_event_t e       = event(EMU_FAULT_POINT_POST, EMU_FAULT_OP_WRITE);
    emu_fault_verdict_t v;

    emu_fault_rules_apply(rules, 6, &e, &v);
    ASSERT_EQ(6u, v.num_changes);
    for (unsigned i = 0; i < 6; ++i) {
        EXPECT_EQ(rules[i].action, v.changes[i].op);
        EXPECT_EQ(rules[i].at_host, v.changes[i].host);
        EXPECT_EQ(rules[i].at_link, v.changes[i].index);
        EXPECT_EQ(1ul, rules[i].fired);
    }
}

/* What would have no effect does not count as fired, and comes later */
UCS_TEST_F(test_emu_rule, fires_only_with_an_effect) {
    const char *pairs[][2] = {{"packet down=1:0", "packet down=1:0"},
                              {"packet kill=1:0", "packet kill_silent=1:0"},
                              {"packet flap=20ms@1:0", "packet flap=20ms@1:0"},
                              {"packet hang", "packet hang"},
                              {"packet drop", "packet delay=1ms"},
                              {"packet dup", "packet nth=1 drop"}};
    emu_fault_event_t e    = packet(1, 1);
    emu_fault_verdict_t v;

    for (auto &pair : pairs) {
        emu_fault_rule_t rules[3] = {make(pair[0]), make(pair[1]),
                                     make("packet count=all count")};

        emu_fault_rules_apply(rules, 3, &e, &v);
        EXPECT_EQ(1ul, rules[0].fired) << pair[0];
        EXPECT_EQ(0ul, rules[1].fired) << pair[1];
        EXPECT_EQ(1ul, rules[1].matched) << pair[1];
        EXPECT_EQ(1ul, rules[2].fired);

        emu_fault_rules_apply(rules, 3, &e, &v);
        EXPECT_EQ(1ul, rules[0].fired) << pair[0];
        EXPECT_EQ(1ul, rules[1].fired) << pair[1];
    }
}

UCS_TEST_F(test_emu_rule, link_of_the_requester_by_default) {
    emu_fault_rule_t rule = make("exec down");
    emu_fault_event_t e   = event(EMU_FAULT_POINT_EXEC, EMU_FAULT_OP_WRITE);
    emu_fault_verdict_t v;

    e.host = 4;
    e.link = 2;
    emu_fault_rules_apply(&rule, 1, &e, &v);
    ASSERT_EQ(1u, v.num_changes);
    EXPECT_EQ(EMU_FAULT_ACTION_DOWN, v.changes[0].op);
    EXPECT_EQ(4, v.changes[0].host);
    EXPECT_EQ(2, v.changes[0].index);
}

UCS_TEST_F(test_emu_rule, who_must_split_trains) {
    emu_fault_rule_t rules[2] = {make("exec down"), make("post down")};

    EXPECT_FALSE(emu_fault_rules_need_split(rules, 2, 0, 0));
    rules[1] = make("packet host=1 link=0 pkt=3 drop");
    EXPECT_FALSE(emu_fault_rules_need_split(rules, 2, 0, 0));
    EXPECT_TRUE(emu_fault_rules_need_split(rules, 2, 1, 0));
    EXPECT_FALSE(emu_fault_rules_need_split(rules, 2, 1, 1));
}
