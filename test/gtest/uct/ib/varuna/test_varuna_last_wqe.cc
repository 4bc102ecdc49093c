/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The event LAST_WQE_REACHED, which may come twice: UCX's own code for a device's events, with a
 * device that has nothing else.
 */
#include <common/test.h>

#include <dlfcn.h>
#include <link.h>

extern "C" {
#include <ucs/datastruct/callbackq.h>
#include <uct/ib/base/ib_device.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.h>
}

/* UCX's function of that name */
#define UCX(_func) reinterpret_cast<decltype(&_func)>(symbol(#_func))

class test_varuna_last_wqe : public ucs::test {
protected:
    static const uint32_t QP_NUM = 0x123;

    virtual void init()
    {
        uct_component_h *components;
        unsigned num_components;
        std::string path;

        ucs::test::init();
        /* UCX opens its library for itself alone */
        ASSERT_UCS_OK(uct_query_components(&components, &num_components));
        uct_release_component_list(components);
        dl_iterate_phdr(find_library, &path);
        m_lib = dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
        ASSERT_TRUE(m_lib != NULL) << path;

        memset((void*)&m_dev, 0, sizeof(m_dev));
        ASSERT_UCS_OK(ucs_spinlock_init(&m_dev.async_event_lock, 0));
        ASSERT_UCS_OK(ucs_callbackq_init(&m_queue));
        m_num_calls = 0;
        m_wait.cb   = count;
        m_wait.cbq  = &m_queue;
        m_event     = {&m_dev, QP_NUM, -1};
        UCX(uct_ib_device_async_event_register)(&m_dev, IBV_EVENT_QP_LAST_WQE_REACHED, QP_NUM);
    }

    virtual void cleanup()
    {
        UCX(uct_ib_device_async_event_unregister)(&m_dev, IBV_EVENT_QP_LAST_WQE_REACHED, QP_NUM);
        ucs_callbackq_cleanup(&m_queue);
        dlclose(m_lib);
        ucs::test::cleanup();
    }

    static int find_library(struct dl_phdr_info *info, size_t size, void *arg)
    {
        if (strstr(info->dlpi_name, "/libuct_ib.so") == NULL) {
            return 0;
        }

        *reinterpret_cast<std::string*>(arg) = info->dlpi_name;
        return 1;
    }

    static unsigned count(void *arg)
    {
        ++m_num_calls;
        return 1;
    }

    /* The NIC raises the event */
    void raise()
    {
        uct_ib_async_event_t event = {};

        event.event_type = IBV_EVENT_QP_LAST_WQE_REACHED;
        event.qp_num     = QP_NUM;
        UCX(uct_ib_handle_async_event)(&m_dev, &event);
    }

    /* UCX destroys an endpoint, and its queue pair when the event has come */
    void destroy()
    {
        EXPECT_EQ(UCS_OK, UCX(uct_ib_device_async_event_wait)(
                                  &m_dev, IBV_EVENT_QP_LAST_WQE_REACHED, QP_NUM, &m_wait));
    }

    unsigned progress()
    {
        m_num_calls = 0;
        ucs_callbackq_dispatch(&m_queue);
        ucs_callbackq_dispatch(&m_queue);
        return m_num_calls;
    }

    void *symbol(const char *name) const
    {
        void *func = dlsym(m_lib, name);

        EXPECT_TRUE(func != NULL) << name;
        return func;
    }

    static unsigned           m_num_calls;
    void                      *m_lib;
    uct_ib_device_t           m_dev;
    ucs_callbackq_t           m_queue;
    uct_ib_async_event_wait_t m_wait;
    uct_varuna_last_wqe_t     m_event;
};

unsigned test_varuna_last_wqe::m_num_calls;

UCS_TEST_F(test_varuna_last_wqe, comes_once) {
    EXPECT_EQ(UCS_ERR_TIMED_OUT, uct_varuna_last_wqe_wait(&m_event, 0));
    raise();
    EXPECT_EQ(UCS_OK, uct_varuna_last_wqe_wait(&m_event, 0));
    uct_varuna_last_wqe_forget(&m_event);
    EXPECT_EQ(UCS_ERR_TIMED_OUT, uct_varuna_last_wqe_wait(&m_event, 0));
    destroy();
    EXPECT_EQ(0u, progress());
    raise();
    EXPECT_LT(0u, progress());
}

/* The first one is late, and UCX does not progress until the second one has come: it would call the
 * endpoint's callback after it has freed it (with assertions, it ends the process) */
UCS_TEST_F(test_varuna_last_wqe, comes_twice_when_nobody_waits) {
    uct_varuna_last_wqe_forget(&m_event);
    destroy();
    uct_varuna_last_wqe_ignore(&m_event);
    raise();
    raise();
    EXPECT_EQ(0u, progress());
}

UCS_TEST_F(test_varuna_last_wqe, comes_when_the_endpoint_is_destroyed) {
    uct_varuna_last_wqe_forget(&m_event);
    raise();
    destroy();
    uct_varuna_last_wqe_ignore(&m_event);
    raise();
    EXPECT_EQ(0u, progress());
}
