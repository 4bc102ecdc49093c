/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Decisions about a window by the contents of its targets: each rule by itself, and
 * random windows of overlapping writes, of which a random number was executed.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_plan.h>
}

#include <random>
#include <string>
#include <vector>

#define EXECUTED    UCT_VARUNA_WINDOW_EXECUTED
#define LOST        UCT_VARUNA_WINDOW_LOST
#define UNKNOWN     UCT_VARUNA_WINDOW_UNKNOWN

class test_varuna_window : public ucs::test {
protected:
    static constexpr uint64_t BASE = 0xfffffffffff00000ul; /* Near the end */

    struct write {
        size_t      addr;     /* In the memory */
        std::string data;
        bool        is_known;
    };

    virtual void init()
    {
        ucs::test::init();
        memory.assign(64, '.');
        chunk     = 16;
        unordered = false;
    }

    static void copy(const void *arg, size_t offset, void *dst, size_t length)
    {
        memcpy(dst, static_cast<const write*>(arg)->data.data() + offset, length);
    }

    void add(size_t addr, const std::string &data, bool is_known = true)
    {
        writes.push_back({addr, data, is_known});
    }

    /* Execute like a queue pair: the first writes, and some bytes of the next one */
    void execute(size_t count, size_t torn = 0)
    {
        for (size_t i = 0; i < count; ++i) {
            memory.replace(writes[i].addr, writes[i].data.size(), writes[i].data);
        }
        if (count < writes.size()) {
            memory.replace(writes[count].addr, torn, writes[count].data, 0, torn);
        }
    }

    std::vector<uct_varuna_window_verdict_t> decide()
    {
        uct_varuna_window_t *window =
                uct_varuna_window_create(writes.size(), chunk, copy, unordered);
        std::vector<uct_varuna_window_verdict_t> verdicts;
        unsigned index;
        size_t offset, length;

        for (write &w : writes) {
            uct_varuna_window_add(window, BASE + w.addr, w.data.size(), &w, w.is_known);
        }
        while ((length = uct_varuna_window_next(window, &index, &offset)) > 0) {
            EXPECT_TRUE(writes[index].is_known);
            EXPECT_LE(length, chunk);
            uct_varuna_window_feed(window, memory.data() + writes[index].addr + offset,
                                   length);
        }
        found = uct_varuna_window_decide(window);
        EXPECT_EQ(writes.size(), uct_varuna_window_num_ops(window));
        for (unsigned i = 0; i < writes.size(); ++i) {
            verdicts.push_back(uct_varuna_window_op(window, i)->verdict);
        }
        uct_varuna_window_destroy(window);
        return verdicts;
    }

    typedef std::vector<uct_varuna_window_verdict_t> verdicts;

    std::string        memory;
    std::vector<write> writes;
    size_t             chunk;
    bool               unordered;
    int                found;
};

/* The corruption that this project prevents: both were executed */
UCS_TEST_F(test_varuna_window, older_write_to_the_same_word) {
    add(8, "AAAAAAAA");
    add(8, "BBBBBBBB");
    execute(2);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED}), decide());
    EXPECT_TRUE(found);
}

UCS_TEST_F(test_varuna_window, first_of_two_to_the_same_word) {
    add(8, "AAAAAAAA");
    add(8, "BBBBBBBB");
    execute(1);
    EXPECT_EQ(verdicts({EXECUTED, LOST}), decide());
}

/* Without the writes in between, only bytes differ that the third has changed */
UCS_TEST_F(test_varuna_window, a_b_a) {
    for (size_t count = 1; count <= 3; ++count) {
        writes.clear();
        add(8, "AAAAAAAA");
        add(8, "BBBBBBBB");
        add(8, "AAAAAAAA");
        execute(count);
        EXPECT_EQ((count == 2) ? verdicts({EXECUTED, EXECUTED, LOST}) :
                                 verdicts({EXECUTED, EXECUTED, EXECUTED}), decide());
    }
}

UCS_TEST_F(test_varuna_window, separate_words) {
    for (size_t count = 0; count <= 3; ++count) {
        memory.assign(64, '.');
        writes.clear();
        add(0, "AAAAAAAA");
        add(8, "BBBBBBBB");
        add(16, "CCCCCCCC");
        execute(count);
        verdicts expected(3, (count == 0) ? UNKNOWN : LOST);
        std::fill_n(expected.begin(), count, EXECUTED);
        EXPECT_EQ(expected, decide());
        EXPECT_EQ(count > 0, !!found);
    }
}

UCS_TEST_F(test_varuna_window, written_by_others_since) {
    add(0, "AAAAAAAA");
    add(8, "BBBBBBBB");
    execute(2);
    memory.replace(0, 1, "x");
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN}), decide());
    EXPECT_FALSE(found);
}

/* Packets of a write are executed one by one */
UCS_TEST_F(test_varuna_window, torn_over_the_prefix) {
    chunk = 5;
    for (size_t torn = 0; torn <= 24; ++torn) {
        memory.assign(64, '.');
        writes.clear();
        add(4, "aaaaaaaaaaaaaaaaaaaaaaaa");
        add(4, "bbbbbbbbbbbbbbbbbbbbbbbb");
        add(40, "cccc");
        execute(1, torn);
        EXPECT_EQ((torn == 24) ? verdicts({EXECUTED, EXECUTED, LOST}) :
                                 verdicts({EXECUTED, LOST, LOST}), decide());
    }
}

/* The bytes of an atomic are unknown, and so is memory of a GPU */
UCS_TEST_F(test_varuna_window, unknown_operations) {
    add(0, "AAAAAAAA");
    add(8, "????????", false);
    add(16, "BBBBBBBB");
    add(24, "????????", false);
    add(32, "CCCCCCCC");

    execute(5);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, EXECUTED, EXECUTED, EXECUTED}), decide());
    memory.replace(32, 8, "........");
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, EXECUTED, UNKNOWN, LOST}), decide());
    memory.replace(16, 8, "........");
    EXPECT_EQ(verdicts({EXECUTED, UNKNOWN, LOST, LOST, LOST}), decide());
    memory.replace(0, 8, "........");
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN}), decide());
    EXPECT_FALSE(found);
}

UCS_TEST_F(test_varuna_window, atomic_on_a_written_word) {
    add(0, "AAAAAAAA");
    add(0, "????????", false);
    execute(1);
    memory.replace(0, 8, "AAAAAAAB"); /* It was executed, and has added one */
    add(8, "BBBBBBBB");
    /* No known bytes of the first remain, and the third was not executed */
    EXPECT_EQ(verdicts({EXECUTED, UNKNOWN, LOST}), decide());
    memory.replace(8, 8, "BBBBBBBB");
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, EXECUTED}), decide());
}

UCS_TEST_F(test_varuna_window, only_unknown_operations) {
    add(0, "????????", false);
    add(8, "????????", false);
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN}), decide());
    EXPECT_FALSE(found);
}

UCS_TEST_F(test_varuna_window, empty_writes) {
    add(0, "");
    add(0, "A");
    add(1, "");
    EXPECT_EQ(verdicts({LOST, UNKNOWN, LOST}), decide());
    execute(3);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, LOST}), decide());
}

UCS_TEST_F(test_varuna_window, unordered_is_decided_one_by_one) {
    unordered = true;
    add(0, "AAAAAAAA");
    add(8, "BBBBBBBB");
    add(16, "CCCCCCCC");
    execute(3);
    memory.replace(8, 8, "........");
    EXPECT_EQ(verdicts({EXECUTED, UNKNOWN, EXECUTED}), decide());
    EXPECT_TRUE(found);
}

/* To repeat the first would destroy what the second has written */
UCS_TEST_F(test_varuna_window, unordered_overlap_of_a_lost_one) {
    unordered = true;
    add(0, "AAAAAAAA");
    add(4, "BBBBBBBB");
    execute(2);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED}), decide());
    memory.replace(0, 4, "....");
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN}), decide());
    memory.replace(0, 4, "AAAA");
    memory.replace(8, 4, "....");
    EXPECT_EQ(verdicts({EXECUTED, UNKNOWN}), decide());
}

/* Nothing is seen of a write that others cover: it was executed before them, or is
 * repeated before them */
UCS_TEST_F(test_varuna_window, unordered_covered) {
    unordered = true;
    add(0, "AAAAAAAA");
    add(0, "BBBB");
    add(4, "CCCC");
    execute(3);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, EXECUTED}), decide());
    memory.replace(0, 8, "........");
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN, UNKNOWN}), decide());
    EXPECT_FALSE(found);
    memory.replace(4, 4, "CCCC");
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN, UNKNOWN}), decide());
    /* Alone, it is seen */
    memory.replace(0, 8, "AAAAAAAA");
    EXPECT_EQ(verdicts({EXECUTED, UNKNOWN, UNKNOWN}), decide());
}

/* Of three writes to one place, a prefix was executed */
UCS_TEST_F(test_varuna_window, unordered_prefix_of_one_place) {
    unordered = true;
    add(0, "AAAAAAAA");
    add(0, "BBBBBBBB");
    add(0, "CCCCCCCC");
    EXPECT_EQ(verdicts({UNKNOWN, UNKNOWN, UNKNOWN}), decide());
    execute(1);
    EXPECT_EQ(verdicts({EXECUTED, UNKNOWN, UNKNOWN}), decide());
    execute(2);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, UNKNOWN}), decide());
    execute(3);
    EXPECT_EQ(verdicts({EXECUTED, EXECUTED, EXECUTED}), decide());
}

/*
 * Random windows of few values on few bytes. The result of a decision must be possible
 * for a queue pair: no byte returns to an earlier value.
 */
UCS_TEST_F(test_varuna_window, random_prefix) {
    unsigned longer = 0, exact = 0, none = 0, torn_seen = 0;
    std::mt19937 rng(ucs::rand());

    for (unsigned round = 0; (round < 20000) && !HasFailure(); ++round) {
        SCOPED_TRACE(testing::Message() << "round " << round);
        memory.assign(64, '.');
        writes.clear();
        chunk         = 1 + (rng() % 20);
        size_t span   = (rng() % 2) ? 8 : 60;
        unsigned count = 1 + (rng() % 10);
        for (unsigned i = 0; i < count; ++i) {
            size_t addr = rng() % span;
            std::string data;
            for (size_t length = 1 + (rng() % (span - addr)); length > 0; --length) {
                data += "AB"[rng() % 2];
            }
            add(addr, data);
        }

        size_t executed = rng() % (count + 1);
        size_t torn     = (executed == count) ? 0 :
                          (rng() % writes[executed].data.size());
        execute(executed, torn);

        verdicts said = decide();
        size_t prefix = 0;
        while ((prefix < count) && (said[prefix] == EXECUTED)) {
            ++prefix;
        }
        for (size_t i = prefix; i < count; ++i) {
            EXPECT_EQ(found ? LOST : UNKNOWN, said[i]);
        }

        /* Not shorter, because newer data would be overwritten */
        EXPECT_GE(prefix, executed);

        /* If it is longer, the memory equals the result of its operations, except for a
             * part of the next one */
        std::string now = memory;
        memory.assign(64, '.');
        execute(prefix);
        for (size_t i = 0; i < memory.size(); ++i) {
            bool in_next = (prefix < count) && (i >= writes[prefix].addr) &&
                           (i < writes[prefix].addr + writes[prefix].data.size());
            if (in_next && (now[i] == writes[prefix].data[i - writes[prefix].addr])) {
                continue;
            }
            EXPECT_EQ(memory[i], now[i]) << "byte " << i;
        }
        longer    += prefix > executed;
        exact     += found && (prefix == executed);
        none      += !found;
        torn_seen += torn > 0;
    }

    EXPECT_GT(longer, 100u);
    EXPECT_GT(exact, 1000u);
    EXPECT_GT(none, 100u);
    EXPECT_GT(torn_seen, 1000u);
}
