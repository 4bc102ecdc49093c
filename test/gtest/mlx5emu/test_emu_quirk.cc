/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Quirks: their text, the command, their counters; and those that change the results of
 * querying a queue pair.
 */

#include "test_emu.h"

#include "tools/mlx5emu/rules/emu_quirk_rule.h"

#include <stdlib.h>

/* The text form: needs no fabric */
class test_emu_quirk_text : public ucs::test {
protected:
    static std::vector<emu_quirk_rule_t> parse(const std::string &text)
    {
        emu_quirk_rule_t rules[EMU_QUIRK_MAX_RULES];
        char err[1024] = "";
        unsigned num;

        EXPECT_EQ(0, emu_quirk_parse(text.c_str(), rules, &num, err,
                                     sizeof(err))) << text << ": " << err;
        return std::vector<emu_quirk_rule_t>(rules, rules + num);
    }

    static void refuses(const std::string &text, const std::string &words)
    {
        emu_quirk_rule_t rules[EMU_QUIRK_MAX_RULES];
        char err[1024] = "";
        unsigned num;

        EXPECT_EQ(-1, emu_quirk_parse(text.c_str(), rules, &num, err,
                                      sizeof(err))) << text;
        EXPECT_NE(std::string::npos, std::string(err).find(words))
                << text << ": \"" << words << "\" is not in: " << err;
    }
};

UCS_TEST_F(test_emu_quirk_text, places) {
    std::vector<emu_quirk_rule_t> rules = parse("psn-lost");

    ASSERT_EQ(1u, rules.size());
    EXPECT_EQ(EMU_QUIRK_PSN_LOST, rules[0].quirk);
    EXPECT_EQ(EMU_QUIRK_ANY, rules[0].host);
    EXPECT_EQ(EMU_QUIRK_ANY, rules[0].link);

    rules = parse("3=psn-lost,psn-lost");
    ASSERT_EQ(2u, rules.size());
    EXPECT_EQ(3u, rules[1].host);
    EXPECT_EQ(EMU_QUIRK_ANY, rules[1].link);

    rules = parse("1:2=psn-lost");
    ASSERT_EQ(1u, rules.size());
    EXPECT_EQ(1u, rules[0].host);
    EXPECT_EQ(2u, rules[0].link);
}

UCS_TEST_F(test_emu_quirk_text, errors) {
    refuses("", "expected");
    refuses(",", "expected");
    refuses("psn-lost,", "expected");
    refuses("0:1=", "expected");
    refuses("=psn-lost", "expected");
    refuses("friendly", "psn-lost");
    refuses("psn-los", "no quirk \"psn-los\"");
    refuses("x=psn-lost", "\"x\" is no place");
    refuses("0:=psn-lost", "is no place");
    refuses("0:1:2=psn-lost", "is no place");
    refuses("999=psn-lost", "is no place");
    refuses("psn-lost:5", "has no values");
    refuses(std::string(200, 'x'), "expected");
}

/* Every row of the table is complete, and its text can be read again */
UCS_TEST_F(test_emu_quirk_text, table) {
    for (unsigned i = 0; i < EMU_QUIRK_LAST; ++i) {
        const emu_quirk_info_t &info = emu_quirk_infos[i];
        uint64_t presets[EMU_QUIRK_MAX_VALUES];
        uint64_t highest[EMU_QUIRK_MAX_VALUES];
        char text[EMU_QUIRK_TEXT_MAX];
        std::vector<emu_quirk_rule_t> rules;

        ASSERT_TRUE((info.name != NULL) && (info.what != NULL) &&
                    (info.real != NULL) && (info.source != NULL)) << i;
        for (unsigned j = 0; j < EMU_QUIRK_MAX_VALUES; ++j) {
            presets[j] = info.values[j].preset;
            highest[j] = info.values[j].max;
            EXPECT_LE(info.values[j].min, presets[j]) << info.name;
            EXPECT_GE(info.values[j].max, presets[j]) << info.name;
        }

        emu_quirk_format((emu_quirk_t)i, presets, text, sizeof(text));
        EXPECT_EQ(std::string(info.name), text);
        emu_quirk_format((emu_quirk_t)i, highest, text, sizeof(text));
        if (info.needs_place) {
            refuses(text, "needs a host or a link");
        }
        rules = parse(std::string(info.needs_place ? "0=" : "") + text);
        ASSERT_EQ(1u, rules.size());
        EXPECT_EQ(i, rules[0].quirk);
        for (unsigned j = 0; (j < EMU_QUIRK_MAX_VALUES) &&
                             (info.values[j].name != NULL); ++j) {
            EXPECT_EQ(highest[j], rules[0].values[j]) << text;
            highest[j] = info.values[j].max + 1;
            EXPECT_NE(UINT64_MAX, info.values[j].max) << text;
            emu_quirk_format((emu_quirk_t)i, highest, text, sizeof(text));
            refuses(text, info.values[j].name);
            highest[j] = info.values[j].max;
        }
    }
}


class test_emu_quirk : public emu::test_emu {
protected:
    static int run(const rcv::args_t &args, std::string *output)
    {
        rcv::args_t full = {rcv::fabric::tool()};
        int status;

        full.insert(full.end(), args.begin(), args.end());
        rcv::process process(full);
        status  = process.wait();
        *output = process.output();
        return status;
    }

    void refuses(const rcv::args_t &words, int status, const std::string &text)
    {
        rcv::args_t args = {"quirk", "-n", fabric().name()};
        std::string output;

        args.insert(args.end(), words.begin(), words.end());
        EXPECT_EQ(status, run(args, &output)) << output;
        EXPECT_NE(std::string::npos, output.find(text)) << output;
    }

    void fail(emu::side &s)
    {
        (*s)("state", s.qp, (int)IBV_QPS_ERR);
    }

    /* RQ PSN, SQ PSN */
    static emu::numbers_t psns(emu::side &s)
    {
        emu::numbers_t n = (*s)("query", s.qp);

        return {n.at(1), n.at(2)};
    }

    /* One write takes one PSN; connections begin with 0xfffff0 */
    static emu::numbers_t after_writes(uint64_t rx, uint64_t tx)
    {
        return {(0xfffff0 + rx) & 0xffffff, (0xfffff0 + tx) & 0xffffff};
    }
};

UCS_TEST_F(test_emu_quirk, command_refuses) {
    refuses({}, 2, "add, remove or list");
    refuses({"toggle", "psn-lost"}, 2, "add, remove or list");
    refuses({"add"}, 2, "needs quirks");
    refuses({"list", "psn-lost"}, 2, "no arguments");
    refuses({"add", "--json", "psn-lost"}, 2, "go with list");
    refuses({"add", "friendly"}, 2, "no quirk \"friendly\"");
    refuses({"add", "7=psn-lost"}, 2, "hosts 0 to 1 with links 0 to 1");
    refuses({"add", "0:7=psn-lost"}, 2, "no such place");
    refuses({"remove", "psn-lost"}, 1, "psn-lost is not on");
    refuses({"list", "--check"}, 1, "no quirk is on");

    /* All or none */
    refuses({"add", "1:1=psn-lost,friendly"}, 2, "no quirk");
    refuses({"remove", "1:1=psn-lost"}, 1, "1:1=psn-lost is not on");
}

UCS_TEST_F(test_emu_quirk, up_refuses) {
    std::string name = "test.quirk." + std::to_string(getpid());
    std::string output;

    EXPECT_EQ(2, run({"up", "-n", name, "--quirk", "friendly"}, &output));
    EXPECT_NE(std::string::npos, output.find("friendly")) << output;
    EXPECT_EQ(2, run({"up", "-n", name, "--quirk", "5=psn-lost"}, &output));
    EXPECT_EQ(1, run({"down", "-n", name}, &output));
    EXPECT_NE(std::string::npos, output.find("there is no fabric")) << output;
}

UCS_TEST_F(test_emu_quirk, listed_where_it_is_on) {
    std::string list = fabric().command("quirk", {"list"});

    EXPECT_NE(std::string::npos, list.find("source: ")) << list;
    EXPECT_EQ(std::string::npos, list.find("acted")) << list;
    fabric().command("quirk", {"add", "0:1=psn-lost"});
    list = fabric().command("quirk", {"list"});
    EXPECT_NE(std::string::npos, list.find("quirk 0:1=psn-lost  acted 0"))
            << list;
    EXPECT_EQ(std::string::npos, list.find("quirk 0:0=psn-lost")) << list;
    EXPECT_NE(std::string::npos, fabric().command("status").find(
              "quirk 0:1=psn-lost  acted 0"));
    refuses({"list", "--check"}, 3, "quirk psn-lost never acted");
    fabric().command("quirk", {"remove", "psn-lost"});
    list = fabric().command("quirk", {"list"});
    EXPECT_EQ(std::string::npos, list.find("acted")) << list;
}

UCS_TEST_F(test_emu_quirk, psns_are_kept_without) {
    make_pair();
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    fail(*a);
    fail(*b);
    EXPECT_EQ(after_writes(0, 1), psns(*a));
    EXPECT_EQ(after_writes(1, 0), psns(*b));
    EXPECT_EQ(0u, acted("psn-lost"));
    EXPECT_EQ(0u, acted("psn-stale"));
}

/* A quirk of one host does not affect the other, and can change at any time */
UCS_TEST_F(test_emu_quirk, psn_lost) {
    make_pair();
    quirk("1:0=psn-lost");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(after_writes(1, 0), psns(*b));
    EXPECT_EQ(0u, acted("psn-lost"));

    fail(*a);
    fail(*b);
    EXPECT_EQ(after_writes(0, 1), psns(*a));
    EXPECT_EQ((emu::numbers_t{0, 0}), psns(*b));
    EXPECT_EQ((emu::numbers_t{0, 0}), psns(*b));
    EXPECT_EQ(2u, acted("psn-lost", 1, 0));
    EXPECT_EQ(2u, acted("psn-lost"));
    EXPECT_EQ((uint64_t)IBV_QPS_ERR, b->state());

    no_quirk("psn-lost");
    EXPECT_EQ(after_writes(1, 0), psns(*b));
    fabric().command("quirk", {"list", "--json"});
}

/* After a failure, queries return the last result from before it */
UCS_TEST_F(test_emu_quirk, psn_stale) {
    make_pair();
    quirk("psn-stale");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(after_writes(1, 0), psns(*b));
    EXPECT_EQ(0u, acted("psn-stale"));
    EXPECT_TRUE(a->write(*b, 2, 0, 8, 0).completes(IBV_WC_SUCCESS));

    fail(*a);
    fail(*b);
    EXPECT_EQ(after_writes(0, 0), psns(*a));    /* of the modification */
    EXPECT_EQ(after_writes(1, 0), psns(*b));    /* of the query */
    EXPECT_EQ(1u, acted("psn-stale", 0, 0));
    EXPECT_EQ(1u, acted("psn-stale", 1, 0));

    no_quirk("psn-stale");
    EXPECT_EQ(after_writes(0, 2), psns(*a));
    EXPECT_EQ(after_writes(2, 0), psns(*b));
}

UCS_TEST_F(test_emu_quirk, psn_always_stale) {
    make_pair();
    quirk("1=psn-stale:1");
    EXPECT_TRUE(a->write(*b, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));
    EXPECT_EQ(after_writes(0, 1), psns(*a));
    EXPECT_EQ(after_writes(0, 0), psns(*b));
    fail(*b);
    EXPECT_EQ(after_writes(0, 0), psns(*b));
    EXPECT_EQ(2u, acted("psn-stale", 1, 0));
}

class test_emu_quirk_up : public test_emu_quirk {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--quirk", "0=psn-lost", "--quirk", "1:1=psn-lost"};
    }
};

UCS_TEST_F(test_emu_quirk_up, from_the_beginning) {
    make_pair();
    fail(*a);
    fail(*b);
    EXPECT_EQ((emu::numbers_t{0, 0}), psns(*a));
    EXPECT_EQ(after_writes(0, 0), psns(*b));
    EXPECT_EQ(1u, acted("psn-lost", 0, 0));
    EXPECT_EQ(1u, acted("psn-lost"));
    EXPECT_EQ(1u, quirk_trace("psn-lost").size());
}
