/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Log entries, and what a completion log proves.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_oplog.h>
}

#include <vector>

class test_varuna_oplog : public ucs::test {
protected:
    static constexpr uint32_t SIZE = UCT_VARUNA_LOG_SIZE;

    virtual void init()
    {
        ucs::test::init();
        m_ring.assign(SIZE, 0);
    }

    /* Any distinct, valid user-space address */
    static const void *req(uintptr_t index)
    {
        return (const void*)(0x7f0000001000ul + (index * 64));
    }

    /* The log write of @a sn is executed at the responder */
    void log_write(const void *r, uint32_t sn)
    {
        m_ring[uct_varuna_log_slot(sn)] = uct_varuna_log_entry(r, sn);
    }

    /* @a ahead: number of requests posted on this lane after @a sn */
    bool executed(const void *r, uint32_t sn, uint32_t ahead = 1u << 30)
    {
        return uct_varuna_complog_executed(m_ring.data(), r, sn,
                                           sn + ahead) != 0;
    }

    std::vector<uint64_t> m_ring;
};

UCS_TEST_F(test_varuna_oplog, entry_fields) {
    static const uintptr_t addrs[] = {0x1, 0x1000, 0x7fffffffffff,
                                      0xffffffffffff};

    for (uintptr_t addr : addrs) {
        for (uint32_t sn : {0u, 1u, 0x7fffu, 0x8000u, 0x12345678u, ~0u}) {
            uint64_t entry = uct_varuna_log_entry((void*)addr, sn);

            EXPECT_EQ(addr, uct_varuna_log_entry_id(entry));
            EXPECT_EQ(sn & 0x7fff, uct_varuna_log_entry_ts(entry));
            EXPECT_EQ(0u, entry & 1);
        }
    }

    /* The layout goes over the wire: pin it */
    EXPECT_EQ(0xabcdef012345000aul,
              uct_varuna_log_entry((void*)0xabcdef012345, 5));
    EXPECT_EQ(0xabcdef012345fffeul,
              uct_varuna_log_entry((void*)0xabcdef012345, 0x7fff));
}

/* An entry has no room for the tag, but proves the execution; one of another request
 * proves nothing */
UCS_TEST_F(test_varuna_oplog, tagged_addresses) {
    static const uint64_t tags[] = {
        0x5aul << 56,              /* Top-byte ignore, memory tags */
        0x2aul << 57,              /* LAM_U57 */
        0x7ffful << 48,            /* LAM_U48 */
        1ul << 56,                 /* An address of five-level paging */
        0xfffful << 48
    };

    uint32_t sn = 0;

    for (uint64_t tag : tags) {
        const void *tagged = (void*)(tag | 0x7f0123456780ul);
        const void *other  = (void*)(tag | 0x7f0123456680ul);

        log_write(tagged, ++sn);
        EXPECT_TRUE(executed(tagged, sn, 0)) << tagged;
        EXPECT_FALSE(executed(other, sn, 0)) << tagged;
    }
}

UCS_TEST_F(test_varuna_oplog, timestamp_compare) {
    static const uint16_t half = 1 << (UCT_VARUNA_LOG_TS_BITS - 1);
    static const uint16_t mask = UCT_VARUNA_LOG_TS_MASK;

    for (uint32_t base : {0u, 1u, 63u, 64u, 0x3fffu, 0x4000u, 0x7fbfu,
                          0x7fffu}) {
        uint16_t b = base;
        EXPECT_TRUE(uct_varuna_log_ts_ge(b, b));
        EXPECT_TRUE(uct_varuna_log_ts_ge((b + 1) & mask, b));
        EXPECT_FALSE(uct_varuna_log_ts_ge(b, (b + 1) & mask));
        EXPECT_TRUE(uct_varuna_log_ts_ge((b + half - 1) & mask, b));
        EXPECT_FALSE(uct_varuna_log_ts_ge((b + half) & mask, b));
        EXPECT_FALSE(uct_varuna_log_ts_ge((b - 1) & mask, b));
    }
}

UCS_TEST_F(test_varuna_oplog, empty_ring_proves_nothing) {
    /* Timestamp 0 equals, or is circularly later than, many of these */
    for (uint32_t sn = 0; sn <= 2 * UCT_VARUNA_LOG_TS_MASK; ++sn) {
        ASSERT_FALSE(executed(req(1), sn)) << sn;
    }

    /* Nor does a slot without an address, with any timestamp */
    for (uint32_t ts = 0; ts <= UCT_VARUNA_LOG_TS_MASK; ++ts) {
        m_ring[uct_varuna_log_slot(ts)] = (uint64_t)ts << 1;
        ASSERT_FALSE(executed(req(1), ts)) << ts;
    }
}

UCS_TEST_F(test_varuna_oplog, executed_same_entry) {
    log_write(req(3), 3);

    EXPECT_TRUE(executed(req(3), 3));
    EXPECT_FALSE(executed(req(4), 3)) << "other request, same timestamp";
    EXPECT_FALSE(executed(req(3), 2)) << "other slot";
    EXPECT_FALSE(executed(req(3), 3 + SIZE)) << "next lap has not come";

    /* The lowest bit has no meaning */
    m_ring[3] |= 1;
    EXPECT_TRUE(executed(req(3), 3));
}

UCS_TEST_F(test_varuna_oplog, later_lap_proves_earlier) {
    for (unsigned laps = 1; (laps * SIZE) < (1 << 14); laps *= 2) {
        log_write(req(9), 3 + (laps * SIZE));
        EXPECT_TRUE(executed(req(3), 3)) << laps;
        EXPECT_FALSE(executed(req(3), 3 + ((laps + 1) * SIZE))) << laps;
    }
}

UCS_TEST_F(test_varuna_oplog, later_lap_must_have_been_posted) {
    log_write(req(9), 3 + (2 * SIZE));
    EXPECT_TRUE(executed(req(3), 3, 2 * SIZE));
    EXPECT_FALSE(executed(req(3), 3, (2 * SIZE) - 1));
    EXPECT_FALSE(executed(req(3), 3, 0));

    log_write(req(3), 3);
    EXPECT_TRUE(executed(req(3), 3, 0));
}

/* The ring was used by an earlier incarnation, and not cleared: its entries prove
 * nothing, after any number of requests elsewhere. */
UCS_TEST_F(test_varuna_oplog, left_over_proves_nothing) {
    static const uint32_t period = 1u << UCT_VARUNA_LOG_TS_BITS;

    for (uint32_t sn = 1; sn <= SIZE; ++sn) {
        log_write(req(0), sn);
    }
    for (uint32_t sn = SIZE + 1; sn < period + 1; ++sn) {
        for (uint32_t ahead : {0u, 1u, SIZE - 1}) {
            ASSERT_FALSE(executed(req(0), sn, ahead)) << sn;
        }
    }
    for (uint32_t sn = period + 1; sn <= period + SIZE; ++sn) {
        ASSERT_FALSE(executed(req(1), sn, SIZE - 1)) << sn;
    }
}

UCS_TEST_F(test_varuna_oplog, foreign_timestamp_proves_nothing) {
    /* No lap of ours puts this timestamp into this slot */
    m_ring[3] = uct_varuna_log_entry(req(3), 4);
    EXPECT_FALSE(executed(req(3), 3));
    m_ring[3] = uct_varuna_log_entry(req(3), 3 + SIZE + 1);
    EXPECT_FALSE(executed(req(3), 3));
}

UCS_TEST_F(test_varuna_oplog, timestamp_wrap_around) {
    static const uint32_t period = 1u << UCT_VARUNA_LOG_TS_BITS;

    for (uint32_t base : {period, 2 * period, 0u /* 32-bit wrap as well */}) {
        uint32_t before = base - 1;
        uint32_t same_slot_after = before + SIZE;

        m_ring.assign(SIZE, 0);
        log_write(req(1), before);
        EXPECT_TRUE(executed(req(1), before));
        EXPECT_FALSE(executed(req(2), same_slot_after));

        log_write(req(2), same_slot_after);
        EXPECT_TRUE(executed(req(1), before)) << "overwritten by a later lap";
        EXPECT_TRUE(executed(req(2), same_slot_after));

        /* Timestamp 0 itself is as good as any other */
        EXPECT_FALSE(executed(req(3), base));
        log_write(req(3), base);
        EXPECT_TRUE(executed(req(3), base));
        EXPECT_TRUE(executed(req(4), base - SIZE));
        EXPECT_FALSE(executed(req(4), base + SIZE));
    }
}

/* Follow a lane for some laps beyond the wrap-around of the timestamp, with more
 * requests under way than the log has entries. The newest request that the log proves
 * is the last executed one, and it never proves a request that was not executed. */
UCS_TEST_F(test_varuna_oplog, random_laps) {
    static const unsigned max_inflight = UCT_VARUNA_MAX_REQS;
    uint32_t oldest, executed_to, next;
    unsigned laps_seen = 0;
    unsigned most      = 0;

    oldest      = (1u << UCT_VARUNA_LOG_TS_BITS) - (2 * SIZE) - (ucs::rand() % SIZE);
    executed_to = oldest - 1;
    next        = oldest;

    for (unsigned step = 0; step < 4000; ++step) {
        /* Some are posted, the responder executes some, and some of these finish */
        next        += ucs::rand() % (max_inflight - (next - oldest) + 1);
        for (unsigned n = ucs::rand() % (next - executed_to); n > 0; --n) {
            ++executed_to;
            log_write(req(executed_to % 1000), executed_to);
            laps_seen += (uct_varuna_log_slot(executed_to) == 0);
        }

        most         = ucs_max(most, next - oldest);
        bool is_seen = (executed_to == oldest - 1);
        for (uint32_t sn = oldest; sn != next; ++sn) {
            bool proven = executed(req(sn % 1000), sn, next - 1 - sn);

            ASSERT_FALSE(proven && ((int32_t)(sn - executed_to) > 0))
                    << "step " << step << " sn " << sn;
            is_seen |= proven && (sn == executed_to);
        }
        ASSERT_TRUE(is_seen) << "step " << step << " sn " << executed_to;

        oldest += ucs::rand() % (executed_to - oldest + 2);
    }

    EXPECT_GT(laps_seen, 100u);
    EXPECT_GT(most, 4 * SIZE);
}
