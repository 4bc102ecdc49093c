/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which events of traffic match each selector of a rule, and the counters in the list
 * of rules and the trace.
 */

#include "test_emu.h"

#include <jansson.h>

#include <sstream>

class test_emu_select : public emu::test_emu {
protected:
    typedef std::map<std::string, std::string> entry_t;

    void init() override
    {
        emu::test_emu::init();
        make_pair();
    }

    /* Counts the events which a rule matches */
    void counts(const std::string &point, const std::string &selector,
                uint64_t fires)
    {
        fault(point + " " + selector + " count=all count", fires);
    }

    /* a (host 0) and c (link 1) write to their peers on host 1, b to a */
    void traffic()
    {
        emu::side c(fabric(), 0, 1), d(fabric(), 1, 1);

        c.connect(d);
        d.connect(c);
        a->write(*b, 1, 0, 8, 0);
        a->write(*b, 2, 0, 10000, 0);   /* 10 packets */
        a->read(*b, 3, 0, 64, 0);
        a->faa(*b, 4, 0, 0, 1);
        a->cas(*b, 5, 0, 0, 0, 1);
        for (uint64_t i = 1; i <= 5; ++i) {
            EXPECT_TRUE(a->completes(i, IBV_WC_SUCCESS));
        }
        EXPECT_TRUE(b->write(*a, 6, 0, 16, 0).completes(IBV_WC_SUCCESS));
        EXPECT_TRUE(c.write(d, 7, 0, 100, 0).completes(IBV_WC_SUCCESS));

        b->recv(8, 0, 64);
        a->send(IBV_WR_SEND_WITH_IMM, *b, 9, 0, 32, 0, 5);
        EXPECT_TRUE(a->completes(9, IBV_WC_SUCCESS));
    }

    /* The trace in JSON, values as they are printed */
    std::vector<entry_t> json_trace()
    {
        std::istringstream lines(fabric().command("trace", {"--json"}));
        std::vector<entry_t> result;
        std::string line;

        while (std::getline(lines, line)) {
            json_t *root = json_loads(line.c_str(), 0, NULL);
            const char *key;
            json_t *value;
            entry_t entry;

            EXPECT_TRUE(root != NULL) << line;
            json_object_foreach(root, key, value) {
                char *text = json_dumps(value, JSON_ENCODE_ANY);

                entry[key] = json_is_string(value) ? json_string_value(value) :
                                                     text;
                free(text);
            }
            json_decref(root);
            result.push_back(entry);
        }
        return result;
    }

    static std::string hex(uint64_t value)
    {
        std::ostringstream text;

        text << "0x" << std::hex << value;
        return text.str();
    }

    /* The entry has these fields with these values */
    static void expect_fields(const entry_t &entry, const entry_t &fields)
    {
        for (const auto &field : fields) {
            auto found = entry.find(field.first);

            ASSERT_TRUE(found != entry.end()) << field.first;
            EXPECT_EQ(field.second, found->second) << field.first;
        }
    }
};

UCS_TEST_F(test_emu_select, by_requester_and_place) {
    counts("post", "", 8);
    counts("post", "host=0", 7);
    counts("post", "host=1", 1);
    counts("post", "peer=0", 1);
    counts("post", "link=0", 7);
    counts("post", "link=1", 1);
    counts("post", "qp=" + std::to_string(a->qpn), 6);
    counts("post", "qp=" + hex(b->qpn), 1);
    counts("post", "qp=" + std::to_string(a->qpn) + " wqe=0", 1);
    counts("exec", "host=0", 7);        /* which is at the other host */
    counts("ack", "host=1 peer=0", 1);
    traffic();
}

/* Each queue pair once, no matter what fails it: the program, or a request. And in
 * time: the other end's link is down before the completion of the flush. */
UCS_TEST_F(test_emu_select, when_a_queue_pair_fails) {
    emu::side c(fabric(), 0, 1), d(fabric(), 1, 1);

    c.connect(d, 8, 1);
    d.connect(c);
    counts("err", "", 3);
    counts("err", "host=1", 1);
    counts("err", "host=0 link=1", 1);
    counts("err", "qp=" + std::to_string(a->qpn), 1);
    counts("err", "type=rc", 3);
    counts("err", "type=ud,dc", 0);
    fault("err host=0 link=0 silent=1:1", 1);
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    (**b)("state", b->qp, (int)IBV_QPS_ERR);
    EXPECT_TRUE(c.write(d, 1, 0, 8, 0).completes(IBV_WC_SUCCESS));

    a->write(*b, 2, 0, 8, 0);
    a->write(*b, 3, 0, 8, 0);
    EXPECT_TRUE(a->completes(2, IBV_WC_RETRY_EXC_ERR));
    EXPECT_TRUE(a->completes(3, IBV_WC_WR_FLUSH_ERR));
    EXPECT_TRUE(c.write(d, 4, 0, 8, 0).completes(IBV_WC_RETRY_EXC_ERR));
}

UCS_TEST_F(test_emu_select, by_kind_and_size) {
    counts("post", "op=write", 4);
    counts("post", "op=read", 1);
    counts("post", "op=cas,faa", 2);
    counts("post", "op=send", 0);
    counts("post", "op=send_imm", 1);
    counts("post", "size=8", 3);
    counts("post", "size=-16", 4);
    counts("post", "size=10-100", 4);
    counts("post", "size=4k-", 1);
    counts("packet", "op=write", 13);
    counts("packet", "pkt=3", 1);
    counts("packet", "pkt=middle op=write size=4k-", 8);
    counts("packet", "pkt=last op=write", 4);
    counts("rmw", "", 2);
    traffic();
}

/* A NOP is no message, and nothing after it is "after" it */
UCS_TEST_F(test_emu_select, nops) {
    counts("post", "op=nop", 1);
    counts("post", "op=send", 0);
    counts("packet", "", 0);
    /* One segment, with a completion */
    (**a).command("raw_bytes " + std::to_string(a->qp) +
                  " 00000000000000010000000800000000");
    EXPECT_EQ((uint64_t)IBV_WC_SUCCESS, a->poll().status);
}

UCS_TEST_F(test_emu_select, by_what_was_before) {
    counts("post", "prev=write", 2);                /* write, read */
    counts("post", "prev=write prev_size=4k-", 1);  /* read */
    counts("post", "prev=faa,cas", 2);              /* cas, send */
    counts("post", "op=cas prev=faa prev_size=8", 1);
    counts("post", "prev=send_imm", 0);
    traffic();
}

UCS_TEST_F(test_emu_select, by_number_and_try) {
    fault("post op=write nth=2 count", 1);
    fault("post op=write nth=2 count=2 count", 2);
    fault("packet op=faa drop", 1);
    counts("packet", "op=faa try=first", 1);
    counts("packet", "op=faa try=again", 1);
    traffic();
}

/* Rules match and fire, and the list and its status have the counts */
UCS_TEST_F(test_emu_select, list_tells_how_often) {
    json_t *root, *rule;
    size_t i;

    fault("post op=write nth=3 count=all count", 2);
    fault("post op=write host=1 link=1 count", 0);
    traffic();

    rcv::process check({rcv::fabric::tool(), "fault", "-n", fabric().name(),
                        "list", "--check"});
    EXPECT_EQ(3, check.wait());
    EXPECT_NE(std::string::npos, check.output().find("1 of 2 rules never"))
            << check.output();

    root = json_loads(fabric().command("fault", {"list", "--json"}).c_str(), 0,
                      NULL);
    ASSERT_TRUE(root != NULL);
    ASSERT_EQ(2u, json_array_size(root));
    json_array_foreach(root, i, rule) {
        EXPECT_EQ((i == 0) ? 4 : 0,
                  json_integer_value(json_object_get(rule, "matched")));
        EXPECT_EQ((i == 0) ? 2 : 0,
                  json_integer_value(json_object_get(rule, "fired")));
    }
    json_decref(root);
}

UCS_TEST_F(test_emu_select, trace_tells_all_of_an_operation) {
    entry_t common = {{"link", "0"}, {"qpn", std::to_string(b->qpn)},
                      {"src_qpn", std::to_string(a->qpn)}, {"host", "1"},
                      {"src_host", "0"}, {"type", "rc"},
                      {"rkey", hex(b->rkey)}};
    std::vector<entry_t> entries;
    entry_t write, lost, again, faa;

    fault("ack op=faa drop");
    a->put(0, 0x1234);
    a->write(*b, 1, 0, 8, 16);
    a->faa(*b, 2, 8, 16, 3);
    EXPECT_TRUE(a->completes(1, IBV_WC_SUCCESS));
    EXPECT_TRUE(a->completes(2, IBV_WC_SUCCESS));

    write           = common;
    write["seq"]    = "1";
    write["op"]     = "write";
    write["wqe"]    = "0";
    write["addr"]   = hex(b->addr + 16);
    write["length"] = "8";
    write["data"]   = "0x1234";
    write["ack"]    = "sent";
    faa             = write;
    faa["op"]       = "faa";
    faa["wqe"]      = "1";
    faa["add"]      = "0x3";
    lost            = faa;
    lost["seq"]     = "2";
    lost["ack"]     = "lost";
    again           = faa;
    again["seq"]    = "3";

    entries = json_trace();
    ASSERT_EQ(3u, entries.size());
    expect_fields(entries[0], write);
    expect_fields(entries[1], lost);
    expect_fields(entries[2], again);

    /* The same request, executed once; when */
    EXPECT_EQ("false", entries[1]["duplicate"]);
    EXPECT_EQ("true", entries[2]["duplicate"]);
    EXPECT_EQ(entries[1]["id"], entries[2]["id"]);
    EXPECT_NE(entries[0]["id"], entries[1]["id"]);
    EXPECT_LT(std::stoull(entries[0]["time_ns"]),
              std::stoull(entries[1]["time_ns"]));
    EXPECT_LT(std::stoull(entries[1]["time_ns"]),
              std::stoull(entries[2]["time_ns"]));
}
