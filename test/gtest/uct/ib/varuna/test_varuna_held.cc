/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause). */

#include <common/test.h>

extern "C" {
#include <ucs/debug/memtrack_int.h>
#include <uct/ib/varuna/core/varuna_held.h>
}

class test_varuna_held : public ucs::test {
protected:
    enum { NUM_VQPS = 5 };

    virtual void init() {
        ucs::test::init();
        m_all = 0;
        for (unsigned i = 0; i < NUM_VQPS; ++i) {
            m_peers[i] = 0;
            uct_varuna_held_init(&m_held[i], &m_peers[i], &m_all);
        }
    }

    virtual void cleanup() {
        for (unsigned i = 0; i < NUM_VQPS; ++i) {
            uct_varuna_held_clear(&m_held[i]);
        }
        EXPECT_EQ(0u, m_all);
        ucs::test::cleanup();
    }

    /* The payload is the number */
    ucs_status_t add(unsigned vqp, uint32_t seq) {
        return uct_varuna_held_add(&m_held[vqp], seq, seq % 32, &seq,
                                   sizeof(seq));
    }

    bool take(unsigned vqp, uint32_t seq) {
        uct_varuna_held_am_t *am = uct_varuna_held_take(&m_held[vqp], seq);
        if (am == NULL) {
            return false;
        }

        EXPECT_EQ(sizeof(seq), am->length);
        EXPECT_EQ(seq % 32, am->am_id);
        EXPECT_EQ(seq, *(const uint32_t*)(am + 1));
        ucs_free(am);
        return true;
    }

    void fill(unsigned vqp, unsigned num) {
        for (unsigned i = 0; i < num; ++i) {
            ASSERT_UCS_OK(add(vqp, i));
        }
    }

    uct_varuna_held_t m_held[NUM_VQPS];
    unsigned          m_peers[NUM_VQPS];
    unsigned          m_all;
};

UCS_TEST_F(test_varuna_held, each_once_in_any_order) {
    const uint32_t first = UINT32_MAX - 500; /* Numbers wrap around */

    for (uint32_t i = 0; i < 1000; ++i) {
        ASSERT_UCS_OK(add(0, first + ((i * 7) % 1000)));
        EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, add(0, first + ((i * 7) % 1000)));
    }
    EXPECT_EQ(1000u, m_held[0].num);
    EXPECT_FALSE(take(0, first - 1));
    for (uint32_t i = 0; i < 1000; ++i) {
        EXPECT_TRUE(take(0, first + i));
        EXPECT_FALSE(take(0, first + i));
    }
    EXPECT_EQ(0u, m_held[0].num);
    EXPECT_EQ(NULL, m_held[0].table);
}

UCS_TEST_F(test_varuna_held, limit_of_a_peer) {
    /* Two vQPs of one peer */
    uct_varuna_held_init(&m_held[1], &m_peers[0], &m_all);
    fill(0, UCT_VARUNA_HELD_MAX_PEER - 1);
    EXPECT_EQ(UCS_OK, add(1, 1));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, add(1, 2));
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, add(0, UCT_VARUNA_HELD_MAX_PEER));
    /* It does not block others, and dropped messages free their place */
    EXPECT_EQ(UCS_OK, add(2, 1));
    uct_varuna_held_clear(&m_held[0]);
    EXPECT_EQ(1u, m_peers[0]);
    EXPECT_EQ(UCS_OK, add(1, 2));
}

UCS_TEST_F(test_varuna_held, limit_of_all) {
    unsigned num = UCT_VARUNA_HELD_MAX / UCT_VARUNA_HELD_MAX_PEER;

    ASSERT_LT(num, (unsigned)NUM_VQPS);
    for (unsigned i = 0; i < num; ++i) {
        fill(i, UCT_VARUNA_HELD_MAX_PEER);
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, add(num, 0));
    EXPECT_TRUE(take(0, 5));
    EXPECT_EQ(UCS_OK, add(num, 0));
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, add(num, 1));
}
