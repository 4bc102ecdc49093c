/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Audit records: lanes break at random messages, and what the plan decides is certified;
 * any other verdict or action is not. Readers survive any bytes.
 */
#include <common/test.h>

extern "C" {
#include <tools/rc_varuna_audit/audit_certify.h>
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/core/varuna_plan.h>
}

#include <random>
#include <string>
#include <vector>

class test_varuna_audit : public ucs::test {
protected:
    typedef std::vector<char> bytes_t;

    unsigned random(unsigned limit)
    {
        return std::uniform_int_distribution<unsigned>(0, limit - 1)(m_rng);
    }

    template<typename T> static void append(bytes_t &bytes, const T &value)
    {
        const char *begin = reinterpret_cast<const char*>(&value);
        bytes.insert(bytes.end(), begin, begin + sizeof(value));
    }

    /* A random window, of which the responder has executed a prefix */
    void make_window()
    {
        m_ops.assign(1 + random(2 * UCT_VARUNA_LOG_SIZE), {});
        m_log.assign(UCT_VARUNA_LOG_SIZE, 0);
        m_evidence           = {};
        m_evidence.log       = m_log.data();
        m_evidence.acked_psn = std::uniform_int_distribution<uint32_t>()(m_rng);
        m_evidence.has_psn   = random(2);
        m_evidence.unordered = (random(4) == 0);
        m_evidence.overtakes = m_evidence.unordered && random(2);

        uint32_t psn  = m_evidence.acked_psn;
        uint32_t sn   = std::uniform_int_distribution<uint32_t>()(m_rng);
        size_t posted = random(m_ops.size() + 1);
        for (size_t i = 0; i < m_ops.size(); ++i) {
            uct_varuna_plan_op_t &op = m_ops[i];
            op.kind   = (uct_varuna_op_kind_t)random(UCT_VARUNA_OP_LAST);
            op.posted = (i < posted);
            op.fenced = (random(8) == 0);
            op.req    = (const void*)(0x7f0000001000ul + (i * 64));
            if ((op.kind == UCT_VARUNA_OP_PUT) || (op.kind == UCT_VARUNA_OP_ATOMIC)) {
                op.log_sn = sn++;
                op.logged = op.posted && (random(4) > 0);
            }
            if (op.posted) {
                psn       += (op.kind == UCT_VARUNA_OP_FLUSH) ? 0 : 1 + random(5);
                op.end_psn = psn;
                psn       += op.logged;
            }
        }
        m_evidence.next_psn = psn;

        /* What leaves no trace elsewhere is in the PSN, or not at all */
        uint32_t accepted = random(psn - m_evidence.acked_psn + 1);
        for (const uct_varuna_plan_op_t &op : m_ops) {
            if (op.logged &&
                ((op.end_psn + 1 - m_evidence.acked_psn) <= accepted)) {
                m_log[uct_varuna_log_slot(op.log_sn)] =
                        uct_varuna_log_entry(op.req, op.log_sn);
            }
        }
        m_evidence.epsn = (m_evidence.acked_psn + accepted) & UCS_MASK(24);
    }

    static uct_varuna_audit_action_t action_of(const uct_varuna_plan_op_t &op)
    {
        if (op.kind == UCT_VARUNA_OP_STEP) {
            return op.posted ? UCT_VARUNA_AUDIT_LEFT : UCT_VARUNA_AUDIT_REPEATED;
        }
        switch (op.verdict) {
        case UCT_VARUNA_VERDICT_EXECUTED:
            return UCT_VARUNA_AUDIT_COMPLETED;
        case UCT_VARUNA_VERDICT_AMBIGUOUS:
            return UCT_VARUNA_AUDIT_COMPARED;
        default:
            return UCT_VARUNA_AUDIT_REPEATED;
        }
    }

    /* The record of this window, whose verdicts are the plan's */
    void make_record(uint8_t kind = UCT_VARUNA_LANE_RC,
                     uint8_t flags = UCT_VARUNA_AUDIT_FENCED)
    {
        uct_varuna_audit_record_t head     = {};
        uct_varuna_audit_verdict_t verdict = {};
        uct_varuna_plan_result_t result;

        uct_varuna_plan_make(m_ops.data(), m_ops.size(), &m_evidence, &result);
        head.type       = UCT_VARUNA_AUDIT_VERDICT;
        head.length     = sizeof(head) + sizeof(verdict) +
                          (m_ops.size() * sizeof(uct_varuna_audit_op_t));
        verdict.kind    = kind;
        verdict.flags   = flags;
        verdict.doubt   = result.doubt;
        verdict.num_ops = m_ops.size();
        uct_varuna_audit_pack_evidence(&m_evidence, &verdict);
        m_record.clear();
        append(m_record, head);
        append(m_record, verdict);
        for (const uct_varuna_plan_op_t &plan_op : m_ops) {
            uct_varuna_audit_op_t op = {};
            uct_varuna_audit_pack_op(&plan_op, &op);
            op.action = action_of(plan_op);
            append(m_record, op);
        }
    }

    uct_varuna_audit_verdict_t &verdict()
    {
        return *(uct_varuna_audit_verdict_t*)
                &m_record[sizeof(uct_varuna_audit_record_t)];
    }

    uct_varuna_audit_op_t &op(size_t i)
    {
        return ((uct_varuna_audit_op_t*)(&verdict() + 1))[i];
    }

    bool is_certified()
    {
        uct_varuna_audit_view_t view;
        const char *reason;

        EXPECT_EQ(m_record.size(), uct_varuna_audit_read(m_record.data(),
                                                         m_record.size(), &view,
                                                         &reason)) << reason;
        m_why[0] = '\0';
        return audit_certify_verdict(&view, m_why);
    }

    std::mt19937                      m_rng{20261123};
    std::vector<uct_varuna_plan_op_t> m_ops;
    std::vector<uint64_t>             m_log;
    uct_varuna_evidence_t             m_evidence;
    bytes_t                           m_record;
    char                              m_why[AUDIT_WHY_MAX];
};

UCS_TEST_F(test_varuna_audit, plan_and_oracle_agree) {
    unsigned verdicts[UCT_VARUNA_VERDICT_LOST_DATA + 1] = {};

    for (unsigned i = 0; i < 5000; ++i) {
        make_window();
        make_record();
        ASSERT_TRUE(is_certified()) << "window " << i << ": " << m_why;
        for (const uct_varuna_plan_op_t &plan_op : m_ops) {
            ++verdicts[plan_op.verdict];
        }
    }

    EXPECT_GT(verdicts[UCT_VARUNA_VERDICT_REPEAT], 1000u);
    EXPECT_GT(verdicts[UCT_VARUNA_VERDICT_EXECUTED], 1000u);
    EXPECT_GT(verdicts[UCT_VARUNA_VERDICT_AMBIGUOUS], 1000u);
}

UCS_TEST_F(test_varuna_audit, other_verdicts_are_wrong) {
    for (unsigned i = 0; i < 200; ++i) {
        make_window();
        make_record();
        for (unsigned j = 0; j < m_ops.size(); ++j) {
            uint8_t verdict = op(j).verdict;
            op(j).verdict   = (verdict + 1 + random(3)) % 4;
            EXPECT_FALSE(is_certified());
            EXPECT_NE(nullptr, strstr(m_why, "verdict is")) << m_why;
            op(j).verdict   = verdict;
        }
    }
}

/* Evidence from which the recorded verdicts do not follow */
UCS_TEST_F(test_varuna_audit, changed_log) {
    unsigned wrong = 0;

    for (unsigned i = 0; i < 500; ++i) {
        make_window();
        make_record();
        /* What was recorded of the log is not what the responder's NIC did */
        unsigned slot = random(UCT_VARUNA_LOG_SIZE);
        if (verdict().log[slot] != 0) {
            verdict().log[slot] ^= UCS_BIT(40);
        }
        wrong += !is_certified();
    }

    EXPECT_GT(wrong, 10u);
}

UCS_TEST_F(test_varuna_audit, other_actions_are_wrong) {
    for (unsigned i = 0; i < 200; ++i) {
        make_window();
        make_record();
        for (unsigned j = 0; j < m_ops.size(); ++j) {
            if ((op(j).kind == UCT_VARUNA_OP_STEP) ||
                (op(j).verdict == UCT_VARUNA_VERDICT_LOST_DATA)) {
                continue;
            }
            uint8_t action = op(j).action;
            op(j).action   = (action == UCT_VARUNA_AUDIT_REPEATED) ?
                             UCT_VARUNA_AUDIT_COMPLETED : UCT_VARUNA_AUDIT_REPEATED;
            EXPECT_FALSE(is_certified());
            EXPECT_NE(nullptr, strstr(m_why, "but its verdict is")) << m_why;
            op(j).action   = action;
        }
    }
}

/* What an earlier recovery left ambiguous is compared, though this lane has not executed it */
UCS_TEST_F(test_varuna_audit, ambiguous_before) {
    unsigned num_repeated = 0;

    for (unsigned i = 0; i < 200; ++i) {
        make_window();
        make_record();
        for (unsigned j = 0; j < m_ops.size(); ++j) {
            if ((op(j).verdict != UCT_VARUNA_VERDICT_REPEAT) ||
                ((op(j).kind != UCT_VARUNA_OP_PUT) && (op(j).kind != UCT_VARUNA_OP_ATOMIC))) {
                continue;
            }
            ++num_repeated;
            op(j).bits  |= UCT_VARUNA_AUDIT_OP_AMBIGUOUS;
            EXPECT_FALSE(is_certified());
            EXPECT_NE(nullptr, strstr(m_why, "it was ambiguous before")) << m_why;
            op(j).action = UCT_VARUNA_AUDIT_COMPARED;
            EXPECT_TRUE(is_certified()) << m_why;
            op(j).bits  &= ~UCT_VARUNA_AUDIT_OP_AMBIGUOUS;
            EXPECT_FALSE(is_certified());
            op(j).action = UCT_VARUNA_AUDIT_REPEATED;
        }
    }
    EXPECT_GT(num_repeated, 0u);
}

UCS_TEST_F(test_varuna_audit, lane_must_be_at_rest) {
    make_window();
    make_record(UCT_VARUNA_LANE_RC, 0);
    EXPECT_FALSE(is_certified());
    make_record(UCT_VARUNA_LANE_RC, UCT_VARUNA_AUDIT_WAITED);
    EXPECT_TRUE(is_certified()) << m_why;
    make_record(UCT_VARUNA_LANE_DC, UCT_VARUNA_AUDIT_FENCED);
    EXPECT_FALSE(is_certified());
    EXPECT_NE(nullptr, strstr(m_why, "DC")) << m_why;
    make_record(UCT_VARUNA_LANE_DC, UCT_VARUNA_AUDIT_WAITED);
    EXPECT_TRUE(is_certified()) << m_why;
}

/* A PSN of the past: only with a doubt, and after it was read again */
/* Without a fence, only what can be repeated without evidence, after settled writes */
UCS_TEST_F(test_varuna_audit, lane_left_without_a_fence) {
    static const uct_varuna_op_kind_t kinds[] = {UCT_VARUNA_OP_AM, UCT_VARUNA_OP_GET,
                                                 UCT_VARUNA_OP_FLUSH};
    static const uct_varuna_op_kind_t writes[] = {UCT_VARUNA_OP_PUT, UCT_VARUNA_OP_ATOMIC,
                                                  UCT_VARUNA_OP_STEP};

    m_log.assign(UCT_VARUNA_LOG_SIZE, 0);
    m_evidence     = {};
    m_evidence.log = m_log.data();
    for (uct_varuna_op_kind_t kind : kinds) {
        uct_varuna_plan_op_t op = {};
        op.kind   = kind;
        op.posted = 1;
        m_ops.push_back(op);
    }

    for (uint8_t lane : {UCT_VARUNA_LANE_RC, UCT_VARUNA_LANE_DC}) {
        make_record(lane, UCT_VARUNA_AUDIT_UNFENCED);
        EXPECT_TRUE(is_certified());
        verdict().owes = 1;
        EXPECT_FALSE(is_certified());
        make_record(lane, UCT_VARUNA_AUDIT_UNFENCED | UCT_VARUNA_AUDIT_FENCED);
        EXPECT_FALSE(is_certified());
        make_record(lane, UCT_VARUNA_AUDIT_UNFENCED | UCT_VARUNA_AUDIT_HAS_PSN);
        EXPECT_FALSE(is_certified());
    }

    for (uct_varuna_op_kind_t kind : writes) {
        m_ops.back().kind   = kind;
        m_ops.back().posted = 0;
        make_record(UCT_VARUNA_LANE_RC, UCT_VARUNA_AUDIT_UNFENCED);
        EXPECT_FALSE(is_certified()) << kind;
    }
}

UCS_TEST_F(test_varuna_audit, stale_psn) {
    make_window();
    m_evidence.has_psn = 1;
    m_evidence.epsn    = (m_evidence.acked_psn - 5) & UCS_MASK(24);
    make_record();
    EXPECT_EQ(UCT_VARUNA_DOUBT_PSN, verdict().doubt);
    EXPECT_FALSE(is_certified());
    make_record(UCT_VARUNA_LANE_RC, UCT_VARUNA_AUDIT_WAITED);
    EXPECT_TRUE(is_certified()) << m_why;
    verdict().doubt = UCT_VARUNA_DOUBT_NONE;
    EXPECT_FALSE(is_certified());
}

/* Evidence that contradicts itself fails the endpoint */
UCS_TEST_F(test_varuna_audit, contradiction) {
    uct_varuna_plan_op_t put = {};

    m_log.assign(UCT_VARUNA_LOG_SIZE, 0);
    put.kind            = UCT_VARUNA_OP_PUT;
    put.posted          = put.logged = 1;
    put.req             = &m_log;
    put.log_sn          = 7;
    put.end_psn         = 1;
    m_ops               = {put};
    m_evidence          = {};
    m_evidence.log      = m_log.data();
    m_evidence.has_psn  = 1;
    m_evidence.next_psn = 2;
    m_log[uct_varuna_log_slot(7)] = uct_varuna_log_entry(put.req, 7);
    make_record(UCT_VARUNA_LANE_RC, UCT_VARUNA_AUDIT_WAITED);
    EXPECT_EQ(UCT_VARUNA_VERDICT_LOST_DATA, op(0).verdict);
    EXPECT_FALSE(is_certified());
    verdict().flags |= UCT_VARUNA_AUDIT_FAILED;
    EXPECT_TRUE(is_certified()) << m_why;
}

UCS_TEST_F(test_varuna_audit, comparisons) {
    std::vector<uct_varuna_audit_target_t> targets(3);
    std::vector<uint64_t> reqs = {11, 33};
    uct_varuna_audit_compare_t compare = {};
    uct_varuna_audit_view_t view       = {};

    compare.num_targets = 3;
    view.compare        = &compare;
    view.targets        = targets.data();
    targets[0].req      = 11;
    targets[1].req      = 0; /* A step of an atomic */
    targets[2].req      = 33;
    targets[0].verdict  = UCT_VARUNA_WINDOW_EXECUTED;
    targets[0].action   = UCT_VARUNA_AUDIT_COMPLETED;
    targets[1].verdict  = targets[2].verdict = UCT_VARUNA_WINDOW_LOST;
    targets[2].action   = UCT_VARUNA_AUDIT_REPEATED;
    EXPECT_TRUE(audit_certify_compare(&view, reqs.data(), 2, m_why)) << m_why;

    targets[2].action = UCT_VARUNA_AUDIT_COMPLETED;
    EXPECT_FALSE(audit_certify_compare(&view, reqs.data(), 2, m_why));
    targets[2].verdict = UCT_VARUNA_WINDOW_EXECUTED; /* No prefix */
    EXPECT_FALSE(audit_certify_compare(&view, reqs.data(), 2, m_why));
    compare.flags = UCT_VARUNA_AUDIT_UNORDERED;
    EXPECT_TRUE(audit_certify_compare(&view, reqs.data(), 2, m_why)) << m_why;

    EXPECT_FALSE(audit_certify_compare(&view, reqs.data(), 1, m_why));
    reqs = {11, 22, 33};
    EXPECT_FALSE(audit_certify_compare(&view, reqs.data(), 3, m_why));
    reqs = {11, 33, 44};
    EXPECT_FALSE(audit_certify_compare(&view, reqs.data(), 3, m_why));

    targets[2].verdict = UCT_VARUNA_WINDOW_UNKNOWN;
    targets[2].action  = UCT_VARUNA_AUDIT_REPEATED;
    EXPECT_TRUE(audit_certify_compare(&view, reqs.data(), 2, m_why)) << m_why;
    compare.fails = 1;
    EXPECT_FALSE(audit_certify_compare(&view, reqs.data(), 2, m_why));
    compare.flags |= UCT_VARUNA_AUDIT_FAILED;
    EXPECT_TRUE(audit_certify_compare(&view, reqs.data(), 2, m_why)) << m_why;
}

UCS_TEST_F(test_varuna_audit, any_bytes) {
    uct_varuna_audit_view_t view;
    const char *reason;

    for (unsigned i = 0; i < 20000; ++i) {
        if ((i % 100) == 0) {
            make_window();
            make_record();
        }
        /* In memory of its own size, so that a sanitizer sees each byte */
        bytes_t bytes(m_record.begin(), m_record.begin() + random(m_record.size() + 1));
        for (unsigned flips = random(4); (flips > 0) && !bytes.empty(); --flips) {
            bytes[random(random(2) ? bytes.size() :
                         ucs_min(bytes.size(), (size_t)64))] ^= 1 << random(8);
        }
        if ((uct_varuna_audit_read(bytes.data(), bytes.size(), &view, &reason) > 0) &&
            (view.verdict != NULL)) {
            audit_certify_verdict(&view, m_why);
        }
        uct_varuna_audit_check_file(bytes.data(), bytes.size());
    }
}

UCS_TEST_F(test_varuna_audit, files) {
    uct_varuna_audit_file_t file = {};

    memcpy(file.magic, UCT_VARUNA_AUDIT_MAGIC, sizeof(file.magic));
    file.order    = UCT_VARUNA_AUDIT_ORDER;
    file.version  = UCT_VARUNA_AUDIT_VERSION;
    file.log_size = UCT_VARUNA_LOG_SIZE;
    EXPECT_EQ(nullptr, uct_varuna_audit_check_file(&file, sizeof(file)));
    EXPECT_NE(nullptr, uct_varuna_audit_check_file(&file, sizeof(file) - 1));
    ++file.version;
    EXPECT_NE(nullptr, strstr(uct_varuna_audit_check_file(&file, sizeof(file)),
                              "another version"));
    file.order = __builtin_bswap32(file.order);
    EXPECT_NE(nullptr, strstr(uct_varuna_audit_check_file(&file, sizeof(file)),
                              "byte order"));
    file.magic[0] = 'X';
    EXPECT_NE(nullptr, strstr(uct_varuna_audit_check_file(&file, sizeof(file)),
                              "not an audit file"));
}
