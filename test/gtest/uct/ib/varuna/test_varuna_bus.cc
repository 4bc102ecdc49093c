/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The message bus: rows, threads, and refused messages. The test has its own handlers
 * and messages, so it needs no fabric.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ctl/varuna_bus.h>
}

#include <string>
#include <vector>

class test_varuna_bus : public ucs::test {
public:
    /* The bus calls this handler of a row */
    struct row {
        test_varuna_bus *test;
        std::string     name;
        bool            defers;
    };

    static void handle(void *arg, unsigned link, const uct_varuna_ctl_hdr_t *hdr,
                       const void *body)
    {
        row *self              = (row*)arg;
        test_varuna_bus *test  = self->test;

        test->m_calls.push_back(self->name);
        test->m_link = link;
        if (hdr != NULL) {
            test->m_vqps.push_back(hdr->vqp);
            test->m_body.assign((const char*)body, hdr->length);
        }
        if (self->defers) {
            test->m_deferred = uct_varuna_bus_defer(&test->m_bus, link, hdr, body);
        }
    }

protected:
    virtual void init()
    {
        ucs::test::init();
        uct_varuna_bus_init(&m_bus);
        m_deferred = UCS_OK;
        m_link     = 77;
    }

    virtual void cleanup()
    {
        uct_varuna_bus_cleanup(&m_bus);
        EXPECT_TRUE(ucs_list_is_empty(&m_bus.inbox));
        ucs::test::cleanup();
    }

    ucs_status_t add(row &row, unsigned type, uct_varuna_bus_thread_t thread)
    {
        uct_varuna_bus_reg_t reg = {type, thread, handle};

        row.test = this;
        return uct_varuna_bus_add(&m_bus, &reg, &row);
    }

    /* A message of @a type, as it arrives */
    static std::vector<char> message(unsigned type, const std::string &body = "",
                                     uint32_t vqp = 1)
    {
        const char device[] = "device";
        const char ctl[]    = "ctl";
        uct_varuna_ctl_hdr_t hdr = {};
        std::vector<char> data;

        hdr.magic   = UCT_VARUNA_WIRE_MAGIC;
        hdr.version = UCT_VARUNA_WIRE_VERSION;
        hdr.type    = type;
        hdr.length  = body.size();
        hdr.secret  = 5;
        hdr.epoch   = 1;
        hdr.vqp     = vqp;
        if (uct_varuna_ctl_has_from(type)) {
            hdr.from_device_len = sizeof(device);
            hdr.from_ctl_len    = sizeof(ctl);
        }

        data.assign((char*)&hdr, (char*)(&hdr + 1));
        data.insert(data.end(), body.begin(), body.end());
        if (uct_varuna_ctl_has_from(type)) {
            data.insert(data.end(), device, device + sizeof(device));
            data.insert(data.end(), ctl, ctl + sizeof(ctl));
        }
        return data;
    }

    ucs_status_t check(const std::vector<char> &data)
    {
        m_reason = NULL;
        return uct_varuna_bus_check(&m_bus, data.data(), data.size(), &m_reason);
    }

    ucs_status_t deliver(const std::vector<char> &data, unsigned link = 3)
    {
        const uct_varuna_ctl_hdr_t *hdr = (const uct_varuna_ctl_hdr_t*)data.data();

        return uct_varuna_bus_deliver(&m_bus, link, hdr, hdr + 1);
    }

    unsigned run()
    {
        ucs_list_link_t items;

        ucs_list_head_init(&items);
        uct_varuna_bus_take(&m_bus, &items);
        EXPECT_EQ(0u, m_bus.inbox_len);
        return uct_varuna_bus_run(&m_bus, &items);
    }

    static std::string bytes(size_t size)
    {
        std::string body;

        for (size_t i = 0; i < size; ++i) {
            body += (char)(i + 1);
        }
        return body;
    }

    std::string calls() const
    {
        std::string all;

        for (const std::string &call : m_calls) {
            all += (all.empty() ? "" : " ") + call;
        }
        return all;
    }

    uct_varuna_bus_t         m_bus;
    std::vector<std::string> m_calls;
    std::vector<uint32_t>    m_vqps;
    std::string              m_body;
    ucs_status_t             m_deferred;
    unsigned                 m_link;
    const char               *m_reason;
};

/* Types in the table, and other types */
UCS_TEST_F(test_varuna_bus, rows_have_a_name) {
    for (unsigned type = 0; type < UCT_VARUNA_CTL_LAST; ++type) {
        const uct_varuna_msg_info_t *info = m_bus.rows[type].info;

        EXPECT_EQ(type, (unsigned)uct_varuna_msg_infos[type].type);
        EXPECT_EQ(uct_varuna_msg_info(type), info);
        if (info != NULL) {
            EXPECT_NE(std::string(""), info->name);
            EXPECT_TRUE((info->answer == 0) ||
                        uct_varuna_msg_has(info->answer, UCT_VARUNA_MSG_FLAG_ANSWER))
                    << info->name;
        }
    }
}

UCS_TEST_F(test_varuna_bus, unknown_type) {
    row r = {NULL, "row", false};

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, add(r, 0, UCT_VARUNA_BUS_ASYNC));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, add(r, 15, UCT_VARUNA_BUS_MAIN));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, add(r, UCT_VARUNA_BUS_LAST,
                                         UCT_VARUNA_BUS_ASYNC));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, add(r, ~0u, UCT_VARUNA_BUS_ASYNC));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(message(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(message(15)));
    EXPECT_EQ(std::string("its type is unknown"), m_reason);
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(message(UINT8_MAX)));
}

/* A type without a handler is refused, even if it is well-formed */
UCS_TEST_F(test_varuna_bus, type_without_a_handler) {
    row r = {NULL, "close", false};

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(message(UCT_VARUNA_CTL_CLOSE)));
    EXPECT_EQ(std::string("nobody handles its type"), m_reason);
    ASSERT_UCS_OK(add(r, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_ASYNC));
    EXPECT_UCS_OK(check(message(UCT_VARUNA_CTL_CLOSE)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(message(UCT_VARUNA_CTL_CLOSE_REP)));
}

UCS_TEST_F(test_varuna_bus, wrong_length) {
    row r           = {NULL, "row", false};
    size_t size     = sizeof(uct_varuna_ctl_fence_req_t);
    std::vector<char> data;

    ASSERT_UCS_OK(add(r, UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_ASYNC));
    EXPECT_UCS_OK(check(message(UCT_VARUNA_CTL_FENCE_REQ, bytes(size))));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              check(message(UCT_VARUNA_CTL_FENCE_REQ, bytes(size - 1))));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              check(message(UCT_VARUNA_CTL_FENCE_REQ, bytes(size + 1))));

    data = message(UCT_VARUNA_CTL_FENCE_REQ, bytes(size));
    while (!data.empty()) {
        data.pop_back();
        EXPECT_NE(UCS_OK, check(data));
    }
}

UCS_TEST_F(test_varuna_bus, registered_twice) {
    row first = {NULL, "first", false}, second = {NULL, "second", false};

    ASSERT_UCS_OK(add(first, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_ASYNC));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS,
              add(second, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_ASYNC));
    EXPECT_UCS_OK(add(second, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_MAIN));
    EXPECT_EQ(UCS_ERR_ALREADY_EXISTS,
              add(first, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_MAIN));

    EXPECT_UCS_OK(deliver(message(UCT_VARUNA_CTL_CLOSE)));
    EXPECT_EQ("first", calls());
}

/* A handler of the async context is called at once, and only this one */
UCS_TEST_F(test_varuna_bus, async_handler) {
    row r = {NULL, "async", false};

    ASSERT_UCS_OK(add(r, UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_ASYNC));
    EXPECT_UCS_OK(deliver(message(UCT_VARUNA_CTL_FENCE_REQ, bytes(12)), 5));
    EXPECT_EQ("async", calls());
    EXPECT_EQ(5u, m_link);
    EXPECT_EQ(bytes(12), m_body);
    EXPECT_EQ(0u, run());
    EXPECT_EQ("async", calls());
}

/* One of the main thread is not called in the async context */
UCS_TEST_F(test_varuna_bus, main_handler_waits_for_its_thread) {
    row r = {NULL, "main", false};
    std::vector<char> data;

    ASSERT_UCS_OK(add(r, UCT_VARUNA_CTL_FENCE_REQ, UCT_VARUNA_BUS_MAIN));
    data = message(UCT_VARUNA_CTL_FENCE_REQ, bytes(12));
    EXPECT_EQ(UCS_INPROGRESS, deliver(data, 2));
    std::fill(data.begin(), data.end(), 'x'); /* The buffer is used again */
    EXPECT_EQ("", calls());
    EXPECT_EQ(1u, m_bus.inbox_len);
    EXPECT_EQ(1u, run());
    EXPECT_EQ("main", calls());
    EXPECT_EQ(2u, m_link);
    EXPECT_EQ(bytes(12), m_body);
    EXPECT_EQ(0u, run());
}

UCS_TEST_F(test_varuna_bus, both_threads_in_their_order) {
    row async = {NULL, "async", true}, main = {NULL, "main", false};

    ASSERT_UCS_OK(add(main, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_MAIN));
    ASSERT_UCS_OK(add(async, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_ASYNC));
    EXPECT_UCS_OK(deliver(message(UCT_VARUNA_CTL_CLOSE)));
    EXPECT_EQ(UCS_INPROGRESS, m_deferred);
    EXPECT_EQ("async", calls());
    EXPECT_EQ(1u, run());
    EXPECT_EQ("async main", calls());
}

/* The main thread handles messages of all types in the order of their arrival, and
 * messages that arrive meanwhile the next time */
UCS_TEST_F(test_varuna_bus, main_thread_keeps_the_order) {
    row close = {NULL, "close", true}, open = {NULL, "rep", false};

    ASSERT_UCS_OK(add(close, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_MAIN));
    ASSERT_UCS_OK(add(open, UCT_VARUNA_CTL_CLOSE_REP, UCT_VARUNA_BUS_MAIN));
    deliver(message(UCT_VARUNA_CTL_CLOSE, "", 10));
    deliver(message(UCT_VARUNA_CTL_CLOSE_REP, "", 11));
    deliver(message(UCT_VARUNA_CTL_CLOSE_REP, "", 12));
    EXPECT_EQ(3u, run());
    EXPECT_EQ("close rep rep", calls());
    EXPECT_EQ((std::vector<uint32_t>{10, 11, 12}), m_vqps);
    EXPECT_EQ(1u, m_bus.inbox_len); /* What close has put there */
    EXPECT_EQ(1u, run());
}

UCS_TEST_F(test_varuna_bus, inbox_is_bounded) {
    row r                  = {NULL, "main", false};
    std::vector<char> data = message(UCT_VARUNA_CTL_CLOSE);

    ASSERT_UCS_OK(add(r, UCT_VARUNA_CTL_CLOSE, UCT_VARUNA_BUS_MAIN));
    for (unsigned i = 0; i < UCT_VARUNA_BUS_MAX_INBOX; ++i) {
        ASSERT_EQ(UCS_INPROGRESS, deliver(data));
    }
    EXPECT_EQ(UCS_ERR_NO_RESOURCE, deliver(data));
    EXPECT_EQ((unsigned)UCT_VARUNA_BUS_MAX_INBOX, run());
    EXPECT_EQ(UCS_INPROGRESS, deliver(data));
    /* cleanup() drops that one */
}

/* Events of this process are no messages: a peer cannot send one */
UCS_TEST_F(test_varuna_bus, events) {
    row r = {NULL, "port", false};

    uct_varuna_bus_raise(&m_bus, UCT_VARUNA_BUS_PORT_CHANGED);
    EXPECT_EQ("", calls());
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, add(r, UCT_VARUNA_BUS_PORT_CHANGED,
                                         UCT_VARUNA_BUS_MAIN));
    ASSERT_UCS_OK(add(r, UCT_VARUNA_BUS_PORT_CHANGED, UCT_VARUNA_BUS_ASYNC));
    uct_varuna_bus_raise(&m_bus, UCT_VARUNA_BUS_PROGRESSED);
    EXPECT_EQ("", calls());
    uct_varuna_bus_raise(&m_bus, UCT_VARUNA_BUS_PORT_CHANGED);
    EXPECT_EQ("port", calls());
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, check(message(UCT_VARUNA_BUS_PORT_CHANGED)));
}
