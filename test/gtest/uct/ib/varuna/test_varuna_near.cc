/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which links come next after the primary.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_link.h>
}

#include <vector>

class test_varuna_near : public ucs::test {
protected:
    typedef std::vector<unsigned> order_t;

    static order_t order(const std::vector<double> &distances, unsigned primary)
    {
        uint8_t result[UCT_VARUNA_MAX_LINKS];

        uct_varuna_near_order(distances.data(), distances.size(), primary, result);
        return order_t(result, result + distances.size());
    }

    /* Two at each switch, two switches at each of two root complexes: as UCX sees it */
    static double distance(unsigned link1, unsigned link2)
    {
        return ((link1 / 2) == (link2 / 2)) ? 0 :
               ((link1 / 4) == (link2 / 4)) ? 300e-9 : 500e-9;
    }

    static order_t order_of_eight(unsigned primary)
    {
        std::vector<double> distances;

        for (unsigned link = 0; link < 8; ++link) {
            distances.push_back(distance(primary, link));
        }
        return order(distances, primary);
    }
};

UCS_TEST_F(test_varuna_near, only_one) {
    EXPECT_EQ(order_t({0}), order({0}, 0));
}

UCS_TEST_F(test_varuna_near, the_nearest_first) {
    EXPECT_EQ(order_t({0, 3, 1, 2}), order({0, 2, 3, 1}, 0));
    EXPECT_EQ(order_t({2, 0, 3, 1}), order({1, 3, 0, 2}, 2));
}

UCS_TEST_F(test_varuna_near, the_primary_is_first_at_any_distance) {
    EXPECT_EQ(order_t({1, 0, 2}), order({1, 9, 2}, 1));
}

/* Rails do not all fall back to link 0 */
UCS_TEST_F(test_varuna_near, equal_distances_go_round) {
    EXPECT_EQ(order_t({0, 1, 2, 3}), order({0, 0, 0, 0}, 0));
    EXPECT_EQ(order_t({1, 2, 3, 0}), order({0, 0, 0, 0}, 1));
    EXPECT_EQ(order_t({3, 0, 1, 2}), order({0, 0, 0, 0}, 3));
    EXPECT_EQ(order_t({2, 3, 0, 1}), order({1, 2, 0, 1}, 2));
}

UCS_TEST_F(test_varuna_near, rails_of_a_host_with_eight_nics) {
    EXPECT_EQ(order_t({0, 1, 2, 3, 4, 5, 6, 7}), order_of_eight(0));
    EXPECT_EQ(order_t({1, 0, 2, 3, 4, 5, 6, 7}), order_of_eight(1));
    EXPECT_EQ(order_t({3, 2, 0, 1, 4, 5, 6, 7}), order_of_eight(3));
    EXPECT_EQ(order_t({6, 7, 4, 5, 0, 1, 2, 3}), order_of_eight(6));
    EXPECT_EQ(order_t({7, 6, 4, 5, 0, 1, 2, 3}), order_of_eight(7));
}

/* Each rail is the first fallback of exactly one other */
UCS_TEST_F(test_varuna_near, fallbacks_are_spread) {
    for (bool is_known : {true, false}) {
        unsigned fallbacks = 0;

        for (unsigned primary = 0; primary < 8; ++primary) {
            order_t result = is_known ? order_of_eight(primary) :
                             order(std::vector<double>(8, 0), primary);
            fallbacks |= UCS_BIT(result[1]);
        }
        EXPECT_EQ(0xffu, fallbacks);
    }
}
