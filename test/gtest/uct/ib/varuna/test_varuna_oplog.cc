/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Log entries, the requester's ring, and what a completion log proves.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_oplog.h>
}

#include <deque>
#include <vector>

class test_varuna_oplog : public ucs::test {
protected:
    static constexpr uint32_t SIZE = UCT_VARUNA_LOG_SIZE;

    virtual void init()
    {
        ucs::test::init();
        uct_varuna_oplog_reset(&m_log, m_entries);
        m_ring.assign(SIZE, 0);
    }

    /* Any distinct, valid user-space address */
    static const void *req(uintptr_t index)
    {
        return (const void*)(0x7f0000001000ul + (index * 64));
    }

    /* Have the ring start at this number, as if it had been used before */
    void start_at(uint32_t sn)
    {
        m_log.head = sn;
        m_log.tail = sn;
    }

    /* The log write of @a sn is executed at the responder */
    void log_write(const void *r, uint32_t sn)
    {
        m_ring[uct_varuna_log_slot(sn)] = uct_varuna_log_entry(r, sn, 0);
    }

    /* @a ahead: how many were posted on this lane behind @a sn */
    bool executed(const void *r, uint32_t sn, uint32_t ahead = 1u << 30)
    {
        return uct_varuna_complog_executed(m_ring.data(), r, sn,
                                           sn + ahead) != 0;
    }

    uct_varuna_oplog_t    m_log;
    uint64_t              m_entries[UCT_VARUNA_LOG_SIZE];
    std::vector<uint64_t> m_ring;
};

UCS_TEST_F(test_varuna_oplog, entry_fields) {
    static const uintptr_t addrs[] = {0x1, 0x1000, 0x7fffffffffff,
                                      0xffffffffffff};

    for (uintptr_t addr : addrs) {
        for (uint32_t sn : {0u, 1u, 0x7fffu, 0x8000u, 0x12345678u, ~0u}) {
            for (int finished : {0, 1, 2}) {
                uint64_t entry = uct_varuna_log_entry((void*)addr, sn,
                                                      finished);
                EXPECT_EQ(addr, uct_varuna_log_entry_id(entry));
                EXPECT_EQ(sn & 0x7fff, uct_varuna_log_entry_ts(entry));
                EXPECT_EQ(finished ? UCT_VARUNA_LOG_FINISHED : 0,
                          entry & UCT_VARUNA_LOG_FINISHED);
            }
        }
    }

    /* The layout goes over the wire: pin it */
    EXPECT_EQ(0xabcdef012345000bul,
              uct_varuna_log_entry((void*)0xabcdef012345, 5, 1));
    EXPECT_EQ(0xabcdef012345fffeul,
              uct_varuna_log_entry((void*)0xabcdef012345, 0x7fff, 0));
}

/* An entry has no room for the tag, and proves the execution all the same; one of
 * another request proves nothing */
UCS_TEST_F(test_varuna_oplog, tagged_addresses) {
    static const uint64_t tags[] = {
        0x5aul << 56,              /* Top-byte ignore, memory tags */
        0x2aul << 57,              /* LAM_U57 */
        0x7ffful << 48,            /* LAM_U48 */
        1ul << 56,                 /* An address of five-level paging */
        0xfffful << 48
    };

    for (uint64_t tag : tags) {
        const void *tagged = (void*)(tag | 0x7f0123456780ul);
        const void *other  = (void*)(tag | 0x7f0123456680ul);
        uint32_t sn        = uct_varuna_oplog_push(&m_log, m_entries, tagged);

        m_ring[uct_varuna_log_slot(sn)] =
                m_entries[uct_varuna_log_slot(sn)];
        EXPECT_TRUE(executed(tagged, sn, 0)) << tagged;
        EXPECT_FALSE(executed(other, sn, 0)) << tagged;
        uct_varuna_oplog_finish(&m_log, m_entries, sn);
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

UCS_TEST_F(test_varuna_oplog, first_number_is_one) {
    EXPECT_EQ(1u, uct_varuna_oplog_push(&m_log, m_entries, req(0)));
    EXPECT_EQ(2u, uct_varuna_oplog_push(&m_log, m_entries, req(1)));

    uct_varuna_oplog_reset(&m_log, m_entries);
    EXPECT_EQ(m_log.head, m_log.tail);
    EXPECT_EQ(1u, uct_varuna_oplog_push(&m_log, m_entries, req(2)));
    EXPECT_EQ(uct_varuna_log_req_id(req(2)),
              uct_varuna_log_entry_id(m_entries[1]));
}

UCS_TEST_F(test_varuna_oplog, ring_full) {
    for (uint32_t i = 0; i < SIZE; ++i) {
        ASSERT_FALSE(uct_varuna_oplog_is_full(&m_log)) << i;
        uct_varuna_oplog_push(&m_log, m_entries, req(i));
    }
    EXPECT_TRUE(uct_varuna_oplog_is_full(&m_log));

    /* A finished one in the middle doesn't free its slot: the oldest does */
    uct_varuna_oplog_finish(&m_log, m_entries, 1 + (SIZE / 2));
    EXPECT_TRUE(uct_varuna_oplog_is_full(&m_log));
    EXPECT_EQ(1u, m_log.tail);

    uct_varuna_oplog_finish(&m_log, m_entries, 1);
    EXPECT_FALSE(uct_varuna_oplog_is_full(&m_log));
    EXPECT_EQ(2u, m_log.tail);

    /* The freed slot, and no other, is used again */
    uint32_t sn = uct_varuna_oplog_push(&m_log, m_entries, req(1000));
    EXPECT_EQ(SIZE + 1, sn);
    EXPECT_EQ(uct_varuna_log_slot(1), uct_varuna_log_slot(sn));
    EXPECT_TRUE(uct_varuna_oplog_is_full(&m_log));
}

UCS_TEST_F(test_varuna_oplog, finish_out_of_order) {
    for (unsigned i = 0; i < 5; ++i) {
        uct_varuna_oplog_push(&m_log, m_entries, req(i));
    }

    uct_varuna_oplog_finish(&m_log, m_entries, 5);
    uct_varuna_oplog_finish(&m_log, m_entries, 3);
    uct_varuna_oplog_finish(&m_log, m_entries, 2);
    EXPECT_EQ(1u, m_log.tail);
    uct_varuna_oplog_finish(&m_log, m_entries, 1);
    EXPECT_EQ(4u, m_log.tail);
    uct_varuna_oplog_finish(&m_log, m_entries, 4);
    EXPECT_EQ(6u, m_log.tail);
    EXPECT_EQ(m_log.head, m_log.tail);
}

UCS_TEST_F(test_varuna_oplog, finish_sets_only_the_flag) {
    uint32_t sn     = uct_varuna_oplog_push(&m_log, m_entries, req(7));
    uint64_t before = m_entries[uct_varuna_log_slot(sn)];

    uct_varuna_oplog_finish(&m_log, m_entries, sn);
    EXPECT_EQ(before | UCT_VARUNA_LOG_FINISHED,
              m_entries[uct_varuna_log_slot(sn)]);
}

UCS_TEST_F(test_varuna_oplog, wrap_around_32_bit) {
    start_at(UINT32_MAX - 10);
    for (unsigned i = 0; i < SIZE; ++i) {
        ASSERT_FALSE(uct_varuna_oplog_is_full(&m_log));
        EXPECT_EQ(UINT32_MAX - 10 + i,
                  uct_varuna_oplog_push(&m_log, m_entries, req(i)));
    }
    EXPECT_TRUE(uct_varuna_oplog_is_full(&m_log));
    for (unsigned i = 0; i < SIZE; ++i) {
        uct_varuna_oplog_finish(&m_log, m_entries, UINT32_MAX - 10 + i);
    }
    EXPECT_EQ(UINT32_MAX - 10 + SIZE, m_log.tail);
    EXPECT_EQ(m_log.head, m_log.tail);
}

UCS_TEST_F(test_varuna_oplog, empty_ring_proves_nothing) {
    /* Timestamp 0 equals, or is circularly later than, many of these */
    for (uint32_t sn = 0; sn <= 2 * UCT_VARUNA_LOG_TS_MASK; ++sn) {
        ASSERT_FALSE(executed(req(1), sn)) << sn;
    }

    /* Nor does a slot without an address, whatever timestamp it has */
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

    /* The flag belongs to the request log; here it has no meaning */
    m_ring[3] |= UCT_VARUNA_LOG_FINISHED;
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

/* The ring was used by an incarnation before, and not cleared: no matter how
 * many numbers were spent elsewhere since, its entries prove nothing. */
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
    m_ring[3] = uct_varuna_log_entry(req(3), 4, 0);
    EXPECT_FALSE(executed(req(3), 3));
    m_ring[3] = uct_varuna_log_entry(req(3), 3 + SIZE + 1, 0);
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

/* Follow a model for some laps beyond the wrap-around of the timestamp: every
 * entry is proven from its log write on, and never before it. */
UCS_TEST_F(test_varuna_oplog, random_laps) {
    struct entry {
        uint32_t   sn;
        const void *r;
        bool       written, finished;
    };
    std::deque<entry> inflight;
    unsigned next_req = 0, laps_seen = 0;
    bool was_full     = false;

    start_at((1u << UCT_VARUNA_LOG_TS_BITS) - (2 * SIZE) -
             (ucs::rand() % SIZE));

    for (unsigned step = 0; step < 20000; ++step) {
        switch (ucs::rand() % 4) {
        case 0:
        case 1:
            ASSERT_EQ(inflight.size() == SIZE,
                      !!uct_varuna_oplog_is_full(&m_log));
            if (uct_varuna_oplog_is_full(&m_log)) {
                was_full = true;
                break;
            }
            inflight.push_back({0, req(++next_req), false, false});
            inflight.back().sn = uct_varuna_oplog_push(&m_log, m_entries,
                                                       inflight.back().r);
            laps_seen += (uct_varuna_log_slot(inflight.back().sn) == 0);
            break;
        case 2: /* The responder executes the next log write */
            for (entry &e : inflight) {
                if (!e.written) {
                    log_write(e.r, e.sn);
                    e.written = true;
                    break;
                }
            }
            break;
        case 3: /* One which was executed is finished, not always the oldest */
            if (!inflight.empty()) {
                entry &e = inflight[ucs::rand() % inflight.size()];
                if (e.written && !e.finished) {
                    uct_varuna_oplog_finish(&m_log, m_entries, e.sn);
                    e.finished = true;
                }
            }
            break;
        }

        while (!inflight.empty() && inflight.front().finished) {
            inflight.pop_front();
        }

        ASSERT_EQ(inflight.size(), m_log.head - m_log.tail);
        for (const entry &e : inflight) {
            ASSERT_EQ(e.written, executed(e.r, e.sn, m_log.head - 1 - e.sn))
                    << "step " << step << " sn " << e.sn;
        }
    }

    EXPECT_GT(laps_seen, 4u);
    EXPECT_TRUE(was_full);
}
