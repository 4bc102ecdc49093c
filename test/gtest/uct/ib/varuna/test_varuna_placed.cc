/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Flushes on lanes to the peer's home NIC, and to another one, where they place what was
 * put (varuna_ep.h), as flushes with UCT_FLUSH_FLAG_REMOTE do everywhere.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/amo/varuna_amo_priv.h>
#include <uct/ib/varuna/requester/varuna_completion.h>
#include <uct/ib/varuna/requester/varuna_requester.h>
}

class test_varuna_placed : public test_varuna_recovery {
protected:
    virtual void init()
    {
        test_varuna_recovery::init();
        m_amo                    = amo_ops();
        m_amo.is_away            = [](uct_varuna_ep_t *ep) -> int {
            return ep->hot.far_nic != s_home;
        };
        host->requester()->amo   = &m_amo;
    }

    /* The lane is to NIC 0 of the peer */
    void open_with_home(uint8_t home)
    {
        s_home = home;
        open();
    }

    ucs_status_t flush(uct_completion_t *comp = NULL)
    {
        return uct_varuna_ep_flush(&ep->super.super, 0, comp);
    }

    ucs_status_t flush_iface(unsigned flags = 0)
    {
        return uct_varuna_iface_flush(&host->iface()->super.super, flags, NULL);
    }

    /* A put whose acknowledgement is under way */
    void put_and_signal()
    {
        lane(0).flush_status = UCS_INPROGRESS;
        ASSERT_UCS_OK(put(1));
        ASSERT_EQ(UCS_INPROGRESS, uct_varuna_ep_signal(ep));
    }

    void put_and_acknowledge()
    {
        ASSERT_UCS_OK(put(1));
        acknowledge();
        lane(0).posted.clear();
    }

    /* Which operations were posted, without log entries */
    names ops(unsigned link)
    {
        names found;

        for (const fake_lane::post &post : lane(link).posted) {
            if ((post.op != "put") || (post.addr == TARGET)) {
                found.push_back(post.op);
            }
        }
        return found;
    }

    /* A planned change of the lane has begun, and its read is not posted */
    void flush_before_swap()
    {
        open_with_home(1);
        put_and_signal();
        connect_rc(0);
        lane(0).post_status = UCS_ERR_NO_RESOURCE;
        for (unsigned i = 0; (i < 4) && (state() != UCT_VARUNA_EP_SWAP); ++i) {
            step();
        }
        ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());
        EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    }

    void flush_behind_an_atomic();

    static uint8_t       s_home;
    uct_varuna_amo_ops_t m_amo;
    uct_completion_t     m_amo_comp;
    uint64_t             m_result = 0;
};

uint8_t test_varuna_placed::s_home;

UCS_TEST_F(test_varuna_placed, at_home_an_acknowledgement_will_do) {
    open_with_home(0);
    put_and_acknowledge();
    EXPECT_EQ(UCS_OK, flush());
    EXPECT_EQ(UCS_OK, flush_iface());
    EXPECT_EQ(names{}, ops(0));
}

/* Also of writes that are complete; once, and only if there was one */
UCS_TEST_F(test_varuna_placed, elsewhere_a_flush_reads) {
    open_with_home(1);
    EXPECT_EQ(UCS_OK, flush());
    put_and_acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush());
    EXPECT_EQ(UCS_INPROGRESS, flush());
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    EXPECT_EQ(names{"get"}, ops(0));
    expect_completed_by(lane(0));
    EXPECT_EQ(UCS_OK, flush());
}

UCS_TEST_F(test_varuna_placed, flush_of_the_interface_reads) {
    open_with_home(1);
    put_and_acknowledge();
    EXPECT_EQ(UCS_INPROGRESS, flush_iface());
    EXPECT_EQ(UCS_INPROGRESS, flush_iface());
    EXPECT_EQ(names{"get"}, ops(0));
    lane(0).complete();
    EXPECT_EQ(UCS_OK, flush_iface());
}

/* The puts between two flushes are placed by the second one */
UCS_TEST_F(test_varuna_placed, later_puts_are_read_back_too) {
    open_with_home(1);
    ASSERT_UCS_OK(put(1));
    EXPECT_EQ(UCS_INPROGRESS, flush());
    ASSERT_UCS_OK(put(2));
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    EXPECT_EQ((names{"put", "get", "put", "get"}), ops(0));
    lane(0).complete();
    EXPECT_EQ(0, m_comp.count);
}

/* Mode proxy: a flush that atomics precede is posted behind them when there are resources, and
 * completes if the endpoint fails instead */
void test_varuna_placed::flush_behind_an_atomic()
{
    uct_varuna_ctl_atomic_rep_t *rep;
    uct_varuna_ctl_hdr_t hdr = {};

    m_amo_comp = m_comp;
    ASSERT_UCS_OK(uct_varuna_atomics_init(host->requester(), &uct_varuna_amo_cpu_ops));
    uct_varuna_atomics_listen(host->requester());
    uct_varuna_amo_cpu_ops.init(ep);
    open();
    put_and_acknowledge();
    ASSERT_EQ(UCS_INPROGRESS,
              uct_varuna_ep_atomic64_fetch(&ep->super.super, UCT_ATOMIC_OP_ADD, 1, &m_result,
                                           TARGET, (uct_rkey_t)&rkey, &m_amo_comp));
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));

    std::string body(sizeof(*rep) + sizeof(uct_varuna_ctl_atomic_result_t), 0);
    rep         = (uct_varuna_ctl_atomic_rep_t*)&body[0];
    rep->first  = 1;
    rep->count  = 1;
    hdr.type    = UCT_VARUNA_CTL_ATOMIC_REP;
    hdr.vqp     = ep->id;
    hdr.opening = OPENING;
    hdr.secret  = ep->peer->secret;
    hdr.epoch   = 1;
    lane(0).post_status = UCS_ERR_NO_RESOURCE;
    host->ctl()->bus.rows[hdr.type].handlers[UCT_VARUNA_BUS_MAIN].func(
            host->ctl()->bus.rows[hdr.type].handlers[UCT_VARUNA_BUS_MAIN].arg, 0, &hdr, rep);
    EXPECT_EQ(0, m_amo_comp.count);
    EXPECT_EQ(1, m_comp.count);
}

UCS_TEST_F(test_varuna_placed, flush_behind_an_atomic_finds_no_resources) {
    flush_behind_an_atomic();
    lane(0).post_status = UCS_OK;
    step();
    EXPECT_EQ(names{"get"}, ops(0));
    expect_completed_by(lane(0));
    uct_varuna_atomics_cleanup(host->requester());
}

UCS_TEST_F(test_varuna_placed, flush_behind_an_atomic_fails) {
    scoped_log_handler log(hide_errors_logger);
    flush_behind_an_atomic();
    uct_varuna_ep_raise_fatal(ep, UCS_ERR_CONNECTION_RESET);
    for (unsigned i = 0; (i < 4) && (m_comp.count > 0); ++i) {
        step();
    }
    EXPECT_EQ(0, m_comp.count);
    uct_varuna_atomics_cleanup(host->requester());
}

UCS_TEST_F(test_varuna_placed, no_resources) {
    open_with_home(1);
    put_and_acknowledge();
    lane(0).post_status = UCS_ERR_NO_RESOURCE;
    EXPECT_EQ(UCS_INPROGRESS, flush());
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, flush(&m_comp));
    EXPECT_EQ(UCS_INPROGRESS, flush_iface());
    lane(0).post_status = UCS_OK;
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    lane(0).complete();
    EXPECT_EQ(0, m_comp.count);
}

/* The lane at home fails, and a flush comes before the put is repeated elsewhere */
UCS_TEST_F(test_varuna_placed, repeated_puts_are_read_back) {
    open_with_home(0);
    ASSERT_UCS_OK(put(1));
    fail_link();
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    answer_fence(1);
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((names{"get", "put", "get"}), ops(1)) << "the first one compares";
    expect_completed_by(lane(1));
    EXPECT_EQ(0u, ep->hot.num_reads);
    EXPECT_EQ(UCS_OK, flush());
}

/* A flush on a lane that fails: the acknowledgement of its put still comes, and places
 * nothing. The fence does */
UCS_TEST_F(test_varuna_placed, drained_puts_are_fenced) {
    open_with_home(1);
    put_and_signal();
    drain();
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    lane(0).complete();
    EXPECT_EQ(1, m_comp.count);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
    step(LIFETIME * 1.1);
    EXPECT_EQ(1, m_comp.count);
    answer_fence(1);
    step();
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ(0, m_comp.count);
    EXPECT_EQ(names{}, ops(1));
}

/* The same during a planned change of the lane: the read that ends it does */
UCS_TEST_F(test_varuna_placed, puts_before_a_swap_are_read_back) {
    flush_before_swap();
    lane(0).complete();
    EXPECT_EQ(1, m_comp.count);
    lane(0).post_status = UCS_OK;
    step();
    ASSERT_EQ((names{"put", "flush", "get"}), ops(0));
    expect_completed_by(lane(0));
}

/* The change is given up while its read is under way: what was posted before the flush and after it
 * is on the lane, so nothing is posted in its place, and that read completes it */
UCS_TEST_F(test_varuna_placed, flush_before_a_swap_that_is_given_up) {
    flush_before_swap();
    lane(0).post_status = UCS_OK;
    step();
    ASSERT_EQ((names{"put", "flush", "get"}), ops(0));
    ASSERT_EQ(UCT_VARUNA_EP_SWAP, state());

    uct_varuna_ep_fail_next(ep);
    for (unsigned i = 0; (i < 4) && (state() != UCT_VARUNA_EP_ACTIVE); ++i) {
        step();
    }
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((names{"put", "flush", "get"}), ops(0));
    EXPECT_EQ(1, m_comp.count);
    expect_completed_by(lane(0));
}

/* A flush that had nothing to place when its turn came, and waits for a read, has nothing to
 * do with the put after it */
UCS_TEST_F(test_varuna_placed, later_puts_are_left_alone) {
    s_home = 1;
    ASSERT_EQ(UCS_INPROGRESS, get());
    EXPECT_EQ(UCS_INPROGRESS, flush(&m_comp));
    ASSERT_UCS_OK(put(1));
    ASSERT_UCS_OK(uct_varuna_ep_fence(&ep->super.super, 0));
    ASSERT_UCS_OK(put(2)); /* Waits for the read */
    opened();
    lane(0).flush_status = UCS_INPROGRESS;
    uct_varuna_ep_open_lane(ep, ucs_get_time());
    step();
    step();
    ASSERT_EQ((names{"get", "put", "flush"}), ops(0));
    ASSERT_EQ(UCT_VARUNA_EP_BACKLOG, state());
    expect_completed_by(lane(0));
    step();
    EXPECT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((names{"get", "put", "flush", "put"}), ops(0));
}

/* --- UCT_FLUSH_FLAG_REMOTE --- */

UCS_TEST_F(test_varuna_placed, remote_flush_reads_at_home) {
    open_with_home(0);
    EXPECT_EQ(UCS_OK, flush_remote());
    put_and_acknowledge();
    EXPECT_EQ(UCS_OK, flush());
    EXPECT_EQ(UCS_INPROGRESS, flush_remote());
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    EXPECT_EQ(names{"get"}, ops(0));
    expect_completed_by(lane(0));
    EXPECT_EQ(UCS_OK, flush_remote());
    EXPECT_EQ(names{"get"}, ops(0)) << "once";
}

/* As in mode native */
UCS_TEST_F(test_varuna_placed, remote_flush_reads_without_a_home) {
    m_amo.is_away = NULL;
    open_with_home(UCT_VARUNA_HOME_NONE);
    put_and_acknowledge();
    EXPECT_EQ(UCS_OK, flush());
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    EXPECT_EQ(names{"get"}, ops(0));
    lane(0).complete();
    EXPECT_EQ(0, m_comp.count);
}

UCS_TEST_F(test_varuna_placed, remote_flush_of_the_interface_reads) {
    open_with_home(0);
    put_and_acknowledge();
    EXPECT_EQ(UCS_OK, flush_iface());
    EXPECT_EQ(UCS_INPROGRESS, flush_iface(UCT_VARUNA_COMPAT_FLUSH_REMOTE));
    EXPECT_EQ(names{"get"}, ops(0));
    lane(0).complete();
    EXPECT_EQ(UCS_OK, flush_iface(UCT_VARUNA_COMPAT_FLUSH_REMOTE));
}

/* Any read after the puts will do */
UCS_TEST_F(test_varuna_placed, remote_flush_after_a_read) {
    open_with_home(0);
    put_and_acknowledge();
    ASSERT_EQ(UCS_INPROGRESS, get());
    lane(0).complete();
    EXPECT_EQ(UCS_OK, flush_remote());
}

/* Before the endpoint has a lane */
UCS_TEST_F(test_varuna_placed, remote_flush_of_queued_puts) {
    ASSERT_UCS_OK(put(1));
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    open_with_home(0);
    EXPECT_EQ((names{"put", "get"}), ops(0));
    expect_completed_by(lane(0));
}

/* The lane fails, and the next one leads to the peer's home */
UCS_TEST_F(test_varuna_placed, remote_flush_of_repeated_puts) {
    open_with_home(1);
    ASSERT_UCS_OK(put(1));
    fail_link();
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    answer_fence(1);
    compare(lane(1), 0);
    ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
    EXPECT_EQ((names{"get", "put", "get"}), ops(1)) << "the first one compares";
    expect_completed_by(lane(1));
    EXPECT_EQ(UCS_OK, flush_remote());
}

/* A flush that waits for atomics reads when these are over */
UCS_TEST_F(test_varuna_placed, remote_flush_after_atomics) {
    open_with_home(0);
    put_and_acknowledge();
    ep->hot.num_amos = 1;
    EXPECT_EQ(UCS_INPROGRESS, flush_remote(&m_comp));
    EXPECT_EQ(names{}, ops(0));
    ep->hot.num_amos = 0;
    uct_varuna_amo_finish_flushes(ep, UCS_OK);
    EXPECT_EQ(names{"get"}, ops(0));
    expect_completed_by(lane(0));
}

/* A failed endpoint places nothing */
UCS_TEST_F(test_varuna_placed, failed) {
    open_with_home(1);
    put_and_acknowledge();
    uct_varuna_ep_flush(&ep->super.super, UCT_FLUSH_FLAG_CANCEL, NULL);
    EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
    EXPECT_EQ(UCS_OK, flush());
    EXPECT_EQ(UCS_OK, flush_remote());
}
