/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of control messages: well-formed ones are accepted, truncated, extended or changed
 * ones are refused, and nothing is read after their end.
 */
#include "test_varuna_parse.h"

UCS_TEST_F(test_varuna_parse, ctl_good) {
    for (const std::string &data : all_msgs()) {
        EXPECT_UCS_OK(parse_ctl(data));
    }
    EXPECT_UCS_OK(parse_ctl(fence_rep(UCT_VARUNA_FENCE_FLAG_QP |
                                      UCT_VARUNA_FENCE_FLAG_PSN, 0xffffff)));
}

UCS_TEST_F(test_varuna_parse, ctl_cut) {
    for (const std::string &data : all_msgs()) {
        for (size_t length = 0; length < data.size(); ++length) {
            std::string cut = data.substr(0, length);

            EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(cut));
            if (length >= sizeof(uct_varuna_ctl_hdr_t)) {
                /* A header which agrees with what is left: the body does not */
                uct_varuna_ctl_hdr_t hdr;
                memcpy(&hdr, cut.data(), sizeof(hdr));
                hdr.length = length - sizeof(hdr);
                cut.replace(0, sizeof(hdr), bytes(hdr));
                EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(cut))
                        << uct_varuna_ctl_type_name(hdr.type) << " length "
                        << length;
            }
        }
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(data + "x"));
    }
}

UCS_TEST_F(test_varuna_parse, ctl_from) {
    size_t device_len = ucs_offsetof(uct_varuna_ctl_hdr_t, from_device_len);
    size_t ctl_len    = ucs_offsetof(uct_varuna_ctl_hdr_t, from_ctl_len);
    size_t nic        = ucs_offsetof(uct_varuna_ctl_hdr_t, from_nic);
    unsigned with     = 0;
    uct_varuna_parsed_addr_t from;

    for (const std::string &data : all_msgs()) {
        if (!data[device_len]) {
            EXPECT_EQ(UCS_ERR_NO_ELEM,
                      uct_varuna_parse_ctl_from(data.data(), &from));
            /* Where it does not belong */
            EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                      parse_ctl(twist(twist(data + "ab", device_len, 1),
                                      ctl_len, 1)));
            continue;
        }

        ++with;
        ASSERT_UCS_OK(uct_varuna_parse_ctl_from(data.data(), &from));
        EXPECT_EQ(UUID, from.uuid);
        ASSERT_EQ(1u, from.num_links);
        EXPECT_EQ(2u, from.links[0].nic);
        EXPECT_TRUE(from.links[0].dc_addr == NULL);
        EXPECT_EQ("ddd", std::string((const char*)from.links[0].device_addr,
                                     from.links[0].device_len));
        EXPECT_EQ("qqqqq", std::string((const char*)from.links[0].ctl_addr,
                                       from.links[0].ctl_len));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, device_len, 0)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, ctl_len, 0)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, ctl_len, 6)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  parse_ctl(twist(data, nic, UCT_VARUNA_MAX_LINKS)));
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  parse_ctl(twist(data + fill(40, 'd'), device_len,
                                  UCT_VARUNA_DEVICE_ADDR_MAX + 1)));
    }
    EXPECT_GE(with, 3u);
}

UCS_TEST_F(test_varuna_parse, ctl_foreign) {
    for (const std::string &data : all_msgs()) {
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, 1, 0)));
        EXPECT_EQ(UCS_ERR_UNSUPPORTED,
                  parse_ctl(twist(data,
                                  ucs_offsetof(uct_varuna_ctl_hdr_t, version),
                                  UCT_VARUNA_WIRE_VERSION + 1)));
        EXPECT_TRUE(strstr(m_reason, "install") != NULL);
    }
}

/* Its header is shorter than ours */
UCS_TEST_F(test_varuna_parse, ctl_old) {
    std::string data(40, '\0');
    uint16_t magic = UCT_VARUNA_WIRE_MAGIC;
    uct_varuna_parsed_addr_t from;
    uct_varuna_ctl_hdr_t hdr;

    data.replace(0, sizeof(magic), bytes(magic));
    data[2]  = 10;
    data[3]  = UCT_VARUNA_CTL_PING;
    data[8]  = 7;
    data[24] = 8;
    data[28] = 9;
    data[36] = 3;
    data[37] = 5;
    data    += "dddqqqqq";
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, parse_ctl(data));
    for (size_t length = 0; length <= data.size(); ++length) {
        guarded_bytes cut(data.substr(0, length));
        EXPECT_EQ((length == data.size()) ? UCS_OK : UCS_ERR_INVALID_PARAM,
                  uct_varuna_parse_ctl_old(cut.data(), length, &hdr, &from));
    }

    ASSERT_UCS_OK(uct_varuna_parse_ctl_old(data.data(), data.size(), &hdr, &from));
    EXPECT_EQ(7u, hdr.dest);
    EXPECT_EQ(8u, hdr.vqp);
    EXPECT_EQ(9u, hdr.epoch);
    EXPECT_EQ(0u, hdr.secret);
    EXPECT_EQ("ddd", std::string((const char*)from.links[0].device_addr, 3));
    EXPECT_EQ("qqqqq", std::string((const char*)from.links[0].ctl_addr, 5));

    for (size_t pos : {0, 2, 36, 37}) {
        std::string other = twist(data, pos, 0);
        EXPECT_EQ(UCS_ERR_INVALID_PARAM,
                  uct_varuna_parse_ctl_old(other.data(), other.size(), &hdr,
                                           &from));
    }
}

UCS_TEST_F(test_varuna_parse, ctl_type) {
    std::string data = msg(UCT_VARUNA_CTL_CLOSE, 0);
    size_t offset    = ucs_offsetof(uct_varuna_ctl_hdr_t, type);

    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, offset, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(twist(data, offset, UCT_VARUNA_CTL_LAST)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(twist(data, offset, '\xff')));
    EXPECT_EQ(std::string("FENCE_REQ"),
              uct_varuna_ctl_type_name(UCT_VARUNA_CTL_FENCE_REQ));
    EXPECT_EQ(std::string("unknown"), uct_varuna_ctl_type_name(0));
    EXPECT_EQ(std::string("unknown"), uct_varuna_ctl_type_name(12345));
}

UCS_TEST_F(test_varuna_parse, ctl_epoch) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(fence_req(0)));
}

UCS_TEST_F(test_varuna_parse, ctl_fence_req) {
    EXPECT_UCS_OK(parse_ctl(fence_req(1)));
    /* What wire version 1 sent */
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(msg(UCT_VARUNA_CTL_FENCE_REQ, 1)));
}

UCS_TEST_F(test_varuna_parse, ctl_open_rep) {
    uct_varuna_ctl_open_rep_t rep;

    rep        = open_rep_body();
    rep.target = UCT_VARUNA_TARGET_ID_MAX;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep          = open_rep_body();
    rep.log_size = UCT_VARUNA_LOG_SIZE * 2;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep           = open_rep_body();
    rep.log_count = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    /* An arena; any UID that is found in memory can be looked up in it */
    rep             = open_rep_body();
    rep.slots_addr  = 0x10000;
    rep.marks_addr  = 0x20000;
    rep.own_addr    = 0x30000;
    rep.arena_slots = UCT_VARUNA_SLOTS_MAX;
    rep.first_slot  = UCT_VARUNA_SLOTS_MAX - 2;
    rep.num_slots   = 2;
    EXPECT_EQ(UCS_OK, parse_ctl(open_rep_arena(rep)));
    rep.first_slot  = UCT_VARUNA_SLOTS_MAX - 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep_arena(rep)));
    rep.first_slot  = 0;
    rep.arena_slots = UCT_VARUNA_SLOTS_MAX / 2;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep_arena(rep)));
    rep.arena_slots = UCT_VARUNA_SLOTS_MAX;
    rep.marks_addr  = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep_arena(rep)));
    rep.marks_addr  = 0x20000;
    rep.num_slots   = 0; /* Nor a key to write to them */
    EXPECT_EQ(UCS_OK, parse_ctl(open_rep_arena(rep)));

    rep          = open_rep_body();
    rep.log_addr = 0;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    /* Lengths which add up, but cut the key */
    rep           = open_rep_body();
    rep.rkey_len -= 8;
    rep.addr_len += 8;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep          = open_rep_body();
    rep.addr_len += rep.rkey_len - 1;
    rep.rkey_len = 1;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));

    rep          = open_rep_body();
    rep.rkey_len = 65535;
    rep.addr_len = 65535;
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(open_rep(rep)));
}

UCS_TEST_F(test_varuna_parse, ctl_connect) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 0, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 3, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0,
                                UCT_VARUNA_DEVICE_ADDR_MAX + 1, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 0, 3, 7,
                                UCT_VARUNA_MAX_LINKS)));
    /* Only answers report a failure, without addresses */
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 6, 3, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REQ, 6, 0, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REP, 6, 3, 7)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(connect(UCT_VARUNA_CTL_CONNECT_REP, 0, 0, 0)));
}

UCS_TEST_F(test_varuna_parse, ctl_fence_rep) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(fence_rep(UCT_VARUNA_FENCE_FLAG_LAST, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(fence_rep(UCT_VARUNA_FENCE_FLAG_PSN, 0x1000000)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(fence_rep(0, 0, UCT_VARUNA_LOG_SIZE / 2)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(fence_rep(0, 0, 0)));
    /* In order and not */
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(fence_rep(UCT_VARUNA_FENCE_FLAG_ORDERED |
                                                         UCT_VARUNA_FENCE_FLAG_UNORDERED, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(fence_rep(0, 0, UCT_VARUNA_LOG_SIZE, 1)));
}

UCS_TEST_F(test_varuna_parse, ctl_reject) {
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(reject(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(reject(1)));
}

UCS_TEST_F(test_varuna_parse, ctl_home_rep) {
    EXPECT_UCS_OK(parse_ctl(home_rep(UCS_OK)));
    EXPECT_UCS_OK(parse_ctl(home_rep(UCS_ERR_INVALID_ADDR)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(home_rep(UCS_INPROGRESS)));
}

UCS_TEST_F(test_varuna_parse, ctl_atomic_out_of_range) {
    EXPECT_UCS_OK(parse_ctl(atomic_req(1)));
    EXPECT_UCS_OK(parse_ctl(atomic_req(1, 5, 5)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_req(UCT_VARUNA_AMO_WINDOW + 1)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(1, 5, 6)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(1, 5, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_req(1, 5, 3, UCT_ATOMIC_OP_LAST)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_req(1, 5, 3, 0, 2)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_req(1, 5, 3, 0, 8, 0x1004)));
    EXPECT_UCS_OK(parse_ctl(atomic_req(1, 5, 3, 0, 4, 0x1004)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, parse_ctl(atomic_rep(0)));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM,
              parse_ctl(atomic_rep(UCT_VARUNA_AMO_WINDOW + 1)));
}
