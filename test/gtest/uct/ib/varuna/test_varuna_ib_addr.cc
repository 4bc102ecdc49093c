/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses of ports: those that UCX packs are accepted, but none on which it would
 * abort.
 */
#include <common/test.h>

extern "C" {
#include <uct/ib/base/ib_iface.h>
#include <uct/ib/varuna/lanes/varuna_ib_addr.h>
}

#include <vector>

class test_varuna_ib_addr : public ucs::test {
protected:
    typedef std::vector<uint8_t> addr_t;

    static addr_t ib(uint8_t flags, size_t rest)
    {
        addr_t addr(3 + rest, 0x11);

        addr[0] = flags;
        return addr;
    }

    static addr_t eth(uint8_t flags = 0)
    {
        addr_t addr(1 + 16, 0x11);

        addr[0] = flags | UCT_IB_ADDRESS_FLAG_LINK_LAYER_ETH;
        return addr;
    }

    static bool is_valid(const addr_t &addr, const addr_t &own)
    {
        return uct_varuna_ib_addr_is_valid(addr.data(), addr.size(), own.data());
    }

    static std::string print(const addr_t &addr)
    {
        char text[64];

        uct_varuna_ib_addr_print(addr.data(), addr.size(), text, sizeof(text));
        return text;
    }

    static bool is_valid(const addr_t &addr)
    {
        return is_valid(addr, ib(0, 0));
    }
};

UCS_TEST_F(test_varuna_ib_addr, infiniband) {
    EXPECT_TRUE(is_valid(ib(0, 0)));
    EXPECT_TRUE(is_valid(ib(UCT_IB_ADDRESS_FLAG_SUBNET16, 2)));
    EXPECT_TRUE(is_valid(ib(UCT_IB_ADDRESS_FLAG_SUBNET64, 8)));
    EXPECT_TRUE(is_valid(ib(UCT_IB_ADDRESS_FLAG_PKEY, 2)));
    EXPECT_FALSE(is_valid(ib(UCT_IB_ADDRESS_FLAG_SUBNET16 |
                             UCT_IB_ADDRESS_FLAG_SUBNET64, 10)));
    EXPECT_FALSE(is_valid(ib(UCT_IB_ADDRESS_FLAG_GID_INDEX, 1)));
}

UCS_TEST_F(test_varuna_ib_addr, for_people) {
    EXPECT_EQ("LID 4369", print(ib(0, 0)));
    EXPECT_EQ("LID 4369", print(ib(UCT_IB_ADDRESS_FLAG_IF_ID, 8)));
    EXPECT_EQ("LID 4369, subnet 0x1111", print(ib(UCT_IB_ADDRESS_FLAG_SUBNET16, 2)));
    EXPECT_EQ("LID 4369, subnet 0x1111111111111111",
              print(ib(UCT_IB_ADDRESS_FLAG_IF_ID | UCT_IB_ADDRESS_FLAG_SUBNET64, 16)));
    EXPECT_EQ("GID 1111:1111:1111:1111:1111:1111:1111:1111", print(eth()));
    EXPECT_EQ("?", print(ib(0, 1)));
    EXPECT_EQ("?", print(addr_t()));
}

UCS_TEST_F(test_varuna_ib_addr, length) {
    EXPECT_FALSE(uct_varuna_ib_addr_is_valid(NULL, 0, ib(0, 0).data()));
    EXPECT_FALSE(is_valid(addr_t(1, 0)));
    EXPECT_FALSE(is_valid(addr_t(2, 0)));
    EXPECT_FALSE(is_valid(ib(0, 1)));
    EXPECT_FALSE(is_valid(ib(UCT_IB_ADDRESS_FLAG_SUBNET64, 7)));
    EXPECT_FALSE(is_valid(ib(UCT_IB_ADDRESS_FLAG_PKEY, 0)));
}

UCS_TEST_F(test_varuna_ib_addr, lid) {
    addr_t addr = ib(0, 0);

    addr[1] = 0;
    addr[2] = 0;
    EXPECT_FALSE(is_valid(addr));
    addr[2] = 0xc0; /* Multicast */
    EXPECT_FALSE(is_valid(addr));
    addr[2] = 0xbf;
    EXPECT_TRUE(is_valid(addr));
}

/* If the local port needs a global address, a peer's port does too */
UCS_TEST_F(test_varuna_ib_addr, interface_id) {
    addr_t own  = ib(UCT_IB_ADDRESS_FLAG_IF_ID, 8);
    addr_t addr = own;

    EXPECT_TRUE(is_valid(addr, own));
    EXPECT_FALSE(is_valid(ib(0, 0), own));
    EXPECT_TRUE(is_valid(addr, ib(0, 0)));
    std::fill(addr.begin() + 3, addr.end(), 0);
    EXPECT_FALSE(is_valid(addr, own));
}

UCS_TEST_F(test_varuna_ib_addr, path_mtu) {
    addr_t addr = ib(UCT_IB_ADDRESS_FLAG_PATH_MTU, 1);
    addr_t both = ib(UCT_IB_ADDRESS_FLAG_PATH_MTU | UCT_IB_ADDRESS_FLAG_PKEY, 3);
    int mtu;

    for (mtu = 0; mtu < 256; ++mtu) {
        addr[3] = mtu;
        both[3] = mtu;
        EXPECT_EQ((mtu >= 1) && (mtu <= 5), is_valid(addr)) << mtu;
        EXPECT_EQ((mtu >= 1) && (mtu <= 5), is_valid(both)) << mtu;
        EXPECT_EQ(is_valid(addr) ? (128u << mtu) : 0,
                  uct_varuna_ib_addr_mtu(addr.data(), addr.size())) << mtu;
        EXPECT_EQ(is_valid(both) ? (128u << mtu) : 0,
                  uct_varuna_ib_addr_mtu(both.data(), both.size())) << mtu;
    }

    EXPECT_EQ(4096u, uct_varuna_ib_addr_mtu(ib(0, 0).data(), 3));
    EXPECT_EQ(4096u, uct_varuna_ib_addr_mtu(eth().data(), 17));
    EXPECT_EQ(0u, uct_varuna_ib_addr_mtu(addr.data(), addr.size() - 1));
    EXPECT_EQ(0u, uct_varuna_ib_addr_mtu(addr.data(), 0));
}

/* UCX takes a peer's path MTU as it is */
UCS_TEST_F(test_varuna_ib_addr, path_mtu_is_limited) {
    for (auto addr : {ib(UCT_IB_ADDRESS_FLAG_PATH_MTU, 1),
                      ib(UCT_IB_ADDRESS_FLAG_PATH_MTU | UCT_IB_ADDRESS_FLAG_PKEY, 3)}) {
        for (unsigned theirs = 1; theirs <= 5; ++theirs) {
            for (unsigned ours = 1; ours <= 5; ++ours) {
                addr_t limited = addr;

                addr[3] = limited[3] = theirs;
                uct_varuna_ib_addr_limit_mtu(limited.data(), limited.size(), 128u << ours);
                EXPECT_EQ(std::min(theirs, ours), limited[3]);
                limited[3] = theirs;
                EXPECT_EQ(addr, limited) << "nothing else changes";
            }
        }
    }

    addr_t without = ib(0, 0);
    uct_varuna_ib_addr_limit_mtu(without.data(), without.size(), 256);
    EXPECT_EQ(ib(0, 0), without);
}

UCS_TEST_F(test_varuna_ib_addr, ethernet) {
    addr_t addr = eth();

    EXPECT_TRUE(is_valid(addr, eth()));
    EXPECT_TRUE(is_valid(eth(UCT_IB_ADDRESS_FLAG_ROCE_IPV6), eth()));
    EXPECT_FALSE(is_valid(addr, ib(0, 0)));
    EXPECT_FALSE(is_valid(ib(0, 0), eth()));
    std::fill(addr.begin() + 9, addr.end(), 0);
    EXPECT_FALSE(is_valid(addr, eth()));
    addr.back() = 1;
    EXPECT_TRUE(is_valid(addr, eth()));
    addr[1] = 0xff; /* Multicast */
    EXPECT_FALSE(is_valid(addr, eth()));
    for (unsigned version = 0; version < 8; ++version) {
        EXPECT_EQ(version < 3, /* Then there is a wildcard */
                  is_valid(eth(version * UCT_IB_ADDRESS_FLAG_ETH_LAST), eth()));
    }
}
