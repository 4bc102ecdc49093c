/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks of addresses: well-formed ones are accepted, truncated, extended or changed ones
 * are refused, and nothing is read after their end.
 */
#include "test_varuna_parse.h"

extern "C" {
#include <uct/ib/varuna/core/varuna_msg.h>
}

UCS_TEST_F(test_varuna_parse, addr_full) {
    std::string addr = full_addr(UCT_VARUNA_MAX_LINKS);

    ASSERT_UCS_OK(parse_addr(addr));
    EXPECT_EQ(UUID, m_parsed.uuid);
    EXPECT_EQ(addr.size(), m_parsed.length);
    ASSERT_EQ((unsigned)UCT_VARUNA_MAX_LINKS, m_parsed.num_links);
    for (unsigned i = 0; i < m_parsed.num_links; ++i) {
        EXPECT_EQ(i, m_parsed.links[i].nic);
        EXPECT_EQ(fill(17, 'a' + i), m_device[i]);
        EXPECT_EQ(fill(5, 'A' + i), m_dc[i]);
        EXPECT_EQ(fill(5, '0' + i), m_ctl[i]);
    }
}

/* They are printed: a peer must not write lines of our log */
UCS_TEST_F(test_varuna_parse, addr_names) {
    const size_t name_len = ucs_offsetof(uct_varuna_addr_link_t, name_len);
    std::string entry     = link(0, 17);

    for (std::string name : {"mlx5_0:1", "x", ""}) {
        entry[name_len] = name.size();
        ASSERT_UCS_OK(parse_addr(addr_header(1) + entry + name));
        EXPECT_EQ(name.size(), m_parsed.links[0].name_len);
    }

    for (std::string name : {"a\nb", "a b", "\x7f"}) {
        entry[name_len] = name.size();
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr_header(1) + entry + name));
    }

    entry[name_len] = UCT_VARUNA_NAME_MAX;
    EXPECT_UCS_OK(parse_addr(addr_header(1) + entry + fill(UCT_VARUNA_NAME_MAX, 'a')));
    entry[name_len] = UCT_VARUNA_NAME_MAX + 1;
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(1) + entry + fill(UCT_VARUNA_NAME_MAX + 1, 'a')));
}

UCS_TEST_F(test_varuna_parse, addr_short) {
    std::string addr = short_addr();

    ASSERT_LE(addr.size(), (size_t)UCT_VARUNA_IFACE_ADDR_MAX);
    ASSERT_UCS_OK(parse_addr(addr));
    EXPECT_TRUE(m_parsed.is_short);
    ASSERT_EQ(2u, m_parsed.num_links);
    EXPECT_EQ(0u, m_parsed.links[0].nic);
    EXPECT_EQ("xyz", m_device[0]);
    EXPECT_EQ("01234", m_ctl[0]);
    EXPECT_EQ(3u, m_parsed.links[1].nic);
    EXPECT_EQ("xYz", m_device[1]);
    EXPECT_EQ("0!234", m_ctl[1]);
    for (unsigned i = 0; i < m_parsed.num_links; ++i) {
        EXPECT_TRUE(m_parsed.links[i].dc_addr == NULL);
        EXPECT_EQ(0u, m_parsed.links[i].dc_len);
    }
}

/* Control messages have no device address beside them */
UCS_TEST_F(test_varuna_parse, addr_short_alone) {
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(short_addr(), true, ""));
    EXPECT_TRUE(strstr(m_reason, "short") != NULL);
    EXPECT_UCS_OK(parse_addr(full_addr(), true, ""));
}

UCS_TEST_F(test_varuna_parse, addr_short_out_of_range) {
    std::string good = std::string("\0\x1f", 2) + "01234";

    EXPECT_UCS_OK(parse_addr(short_header(1) + short_entry(0, 3, good)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(short_header(0)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(UCT_VARUNA_MAX_LINKS + 1) +
                         fill(400, '\0')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1) + short_entry(0, 0, good)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, 0) + short_entry(0, 3, good)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, UCT_VARUNA_DEVICE_ADDR_MAX + 1) +
                         short_entry(0, 3, good), true, fill(64, 'x')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, 3, 0) +
                         short_entry(0, 3, std::string(1, '\0'))));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(1, 3, UCT_VARUNA_CTL_ADDR_MAX + 1) +
                         short_entry(0, 3, fill(40, '\0'))));
    /* One link twice */
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(short_header(2) + short_entry(1, 3, good) +
                         short_entry(1, 3, std::string("\0\0", 2))));
    EXPECT_TRUE(strstr(m_reason, "twice") != NULL);
}

/* The packed address can be parsed, and uses at most the given bytes */
UCS_TEST_F(test_varuna_parse, delta) {
    for (int round = 0; round < 300; ++round) {
        std::string base(ucs::rand() % 32, 0), data(1 + ucs::rand() % 31, 0);
        std::string buffer(40, '?'), read(data.size(), 0);
        size_t size, max;

        for (size_t i = 0; i < base.size(); ++i) {
            base[i] = ucs::rand() % 3;
        }
        for (size_t i = 0; i < data.size(); ++i) {
            data[i] = ucs::rand() % 3;
        }

        size = uct_varuna_delta_write(base.data(), base.size(), data.data(),
                                      data.size(), &buffer[0], buffer.size());
        ASSERT_GE(size, UCT_VARUNA_DELTA_MAP_SIZE(data.size()));
        ASSERT_LE(size, UCT_VARUNA_DELTA_MAP_SIZE(data.size()) + data.size());

        guarded_bytes exact(buffer.substr(0, size));
        ASSERT_EQ(size, uct_varuna_delta_read(base.data(), base.size(), &read[0],
                                              read.size(), exact.data(), size));
        ASSERT_EQ(data, read);

        max = ucs::rand() % size;
        guarded_bytes cut(buffer.substr(0, max));
        ASSERT_EQ(0u, uct_varuna_delta_read(base.data(), base.size(), &read[0],
                                            read.size(), cut.data(), max));
        buffer.assign(40, '?');
        ASSERT_EQ(0u, uct_varuna_delta_write(base.data(), base.size(),
                                             data.data(), data.size(),
                                             &buffer[0], max));
        ASSERT_EQ(std::string(40 - max, '?'), buffer.substr(max));
    }
}

/* The caller cannot know the length: other bytes follow */
UCS_TEST_F(test_varuna_parse, addr_unknown_length) {
    std::string addr = short_addr();

    ASSERT_UCS_OK(parse_addr(addr + fill(100, 'x'), false));
    EXPECT_EQ(addr.size(), m_parsed.length);
    ASSERT_UCS_OK(parse_addr(addr, false));

    /* But it is never longer than UCP's format allows: no more is read */
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(full_addr().substr(0, UCT_VARUNA_IFACE_ADDR_MAX),
                         false));
}

UCS_TEST_F(test_varuna_parse, addr_cut) {
    for (const std::string &addr : {short_addr(), full_addr()}) {
        for (size_t length = 0; length < addr.size(); ++length) {
            EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr.substr(0, length)))
                    << "length " << length;
        }
        EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr + "x"));
    }
}

UCS_TEST_F(test_varuna_parse, addr_foreign) {
    std::string addr = short_addr();

    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(twist(addr, 0, 0)));
    /* A host of the other byte order */
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(twist(twist(addr, 0, addr[1]), 1, addr[0])));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              parse_addr(twist(addr,
                               ucs_offsetof(uct_varuna_addr_t, version),
                               UCT_VARUNA_WIRE_VERSION + 1)));
    EXPECT_TRUE(strstr(m_reason, "install") != NULL);
}

UCS_TEST_F(test_varuna_parse, addr_links_out_of_range) {
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr_header(0)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(UCT_VARUNA_MAX_LINKS + 1) +
                         fill(400, '\0')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(255) + fill(8000, '\1')));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(1) + link(UCT_VARUNA_MAX_LINKS, 3)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(2) + link(1, 3) + link(1, 3)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR, parse_addr(addr_header(1) + link(0, 0)));
    EXPECT_EQ(UCS_ERR_INVALID_ADDR,
              parse_addr(addr_header(1) +
                         link(0, UCT_VARUNA_DEVICE_ADDR_MAX + 1)));
    EXPECT_EQ(UCS_OK, parse_addr(addr_header(1) +
                                 link(0, UCT_VARUNA_DEVICE_ADDR_MAX)));
}

/* Nonsense is refused or accepted, but nothing beyond it is read. Whole bytes
 * of good input are replaced, so that many get past the first checks. */
UCS_TEST_F(test_varuna_parse, nonsense) {
    unsigned accepted = 0;

    for (int i = 0; i < 2000; ++i) {
        std::vector<std::string> msgs = all_msgs();
        std::string data              = msgs[ucs::rand() % msgs.size()];
        std::string addr              = (i % 2) ? short_addr() : full_addr();

        for (int j = 0; j < 1 + (i % 3); ++j) {
            data[ucs::rand() % data.size()] = ucs::rand();
            addr[ucs::rand() % addr.size()] = ucs::rand();
        }
        accepted += (parse_ctl(data) == UCS_OK);
        accepted += (parse_addr(addr) == UCS_OK);
        /* Of unknown length: up to UCP's limit it may be anybody's bytes */
        parse_addr(addr + fill(UCT_VARUNA_IFACE_ADDR_MAX, 'x'), false);
    }

    /* Else this has tested nothing but the magic */
    EXPECT_GT(accepted, 100u);
}
