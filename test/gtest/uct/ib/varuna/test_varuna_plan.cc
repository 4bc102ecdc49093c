/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The classification of unfinished requests: each rule by itself, and all together
 * against a simulated lane that breaks at a random packet.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/core/varuna_plan.h>
}

#include <random>
#include <vector>

#define PUT         UCT_VARUNA_OP_PUT
#define GET         UCT_VARUNA_OP_GET
#define AM          UCT_VARUNA_OP_AM
#define ATOMIC      UCT_VARUNA_OP_ATOMIC
#define FLUSH       UCT_VARUNA_OP_FLUSH

#define REPEAT      UCT_VARUNA_VERDICT_REPEAT
#define EXECUTED    UCT_VARUNA_VERDICT_EXECUTED
#define AMBIGUOUS   UCT_VARUNA_VERDICT_AMBIGUOUS
#define LOST_DATA   UCT_VARUNA_VERDICT_LOST_DATA

/* Rules, one lane at a time: requests are added in posting order, then some of
 * the responder's evidence, then the plan is made. */
class test_varuna_plan : public ucs::test {
protected:
    static constexpr uint32_t PSN_MASK = 0xffffff;

    enum {
        FENCED   = UCS_BIT(0),
        UNLOGGED = UCS_BIT(1),
        UNPOSTED = UCS_BIT(2)
    };

    virtual void init()
    {
        ucs::test::init();
        start(1, 0);
    }

    void start(uint32_t sn, uint32_t psn)
    {
        m_ops.clear();
        m_ring.assign(UCT_VARUNA_LOG_SIZE, 0);
        m_sn       = sn;
        m_psn      = psn;
        m_evidence = {};
        m_evidence.acked_psn = psn;
    }

    static bool is_logged_kind(const uct_varuna_plan_op_t &op)
    {
        return (op.kind == PUT) || (op.kind == ATOMIC);
    }

    /* @return index of the new request */
    size_t add(uct_varuna_op_kind_t kind, unsigned flags = 0,
               uint32_t packets = 1)
    {
        uct_varuna_plan_op_t op = {};

        op.kind   = kind;
        op.posted = !(flags & UNPOSTED);
        op.fenced = !!(flags & FENCED);
        op.req    = (const void*)(0x10000ul + (m_ops.size() * 0x100));
        /* Entries that must be overwritten */
        op.verdict = (uct_varuna_verdict_t)77;
        if ((kind == PUT) || (kind == ATOMIC)) {
            op.log_sn = m_sn++;
            op.logged = op.posted && !(flags & UNLOGGED);
        }
        if (op.posted) {
            m_psn      += (kind == FLUSH) ? 0 : packets;
            op.end_psn  = m_psn;
            m_psn      += op.logged;
        }
        m_ops.push_back(op);
        return m_ops.size() - 1;
    }

    /* The log write of request @a i is executed */
    void log_has(size_t i)
    {
        const uct_varuna_plan_op_t &op = m_ops[i];

        ASSERT_TRUE(op.logged);
        m_ring[uct_varuna_log_slot(op.log_sn)] =
                uct_varuna_log_entry(op.req, op.log_sn);
    }

    void psn_is(uint32_t epsn)
    {
        m_evidence.has_psn = 1;
        m_evidence.epsn    = epsn & PSN_MASK;
    }

    /* Expected PSN: after the data of request @a i, before its log write */
    void psn_after(size_t i)
    {
        psn_is(m_ops[i].end_psn);
    }

    void make()
    {
        m_evidence.log      = m_ring.data();
        m_evidence.next_psn = m_psn;
        memset(&m_result, 0xee, sizeof(m_result));
        uct_varuna_plan_make(m_ops.data(), m_ops.size(), &m_evidence,
                             &m_result);
        check_counts();
    }

    /* Counts must match the verdicts */
    void check_counts()
    {
        uct_varuna_plan_result_t expected = {};

        for (const uct_varuna_plan_op_t &op : m_ops) {
            bool on_wire = op.posted && (op.kind != FLUSH);
            expected.executed  += is_logged_kind(op) &&
                                  (op.verdict == EXECUTED);
            expected.lost      += is_logged_kind(op) && op.posted &&
                                  (op.verdict == REPEAT);
            expected.repeated  += on_wire && ((op.verdict == REPEAT) ||
                                              (op.verdict == AMBIGUOUS));
            expected.ambiguous += (op.verdict == AMBIGUOUS);
            expected.lost_data += (op.verdict == LOST_DATA);
        }
        EXPECT_EQ(expected.executed, m_result.executed);
        EXPECT_EQ(expected.lost, m_result.lost);
        EXPECT_EQ(expected.repeated, m_result.repeated);
        EXPECT_EQ(expected.ambiguous, m_result.ambiguous);
        EXPECT_EQ(expected.lost_data, m_result.lost_data);
        EXPECT_EQ(expected.lost_data > 0,
                  m_result.doubt == UCT_VARUNA_DOUBT_LOG);
    }

    void expect(const std::vector<uct_varuna_verdict_t> &verdicts)
    {
        make();
        ASSERT_EQ(verdicts.size(), m_ops.size());
        for (size_t i = 0; i < verdicts.size(); ++i) {
            EXPECT_EQ(verdicts[i], m_ops[i].verdict) << "request " << i;
        }
    }

    std::vector<uct_varuna_plan_op_t> m_ops;
    std::vector<uint64_t>             m_ring;
    uint32_t                          m_sn, m_psn;
    uct_varuna_evidence_t             m_evidence;
    uct_varuna_plan_result_t          m_result;
};

UCS_TEST_F(test_varuna_plan, empty) {
    expect({});
    psn_is(0);
    expect({});
    EXPECT_EQ(0u, m_result.repeated);
}

UCS_TEST_F(test_varuna_plan, log_proves_all_before) {
    add(PUT);
    add(ATOMIC);
    size_t last = add(PUT);
    add(PUT);
    add(PUT);
    /* Entries of the first two needn't be there: one lane executes in order */
    log_has(last);
    expect({EXECUTED, EXECUTED, EXECUTED, AMBIGUOUS, REPEAT});
    EXPECT_EQ(3u, m_result.executed);
    EXPECT_EQ(1u, m_result.lost);
    EXPECT_EQ(1u, m_result.ambiguous);
    EXPECT_EQ(2u, m_result.repeated);
}

UCS_TEST_F(test_varuna_plan, empty_log_proves_nothing) {
    /* Numbers which a zero timestamp would seem to be later than */
    start((1u << UCT_VARUNA_LOG_TS_BITS) - 2, 0);
    for (unsigned i = 0; i < 5; ++i) {
        add(PUT);
    }
    psn_is(0);
    expect({REPEAT, REPEAT, REPEAT, REPEAT, REPEAT});
    EXPECT_EQ(5u, m_result.lost);
}

UCS_TEST_F(test_varuna_plan, later_lap_proves) {
    /* Its slot was used again, hence its request is executed */
    size_t i = add(PUT);
    m_ring[uct_varuna_log_slot(m_ops[i].log_sn)] =
            uct_varuna_log_entry((void*)0x5000,
                                 m_ops[i].log_sn + UCT_VARUNA_LOG_SIZE);
    expect({AMBIGUOUS}); /* No request has this end */

    m_sn += UCT_VARUNA_LOG_SIZE;
    add(PUT);
    expect({EXECUTED, AMBIGUOUS});
}

UCS_TEST_F(test_varuna_plan, left_over_proves_nothing) {
    /* The ring's last user is more than half of all numbers ago */
    for (unsigned i = 1; i <= UCT_VARUNA_LOG_SIZE; ++i) {
        m_ring[uct_varuna_log_slot(i)] = uct_varuna_log_entry((void*)0x5000, i);
    }
    m_sn = 1 + (1 << 14) + (1 << 12);
    add(PUT);
    add(PUT);
    psn_is(0);
    expect({REPEAT, REPEAT});
}

UCS_TEST_F(test_varuna_plan, earlier_lap_proves_nothing) {
    start(1 + (3 * UCT_VARUNA_LOG_SIZE), 0);
    size_t i = add(PUT);
    m_ring[uct_varuna_log_slot(m_ops[i].log_sn)] =
            uct_varuna_log_entry(m_ops[i].req,
                                 m_ops[i].log_sn - UCT_VARUNA_LOG_SIZE);
    psn_is(0);
    expect({REPEAT});
}

UCS_TEST_F(test_varuna_plan, psn_decides_the_gap) {
    add(PUT, 0, 4);
    size_t gap = add(PUT, 0, 4);
    add(PUT, 0, 4);
    log_has(0);

    psn_after(gap);
    expect({EXECUTED, EXECUTED, REPEAT});

    psn_is(m_ops[gap].end_psn - 1); /* In the middle of a write */
    expect({EXECUTED, REPEAT, REPEAT});

    psn_is(m_ops[0].end_psn + 1);
    expect({EXECUTED, REPEAT, REPEAT});
    EXPECT_EQ(0u, m_result.ambiguous);
}

UCS_TEST_F(test_varuna_plan, psn_decides_the_first) {
    size_t gap = add(ATOMIC);
    add(PUT);
    psn_after(gap);
    expect({EXECUTED, REPEAT});
    psn_is(m_ops[gap].end_psn - 1);
    expect({REPEAT, REPEAT});
}

UCS_TEST_F(test_varuna_plan, psn_wrap_around) {
    for (uint32_t back = 0; back < 8; ++back) {
        /* The low 24 bits count: the requester's counter may be wider */
        for (uint32_t high : {0u, 0x01000000u, 0xff000000u}) {
            start(1, high | (PSN_MASK - back));
            add(PUT, 0, 2);
            size_t gap = add(PUT, 0, 2);
            add(PUT, 0, 2);
            log_has(0);
            psn_after(gap);
            expect({EXECUTED, EXECUTED, REPEAT});
            psn_is(m_ops[gap].end_psn - 1);
            expect({EXECUTED, REPEAT, REPEAT});
        }
    }
}

/* Many times more packets in total than 24 bits can distinguish. The positions also
 * wrap around, and there is no log. */
UCS_TEST_F(test_varuna_plan, psn_beyond_window) {
    static const uint32_t packets = 1u << 21;
    static const size_t   count   = 40;

    for (uint32_t first : {0u, 12345u, PSN_MASK - 5, 0xffffff00u, 0x80000000u}) {
        for (size_t executed = 0; executed < 8; ++executed) {
            start(1, first);
            for (size_t i = 0; i < count; ++i) {
                add(PUT, UNLOGGED, packets);
            }

            std::vector<uct_varuna_verdict_t> verdicts(count, REPEAT);
            std::fill_n(verdicts.begin(), executed, EXECUTED);
            psn_is(first + (executed * packets));
            expect(verdicts);
            EXPECT_EQ(UCT_VARUNA_DOUBT_NONE, m_result.doubt);
            if (executed > 0) {
                psn_is(first + (executed * packets) - 1);
                verdicts[executed - 1] = REPEAT;
                expect(verdicts);
            }
        }
    }
}

/* The newest completion is the origin, however many packets precede it */
UCS_TEST_F(test_varuna_plan, psn_is_counted_from_the_newest_completion) {
    static const uint32_t packets = (1u << 23) - 1;

    for (size_t completed : {1ul, 3ul, 30ul}) {
        start(1, 77);
        for (size_t i = 0; i < completed; ++i) {
            add(PUT, UNLOGGED, packets);
        }
        m_evidence.acked_psn = m_psn;
        m_ops.clear();
        add(PUT, UNLOGGED, packets);
        add(PUT, UNLOGGED, packets);
        add(PUT, UNLOGGED, packets);
        psn_after(1);
        expect({EXECUTED, EXECUTED, REPEAT});
        psn_is(m_ops[1].end_psn - 1);
        expect({EXECUTED, REPEAT, REPEAT});
        psn_is(m_evidence.acked_psn);
        expect({REPEAT, REPEAT, REPEAT});
    }
}

/* What is acknowledged was accepted, and nothing is accepted that was not posted */
UCS_TEST_F(test_varuna_plan, impossible_psn) {
    for (uint32_t first : {1000u, 1u, PSN_MASK - 1}) {
        for (uint32_t wrong : {first - 1, first + 5, 0u, first - (1u << 22)}) {
            start(1, first);
            add(PUT);
            add(PUT);
            if (((wrong - first) & PSN_MASK) <= 4) {
                continue; /* 0 is in the window */
            }
            log_has(0);
            psn_is(wrong);
            expect({EXECUTED, AMBIGUOUS});
            EXPECT_EQ(UCT_VARUNA_DOUBT_PSN, m_result.doubt);
        }
    }
}

UCS_TEST_F(test_varuna_plan, without_log_and_psn_all_is_ambiguous) {
    add(PUT, UNLOGGED);
    add(AM);
    add(ATOMIC, UNLOGGED);
    add(PUT, UNLOGGED);
    add(PUT, UNLOGGED | UNPOSTED);
    expect({AMBIGUOUS, REPEAT, AMBIGUOUS, AMBIGUOUS, REPEAT});
}

/* Packets may have been placed out of order: an entry proves nothing about others */
UCS_TEST_F(test_varuna_plan, unordered_log_proves_nothing) {
    m_evidence.unordered = 1;
    add(PUT);
    add(PUT);
    add(PUT);
    log_has(1);
    expect({AMBIGUOUS, AMBIGUOUS, AMBIGUOUS});

    /* The PSN passes only what has arrived without a gap */
    psn_after(0);
    expect({EXECUTED, REPEAT, REPEAT});
    psn_is(m_ops[0].end_psn - 1);
    expect({REPEAT, REPEAT, REPEAT});
    psn_after(2);
    expect({EXECUTED, EXECUTED, EXECUTED});
}

/* Packets are known to overtake each other: a write beyond the PSN may be in memory. An
 * atomic is not executed before what precedes it. */
UCS_TEST_F(test_varuna_plan, writes_beyond_the_psn_may_be_early) {
    m_evidence.unordered = 1;
    m_evidence.overtakes = 1;
    add(PUT);
    add(PUT);
    add(ATOMIC);
    add(PUT, UNLOGGED);
    add(PUT, UNPOSTED);
    psn_after(0);
    expect({EXECUTED, AMBIGUOUS, REPEAT, AMBIGUOUS, REPEAT});
    psn_after(2);
    expect({EXECUTED, EXECUTED, EXECUTED, AMBIGUOUS, REPEAT});
    psn_after(3);
    expect({EXECUTED, EXECUTED, EXECUTED, EXECUTED, REPEAT});
}

UCS_TEST_F(test_varuna_plan, no_psn_is_ambiguous_once) {
    add(GET);
    add(AM);
    add(PUT);
    add(GET);
    add(ATOMIC);
    add(PUT);
    expect({REPEAT, REPEAT, AMBIGUOUS, REPEAT, REPEAT, REPEAT});
    EXPECT_EQ(1u, m_result.ambiguous);
    EXPECT_EQ(2u, m_result.lost);
    EXPECT_EQ(6u, m_result.repeated);
}

UCS_TEST_F(test_varuna_plan, unlogged_is_like_lost_log_write) {
    size_t a = add(PUT);
    size_t b = add(PUT, UNLOGGED);
    log_has(a);

    expect({EXECUTED, AMBIGUOUS});
    psn_after(b);
    expect({EXECUTED, EXECUTED});
    psn_is(m_ops[b].end_psn - 1);
    expect({EXECUTED, REPEAT});
}

UCS_TEST_F(test_varuna_plan, unlogged_ignores_its_slot) {
    /* The entry cannot be its own log write */
    size_t i = add(PUT, UNLOGGED);
    m_ring[uct_varuna_log_slot(m_ops[i].log_sn)] =
            uct_varuna_log_entry(m_ops[i].req, m_ops[i].log_sn);
    expect({AMBIGUOUS});
}

UCS_TEST_F(test_varuna_plan, unlogged_does_not_close_the_gap) {
    /* No log write is between them, so neither is proven lost */
    add(PUT, UNLOGGED);
    add(PUT);
    add(PUT);
    expect({AMBIGUOUS, AMBIGUOUS, REPEAT});

    /* But a later one's entry proves all */
    log_has(1);
    expect({EXECUTED, EXECUTED, AMBIGUOUS});
}

UCS_TEST_F(test_varuna_plan, unposted) {
    add(PUT);
    add(PUT, UNPOSTED);
    add(GET, UNPOSTED);
    add(ATOMIC, UNPOSTED | FENCED);
    add(AM, UNPOSTED);
    expect({AMBIGUOUS, REPEAT, REPEAT, REPEAT, REPEAT});
    EXPECT_EQ(0u, m_result.lost) << "never sent is not lost";
    EXPECT_EQ(1u, m_result.repeated);

    log_has(0);
    expect({EXECUTED, REPEAT, REPEAT, REPEAT, REPEAT});
    EXPECT_EQ(0u, m_result.repeated);
}

UCS_TEST_F(test_varuna_plan, unposted_only) {
    add(PUT, UNPOSTED);
    add(PUT, UNPOSTED);
    expect({REPEAT, REPEAT});
    EXPECT_EQ(0u, m_result.ambiguous);

    /* A stale PSN in them means nothing, and a GET isn't done by a fence */
    start(1, 50);
    add(GET, UNPOSTED);
    add(PUT, UNPOSTED | FENCED);
    psn_is(50);
    expect({REPEAT, REPEAT});
}

UCS_TEST_F(test_varuna_plan, unposted_has_no_evidence) {
    /* Entries of an earlier lane are no evidence */
    add(PUT);
    size_t i = add(PUT);
    log_has(i);
    m_ops[i].posted = 0;
    expect({AMBIGUOUS, REPEAT});
    EXPECT_EQ(0u, m_result.executed);

    /* No fence can have waited for a read that was never sent */
    start(1, 0);
    add(GET, UNPOSTED);
    log_has(add(PUT, FENCED));
    expect({REPEAT, EXECUTED});
}

UCS_TEST_F(test_varuna_plan, flush_and_am) {
    add(AM);
    add(FLUSH);
    add(PUT);
    add(FLUSH, UNPOSTED);
    log_has(2);
    expect({REPEAT, REPEAT, EXECUTED, REPEAT});
    EXPECT_EQ(1u, m_result.repeated) << "a flush is no traffic";
    EXPECT_EQ(0u, m_result.lost);
}

UCS_TEST_F(test_varuna_plan, flush_does_not_stop_the_psn) {
    size_t a = add(PUT, UNLOGGED);
    add(FLUSH);
    add(FLUSH, UNPOSTED);
    size_t b = add(AM);
    m_ops[1].end_psn = PSN_MASK / 2; /* A marker has none */
    m_ops[2].end_psn = PSN_MASK / 2;
    psn_after(b);
    expect({EXECUTED, REPEAT, REPEAT, REPEAT});
    psn_is(m_ops[a].end_psn - 1);
    expect({REPEAT, REPEAT, REPEAT, REPEAT});
}

UCS_TEST_F(test_varuna_plan, read_before_executed_fenced) {
    add(GET);
    add(GET);
    size_t put = add(PUT, FENCED);
    size_t get = add(GET);
    log_has(put);
    expect({EXECUTED, EXECUTED, EXECUTED, REPEAT});
    EXPECT_EQ(1u, m_result.executed) << "reads have a count of their own";
    EXPECT_EQ(1u, m_result.repeated);
    EXPECT_EQ(get, m_ops.size() - 1);
}

UCS_TEST_F(test_varuna_plan, read_before_unfenced) {
    add(GET);
    log_has(add(PUT));
    expect({REPEAT, EXECUTED});
}

UCS_TEST_F(test_varuna_plan, read_before_lost_fenced) {
    add(GET);
    size_t put = add(PUT, FENCED);
    expect({REPEAT, AMBIGUOUS}); /* Not known to be executed */
    psn_is(m_ops[put].end_psn - 1);
    expect({REPEAT, REPEAT});
    psn_after(put);
    expect({EXECUTED, EXECUTED});
}

UCS_TEST_F(test_varuna_plan, read_fence_proven_by_later) {
    /* The fenced one has no own log entry, but a later one was executed */
    for (uct_varuna_op_kind_t kind : {GET, AM}) {
        start(1, 0);
        add(GET);
        size_t fenced = add(kind, FENCED);
        size_t put    = add(PUT);
        expect({REPEAT, REPEAT, AMBIGUOUS});

        log_has(put);
        expect({EXECUTED, REPEAT, EXECUTED});

        /* Also by PSN, even if only the fenced one arrived */
        m_ring.assign(UCT_VARUNA_LOG_SIZE, 0);
        psn_after(fenced);
        expect({EXECUTED, REPEAT, REPEAT});
        psn_is(m_ops[fenced].end_psn - 1);
        expect({REPEAT, REPEAT, REPEAT});
    }
}

UCS_TEST_F(test_varuna_plan, read_fenced_itself) {
    /* A fence before the read says nothing about the read */
    add(PUT);
    add(GET, FENCED);
    log_has(add(PUT));
    expect({EXECUTED, REPEAT, EXECUTED});
}

UCS_TEST_F(test_varuna_plan, read_fence_on_flush_or_unposted) {
    add(GET);
    add(FLUSH, FENCED);
    log_has(add(PUT));
    add(PUT, FENCED | UNPOSTED);
    expect({REPEAT, REPEAT, EXECUTED, REPEAT});
}

UCS_TEST_F(test_varuna_plan, psn_denies_what_the_log_proves) {
    add(PUT);
    add(PUT);
    add(PUT);
    add(PUT);
    log_has(2);

    psn_after(0);
    expect({EXECUTED, LOST_DATA, LOST_DATA, REPEAT});
    EXPECT_EQ(2u, m_result.lost_data);

    psn_is(m_ops[0].end_psn - 1);
    expect({LOST_DATA, LOST_DATA, LOST_DATA, REPEAT});

    psn_is(m_ops[2].end_psn - 1); /* Its log write came, its data did not */
    expect({EXECUTED, EXECUTED, LOST_DATA, REPEAT});

    psn_is(m_ops[2].end_psn + 1);
    expect({EXECUTED, EXECUTED, EXECUTED, REPEAT});
}

UCS_TEST_F(test_varuna_plan, log_denies_what_the_psn_proves) {
    size_t a = add(PUT);
    size_t b = add(PUT);
    add(PUT);

    /* By the PSN, the log write has arrived */
    psn_is(m_ops[a].end_psn + 1);
    expect({LOST_DATA, REPEAT, REPEAT});

    /* ... as a later operation has */
    psn_after(b);
    expect({LOST_DATA, EXECUTED, REPEAT});

    log_has(a);
    expect({EXECUTED, EXECUTED, REPEAT});
}

UCS_TEST_F(test_varuna_plan, contradiction_at_wrap_around) {
    for (uint32_t back = 0; back < 6; ++back) {
        start((1u << UCT_VARUNA_LOG_TS_BITS) - back, PSN_MASK - back);
        add(PUT);
        add(PUT);
        add(PUT);
        log_has(2);
        psn_after(0);
        expect({EXECUTED, LOST_DATA, LOST_DATA});
    }
}

/*
 * A sequence of lanes, each of which breaks: its packets are executed up to a random
 * one, answers arrive up to a random one before that, and the requester has seen
 * completions up to a random one before that. The plan is compared with what was
 * executed, and carried out on the next lane.
 */
class test_varuna_plan_random : public test_varuna_plan {
protected:
    struct request {
        uct_varuna_op_kind_t kind;
        bool                 fenced;
        uint32_t             packets;
        unsigned             executions; /* At the responder, on all lanes */
        unsigned             ambiguous;  /* Times that it was called ambiguous */
        bool                 has_data;   /* GET: the response has arrived */
        bool                 finished;   /* To the user */
        bool                 lane_done;  /* Data executed on this lane */
        bool                 lane_log;   /* Log write executed on this lane */
    };

    struct packet {
        size_t               op;         /* In m_ops */
        bool                 last;       /* Of its request */
        bool                 is_log;
    };

    unsigned random(unsigned limit)
    {
        return m_rng() % limit;
    }

    void add_random_requests()
    {
        static const uct_varuna_op_kind_t kinds[] = {PUT, PUT, PUT, ATOMIC,
                                                     GET, GET, AM, FLUSH};
        unsigned count = 1 + random((random(4) == 0) ? (6 * UCT_VARUNA_LOG_SIZE) :
                                    UCT_VARUNA_LOG_SIZE);

        m_requests.clear();
        for (unsigned i = 0; i < count; ++i) {
            request r = {};
            r.kind    = kinds[random(ucs_static_array_size(kinds))];
            r.fenced  = (random(5) == 0);
            r.packets = (r.kind == ATOMIC) ? 1 : (1 + random(4));
            m_requests.push_back(r);
        }
    }

    /* Entries of an earlier incarnation: same requests, numbers up to nearly the whole
         * range ago */
    void add_left_overs()
    {
        for (unsigned slot = 0; slot < UCT_VARUNA_LOG_SIZE; ++slot) {
            unsigned laps = 1 + random(((1u << UCT_VARUNA_LOG_TS_BITS) -
                                        UCT_VARUNA_MAX_REQS) /
                                       UCT_VARUNA_LOG_SIZE - 2);
            const void *r = (void*)(0x10000ul + (random(64) * 0x100));
            uint32_t sn   = m_sn + ((slot - m_sn) % UCT_VARUNA_LOG_SIZE) -
                            (laps * UCT_VARUNA_LOG_SIZE);
            m_ring[slot]  = uct_varuna_log_entry(r, sn);
        }
    }

    /* Give all unfinished requests to a new lane. The ring has seen some laps
     * of requests which are finished by now. */
    void post_lane()
    {
        uint32_t period   = 1u << UCT_VARUNA_LOG_TS_BITS;
        size_t   unposted = random(3) ? SIZE_MAX : random(64);
        bool     unlogged = (random(4) == 0);
        unsigned i;

        m_without_log = (random(4) == 0);
        start(random(2) ? 1 : (period - random(2 * UCT_VARUNA_LOG_SIZE)),
              random(2) ? m_rng() : (PSN_MASK - random(64)));
        if (random(3) == 0) {
            add_left_overs();
        }
        for (i = random(3) ? random(3 * UCT_VARUNA_LOG_SIZE) : 0; i > 0; --i) {
            const void *r = (void*)(0x900000ul + (random(64) * 0x100));
            uint32_t sn   = m_sn++;
            m_ring[uct_varuna_log_slot(sn)] = uct_varuna_log_entry(r, sn);
        }
        m_index.clear();
        m_packets.clear();
        m_first_psn = m_psn;

        for (size_t index = 0; index < m_requests.size(); ++index) {
            request &r     = m_requests[index];
            bool in_log    = (r.kind == PUT) || (r.kind == ATOMIC);
            unsigned flags = r.fenced ? FENCED : 0;

            if (r.finished) {
                continue;
            }

            r.lane_done = r.lane_log = false;
            if (m_index.size() >= unposted) {
                flags |= UNPOSTED;
            } else if (m_without_log) {
                flags |= UNLOGGED;
            } else if (unlogged && in_log &&
                       ((m_index.size() + 1) == unposted)) {
                flags |= UNLOGGED; /* Nothing passes its log write */
            }

            size_t op = add(r.kind, flags, r.packets);
            m_index.push_back(index);
            if ((flags & UNPOSTED) || (r.kind == FLUSH)) {
                continue;
            }
            for (uint32_t p = 0; p < r.packets; ++p) {
                m_packets.push_back({op, (p + 1) == r.packets, false});
            }
            if (m_ops[op].logged) {
                m_packets.push_back({op, true, true});
            }
        }
    }

    /* Execute @a num_executed packets, of which the first @a num_acked are
     * known to the requester's NIC. */
    void run_lane(size_t num_executed, size_t num_acked)
    {
        uint32_t epsn = m_first_psn;

        for (size_t p = 0; p < num_executed; ++p) {
            const packet &pkt = m_packets[p];
            request &r        = m_requests[m_index[pkt.op]];

            if (m_ops[pkt.op].fenced && !r.lane_done && !pkt.is_log &&
                !reads_arrived(pkt.op)) {
                break; /* The NIC holds it back */
            }

            ++epsn;
            if (pkt.is_log) {
                r.lane_log = true;
                log_has(pkt.op);
            } else if (pkt.last) {
                r.lane_done = true;
                ++r.executions;
                if ((r.kind == GET) && (p < num_acked)) {
                    r.has_data = true;
                }
            }
        }

        if (random(2)) {
            psn_is(epsn);
        }
    }

    bool reads_arrived(size_t before)
    {
        for (size_t op = 0; op < before; ++op) {
            const request &r = m_requests[m_index[op]];
            if ((r.kind == GET) && !r.has_data) {
                return false;
            }
        }
        return true;
    }

    /* The oldest acknowledged requests complete with success, and are in no plan any
     * more. */
    void complete_front(size_t num_polled)
    {
        size_t num_ops = 0;

        for (size_t p = 0; p < num_polled; ++p) {
            const packet &pkt = m_packets[p];
            const request &r  = m_requests[m_index[pkt.op]];
            if (!r.lane_done || ((r.kind == GET) && !r.has_data)) {
                break;
            }
            if (m_ops[pkt.op].logged ? r.lane_log : pkt.last) {
                num_ops = pkt.op + 1;
            }
        }

        for (size_t op = 0; op < num_ops; ++op) {
            m_requests[m_index[op]].finished = true;
        }
        if (num_ops > 0) {
            m_evidence.acked_psn = m_ops[num_ops - 1].end_psn;
        }
        m_ops.erase(m_ops.begin(), m_ops.begin() + num_ops);
        m_index.erase(m_index.begin(), m_index.begin() + num_ops);
    }

    /* The required knowledge about a fence after the read @a op */
    bool fence_known_passed(size_t op)
    {
        size_t known = 0;

        for (size_t i = 0; i < m_ops.size(); ++i) {
            const request &r = m_requests[m_index[i]];
            if (r.lane_log || (m_evidence.has_psn && r.lane_done)) {
                known = i;
            }
        }
        for (size_t i = op + 1; i <= known; ++i) {
            if (m_ops[i].fenced && m_ops[i].posted && m_ops[i].kind != FLUSH) {
                return true;
            }
        }
        return false;
    }

    void check_logged(const uct_varuna_plan_op_t &op, request &r)
    {
        switch (op.verdict) {
        case EXECUTED:
            EXPECT_TRUE(r.lane_done) << "a lost one would be completed";
            m_seen.executed += r.lane_log;
            m_seen.by_psn   += !r.lane_log;
            break;
        case REPEAT:
            EXPECT_FALSE(r.lane_done) << "an executed one would be repeated";
            m_seen.lost     += op.posted;
            m_seen.unposted += !op.posted;
            break;
        case AMBIGUOUS:
            EXPECT_FALSE(m_evidence.has_psn);
            EXPECT_FALSE(r.lane_log);
            EXPECT_TRUE(op.posted);
            ++r.ambiguous;
            m_seen.ambiguous_done += r.lane_done;
            m_seen.ambiguous_lost += !r.lane_done;
            m_seen.unlogged       += !op.logged;
            break;
        default:
            ADD_FAILURE() << "verdict " << op.verdict << " without a reason";
        }
    }

    void check_and_carry_out()
    {
        unsigned ambiguous = 0;

        make();
        for (size_t i = 0; i < m_ops.size(); ++i) {
            uct_varuna_plan_op_t &op = m_ops[i];
            request &r               = m_requests[m_index[i]];

            SCOPED_TRACE(testing::Message() << "request " << m_index[i]);
            if (is_logged_kind(op)) {
                check_logged(op, r);
                ambiguous += (op.verdict == AMBIGUOUS);
            } else if (op.kind == GET) {
                EXPECT_EQ(fence_known_passed(i), op.verdict == EXECUTED);
                EXPECT_TRUE(r.has_data || (op.verdict == REPEAT));
                m_seen.reads_done += (op.verdict == EXECUTED);
            } else {
                EXPECT_EQ(REPEAT, op.verdict);
            }
            r.finished = (op.verdict == EXECUTED);
            r.has_data = r.finished;
        }

        if (!m_without_log) {
            EXPECT_LE(ambiguous, 1u);
        }
        m_seen.psn_wraps += (m_first_psn & PSN_MASK) > (m_psn & PSN_MASK);
        m_seen.ts_wraps  += !m_ops.empty() &&
                           ((m_ops.front().log_sn ^ m_ops.back().log_sn) >>
                            UCT_VARUNA_LOG_TS_BITS) == 1;
    }

    /* Let one lane break */
    void fail_once()
    {
        post_lane();
        size_t executed = random(m_packets.size() + 1);
        size_t acked    = random(executed + 1);
        size_t polled   = random(acked + 1);

        run_lane(executed, acked);
        complete_front(polled);
        check_and_carry_out();
    }

    /* The last lane is a good one */
    void finish()
    {
        for (size_t i = 0; i < m_requests.size(); ++i) {
            request &r = m_requests[i];
            r.executions += !r.finished;
            if ((r.kind == PUT) || (r.kind == ATOMIC)) {
                EXPECT_GE(r.executions, 1u) << "request " << i;
                EXPECT_LE(r.executions, 1 + r.ambiguous) << "request " << i;
            }
        }
    }

    std::mt19937         m_rng;
    std::vector<request> m_requests;
    std::vector<size_t>  m_index;        /* Request of each of m_ops */
    std::vector<packet>  m_packets;
    uint32_t             m_first_psn;
    bool                 m_without_log;  /* No put of the lane is logged */
    struct {
        unsigned         executed, by_psn, lost, unposted, unlogged;
        unsigned         ambiguous_done, ambiguous_lost, reads_done;
        unsigned         psn_wraps, ts_wraps;
    } m_seen = {};
};

UCS_TEST_F(test_varuna_plan_random, exactly_once) {
    static const unsigned rounds = 20000;

    for (unsigned round = 0; (round < rounds) && !HasFailure(); ++round) {
        /* The harness prints its own seed, from which this one follows */
        unsigned seed = ucs::rand();
        SCOPED_TRACE(testing::Message() << "round " << round << " seed "
                                        << seed);
        m_rng.seed(seed);
        add_random_requests();
        for (unsigned lane = random(4); lane > 0; --lane) {
            fail_once();
        }
        finish();
    }

    /* A simulation without these cases proves nothing */
    EXPECT_GT(m_seen.executed, 1000u);
    EXPECT_GT(m_seen.by_psn, 100u);
    EXPECT_GT(m_seen.lost, 1000u);
    EXPECT_GT(m_seen.unposted, 100u);
    EXPECT_GT(m_seen.unlogged, 10u);
    EXPECT_GT(m_seen.ambiguous_done, 100u);
    EXPECT_GT(m_seen.ambiguous_lost, 100u);
    EXPECT_GT(m_seen.reads_done, 100u);
    EXPECT_GT(m_seen.psn_wraps, 100u);
    EXPECT_GT(m_seen.ts_wraps, 10u);
    UCS_TEST_MESSAGE << "executed " << m_seen.executed << " (by PSN "
                     << m_seen.by_psn << ") lost " << m_seen.lost
                     << " ambiguous " << m_seen.ambiguous_done << "+"
                     << m_seen.ambiguous_lost << " unlogged "
                     << m_seen.unlogged << " reads " << m_seen.reads_done
                     << " wraps " << m_seen.psn_wraps << "/"
                     << m_seen.ts_wraps;
}

/* A PSN lower than what the log proves is always detected. */
UCS_TEST_F(test_varuna_plan_random, contradiction) {
    unsigned seen = 0;

    for (unsigned round = 0; (round < 5000) && !HasFailure(); ++round) {
        unsigned seed = ucs::rand();
        SCOPED_TRACE(testing::Message() << "round " << round << " seed "
                                        << seed);
        m_rng.seed(seed);
        add_random_requests();
        post_lane();
        run_lane(m_packets.size(), 0);

        size_t last = m_ops.size();
        for (size_t i = 0; i < m_ops.size(); ++i) {
            if (m_requests[m_index[i]].lane_log) {
                last = i;
            }
        }
        if (last == m_ops.size()) {
            continue;
        }

        uint32_t back = 1 + random(((m_ops[last].end_psn - m_first_psn) &
                                    PSN_MASK));
        psn_is(m_ops[last].end_psn - back);
        make();
        for (size_t i = 0; i <= last; ++i) {
            if (is_logged_kind(m_ops[i])) {
                uint32_t diff = m_ops[last].end_psn - m_ops[i].end_psn;
                EXPECT_EQ((diff >= back) ? EXECUTED : LOST_DATA,
                          m_ops[i].verdict) << "request " << i;
            }
        }
        EXPECT_EQ(LOST_DATA, m_ops[last].verdict);
        ++seen;
    }

    EXPECT_GT(seen, 1000u);
}
