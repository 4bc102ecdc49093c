/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening and closing of the control plane, over a transport that needs no NIC: its
 * options, cleanup after each failure, and its event handlers.
 */
#include "fake_verbs.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_worker.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/vfs/base/vfs_obj.h>
}

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <dirent.h>
#include <map>
#include <memory>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

/* A transport dc_mlx5 that counts calls, and fails where a test requests it */
class fake_dc {
public:
    enum step_t { NOTHING, OPEN, QUERY, NO_BCOPY, NO_EVENTS, SMALL, ADDRESS, HANDLER,
                  EVENT_FD, LAST };

    struct iface {
        uct_base_iface_t                   base;
        std::string                        dev_name;
        std::map<std::string, std::string> config;
        unsigned                           progress;   /* Flags that are enabled */
        unsigned                           num_queries, num_arms, num_flushes;
        unsigned                           busy;       /* Flushes that are not done */
        int                                fd;
    };

    static constexpr size_t ADDR_LEN = 5;

    fake_dc();

    ~fake_dc()
    {
        self = NULL;
        EXPECT_EQ(0u, ifaces.size()) << "interfaces are left open";
    }

    uct_component_t          component = {};
    std::vector<iface*>      ifaces;        /* In order of creation */
    std::vector<std::string> closed;        /* Names, in order */
    step_t                   fail_step;     /* ... of this interface: */
    unsigned                 fail_link;
    unsigned                 num_opened;

    void use_options(unsigned count);

    static std::vector<const char*> names();

private:
    static constexpr unsigned MAX_OPTIONS = 16;

    struct config {
        uct_iface_config_t super;
        char               *values[MAX_OPTIONS];
    };

    static fake_dc *self;

    static bool fails(uct_iface_h tl_iface, step_t step);
    static ucs_status_t open(uct_md_h md, uct_worker_h worker,
                             const uct_iface_params_t *params,
                             const uct_iface_config_t *config, uct_iface_h *iface_p);
    static ucs_status_t query(uct_iface_h tl_iface, uct_iface_attr_t *attr);
    static void close(uct_iface_h tl_iface);

    uct_tl_t                        m_tl = {};
    std::vector<ucs_config_field_t> m_table;
};

fake_dc *fake_dc::self;

/* The options that the control plane sets */
std::vector<const char*> fake_dc::names()
{
    return {"DC_NUM_DCI", "DC_TX_POLICY", "IB_TX_QUEUE_LEN", "IB_TX_MAX_BUFS", "IB_TX_BUFS_GROW",
            "IB_RX_QUEUE_LEN", "IB_RX_BUFS_GROW", "IB_SEG_SIZE", "RC_FC_ENABLE",
            "RC_TM_ENABLE", "RC_TIMEOUT", "RC_RETRY_COUNT", "IB_FAILURE"};
}

void fake_dc::use_options(unsigned count)
{
    m_table.clear();
    for (unsigned i = 0; i < count; ++i) {
        ucs_config_field_t field = {names()[i], "user", "",
                                    offsetof(config, values) + (i * sizeof(char*)),
                                    UCS_CONFIG_TYPE_STRING};
        m_table.push_back(field);
    }
    m_table.push_back(ucs_config_field_t());
    m_tl.config.table = m_table.data();
}

fake_dc::fake_dc() : fail_step(NOTHING), fail_link(0), num_opened(0)
{
    self = this;
    strcpy(const_cast<char*>(component.name), "fake_dc");
    strcpy(m_tl.name, UCT_VARUNA_DC_TL);
    m_tl.iface_open    = open;
    m_tl.config.name   = "fake";
    m_tl.config.prefix = ""; /* Newer series want it before the names of options */
    m_tl.config.size   = sizeof(config);
    use_options(names().size());
    ucs_list_head_init(&component.tl_list);
    ucs_list_add_tail(&component.tl_list, &m_tl.list);
}

bool fake_dc::fails(uct_iface_h tl_iface, step_t step)
{
    return (self->fail_step == step) && (self->fail_link < self->ifaces.size()) &&
           (&self->ifaces[self->fail_link]->base.super == tl_iface);
}

ucs_status_t fake_dc::query(uct_iface_h tl_iface, uct_iface_attr_t *attr)
{
    iface *dc = (iface*)tl_iface;

    /* Handlers are set after the first query */
    if (fails(tl_iface, (dc->num_queries++ == 0) ? QUERY : HANDLER)) {
        return UCS_ERR_IO_ERROR;
    }

    memset(attr, 0, sizeof(*attr));
    attr->cap.flags        = UCT_IFACE_FLAG_CB_SYNC | UCT_IFACE_FLAG_CB_ASYNC |
                             (fails(tl_iface, NO_BCOPY) ? 0 : UCT_IFACE_FLAG_AM_BCOPY);
    attr->cap.event_flags  = UCT_IFACE_FLAG_EVENT_SEND_COMP | UCT_IFACE_FLAG_EVENT_RECV |
                             (fails(tl_iface, NO_EVENTS) ? 0 : UCT_IFACE_FLAG_EVENT_FD);
    attr->cap.am.max_bcopy = UCT_VARUNA_CTL_MAX_MSG - fails(tl_iface, SMALL);
    attr->iface_addr_len   = ADDR_LEN;
    return UCS_OK;
}

void fake_dc::close(uct_iface_h tl_iface)
{
    iface *dc  = (iface*)tl_iface;
    auto place = std::find(self->ifaces.begin(), self->ifaces.end(), dc);

    ASSERT_NE(self->ifaces.end(), place) << "an interface is closed twice";
    self->closed.push_back(dc->dev_name);
    self->ifaces.erase(place);
    ucs_vfs_obj_remove(tl_iface);
    ::close(dc->fd);
    delete dc;
}

ucs_status_t fake_dc::open(uct_md_h md, uct_worker_h worker,
                           const uct_iface_params_t *params,
                           const uct_iface_config_t *tl_config, uct_iface_h *iface_p)
{
    uct_iface_ops_t *ops;
    iface *dc;

    if ((self->fail_step == OPEN) && (self->fail_link == self->ifaces.size())) {
        return UCS_ERR_NO_DEVICE;
    }

    EXPECT_EQ(UCT_IFACE_OPEN_MODE_DEVICE, params->open_mode);
    dc           = new iface();
    dc->dev_name = params->mode.device.dev_name;
    dc->fd       = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    for (size_t i = 0; i < names().size(); ++i) {
        dc->config[names()[i]] = ((const config*)tl_config)->values[i];
    }

    ops                        = &dc->base.super.ops;
    ops->iface_query           = query;
    ops->iface_close           = close;
    ops->iface_get_address     = [](uct_iface_h tl_iface, uct_iface_addr_t *addr) {
        memset(addr, 0xc, ADDR_LEN);
        return fails(tl_iface, ADDRESS) ? UCS_ERR_IO_ERROR : UCS_OK;
    };
    ops->iface_progress_enable = [](uct_iface_h tl_iface, unsigned flags) {
        ((iface*)tl_iface)->progress |= flags;
    };
    ops->iface_event_fd_get    = [](uct_iface_h tl_iface, int *fd_p) {
        *fd_p = ((iface*)tl_iface)->fd;
        return fails(tl_iface, EVENT_FD) ? UCS_ERR_IO_ERROR : UCS_OK;
    };
    ops->iface_event_arm       = [](uct_iface_h tl_iface, unsigned) {
        ++((iface*)tl_iface)->num_arms;
        return UCS_OK;
    };
    ops->iface_flush           = [](uct_iface_h tl_iface, unsigned, uct_completion_t*) {
        iface *flushed = (iface*)tl_iface;

        ++flushed->num_flushes;
        return (flushed->num_flushes > flushed->busy) ? UCS_OK : UCS_INPROGRESS;
    };
    self->ifaces.push_back(dc);
    ++self->num_opened;
    *iface_p = &dc->base.super;
    return UCS_OK;
}


class test_varuna_ctl_open : public ucs::test {
protected:
    static constexpr unsigned NUM_LINKS = 2;

    virtual void init()
    {
        ucs::test::init();
        memset((void*)&iface, 0, sizeof(iface));
        memset((void*)&md, 0, sizeof(md));
        ASSERT_UCS_OK(ucs_async_context_create(UCS_ASYNC_MODE_POLL, &async));
        ASSERT_UCS_OK(uct_worker_create(async, UCS_THREAD_MODE_SINGLE, &worker));
        inner_md.component        = &dc.component;
        iface.super.worker        = ucs_derived_of(worker, uct_priv_worker_t);
        iface.md                  = &md;
        iface.num_links           = NUM_LINKS;
        iface.config.heartbeat_interval = ucs_time_from_msec(5);
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            iface.links[link].nic = link;
            iface.links[link].set = uct_varuna_sets;
            md.nics[link].set     = uct_varuna_sets;
            md.nics[link].md      = &inner_md;
            snprintf(md.nics[link].dev_name, sizeof(md.nics[link].dev_name),
                     "fake_%u:1", link);
        }
        ctl      = NULL;
        num_fds  = count_fds();
    }

    virtual void cleanup()
    {
        close();
        EXPECT_EQ(num_fds, count_fds());
        uct_worker_destroy(worker);
        ucs_async_context_destroy(async);
        ucs::test::cleanup();
    }

    static unsigned count_fds()
    {
        DIR *dir       = opendir("/proc/self/fd");
        unsigned count = 0;

        while (readdir(dir) != NULL) {
            ++count;
        }
        closedir(dir);
        return count;
    }

    void open()
    {
        ASSERT_UCS_OK(uct_varuna_ctl_create(&iface, &ctl));
    }

    ucs_status_t listen()
    {
        ucs_status_t status;

        uct_varuna_ctl_lock(ctl);
        status = uct_varuna_ctl_listen(ctl);
        uct_varuna_ctl_unlock(ctl);
        return status;
    }

    void close()
    {
        if (ctl != NULL) {
            uct_varuna_ctl_unlisten(ctl);
            uct_varuna_ctl_destroy(ctl);
            ctl = NULL;
        }
    }

    unsigned num_arms()
    {
        unsigned count = 0;

        for (const fake_dc::iface *inner : dc.ifaces) {
            count += inner->num_arms;
        }
        return count;
    }

    /* Let the async context run for a while */
    void poll(double seconds = 0)
    {
        ucs_time_t end = ucs_get_time() + ucs_time_from_sec(seconds);

        do {
            ucs_async_poll(async);
        } while (ucs_get_time() < end);
    }

    fake_dc             dc;
    uct_varuna_iface_t  iface;
    uct_varuna_md_t     md;
    uct_md_t            inner_md = {};
    ucs_async_context_t *async;
    uct_worker_h        worker;
    uct_varuna_ctl_t    *ctl;
    unsigned            num_fds;
};


/* --- Opening --- */

UCS_TEST_F(test_varuna_ctl_open, one_interface_for_each_link) {
    open();
    ASSERT_EQ(NUM_LINKS, dc.ifaces.size());
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        EXPECT_EQ(md.nics[link].dev_name, dc.ifaces[link]->dev_name);
        EXPECT_EQ(&dc.ifaces[link]->base.super, ctl->links[link].inner);
        EXPECT_EQ(link, ctl->links[link].index);
        EXPECT_EQ(std::string(fake_dc::ADDR_LEN, 0xc),
                  std::string((char*)ctl->links[link].addr, fake_dc::ADDR_LEN));
        EXPECT_EQ(unsigned(UCT_PROGRESS_SEND | UCT_PROGRESS_RECV),
                  dc.ifaces[link]->progress);
    }
    EXPECT_NE(&iface.super.worker->super, ctl->worker) << "a private one";
}

/* Messages are few and small, a dead peer must release its DCI soon, and UCX must not
 * log errors, which are expected */
UCS_TEST_F(test_varuna_ctl_open, options_of_its_own) {
    open();
    for (fake_dc::iface *inner : dc.ifaces) {
        for (const auto &option : inner->config) {
            EXPECT_NE("user", option.second) << option.first;
        }
        EXPECT_EQ("dcs_quota", inner->config["DC_TX_POLICY"]);
        EXPECT_EQ("n", inner->config["RC_FC_ENABLE"]);
        EXPECT_EQ("debug", inner->config["IB_FAILURE"]);
        EXPECT_GE(std::stoul(inner->config["IB_SEG_SIZE"]), UCT_VARUNA_CTL_MAX_MSG);
        EXPECT_GT(std::stoul(inner->config["DC_NUM_DCI"]), UCT_VARUNA_CTL_MAX_DOUBTFUL)
                << "messages to living peers need one";
    }
}

/* Another version of UCX may have renamed one */
UCS_TEST_F(test_varuna_ctl_open, option_that_ucx_does_not_have) {
    scoped_log_handler slh(hide_errors_logger);

    for (unsigned count = 0; count < fake_dc::names().size(); ++count) {
        dc.use_options(count);
        m_errors.clear();
        EXPECT_NE(UCS_OK, uct_varuna_ctl_create(&iface, &ctl));
        EXPECT_EQ(0u, dc.num_opened);
        ASSERT_GE(m_errors.size(), 1u);
        EXPECT_NE(std::string::npos, m_errors.back().find(fake_dc::names()[count]));
    }
}

UCS_TEST_F(test_varuna_ctl_open, failure_at_each_step) {
    scoped_log_handler slh(hide_errors_logger);

    for (int step = fake_dc::OPEN; step < fake_dc::EVENT_FD; ++step) {
        for (unsigned link = 0; link < NUM_LINKS; ++link) {
            dc.fail_step  = (fake_dc::step_t)step;
            dc.fail_link  = link;
            dc.num_opened = 0;
            EXPECT_NE(UCS_OK, uct_varuna_ctl_create(&iface, &ctl)) << step;
            EXPECT_TRUE(ctl == NULL) << "set on success only";
            EXPECT_EQ(0u, dc.ifaces.size()) << "step " << step << " link " << link;
            EXPECT_EQ(link + (step != fake_dc::OPEN), dc.num_opened);
            EXPECT_EQ(num_fds, count_fds());
        }
    }
}

UCS_TEST_F(test_varuna_ctl_open, transport_that_cannot_carry_messages) {
    scoped_log_handler slh(hide_errors_logger);

    for (fake_dc::step_t step : {fake_dc::NO_BCOPY, fake_dc::NO_EVENTS, fake_dc::SMALL}) {
        dc.fail_step = step;
        m_errors.clear();
        EXPECT_EQ(UCS_ERR_UNSUPPORTED, uct_varuna_ctl_create(&iface, &ctl));
        ASSERT_EQ(1u, m_errors.size());
        EXPECT_NE(std::string::npos, m_errors[0].find("can't carry control messages"));
    }
}

/* A process with other handlers may send here by mistake */
UCS_TEST_F(test_varuna_ctl_open, messages_with_other_ids) {
    open();
    for (unsigned id = 0; id < UCT_AM_ID_MAX; ++id) {
        uct_am_handler_t *handler = &dc.ifaces[1]->base.am[id];

        if (id == UCT_VARUNA_AM_ID_CTL) {
            EXPECT_EQ((void*)&ctl->links[1], handler->arg);
            continue;
        }
        char data[8] = {};
        EXPECT_EQ(UCS_OK, handler->cb(handler->arg, data, sizeof(data), 0));
    }
    EXPECT_EQ(unsigned(UCT_AM_ID_MAX) - 1, iface.foreign);
}

/* Its own messages have rows before higher layers register theirs */
UCS_TEST_F(test_varuna_ctl_open, heartbeat_is_registered) {
    open();
    EXPECT_EQ(ucs_time_from_msec(5), ctl->time.clock.tick);
    EXPECT_EQ(0u, num_arms()) << "it does not listen yet";
    poll(0.02);
    EXPECT_EQ(0u, num_arms());
}


/* --- Listening --- */

/* The handler is called once without an event, for messages that arrived before */
UCS_TEST_F(test_varuna_ctl_open, listening_arms_all_links) {
    open();
    EXPECT_EQ(UCS_OK, listen());
    poll();
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        EXPECT_GT(dc.ifaces[link]->num_arms, 0u);
        EXPECT_EQ(dc.ifaces[link]->fd, ctl->links[link].fd);
    }
}

UCS_TEST_F(test_varuna_ctl_open, clock_runs) {
    static unsigned ticks;

    ticks = 0;
    open();
    uct_varuna_clock_add(&ctl->time.clock, uct_varuna_ctl_now(ctl), ucs_time_from_msec(5),
                         [](void*) { ++ticks; }, NULL);
    EXPECT_EQ(UCS_OK, listen());
    for (unsigned i = 0; (i < 12000) && (ticks < 2); ++i) {
        poll(0.01);
    }
    EXPECT_GE(ticks, 2u);
    uct_varuna_ctl_unlisten(ctl);
    EXPECT_EQ(-1, ctl->time.timer);
    ticks = 0;
    poll(0.05);
    EXPECT_EQ(0u, ticks);
}

UCS_TEST_F(test_varuna_ctl_open, clock_without_jobs_has_no_timer) {
    open();
    uct_varuna_clock_init(&ctl->time.clock);
    EXPECT_EQ(UCS_OK, listen());
    EXPECT_EQ(-1, ctl->time.timer);
    uct_varuna_ctl_unlisten(ctl);
}

UCS_TEST_F(test_varuna_ctl_open, nothing_is_called_after_unlisten) {
    unsigned arms;

    open();
    EXPECT_EQ(UCS_OK, listen());
    poll();
    uct_varuna_ctl_unlisten(ctl);
    arms = num_arms();
    poll(0.02);
    EXPECT_EQ(arms, num_arms());
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        EXPECT_EQ(-1, ctl->links[link].fd);
    }
}

UCS_TEST_F(test_varuna_ctl_open, listening_fails) {
    open();
    dc.fail_step = fake_dc::EVENT_FD;
    for (unsigned link = 0; link < NUM_LINKS; ++link) {
        dc.fail_link = link;
        EXPECT_EQ(UCS_ERR_IO_ERROR, listen());
        poll(0.02);
        EXPECT_EQ(0u, num_arms()) << "a handler is left";
    }
    dc.fail_step = fake_dc::NOTHING;
    EXPECT_EQ(UCS_OK, listen());
}

UCS_TEST_F(test_varuna_ctl_open, ports_are_listened_to_if_wanted) {
    fake_verbs verbs;

    verbs.add("fake_0");
    verbs.add("fake_1");
    open();
    EXPECT_EQ(UCS_OK, listen());
    EXPECT_TRUE(ctl->detector == NULL);
    EXPECT_EQ(0u, verbs.num_open());
    uct_varuna_ctl_unlisten(ctl);

    iface.config.port_events = 1;
    EXPECT_EQ(UCS_OK, listen());
    EXPECT_TRUE(ctl->detector != NULL);
    EXPECT_EQ(NUM_LINKS, verbs.num_open());
    uct_varuna_ctl_unlisten(ctl);
    EXPECT_TRUE(ctl->detector == NULL);
    EXPECT_EQ(0u, verbs.num_open());
}

UCS_TEST_F(test_varuna_ctl_open, port_that_cannot_be_listened_to) {
    scoped_log_handler slh(hide_errors_logger);
    fake_verbs verbs;

    verbs.add("fake_0");
    open();
    iface.config.port_events = 1;
    EXPECT_EQ(UCS_ERR_IO_ERROR, listen());
    EXPECT_TRUE(ctl->detector == NULL);
    EXPECT_EQ(0u, verbs.num_open());
    poll(0.02);
    EXPECT_EQ(0u, num_arms());
}

/* The port is down at the start: the main thread detects it */
UCS_TEST_F(test_varuna_ctl_open, port_that_is_down) {
    fake_verbs verbs;

    verbs.add("fake_0");
    verbs.add("fake_1").states[1] = IBV_PORT_DOWN;
    open();
    iface.config.port_events = 1;
    EXPECT_EQ(UCS_OK, listen());
    EXPECT_EQ(2u, ctl->ports.down);
    EXPECT_EQ(2u, ctl->events.down_map);
    EXPECT_TRUE(ctl->events.pending);
    uct_varuna_ctl_unlisten(ctl);
}


/* --- Closing --- */

UCS_TEST_F(test_varuna_ctl_open, linger_ends_when_all_has_left) {
    ucs_time_t start;

    open();
    uct_varuna_ctl_linger(ctl);
    EXPECT_EQ(1u, dc.ifaces[0]->num_flushes);
    dc.ifaces[1]->busy = 5;
    start              = ucs_get_time();
    uct_varuna_ctl_linger(ctl);
    if (ucs_time_to_sec(ucs_get_time() - start) < 0.02) {
        EXPECT_EQ(6u, dc.ifaces[1]->num_flushes) << "and not before";
    } /* Otherwise it had no CPU */
}

/* The peer may be dead */
UCS_TEST_F(test_varuna_ctl_open, linger_ends_after_a_while) {
    ucs_time_t start;

    open();
    dc.ifaces[1]->busy = UINT32_MAX;
    start              = ucs_get_time();
    uct_varuna_ctl_linger(ctl);
    EXPECT_GE(ucs_time_to_sec(ucs_get_time() - start), 0.02);
    dc.ifaces[1]->busy = 0;

    ucs_list_link_t message;
    ucs_list_add_tail(&ctl->queue.msgs, &message);
    start = ucs_get_time();
    uct_varuna_ctl_linger(ctl);
    EXPECT_GE(ucs_time_to_sec(ucs_get_time() - start), 0.02) << "a message waits";
    ucs_list_del(&message);
}

UCS_TEST_F(test_varuna_ctl_open, closing_releases_all) {
    open();
    EXPECT_EQ(UCS_OK, listen());
    close();
    EXPECT_EQ(std::vector<std::string>({"fake_1:1", "fake_0:1"}), dc.closed);
    EXPECT_EQ(num_fds, count_fds());
}
