/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The detector of port events: each event of a device, and queries without an event.
 */
#include "fake_verbs.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/lanes/varuna_detector.h>
#include <ucs/async/async.h>
}

#include <cerrno>

class test_varuna_detector : public ucs::test {
protected:
    /* Events of ports by number; of most tests, whether it is up */
    typedef std::vector<std::pair<unsigned, unsigned>> reports_t;

    virtual void init()
    {
        ucs::test::init();
        nic0 = &verbs.add("mlx5_0");
        nic1 = &verbs.add("mlx5_1");
        ASSERT_UCS_OK(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async));
        ASSERT_UCS_OK(uct_varuna_detector_create(async, report, this, &detector));
    }

    virtual void cleanup()
    {
        uct_varuna_detector_destroy(detector);
        ucs_async_context_destroy(async);
        ucs::test::cleanup();
    }

    static void report(void *arg, unsigned port, uct_varuna_port_event_t event)
    {
        test_varuna_detector *self = (test_varuna_detector*)arg;

        self->m_reports.push_back({port, event});
    }

    void add(unsigned port, const std::string &name)
    {
        ASSERT_UCS_OK(uct_varuna_detector_add(detector, port, name.c_str()));
    }

    void add_fails(const std::string &name, ucs_status_t status, const std::string &text)
    {
        scoped_log_handler slh(hide_errors_logger);

        m_errors.clear();
        EXPECT_EQ(status, uct_varuna_detector_add(detector, 0, name.c_str())) << name;
        ASSERT_EQ(1u, m_errors.size());
        EXPECT_NE(std::string::npos, m_errors[0].find(text)) << m_errors[0];
        EXPECT_EQ(0u, verbs.num_open());
    }

    /* Reports since the last call */
    reports_t poll()
    {
        reports_t reports;

        ucs_async_poll(async);
        reports.swap(m_reports);
        return reports;
    }

    reports_t check(unsigned port, bool was_up)
    {
        reports_t reports;

        uct_varuna_detector_check(detector, port, was_up);
        reports.swap(m_reports);
        return reports;
    }

    bool is_gone(unsigned port)
    {
        return uct_varuna_detector_is_gone(detector, port);
    }

    const reports_t       NONE;
    fake_verbs            verbs;
    fake_verbs::device    *nic0, *nic1;
    ucs_async_context_t   *async;
    uct_varuna_detector_t *detector;
    reports_t             m_reports;
};


/* --- Ports --- */

UCS_TEST_F(test_varuna_detector, no_name_of_a_port) {
    for (const char *name : {"", "mlx5_0", "mlx5_0:", "mlx5_0:x", "mlx5_0:1x",
                             "mlx5_0:0", "mlx5_0:256"}) {
        add_fails(name, UCS_ERR_INVALID_PARAM, "is not the name of a port");
    }
    add_fails(std::string(UCT_DEVICE_NAME_MAX, 'm') + ":1", UCS_ERR_INVALID_PARAM,
              "is not the name of a port");
}

UCS_TEST_F(test_varuna_detector, device_that_is_not_there) {
    add_fails("mlx5_2:1", UCS_ERR_IO_ERROR, "failed to open mlx5_2");
    nic0->can_open = false;
    add_fails("mlx5_0:1", UCS_ERR_IO_ERROR, "failed to open mlx5_0");
}

/* It is closed again, and not a second time with the detector */
UCS_TEST_F(test_varuna_detector, device_without_events) {
    nic0->has_fd = false;
    add_fails("mlx5_0:1", UCS_ERR_IO_ERROR, "");
    EXPECT_EQ(NONE, check(0, true));
}

/* Reading an event must not block the async thread */
UCS_TEST_F(test_varuna_detector, device_is_opened_for_its_events) {
    add(0, "mlx5_0:1");
    add(1, "mlx5_1:1");
    EXPECT_EQ(2u, verbs.num_open());
    EXPECT_EQ(NONE, poll());
    EXPECT_FALSE(is_gone(0));
}

UCS_TEST_F(test_varuna_detector, port_that_is_down_already) {
    nic1->states[1] = IBV_PORT_DOWN;
    add(0, "mlx5_0:1");
    add(1, "mlx5_1:1");
    EXPECT_EQ(reports_t({{1, false}}), poll());
    EXPECT_FALSE(is_gone(1));
}

/* A failed query does not change the port's state */
UCS_TEST_F(test_varuna_detector, port_that_cannot_be_queried) {
    nic0->query_error = EIO;
    add(0, "mlx5_0:1");
    EXPECT_EQ(NONE, poll());
}


/* --- Events --- */

UCS_TEST_F(test_varuna_detector, port_goes_down_and_up) {
    add(0, "mlx5_0:1");
    add(1, "mlx5_1:1");
    verbs.event(*nic1, IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(reports_t({{1, false}}), poll());
    EXPECT_EQ(0u, verbs.num_unacked);
    verbs.event(*nic1, IBV_EVENT_PORT_ACTIVE, 1);
    EXPECT_EQ(reports_t({{1, true}}), poll());
    EXPECT_EQ(NONE, poll());
}

/* All that have arrived, in their order */
UCS_TEST_F(test_varuna_detector, several_events_at_once) {
    add(0, "mlx5_0:1");
    verbs.event(*nic0, IBV_EVENT_PORT_ERR, 1);
    verbs.event(*nic0, IBV_EVENT_PORT_ACTIVE, 1);
    verbs.event(*nic0, IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(reports_t({{0, false}, {0, true}, {0, false}}), poll());
}

UCS_TEST_F(test_varuna_detector, ports_of_one_device) {
    add(0, "mlx5_0:1");
    add(1, "mlx5_0:2");
    verbs.event(*nic0, IBV_EVENT_PORT_ERR, 2);
    EXPECT_EQ(reports_t({{1, false}}), poll());
    verbs.event(*nic0, IBV_EVENT_PORT_ACTIVE, 2);
    EXPECT_EQ(reports_t({{1, true}}), poll());
}

UCS_TEST_F(test_varuna_detector, addresses_change) {
    add(0, "mlx5_0:1");
    verbs.event(*nic0, IBV_EVENT_LID_CHANGE, 1);
    verbs.event(*nic0, IBV_EVENT_GID_CHANGE, 1);
    verbs.event(*nic0, IBV_EVENT_GID_CHANGE, 2);
    EXPECT_EQ(reports_t({{0, UCT_VARUNA_PORT_ADDRESS}, {0, UCT_VARUNA_PORT_ADDRESS}}),
              poll());
}

UCS_TEST_F(test_varuna_detector, events_that_mean_nothing_to_a_link) {
    add(0, "mlx5_0:1");
    verbs.event(*nic0, IBV_EVENT_SM_CHANGE, 1);
    verbs.event(*nic0, IBV_EVENT_QP_FATAL);
    EXPECT_EQ(NONE, poll());
    EXPECT_EQ(0u, verbs.num_unacked);
}

UCS_TEST_F(test_varuna_detector, device_reports_that_it_is_dead) {
    add(0, "mlx5_0:1");
    add(1, "mlx5_1:1");
    verbs.event(*nic0, IBV_EVENT_DEVICE_FATAL);
    EXPECT_EQ(reports_t({{0, false}}), poll());
    EXPECT_TRUE(is_gone(0));
    EXPECT_FALSE(is_gone(1));
}

/* Its fd would stay readable, and the async thread would spin */
UCS_TEST_F(test_varuna_detector, device_is_removed) {
    add(0, "mlx5_0:1");
    verbs.fail_events(*nic0, ENODEV);
    EXPECT_EQ(reports_t({{0, false}}), poll());
    EXPECT_TRUE(is_gone(0));
    EXPECT_EQ(NONE, poll()) << "the handler is still called";
}

UCS_TEST_F(test_varuna_detector, reading_is_interrupted) {
    add(0, "mlx5_0:1");
    verbs.fail_events(*nic0, EINTR);
    EXPECT_EQ(NONE, poll());
    EXPECT_FALSE(is_gone(0));
    verbs.fail_events(*nic0, EAGAIN);
    verbs.event(*nic0, IBV_EVENT_PORT_ERR, 1);
    EXPECT_EQ(reports_t({{0, false}}), poll());
}


/* --- Queries of a device --- */

UCS_TEST_F(test_varuna_detector, check_of_an_active_port) {
    add(0, "mlx5_0:1");
    EXPECT_EQ(NONE, check(0, true));
    EXPECT_EQ(NONE, check(0, false)) << "only an event says that it is up again";
}

/* The event may have been lost */
UCS_TEST_F(test_varuna_detector, check_of_a_port_that_is_down) {
    add(0, "mlx5_0:1");
    nic0->states[1] = IBV_PORT_DOWN;
    EXPECT_EQ(reports_t({{0, false}}), check(0, true));
    EXPECT_EQ(NONE, check(0, false)) << "that is known";
    EXPECT_FALSE(is_gone(0));
}

UCS_TEST_F(test_varuna_detector, check_of_a_device_that_does_not_answer) {
    add(0, "mlx5_0:1");
    nic0->query_error = EIO;
    EXPECT_EQ(reports_t({{0, false}}), check(0, false));
    EXPECT_TRUE(is_gone(0));
    EXPECT_EQ(NONE, check(0, true)) << "once";
}

UCS_TEST_F(test_varuna_detector, check_of_a_port_that_is_not_listened_to) {
    EXPECT_EQ(NONE, check(1, true));
    EXPECT_FALSE(is_gone(1));
}


/* --- Removal --- */

UCS_TEST_F(test_varuna_detector, destroy_listens_no_more) {
    add(0, "mlx5_0:1");
    add(3, "mlx5_1:1");
    verbs.event(*nic0, IBV_EVENT_PORT_ERR, 1);
    uct_varuna_detector_destroy(detector);
    EXPECT_EQ(0u, verbs.num_open());
    EXPECT_EQ(NONE, poll());
    ASSERT_UCS_OK(uct_varuna_detector_create(async, report, this, &detector));
}

UCS_TEST_F(test_varuna_detector, destroy_after_a_device_was_removed) {
    add(0, "mlx5_0:1");
    verbs.fail_events(*nic0, ENODEV);
    poll();
    uct_varuna_detector_destroy(detector);
    EXPECT_EQ(0u, verbs.num_open());
    ASSERT_UCS_OK(uct_varuna_detector_create(async, report, this, &detector));
}
