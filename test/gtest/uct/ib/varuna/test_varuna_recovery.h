/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A vQP on fake lanes, whose responder is the test.
 */
#ifndef TEST_VARUNA_RECOVERY_H_
#define TEST_VARUNA_RECOVERY_H_

#include "fake_host.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_oplog.h>
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/requester/varuna_completion.h>
#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/requester/varuna_lane.h>
#include <uct/ib/varuna/requester/varuna_ring.h>
#include <uct/ib/varuna/requester/varuna_sm.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>
}

#include <cstring>

class test_varuna_recovery : public fake_host_test {
protected:
    typedef std::vector<std::string> names;

    static constexpr unsigned NUM_LINKS = 2;
    static constexpr uint64_t OPENING   = 77;
    static constexpr uint64_t LOGS      = 0x10000;
    static constexpr uint64_t TARGET    = 0x20000;

    /* Seconds, which pass by step() only: so long that the time which the test itself
     * takes does not matter */
    static constexpr double LIFETIME      = 100;
    static constexpr double CTL_TIMEOUT   = 50;
    static constexpr double DRAIN_TIMEOUT = 500;
    static constexpr double GIVE_UP       = 10000;

    virtual void init()
    {
        static ucs_mpool_ops_t mpool_ops = {ucs_mpool_chunk_malloc,
                                            ucs_mpool_chunk_free};
        uct_varuna_requester_t *requester;

        ucs::test::init();
        host.reset(new fake_host(num_links()));
        requester         = host->requester();
        requester->amo    = &amo_ops();
        ucs_ptr_array_init(&requester->eps, "eps");
        pthread_mutex_init(&requester->eps_lock, NULL);
        kh_init_inplace(uct_varuna_inner_eps, &requester->inner_eps);
        ASSERT_UCS_OK(uct_varuna_compat_mpool_init(&requester->pools.reqs,
                                                   sizeof(uct_varuna_req_t), 64,
                                                   &mpool_ops, "req"));
        ASSERT_UCS_OK(uct_varuna_compat_mpool_init(&requester->pools.slabs,
                                                   UCT_VARUNA_SLAB_SIZE, 4, &mpool_ops,
                                                   "slab"));
        host->iface()->attr.cap.put.max_short    = 64;
        host->iface()->attr.cap.am.max_short     = 64;
        host->iface()->attr.cap.get.max_bcopy    = 64;
        host->iface()->config.ambiguous          = UCT_VARUNA_AMBIGUOUS_REPEAT;
        host->iface()->config.drain_timeout      = ucs_time_from_sec(DRAIN_TIMEOUT);
        host->iface()->config.packet_lifetime    = ucs_time_from_sec(LIFETIME);
        host->iface()->config.ctl_timeout        = ucs_time_from_sec(CTL_TIMEOUT);
        host->iface()->config.give_up            = ucs_time_from_sec(GIVE_UP);
        uct_varuna_sm_init(requester);

        ep = create();
        memset(&rkey, 0, sizeof(rkey));
        rkey.num_keys = num_links();
        rkey.lacks    = UINT8_MAX;
        memset(ring, 0, sizeof(ring));
        m_comp.func   = [](uct_completion_t*) {};
        m_comp.status = UCS_OK;
        m_comp.count  = 1;
    }

    virtual unsigned num_links() const
    {
        return NUM_LINKS;
    }

    uct_varuna_ep_t *create()
    {
        /* An address of an interface has no room for more */
        std::string addr       = host->address(name, UCS_MASK(NUM_LINKS));
        uct_ep_params_t params = {};
        uct_ep_h tl_ep         = NULL;

        addr.reserve(addr.size() + 64);
        params.field_mask = UCT_EP_PARAM_FIELD_IFACE | UCT_EP_PARAM_FIELD_DEV_ADDR |
                            UCT_EP_PARAM_FIELD_IFACE_ADDR;
        params.iface      = &host->iface()->super.super;
        params.dev_addr   = (const uct_device_addr_t*)addr.data();
        params.iface_addr = (const uct_iface_addr_t*)addr.data();
        EXPECT_UCS_OK(uct_varuna_ep_t_new(&params, &tl_ep));
        return ucs_derived_of(tl_ep, uct_varuna_ep_t);
    }

    virtual void cleanup()
    {
        uct_varuna_requester_t *requester = host->requester();

        ep->remote.logs_addr = 0;
        ep->ask.retry.tries  = 0; /* Nothing to close */
        uct_varuna_ep_t_delete(&ep->super.super);
        EXPECT_EQ(0u, requester->outstanding);
        ucs_mpool_cleanup(&requester->pools.reqs, 1);
        ucs_mpool_cleanup(&requester->pools.slabs, 1);
        kh_destroy_inplace(uct_varuna_inner_eps, &requester->inner_eps);
        pthread_mutex_destroy(&requester->eps_lock);
        ucs_ptr_array_cleanup(&requester->eps, 0);
        fake_host_test::cleanup();
    }

    static bool &is_short()
    {
        static bool value;
        return value;
    }

    /* From now on the memory of requests is allocated slab by slab, and not while is_short() */
    void make_slabs_scarce()
    {
        static ucs_mpool_ops_t ops = {
            [](ucs_mpool_t *mp, size_t *size_p, void **chunk_p) {
                return is_short() ? UCS_ERR_NO_MEMORY :
                       ucs_mpool_chunk_malloc(mp, size_p, chunk_p);
            },
            ucs_mpool_chunk_free
        };
        ucs_mpool_t *slabs = &host->requester()->pools.slabs;

        is_short() = false;
        ucs_mpool_cleanup(slabs, 1);
        ASSERT_UCS_OK(uct_varuna_compat_mpool_init(slabs, UCT_VARUNA_SLAB_SIZE, 1, &ops, "slab"));
    }

    static const uct_varuna_amo_ops_t &amo_ops()
    {
        static uct_varuna_amo_ops_t ops;

        ops.close      = [](uct_varuna_ep_t*) {};
        ops.learn_home = [](uct_varuna_ep_t*, uint8_t, uint32_t) {};
        ops.progress   = [](uct_varuna_ep_t*) { return 0; };
        ops.fail_all   = [](uct_varuna_ep_t*, ucs_status_t) {};
        return ops;
    }

    fake_lane &lane(unsigned link, uct_varuna_lane_kind_t kind = UCT_VARUNA_LANE_DC)
    {
        return host->lane(link, kind);
    }

    uct_varuna_ep_state_t state() const
    {
        return (uct_varuna_ep_state_t)ep->hot.state;
    }

    /* One step after this time */
    int step(double seconds = 0)
    {
        host->requester()->scan.clock += ucs_time_from_sec(seconds);
        return uct_varuna_sm_step(ep, ucs_get_time() + ucs_time_from_sec(seconds));
    }

    /* The responder's fence, if there was one, was so long ago: answers are judged by the
     * real time */
    void age_fence(double seconds)
    {
        if (ep->recovery.fenced_at != 0) {
            ep->recovery.fenced_at -= ucs_time_from_sec(seconds);
        }
    }

    /* OPEN_REP has arrived */
    void opened()
    {
        ep->remote.logs_addr       = LOGS;
        ep->remote.opening         = OPENING;
        ep->remote.log_bundle.rkey = (uct_rkey_t)&rkey;
    }

    /* ... and there is a lane */
    void open()
    {
        opened();
        uct_varuna_ep_open_lane(ep, ucs_get_time());
        step();
        ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
        host->sent();
    }

    ucs_status_t put(uint64_t value)
    {
        return uct_varuna_ep_put_short(&ep->super.super, &value, sizeof(value),
                                       TARGET, (uct_rkey_t)&rkey);
    }

    /* 1, 2, ... */
    void put_all(unsigned count)
    {
        for (unsigned value = 1; value <= count; ++value) {
            ASSERT_UCS_OK(put(value));
        }
    }

    ucs_status_t get(uct_completion_t *comp = NULL)
    {
        return uct_varuna_ep_get_bcopy(&ep->super.super,
                                       [](void*, const void*, size_t) {}, NULL, 8, TARGET,
                                       (uct_rkey_t)&rkey, comp);
    }

    ucs_status_t flush_remote(uct_completion_t *comp = NULL)
    {
        return uct_varuna_ep_flush(&ep->super.super, UCT_VARUNA_COMPAT_FLUSH_REMOTE, comp);
    }

    /* What was posted silently */
    void acknowledge()
    {
        uct_varuna_ep_signal(ep);
        step();
        ASSERT_EQ(0u, ep->hot.num_reqs);
    }

    /* The completion waits for this lane */
    void expect_completed_by(fake_lane &lane)
    {
        EXPECT_EQ(1, m_comp.count);
        lane.complete();
        EXPECT_EQ(0, m_comp.count);
    }

    void expect_failed(ucs_status_t status)
    {
        EXPECT_EQ(UCT_VARUNA_EP_FAILED, state());
        EXPECT_EQ(status, ep->sm.fail_status);
    }

    /* The puts of data that were posted on a lane, without the log entries */
    static std::vector<uint64_t> puts(fake_lane &lane)
    {
        std::vector<uint64_t> values;
        uint64_t value;

        for (const fake_lane::post &post : lane.posted) {
            if ((post.op == "put") && (post.addr == TARGET)) {
                memcpy(&value, post.data.data(), sizeof(value));
                values.push_back(value);
            }
        }
        return values;
    }

    /* The responder executes the log entries among the first posts of a lane */
    void execute(const fake_lane &lane, size_t num_posts)
    {
        for (size_t i = 0; i < num_posts; ++i) {
            const fake_lane::post &post = lane.posted[i];
            if ((post.op == "put") && (post.addr != TARGET)) {
                memcpy(&ring[((post.addr - LOGS) / sizeof(uint64_t)) %
                             UCT_VARUNA_LOG_SIZE],
                       post.data.data(), sizeof(uint64_t));
            }
        }
    }

    void link_down(unsigned link)
    {
        uct_varuna_link_down(host->iface(), link, UCT_VARUNA_LINK_CAUSE_PORT, "a test");
    }

    void drain(unsigned link = 0)
    {
        link_down(link);
        step();
        ASSERT_EQ(UCT_VARUNA_EP_DRAIN, state());
    }

    /* DRAIN and the packet lifetime are over: FENCE_REQ was sent */
    void fail_link(unsigned link = 0)
    {
        drain(link);
        step();
        ASSERT_EQ(UCT_VARUNA_EP_FENCE, state());
        step(LIFETIME * 1.1);
    }

    /* The lane fails with so many puts */
    void put_and_fail(unsigned count = 1)
    {
        open();
        put_all(count);
        fail_link();
    }

    /* NICs whose DC targets keep the order, or do not, in FENCE_REP */
    uint8_t dc_ordered = 0, dc_unordered = 0;

    /* Receive FENCE_REP of an incarnation */
    void answer_fence(uint32_t epoch, uint32_t flags = 0, uint32_t epsn = 0,
                      uint32_t round = 1)
    {
        std::string body(sizeof(uct_varuna_ctl_fence_rep_t), 0);
        uct_varuna_ctl_fence_rep_t *rep = (uct_varuna_ctl_fence_rep_t*)&body[0];
        uct_varuna_ctl_hdr_t hdr        = {};

        rep->flags    = flags;
        rep->epsn     = epsn;
        rep->log_size = UCT_VARUNA_LOG_SIZE;
        rep->round    = round;
        rep->dc_ordered   = dc_ordered;
        rep->dc_unordered = dc_unordered;
        body.append((const char*)ring, sizeof(ring));
        hdr.epoch     = epoch;
        uct_varuna_ep_handle_fence_rep(ep, &hdr,
                                       (const uct_varuna_ctl_fence_rep_t*)&body[0]);
    }

    /* The put in the gap is compared with its target, which contains a value */
    void compare(fake_lane &lane, uint64_t value)
    {
        step();
        ASSERT_EQ(UCT_VARUNA_EP_REPEAT, state());
        ASSERT_EQ("get", lane.posted.back().op);
        ASSERT_EQ(TARGET, lane.posted.back().addr);
        lane.complete(std::string((const char*)&value, sizeof(value)));
        step();
    }

    /* The peer has connected the next lane */
    void answer_connect()
    {
        std::string body(sizeof(uct_varuna_ctl_connect_t), 0);
        uct_varuna_ctl_connect_t *rep = (uct_varuna_ctl_connect_t*)&body[0];
        uct_varuna_ctl_hdr_t hdr      = {};
        unsigned link                 = ep->next.lane.link;

        rep->link       = link;
        rep->device_len = fake_lane::DEVICE_LEN;
        rep->ep_len     = fake_lane::EP_LEN;
        body += fake_lane::device_addr(fake_lane::lid(name.host, link)) +
                std::string(fake_lane::EP_LEN + 64, 'e');
        hdr.epoch       = ep->next.lane.epoch;
        uct_varuna_ep_handle_connect_rep(ep, &hdr,
                                         (const uct_varuna_ctl_connect_t*)&body[0]);
        ASSERT_TRUE(ep->next.ready || ep->next.proving);
    }

    /* RC is connected on a link */
    void connect_rc(unsigned link)
    {
        uct_varuna_ep_connect_rc(ep, link, ucs_get_time());
        ASSERT_TRUE(ep->next.lane.ep != NULL);
        answer_connect();
    }

    /* An active RC lane on link 0 whose PSNs are known */
    void open_rc(uint32_t psn)
    {
        fake_lane &rc = lane(0, UCT_VARUNA_LANE_RC);

        open();
        rc.sq_mtu = 1024;
        rc.sq_psn = psn;
        connect_rc(0);
        step(); /* The first write; flushed at once */
        step(); /* The last read on DC */
        lane(0).complete();
        step();
        ASSERT_EQ(UCT_VARUNA_EP_ACTIVE, state());
        ASSERT_EQ(UCT_VARUNA_LANE_RC, ep->lane.kind);
        ASSERT_EQ(psn + 1, ep->lane.acked_psn);
        host->sent();
    }

    const fake_peer            name = {0x2222, 1, 0};
    uct_varuna_ep_t            *ep;
    uct_varuna_rkey_t          rkey;
    uct_completion_t           m_comp;
    uint64_t                   ring[UCT_VARUNA_LOG_SIZE];
};

#endif
