/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The ring of saved requests: order, memory, and what happens when there is none.
 */
#include <common/test.h>

#include "fake_host.h"

extern "C" {
#include <uct/ib/varuna/requester/varuna_ring.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
}

#include <deque>
#include <memory>

class test_varuna_ring : public fake_host_test {
protected:
    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(1));
        init_slabs();
        ep = (uct_varuna_ep_t*)ucs_calloc(1, sizeof(*ep), "ep");
        ASSERT_TRUE(ep != NULL);
        ep->super.super.iface = &host->iface()->super.super;
    }

    virtual void cleanup()
    {
        uct_varuna_ring_release(ring());
        ucs_free(ep);
        ucs_mpool_cleanup(&host->requester()->pools.slabs, 1); /* Reports what leaks */
        fake_host_test::cleanup();
    }

    /* Memory is allocated in slabs, up to a limit */
    void init_slabs()
    {
        static ucs_mpool_ops_t ops = {};

        slabs       = 0;
        max_slabs   = UINT_MAX;
        ops.chunk_alloc = [](ucs_mpool_t *mp, size_t *size_p, void **chunk_p) {
            return (slabs++ < max_slabs) ? ucs_mpool_chunk_malloc(mp, size_p, chunk_p) :
                   (--slabs, UCS_ERR_NO_MEMORY);
        };
        ops.chunk_release = [](ucs_mpool_t *mp, void *chunk) {
            ucs_mpool_chunk_free(mp, chunk);
        };
        ASSERT_UCS_OK(uct_varuna_compat_mpool_init(&host->requester()->pools.slabs,
                                                   UCT_VARUNA_SLAB_SIZE, 1, &ops,
                                                   "slab"));
    }

    uct_varuna_ring_t *ring()
    {
        return &ep->hot.reqs;
    }

    /* @return The new request, or NULL without a free place */
    uct_varuna_req_t *push(uint32_t number, size_t size, bool is_flush = false)
    {
        uct_varuna_req_t *req;

        if (uct_varuna_ring_open(ep, is_flush) != UCS_OK) {
            return NULL;
        }

        req = ring()->head;
        memset((void*)req, 0x11, size);
        req->flags  = 0;
        req->log_sn = number;
        uct_varuna_ring_push(ep, req, size);
        return req;
    }

    void pull(uint32_t number)
    {
        ASSERT_FALSE(uct_varuna_ring_is_empty(ring()));
        EXPECT_EQ(number, ring()->tail->log_sn);
        --ep->hot.num_reqs;
        uct_varuna_ring_pull(ring());
    }

    static size_t random_size()
    {
        static const size_t min = offsetof(uct_varuna_req_t, keys);

        return min + (ucs::rand() % (sizeof(uct_varuna_req_t) - min + 1));
    }

    static unsigned            slabs, max_slabs;
    uct_varuna_ep_t            *ep;
};

unsigned test_varuna_ring::slabs;
unsigned test_varuna_ring::max_slabs;

UCS_TEST_F(test_varuna_ring, random_sizes_keep_their_order) {
    std::deque<std::pair<uint32_t, uct_varuna_req_t*>> model;
    uint32_t pushed = 0, pulled = 0;

    for (unsigned step = 0; step < 3000; ++step) {
        for (unsigned n = ucs::rand() % 30; n > 0; --n) {
            uct_varuna_req_t *req = push(pushed, random_size());
            ASSERT_TRUE(req != NULL);
            EXPECT_EQ(0u, (uintptr_t)req % UCS_SYS_CACHE_LINE_SIZE);
            model.push_back({pushed++, req});
        }

        size_t i = 0;
        uct_varuna_req_t *req;
        uct_varuna_ring_for_each(req, ring()) {
            ASSERT_LT(i, model.size());
            ASSERT_EQ(model[i].second, req) << "a request has moved";
            ASSERT_EQ(model[i].first, req->log_sn);
            ++i;
        }
        ASSERT_EQ(model.size(), i);
        ASSERT_EQ(model.size(), ep->hot.num_reqs);

        for (unsigned n = ucs::rand() % 30; (n > 0) && !model.empty(); --n) {
            pull(pulled++);
            model.pop_front();
        }

        if (ucs::rand() % 8 == 0) {
            uct_varuna_ring_trim(ring()); /* Only if nothing is in it */
        }
        if (model.size() > 400) {
            while (!model.empty()) {
                pull(pulled++);
                model.pop_front();
            }
        }
    }

    /* What is not in use is used again */
    EXPECT_LT(slabs, 500 * sizeof(uct_varuna_req_t) / (UCT_VARUNA_SLAB_SIZE / 2));
    while (!model.empty()) {
        pull(pulled++);
        model.pop_front();
    }
}

UCS_TEST_F(test_varuna_ring, idle_endpoint_has_no_memory) {
    EXPECT_TRUE(uct_varuna_ring_is_empty(ring()));
    EXPECT_EQ(0u, slabs);
    ASSERT_TRUE(push(0, 64) != NULL);
    uct_varuna_ring_trim(ring());
    EXPECT_FALSE(uct_varuna_ring_is_empty(ring()));
    pull(0);
    uct_varuna_ring_trim(ring());
    EXPECT_TRUE(uct_varuna_ring_is_empty(ring()));
    EXPECT_TRUE(ring()->head == NULL);

    /* Another one gets the same slab */
    ASSERT_TRUE(push(1, 64) != NULL);
    EXPECT_EQ(1u, slabs);
}

UCS_TEST_F(test_varuna_ring, is_full) {
    const size_t size = offsetof(uct_varuna_req_t, data) + 8;
    uint32_t number   = 0;

    ep->hot.gate = 0;
    while (push(number, size) != NULL) {
        ASSERT_EQ(ring()->head == NULL, ep->hot.gate != 0) << "the gate is shut with it";
        ASSERT_LE(++number, 2u * UCT_VARUNA_MAX_REQS);
    }
    EXPECT_GE(number, (uint32_t)UCT_VARUNA_MAX_REQS);
    EXPECT_LE(number, UCT_VARUNA_MAX_REQS + (UCT_VARUNA_SLAB_SIZE / size));

    /* A flush always finds a place, in the order */
    ASSERT_TRUE(push(number, 64, true) != NULL);
    for (uint32_t i = 0; i <= number; ++i) {
        pull(i);
    }
    EXPECT_TRUE(uct_varuna_ring_is_empty(ring()));
    ASSERT_TRUE(push(0, size) != NULL);
}

UCS_TEST_F(test_varuna_ring, memory_comes_back_later) {
    scoped_log_handler quiet(hide_errors_logger); /* Of the pool */
    uint32_t number = 0;

    max_slabs = 2;
    while (push(number, 256) != NULL) {
        ++number;
    }
    EXPECT_EQ(2u, slabs);
    EXPECT_TRUE(push(number, 256) == NULL);

    /* The slab of the oldest is free, and the ring continues there */
    for (uint32_t i = 0; i < number - 1; ++i) {
        pull(i);
    }
    ASSERT_TRUE(push(number, 256) != NULL);
    pull(number - 1);
    pull(number);
    EXPECT_TRUE(uct_varuna_ring_is_empty(ring()));

    /* All are finished before there is memory */
    while (push(++number, 256) != NULL);
    for (uint32_t i = ring()->tail->log_sn; i < number; ++i) {
        pull(i);
    }
    EXPECT_TRUE(uct_varuna_ring_is_empty(ring()));
    ASSERT_TRUE(push(0, 256) != NULL);
    pull(0);
}

/* The rows are in the order of the types */
UCS_TEST_F(test_varuna_ring, rows_of_types) {
    for (unsigned i = 0; i < UCT_VARUNA_REQ_LAST; ++i) {
        EXPECT_EQ(i, (unsigned)uct_varuna_req_infos[i].type);
        ASSERT_TRUE(uct_varuna_req_infos[i].name != NULL);
        EXPECT_EQ(uct_varuna_req_infos[i].kind != UCT_VARUNA_OP_FLUSH,
                  uct_varuna_req_infos[i].post != NULL)
                << uct_varuna_req_infos[i].name << ": a marker, and nothing else, is not posted";
        EXPECT_FALSE(uct_varuna_req_infos[i].silent && uct_varuna_req_infos[i].has_answer)
                << uct_varuna_req_infos[i].name << ": its answer would have no completion";
    }
}
