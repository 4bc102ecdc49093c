/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause). */

#include <common/test.h>

extern "C" {
#include <ucs/debug/memtrack_int.h>
#include <uct/ib/varuna/core/varuna_held.h>
}

#include <set>
#include <vector>

class test_varuna_am_seq : public ucs::test {
protected:
    /* Numbers that reveal arithmetic mistakes */
    static std::vector<uint32_t> edges() {
        const uint32_t bases[] = {
            0, UCT_VARUNA_AM_WINDOW, 1u << 31, (1u << 31) - UCT_VARUNA_AM_WINDOW,
            -(uint32_t)UCT_VARUNA_AM_WINDOW
        };
        std::vector<uint32_t> numbers;

        for (size_t i = 0; i < ucs_static_array_size(bases); ++i) {
            for (uint32_t j = 0; j < 7; ++j) {
                numbers.push_back(bases[i] + j - 3);
            }
        }
        return numbers;
    }
};

UCS_TEST_F(test_varuna_am_seq, window) {
    const uint32_t window              = UCT_VARUNA_AM_WINDOW;
    const std::vector<uint32_t> starts = edges();

    for (size_t i = 0; i < starts.size(); ++i) {
        uint32_t next = starts[i];
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_NEXT, uct_varuna_am_seq_judge(next, next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_LATER,
                  uct_varuna_am_seq_judge(next + 1, next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_LATER,
                  uct_varuna_am_seq_judge(next + window - 1, next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_FOREIGN,
                  uct_varuna_am_seq_judge(next + window, next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_FOREIGN,
                  uct_varuna_am_seq_judge(next + (1u << 31), next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_FOREIGN,
                  uct_varuna_am_seq_judge(next - window - 1, next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_REPEATED,
                  uct_varuna_am_seq_judge(next - window, next));
        EXPECT_EQ(UCT_VARUNA_AM_SEQ_REPEATED,
                  uct_varuna_am_seq_judge(next - 1, next));
    }
}

/* Both halves of the secret matter, and openings are independent */
UCS_TEST_F(test_varuna_am_seq, first) {
    std::set<uint32_t> firsts;

    for (unsigned bit = 0; bit < 64; ++bit) {
        firsts.insert(uct_varuna_am_seq_first(UCS_BIT(bit)));
    }
    EXPECT_EQ(32u, firsts.size());
    EXPECT_EQ(0u, firsts.count(0));
}

/* From any first number, each message is delivered once and in order, although pairs
 * arrive in the wrong order, all arrive twice, and messages of others arrive in
 * between */
UCS_TEST_F(test_varuna_am_seq, delivery) {
    const std::vector<uint32_t> starts = edges();
    const uint32_t count               = 20;
    unsigned num_peer = 0, num_all = 0;

    for (size_t i = 0; i < starts.size(); ++i) {
        uint32_t next = starts[i];
        uct_varuna_held_t held;
        std::vector<uint32_t> delivered;

        uct_varuna_held_init(&held, &num_peer, &num_all);
        for (uint32_t j = 0; j < 3 * count; ++j) {
            uint32_t seq = starts[i] + (((j / 3) % count) ^ 1);
            uct_varuna_held_am_t *am;

            seq += (j % 3 == 1) ? (1u << 30) : 0;
            switch (uct_varuna_am_seq_judge(seq, next)) {
            case UCT_VARUNA_AM_SEQ_NEXT:
                do {
                    delivered.push_back(next++);
                    am = uct_varuna_held_take(&held, next);
                    ucs_free(am);
                } while (am != NULL);
                break;
            case UCT_VARUNA_AM_SEQ_LATER:
                if (uct_varuna_held_add(&held, seq, 0, &seq, sizeof(seq)) !=
                    UCS_ERR_ALREADY_EXISTS) {
                    EXPECT_EQ(0u, j % 3);
                }
                break;
            default:
                EXPECT_NE(0u, j % 3);
                break;
            }
        }

        EXPECT_EQ(0u, held.num);
        ASSERT_EQ(count, delivered.size()) << starts[i];
        for (uint32_t j = 0; j < count; ++j) {
            EXPECT_EQ(starts[i] + j, delivered[j]);
        }
        uct_varuna_held_clear(&held);
    }
}
