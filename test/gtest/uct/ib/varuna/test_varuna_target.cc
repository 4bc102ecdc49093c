/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's targets: how they are opened, connected, fenced, used again and closed,
 * with a requester that the test plays.
 */
#include "fake_target.h"

extern "C" {
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/responder/varuna_fence.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
}


#include <algorithm>
#include <cstring>
#include <set>

class test_varuna_target : public fake_target_test {
protected:
    static const uct_varuna_ctl_open_rep_t &open_rep(const fake_host::message &msg)
    {
        return msg.as<uct_varuna_ctl_open_rep_t>();
    }

    static const uct_varuna_ctl_fence_rep_t &fence_rep(const fake_host::message &msg)
    {
        return msg.as<uct_varuna_ctl_fence_rep_t>();
    }

    /* The log ring of an incarnation, as the requester would write to it */
    uint64_t *ring(const fake_peer &peer, uint32_t epoch)
    {
        return target(peer)->logs +
               ((epoch % UCT_VARUNA_LOG_COUNT) * UCT_VARUNA_LOG_SIZE);
    }

    /* The entries in an answer to FENCE_REQ */
    static uint64_t logged(const fake_host::message &msg, unsigned index)
    {
        uint64_t entry;

        memcpy(&entry,
               &msg.body[sizeof(uct_varuna_ctl_fence_rep_t) + (index * sizeof(entry))],
               sizeof(entry));
        return entry;
    }

    fake_lane::ep *qp(const fake_peer &peer, uint32_t epoch)
    {
        return reinterpret_cast<fake_lane::ep*>(
                target(peer)->qps[epoch % UCT_VARUNA_LOG_COUNT].ep);
    }

    ucs_status_t rejected()
    {
        return (ucs_status_t)host->last_sent(UCT_VARUNA_CTL_REJECT)
                .as<uct_varuna_ctl_reject_t>().status;
    }
};


/* --- KEY_REQ --- */

/* It is answered for the target's own log and for tokens, if the NIC is there */
UCS_TEST_F(test_varuna_target, keys_for_those_who_own_one) {
    uint64_t opening = open(alice).hdr.opening;
    uct_varuna_ctl_key_req_t req = {};

    auto ask = [&](const fake_peer &peer, uint64_t of) {
        host->sent();
        host->receive(peer, 0, host->header(peer, UCT_VARUNA_CTL_KEY_REQ, VQP, 0, of), req);
    };
    auto expect = [&](ucs_status_t status) {
        fake_host::message msg              = host->last_sent(UCT_VARUNA_CTL_KEY_REP);
        const uct_varuna_ctl_key_rep_t &rep = msg.as<uct_varuna_ctl_key_rep_t>();

        EXPECT_EQ(status, rep.status);
        EXPECT_EQ(status == UCS_OK, rep.key != 0);
        EXPECT_EQ(req.nic, rep.nic);
        EXPECT_EQ(req.token, rep.token);
    };

    host->iface()->md->nics[1].is_link = 1;
    req.nic                            = 1;
    ask(alice, opening);
    expect(UCS_OK);
    req.generation = 1;
    ask(alice, opening);
    expect(UCS_ERR_NO_DEVICE);
    req.generation = 0;
    req.nic        = NUM_LINKS;
    ask(alice, opening);
    expect(UCS_ERR_NO_DEVICE);
    req.nic   = 1;
    req.token = 0x70ce4;
    req.addr  = UINT64_MAX;
    ask(alice, opening);
    expect(UCS_ERR_NO_ELEM);

    ask(alice, opening + 1);
    EXPECT_EQ(UCS_ERR_NO_ELEM, rejected());
    ask(bob, opening);
    EXPECT_EQ(0u, count(host->sent(), UCT_VARUNA_CTL_KEY_REP));
}


/* --- OPEN_REQ --- */

UCS_TEST_F(test_varuna_target, open_gives_logs_and_a_secret_name) {
    fake_host::message msg = open(alice);

    ASSERT_TRUE(target(alice) != NULL);
    EXPECT_EQ(alice.uuid, msg.hdr.dest);
    EXPECT_EQ(alice.secret, msg.hdr.secret);
    EXPECT_EQ(VQP, msg.hdr.vqp);
    EXPECT_NE(0u, msg.hdr.opening);
    EXPECT_EQ(target(alice)->opening, msg.hdr.opening);
    EXPECT_EQ(uct_varuna_target_log_key(host->responder(), target(alice)->id)->address,
              open_rep(msg).log_addr);
    EXPECT_EQ(target(alice)->am.number, open_rep(msg).target);
    EXPECT_EQ(UCT_VARUNA_LOG_SIZE, open_rep(msg).log_size);
    EXPECT_EQ(UCT_VARUNA_LOG_COUNT, open_rep(msg).log_count);
    EXPECT_GT(open_rep(msg).rkey_len, 0u);
    EXPECT_EQ(1u, host->responder()->stats.open);
}

/* The answer was lost: there is still only one target */
UCS_TEST_F(test_varuna_target, open_asked_again) {
    uint64_t opening = open(alice).hdr.opening;

    EXPECT_EQ(opening, open(alice).hdr.opening);
    EXPECT_EQ(1u, host->responder()->targets.count);
}

/* Paths are not in order: a request of a closed endpoint may come late */
UCS_TEST_F(test_varuna_target, late_open_of_an_earlier_instance) {
    uint64_t opening = open(alice, VQP, 5).hdr.opening;

    send_open(alice, VQP, 4);
    EXPECT_EQ(0u, count(host->sent(), UCT_VARUNA_CTL_OPEN_REP));
    EXPECT_EQ(opening, target(alice)->opening);
}

/* The id is used again, and CLOSE was lost */
UCS_TEST_F(test_varuna_target, open_of_the_next_instance) {
    uint64_t opening = open(alice, VQP, 5).hdr.opening;
    uint64_t *logs   = target(alice)->logs;

    EXPECT_NE(opening, open(alice, VQP, 6).hdr.opening);
    EXPECT_NE(logs, target(alice)->logs) << "late writes would reach the new one";
    EXPECT_EQ(1u, host->responder()->stats.open);
    EXPECT_EQ(2u, host->responder()->targets.count);
    host->dispatch();
    EXPECT_EQ(1u, host->responder()->targets.count);
}

UCS_TEST_F(test_varuna_target, instances_wrap_around) {
    open(alice, VQP, UINT32_MAX);
    EXPECT_NE(0u, open(alice, VQP, 2).hdr.opening);
    EXPECT_EQ(2u, target(alice)->instance);
}

/* Two peers, or one that lies about its secret, have different targets */
UCS_TEST_F(test_varuna_target, names_are_apart) {
    fake_peer liar = {alice.uuid, 3, 0xbad};
    std::set<uint64_t> openings = {open(alice).hdr.opening, open(bob).hdr.opening,
                                   open(liar).hdr.opening,
                                   open(alice, VQP + 1).hdr.opening};

    EXPECT_EQ(4u, openings.size());
    EXPECT_EQ(4u, host->responder()->stats.open);
}

UCS_TEST_F(test_varuna_target, address_of_another_peer) {
    scoped_log_handler slh(hide_warns_logger);

    host->receive(alice, 0, host->header(alice, UCT_VARUNA_CTL_OPEN_REQ, VQP, 1),
                  open_body(host->address(bob)));
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_TRUE(target(alice) == NULL);
}

UCS_TEST_F(test_varuna_target, limit_of_a_peer_and_of_all) {
    scoped_log_handler slh(hide_warns_logger);

    const unsigned max      = host->iface()->config.max_targets;
    const unsigned peer_max = max / 10;

    for (unsigned i = 0; i < peer_max; ++i) {
        open(alice, VQP + i);
    }
    send_open(alice, 1);
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, rejected());

    for (unsigned i = peer_max; i < max; ++i) {
        open({0x10 + i, 3, 3}, 1);
    }
    send_open({0xc, 3, 3}, 1);
    EXPECT_EQ(UCS_ERR_EXCEEDS_LIMIT, rejected());

    /* A closed one makes room when the main thread has destroyed it */
    send_close(alice, target(alice)->opening);
    host->dispatch();
    open({0xc, 3, 3}, 1);
}

UCS_TEST_F(test_varuna_target, memory_that_can_not_be_registered) {
    /* Some are kept ready; others must be registered now */
    for (unsigned i = 0; i < host->iface()->config.spare_qps; ++i) {
        open(alice, VQP + i);
    }

    host->sent();
    fake_lane::mr_status = UCS_ERR_IO_ERROR;
    {
        scoped_log_handler slh(hide_warns_logger);
        send_open(bob);
        send_open(bob); /* The NICs are not asked again at once */
        EXPECT_EQ(host->iface()->num_links, m_warnings.size());
    }
    fake_lane::mr_status = UCS_OK;
    EXPECT_TRUE(host->sent().empty()) << "not refused: it comes again";
    EXPECT_TRUE(target(bob) == NULL);
    send_open(bob);
    EXPECT_TRUE(target(bob) == NULL);
    for (unsigned link = 0; link < host->iface()->num_links; ++link) {
        host->iface()->md->nics[link].shortages[UCT_VARUNA_SHORT_MR].backoff.due = 0; /* Time passes */
    }
    open(bob);
    EXPECT_TRUE(target(bob) != NULL);
}

/* All NICs are late, perhaps because their threads have no CPU: the request is not refused,
 * and comes again */
UCS_TEST_F(test_varuna_target, memory_that_is_not_registered_in_time) {
    for (unsigned i = 0; i < host->iface()->config.spare_qps; ++i) {
        open(alice, VQP + i);
    }

    host->sent();
    fake_lane::mr_status = UCS_ERR_TIMED_OUT;
    send_open(bob);
    fake_lane::mr_status = UCS_OK;
    EXPECT_TRUE(host->sent().empty());
    EXPECT_TRUE(target(bob) == NULL);
    open(bob);
    EXPECT_TRUE(target(bob) != NULL);
}


/* --- CONNECT_REQ --- */

UCS_TEST_F(test_varuna_target, connect_takes_a_spare_queue_pair) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &rc    = host->lane(1, UCT_VARUNA_LANE_RC);
    unsigned created = rc.num_created;

    EXPECT_EQ(UCS_OK, connect(alice, opening, 1, 1));
    EXPECT_EQ(created, rc.num_created);
    EXPECT_EQ(fake_lane::lid(alice.host, 1), qp(alice, 1)->lid);
    host->dispatch(); /* The main thread makes the next one */
    EXPECT_EQ(created + 1, rc.num_created);
}

/* A requester that knows another life of our NIC has keys that are not of this one */
UCS_TEST_F(test_varuna_target, connect_in_another_life) {
    uint64_t opening = open(alice).hdr.opening;

    host->iface()->md->nics[1].generation = 2;
    for (unsigned other : {0, 1, 3}) {
        generation = other;
        EXPECT_EQ(UCS_ERR_NO_DEVICE, connect(alice, opening, 1, 1)) << other;
        EXPECT_EQ(0u, target(alice)->qps[1].epoch);
    }

    generation                        = 2;
    host->iface()->links[1].is_closed = 1;
    EXPECT_EQ(UCS_ERR_NO_DEVICE, connect(alice, opening, 1, 1)) << "it is away";
    host->iface()->links[1].is_closed = 0;
    EXPECT_EQ(UCS_OK, connect(alice, opening, 1, 1));
    EXPECT_EQ(1u, target(alice)->qps[1].epoch);
    host->iface()->md->nics[1].generation = 0;
}

/* A requester that prepares a connection on a link, and hears then that the link is to be left,
 * stays where it is, and tells nobody. One that had changed to it asks for another */
UCS_TEST_F(test_varuna_target, prepared_connection_holds_no_link) {
    uint64_t opening = open(alice).hdr.opening;

    send_connect(alice, opening, 1, 1, fake_lane::EP_LEN, 1);
    send_connect(alice, opening, 2, 0, fake_lane::EP_LEN, 1);
    ASSERT_TRUE(qp(alice, 2) != NULL);
    EXPECT_EQ(1u, uct_varuna_targets_leave_link(host->responder(), 0, 0, 0)) << "it may change to it";
    EXPECT_EQ(0u, uct_varuna_targets_leave_link(host->responder(), 0, 0, 1)) << "it has not";
    EXPECT_EQ(1u, uct_varuna_targets_leave_link(host->responder(), 1, 0, 1)) << "it is there";

    /* On its way to link 1 it says that it was on link 0 */
    send_connect(alice, opening, 3, 1, fake_lane::EP_LEN, 2);
    EXPECT_EQ(1u, uct_varuna_targets_leave_link(host->responder(), 0, 0, 1));
}

UCS_TEST_F(test_varuna_target, connect_asked_again) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane::ep *ep;

    connect(alice, opening, 1);
    ep              = qp(alice, 1);
    ring(alice, 1)[3] = 33;
    EXPECT_EQ(UCS_OK, connect(alice, opening, 1));
    EXPECT_EQ(ep, qp(alice, 1));
    EXPECT_EQ(33u, ring(alice, 1)[3]) << "a ring in use is cleared";
}

/* A ring's earlier user proves nothing about its next one */
UCS_TEST_F(test_varuna_target, connect_clears_the_ring) {
    uint64_t opening = open(alice).hdr.opening;

    ring(alice, 1)[3] = 33;
    ring(alice, 2)[4] = 44;
    connect(alice, opening, 1);
    EXPECT_EQ(0u, ring(alice, 1)[3]);
    EXPECT_EQ(44u, ring(alice, 2)[4]);
}

UCS_TEST_F(test_varuna_target, connect_without_a_spare_waits_for_the_main_thread) {
    uint64_t opening = open(alice).hdr.opening;

    for (unsigned epoch = 1; epoch <= host->iface()->config.spare_qps; ++epoch) {
        connect(alice, opening, epoch);
    }

    host->sent();
    send_connect(alice, opening, 3);
    EXPECT_EQ(0u, host->sent().size());
    host->dispatch();
    EXPECT_EQ(UCS_OK, host->last_sent(UCT_VARUNA_CTL_CONNECT_REP)
                      .as<uct_varuna_ctl_connect_t>().status);
    EXPECT_EQ(3u, target(alice)->qps[1].epoch);
}

/* The ring of incarnation 1 is due for 3 */
UCS_TEST_F(test_varuna_target, ring_is_used_again_after_its_user_is_fenced) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &rc    = host->lane(0, UCT_VARUNA_LANE_RC);
    fake_lane::ep *first, *second;

    connect(alice, opening, 1);
    first = qp(alice, 1);
    connect(alice, opening, 2);
    second = qp(alice, 2);
    host->dispatch();
    rc.is_drained = false;
    connect(alice, opening, 3);
    EXPECT_TRUE(first->in_err);
    EXPECT_FALSE(second->in_err);
    EXPECT_NE(first, qp(alice, 3));

    host->dispatch();
    EXPECT_EQ(1u, std::count(rc.eps.begin(), rc.eps.end(), first))
            << "its last completions were not polled";
    rc.is_drained = true;
}

UCS_TEST_F(test_varuna_target, connect_of_the_past) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 3);
    EXPECT_EQ(UCS_ERR_REJECTED, connect(alice, opening, 1));
    EXPECT_EQ(3u, target(alice)->qps[1].epoch);
}

UCS_TEST_F(test_varuna_target, connect_to_a_nic_that_is_no_link) {
    uint64_t opening = open(alice).hdr.opening;

    EXPECT_EQ(UCS_ERR_NO_DEVICE, connect(alice, opening, 1, 5));
}

/* UCX reads the contents of an address, so invalid ones must be refused first */
UCS_TEST_F(test_varuna_target, connect_to_a_wrong_address) {
    uint64_t opening = open(alice).hdr.opening;
    unsigned spares  = host->responder()->spares.count[0];

    host->sent();
    send_connect(alice, opening, 1, 0, fake_lane::EP_LEN + 1);
    EXPECT_EQ(-UCS_ERR_INVALID_ADDR, host->last_sent(UCT_VARUNA_CTL_CONNECT_REP)
                                     .as<uct_varuna_ctl_connect_t>().status);
    EXPECT_EQ(spares, host->responder()->spares.count[0]);
}

UCS_TEST_F(test_varuna_target, queue_pair_that_does_not_connect_is_dropped) {
    uint64_t opening = open(alice).hdr.opening;

    host->lane(0, UCT_VARUNA_LANE_RC).connect_status = UCS_ERR_IO_ERROR;
    EXPECT_EQ(UCS_ERR_IO_ERROR, connect(alice, opening, 1));
    EXPECT_TRUE(qp(alice, 1) == NULL);
    host->lane(0, UCT_VARUNA_LANE_RC).connect_status = UCS_OK;
    EXPECT_EQ(UCS_OK, connect(alice, opening, 1));
}


/* --- FENCE_REQ --- */

UCS_TEST_F(test_varuna_target, fence_stops_the_queue_pair_before_it_answers) {
    uint64_t opening = open(alice).hdr.opening;
    fake_host::message msg;

    connect(alice, opening, 1);
    ring(alice, 1)[7]                      = 77;
    host->lane(0, UCT_VARUNA_LANE_RC).epsn = 0x5000123;
    msg                                    = fence(alice, opening, 1, 0, 0, 9);
    EXPECT_TRUE(qp(alice, 1)->in_err);
    EXPECT_EQ((unsigned)(UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN |
                         UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_RESET),
              fence_rep(msg).flags);
    EXPECT_EQ(0x123u, fence_rep(msg).epsn) << "a PSN has 24 bits";
    EXPECT_EQ(9u, fence_rep(msg).round);
    EXPECT_EQ(77u, logged(msg, 7));
}

/* What is known of its order and that of the DC targets. The first queue pair of a NIC stands
 * for all: one that has died cannot be asked */
UCS_TEST_F(test_varuna_target, fence_tells_the_order) {
    uint64_t opening = open(alice).hdr.opening;
    fake_host::message msg;

    fake_lane::rx_order = UCT_VARUNA_ORDER_CERTAIN;
    connect(alice, opening, 1);
    fake_lane::rx_order = UCT_VARUNA_ORDER_NONE;
    host->iface()->links[0].lanes[UCT_VARUNA_LANE_DC].rx_order = UCT_VARUNA_ORDER_CERTAIN;
    host->iface()->links[1].lanes[UCT_VARUNA_LANE_DC].rx_order = UCT_VARUNA_ORDER_NONE;
    connect(alice, opening, 2);
    fake_lane::rx_order = UCT_VARUNA_ORDER_UNKNOWN;
    for (unsigned epoch : {1, 2}) {
        msg = fence(alice, opening, epoch);
        EXPECT_TRUE(fence_rep(msg).flags & UCT_VARUNA_FENCE_FLAG_ORDERED);
        EXPECT_FALSE(fence_rep(msg).flags & UCT_VARUNA_FENCE_FLAG_UNORDERED);
        EXPECT_EQ(1u, fence_rep(msg).dc_ordered);
        EXPECT_EQ(2u, fence_rep(msg).dc_unordered);
    }
}

/* Its evidence does not change, even if the queue pair changes */
UCS_TEST_F(test_varuna_target, fence_asked_again) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    host->lane(0, UCT_VARUNA_LANE_RC).epsn = 5;
    fence(alice, opening, 1);
    host->lane(0, UCT_VARUNA_LANE_RC).epsn = 6;
    EXPECT_EQ(5u, fence_rep(fence(alice, opening, 1)).epsn);
}

UCS_TEST_F(test_varuna_target, fence_that_the_nic_refuses_is_tried_again) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &rc    = host->lane(0, UCT_VARUNA_LANE_RC);

    connect(alice, opening, 1);
    rc.invalidate_status = UCS_ERR_IO_ERROR;
    EXPECT_EQ(0u, fence_rep(fence(alice, opening, 1)).flags);
    rc.invalidate_status = UCS_OK;
    EXPECT_NE(0u, fence_rep(fence(alice, opening, 1)).flags & UCT_VARUNA_FENCE_FLAG_QP);
}

UCS_TEST_F(test_varuna_target, fence_without_a_psn) {
    uint64_t opening = open(alice).hdr.opening;
    fake_host::message msg;

    connect(alice, opening, 1);
    host->lane(0, UCT_VARUNA_LANE_RC).epsn_status = UCS_ERR_UNSUPPORTED;
    host->lane(0, UCT_VARUNA_LANE_RC).epsn        = 5;
    msg                                           = fence(alice, opening, 1);
    EXPECT_EQ((unsigned)(UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_ERR |
                         UCT_VARUNA_FENCE_FLAG_RESET),
              fence_rep(msg).flags);
    EXPECT_EQ(0u, fence_rep(msg).epsn);
}

/* ERR alone does not prove that accepted data is in memory */
UCS_TEST_F(test_varuna_target, fence_resets_the_queue_pair) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    fence(alice, opening, 1);
    EXPECT_TRUE(qp(alice, 1)->in_reset);
    fence(alice, opening, 1); /* Once: the fake complains otherwise */

    /* It rests in RESET, and leaves it before UCX destroys it: so does the fake */
    host->iface()->config.packet_lifetime = ucs_time_from_sec(1000);
    send_close(alice, opening);
    host->dispatch();
    uct_varuna_rest_progress(host->iface(), ucs_get_time());
    EXPECT_EQ(1u, host->lane(0, UCT_VARUNA_LANE_RC).eps.size() -
                  host->iface()->config.spare_qps);
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0u, host->lane(0, UCT_VARUNA_LANE_RC).eps.size() -
                  host->iface()->config.spare_qps);
}

/* Flow control's credits have no completion: they must not delay the answer */
UCS_TEST_F(test_varuna_target, fence_resets_a_queue_pair_whose_send_queue_is_not_drained) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    host->lane(0, UCT_VARUNA_LANE_RC).is_drained = false;
    EXPECT_EQ((unsigned)(UCT_VARUNA_FENCE_FLAG_QP | UCT_VARUNA_FENCE_FLAG_PSN |
                         UCT_VARUNA_FENCE_FLAG_ERR | UCT_VARUNA_FENCE_FLAG_RESET),
              fence_rep(fence(alice, opening, 1)).flags);
    EXPECT_TRUE(qp(alice, 1)->in_reset);
}

/* Without the event, RESET follows all the same; and a NIC that did not raise it once is
 * waited for less */
UCS_TEST_F(test_varuna_target, fence_without_the_last_receive_buffer) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &rc    = host->lane(0, UCT_VARUNA_LANE_RC);
    ucs_time_t timeout;

    connect(alice, opening, 1);
    connect(alice, opening, 2);
    rc.last_wqe_status = UCS_ERR_TIMED_OUT;
    EXPECT_NE(0u, fence_rep(fence(alice, opening, 1)).flags &
                  UCT_VARUNA_FENCE_FLAG_RESET);
    EXPECT_TRUE(qp(alice, 1)->in_reset);
    timeout = rc.last_wqe_timeout;

    EXPECT_NE(0u, fence_rep(fence(alice, opening, 2)).flags &
                  UCT_VARUNA_FENCE_FLAG_RESET);
    EXPECT_LE(rc.last_wqe_timeout, ucs_time_from_sec(1e-3));
    EXPECT_LE(timeout, ucs_time_from_sec(15e-3));
}

/* UCX does not expect two events of a queue pair that it destroys: one that was reset is
 * kept until the first one has come */
UCS_TEST_F(test_varuna_target, queue_pair_is_kept_until_its_event_has_come) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &rc    = host->lane(0, UCT_VARUNA_LANE_RC);

    connect(alice, opening, 1);
    rc.last_wqe_status = UCS_ERR_TIMED_OUT;
    fence(alice, opening, 1);
    host->iface()->config.packet_lifetime = 0;
    send_close(alice, opening);
    host->dispatch();
    uct_varuna_rest_progress(host->iface(), ucs_get_time() + 1);
    EXPECT_EQ(1u, rc.eps.size() - host->iface()->config.spare_qps);

    rc.last_wqe_status = UCS_OK;
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0u, rc.eps.size() - host->iface()->config.spare_qps);
}

/* The maximum lifetime of a packet has the same effect as RESET */
UCS_TEST_F(test_varuna_target, fence_without_reset_is_done_by_time) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    host->lane(0, UCT_VARUNA_LANE_RC).reset_status = UCS_ERR_IO_ERROR;
    EXPECT_EQ(0u, fence_rep(fence(alice, opening, 1)).flags &
                  UCT_VARUNA_FENCE_FLAG_QP);
    host->advance(ucs_time_to_sec(host->iface()->config.packet_lifetime) * 1.1);
    EXPECT_NE(0u, fence_rep(fence(alice, opening, 1)).flags &
                  UCT_VARUNA_FENCE_FLAG_QP);
    EXPECT_FALSE(qp(alice, 1)->in_reset);
}

/* DC has no queue pair to stop here: the answer is only the log */
UCS_TEST_F(test_varuna_target, fence_of_an_incarnation_without_a_queue_pair) {
    uint64_t opening = open(alice).hdr.opening;
    fake_host::message msg;

    ring(alice, 1)[0] = 11;
    msg               = fence(alice, opening, 1);
    EXPECT_EQ(0u, fence_rep(msg).flags);
    EXPECT_EQ(11u, logged(msg, 0));
}

/* The ring of the incarnation is read, the other one is empty for the next */
UCS_TEST_F(test_varuna_target, fence_clears_the_ring_of_the_next_incarnation) {
    uint64_t opening = open(alice).hdr.opening;

    ring(alice, 1)[3] = 33;
    ring(alice, 2)[4] = 44;
    fence(alice, opening, 1);
    EXPECT_EQ(33u, ring(alice, 1)[3]);
    EXPECT_EQ(0u, ring(alice, 2)[4]);

    /* Once: the next one may write there */
    ring(alice, 2)[4] = 45;
    fence(alice, opening, 1);
    EXPECT_EQ(45u, ring(alice, 2)[4]);
}

/* Invariant 12 of docs/RECOVERY.md */
UCS_TEST_F(test_varuna_target, fence_cancels_what_was_asked_for_before) {
    uint64_t opening = open(alice).hdr.opening;

    fence(alice, opening, 1, 3);
    ring(alice, 1)[5] = 55;
    EXPECT_EQ(UCS_ERR_REJECTED, connect(alice, opening, 2));
    EXPECT_EQ(UCS_ERR_REJECTED, connect(alice, opening, 3));
    EXPECT_EQ(55u, ring(alice, 1)[5]) << "a late request cleared a ring in use";
    EXPECT_EQ(UCS_OK, connect(alice, opening, 4));
}

/* Older incarnations are fenced too, and newer ones still work */
UCS_TEST_F(test_varuna_target, fence_stops_all_up_to_its_incarnation) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    connect(alice, opening, 2);
    fence(alice, opening, 1);
    EXPECT_TRUE(qp(alice, 1)->in_err);
    EXPECT_FALSE(qp(alice, 2)->in_err);
    fence(alice, opening, 2);
    EXPECT_TRUE(qp(alice, 2)->in_err);
}

/* A requester leaves some lanes without a fence; CONNECT_REQ says that they are over */
UCS_TEST_F(test_varuna_target, connect_stops_what_is_over) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane::ep *older, *in_use;

    connect(alice, opening, 1);
    connect(alice, opening, 2);
    older  = qp(alice, 1);
    in_use = qp(alice, 2);
    send_connect(alice, opening, 5, 0, fake_lane::EP_LEN, 2);
    EXPECT_TRUE(older->in_reset);
    EXPECT_FALSE(in_use->in_err);
    EXPECT_EQ(1u, target(alice)->fenced);
    EXPECT_EQ(UCS_ERR_REJECTED, connect(alice, opening, 1)) << "it is late";
    send_connect(alice, opening, 5, 0, fake_lane::EP_LEN, 4);
    EXPECT_TRUE(in_use->in_reset);
    EXPECT_EQ(UCS_ERR_REJECTED, connect(alice, opening, 3));
}

/* Repeated, and late ones of an earlier state */
UCS_TEST_F(test_varuna_target, connect_stops_nothing_newer) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 4);
    fence(alice, opening, 2);
    send_connect(alice, opening, 5, 0, fake_lane::EP_LEN, 1);
    EXPECT_EQ(2u, target(alice)->fenced);
    send_connect(alice, opening, 5, 0, fake_lane::EP_LEN, 4);
    EXPECT_FALSE(qp(alice, 4)->in_err);
    send_connect(alice, opening, 5, 0, fake_lane::EP_LEN, UINT32_MAX);
    EXPECT_FALSE(qp(alice, 5)->in_err) << "no more than what precedes the one it connects";
}

/* All messages that the requester knows to be acknowledged must come */
UCS_TEST_F(test_varuna_target, connect_reveals_a_gap) {
    uint64_t opening = open(alice).hdr.opening;
    uint32_t first   = target(alice)->next_seq;

    send_connect(alice, opening, 3, 0, fake_lane::EP_LEN, 2, first);
    host->dispatch();
    EXPECT_FALSE(target(alice)->gap.watched);
    send_connect(alice, opening, 5, 0, fake_lane::EP_LEN, 4, first + 2);
    host->dispatch();
    EXPECT_TRUE(target(alice)->gap.watched);
    EXPECT_EQ(first + 2, target(alice)->gap.end);
}

UCS_TEST_F(test_varuna_target, fence_stops_what_was_not_fenced_before) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1);
    connect(alice, opening, 2);
    fence(alice, opening, 2);
    EXPECT_TRUE(qp(alice, 1)->in_err);
}

/* Invariant 13 */
UCS_TEST_F(test_varuna_target, messages_for_another_opening) {
    uint64_t opening = open(alice).hdr.opening;
    uct_varuna_ctl_fence_req_t req = {1, 0, 0};

    connect(alice, opening, 1);
    host->sent();
    host->receive(alice, 0,
                  host->header(alice, UCT_VARUNA_CTL_FENCE_REQ, VQP, 1, opening + 1),
                  req);
    EXPECT_EQ(UCS_ERR_NO_ELEM, rejected());
    EXPECT_FALSE(qp(alice, 1)->in_err);
    send_connect(alice, opening + 1, 2);
    EXPECT_EQ(UCS_ERR_NO_ELEM, rejected());
    EXPECT_TRUE(qp(alice, 2) == NULL);
    send_close(alice, opening + 1);
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_TRUE(target(alice) != NULL);
    EXPECT_EQ(3u, host->ctl()->stats.mismatched);
}


/* --- CLOSE --- */

UCS_TEST_F(test_varuna_target, close_is_answered_and_destroys) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &rc    = host->lane(0, UCT_VARUNA_LANE_RC);
    fake_lane::ep *ep;

    connect(alice, opening, 1);
    ep = qp(alice, 1);
    send_close(alice, opening, 1, 1);
    EXPECT_EQ(1u, host->last_sent(UCT_VARUNA_CTL_CLOSE_REP).link);
    EXPECT_TRUE(target(alice) == NULL);
    EXPECT_EQ(0u, host->responder()->stats.open);

    host->dispatch();
    EXPECT_EQ(0u, host->responder()->targets.count);
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_EQ(0, std::count(rc.eps.begin(), rc.eps.end(), ep));
    EXPECT_EQ(0u, kh_size(&host->ctl()->peers));
}

/* A queue pair may live on after its target: while the NIC's thread fences it, and until
 * the main thread destroys it. It must not lead to the target then. */
UCS_TEST_F(test_varuna_target, queue_pair_outlives_its_target) {
    uint64_t opening = open(alice).hdr.opening;
    uct_varuna_target_t *any;
    uct_ep_h first;

    connect(alice, opening, 1);
    first = &qp(alice, 1)->super;
    connect(alice, opening, 1 + UCT_VARUNA_LOG_COUNT); /* It takes its place */
    ASSERT_NE(first, &qp(alice, 1)->super);
    uct_varuna_ctl_lock(host->ctl());
    kh_foreach_value(&host->responder()->targets.rc_eps, any, {
        EXPECT_TRUE((any == NULL) || (any == target(alice)));
    });
    EXPECT_TRUE(kh_val(&host->responder()->targets.rc_eps,
                       kh_get(uct_varuna_rc_eps, &host->responder()->targets.rc_eps,
                              (uintptr_t)first)) == NULL);
    uct_varuna_ctl_unlock(host->ctl());
    EXPECT_TRUE(uct_varuna_target_ep_failed(host->responder(), first));
    host->dispatch();
    uct_varuna_rest_progress(host->iface(), UCS_TIME_INFINITY);
    EXPECT_FALSE(uct_varuna_target_ep_failed(host->responder(), first));
}

/* Messages that were acknowledged before are in the completion queues */
UCS_TEST_F(test_varuna_target, close_polls_the_lanes_first) {
    uint64_t opening = open(alice).hdr.opening;
    fake_lane &dc    = host->lane(1, UCT_VARUNA_LANE_DC);
    unsigned left    = 3;

    send_close(alice, opening);
    dc.on_poll = [&]() -> unsigned {
        EXPECT_EQ(1u, host->responder()->targets.count);
        return (left > 0) ? left-- : 0;
    };
    host->dispatch();
    EXPECT_EQ(0u, left);
    EXPECT_EQ(0u, host->responder()->targets.count);
}

UCS_TEST_F(test_varuna_target, close_asked_again) {
    uint64_t opening = open(alice).hdr.opening;

    open(alice, VQP + 1); /* So the peer is known */
    send_close(alice, opening);
    host->dispatch();
    host->sent();
    send_close(alice, opening);
    host->last_sent(UCT_VARUNA_CTL_CLOSE_REP);
}

/* An endpoint that never received OPEN_REP names its instance */
UCS_TEST_F(test_varuna_target, close_by_instance) {
    open(alice, VQP, 5);
    send_close(alice, 0, 4);
    EXPECT_TRUE(target(alice) != NULL);
    send_close(alice, 0, 5);
    EXPECT_TRUE(target(alice) == NULL);
}

UCS_TEST_F(test_varuna_target, close_of_a_peer_that_is_not_known) {
    send_close(alice, 1);
    EXPECT_EQ(0u, host->sent().size());
    EXPECT_EQ(1u, host->ctl()->stats.mismatched);
}


/* --- Logs --- */

/* Packets in the network for an id can still reach its rings, so these rest for that
 * time, and then get another key */
UCS_TEST_F(test_varuna_target, logs_rest_before_they_are_used_again) {
    uint64_t *logs;
    std::string key;

    open(alice);
    logs = target(alice)->logs;
    key.assign(uct_varuna_target_log_key(host->responder(), target(alice)->id)->key,
               uct_varuna_target_log_key(host->responder(), target(alice)->id)->key_len);
    send_close(alice, target(alice)->opening);
    host->dispatch();
    for (unsigned i = 0; i < 4; ++i) {
        open(bob, VQP + i);
        EXPECT_NE(logs, target(bob, VQP + i)->logs);
    }

    host->advance(0.2);
    for (unsigned i = 0; (i < 4) && ((target(alice, VQP + i) == NULL) ||
                                     (target(alice, VQP + i)->logs != logs)); ++i) {
        open(alice, VQP + i);
    }
    for (unsigned i = 0; i < 4; ++i) {
        if ((target(alice, VQP + i) != NULL) &&
            (target(alice, VQP + i)->logs == logs)) {
            const uct_varuna_own_t *own = uct_varuna_target_log_key(
                    host->responder(), target(alice, VQP + i)->id);
            EXPECT_NE(key, std::string(own->key, own->key_len));
            return;
        }
    }
    FAIL() << "the logs are never used again";
}

UCS_TEST_F(test_varuna_target, logs_are_empty_at_first) {
    open(alice);
    target(alice)->logs[1] = 1;
    send_close(alice, target(alice)->opening);
    host->dispatch();
    host->advance(0.2);
    for (unsigned i = 0; i < 4; ++i) {
        open(bob, VQP + i);
        for (unsigned j = 0; j < UCT_VARUNA_LOG_COUNT * UCT_VARUNA_LOG_SIZE; ++j) {
            EXPECT_EQ(0u, target(bob, VQP + i)->logs[j]);
        }
    }
}
