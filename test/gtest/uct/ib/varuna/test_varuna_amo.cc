/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics with extended status: the state machine in a simulated memory. Several
 * clients run on one target. The accesses of all are executed in a random order, lanes
 * fail at random between an access and its answer or before the access, and owners die.
 * The target also gets values that look like UIDs.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#include <uct/ib/varuna/rc_varuna.h>
#include <ucs/sys/sys.h>
}

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <vector>

class test_varuna_amo : public ucs::test {
protected:
    static constexpr uint64_t ADDR       = 0x7f0000001000ul;
    static constexpr unsigned SLOTS      = 8;
    static constexpr unsigned GET        = UCT_ATOMIC_OP_LAST;

    struct op_t {
        unsigned op;
        uint64_t compare, value, result;
        bool     is_told, is_dead;
    };

    struct client_t {
        uct_varuna_amo_sm_t sm;
        uint32_t            slot;
        uint64_t            gen;
        bool                is_busy;
        bool                is_plain;  /* By request: exactly once, no slot */
        int                 body_left; /* Parts of an OCCUPY, CONFIRM */
        int                 phase;
        unsigned            adds_before; /* Of a GET: executed ADDs */
        op_t                op;
    };

    virtual void init()
    {
        ucs::test::init();
        reset(8);
    }

    void reset(unsigned width)
    {
        m_width  = width;
        m_target = 0;
        memset(m_slots, 0, sizeof(m_slots));
        for (auto &mark : m_marks) {
            mark = uct_varuna_mark((uint64_t)ucs::rand() * 977 + 5,
                                   UCT_VARUNA_MARK_PENDING);
        }
        m_lost = m_recovered = m_helped = m_deaths = m_aborted = m_left = 0;
        m_adds_begun = m_adds_done = 0;
        m_done.clear();
    }

    uint64_t mask() const
    {
        return (m_width == 8) ? UINT64_MAX : UINT32_MAX;
    }

    uint64_t cas(uint64_t *word, uint64_t compare, uint64_t swap)
    {
        uint64_t old = *word;

        if (old == compare) {
            *word = swap;
        }
        return old;
    }

    /* Slots may claim half of the target, or more than that */
    uint64_t load(const uct_varuna_amo_act_t &act)
    {
        return (act.width == 8) ? m_target :
               (uint32_t)(m_target >> (8 * (act.addr - ADDR)));
    }

    void start(client_t &c, const op_t &op)
    {
        c.op         = op;
        c.op.is_told = false;
        c.is_busy    = true;
        c.phase      = 0;
        if (op.op == GET) {
            uct_varuna_amo_sm_start_get(&c.sm, m_width, ADDR, SLOTS);
            c.adds_before = m_adds_done;
            check(c);
            return;
        }

        uct_varuna_amo_sm_start(&c.sm, op.op, m_width, ADDR, op.compare,
                                op.value, SLOTS);
        m_adds_begun += (op.op == UCT_ATOMIC_OP_ADD);
        if (!c.is_plain) {
            uct_varuna_amo_sm_set_slot(&c.sm, c.slot, c.gen);
        }
        check(c);
    }

    void tell(client_t &c)
    {
        if ((c.sm.flags & UCT_VARUNA_AMO_FLAG_DECIDED) && !c.op.is_told) {
            c.op.is_told = true;
            c.op.result  = c.sm.result;
            m_done.push_back(c.op);
            m_adds_done += (c.op.op == UCT_ATOMIC_OP_ADD);
            if (c.op.op == GET) {
                /* Of ADDs of 1: those executed before, and perhaps those in flight */
                EXPECT_GE(c.op.result, c.adds_before);
                EXPECT_LE(c.op.result, m_adds_begun);
            }
        }
    }

    void check(client_t &c)
    {
        tell(c);
        ASSERT_LT(c.sm.retries, 100000u) << "it loops";
        if (c.sm.state == UCT_VARUNA_AMO_LOST_UNDO) {
            ++m_aborted;
        }
        if (c.sm.act.type == UCT_VARUNA_AMO_ACT_NONE) {
            c.is_busy = false;
            c.gen     = (c.op.op == GET) ? c.gen : c.sm.gen;
            m_helped += c.sm.helped;
            m_recovered += !!(c.sm.flags & UCT_VARUNA_AMO_FLAG_RECOVERED);
        }
        /* All accesses must be inside the arena */
        ASSERT_LT(c.sm.act.slot, SLOTS);
    }

    /* One access of one client; compound ones take several steps. */
    void step(client_t &c, unsigned fail_percent)
    {
        const uct_varuna_amo_act_t &act = c.sm.act;
        uct_varuna_slot_t copy          = {};
        uint64_t value                  = 0;
        bool may_lose = (act.type == UCT_VARUNA_AMO_ACT_OCCUPY) &&
                        ((ucs::rand() % 100) < (int)fail_percent);
        bool repeats  = (act.type != UCT_VARUNA_AMO_ACT_OCCUPY) &&
                        !((act.type == UCT_VARUNA_AMO_ACT_CAS) &&
                          (c.sm.state == UCT_VARUNA_AMO_OCCUPY)) &&
                        ((ucs::rand() % 100) < (int)fail_percent);

        switch (act.type) {
        case UCT_VARUNA_AMO_ACT_READ:
            value = load(act);
            break;
        case UCT_VARUNA_AMO_ACT_READ_BODY:
            copy = m_slots[act.slot];
            break;
        case UCT_VARUNA_AMO_ACT_CAS:
            ASSERT_NE(GET, c.op.op) << "a GET writes to the target";
            value = load(act);
            if (value == act.compare) {
                m_target ^= (value ^ act.swap) << (8 * (act.addr - ADDR));
            }
            break;
        case UCT_VARUNA_AMO_ACT_CAS_MARK:
            value = cas(&m_marks[act.slot], act.mark_from, act.mark_to);
            break;
        case UCT_VARUNA_AMO_ACT_OCCUPY:
            if (c.phase == 0) {
                /* Body and CAS are separate steps, and either may be lost */
                if (!(may_lose && (ucs::rand() & 1))) {
                    uct_varuna_amo_sm_body(&c.sm, &m_slots[act.slot]);
                    c.phase = 1;
                    return;
                }
                ++m_lost;
                uct_varuna_amo_sm_lost(&c.sm);
                check(c);
                return;
            }
            c.phase = 0;
            if (may_lose) {
                ++m_lost;
                if (ucs::rand() & 1) {
                    cas(&m_target, act.compare, act.swap);
                }
                uct_varuna_amo_sm_lost(&c.sm);
                check(c);
                return;
            }
            value = cas(&m_target, act.compare, act.swap);
            break;
        case UCT_VARUNA_AMO_ACT_CONFIRM:
            if (c.phase == 0) {
                cas(&m_target, act.compare, act.swap);
                c.phase = repeats ? 0 : 1;
                return;
            }
            c.phase = 0;
            value   = cas(&m_marks[act.slot], act.mark_from, act.mark_to);
            break;
        default:
            FAIL() << "action " << act.type;
        }

        if (repeats) {
            return; /* The answer was lost: repeat the access */
        }

        uct_varuna_amo_sm_done(&c.sm, value, &copy);
        check(c);
    }

    /* Run until all clients are idle; the others' ops come from @a next. */
    template<typename F>
    void run(std::vector<client_t> &clients, unsigned ops, unsigned fail_percent,
             unsigned die_permille, F next)
    {
        unsigned started = 0;

        for (;;) {
            std::vector<client_t*> busy;

            for (auto &c : clients) {
                if (!c.op.is_dead && !c.is_busy && (started < ops)) {
                    start(c, next());
                    ++started;
                }
                if (!c.op.is_dead && c.is_busy) {
                    busy.push_back(&c);
                }
            }

            if (busy.empty()) {
                return;
            }

            client_t &c = *busy[ucs::rand() % busy.size()];
            if ((busy.size() > 1) && (c.sm.flags & UCT_VARUNA_AMO_FLAG_SLOT) &&
                ((ucs::rand() % 1000) < (int)die_permille)) {
                c.op.is_dead = true;
                m_dead.push_back(c);
                ++m_deaths;
                m_left += (m_target == uct_varuna_uid(c.sm.slot, c.sm.gen,
                                                      m_width));
                continue;
            }
            step(c, fail_percent);
            if (HasFatalFailure()) {
                return;
            }
        }
    }

    std::vector<client_t> make_clients(unsigned num, unsigned plain)
    {
        std::vector<client_t> clients(num);

        for (unsigned i = 0; i < num; ++i) {
            memset(&clients[i], 0, sizeof(clients[i]));
            clients[i].slot     = i;
            clients[i].gen      = uct_varuna_mark_gen(m_marks[i]);
            clients[i].is_plain = i < plain;
        }
        return clients;
    }

    /* The target's value for a reader that resolves UIDs */
    uint64_t resolved()
    {
        std::vector<client_t> reader = make_clients(1, 1);

        start(reader[0], op_t{UCT_ATOMIC_OP_CSWAP, 0, 0, 0, false, false});
        while (reader[0].is_busy) {
            step(reader[0], 0);
        }
        m_done.pop_back();
        return reader[0].sm.result;
    }

    unsigned              m_width;
    uint64_t              m_target;
    uct_varuna_slot_t     m_slots[SLOTS];
    uint64_t              m_marks[SLOTS];
    std::vector<op_t>     m_done;
    std::vector<client_t> m_dead;
    unsigned              m_lost, m_recovered, m_helped, m_deaths, m_aborted, m_left;
    unsigned              m_adds_begun, m_adds_done;
};

/* All return values are different and without gaps: each ADD ran exactly once. */
UCS_TEST_F(test_varuna_amo, fetch_add) {
    unsigned lost = 0, recovered = 0, helped = 0, aborted = 0;

    for (int round = 0; round < 3000; ++round) {
        unsigned clients = 1 + (ucs::rand() % 4);
        unsigned plain   = (clients > 1) ? ucs::rand() % 2 : 0;

        reset((round & 1) ? 4 : 8);
        std::vector<client_t> c = make_clients(clients, plain);
        run(c, 20, (round % 4) * 15, 0, [] {
            return op_t{UCT_ATOMIC_OP_ADD, 0, 1, 0, false, false};
        });
        if (HasFatalFailure()) {
            return;
        }

        ASSERT_EQ(20u, m_done.size());
        std::sort(m_done.begin(), m_done.end(),
                  [](const op_t &a, const op_t &b) {
                      return a.result < b.result;
                  });
        for (size_t i = 0; i < m_done.size(); ++i) {
            ASSERT_EQ(i, m_done[i].result) << "round " << round;
        }
        /* All clients are idle, so no UID is left, and a flush would have returned */
        ASSERT_EQ(20u, m_target);
        lost += m_lost;
        recovered += m_recovered;
        helped += m_helped;
        aborted += m_aborted;
    }

    UCS_TEST_MESSAGE << "lost " << lost << " recovered " << recovered
                     << " helped " << helped << " aborted " << aborted;
    EXPECT_GT(lost, 1000u);
    EXPECT_GT(recovered, 100u);
    EXPECT_GT(helped, 100u);
    EXPECT_GT(aborted, 100u);
}

/* Some clients read while others add: no GET returns a UID, and each sees executed
 * ADDs */
UCS_TEST_F(test_varuna_amo, get) {
    unsigned resolved = 0, aborted = 0;

    for (int round = 0; round < 3000; ++round) {
        reset((round & 1) ? 4 : 8);
        std::vector<client_t> c = make_clients(2 + (ucs::rand() % 3), 0);
        run(c, 30, (round % 4) * 15, 0, [] {
            return op_t{(ucs::rand() & 1) ? GET : (unsigned)UCT_ATOMIC_OP_ADD, 0, 1, 0,
                        false, false};
        });
        if (HasFailure()) {
            return;
        }

        ASSERT_EQ(30u, m_done.size());
        ASSERT_EQ(m_adds_done, m_target);
        resolved += m_helped;
        aborted  += m_aborted;
    }

    EXPECT_GT(resolved, 1000u);
    EXPECT_GT(aborted, 100u);
}

/* Compare and swap of unique values: the successful ones form one chain. */
UCS_TEST_F(test_varuna_amo, cas_chain) {
    unsigned successes = 0, failures = 0, uids = 0;

    for (int round = 0; round < 3000; ++round) {
        uint64_t unique = 0;

        reset((round & 1) ? 4 : 8);
        std::vector<client_t> c = make_clients(1 + (ucs::rand() % 4), 0);
        run(c, 30, (round % 3) * 20, 0, [&] {
            /* The present value, if it does not change; sometimes a UID, as a GET may
             * return */
            return op_t{UCT_ATOMIC_OP_CSWAP, m_target, ++unique, 0, false,
                        false};
        });
        if (HasFatalFailure()) {
            return;
        }

        std::map<uint64_t, uint64_t> next;
        std::set<uint64_t> written{0};
        for (const op_t &op : m_done) {
            /* By the caller's test, even if the compare value was a UID */
            bool success = (op.result == op.compare);
            bool is_uid  = op.compare >> (m_width * 8 - 1);

            if (success) {
                written.insert(op.value);
                uids += is_uid;
            }
            if (success && !is_uid) {
                ++successes;
                ASSERT_TRUE(next.insert({op.compare, op.value}).second)
                        << "two swapped " << op.compare;
            } else if (!success) {
                ++failures;
                ASSERT_FALSE(op.result >> (m_width * 8 - 1))
                        << "somebody was given a UID";
            }
        }
        for (const op_t &op : m_done) {
            ASSERT_TRUE((op.result == op.compare) || written.count(op.result))
                    << "the swap of " << op.result << " was reported as failed";
        }
        ASSERT_TRUE(written.count(m_target));
        ASSERT_FALSE(m_target >> (m_width * 8 - 1)) << "a UID is left";
    }

    EXPECT_GT(successes, 10000u);
    EXPECT_GT(failures, 1000u);
    EXPECT_GT(uids, 100u);
}

/* SWAP: each value except the last is returned once, by the SWAP that replaced it. */
UCS_TEST_F(test_varuna_amo, swap) {
    for (int round = 0; round < 2000; ++round) {
        uint64_t unique = 0;
        std::set<uint64_t> seen;

        reset((round & 1) ? 4 : 8);
        std::vector<client_t> c = make_clients(1 + (ucs::rand() % 4), 0);
        run(c, 25, (round % 3) * 20, 0, [&] {
            return op_t{UCT_ATOMIC_OP_SWAP, 0, ++unique, 0, false, false};
        });
        if (HasFatalFailure()) {
            return;
        }
        seen.insert(m_target);
        for (const op_t &op : m_done) {
            ASSERT_TRUE(seen.insert(op.result).second);
        }
        ASSERT_EQ(26u, seen.size());
    }
}

/* Clients die at any point: the value counts all completed ADDs, and at most one more
 * for each dead client; after a read it is not a UID. */
UCS_TEST_F(test_varuna_amo, dead_owner) {
    unsigned deaths = 0, left = 0;

    for (int round = 0; round < 3000; ++round) {
        reset((round & 1) ? 4 : 8);
        m_dead.clear();
        std::vector<client_t> c = make_clients(4, 1);
        run(c, 30, (round % 3) * 10, 20, [] {
            return op_t{UCT_ATOMIC_OP_ADD, 0, 1, 0, false, false};
        });
        if (HasFatalFailure()) {
            return;
        }

        unsigned untold = 0;
        for (const client_t &d : m_dead) {
            untold += !d.op.is_told;
        }
        left += m_left;
        uint64_t value = resolved();
        ASSERT_EQ(value, m_target) << "a dead owner's UID stays";
        ASSERT_GE(value, m_done.size());
        ASSERT_LE(value, m_done.size() + untold);
        std::set<uint64_t> results;
        for (const op_t &op : m_done) {
            ASSERT_TRUE(results.insert(op.result).second);
        }
        deaths += m_deaths;
    }
    EXPECT_GT(deaths, 500u);
    EXPECT_GT(left, 100u) << "no client ever died between occupy and confirm";
}

/* The other operations, compared with their effect on a plain word */
UCS_TEST_F(test_varuna_amo, operations) {
    for (int round = 0; round < 5000; ++round) {
        static const unsigned ops[] = {UCT_ATOMIC_OP_ADD, UCT_ATOMIC_OP_AND,
                                       UCT_ATOMIC_OP_OR, UCT_ATOMIC_OP_XOR,
                                       UCT_ATOMIC_OP_SWAP,
                                       UCT_ATOMIC_OP_CSWAP};
        unsigned op    = ops[ucs::rand() % 6];
        uint64_t start_value, value, compare, expected;

        reset((round & 1) ? 4 : 8);
        /* Values of all kinds, those which may be UIDs among them */
        start_value = (((uint64_t)ucs::rand() << 40) ^ ucs::rand() ^
                       ((uint64_t)ucs::rand() << 13)) & mask();
        value       = ((ucs::rand() % 4) == 0) ? 0 :
                      (((uint64_t)ucs::rand() << 33) ^ ucs::rand()) & mask();
        compare     = (ucs::rand() & 1) ? start_value : value;
        m_target    = start_value;
        switch (op) {
        case UCT_ATOMIC_OP_ADD:
            expected = start_value + value;
            break;
        case UCT_ATOMIC_OP_AND:
            expected = start_value & value;
            break;
        case UCT_ATOMIC_OP_OR:
            expected = start_value | value;
            break;
        case UCT_ATOMIC_OP_XOR:
            expected = start_value ^ value;
            break;
        case UCT_ATOMIC_OP_SWAP:
            expected = value;
            break;
        default:
            expected = (compare == start_value) ? value : start_value;
            break;
        }

        std::vector<client_t> c = make_clients(1, 0);
        bool given = false;
        run(c, 1, (round % 3) * 20, 0, [&] {
            given = true;
            return op_t{op, compare, value, 0, false, false};
        });
        ASSERT_TRUE(given);
        ASSERT_EQ(1u, m_done.size());
        ASSERT_EQ(start_value, m_done[0].result) << "op " << op;
        ASSERT_EQ(expected & mask(), m_target) << "op " << op;
    }
}

/* Rule 4: a user's value that looks like the UID of a live, idle or confirmed slot is
 * read, returned and replaced as data. */
UCS_TEST_F(test_varuna_amo, false_uids) {
    for (int round = 0; round < 5000; ++round) {
        reset((round & 1) ? 4 : 8);
        std::vector<client_t> c = make_clients(2, 0);
        uint64_t fake;

        /* Its slot has had another target, or this one in a generation which is
         * over */
        run(c, 2, 0, 0, [] {
            return op_t{UCT_ATOMIC_OP_ADD, 0, 1, 0, false, false};
        });
        fake = uct_varuna_uid(ucs::rand() % 2,
                              c[ucs::rand() % 2].gen - (ucs::rand() % 3),
                              m_width);
        if (ucs::rand() & 1) {
            /* Live, of another address */
            m_slots[0].gen_head = m_slots[0].gen_tail =
                    uct_varuna_mark_gen(m_marks[0]) |
                    ((m_width == 4) ? UCT_VARUNA_SLOT_WIDTH32 : 0);
            m_slots[0].addr = ADDR + 64;
            fake = uct_varuna_uid(0, uct_varuna_mark_gen(m_marks[0]), m_width);
        }
        m_target = fake;
        m_done.clear();
        c = make_clients(2, 0);
        run(c, 1, 0, 0, [&] {
            return (ucs::rand() & 1) ?
                   op_t{UCT_ATOMIC_OP_SWAP, 0, 7, 0, false, false} :
                   op_t{UCT_ATOMIC_OP_CSWAP, fake, 7, 0, false, false};
        });
        if (HasFatalFailure()) {
            return;
        }
        ASSERT_EQ(fake, m_done[0].result);
        ASSERT_EQ(7u, m_target);
    }
}

/* Slots with random contents: no access outside the arena, and no endless loop. */
UCS_TEST_F(test_varuna_amo, hostile_slots) {
    for (int round = 0; round < 20000; ++round) {
        reset((round & 1) ? 4 : 8);
        for (unsigned i = 1; i < SLOTS; ++i) {
            uct_varuna_slot_t &s = m_slots[i];
            uint64_t gen = (uint64_t)(ucs::rand() & 3);

            s.gen_head = gen | ((ucs::rand() & 1) ? UCT_VARUNA_SLOT_WIDTH32 : 0);
            s.gen_tail = (ucs::rand() & 3) ? s.gen_head : gen + 1;
            s.addr     = (ucs::rand() & 3) ? ADDR : ADDR + 8;
            s.compare  = uct_varuna_uid(ucs::rand() % SLOTS, ucs::rand() & 3,
                                        m_width);
            s.swap     = uct_varuna_uid(ucs::rand() % SLOTS, ucs::rand() & 3,
                                        m_width);
            m_marks[i] = uct_varuna_mark((ucs::rand() & 3) ? gen : gen + 1,
                                         (uct_varuna_mark_state_t)
                                         (ucs::rand() & 3));
        }
        m_target = uct_varuna_uid(ucs::rand() % SLOTS, ucs::rand() & 3, m_width);
        std::vector<client_t> c = make_clients(1, 0);
        run(c, 3, 10, 0, [&] {
            return op_t{(unsigned)((ucs::rand() & 1) ? UCT_ATOMIC_OP_CSWAP :
                                   UCT_ATOMIC_OP_ADD), m_target,
                        (uint64_t)ucs::rand(), 0, false, false};
        });
        if (HasFatalFailure()) {
            return;
        }
        ASSERT_EQ(3u, m_done.size());
    }
}
