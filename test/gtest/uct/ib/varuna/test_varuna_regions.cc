/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Regions by address, against a search of all of them.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/md/varuna_md.h>
}

#include <algorithm>
#include <list>
#include <vector>

class test_varuna_regions : public ucs::test {
protected:
    virtual void init()
    {
        ucs::test::init();
        uct_varuna_regions_init(&m_regions);
    }

    uct_varuna_region_t *add(uint64_t first, uint64_t last)
    {
        uct_varuna_region_t region = {};

        region.first = first;
        region.last  = last;
        m_all.push_back(region);
        uct_varuna_regions_insert(&m_regions, &m_all.back());
        return &m_all.back();
    }

    void remove(std::list<uct_varuna_region_t>::iterator it)
    {
        uct_varuna_regions_remove(&m_regions, &*it);
        m_all.erase(it);
    }

    void compare(uint64_t first, uint64_t last)
    {
        const uct_varuna_region_t *found =
                uct_varuna_regions_find(&m_regions, first, last);
        bool exists = false;

        for (const auto &r : m_all) {
            exists |= (r.first <= first) && (r.last >= last);
        }

        ASSERT_EQ(exists, found != NULL) << first << ".." << last;
        if (found != NULL) {
            ASSERT_LE(found->first, first);
            ASSERT_GE(found->last, last);
            ASSERT_EQ(1, std::count_if(m_all.begin(), m_all.end(),
                                       [&](const uct_varuna_region_t &r) {
                                           return &r == found;
                                       }));
        }
    }

    unsigned depth(const uct_varuna_region_t *node)
    {
        return (node == NULL) ? 0 :
               1 + std::max(depth(node->left), depth(node->right));
    }

    uct_varuna_regions_t           m_regions;
    std::list<uct_varuna_region_t> m_all;
};

UCS_TEST_F(test_varuna_regions, edges) {
    EXPECT_EQ(NULL, uct_varuna_regions_find(&m_regions, 0, 0));
    uct_varuna_region_t *low  = add(0, 7);
    uct_varuna_region_t *high = add(UINT64_MAX - 7, UINT64_MAX);

    EXPECT_EQ(low, uct_varuna_regions_find(&m_regions, 0, 7));
    EXPECT_EQ(NULL, uct_varuna_regions_find(&m_regions, 1, 8));
    EXPECT_EQ(high, uct_varuna_regions_find(&m_regions, UINT64_MAX - 7,
                                            UINT64_MAX));
    EXPECT_EQ(NULL, uct_varuna_regions_find(&m_regions, UINT64_MAX - 8,
                                            UINT64_MAX));

    /* Two equal ones, and neither hides the other */
    uct_varuna_region_t *twin = add(0, 7);
    uct_varuna_regions_remove(&m_regions, low);
    EXPECT_EQ(twin, uct_varuna_regions_find(&m_regions, 0, 7));
    uct_varuna_regions_remove(&m_regions, twin);
    EXPECT_EQ(NULL, uct_varuna_regions_find(&m_regions, 0, 7));
}

/* Overlapping, nested and equal regions are added and removed */
UCS_TEST_F(test_varuna_regions, random) {
    for (int i = 0; i < 20000; ++i) {
        uint64_t first = ucs::rand() % 500;

        if (m_all.empty() || ((ucs::rand() % 100) < 55)) {
            add(first, first + (ucs::rand() % ((i & 1) ? 20 : 200)));
        } else {
            auto it = m_all.begin();
            std::advance(it, ucs::rand() % m_all.size());
            remove(it);
        }

        if (m_all.size() > 100) {
            while (!m_all.empty()) {
                remove(m_all.begin());
            }
        }

        compare(first, first + (ucs::rand() % 30));
        if (HasFatalFailure()) {
            return;
        }
    }
}

/* In order of their addresses, as an application may register them */
UCS_TEST_F(test_varuna_regions, stays_flat) {
    for (uint64_t i = 0; i < 100000; ++i) {
        add(i * 4096, (i * 4096) + 4095);
    }

    EXPECT_LT(depth(m_regions.root), 64u);
    EXPECT_EQ(4096u * 77777u,
              uct_varuna_regions_find(&m_regions, 77777 * 4096 + 8,
                                      77777 * 4096 + 15)->first);
}
