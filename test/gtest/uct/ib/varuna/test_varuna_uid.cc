/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics with extended status: UIDs, marks, and the arena of slots.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#include <uct/ib/varuna/rc_varuna.h>
#include <ucs/sys/sys.h>
}

class test_varuna_uid : public ucs::test {
protected:
    static uct_varuna_slot_t slot(uint64_t gen, uint64_t addr, unsigned width)
    {
        uct_varuna_slot_t s = {};

        s.gen_head = gen | ((width == 4) ? UCT_VARUNA_SLOT_WIDTH32 : 0);
        s.gen_tail = s.gen_head;
        s.addr     = addr;
        return s;
    }
};

UCS_TEST_F(test_varuna_uid, codec) {
    for (int i = 0; i < 10000; ++i) {
        uint32_t index = ucs::rand() % UCT_VARUNA_SLOTS_MAX;
        uint64_t gen   = (((uint64_t)ucs::rand() << 31) ^ ucs::rand()) &
                         UCT_VARUNA_UID_GEN_MASK;
        uint64_t addr  = ((uint64_t)ucs::rand() << 8) * 8 + 8;

        for (unsigned width : {4u, 8u}) {
            uint64_t uid = uct_varuna_uid(index, gen, width);
            uct_varuna_uid_place_t place;
            uint32_t found;

            EXPECT_EQ(0, uct_varuna_uid_parse(uid, width, UCT_VARUNA_SLOTS_MAX, 0,
                                              &found));
            EXPECT_EQ(index, found);
            /* Both halves name the same slot */
            EXPECT_EQ(-1, uct_varuna_uid_parse(uid, width, UCT_VARUNA_SLOTS_MAX, 1,
                                               &found));
            /* Outside of a smaller arena */
            EXPECT_EQ(-1, uct_varuna_uid_parse(uid, width, index, 0, &found));

            uct_varuna_slot_t s = slot(gen, addr, width);
            EXPECT_TRUE(uct_varuna_uid_find(uid, width, addr, index, &s, &place));
            EXPECT_EQ(addr, place.addr);
            EXPECT_EQ(uid, place.uid);
            EXPECT_EQ(width, place.width);
            EXPECT_EQ(gen, uct_varuna_slot_gen(&s));

            /* Anything that does not match makes it user's data */
            EXPECT_FALSE(uct_varuna_uid_find(uid, width, addr + width, index, &s,
                                             &place));
            s.gen_tail = s.gen_head + 1;
            EXPECT_FALSE(uct_varuna_uid_find(uid, width, addr, index, &s, &place));
            s = slot(uct_varuna_gen_next(gen), addr, width);
            EXPECT_FALSE(uct_varuna_uid_find(uid, width, addr, index, &s, &place));
            s = slot(gen, addr + 1, width);
            EXPECT_FALSE(uct_varuna_uid_find(uid, width, addr + 1, index, &s, &place));
        }
    }
}

/* Each half of a 64-bit UID is found by one who sees only this, and each 32-bit UID by
 * one who sees it in half of a word. */
UCS_TEST_F(test_varuna_uid, halves) {
    const uint64_t addr = 0x7000;

    for (int i = 0; i < 10000; ++i) {
        uint32_t index = 1 + (ucs::rand() % (UCT_VARUNA_SLOTS_MAX - 1));
        uint64_t gen   = (((uint64_t)ucs::rand() << 31) ^ ucs::rand()) &
                         UCT_VARUNA_UID_GEN_MASK;

        for (unsigned half = 0; half < 2; ++half) {
            uint64_t uid        = uct_varuna_uid(index, gen, 8);
            uint64_t value      = (uint32_t)(uid >> (32 * half));
            uct_varuna_slot_t s = slot(gen, addr, 8);
            uct_varuna_uid_place_t place;
            uint32_t found;

            ASSERT_EQ(0, uct_varuna_uid_parse(value, 4, UCT_VARUNA_SLOTS_MAX, 0,
                                              &found));
            EXPECT_EQ(index, found);
            ASSERT_TRUE(uct_varuna_uid_find(value, 4, addr + (4 * half), index, &s,
                                            &place));
            EXPECT_EQ(addr, place.addr);
            EXPECT_EQ(uid, place.uid);
            EXPECT_EQ(8u, place.width);
            EXPECT_EQ(half ? 0x22222222u : 0x11111111u,
                      uct_varuna_uid_replace(value, 4, addr + (4 * half), &place,
                                             0x2222222211111111ul));
            EXPECT_FALSE(uct_varuna_uid_find(value, 4, addr + (4 * !half) + 8, index,
                                             &s, &place));
            /* Neighbours in time differ in both halves */
            s = slot(uct_varuna_gen_next(gen), addr, 8);
            EXPECT_FALSE(uct_varuna_uid_find(value, 4, addr + (4 * half), index, &s,
                                             &place));

            uid   = uct_varuna_uid(index, gen, 4);
            value = half ? ((uid << 32) | 7) : ((7ul << 32) | uid);
            s     = slot(gen, addr + (4 * half), 4);
            ASSERT_EQ((int)half, uct_varuna_uid_parse(value, 8, UCT_VARUNA_SLOTS_MAX,
                                                      0, &found));
            EXPECT_EQ(index, found);
            ASSERT_TRUE(uct_varuna_uid_find(value, 8, addr, index, &s, &place));
            EXPECT_EQ(addr + (4 * half), place.addr);
            EXPECT_EQ(uid, place.uid);
            EXPECT_EQ(4u, place.width);
            EXPECT_EQ(half ? 0x500000007ul : 0x700000005ul,
                      uct_varuna_uid_replace(value, 8, addr, &place, 5));
            s.addr ^= 4;
            EXPECT_FALSE(uct_varuna_uid_find(value, 8, addr, index, &s, &place));
        }
    }
}

/* Rule 1: within half of the range of a half's generations, none of its values returns,
 * also where the upper bits of the generation change. */
UCS_TEST_F(test_varuna_uid, halves_do_not_return) {
    const uint64_t range = UCS_BIT(UCT_VARUNA_UID32_GEN_BITS);

    for (uint64_t turn : {1ul, 2ul, range / 2, range - 1, range, range + 1}) {
        uint64_t first = ((turn * range) - (range / 2)) & UCT_VARUNA_UID_GEN_MASK;

        for (unsigned half = 0; half < 2; ++half) {
            std::set<uint32_t> values;
            for (uint64_t i = 0; i < range - 1; ++i) {
                values.insert(uct_varuna_uid(3, first + i, 8) >> (32 * half));
            }
            EXPECT_EQ(range - 1, values.size()) << "turn " << turn;
        }
    }
}

UCS_TEST_F(test_varuna_uid, marks) {
    const uint64_t gen = 4711;

    EXPECT_EQ(UCT_VARUNA_UID_PENDING,
              uct_varuna_mark_check(
                      uct_varuna_mark(gen, UCT_VARUNA_MARK_PENDING), gen));
    EXPECT_EQ(UCT_VARUNA_UID_DONE,
              uct_varuna_mark_check(uct_varuna_mark(gen, UCT_VARUNA_MARK_DONE),
                                    gen));
    EXPECT_EQ(UCT_VARUNA_UID_ABORTED,
              uct_varuna_mark_check(
                      uct_varuna_mark(gen, UCT_VARUNA_MARK_ABORTED), gen));
    EXPECT_EQ(UCT_VARUNA_UID_FOREIGN,
              uct_varuna_mark_check(
                      uct_varuna_mark(gen, (uct_varuna_mark_state_t)3), gen));
    for (unsigned state = 0; state < 4; ++state) {
        EXPECT_EQ(UCT_VARUNA_UID_FOREIGN,
                  uct_varuna_mark_check(
                          uct_varuna_mark(uct_varuna_gen_next(gen),
                                          (uct_varuna_mark_state_t)state),
                          gen));
    }
}

UCS_TEST_F(test_varuna_uid, small_numbers_are_none) {
    uint32_t found;

    for (uint64_t value : {0ul, 1ul, 4095ul, 1ul << 20, 0x7fffffff7ffffffful}) {
        EXPECT_EQ(-1, uct_varuna_uid_parse(value, 8, UCT_VARUNA_SLOTS_MAX, 0,
                                           &found));
    }
    EXPECT_EQ(-1, uct_varuna_uid_parse(0x7fffffff, 4, UCT_VARUNA_SLOTS_MAX, 0,
                                       &found));
    EXPECT_EQ(-1, uct_varuna_uid_parse(1ul << 63, 8, 0, 0, &found));
    EXPECT_EQ(-1, uct_varuna_uid_parse(UINT64_MAX, 4, UCT_VARUNA_SLOTS_MAX - 1, 0,
                                       &found));
}

UCS_TEST_F(test_varuna_uid, fuzz) {
    unsigned inside = 0;

    for (int i = 0; i < 1000000; ++i) {
        uct_varuna_slot_t s;
        uint32_t found = UINT32_MAX;
        uint64_t value = ((uint64_t)ucs::rand() << 33) ^
                         ((uint64_t)ucs::rand() << 12) ^ ucs::rand();
        unsigned width = (i & 1) ? 4 : 8;

        for (size_t j = 0; j < sizeof(s); ++j) {
            ((uint8_t*)&s)[j] = ucs::rand();
        }
        if (width == 4) {
            value = (uint32_t)value;
        }
        if (uct_varuna_uid_parse(value, width, 1000, 0, &found) >= 0) {
            uct_varuna_uid_place_t place;

            ++inside;
            EXPECT_LT(found, 1000u);
            EXPECT_FALSE(uct_varuna_uid_find(value, width, 0x1000, found, &s, &place));
        }
    }
    EXPECT_GT(inside, 100u);
}

UCS_TEST_F(test_varuna_uid, arena) {
    std::set<uint32_t> taken;
    uct_varuna_arena_t memory;
    uint32_t first;

    ASSERT_UCS_OK(uct_varuna_arena_get(&memory));
    /* Marks share no page with bodies, so no key does */
    EXPECT_EQ(0u, (uintptr_t)memory.slots % ucs_get_page_size());
    EXPECT_EQ(0u, (uintptr_t)memory.marks % ucs_get_page_size());
    while ((first = uct_varuna_arena_alloc()) != UCT_VARUNA_SLOT_NONE) {
        EXPECT_LE(first + UCT_VARUNA_SLOT_BLOCK, UCT_VARUNA_SLOTS_MAX);
        EXPECT_EQ(0u, first % UCT_VARUNA_SLOT_BLOCK);
        EXPECT_TRUE(taken.insert(first).second);
        for (unsigned i = 0; i < UCT_VARUNA_SLOT_BLOCK; ++i) {
            EXPECT_EQ(UCT_VARUNA_MARK_PENDING,
                      (int)uct_varuna_mark_state(memory.marks[first + i]));
        }
    }
    /* Slots that ran out: none is used twice, and one is freed */
    EXPECT_EQ((size_t)UCT_VARUNA_SLOTS_MAX / UCT_VARUNA_SLOT_BLOCK,
              taken.size());
    uct_varuna_arena_free(&memory, *taken.begin());
    EXPECT_EQ(*taken.begin(), uct_varuna_arena_alloc());
    EXPECT_EQ(UCT_VARUNA_SLOT_NONE, uct_varuna_arena_alloc());
    for (uint32_t f : taken) {
        uct_varuna_arena_free(&memory, f);
    }
    uct_varuna_arena_put(&memory);
}

/* A child closes what it has inherited, while it has an arena of its own */
UCS_TEST_F(test_varuna_uid, arena_of_a_child) {
    uct_varuna_arena_t parents, own, again;
    uint32_t first;

    ASSERT_UCS_OK(uct_varuna_arena_get(&parents));
    uct_varuna_arena_forked();
    ASSERT_UCS_OK(uct_varuna_arena_get(&own));
    EXPECT_NE(parents.slots, own.slots);
    first = uct_varuna_arena_alloc();

    uct_varuna_arena_free(&parents, first);
    EXPECT_NE(first, uct_varuna_arena_alloc());
    uct_varuna_arena_put(&parents);
    ASSERT_UCS_OK(uct_varuna_arena_get(&again));
    EXPECT_EQ(own.slots, again.slots);
    uct_varuna_arena_put(&again);
    uct_varuna_arena_put(&own);
    ucs_free(parents.marks); /* This process is the parent, too */
    ucs_free(parents.slots);
}

/* The application's view of a word */
UCS_TEST_F(test_varuna_uid, application_reads) {
    uint64_t word __attribute__((aligned(8))) = 5, value = 0;
    uct_varuna_arena_t memory;
    uint64_t gen;

    EXPECT_EQ(-EINVAL, rc_varuna_atomic_read(&word, 2, &value));
    EXPECT_EQ(-EINVAL, rc_varuna_atomic_read((char*)&word + 4, 8, &value));
    word = UINT64_MAX; /* There is no arena yet */
    EXPECT_EQ(0, rc_varuna_atomic_read(&word, 8, &value));
    EXPECT_EQ(UINT64_MAX, value);

    ASSERT_UCS_OK(uct_varuna_arena_get(&memory));
    for (unsigned width : {4u, 8u}) {
        gen      = uct_varuna_mark_gen(memory.marks[7]);
        word     = uct_varuna_uid(7, gen, width);
        EXPECT_EQ(0, rc_varuna_atomic_read(&word, width, &value));
        EXPECT_EQ(word, value) << "it is not of this word";

        memory.slots[7]      = slot(gen, (uintptr_t)&word, width);
        memory.slots[7].swap = 42;
        EXPECT_EQ(-EAGAIN, rc_varuna_atomic_read(&word, width, &value));
        memory.marks[7] = uct_varuna_mark(gen, UCT_VARUNA_MARK_DONE);
        EXPECT_EQ(0, rc_varuna_atomic_read(&word, width, &value));
        EXPECT_EQ(42u, value);
        memory.marks[7] = uct_varuna_mark(gen, UCT_VARUNA_MARK_ABORTED);
        EXPECT_EQ(-EAGAIN, rc_varuna_atomic_read(&word, width, &value));
        memory.marks[7] = uct_varuna_mark(gen + 1, UCT_VARUNA_MARK_PENDING);
        EXPECT_EQ(0, rc_varuna_atomic_read(&word, width, &value));
        EXPECT_EQ(word, value) << "that generation is over";
    }
    uct_varuna_arena_put(&memory);
}

/* ... where words of both widths overlap */
UCS_TEST_F(test_varuna_uid, application_reads_halves) {
    uint64_t word __attribute__((aligned(8))) = 0, value = 0;
    uint32_t *half = (uint32_t*)&word;
    uct_varuna_arena_t memory;
    uint64_t gen;

    ASSERT_UCS_OK(uct_varuna_arena_get(&memory));
    for (unsigned i = 0; i < 2; ++i) {
        /* Half of a UID, and half of what it represents */
        gen                  = uct_varuna_mark_gen(memory.marks[7]);
        word                 = uct_varuna_uid(7, gen, 8);
        memory.slots[7]      = slot(gen, (uintptr_t)&word, 8);
        memory.slots[7].swap = 0x4200000043ul;
        EXPECT_EQ(-EAGAIN, rc_varuna_atomic_read(&half[i], 4, &value));
        memory.marks[7] = uct_varuna_mark(gen, UCT_VARUNA_MARK_DONE);
        EXPECT_EQ(0, rc_varuna_atomic_read(&half[i], 4, &value));
        EXPECT_EQ(i ? 0x42u : 0x43u, value);
        half[!i] ^= 1;
        EXPECT_EQ(0, rc_varuna_atomic_read(&half[i], 4, &value));
        EXPECT_EQ(half[i], value) << "the other half does not match";
        memory.marks[7] = uct_varuna_mark(gen + 1, UCT_VARUNA_MARK_PENDING);

        /* A UID in half of the word, and another one in the other half */
        gen                  = uct_varuna_mark_gen(memory.marks[8]);
        half[i]              = uct_varuna_uid(8, gen, 4);
        half[!i]             = 5;
        memory.slots[8]      = slot(gen, (uintptr_t)&half[i], 4);
        memory.slots[8].swap = 42;
        EXPECT_EQ(-EAGAIN, rc_varuna_atomic_read(&word, 8, &value));
        memory.marks[8] = uct_varuna_mark(gen, UCT_VARUNA_MARK_DONE);
        EXPECT_EQ(0, rc_varuna_atomic_read(&word, 8, &value));
        EXPECT_EQ(i ? (42ul << 32) + 5 : (5ul << 32) + 42, value);

        gen                  = uct_varuna_mark_gen(memory.marks[9]);
        half[!i]             = uct_varuna_uid(9, gen, 4);
        memory.slots[9]      = slot(gen, (uintptr_t)&half[!i], 4);
        memory.slots[9].swap = 43;
        EXPECT_EQ(-EAGAIN, rc_varuna_atomic_read(&word, 8, &value));
        memory.marks[9] = uct_varuna_mark(gen, UCT_VARUNA_MARK_DONE);
        EXPECT_EQ(0, rc_varuna_atomic_read(&word, 8, &value));
        EXPECT_EQ(i ? (42ul << 32) + 43 : (43ul << 32) + 42, value);
        memory.marks[8] = uct_varuna_mark(uct_varuna_mark_gen(memory.marks[8]) + 1,
                                          UCT_VARUNA_MARK_PENDING);
        memory.marks[9] = uct_varuna_mark(gen + 1, UCT_VARUNA_MARK_PENDING);
    }
    uct_varuna_arena_put(&memory);
}
