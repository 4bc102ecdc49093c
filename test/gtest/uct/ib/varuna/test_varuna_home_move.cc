/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Mode extended: how the home NIC moves when it fails, what must be at rest before, and
 * how it returns.
 */
#include "fake_target.h"
#include "fake_verbs.h"

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/responder/extended/varuna_home.h>
#include <uct/ib/varuna/responder/varuna_responder.h>
}

#include <cerrno>
#include <cstring>

class test_varuna_home_move : public fake_target_test {
protected:
    static constexpr double PERIOD   = 0.05; /* Of the timer */
    static constexpr double LIFETIME = 0.1;
    static constexpr double RETURN   = 1.0;

    virtual void configure()
    {
        host->iface()->md->atomic_mode       = UCT_VARUNA_ATOMIC_EXTENDED;
        host->iface()->config.packet_lifetime = ucs_time_from_sec(LIFETIME);
        host->iface()->link_table.return_delay = ucs_time_from_sec(RETURN);
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            nics[link] = &verbs.add("fake_" + ucs::to_string(link));
        }
    }

    virtual void cleanup()
    {
        if (host->ctl()->detector != NULL) {
            uct_varuna_detector_destroy(host->ctl()->detector);
            host->ctl()->detector = NULL;
        }
        fake_target_test::cleanup();
    }

    /* Set the state of a device */
    void start_detector()
    {
        uct_varuna_ctl_t *ctl = host->ctl();

        ASSERT_UCS_OK(uct_varuna_detector_create(ctl->async, uct_varuna_ports_event,
                                                 ctl, &ctl->detector));
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            ASSERT_UCS_OK(uct_varuna_detector_add(
                    ctl->detector, link, host->iface()->md->nics[link].dev_name));
        }
    }

    /* The system removes a NIC */
    void remove_nic(unsigned link)
    {
        scoped_log_handler slh(hide_warns_logger); /* The user is told */

        nics[link]->query_error = ENODEV;
        uct_varuna_ctl_lock(host->ctl());
        uct_varuna_detector_check(host->ctl()->detector, link, 1);
        uct_varuna_ctl_unlock(host->ctl());
    }

    void port(unsigned link, bool is_up)
    {
        uct_varuna_ctl_lock(host->ctl());
        uct_varuna_ports_event(host->ctl(), link,
                                  is_up ? UCT_VARUNA_PORT_UP : UCT_VARUNA_PORT_DOWN);
        uct_varuna_ctl_unlock(host->ctl());
    }

    uct_varuna_home_t *part()
    {
        return uct_varuna_home(host->responder());
    }

    /* The home NIC, or HOME_NONE */
    unsigned home()
    {
        uct_varuna_home_name_t name;

        uct_varuna_home_name_get(&name);
        return name.nic;
    }

    uint32_t epoch()
    {
        uct_varuna_home_name_t name;

        uct_varuna_home_name_get(&name);
        return name.epoch;
    }

    fake_lane::ep *qp(uint32_t epoch)
    {
        return reinterpret_cast<fake_lane::ep*>(
                target(alice)->qps[epoch % UCT_VARUNA_LOG_COUNT].ep);
    }

    /* Ask for an access to the mark of a slot */
    void send_access(uint64_t opening, uint64_t seq)
    {
        uct_varuna_ctl_home_req_t req = {};

        req.seq       = seq;
        req.type      = UCT_VARUNA_AMO_ACT_CAS_MARK;
        req.width     = 8;
        req.slot      = 3;
        req.mark_from = 17;
        req.mark_to   = 18;
        host->receive(alice, 0,
                      host->header(alice, UCT_VARUNA_CTL_HOME_REQ, VQP, 1, opening),
                      req);
    }

    /* Ask for a compare and swap of 5 to 6 as a whole, with keys of these NICs */
    void send_cswap(uint64_t opening, uint64_t seq, uint8_t nics)
    {
        uct_varuna_ctl_home_req_t req = {};

        req.seq     = seq;
        req.type    = UCT_VARUNA_AMO_ACT_EXECUTE;
        req.slot    = UCT_ATOMIC_OP_CSWAP;
        req.width   = 8;
        req.addr    = (uintptr_t)&target_word;
        req.compare = 5;
        req.swap    = 6;
        for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
            req.rkeys[nic] = (nics & UCS_BIT(nic)) ? 17 : UCT_INVALID_RKEY;
        }
        host->receive(alice, 0,
                      host->header(alice, UCT_VARUNA_CTL_HOME_REQ, VQP, 1, opening),
                      req);
    }

    /* Peers have a key of the word; NICs have none */
    void share_word()
    {
        target_mem         = {};
        target_mem.address = &target_word;
        target_mem.length  = sizeof(target_word);
        uct_varuna_md_share(host->iface()->md, &target_mem, 0, target_mem.keys, 0);
    }

    uct_varuna_ctl_home_rep_t answer()
    {
        return host->last_sent(UCT_VARUNA_CTL_HOME_REP)
                .as<uct_varuna_ctl_home_rep_t>();
    }

    /* Accesses under way on the loopback of a link */
    unsigned under_way(unsigned link)
    {
        unsigned count = 0;

        for (const fake_lane::post &post : host->ctl_lane(link).posted) {
            count += (post.comp != NULL);
        }
        return count;
    }

    static std::string word(uint64_t value)
    {
        return std::string((char*)&value, sizeof(value));
    }

    fake_verbs         verbs;
    fake_verbs::device *nics[NUM_LINKS];
    uct_varuna_mem_t   target_mem;
    uint64_t           target_word = 5;
};

static constexpr unsigned MOVING = UCT_VARUNA_HOME_NONE;


/* --- Its location --- */

UCS_TEST_F(test_varuna_home_move, first_link_at_first) {
    uint64_t opening = open(alice).hdr.opening;
    uint32_t before  = epoch();

    EXPECT_EQ(0u, home());
    EXPECT_EQ(UCS_OK, connect(alice, opening, 1));
    host->advance(10);
    EXPECT_EQ(0u, home());
    EXPECT_EQ(before, epoch());
    EXPECT_EQ(0u, part()->stats.moved);
}

/* Nothing can be executed on the old one: it is settled at once, and requesters learn
 * of it when they connect */
UCS_TEST_F(test_varuna_home_move, port_goes_down) {
    uint64_t opening = open(alice).hdr.opening;
    uint32_t before  = epoch();
    uct_varuna_ctl_connect_t rep;

    port(0, false);
    EXPECT_EQ(1u, home());
    EXPECT_EQ(before + 2, epoch());
    EXPECT_EQ(1u, part()->stats.moved);
    host->sent();
    send_connect(alice, opening, 1, 1);
    rep = host->last_sent(UCT_VARUNA_CTL_CONNECT_REP).as<uct_varuna_ctl_connect_t>();
    EXPECT_EQ(1u, rep.home_nic);
    EXPECT_EQ(before + 2, rep.home_epoch);
}

UCS_TEST_F(test_varuna_home_move, another_port_goes_down) {
    port(1, false);
    host->advance(1);
    EXPECT_EQ(0u, home());
}

/* There is no other NIC: atomics wait for it, and requesters handle errors */
UCS_TEST_F(test_varuna_home_move, all_ports_go_down) {
    port(1, false);
    port(0, false);
    host->advance(1);
    EXPECT_EQ(0u, home());
    port(1, true);
    EXPECT_EQ(1u, home());
}

/* Without events of ports: its loopback fails again and again */
UCS_TEST_F(test_varuna_home_move, loopback_keeps_failing) {
    uint64_t opening = open(alice).hdr.opening;

    for (unsigned i = 0; i < 3; ++i) {
        EXPECT_EQ(0u, home()) << i;
        if (i == 0) {
            send_access(opening, 1);
        }
        EXPECT_EQ(1u, under_way(0)) << i;
        host->ctl_lane(0).fail(UCS_ERR_ENDPOINT_TIMEOUT);
        host->advance(2 * LIFETIME);
    }
    EXPECT_EQ(1u, home());
    host->advance(PERIOD);
    EXPECT_EQ(1u, under_way(1));
    host->sent();
    host->ctl_lane(1).complete(word(17));
    EXPECT_EQ(UCS_OK, (ucs_status_t)answer().status);

    /* Another try some time later */
    host->advance(1 + RETURN + 2);
    EXPECT_EQ(0u, home());
}

/* ... in a row */
UCS_TEST_F(test_varuna_home_move, loopback_fails_now_and_then) {
    uint64_t opening = open(alice).hdr.opening;

    for (unsigned i = 1; i < 10; ++i) {
        send_access(opening, i);
        host->ctl_lane(0).fail(UCS_ERR_ENDPOINT_TIMEOUT);
        host->advance(2 * LIFETIME);
        host->ctl_lane(0).complete(word(17));
        EXPECT_EQ(UCS_OK, (ucs_status_t)answer().status);
    }
    EXPECT_EQ(0u, home());
}


/* --- What must be at rest --- */

/* A queue pair that may carry a CAS is in ERR before another NIC is named */
UCS_TEST_F(test_varuna_home_move, connections_are_fenced) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1, 0);
    EXPECT_FALSE(qp(1)->in_err);
    port(0, false);
    EXPECT_TRUE(qp(1)->in_err);
    EXPECT_EQ(1u, home());
}

UCS_TEST_F(test_varuna_home_move, connections_on_other_links_stay) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1, 1);
    port(0, false);
    EXPECT_FALSE(qp(1)->in_err);
    EXPECT_EQ(1u, home());
}

/* Nobody asks for RESET of a closed target's queue pair, so what it has accepted gets its
 * time. Nor is it known to be in ERR before that */
UCS_TEST_F(test_varuna_home_move, connection_of_a_target_that_was_closed) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1, 0);
    send_close(alice, opening);
    host->dispatch();
    EXPECT_FALSE(uct_varuna_spares_are_at_rest(host->responder(), 0));
    EXPECT_TRUE(uct_varuna_spares_are_at_rest(host->responder(), 1));
    port(0, false);
    EXPECT_EQ(MOVING, home());
    host->advance(LIFETIME - PERIOD);
    EXPECT_EQ(MOVING, home()) << "it may have accepted an occupy";
    host->advance(2 * PERIOD);
    EXPECT_EQ(1u, home());
}

/* One in RESET has no time left */
UCS_TEST_F(test_varuna_home_move, connection_of_a_target_that_was_fenced_and_closed) {
    uint64_t opening = open(alice).hdr.opening;

    connect(alice, opening, 1, 0);
    fence(alice, opening, 1);
    send_close(alice, opening);
    host->dispatch();
    port(0, false);
    EXPECT_EQ(1u, home());
}

UCS_TEST_F(test_varuna_home_move, connection_that_cannot_be_fenced) {
    uint64_t opening = open(alice).hdr.opening;

    start_detector();
    connect(alice, opening, 1, 0);
    host->lane(0, UCT_VARUNA_LANE_RC).invalidate_status = UCS_ERR_IO_ERROR;
    port(0, false);
    EXPECT_EQ(MOVING, home());
    host->advance(1);
    EXPECT_EQ(MOVING, home()) << "it may still execute";
    host->lane(0, UCT_VARUNA_LANE_RC).invalidate_status = UCS_OK;
    host->advance(2 * PERIOD);
    EXPECT_EQ(1u, home());
}

/* The device is asked, since a dead one cannot fence. Its last packets get their time. */
UCS_TEST_F(test_varuna_home_move, nic_that_is_gone) {
    scoped_log_handler slh(hide_warns_logger);
    uint64_t opening = open(alice).hdr.opening;

    start_detector();
    connect(alice, opening, 1, 0);
    host->lane(0, UCT_VARUNA_LANE_RC).invalidate_status = UCS_ERR_IO_ERROR;
    nics[0]->query_error = ENODEV;
    port(0, false);
    EXPECT_EQ(MOVING, home());
    host->advance(LIFETIME - PERIOD);
    EXPECT_EQ(MOVING, home());
    host->advance(3 * PERIOD);
    EXPECT_EQ(1u, home());
}

/* A loopback in ERR ends the access. Its packets get their lifetime, and then it is
 * repeated on the next NIC */
UCS_TEST_F(test_varuna_home_move, access_is_canceled) {
    uint64_t opening = open(alice).hdr.opening;

    send_access(opening, 1);
    ASSERT_EQ(1u, under_way(0));
    port(0, false);
    EXPECT_TRUE(host->ctl_lane(0).eps.back()->in_err);
    host->advance(1);
    EXPECT_EQ(MOVING, home()) << "its completion has not come";
    host->ctl_lane(0).fail(UCS_ERR_CANCELED);
    host->advance(PERIOD);
    EXPECT_EQ(MOVING, home()) << "a packet may be late";
    EXPECT_EQ(0u, under_way(1));
    host->advance(LIFETIME + PERIOD);
    EXPECT_EQ(1u, home());
    host->advance(PERIOD);
    ASSERT_EQ(1u, under_way(1));
    host->sent();
    host->ctl_lane(1).complete(word(17));
    EXPECT_EQ(17u, answer().value);
    EXPECT_EQ(1u, part()->stats.executed);
}

/* A failure that we have caused does not count as one of the NIC */
UCS_TEST_F(test_varuna_home_move, access_fails_after_its_loopback_was_stopped) {
    uint64_t opening = open(alice).hdr.opening;

    send_access(opening, 1);
    port(0, false);
    host->ctl_lane(0).fail(UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(0u, part()->nic.loopbacks[0].fails);
    host->advance(LIFETIME + (2 * PERIOD));
    EXPECT_EQ(1u, home());
    host->ctl_lane(1).fail(UCS_ERR_ENDPOINT_TIMEOUT);
    EXPECT_EQ(1u, part()->nic.loopbacks[1].fails);
}

/* It was faster */
UCS_TEST_F(test_varuna_home_move, access_succeeds_meanwhile) {
    uint64_t opening = open(alice).hdr.opening;

    send_access(opening, 1);
    port(0, false);
    EXPECT_EQ(MOVING, home());
    host->sent();
    host->ctl_lane(0).complete(word(17));
    EXPECT_EQ(17u, answer().value);
    host->advance(PERIOD);
    EXPECT_EQ(1u, home());
    EXPECT_EQ(0u, under_way(1)) << "not a second time";
}

/* Its completion is missing, so the access is repeated; a late completion has no
 * effect */
UCS_TEST_F(test_varuna_home_move, access_of_a_nic_that_is_gone) {
    uint64_t opening = open(alice).hdr.opening;

    start_detector();
    send_access(opening, 1);
    remove_nic(0);
    EXPECT_EQ(MOVING, home());
    host->advance(LIFETIME + (2 * PERIOD));
    EXPECT_EQ(1u, home());
    ASSERT_EQ(1u, under_way(1));
    host->ctl_lane(0).complete(word(99));
    EXPECT_EQ(1u, under_way(1));
    host->sent();
    host->ctl_lane(1).complete(word(17));
    EXPECT_EQ(17u, answer().value);
}

/* There is no event of some failures */
UCS_TEST_F(test_varuna_home_move, access_that_takes_long) {
    scoped_log_handler slh(hide_warns_logger);
    uint64_t opening = open(alice).hdr.opening;

    start_detector();
    send_access(opening, 1);
    nics[0]->query_error = EIO;
    host->advance(PERIOD);
    EXPECT_EQ(0u, home());
    host->advance(3 * PERIOD);
    EXPECT_EQ(MOVING, home());
    host->advance(LIFETIME + PERIOD);
    EXPECT_EQ(1u, home());
}

/* All interfaces of the process share memory, so all must leave the old NIC */
UCS_TEST_F(test_varuna_home_move, another_interface_has_to_leave_too) {
    uct_varuna_home_member_t other;

    uct_varuna_home_name_join(&other, 1, 3, -1);
    EXPECT_EQ(0u, home()) << "the first one has chosen";
    port(0, false);
    EXPECT_FALSE(uct_varuna_home_name_is_at_rest(&other));
    EXPECT_TRUE(uct_varuna_home_name_is_at_rest(&part()->nic.member));
    EXPECT_EQ(MOVING, home());
    EXPECT_TRUE(uct_varuna_home_name_rest(&other));
    EXPECT_EQ(1u, home());
    uct_varuna_home_name_leave(&other);
}

UCS_TEST_F(test_varuna_home_move, another_interface_is_closed) {
    uct_varuna_home_member_t other;

    uct_varuna_home_name_join(&other, 0, 3, -1);
    port(0, false);
    EXPECT_EQ(MOVING, home());
    uct_varuna_home_name_leave(&other);
    EXPECT_EQ(1u, home());
}

/* A NIC that another interface does not have is no home */
UCS_TEST_F(test_varuna_home_move, another_interface_has_fewer_nics) {
    uct_varuna_home_member_t other;

    uct_varuna_home_name_join(&other, 0, 1, -1);
    port(0, false);
    EXPECT_EQ(0u, home());
    uct_varuna_home_name_leave(&other);
}


/* --- The return --- */

UCS_TEST_F(test_varuna_home_move, returns_when_the_first_nic_works_again) {
    port(0, false);
    ASSERT_EQ(1u, home());
    host->advance(10);
    EXPECT_EQ(1u, home()) << "it is still down";
    port(0, true);
    host->advance(RETURN);
    EXPECT_EQ(1u, home()) << "it may fail again";
    host->advance(RETURN + 1);
    EXPECT_EQ(0u, home());
    EXPECT_EQ(2u, part()->stats.moved);
}

UCS_TEST_F(test_varuna_home_move, never_returns_if_traffic_does_not) {
    host->iface()->link_table.return_delay = UCS_TIME_INFINITY;
    port(0, false);
    port(0, true);
    host->advance(100);
    EXPECT_EQ(1u, home());
}

/* A return would end working connections, so it waits until their requesters have left
 * the NIC, for any ring of the newest one. */
UCS_TEST_F(test_varuna_home_move, returns_when_no_connection_is_in_use) {
    uint64_t opening = open(alice).hdr.opening;

    for (uint32_t first = 1; first <= 2 * UCT_VARUNA_LOG_COUNT;
         first += UCT_VARUNA_LOG_COUNT + 1) {
        port(0, false);
        connect(alice, opening, first, 1);
        port(0, true);
        host->advance(100);
        EXPECT_EQ(1u, home());
        EXPECT_FALSE(qp(first)->in_err);

        /* Another connection takes over; only the newest counts, after some time */
        connect(alice, opening, first + 1, 0);
        host->advance(2 * PERIOD);
        EXPECT_EQ(1u, home()) << "the old one may still be used";
        host->advance(2);
        EXPECT_EQ(0u, home());
        EXPECT_TRUE(qp(first)->in_err) << "it could still execute";
        EXPECT_FALSE(qp(first + 1)->in_err);
    }
}

/* Its port may seem to be up */
UCS_TEST_F(test_varuna_home_move, never_returns_to_a_nic_that_is_gone) {
    start_detector();
    remove_nic(0);
    host->advance(LIFETIME + PERIOD);
    ASSERT_EQ(1u, home());
    port(0, true);
    host->advance(100);
    EXPECT_EQ(1u, home());
}

UCS_TEST_F(test_varuna_home_move, returns_when_the_connection_is_fenced) {
    uint64_t opening = open(alice).hdr.opening;

    port(0, false);
    connect(alice, opening, 1, 1);
    port(0, true);
    host->advance(100);
    ASSERT_EQ(1u, home());
    fence(alice, opening, 1);
    host->advance(2 * PERIOD);
    EXPECT_EQ(0u, home());
}

/* The next one fails, too */
UCS_TEST_F(test_varuna_home_move, first_nic_is_preferred) {
    port(0, false);
    port(0, true);
    ASSERT_EQ(1u, home());
    port(1, false);
    EXPECT_EQ(0u, home());
}


/* --- Accesses for requesters --- */

UCS_TEST_F(test_varuna_home_move, access_is_executed_once) {
    uint64_t opening = open(alice).hdr.opening;
    uct_varuna_ctl_home_rep_t rep;

    send_access(opening, 1);
    ASSERT_EQ(1u, under_way(0));
    EXPECT_EQ((uintptr_t)&part()->arena.marks[3], host->ctl_lane(0).posted[0].addr);
    send_access(opening, 1); /* The request is repeated */
    EXPECT_EQ(1u, under_way(0));
    host->sent();
    host->ctl_lane(0).complete(word(17));
    rep = answer();
    EXPECT_EQ(1u, rep.seq);
    EXPECT_EQ(17u, rep.value);
    EXPECT_EQ(0u, rep.home_nic);
    EXPECT_EQ(epoch(), rep.home_epoch);

    send_access(opening, 1); /* The answer was lost */
    EXPECT_EQ(17u, answer().value);
    EXPECT_EQ(0u, under_way(0));
    EXPECT_EQ(1u, part()->stats.executed);
}

UCS_TEST_F(test_varuna_home_move, access_for_another_opening) {
    uint64_t opening = open(alice).hdr.opening;

    host->sent();
    send_access(opening + 1, 1);
    EXPECT_EQ(0u, under_way(0));
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              (ucs_status_t)host->last_sent(UCT_VARUNA_CTL_REJECT)
                      .as<uct_varuna_ctl_reject_t>().status);
}

/* The target may hold the UID of an atomic that fails after its occupy: its slot is not used
 * again before the generation is over */
UCS_TEST_F(test_varuna_home_move, slot_of_an_atomic_that_fails) {
    static const uint32_t ALL = UCS_MASK(UCT_VARUNA_SLOT_BLOCK);
    uint64_t opening          = open(alice).hdr.opening;
    uint64_t *marks           = &part()->arena.marks[part()->own.first];
    uint64_t gen              = uct_varuna_mark_gen(marks[0]);
    uint64_t next             = uct_varuna_mark(uct_varuna_gen_next(gen),
                                                UCT_VARUNA_MARK_PENDING);

    share_word();
    send_cswap(opening, 1, UCS_BIT(0));
    EXPECT_EQ(ALL & ~1u, part()->own.free_map);
    host->ctl_lane(0).post_status = UCS_ERR_NO_RESOURCE; /* The confirm is posted later */
    host->ctl_lane(0).complete(word(5));
    host->ctl_lane(0).post_status = UCS_OK;
    host->advance(PERIOD);
    ASSERT_EQ(1u, under_way(0)) << "the confirm";
    host->sent();
    host->ctl_lane(0).fail(UCS_ERR_IO_ERROR);
    EXPECT_EQ(UCS_ERR_IO_ERROR, (ucs_status_t)answer().status);
    EXPECT_EQ(ALL & ~1u, part()->own.free_map);
    host->advance(10 * PERIOD);
    EXPECT_EQ(ALL & ~1u, part()->own.free_map) << "the word cannot be read now";

    uct_varuna_md_unshare(host->iface()->md, &target_mem);
    host->advance(2 * PERIOD);
    ASSERT_EQ(1u, under_way(0));
    EXPECT_EQ((uintptr_t)marks, host->ctl_lane(0).posted.back().addr);
    std::string before = word(marks[0]);
    marks[0]           = next;
    host->ctl_lane(0).complete(before);
    EXPECT_EQ(ALL, part()->own.free_map);
    EXPECT_EQ(uct_varuna_gen_next(gen), part()->own.gens[0]);
}

/* ... nor one whose occupy has no result. One that was not posted has left nothing */
UCS_TEST_F(test_varuna_home_move, slot_of_an_occupy_that_fails) {
    static const uint32_t ALL = UCS_MASK(UCT_VARUNA_SLOT_BLOCK);
    uint64_t opening          = open(alice).hdr.opening;

    share_word();
    host->sent();
    send_cswap(opening, 1, UCS_BIT(1));
    EXPECT_EQ(UCS_ERR_NO_DEVICE, (ucs_status_t)answer().status) << "its key is of another NIC";
    EXPECT_EQ(0u, host->ctl_lane(0).posted.size());
    EXPECT_EQ(ALL, part()->own.free_map);

    send_cswap(opening, 2, UCS_BIT(0));
    host->ctl_lane(0).complete(word(7));
    EXPECT_EQ(UCS_OK, (ucs_status_t)answer().status) << "it has lost";
    EXPECT_EQ(ALL, part()->own.free_map);

    send_cswap(opening, 3, UCS_BIT(0));
    host->ctl_lane(0).fail(UCS_ERR_IO_ERROR);
    EXPECT_EQ(UCS_ERR_IO_ERROR, (ucs_status_t)answer().status);
    EXPECT_EQ(ALL & ~1u, part()->own.free_map);
    uct_varuna_md_unshare(host->iface()->md, &target_mem);
}

UCS_TEST_F(test_varuna_home_move, access_waits_while_it_moves) {
    uint64_t opening = open(alice).hdr.opening;
    uct_varuna_home_member_t other;

    uct_varuna_home_name_join(&other, 0, 3, -1);
    port(0, false);
    send_access(opening, 1);
    host->advance(1);
    EXPECT_EQ(0u, under_way(0) + under_way(1));
    uct_varuna_home_name_leave(&other);
    host->advance(PERIOD);
    EXPECT_EQ(1u, under_way(1));
}


/* --- NICs without keys of the arena --- */

class test_varuna_home_move_short : public test_varuna_home_move {
protected:
    virtual void configure()
    {
        test_varuna_home_move::configure();
        slh.reset(new scoped_log_handler(hide_warns_logger)); /* The user is told */
        fake_lane::short_md = host->iface()->md->nics[0].md;
    }

    virtual void cleanup()
    {
        fake_lane::short_md = NULL;
        slh.reset();
        test_varuna_home_move::cleanup();
    }

    std::unique_ptr<scoped_log_handler> slh;
};

/* Neither at first nor later */
UCS_TEST_F(test_varuna_home_move_short, is_no_home) {
    EXPECT_EQ(1u, home());
    port(1, false);
    host->advance(1);
    EXPECT_EQ(1u, home());
}

/* --- Other modes --- */

class test_varuna_home_move_cpu : public test_varuna_home_move {
protected:
    virtual void configure()
    {
        test_varuna_home_move::configure();
        host->iface()->md->atomic_mode = UCT_VARUNA_ATOMIC_CPU;
    }
};

/* The CPU executes: the home stays, and a request for the home NIC is malformed */
UCS_TEST_F(test_varuna_home_move_cpu, stays) {
    scoped_log_handler slh(hide_warns_logger);
    uint64_t opening = open(alice).hdr.opening;
    uint32_t before  = epoch();

    EXPECT_EQ(0u, home());
    host->sent();
    send_access(opening, 1);
    port(0, false);
    host->advance(1);
    EXPECT_EQ(0u, home());
    EXPECT_EQ(before, epoch());
    EXPECT_EQ(0u, under_way(0) + under_way(1));
    EXPECT_EQ(1u, m_warnings.size());
}
