/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause). */

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/ucx/varuna_random.h>
}

#include <set>
#include <vector>

class test_varuna_numbers : public ucs::test {
protected:
    virtual void init() {
        ucs::test::init();
        m_is_open = false;
    }

    virtual void cleanup() {
        if (m_is_open) {
            uct_varuna_numbers_cleanup(&m_numbers);
        }
        ucs::test::cleanup();
    }

    void open(unsigned bits) {
        ASSERT_UCS_OK(uct_varuna_numbers_init(&m_numbers, bits));
        m_is_open = true;
    }

    ucs_status_t add(uct_varuna_numbered_t *object) {
        ucs_status_t status;
        uint32_t number;

        do {
            EXPECT_UCS_OK(uct_varuna_random(&number, sizeof(number)));
            status = uct_varuna_numbers_add(&m_numbers, object, number);
        } while (status == UCS_ERR_ALREADY_EXISTS);
        return status;
    }

    uct_varuna_numbered_t *find(uint32_t number) {
        return uct_varuna_numbers_find(&m_numbers, number);
    }

    uct_varuna_numbers_t m_numbers;
    bool                 m_is_open;
};

UCS_TEST_F(test_varuna_numbers, all_are_found_while_it_grows) {
    std::vector<uct_varuna_numbered_t> objects(5000);
    std::set<uint32_t> numbers;

    open(27);
    for (size_t i = 0; i < objects.size(); ++i) {
        ASSERT_UCS_OK(add(&objects[i]));
        EXPECT_GT(UCS_BIT(27), objects[i].number);
        EXPECT_NE(0u, objects[i].number);
        EXPECT_TRUE(numbers.insert(objects[i].number).second);
        if ((i & (i + 1)) == 0) {
            for (size_t j = 0; j <= i; ++j) {
                ASSERT_EQ(&objects[j], find(objects[j].number));
            }
        }
    }

    for (size_t i = 0; i < objects.size(); i += 2) {
        uct_varuna_numbers_remove(&m_numbers, &objects[i]);
    }

    for (size_t i = 0; i < objects.size(); ++i) {
        EXPECT_EQ((i % 2) ? &objects[i] : NULL, find(objects[i].number));
    }
}

/* A number reveals nothing about others: neighbours are not used */
UCS_TEST_F(test_varuna_numbers, are_no_neighbours) {
    std::vector<uct_varuna_numbered_t> objects(64);
    unsigned count = 0;

    open(27);
    for (size_t i = 0; i < objects.size(); ++i) {
        ASSERT_UCS_OK(add(&objects[i]));
    }

    for (size_t i = 0; i < objects.size(); ++i) {
        for (uint32_t j = 1; j < 64; ++j) {
            count += (find(objects[i].number ^ j) != NULL);
        }
    }
    /* Two of 64 in the same 64 of 2^27 are no accident */
    EXPECT_LE(count, 2u);
}

UCS_TEST_F(test_varuna_numbers, half_of_them_are_used_at_most) {
    std::vector<uct_varuna_numbered_t> objects(129);

    open(8);
    for (size_t i = 0; i < 128; ++i) {
        ASSERT_UCS_OK(add(&objects[i]));
    }

    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, add(&objects[128]));
    uct_varuna_numbers_remove(&m_numbers, &objects[7]);
    EXPECT_UCS_OK(add(&objects[128]));
    EXPECT_EQ(&objects[128], find(objects[128].number));
}

UCS_TEST_F(test_varuna_numbers, numbers_of_others_are_not_found) {
    uct_varuna_numbered_t object;

    open(27);
    ASSERT_UCS_OK(add(&object));
    for (unsigned bit = 0; bit < 32; ++bit) {
        EXPECT_EQ(NULL, find(object.number ^ UCS_BIT(bit))) << bit;
    }
    EXPECT_EQ(NULL, find(0));
}

UCS_TEST_F(test_varuna_numbers, index_in_use) {
    uct_varuna_numbered_t first, second;

    open(8);
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, uct_varuna_numbers_add(&m_numbers, &first, 0x100))
            << "0 is no number";
    ASSERT_UCS_OK(uct_varuna_numbers_add(&m_numbers, &first, 0x107));
    EXPECT_EQ(7u, first.number);
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS, uct_varuna_numbers_add(&m_numbers, &second, 0x47));
    EXPECT_EQ(&first, find(7));
    ASSERT_UCS_OK(uct_varuna_numbers_add(&m_numbers, &second, 0x48));
}
