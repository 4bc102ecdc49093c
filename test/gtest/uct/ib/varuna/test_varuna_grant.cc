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
        memset((void*)&m_iface, 0, sizeof(m_iface));
        memset(m_eps, 0, sizeof(m_eps));
        memset(&m_ops, 0, sizeof(m_ops));
        m_ops.fc_ctrl = grant;
        m_iface.ops   = &m_ops.super;
        m_num_grants  = 0;
        m_is_held     = false;
        uct_varuna_mlx5_guard_rc(&m_iface.super.super);
    }

    /* UCX's function */
    static ucs_status_t grant(uct_ep_t *ep, unsigned op, uct_rc_pending_req_t *req)
    {
        ++m_num_grants;
        if (m_is_held) {
            m_is_granting = true;
            while (!m_is_stopping) {
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
        return ucs_derived_of(m_iface.ops, uct_rc_iface_ops_t)->fc_ctrl(
                ep, 0, NULL);
    }

    static std::atomic<unsigned> m_num_grants;
    static std::atomic<bool>     m_is_held, m_is_granting, m_is_stopping;
    uct_ib_iface_t               m_iface;
    uct_rc_iface_ops_t           m_ops;
    uct_ep_t                     m_eps[2];
};

std::atomic<unsigned> test_varuna_grant::m_num_grants;
std::atomic<bool> test_varuna_grant::m_is_held, test_varuna_grant::m_is_granting,
        test_varuna_grant::m_is_stopping;

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
    m_is_held     = true;
    m_is_granting = false;
    m_is_stopping = false;
    std::thread main_thread([&]() { EXPECT_EQ(UCS_OK, ask(&m_eps[0])); });
    while (!m_is_granting) {
        std::this_thread::yield();
    }
    m_is_stopping = true;
    ASSERT_UCS_OK(uct_varuna_mlx5_grants_stop(&m_eps[0]));
    EXPECT_FALSE(m_is_granting);
    main_thread.join();
    uct_varuna_mlx5_grants_forget(&m_eps[0]);
}
