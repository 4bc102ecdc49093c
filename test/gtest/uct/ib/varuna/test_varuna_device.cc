/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What an endpoint has written to memory of the peer's devices: which reads and fences prove
 * that it has arrived there, and when they are wanted.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/varuna_completion.h>
}

class test_varuna_device : public test_varuna_recovery {
protected:
    virtual void init()
    {
        test_varuna_recovery::init();
        for (unsigned i = 0; i < sizeof(m_keys) / sizeof(*m_keys); ++i) {
            m_keys[i]        = rkey;
            m_keys[i].device = i + 1;
        }
    }

    ucs_status_t put_to(unsigned device, uint64_t value = 1)
    {
        return uct_varuna_ep_put_short(&ep->super.super, &value, sizeof(value), TARGET,
                                       (uct_rkey_t)&m_keys[device]);
    }

    void acknowledge()
    {
        test_varuna_recovery::acknowledge();
        lane(0).posted.clear();
    }

    void read_host()
    {
        ASSERT_EQ(UCS_INPROGRESS, get());
        lane(0).complete();
        lane(0).posted.clear();
    }

    /* Where reads were posted: "device", "host" */
    names reads(unsigned link)
    {
        names found;

        for (const fake_lane::post &post : lane(link).posted) {
            if (post.op == "get") {
                found.push_back((post.addr == TARGET) ? "device" : "host");
            }
        }
        return found;
    }

    void repeat_around_a_flush();

    uct_varuna_rkey_t            m_keys[9];
    std::vector<fake_lane::post> m_reads_back; /* Of the last of them */
};

/* Once, and only devices that were written to */
UCS_TEST_F(test_varuna_device, remote_flush_reads_each) {
    open();
    ASSERT_UCS_OK(put_to(0));
    ASSERT_UCS_OK(put_to(1));
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    EXPECT_EQ(UCS_OK, uct_varuna_ep_flush(&ep->super.super, 0, NULL));
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    EXPECT_EQ((names{"device", "device", "host"}), reads(0));
    expect_completed_by(lane(0));
    EXPECT_EQ(UCS_OK, flush_remote());

    ASSERT_UCS_OK(put_to(1));
    acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    EXPECT_EQ((names{"device", "host"}), reads(0));
}

/* A read of the host's memory says nothing of it */
UCS_TEST_F(test_varuna_device, remote_flush_after_a_read_of_the_host) {
    open();
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    read_host();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    EXPECT_EQ(names{"device"}, reads(0));
}

/* ... so the lane is fenced, which does, and no read is left to be repeated */
UCS_TEST_F(test_varuna_device, fence_after_a_read_of_the_host) {
    open();
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    read_host();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    fail_link();
    answer_fence(1);
    step();
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(names{}, reads(1));
    EXPECT_EQ(0, m_comp.count);
    EXPECT_EQ(UCS_OK, flush_remote());
}

/* What only had reads of the host after it is left without a fence */
UCS_TEST_F(test_varuna_device, no_fence_after_a_read_of_the_device) {
    open();
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    lane(0).complete();
    link_down(0);
    step();
    step();
    EXPECT_NE(UCT_VARUNA_EP_FENCE, state());
}

UCS_TEST_F(test_varuna_device, swap_reads_it) {
    open();
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    connect_rc(0);
    for (unsigned i = 0; (i < 4) && (state() != UCT_VARUNA_EP_SWAP); ++i) {
        step();
    }
    step();
    EXPECT_EQ((names{"device", "host"}), reads(0));
}

/* A flush that waits for a repeated put reads when that is posted */
UCS_TEST_F(test_varuna_device, repeated_put_is_read_back) {
    open();
    ASSERT_UCS_OK(put_to(0));
    fail_link();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    answer_fence(1);
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    step();
    EXPECT_EQ((names{"device", "device", "host"}), reads(1)) << "the first one compares";
    expect_completed_by(lane(1));
}

/* ... and is not complete with what follows it, which was repeated before that */
void test_varuna_device::repeat_around_a_flush()
{
    open();
    lane(0).flush_status = UCS_INPROGRESS;
    lane(1).flush_status = UCS_INPROGRESS;
    ASSERT_UCS_OK(put_to(0));
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    ASSERT_UCS_OK(put(2));
    fail_link();
    answer_fence(1);
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    step();
    EXPECT_EQ((names{"device", "host", "device", "host"}), reads(1))
        << "the first one compares, the second one is repeated";

    m_reads_back.assign(lane(1).posted.end() - 2, lane(1).posted.end());
    lane(1).posted.resize(lane(1).posted.size() - 2);
    ASSERT_EQ("get", m_reads_back[0].op);
}

UCS_TEST_F(test_varuna_device, repeated_put_after_the_flush) {
    repeat_around_a_flush();
    lane(1).complete();
    uct_varuna_ep_signal(ep);
    lane(1).complete();
    EXPECT_EQ(1, m_comp.count);
    EXPECT_EQ(3u, ep->hot.num_reqs);
    lane(1).posted = m_reads_back;
    expect_completed_by(lane(1));
    EXPECT_EQ(0u, ep->hot.num_reqs);
}

/* ... also if all is complete before the next step, which asks for a completion of the last one */
UCS_TEST_F(test_varuna_device, repeated_put_completes_at_once) {
    open();
    lane(0).flush_status = UCS_INPROGRESS;
    ASSERT_UCS_OK(put_to(0));
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    ASSERT_UCS_OK(put(2));
    fail_link();
    answer_fence(1);
    lane(1).flush_status = UCS_INPROGRESS;
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    lane(1).complete();
    lane(1).posted.clear();
    lane(1).flush_status = UCS_OK;
    EXPECT_EQ(1, m_comp.count);
    step();
    step();
    EXPECT_EQ((names{"device", "host"}), reads(1));
    expect_completed_by(lane(1));
    EXPECT_EQ(0u, ep->hot.num_reqs);
}

/* ... also if there is no memory to let it wait longer: the lane is fenced */
UCS_TEST_F(test_varuna_device, flush_that_cannot_wait_longer) {
    make_slabs_scarce();
    repeat_around_a_flush();
    scoped_log_handler log(hide_errors_logger);
    is_short() = true;
    while (put(2) == UCS_OK);
    ASSERT_TRUE(ep->hot.reqs.head == NULL);
    lane(1).complete();
    uct_varuna_ep_signal(ep);
    lane(1).complete();
    is_short() = false;
    step();
    EXPECT_EQ(UCT_VARUNA_EP_FENCE, state());
    EXPECT_EQ(1, m_comp.count);
}

/* The user need not keep memory registered that was written: a read of ours that fails takes
 * the lane, and a request of the user's the endpoint */
UCS_TEST_F(test_varuna_device, deregistered_by_the_peer) {
    scoped_log_handler slh(hide_warns_logger);

    open();
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_IO_ERROR);
    step();
    EXPECT_NE(UCT_VARUNA_EP_FAILED, state());
    EXPECT_NE(UCT_VARUNA_EP_ACTIVE, state());
}

UCS_TEST_F(test_varuna_device, wrong_key_of_the_user) {
    scoped_log_handler slh(hide_warns_logger);

    open();
    ASSERT_UCS_OK(put_to(0));
    uct_varuna_ep_lane_error(ep, ep->lane.ep, UCS_ERR_IO_ERROR);
    step();
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
}

/* The recovery's fence does it */
UCS_TEST_F(test_varuna_device, more_than_are_remembered) {
    open();
    for (unsigned i = 0; i < sizeof(m_keys) / sizeof(*m_keys); ++i) {
        ASSERT_UCS_OK(put_to(i));
    }
    acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    step();
    EXPECT_NE(UCT_VARUNA_EP_ACTIVE, state());
}

/* Regions of devices that nobody can tell apart are devices of their own */
UCS_TEST_F(test_varuna_device, unknown) {
    open();
    m_keys[0].device = UCT_VARUNA_DEVICE_UNKNOWN;
    m_keys[1].device = UCT_VARUNA_DEVICE_UNKNOWN;
    m_keys[1].token  = 12345;
    ASSERT_UCS_OK(put_to(0));
    ASSERT_UCS_OK(put_to(1));
    ASSERT_UCS_OK(put_to(0));
    acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    EXPECT_EQ((names{"device", "device", "host"}), reads(0));
}
