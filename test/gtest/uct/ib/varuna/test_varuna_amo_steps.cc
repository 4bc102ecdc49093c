/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Atomics with extended status, step by step in a given order: cases that
 * test_varuna_amo.cc hits only by chance, or never, because they need 2^16 operations.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/extended/varuna_amo_sm.h>
}

class test_varuna_amo_steps : public ucs::test {
protected:
    static constexpr uint64_t ADDR = 0x7f0000001000ul;
    static constexpr unsigned SLOTS = 2;

    typedef uct_varuna_amo_sm_t sm_t;

    virtual void init()
    {
        ucs::test::init();
        m_target = 0;
        memset(m_slots, 0, sizeof(m_slots));
        for (unsigned i = 0; i < SLOTS; ++i) {
            m_gens[i]       = 12345 + i;
            m_marks[i] = uct_varuna_mark(m_gens[i], UCT_VARUNA_MARK_PENDING);
        }
    }

    static uint64_t cas(uint64_t *word, uint64_t compare, uint64_t swap)
    {
        uint64_t old = *word;

        if (old == compare) {
            *word = swap;
        }
        return old;
    }

    void begin(sm_t &sm, unsigned slot, unsigned op, uint64_t compare,
               uint64_t value)
    {
        uct_varuna_amo_sm_start(&sm, op, 8, ADDR, compare, value, SLOTS);
        uct_varuna_amo_sm_set_slot(&sm, slot, m_gens[slot]);
    }

    /* Execute the access. @return Its result */
    uint64_t execute(const sm_t &sm)
    {
        const uct_varuna_amo_act_t &act = sm.act;
        uct_varuna_slot_t &slot         = m_slots[act.slot];
        uint64_t *mark                  = &m_marks[act.slot];

        switch (act.type) {
        case UCT_VARUNA_AMO_ACT_READ:
            return m_target;
        case UCT_VARUNA_AMO_ACT_READ_BODY:
            return 0;
        case UCT_VARUNA_AMO_ACT_CAS_MARK:
            return cas(mark, act.mark_from, act.mark_to);
        case UCT_VARUNA_AMO_ACT_CONFIRM:
            cas(&m_target, act.compare, act.swap);
            return cas(mark, act.mark_from, act.mark_to);
        case UCT_VARUNA_AMO_ACT_OCCUPY:
            uct_varuna_amo_sm_body(&sm, &slot);
            /* Fall through */
        default:
            return cas(&m_target, act.compare, act.swap);
        }
    }

    void step(sm_t &sm)
    {
        uct_varuna_slot_t slot = m_slots[sm.act.slot];

        uct_varuna_amo_sm_done(&sm, execute(sm), &slot);
    }

    /* Run until this is the next action */
    void run_to(sm_t &sm, unsigned state)
    {
        for (unsigned i = 0; sm.state != state; ++i) {
            ASSERT_LT(i, 100u) << "in " << uct_varuna_amo_state_names[sm.state];
            ASSERT_NE(UCT_VARUNA_AMO_FINISHED, (int)sm.state);
            step(sm);
        }
        if (state == UCT_VARUNA_AMO_FINISHED) {
            m_gens[sm.slot] = sm.gen;
        }
    }

    uint64_t          m_target;
    uct_varuna_slot_t m_slots[SLOTS];
    uint64_t          m_marks[SLOTS];
    uint64_t          m_gens[SLOTS];
};

/* Rule 1: a slow client has found and marked a UID. The owner executes 2^16 operations
 * on the same word. The slow client's next access must not match. */
UCS_TEST_F(test_varuna_amo_steps, generation_of_the_slow) {
    sm_t owner, slow;

    begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 1);
    run_to(owner, UCT_VARUNA_AMO_CONFIRM);
    begin(slow, 1, UCT_ATOMIC_OP_ADD, 0, 1);
    run_to(slow, UCT_VARUNA_AMO_HELP);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    for (unsigned i = 1; i < UCS_BIT(16); ++i) {
        begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 1);
        run_to(owner, UCT_VARUNA_AMO_FINISHED);
    }

    begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 1);
    run_to(owner, UCT_VARUNA_AMO_CONFIRM);
    EXPECT_EQ(UCS_BIT(16), owner.result);
    step(slow); /* HELP: replace the UID by its old value */
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(UCS_BIT(16) + 1, m_target) << "the slow one has put an old value";
}

/* Rule 5: a failed CAS returns the value that the owner has written but does not know
 * of. A put replaces this value before the owner checks: then only the mark shows that
 * it was executed. */
UCS_TEST_F(test_varuna_amo_steps, failed_cas_marks) {
    sm_t owner, reader;

    begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 7);
    run_to(owner, UCT_VARUNA_AMO_OCCUPY);
    execute(owner); /* The answer is lost */

    begin(reader, 1, UCT_ATOMIC_OP_CSWAP, 5, 6);
    run_to(reader, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(7u, reader.result);

    m_target = 100;
    uct_varuna_amo_sm_lost(&owner);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(0u, owner.result);
    EXPECT_EQ(100u, m_target) << "it was executed again";
    EXPECT_TRUE(owner.flags & UCT_VARUNA_AMO_FLAG_RECOVERED);
}

/* Rule 4: body and mark are read one after the other. In between the owner has
 * confirmed and continued, on the same word, so that its UID is there again, or on
 * another one. A body of one generation is not valid with the mark of another. */
UCS_TEST_F(test_varuna_amo_steps, body_and_mark_of_two_generations) {
    for (unsigned goes_on = 0; goes_on <= 1; ++goes_on) {
        sm_t owner, reader;

        m_target = 0;
        begin(owner, 0, UCT_ATOMIC_OP_SWAP, 0, 100);
        run_to(owner, UCT_VARUNA_AMO_CONFIRM);
        begin(reader, 1, UCT_ATOMIC_OP_ADD, 0, 1);
        run_to(reader, UCT_VARUNA_AMO_MARK); /* It has the body */
        run_to(owner, UCT_VARUNA_AMO_FINISHED);
        begin(owner, 0, UCT_ATOMIC_OP_SWAP, 0, 200);
        run_to(owner, goes_on ? UCT_VARUNA_AMO_CONFIRM :
                                UCT_VARUNA_AMO_OCCUPY);

        step(reader);
        EXPECT_EQ(uct_varuna_mark(m_gens[0], UCT_VARUNA_MARK_PENDING),
                  m_marks[0]) << "a mark of the next generation was changed";
        run_to(reader, UCT_VARUNA_AMO_FINISHED);
        EXPECT_EQ(goes_on ? 200u : 100u, reader.result);
        EXPECT_EQ(goes_on ? 201u : 101u, m_target);
        run_to(owner, UCT_VARUNA_AMO_FINISHED);
        EXPECT_EQ(goes_on ? 100u : 101u, owner.result);
        EXPECT_EQ(goes_on ? 201u : 200u, m_target);
    }
}

/* The same, in the other order: the body is of the next generation already */
UCS_TEST_F(test_varuna_amo_steps, body_of_the_next_generation) {
    sm_t owner, reader;

    begin(owner, 0, UCT_ATOMIC_OP_SWAP, 0, 100);
    run_to(owner, UCT_VARUNA_AMO_CONFIRM);
    begin(reader, 1, UCT_ATOMIC_OP_ADD, 0, 1);
    run_to(reader, UCT_VARUNA_AMO_BODY);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    begin(owner, 0, UCT_ATOMIC_OP_SWAP, 0, 200);
    run_to(owner, UCT_VARUNA_AMO_CONFIRM);

    step(reader);
    EXPECT_EQ(UCT_VARUNA_AMO_REREAD, (int)reader.state);
    run_to(reader, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(200u, reader.result);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(201u, m_target);
}

/* The CAS that sets a mark detects that another client has set it. */
UCS_TEST_F(test_varuna_amo_steps, marks_of_others) {
    for (unsigned state = UCT_VARUNA_MARK_PENDING;
         state <= UCT_VARUNA_MARK_ABORTED; ++state) {
        sm_t owner, reader;

        m_target = 0;
        begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 7);
        run_to(owner, UCT_VARUNA_AMO_CONFIRM);
        begin(reader, 1, UCT_ATOMIC_OP_ADD, 0, 0);
        run_to(reader, UCT_VARUNA_AMO_MARK);
        m_marks[0] = uct_varuna_mark(m_gens[0], (uct_varuna_mark_state_t)state);
        step(reader);
        EXPECT_EQ((state == UCT_VARUNA_MARK_ABORTED) ? UCT_VARUNA_AMO_UNDO :
                                                       UCT_VARUNA_AMO_HELP,
                  (int)reader.state);
        run_to(reader, UCT_VARUNA_AMO_FINISHED);
        EXPECT_EQ((state == UCT_VARUNA_MARK_ABORTED) ? 0u : 7u, reader.result);
        run_to(owner, UCT_VARUNA_AMO_FINISHED);
    }
}

/* Rule 6: an occupy that could not be fenced may arrive after the mark is ABORTED. No
 * client uses its value, and a client that finds it restores the old value. */
UCS_TEST_F(test_varuna_amo_steps, late_occupy_is_aborted) {
    sm_t owner, late, reader;

    begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 7);
    run_to(owner, UCT_VARUNA_AMO_OCCUPY);
    late = owner;
    uct_varuna_amo_sm_lost(&owner);
    run_to(owner, UCT_VARUNA_AMO_LOST_UNDO);
    EXPECT_EQ(UCT_VARUNA_MARK_ABORTED,
              (int)uct_varuna_mark_state(m_marks[0]));

    execute(late);
    EXPECT_NE(0u, m_target);
    begin(reader, 1, UCT_ATOMIC_OP_ADD, 0, 0);
    run_to(reader, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(0u, reader.result) << "an aborted operation counts";
    EXPECT_EQ(0u, m_target);

    /* It arrives again, no other client finds it, and the owner undoes it */
    execute(late);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(0u, owner.result);
    EXPECT_EQ(7u, m_target);
}

/* Rule 4: the user has put a value that equals our UID. Our CAS fails with it, and must
 * not take it for its own UID: the word does not change, before and after an operation
 * that has marked this UID. */
UCS_TEST_F(test_varuna_amo_steps, own_uid_is_data) {
    for (unsigned is_marked = 0; is_marked <= 1; ++is_marked) {
        uint64_t data = uct_varuna_uid(0, m_gens[0], 8);
        sm_t owner, reader;

        m_target = data;
        begin(owner, 0, UCT_ATOMIC_OP_CSWAP, 5, 6);
        run_to(owner, UCT_VARUNA_AMO_RENEW);
        if (is_marked) {
            begin(reader, 1, UCT_ATOMIC_OP_ADD, 0, 0);
            run_to(reader, UCT_VARUNA_AMO_HELP);
        }
        run_to(owner, UCT_VARUNA_AMO_FINISHED);
        EXPECT_EQ(data, owner.result);
        EXPECT_EQ(data, m_target);
        EXPECT_EQ(uct_varuna_mark(m_gens[0], UCT_VARUNA_MARK_PENDING),
                  m_marks[0]);

        begin(reader, 1, UCT_ATOMIC_OP_ADD, 0, 1);
        run_to(reader, UCT_VARUNA_AMO_FINISHED);
        EXPECT_EQ(data, reader.result) << "taken for a UID that is over";
        EXPECT_EQ(data + 1, m_target);
    }
}

/* The same as the compare value of a CAS; the slot has the body of a failed one. */
UCS_TEST_F(test_varuna_amo_steps, own_uid_is_compared) {
    uint64_t data = uct_varuna_uid(0, m_gens[0], 8);
    sm_t owner;

    begin(owner, 0, UCT_ATOMIC_OP_CSWAP, 5, 7);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    m_target = data;
    begin(owner, 0, UCT_ATOMIC_OP_CSWAP, data, 6);
    run_to(owner, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(data, owner.result);
    EXPECT_EQ(6u, m_target);
}

/* Rule 8: the user has read a UID, and compares with it. The result shows that the CAS
 * has succeeded, even if its answer was lost, if it is started again, or if it changes
 * nothing. */
UCS_TEST_F(test_varuna_amo_steps, uid_is_compared) {
    sm_t owner, user;
    uint64_t uid;

    for (unsigned how = 0; how < 4; ++how) {
        m_target = 0;
        begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 7);
        run_to(owner, UCT_VARUNA_AMO_CONFIRM);
        uid = m_target;
        ASSERT_EQ(uct_varuna_uid(0, m_gens[0], 8), uid);
        begin(user, 1, UCT_ATOMIC_OP_CSWAP, uid, (how == 3) ? 7 : 6);
        if ((how == 1) || (how == 2)) {
            run_to(user, UCT_VARUNA_AMO_OCCUPY);
            if (how == 1) {
                execute(user);
            }
            uct_varuna_amo_sm_lost(&user);
        }
        run_to(user, UCT_VARUNA_AMO_FINISHED);
        run_to(owner, UCT_VARUNA_AMO_FINISHED);
        EXPECT_EQ(uid, user.result) << "a success is a failure, " << how;
        EXPECT_EQ((how == 3) ? 7u : 6u, m_target);
    }
}

/* The same for a CAS that fails, because others write another value before it. */
UCS_TEST_F(test_varuna_amo_steps, uid_is_compared_in_vain) {
    sm_t owner, user;

    begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 7);
    run_to(owner, UCT_VARUNA_AMO_CONFIRM);
    begin(user, 1, UCT_ATOMIC_OP_CSWAP, m_target, 6);
    run_to(user, UCT_VARUNA_AMO_OCCUPY);
    m_target = 100;
    run_to(user, UCT_VARUNA_AMO_FINISHED);
    EXPECT_EQ(100u, user.result);
    EXPECT_EQ(100u, m_target);
}

/* The home NIC executes it, with the value of the UID. */
UCS_TEST_F(test_varuna_amo_steps, uid_is_compared_at_home) {
    sm_t owner, user;
    uint64_t uid;

    begin(owner, 0, UCT_ATOMIC_OP_ADD, 0, 7);
    run_to(owner, UCT_VARUNA_AMO_CONFIRM);
    uid = m_target;
    begin(user, 1, UCT_ATOMIC_OP_CSWAP, uid, 6);
    run_to(user, UCT_VARUNA_AMO_OCCUPY);
    ASSERT_TRUE(uct_varuna_amo_sm_is_free(&user));
    EXPECT_EQ(7u, user.compare);
    uct_varuna_amo_sm_executed(&user, 7);
    EXPECT_EQ(uid, user.result);
}
