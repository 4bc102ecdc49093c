/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The cost of a switch of the link: how many words of the interface it writes, and how
 * many endpoints it accesses, with one endpoint and with 4,096.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/lanes/varuna_link_event.h>
#include <uct/ib/varuna/requester/varuna_scan.h>
}

#include <sys/mman.h>

#include <cstring>
#include <memory>

class test_varuna_switch : public ucs::test {
protected:
    struct cost {
        unsigned stores; /* 8-byte words of the interface that differ */
        bool     is_behind; /* The background scan visits endpoints later */
    };

    /* The endpoints' table is in inaccessible memory, so an access crashes */
    cost fail_link(unsigned num_eps)
    {
        const size_t words  = sizeof(uct_varuna_requester_t) / sizeof(uint64_t);
        const size_t length = num_eps * sizeof(void*);
        std::unique_ptr<uct_varuna_requester_t> requester(
                new uct_varuna_requester_t());
        std::unique_ptr<uct_varuna_md_t> md(new uct_varuna_md_t());
        uct_varuna_iface_t *iface = &requester->super;
        std::vector<uint64_t> before(words), after(words);
        cost result = {};

        memset((void*)requester.get(), 0, sizeof(*requester));
        memset((void*)md.get(), 0, sizeof(*md));
        iface->md            = md.get();
        iface->num_links     = 2;
        requester->eps.size  = num_eps;
        requester->eps.start = (ucs_ptr_array_elem_t*)
                mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                     0);
        EXPECT_NE(MAP_FAILED, (void*)requester->eps.start);
        uct_varuna_link_table_init(&iface->link_table, 2, 0, 1, 1);
        EXPECT_FALSE(uct_varuna_scan_is_behind(requester.get()));

        memcpy(before.data(), (void*)requester.get(), words * sizeof(uint64_t));
        uct_varuna_link_down(iface, 0, UCT_VARUNA_LINK_CAUSE_PORT, "test");
        memcpy(after.data(), (void*)requester.get(), words * sizeof(uint64_t));

        for (size_t i = 0; i < words; ++i) {
            result.stores += (before[i] != after[i]);
        }
        result.is_behind = uct_varuna_scan_is_behind(requester.get());
        EXPECT_EQ(1u, iface->link_table.links[0].generation);
        munmap((void*)requester->eps.start, length);
        return result;
    }
};

UCS_TEST_F(test_varuna_switch, cost_does_not_grow_with_endpoints) {
    cost one  = fail_link(1);
    cost many = fail_link(4096);

    UCS_TEST_MESSAGE << one.stores << " words are written with 1 endpoint, "
                     << many.stores << " with 4096";
    EXPECT_GT(one.stores, 0u);
    EXPECT_EQ(one.stores, many.stores);
    EXPECT_LE(many.stores, 8u);
    EXPECT_TRUE(many.is_behind) << "those which don't post are looked at later";
}
