/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The structure of the endpoint: what a post touches takes two cache lines.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/requester/varuna_ep.h>
}

class test_varuna_ep : public ucs::test {
protected:
    static constexpr size_t CACHE_LINE = 64;

    /* Statistics of UCX, if it is built with them, add a pointer to each base class */
    static constexpr size_t BASE = sizeof(uct_base_ep_t) - sizeof(uct_ep_t);
};

UCS_TEST_F(test_varuna_ep, hot_part_takes_two_cache_lines) {
    EXPECT_LE(offsetof(uct_varuna_ep_t, hot) + sizeof(uct_varuna_ep_hot_t),
              (2 * CACHE_LINE) + BASE);

    /* It contains no cold members */
    EXPECT_EQ(sizeof(uct_base_ep_t), offsetof(uct_varuna_ep_t, peer));
    EXPECT_EQ(offsetof(uct_varuna_ep_t, peer) + sizeof(void*),
              offsetof(uct_varuna_ep_t, lane));
    EXPECT_EQ(offsetof(uct_varuna_ep_t, lane) + sizeof(uct_varuna_lane_t),
              offsetof(uct_varuna_ep_t, hot));
}

/* A completion looks at one cache line of a request, and short payloads are next to it */
UCS_TEST_F(test_varuna_ep, request_begins_with_one_cache_line) {
    EXPECT_EQ(CACHE_LINE, offsetof(uct_varuna_req_t, keys));
    EXPECT_LE(offsetof(uct_varuna_req_t, data) + sizeof(uint64_t), 3 * CACHE_LINE);
    EXPECT_EQ(offsetof(uct_varuna_req_t, data), offsetof(uct_varuna_req_t, iov));
}

/* The counters of requests of a vQP are narrow */
UCS_TEST_F(test_varuna_ep, counters_hold_their_maximum) {
    uct_varuna_ep_hot_t hot = {UCT_VARUNA_EP_STATE_LAST};

    EXPECT_EQ(sizeof(uint32_t), sizeof(hot.num_reqs)); /* Flushes have no limit */
    hot.num_reads = UCT_VARUNA_MAX_REQS + 2; /* The reads of a swap and of a verdict */
    EXPECT_EQ(UCT_VARUNA_MAX_REQS + 2, hot.num_reads);
    hot.num_amos = UCT_VARUNA_MAX_AMOS;
    EXPECT_EQ(UCT_VARUNA_MAX_AMOS, hot.num_amos);
    EXPECT_EQ(UCT_VARUNA_EP_STATE_LAST, hot.state);
}

/* The memory of thousands of endpoints and their requests. The figures may only go
 * down, except for a good reason. */
UCS_TEST_F(test_varuna_ep, memory_is_bounded) {
    EXPECT_LE(sizeof(uct_varuna_ep_t), 1464 + (2 * BASE));
    EXPECT_LE(sizeof(uct_varuna_req_t), 744ul);
}
