/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Credits are not granted on a queue pair that is moved to RESET: before, after, and while that
 * is decided.
 */
#include <common/test.h>

#include <atomic>
#include <thread>

extern "C" {
#include <uct/ib/rc/base/rc_iface.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
}

class test_varuna_grant : public ucs::test {
protected:
    virtual void init()
    {
        ucs::test::init();
        memset((void*)m_ifaces, 0, sizeof(m_ifaces));
        memset(m_eps, 0, sizeof(m_eps));
        memset(&m_ops, 0, sizeof(m_ops));
        m_ops.fc_ctrl    = grant;
        m_ops.cleanup_rx = cleanup_rx;
        m_num_grants     = 0;
        m_num_cleanups   = 0;
        m_held           = NULL;
        m_is_granting    = false;
        m_is_released    = false;
        for (auto &iface : m_ifaces) {
            iface.super.ops = &m_ops.super;
            ASSERT_UCS_OK(uct_varuna_mlx5_guard_rc(&iface.super.super.super));
        }
        for (auto &ep : m_eps) {
            ep.iface = &m_ifaces[0].super.super.super;
        }
    }

    /* As UCX destroys an interface */
    virtual void cleanup()
    {
        for (auto &iface : m_ifaces) {
            ops(iface)->cleanup_rx(&iface);
            EXPECT_EQ(&m_ops.super, iface.super.ops) << "for the rest, UCX's own";
        }
        EXPECT_EQ(2u, m_num_cleanups);
        ucs::test::cleanup();
    }

    static uct_rc_iface_ops_t *ops(uct_rc_iface_t &iface)
    {
        return ucs_derived_of(iface.super.ops, uct_rc_iface_ops_t);
    }

    /* UCX's functions */
    static void cleanup_rx(uct_rc_iface_t *iface)
    {
        ++m_num_cleanups;
    }

    static ucs_status_t grant(uct_ep_t *ep, unsigned op, uct_rc_pending_req_t *req)
    {
        ++m_num_grants;
        if (ep == m_held) {
            m_is_granting = true;
            while (!m_is_released) {
                std::this_thread::yield();
            }
            usleep(10000); /* In which a transition that does not wait would begin */
            m_is_granting = false;
        }
        return UCS_OK;
    }

    /* As UCX asks for it when it has polled a message */
    ucs_status_t ask(uct_ep_h ep)
    {
        return ops(*ucs_derived_of(ep->iface, uct_rc_iface_t))->fc_ctrl(ep, 0, NULL);
    }

    /* The main thread, which is posting a grant of the first endpoint */
    std::thread hold()
    {
        m_held = &m_eps[0];
        std::thread main_thread([this]() { EXPECT_EQ(UCS_OK, ask(&m_eps[0])); });
        while (!m_is_granting) {
            std::this_thread::yield();
        }
        return main_thread;
    }

    static std::atomic<unsigned> m_num_grants, m_num_cleanups;
    static std::atomic<bool>     m_is_granting, m_is_released;
    static uct_ep_h              m_held;
    uct_rc_iface_t               m_ifaces[2];
    uct_rc_iface_ops_t           m_ops;
    uct_ep_t                     m_eps[2];
};

std::atomic<unsigned> test_varuna_grant::m_num_grants, test_varuna_grant::m_num_cleanups;
std::atomic<bool> test_varuna_grant::m_is_granting, test_varuna_grant::m_is_released;
uct_ep_h test_varuna_grant::m_held;

UCS_TEST_F(test_varuna_grant, none_after_it_is_stopped) {
    EXPECT_EQ(UCS_OK, ask(&m_eps[0]));
    ASSERT_UCS_OK(uct_varuna_mlx5_grants_stop(&m_eps[0]));
    EXPECT_EQ(UCS_OK, ask(&m_eps[0])) << "as if it had been sent";
    EXPECT_EQ(1u, m_num_grants);
    EXPECT_EQ(UCS_OK, ask(&m_eps[1]));
    EXPECT_EQ(2u, m_num_grants) << "the others do";

    /* Another endpoint may have the address of a destroyed one */
    uct_varuna_mlx5_grants_forget(&m_eps[0]);
    EXPECT_EQ(UCS_OK, ask(&m_eps[0]));
    EXPECT_EQ(3u, m_num_grants);
}

/* The thread of the NIC waits for the main thread, which is posting */
UCS_TEST_F(test_varuna_grant, none_is_under_way_when_it_is_stopped) {
    std::thread main_thread = hold();

    m_is_released = true;
    ASSERT_UCS_OK(uct_varuna_mlx5_grants_stop(&m_eps[0]));
    EXPECT_FALSE(m_is_granting);
    main_thread.join();
    uct_varuna_mlx5_grants_forget(&m_eps[0]);
}

/* Threads with workers of their own do not meet: this ends while a grant is being posted */
UCS_TEST_F(test_varuna_grant, interfaces_do_not_wait_for_each_other) {
    std::thread main_thread = hold();

    m_eps[1].iface = &m_ifaces[1].super.super.super;
    EXPECT_EQ(UCS_OK, ask(&m_eps[1]));
    EXPECT_EQ(2u, m_num_grants);
    ASSERT_UCS_OK(uct_varuna_mlx5_grants_stop(&m_eps[1]));
    uct_varuna_mlx5_grants_forget(&m_eps[1]);
    EXPECT_TRUE(m_is_granting);
    m_is_released = true;
    main_thread.join();
}
