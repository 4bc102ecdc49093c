/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What a switch of the link costs, counted: how much of the interface it writes,
 * and how many endpoints it looks at, with one endpoint and with 4,096. And instructions, if
 * contrib/bench/switch.sh runs test_varuna_switch_cost in a profiler.
 */
#include "test_varuna_recovery.h"

extern "C" {
#include <uct/ib/varuna/requester/varuna_requester.h>
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


/* A profiler collects in these functions, and writes what it has when the last one
 * returns */
#define SWITCH_PROFILED __attribute__((noinline, noclone, used))

class test_varuna_switch_cost;

extern "C" {
void switch_measured_first(test_varuna_switch_cost *test);
void switch_measured_others(test_varuna_switch_cost *test);
void switch_phase_ended(void);
}

class test_varuna_switch_cost : public test_varuna_recovery {
public:
    /* One endpoint posts, which has left its lane or has to. It comes back by progress */
    void post(uct_varuna_ep_t *posting)
    {
        ep = posting;
        if (put(1) == UCS_OK) {
            return; /* Taken, or it was already posted */
        }

        uct_varuna_requester_progress(host->requester(), ucs_get_time());
        uct_varuna_requester_progress(host->requester(), ucs_get_time());
        uct_varuna_requester_progress(host->requester(),
                                      ucs_get_time() + ucs_time_from_sec(LIFETIME * 1.1));
        if (state() == UCT_VARUNA_EP_FENCE) {
            answer_fence(ep->recovery.dead.epoch);
        }
        uct_varuna_requester_progress(host->requester(), ucs_get_time());
    }

    void first()
    {
        link_down(0);
        post(m_eps.front());
    }

    void others()
    {
        for (size_t i = 1; i < m_eps.size(); ++i) {
            post(m_eps[i]);
        }
    }

protected:
    virtual void init()
    {
        test_varuna_recovery::init();
        m_own = ep;
        m_eps.push_back(ep);
    }

    virtual void cleanup()
    {
        for (uct_varuna_ep_t *other : m_eps) {
            other->remote.logs_addr = 0;
            other->ask.retry.tries  = 0;
            if (other != m_own) {
                uct_varuna_ep_t_delete(&other->super.super);
            }
        }
        ep = m_own;
        test_varuna_recovery::cleanup();
    }

    void run(size_t num_eps)
    {
        while (m_eps.size() < num_eps) {
            m_eps.push_back(create());
        }

        for (uct_varuna_ep_t *opening : m_eps) {
            ep = opening;
            open();
        }

        while (!ucs_list_is_empty(&host->requester()->work)) {
            uct_varuna_requester_progress(host->requester(), ucs_get_time());
        }

        switch_measured_first(this);
        switch_phase_ended();
        EXPECT_EQ(1u, count_switched());
        switch_measured_others(this);
        switch_phase_ended();
        EXPECT_EQ(num_eps, count_switched());
    }

    size_t count_switched() const
    {
        size_t count = 0;

        for (const uct_varuna_ep_t *other : m_eps) {
            count += (other->hot.state == UCT_VARUNA_EP_ACTIVE) &&
                     (other->lane.link == 1);
        }
        return count;
    }

    std::vector<uct_varuna_ep_t*> m_eps;
    uct_varuna_ep_t               *m_own;
};

void SWITCH_PROFILED switch_measured_first(test_varuna_switch_cost *test)
{
    test->first();
}

void SWITCH_PROFILED switch_measured_others(test_varuna_switch_cost *test)
{
    test->others();
}

void SWITCH_PROFILED switch_phase_ended(void)
{
    __asm__ volatile("" ::: "memory");
}

UCS_TEST_F(test_varuna_switch_cost, endpoints_1) {
    run(1);
}

UCS_TEST_F(test_varuna_switch_cost, endpoints_4096) {
    run(4096);
}
