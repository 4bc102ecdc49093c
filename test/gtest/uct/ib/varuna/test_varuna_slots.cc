/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Slots: when a generation of one may be used again (rule 1 of docs/ATOMICS.md), slots
 * that run out; and the wait after lost races (rule 10).
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
}

#include <vector>

class test_varuna_slots : public ucs::test {
protected:
    static constexpr uint64_t HALF = UCT_VARUNA_SLOT_HALF_MASK + 1;

    void make(unsigned num, uint64_t gen)
    {
        std::vector<uint64_t> marks(num, uct_varuna_mark(
                gen, UCT_VARUNA_MARK_PENDING));

        uct_varuna_slots_init(&m_slots, 32, num, marks.data(), m_now);
    }

    /* As the driver of atomics does */
    uint32_t take(uint64_t *gen_p)
    {
        uint32_t slot = uct_varuna_slots_take(&m_slots, gen_p);

        return ((slot == UCT_VARUNA_SLOT_NONE) &&
                uct_varuna_slots_wait_for_time(&m_slots)) ?
               uct_varuna_slots_take_timed(&m_slots, m_now, gen_p) : slot;
    }

    /* Use a slot @a count times; it is given back with the next generation.
     * @return How often that was possible. */
    uint64_t use(uint64_t count)
    {
        uint64_t gen, i;
        uint32_t slot;

        for (i = 0; i < count; ++i) {
            slot = take(&gen);
            if (slot == UCT_VARUNA_SLOT_NONE) {
                break;
            }
            uct_varuna_slots_give(&m_slots, slot, uct_varuna_gen_next(gen));
        }

        return i;
    }

    void let_time_pass()
    {
        m_now += ucs_time_from_sec(UCT_VARUNA_SLOT_HALF_TIME + 1);
    }

    ucs_time_t         m_now = 1000000;
    uct_varuna_slots_t m_slots;
};

/* No slot is used twice; if all are used, a caller waits for one to be freed */
UCS_TEST_F(test_varuna_slots, run_out) {
    std::vector<uint32_t> taken;
    uint32_t slot;
    uint64_t gen;

    make(UCT_VARUNA_SLOT_BLOCK, 1000);
    while ((slot = take(&gen)) != UCT_VARUNA_SLOT_NONE) {
        EXPECT_EQ(1000u, gen);
        EXPECT_EQ(32 + taken.size(), slot);
        taken.push_back(slot);
    }
    EXPECT_EQ((size_t)UCT_VARUNA_SLOT_BLOCK, taken.size());
    /* Freeing a slot wakes a waiting caller */
    EXPECT_FALSE(uct_varuna_slots_wait_for_time(&m_slots));
    uct_varuna_slots_give(&m_slots, taken[5], 1001);
    EXPECT_EQ(taken[5], take(&gen));
    EXPECT_EQ(1001u, gen);
}

/* A slot with an undecided operation of its last owner is not used */
UCS_TEST_F(test_varuna_slots, leftovers) {
    uint64_t marks[] = {uct_varuna_mark(7, UCT_VARUNA_MARK_DONE),
                        uct_varuna_mark(7, UCT_VARUNA_MARK_ABORTED),
                        uct_varuna_mark(7, UCT_VARUNA_MARK_PENDING)};
    uint64_t gen;

    uct_varuna_slots_init(&m_slots, 0, 3, marks, m_now);
    EXPECT_EQ(2u, take(&gen));
    EXPECT_EQ(UCT_VARUNA_SLOT_NONE, take(&gen));

    /* Without any, nobody waits for one */
    uct_varuna_slots_init(&m_slots, 0, 2, marks, m_now);
    EXPECT_EQ(0u, m_slots.num);
}

/* UIDs of both widths: at least half of the generations must wait */
UCS_TEST_F(test_varuna_slots, no_early_wrap) {
    make(1, 5);
    EXPECT_EQ(HALF - 5, use(4 * HALF)) << "a half was entered early";
    EXPECT_TRUE(uct_varuna_slots_wait_for_time(&m_slots)) << "it would hang";
    EXPECT_EQ(0u, use(1));
    for (int i = 0; i < 4; ++i) {
        let_time_pass();
        EXPECT_EQ(HALF, use(4 * HALF));
    }
}

/* ... then another slot is used */
UCS_TEST_F(test_varuna_slots, next_slot) {
    make(2, 5);
    EXPECT_EQ(2 * (HALF - 5), use(8 * HALF));
}

/* Rule 10 */
UCS_TEST_F(test_varuna_slots, back_off) {
    uct_varuna_amo_sm_t sm;
    unsigned last = 0, most, ns;

    uct_varuna_amo_sm_start(&sm, UCT_ATOMIC_OP_ADD, 8, 0x1000, 0, 1, 8);
    for (sm.retries = 0; sm.retries < 100; ++sm.retries) {
        most = 0;
        for (int i = 0; i < 2000; ++i) {
            ns   = uct_varuna_amo_sm_backoff(&sm, ucs::rand());
            most = ucs_max(most, ns);
        }
        if (sm.retries <= 2) {
            EXPECT_EQ(0u, most) << "it waits after " << sm.retries << " races";
        } else {
            EXPECT_GT(most, 0u);
            EXPECT_LE(most, 200000u);
            EXPECT_GE(most * 2, last) << "it does not grow";
            last = most;
        }
    }
    EXPECT_GT(last, 50000u);

    /* A decided operation does not wait */
    sm.state = UCT_VARUNA_AMO_CONFIRM;
    EXPECT_EQ(0u, uct_varuna_amo_sm_backoff(&sm, 12345));
}
