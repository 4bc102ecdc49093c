/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Messages and pending requests of an endpoint that is not open yet, and of one that fails:
 * what UCP's wire-up expects of them.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/varuna_pending.h>
}

class test_varuna_pending : public test_varuna_recovery {
protected:
    static constexpr uint8_t WIREUP = UCT_VARUNA_COMPAT_AM_ID_WIREUP;
    static constexpr uint8_t USER   = 17;

    /* A pending request that sends a message, or flushes */
    struct pending {
        uct_pending_req_t         req; /* First */
        test_varuna_pending       *test;
        uint8_t                   id;  /* 0: flush */
        std::vector<ucs_status_t> results;
    };

    virtual void init()
    {
        static ucs_mpool_ops_t mpool_ops = {ucs_mpool_chunk_malloc,
                                            ucs_mpool_chunk_free};

        test_varuna_recovery::init();
        ASSERT_UCS_OK(uct_varuna_compat_mpool_init(&host->requester()->pools.bcopies, 512, 4,
                                                   &mpool_ops, "bcopy"));
        host->iface()->attr.cap.am.max_short    = 64;
        host->iface()->super.err_handler        = failed;
        host->iface()->super.err_handler_arg    = this;
        reported                                = 0;
    }

    virtual void cleanup()
    {
        uct_varuna_ep_pending_purge(&ep->super.super, purged, this);
        EXPECT_EQ(0u, host->requester()->num_pending);
        uct_varuna_ring_release(&ep->hot.reqs);
        host->requester()->outstanding = 0;
        ep->hot.num_reqs               = 0;
        ucs_mpool_cleanup(&host->requester()->pools.bcopies, 1);
        test_varuna_recovery::cleanup();
    }

    ucs_status_t send_short()
    {
        return uct_varuna_ep_am_short(&ep->super.super, USER, 1, NULL, 0);
    }

    ucs_status_t send_bcopy(uint8_t id)
    {
        ssize_t result = uct_varuna_ep_am_bcopy(&ep->super.super, id,
                                                [](void *dest, void*) {
                                                    memset(dest, 'x', 100);
                                                    return (size_t)100;
                                                }, NULL, 0);

        return (result < 0) ? (ucs_status_t)result : UCS_OK;
    }

    void wait(pending &p, uint8_t id)
    {
        p.test     = this;
        p.id       = id;
        p.req.func = [](uct_pending_req_t *self) {
            pending *me = (pending*)self;

            me->results.push_back((me->id == 0) ?
                    uct_varuna_ep_flush(&me->test->ep->super.super, 0, NULL) :
                    me->test->send_bcopy(me->id));
            /* As UCP does: a failed message of the wire-up is over */
            return ((me->id == WIREUP) &&
                    (me->results.back() != UCS_ERR_NO_RESOURCE)) ?
                   UCS_OK : me->results.back();
        };
        ASSERT_UCS_OK(uct_varuna_ep_pending_add(&ep->super.super, &p.req, 0));
    }

    static ucs_status_t failed(void *arg, uct_ep_h, ucs_status_t)
    {
        test_varuna_pending *self = (test_varuna_pending*)arg;

        ++self->reported;
        uct_varuna_ep_pending_purge(&self->ep->super.super, purged, self);
        return UCS_OK;
    }

    static void purged(uct_pending_req_t *req, void *arg)
    {
        ((test_varuna_pending*)arg)->gone.push_back((pending*)req);
    }

    static unsigned ams(const fake_lane &lane)
    {
        unsigned count = 0;

        for (const auto &post : lane.posted) {
            count += (post.op == "am");
        }
        return count;
    }

    void give_up()
    {
        step(GIVE_UP * 1.1);
        ASSERT_EQ(UCT_VARUNA_EP_FAILED, state());
        step();
        ASSERT_EQ(1u, reported);
    }

    /* The read that ends the old lane is posted; the user waits for events */
    void begin_swap()
    {
        host->requester()->uses_events = 1;
        open();
        connect_rc(0);
        step();
        ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());
        ASSERT_EQ("get", lane(0).posted.back().op);
        lane(0).flush_status = UCS_INPROGRESS; /* It is not empty */
    }

    unsigned              reported;
    std::vector<pending*> gone;
};

/* A sender that sleeps on the event descriptor progresses its wire-up, but may not progress
 * after a short message */
UCS_TEST_F(test_varuna_pending, wireup_is_taken_where_events_are_used) {
    host->requester()->uses_events = 1;
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, send_short());
    EXPECT_UCS_OK(send_bcopy(WIREUP));
    EXPECT_EQ(1u, ep->hot.num_reqs);
    EXPECT_TRUE(ucs_queue_is_empty(&ep->pend.queue));
}

UCS_TEST_F(test_varuna_pending, all_are_taken_where_no_events_are_used) {
    EXPECT_UCS_OK(send_short());
    EXPECT_UCS_OK(send_bcopy(WIREUP));
    EXPECT_EQ(2u, ep->hot.num_reqs);
}

/* What was taken in OPENING goes with the endpoint, and UCP gets nothing back */
UCS_TEST_F(test_varuna_pending, wireup_that_was_taken_is_not_purged) {
    host->requester()->uses_events = 1;
    ASSERT_UCS_OK(send_bcopy(WIREUP));
    give_up();
    EXPECT_TRUE(gone.empty());
    EXPECT_EQ(0u, ep->hot.num_reqs);
}

/* A message of the wire-up that waits behind others gets the failure before the user does.
 * The others do not, and keep their order */
UCS_TEST_F(test_varuna_pending, wireup_that_waits_hears_of_the_failure) {
    pending first, wireup, flush, last;

    wait(first, USER);
    wait(wireup, WIREUP);
    wait(flush, 0);
    wait(last, USER);
    give_up();

    if (UCT_VARUNA_COMPAT_PURGES_WIREUP) {
        EXPECT_EQ((std::vector<pending*>{&first, &wireup, &flush, &last}), gone);
    } else {
        EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_ENDPOINT_TIMEOUT}, wireup.results);
        EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_NO_RESOURCE}, first.results);
        EXPECT_EQ(std::vector<ucs_status_t>{UCS_ERR_NO_RESOURCE}, flush.results);
        EXPECT_EQ((std::vector<pending*>{&first, &flush, &last}), gone);
    }
    EXPECT_EQ(0u, host->requester()->num_pending);
}

/* During a planned change of the lane, a message goes out on the old one */
UCS_TEST_F(test_varuna_pending, message_is_not_refused_in_a_swap) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

    begin_swap();
    EXPECT_UCS_OK(send_short());
    EXPECT_EQ("am", lane(0).posted.back().op);
    EXPECT_UCS_OK(send_short());
    EXPECT_EQ("am", lane(0).posted.back().op);
    step();
    EXPECT_EQ(UCT_VARUNA_LANE_DC, ep->lane.kind) << "they are not acknowledged";
    lane(0).complete();
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
    EXPECT_TRUE(rc.posted.empty());
}

/* ... unless it would pass what waits: then it waits as well */
UCS_TEST_F(test_varuna_pending, message_waits_in_a_swap_after_what_waits) {
    fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

    begin_swap();
    ASSERT_UCS_OK(put(1));
    EXPECT_UCS_OK(send_short());
    EXPECT_EQ("get", lane(0).posted.back().op);
    lane(0).complete();
    step();
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
    EXPECT_EQ((std::vector<uint64_t>{1}), puts(rc));
    ASSERT_FALSE(rc.posted.empty());
    EXPECT_EQ("am", rc.posted.back().op);
    rc.complete();
}

/* A stream of messages does not keep the old lane busy for ever */
UCS_TEST_F(test_varuna_pending, messages_in_a_swap_are_limited) {
    unsigned count = 0;

    begin_swap();
    while ((send_short() == UCS_OK) && (count < 1000)) {
        ++count;
        lane(0).posted.back().comp = NULL; /* Silent */
    }
    EXPECT_EQ(UCT_VARUNA_MAX_WAITING - 1, (int)count);
    EXPECT_EQ(UCT_VARUNA_EP_SWAP, state());
    lane(0).complete();
    step();
    EXPECT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
}

/* A failed lane's messages are repeated, also those after the read that was to end it */
UCS_TEST_F(test_varuna_pending, message_in_a_swap_is_repeated) {
    begin_swap();
    ASSERT_UCS_OK(send_short());
    drain();
    for (int i = 0; (i < 10) && (state() != UCT_VARUNA_EP_ACTIVE); ++i) {
        step();
    }
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    ASSERT_FALSE(lane(1).posted.empty());
    EXPECT_EQ("am", lane(1).posted.back().op);
    lane(1).complete();
}

/* DC's initiators belong to all endpoints: the one that finds none waits in the lane's queue,
 * posts when its turn comes, and does not take its turn for all that it has */
UCS_TEST_F(test_varuna_pending, recovered_endpoint_waits_for_an_initiator) {
    const unsigned turn = 16, count = turn + 4;

    host->iface()->config.dc_num_dci = 0; /* Fewer than endpoints */
    open();
    lane(0).flush_status = UCS_INPROGRESS;
    for (unsigned i = 0; i < count; ++i) {
        ASSERT_UCS_OK(send_short());
    }
    link_down(0);
    lane(1).post_status = UCS_ERR_NO_RESOURCE;
    for (int i = 0; i < 10; ++i) {
        step();
    }
    ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
    ASSERT_EQ(1u, lane(1).waiting.size());
    EXPECT_TRUE(lane(1).posted.empty());

    lane(1).resume();
    EXPECT_EQ(turn, ams(lane(1)));
    lane(1).flush_status = UCS_INPROGRESS;
    step();
    EXPECT_EQ(turn, ams(lane(1))) << "nothing is acknowledged";
    EXPECT_EQ(UCT_VARUNA_EP_REPEAT, state());
    lane(1).complete();
    step();
    EXPECT_EQ(count, ams(lane(1)));
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_TRUE(lane(1).waiting.empty());
    lane(1).complete();
}

/* ... and leaves that queue if the lane fails */
UCS_TEST_F(test_varuna_pending, failed_lane_has_nobody_waiting) {
    open();
    ASSERT_UCS_OK(send_short());
    link_down(0);
    lane(1).post_status = UCS_ERR_NO_RESOURCE;
    for (int i = 0; i < 10; ++i) {
        step();
    }
    ASSERT_EQ(1u, lane(1).waiting.size());
    link_down(1);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_DRAIN, state());
    EXPECT_TRUE(lane(1).waiting.empty());
}
