/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Requests for atomics by the CPU, from the message to the answer: a repeated one gets the
 * kept result, and what is not of this opening, or not in the window, changes nothing.
 */
#include "fake_target.h"

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/responder/amo/varuna_home_nic.h>
#include <uct/ib/varuna/responder/cpu/varuna_cpu.h>
}

#include <string>
#include <vector>

class test_varuna_atomic_req : public fake_target_test {
protected:
    static constexpr unsigned WINDOW = UCT_VARUNA_AMO_WINDOW;
    static constexpr double LIFETIME = 10;

    virtual void init()
    {
        fake_target_test::init();
        pthread_mutex_init(&md()->lock, NULL);
        m_word         = 0;
        m_mem.address  = &m_word;
        m_mem.length   = sizeof(m_word);
        m_mem.is_atomic = 1;
        uct_varuna_md_share(md(), &m_mem, 0, m_mem.keys, 0);
        ASSERT_NE(0u, m_mem.token);
        m_opening = open(alice).hdr.opening;
    }

    virtual void cleanup()
    {
        uct_varuna_md_unshare(md(), &m_mem);
        fake_target_test::cleanup();
    }

    static uct_varuna_amo_kept_t *kept_of(uct_varuna_target_t *target)
    {
        return ((uct_varuna_cpu_client_t*)target->amo_part)->kept;
    }

    uct_varuna_md_t *md()
    {
        return host->iface()->md;
    }

    virtual void configure()
    {
        host->iface()->config.packet_lifetime = ucs_time_from_sec(LIFETIME);
        md()->atomic_mode                     = UCT_VARUNA_ATOMIC_CPU;
    }

    /* Fetch and add of 1, numbered from @a first */
    void request(uint64_t opening, uint64_t first, unsigned count, uint64_t acked = 1,
                 unsigned link = 0)
    {
        uct_varuna_ctl_atomic_req_t req = {};
        uct_varuna_ctl_atomic_op_t op   = {};

        req.first = first;
        req.acked = acked;
        req.count = count;
        op.addr   = (uintptr_t)&m_word;
        op.token  = m_mem.token;
        op.value  = 1;
        op.op     = UCT_ATOMIC_OP_ADD;
        op.width  = 8;

        std::string body((const char*)&req, sizeof(req));
        for (unsigned i = 0; i < count; ++i) {
            body.append((const char*)&op, sizeof(op));
        }
        host->sent();
        host->receive(alice, link,
                      host->header(alice, UCT_VARUNA_CTL_ATOMIC_REQ, VQP, 1, opening),
                      body);
    }

    void request_elsewhere(uint64_t first, unsigned count = 1)
    {
        request(m_opening, first, count, 1, 1);
    }

    void port(bool is_up)
    {
        uct_varuna_ctl_lock(host->ctl());
        uct_varuna_ports_event(host->ctl(), 0,
                                  is_up ? UCT_VARUNA_PORT_UP : UCT_VARUNA_PORT_DOWN);
        uct_varuna_ctl_unlock(host->ctl());
    }

    /* A request is on its way to ourselves over the home NIC: nothing is executed yet */
    fake_host::message detour()
    {
        fake_host::message msg = host->last_sent(UCT_VARUNA_CTL_ATOMIC_REQ);

        EXPECT_EQ(0u, msg.link);
        EXPECT_EQ(fake_host::UUID, msg.hdr.dest);
        return msg;
    }

    /* To the home NIC */
    uct_varuna_ctl_ep_t *loopback()
    {
        return ((uct_varuna_home_nic_t*)host->responder()->amo_part)->loopbacks[0].ep;
    }

    /* What the answer contains */
    std::vector<uint64_t> results()
    {
        fake_host::message msg = host->last_sent(UCT_VARUNA_CTL_ATOMIC_REP);
        std::vector<uint64_t> values;

        for (unsigned i = 0; i < msg.as<uct_varuna_ctl_atomic_rep_t>().count; ++i) {
            const uct_varuna_ctl_atomic_result_t *result =
                    (const uct_varuna_ctl_atomic_result_t*)
                    (msg.body.data() + sizeof(uct_varuna_ctl_atomic_rep_t)) + i;

            EXPECT_EQ(UCS_OK, (ucs_status_t)result->status);
            values.push_back(result->value);
        }
        return values;
    }

    void expect_none()
    {
        EXPECT_EQ(0u, count(host->sent(), UCT_VARUNA_CTL_ATOMIC_REP));
    }

    uint64_t         m_word __attribute__((aligned(8)));
    uct_varuna_mem_t m_mem = {};
    uint64_t         m_opening;
};

UCS_TEST_F(test_varuna_atomic_req, repeated_gets_the_kept_result) {
    request(m_opening, 1, 3);
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2}), results());
    request(m_opening, 1, 3);
    EXPECT_EQ((std::vector<uint64_t>{0, 1, 2}), results());
    request(m_opening, 2, 3);
    EXPECT_EQ((std::vector<uint64_t>{1, 2, 3}), results());
    EXPECT_EQ(4u, m_word);
}

/* What came first does not wait for what comes late, and is not kept until then */
UCS_TEST_F(test_varuna_atomic_req, waits_for_those_before) {
    request(m_opening, 2, 1);
    expect_none();
    EXPECT_EQ(0u, m_word);
    request(m_opening, 1, 2);
    EXPECT_EQ((std::vector<uint64_t>{0, 1}), results());
}

/* A requester that acknowledges nothing gets no more than one window */
UCS_TEST_F(test_varuna_atomic_req, results_are_bounded) {
    scoped_log_handler slh(hide_warns_logger);

    request(m_opening, 1, WINDOW);
    EXPECT_EQ(WINDOW, results().size());
    request(m_opening, WINDOW + 1, 1);
    expect_none();
    EXPECT_EQ(WINDOW, m_word);

    request(m_opening, WINDOW + 1, 1, 2);
    EXPECT_EQ((std::vector<uint64_t>{WINDOW}), results());
    /* Its result was acknowledged, and is gone */
    request(m_opening, 1, 1, 2);
    expect_none();
    EXPECT_EQ(WINDOW + 1, m_word);
}

/* The endpoint was closed, and another one uses its id: an old message is refused */
UCS_TEST_F(test_varuna_atomic_req, former_opening_is_refused) {
    uint64_t opening = open(alice, VQP, 2).hdr.opening;

    ASSERT_NE(m_opening, opening);
    request(m_opening, 1, 1);
    EXPECT_EQ(UCS_ERR_NO_ELEM,
              (ucs_status_t)host->last_sent(UCT_VARUNA_CTL_REJECT)
                      .as<uct_varuna_ctl_reject_t>().status);
    EXPECT_EQ(0u, m_word);
    request(opening, 1, 1);
    EXPECT_EQ((std::vector<uint64_t>{0}), results());
    EXPECT_EQ(1u, m_word);
}

/* The target of a dead requester is kept for a while, as late writes may come to its logs,
 * but its results are not */
UCS_TEST_F(test_varuna_atomic_req, results_of_the_dead_expire) {
    uct_varuna_target_t *dead = target(alice);
    uct_varuna_peer_t *peer   = dead->peer;

    connect(alice, m_opening, 1);
    request(m_opening, 1, 1);
    EXPECT_TRUE(kept_of(dead) != NULL);
    for (unsigned i = 0; (i < 20) && (target(alice) != NULL); ++i) {
        host->advance(0.1);
        for (unsigned link = 0; (link < NUM_LINKS) && (target(alice) != NULL); ++link) {
            if (peer->ctl_eps[link] != NULL) {
                host->fail_ctl(peer, link);
            }
        }
    }
    ASSERT_TRUE(target(alice) == NULL);
    host->dispatch();
    ASSERT_EQ(1u, host->responder()->stats.orphans);
    EXPECT_TRUE(kept_of(dead) == NULL);

    request(m_opening, 1, 1);
    expect_none();
    EXPECT_EQ(1u, m_word);
}

/* Writes that another NIC has accepted are in memory when a message comes over it */
UCS_TEST_F(test_varuna_atomic_req, detour_over_the_home_nic) {
    fake_host::message msg;

    request_elsewhere(1, 2);
    msg = detour();
    EXPECT_EQ(0u, m_word);
    host->receive(alice, 0, msg.hdr, msg.body);
    msg = host->last_sent(UCT_VARUNA_CTL_ATOMIC_REP);
    EXPECT_EQ(1u, msg.link) << "the requester may not be reached over the home NIC";
    EXPECT_EQ(2u, m_word);

    /* What is executed needs none */
    request_elsewhere(1, 2);
    EXPECT_EQ((std::vector<uint64_t>{0, 1}), results());
    EXPECT_EQ(2u, m_word);
}

/* A loopback that has failed is replaced, though requests come while interfaces are polled */
UCS_TEST_F(test_varuna_atomic_req, detour_again) {
    request_elsewhere(1);
    detour();
    uct_varuna_ctl_lock(host->ctl());
    uct_varuna_ctl_err_handler(&host->ctl()->links[0], loopback()->inner,
                               UCS_ERR_ENDPOINT_TIMEOUT);
    uct_varuna_ctl_unlock(host->ctl());
    for (unsigned i = 0; i < 2; ++i) {
        host->ctl()->progressing = 1;
        request_elsewhere(1);
        host->ctl()->progressing = 0;
        if (i == 0) {
            EXPECT_EQ(0u, count(host->sent(), UCT_VARUNA_CTL_ATOMIC_REQ));
            uct_varuna_ctl_lock(host->ctl());
            uct_varuna_bus_raise(&host->ctl()->bus, UCT_VARUNA_BUS_PROGRESSED);
            uct_varuna_ctl_unlock(host->ctl());
        }
    }
    detour();
}

/* The loopback does not keep a link of a NIC that goes from being closed */
UCS_TEST_F(test_varuna_atomic_req, detour_is_over_when_the_link_closes) {
    request_elsewhere(1);
    detour();
    ASSERT_TRUE(loopback() != NULL);
    port(false);
    uct_varuna_ctl_lock(host->ctl());
    EXPECT_TRUE(uct_varuna_ctl_link_is_closable(host->ctl(), 0));
    uct_varuna_ctl_unlock(host->ctl());
    EXPECT_TRUE(loopback() == NULL);
}

/* No message comes back over the home NIC: time takes its place, for each new request */
UCS_TEST_F(test_varuna_atomic_req, detour_does_not_work) {
    request_elsewhere(1);
    detour();
    host->advance(LIFETIME * 0.9);
    request_elsewhere(1);
    detour();
    request_elsewhere(1, 2);
    detour();
    host->advance(LIFETIME * 0.9);
    request_elsewhere(1, 2);
    detour();
    request_elsewhere(1);
    detour();
    EXPECT_EQ(0u, m_word);
    host->advance(LIFETIME * 0.2);
    request_elsewhere(1, 2);
    EXPECT_EQ((std::vector<uint64_t>{0, 1}), results());
}

/* A port that is down accepts nothing more: 50 ms, and then nothing until it is back */
UCS_TEST_F(test_varuna_atomic_req, home_port_is_down) {
    port(false);
    request_elsewhere(1);
    host->advance(0.045);
    request_elsewhere(1);
    expect_none();
    EXPECT_EQ(0u, m_word);
    host->advance(0.01);
    request_elsewhere(2);
    request_elsewhere(1, 2);
    EXPECT_EQ((std::vector<uint64_t>{0, 1}), results());
    request_elsewhere(3);
    EXPECT_EQ((std::vector<uint64_t>{2}), results());
    port(true);
    request_elsewhere(4);
    detour();
    port(false);
    request_elsewhere(4);
    expect_none();
    EXPECT_EQ(3u, m_word);
}
