/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics with extended status on a word of 8 bytes and on its halves: the state machine in
 * a simulated memory. The accesses of clients of both widths are executed in a random
 * order, and lanes fail between an access and its answer or before the access.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
}

#include <set>
#include <vector>

class test_varuna_amo_halves : public ucs::test {
protected:
    static constexpr uint64_t ADDR  = 0x7f0000001000ul;
    static constexpr unsigned SLOTS = 5;
    static constexpr uint64_t BOTH  = 0x100000001ul;

    typedef uct_varuna_amo_sm_t sm_t;

    struct client_t {
        sm_t     sm;
        unsigned width;
        uint64_t addr;
        bool     is_get;
        bool     is_busy;
        bool     is_told;
        int      phase;
        uint64_t before;        /* The word when a GET began */
    };

    void reset(uint64_t start)
    {
        m_word = start;
        memset(m_slots, 0, sizeof(m_slots));
        for (auto &mark : m_marks) {
            mark = uct_varuna_mark((uint64_t)ucs::rand() * 977 + 5,
                                   UCT_VARUNA_MARK_PENDING);
        }
        for (unsigned i = 0; i < SLOTS; ++i) {
            m_gens[i] = uct_varuna_mark_gen(m_marks[i]);
        }
        m_results[0].clear();
        m_results[1].clear();
        m_begun[0] = m_begun[1] = 0;
    }

    uint64_t load(uint64_t addr, unsigned width)
    {
        EXPECT_EQ(0u, addr % width);
        EXPECT_TRUE((addr == ADDR) || (addr == ADDR + 4));
        return (width == 8) ? m_word : (uint32_t)(m_word >> (8 * (addr - ADDR)));
    }

    uint64_t cas(uint64_t addr, unsigned width, uint64_t compare, uint64_t swap)
    {
        uint64_t old = load(addr, width);

        if (old != compare) {
            return old;
        }
        if (width == 8) {
            m_word = swap;
        } else {
            ((uint32_t*)&m_word)[(addr - ADDR) / 4] = swap;
        }
        return old;
    }

    uint64_t cas_mark(const uct_varuna_amo_act_t &act)
    {
        uint64_t old = m_marks[act.slot];

        if (old == act.mark_from) {
            m_marks[act.slot] = act.mark_to;
        }
        return old;
    }

    /* Add 1 to each half of the target */
    void begin(client_t &c, unsigned slot)
    {
        unsigned half;

        c.is_busy = true;
        c.is_told = false;
        c.phase   = 0;
        if (c.is_get) {
            c.before = told();
            uct_varuna_amo_sm_start_get(&c.sm, c.width, c.addr, SLOTS);
            return;
        }

        for (half = 0; half < 2; ++half) {
            m_begun[half] += (c.width == 8) || (c.addr == ADDR + (4 * half));
        }
        uct_varuna_amo_sm_start(&c.sm, UCT_ATOMIC_OP_ADD, c.width, c.addr, 0,
                                (c.width == 8) ? BOTH : 1, SLOTS);
        uct_varuna_amo_sm_set_slot(&c.sm, slot, m_gens[slot]);
    }

    /* What must be in the word: all that has returned */
    uint64_t told() const
    {
        return m_results[0].size() | ((uint64_t)m_results[1].size() << 32);
    }

    void tell(client_t &c)
    {
        if (!(c.sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED) || c.is_told) {
            return;
        }

        c.is_told = true;
        for (unsigned half = 0; half < 2; ++half) {
            uint32_t result;

            if ((c.width == 4) && (c.addr != ADDR + (4 * half))) {
                continue;
            }

            result = (c.width == 4) ? c.sm.result : c.sm.result >> (32 * half);
            result -= (uint32_t)(m_start >> (32 * half));
            if (c.is_get) {
                ASSERT_GE(result, (uint32_t)(c.before >> (32 * half)));
                ASSERT_LE(result, m_begun[half]);
            } else {
                ASSERT_TRUE(m_results[half].insert(result).second)
                        << "two have found " << result;
            }
        }
    }

    /* One access of one client; compound ones take several steps. */
    void step(client_t &c, unsigned fail_percent)
    {
        const uct_varuna_amo_act_t act = c.sm.act;
        uct_varuna_slot_t copy         = {};
        uint64_t value                 = 0;
        bool fails = (ucs::rand() % 100) < (int)fail_percent;

        ASSERT_LT(act.slot, SLOTS);
        switch (act.type) {
        case UCT_VARUNA_AMO_ACT_READ:
            value = load(act.addr, act.width);
            m_whole += (c.sm.state == UCT_VARUNA_AMO_WHOLE);
            break;
        case UCT_VARUNA_AMO_ACT_READ_BODY:
            copy = m_slots[act.slot];
            break;
        case UCT_VARUNA_AMO_ACT_CAS:
            ASSERT_FALSE(c.is_get) << "a GET writes to the target";
            m_others += (act.width != c.width);
            value = cas(act.addr, act.width, act.compare, act.swap);
            break;
        case UCT_VARUNA_AMO_ACT_CAS_MARK:
            value = cas_mark(act);
            break;
        case UCT_VARUNA_AMO_ACT_OCCUPY:
            if (c.phase++ == 0) {
                uct_varuna_amo_sm_body(&c.sm, &m_slots[act.slot]);
                return;
            }
            c.phase = 0;
            if (fails) {
                if (ucs::rand() & 1) {
                    cas(c.addr, c.width, act.compare, act.swap);
                }
                uct_varuna_amo_sm_lost(&c.sm);
                return;
            }
            value = cas(c.addr, c.width, act.compare, act.swap);
            break;
        case UCT_VARUNA_AMO_ACT_CONFIRM:
            if (c.phase++ == 0) {
                cas(c.addr, c.width, act.compare, act.swap);
                return;
            }
            c.phase = 0;
            value   = cas_mark(act);
            break;
        default:
            FAIL() << "action " << act.type;
        }

        uct_varuna_amo_sm_done(&c.sm, value, &copy);
        ASSERT_LT(c.sm.retries, 100000u) << "it loops";
    }

    void run(std::vector<client_t> &clients, unsigned ops, unsigned fail_percent)
    {
        unsigned started = 0;

        for (;;) {
            std::vector<unsigned> busy;

            for (unsigned i = 0; i < clients.size(); ++i) {
                if (!clients[i].is_busy && (started < ops)) {
                    begin(clients[i], i);
                    ++started;
                }
                if (clients[i].is_busy) {
                    busy.push_back(i);
                }
            }

            if (busy.empty()) {
                return;
            }

            unsigned i  = busy[ucs::rand() % busy.size()];
            client_t &c = clients[i];
            step(c, fail_percent);
            tell(c);
            if (c.sm.act.type == UCT_VARUNA_AMO_ACT_NONE) {
                c.is_busy = false;
                m_gens[i] = c.is_get ? m_gens[i] : c.sm.gen;
            }
            if (HasFailure()) {
                return;
            }
        }
    }

    std::vector<client_t> make_clients(unsigned gets)
    {
        std::vector<client_t> clients(SLOTS);

        for (unsigned i = 0; i < SLOTS; ++i) {
            memset((void*)&clients[i], 0, sizeof(clients[i]));
            clients[i].width  = ((i == 0) || (ucs::rand() & 1)) ? 8 : 4;
            clients[i].addr   = ADDR + (((clients[i].width == 4) && (ucs::rand() & 1)) ?
                                        4 : 0);
            clients[i].is_get = i >= SLOTS - gets;
        }
        return clients;
    }

    void check_halves(unsigned fail_percent, unsigned gets)
    {
        for (int round = 0; round < 3000; ++round) {
            /* 0, or numbers whose halves look like UIDs */
            m_start = (round & 1) ? 0 : 0x8000000080000000ul + (ucs::rand() % SLOTS);
            reset(m_start);
            auto clients = make_clients(gets);
            run(clients, 30, fail_percent);
            ASSERT_FALSE(HasFailure()) << "round " << round;
            ASSERT_EQ(m_start + told(), m_word) << "round " << round;
            for (auto &results : m_results) {
                ASSERT_TRUE(results.empty() || (*results.rbegin() + 1 == results.size()));
            }
        }
        EXPECT_GT(m_whole, 1000u);
        EXPECT_GT(m_others, 1000u);
    }

    uint64_t              m_start = 0, m_word = 0;
    uct_varuna_slot_t     m_slots[SLOTS];
    uint64_t              m_marks[SLOTS], m_gens[SLOTS];
    std::set<uint32_t>    m_results[2];
    unsigned              m_begun[2];
    unsigned              m_whole = 0, m_others = 0;
};

/* Each half counts the ADDs of both widths: results without gaps, and no UID is left. */
UCS_TEST_F(test_varuna_amo_halves, adds) {
    check_halves(0, 0);
}

UCS_TEST_F(test_varuna_amo_halves, adds_on_failing_lanes) {
    check_halves(25, 0);
}

/* ... while others only read, and see what was executed before */
UCS_TEST_F(test_varuna_amo_halves, gets) {
    check_halves(10, 2);
}

/* Half of a word is the same as half of a UID, whose word is this one. The other half
 * shows that it is the user's data: nobody marks that UID. */
UCS_TEST_F(test_varuna_amo_halves, half_is_data) {
    for (unsigned half = 0; half < 2; ++half) {
        m_start = 0;
        reset(0);
        auto clients    = make_clients(0);
        client_t &owner = clients[0], &other = clients[1];
        uint64_t uid    = uct_varuna_uid(0, m_gens[0], 8);

        begin(owner, 0);
        while (!HasFailure() && (owner.sm.state != UCT_VARUNA_AMO_OCCUPY)) {
            step(owner, 0);
        }
        step(owner, 0); /* The body is there, and the UID is not */
        m_word = half ? (uid & ~(uint64_t)UINT32_MAX) : (uint32_t)uid;

        other.width = 4;
        other.addr  = ADDR + (4 * half);
        begin(other, 1);
        while (!HasFailure() && (other.sm.act.type != UCT_VARUNA_AMO_ACT_NONE)) {
            step(other, 0);
        }
        EXPECT_EQ((uint32_t)(uid >> (32 * half)), other.sm.result);
        EXPECT_EQ(uct_varuna_mark(m_gens[0], UCT_VARUNA_MARK_PENDING), m_marks[0]);
    }
}

/* UIDs in both halves. What the lower one stands for looks like a UID of the upper one's
 * slot, which is resolved nevertheless. */
UCS_TEST_F(test_varuna_amo_halves, value_names_slot) {
    reset(m_start = 0x8000000080000003ul);
    auto clients   = make_clients(0);
    client_t &both = clients[0];

    for (unsigned slot : {2u, 4u}) {
        client_t &owner = clients[slot];

        owner.width = 4;
        owner.addr  = (slot == 2) ? ADDR : ADDR + 4;
        begin(owner, slot);
        while (!HasFailure() && (owner.sm.state != UCT_VARUNA_AMO_CONFIRM)) {
            step(owner, 0);
        }
    }

    begin(both, 0);
    while (!HasFailure() && (both.sm.act.type != UCT_VARUNA_AMO_ACT_NONE)) {
        step(both, 0);
    }
    EXPECT_EQ(m_start + BOTH, both.sm.result);
    EXPECT_EQ(m_start + (2 * BOTH), m_word);
}

/* The compare value is half of a UID, or contains one: the CSWAP fails with the value
 * that the word represents, and a second one with this value succeeds. */
UCS_TEST_F(test_varuna_amo_halves, compares) {
    for (unsigned width : {4u, 8u}) {
        for (unsigned half = 0; half < 2; ++half) {
            reset(m_start = 0);
            auto clients    = make_clients(0);
            client_t &owner = clients[0], &user = clients[1];

            owner.width = 12 - width;
            owner.addr  = ADDR + ((width == 8) ? 4 * half : 0);
            begin(owner, 0);
            while (!HasFailure() && (owner.sm.state != UCT_VARUNA_AMO_CONFIRM)) {
                step(owner, 0);
            }

            user.width       = width;
            user.addr        = ADDR + ((width == 4) ? 4 * half : 0);
            uint64_t value   = (width == 4) ? 1 : 1ul << (32 * half);
            uint64_t compare = load(user.addr, width);
            for (int i = 0; i < 2; ++i) {
                uct_varuna_amo_sm_start(&user.sm, UCT_ATOMIC_OP_CSWAP, width, user.addr,
                                        compare, 77, SLOTS);
                uct_varuna_amo_sm_set_slot(&user.sm, 1, m_gens[1]);
                while (!HasFailure() && (user.sm.act.type != UCT_VARUNA_AMO_ACT_NONE)) {
                    step(user, 0);
                }
                m_gens[1] = user.sm.gen;
                EXPECT_EQ(value, user.sm.result) << "width " << width << " try " << i;
                EXPECT_EQ(i ? 77u : value, load(user.addr, width));
                compare = value;
            }
        }
    }
}
