/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The addresses that our interface writes, as a peer reads them: the full one, and the short
 * one, for which UCP has 63 bytes.
 */
#include "fake_host.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/ctl/varuna_ports.h>
}

#include <algorithm>
#include <cstring>
#include <random>

class test_varuna_addr : public fake_host_test {
protected:
    static constexpr unsigned MAX_LINKS = UCT_VARUNA_MAX_LINKS;
    static constexpr size_t DEVICE_LEN = 20;
    static constexpr size_t CTL_LEN    = 9;
    static constexpr char   GUARD      = 0x5a;

    /* An interface whose addresses differ in some bytes from one link to the next */
    void make(unsigned num_links, unsigned differ)
    {
        std::mt19937 random(num_links);
        std::string device(DEVICE_LEN, 1), ctl(CTL_LEN, 2);

        host.reset(new fake_host(num_links));
        device_addrs.clear();
        ctl_addrs.clear();
        for (unsigned link = 0; link < num_links; ++link) {
            for (unsigned i = 0; (link > 0) && (i < differ); ++i) {
                device[i % DEVICE_LEN] = random();
                ctl[i % CTL_LEN]       = random();
            }
            device_addrs.push_back(device);
            ctl_addrs.push_back(ctl);
        }

        for (unsigned link = 0; link < num_links; ++link) {
            uct_varuna_link_t *own          = &host->iface()->links[link];
            uct_varuna_ctl_link_t *ctl_link = &host->ctl()->links[link];

            own->nic                      = num_links - link - 1;
            own->device_addr              = (uct_device_addr_t*)&device_addrs[link][0];
            own->device_addr_len          = DEVICE_LEN;
            host->iface()->attr.device_addr_len = DEVICE_LEN;
            ctl_link->addr                = (uct_iface_addr_t*)&ctl_addrs[link][0];
            ctl_link->attr.iface_addr_len = CTL_LEN;
        }
    }

    /* Whatever a peer reads is what we have, for the first links */
    void check(const uct_varuna_parsed_addr_t &parsed, unsigned num_links)
    {
        EXPECT_EQ(fake_host::UUID, parsed.uuid);
        ASSERT_EQ(num_links, parsed.num_links);
        for (unsigned link = 0; link < num_links; ++link) {
            const uct_varuna_parsed_link_t &entry = parsed.links[link];

            EXPECT_EQ(host->iface()->links[link].nic, entry.nic);
            EXPECT_EQ(device_addrs[link],
                      std::string((const char*)entry.device_addr, entry.device_len));
            EXPECT_EQ(ctl_addrs[link],
                      std::string((const char*)entry.ctl_addr, entry.ctl_len));
        }
    }

    std::string full(size_t max)
    {
        std::string buffer(max + 1, GUARD);
        size_t length = uct_varuna_iface_pack_full_address(host->iface(), &buffer[0],
                                                           max);

        EXPECT_LE(length, max);
        EXPECT_EQ(buffer.size() - length,
                  (size_t)std::count(buffer.begin() + length, buffer.end(), GUARD))
                << "it writes after its end";
        return buffer.substr(0, length);
    }

    /* @return Links that had room */
    unsigned check_short()
    {
        std::string buffer(UCT_VARUNA_IFACE_ADDR_MAX + 8, GUARD);
        unsigned num_links = uct_varuna_iface_pack_short_address(host->iface(),
                                                                 &buffer[0]);
        uct_varuna_parsed_addr_t parsed;
        const char *reason = "";

        EXPECT_EQ(std::string(8, GUARD), buffer.substr(UCT_VARUNA_IFACE_ADDR_MAX));
        /* UCT gives no length */
        EXPECT_EQ(UCS_OK, uct_varuna_parse_addr(device_addrs[0].data(), buffer.data(),
                                                SIZE_MAX, &parsed, &reason)) << reason;
        EXPECT_TRUE(parsed.is_short);
        check(parsed, num_links);
        for (unsigned link = 0; link < num_links; ++link) {
            EXPECT_TRUE(parsed.links[link].dc_addr == NULL);
        }
        EXPECT_EQ(std::string(UCT_VARUNA_IFACE_ADDR_MAX - parsed.length, 0),
                  buffer.substr(parsed.length,
                                UCT_VARUNA_IFACE_ADDR_MAX - parsed.length))
                << "something is left after the last link";
        return num_links;
    }

    std::vector<std::string>   device_addrs, ctl_addrs;
};

UCS_TEST_F(test_varuna_addr, full_address_has_all_links) {
    for (unsigned num_links = 1; num_links <= MAX_LINKS; ++num_links) {
        uct_varuna_parsed_addr_t parsed;
        const char *reason = "";
        std::string addr;

        make(num_links, DEVICE_LEN);
        addr = full(1000);
        EXPECT_EQ(UCS_OK, uct_varuna_parse_addr(NULL, addr.data(), addr.size(), &parsed,
                                                &reason)) << reason;
        EXPECT_FALSE(parsed.is_short);
        EXPECT_EQ(addr.size(), parsed.length);
        check(parsed, num_links);
        for (unsigned link = 0; link < num_links; ++link) {
            EXPECT_EQ(std::string(fake_lane::ADDR_LEN, 0xa),
                      std::string((const char*)parsed.links[link].dc_addr,
                                  parsed.links[link].dc_len));
        }
    }
}

/* Whatever room there is: whole links, the first ones */
UCS_TEST_F(test_varuna_addr, full_address_in_a_small_buffer) {
    unsigned last = 0;
    size_t whole;

    make(4, DEVICE_LEN);
    whole = full(1000).size();
    for (size_t max = sizeof(uct_varuna_addr_t); max <= whole; ++max) {
        uct_varuna_addr_t addr;
        std::string packed = full(max);

        memcpy(&addr, packed.data(), sizeof(addr));
        EXPECT_GE(addr.num_links, last);
        EXPECT_EQ(sizeof(addr) + (addr.num_links * ((whole - sizeof(addr)) / 4)),
                  packed.size());
        last = addr.num_links;
    }
    EXPECT_EQ(4u, last);
}

/* As on a fabric with one subnet prefix: LIDs and numbers of queue pairs differ */
UCS_TEST_F(test_varuna_addr, short_address_of_similar_links) {
    for (unsigned num_links = 1; num_links <= 4; ++num_links) {
        make(num_links, 2);
        EXPECT_EQ(num_links, check_short());
    }
}

/* The peer learns the others from the first answer */
UCS_TEST_F(test_varuna_addr, short_address_of_unlike_links) {
    unsigned last = MAX_LINKS;

    for (unsigned differ = 0; differ <= DEVICE_LEN; ++differ) {
        unsigned fits;

        make(MAX_LINKS, differ);
        fits = check_short();
        EXPECT_GE(fits, 1u) << "a peer must reach us";
        EXPECT_LE(fits, last) << differ;
        last = fits;
    }
    EXPECT_LT(last, MAX_LINKS);
}

UCS_TEST_F(test_varuna_addr, short_address_needs_its_device_address) {
    std::string buffer(UCT_VARUNA_IFACE_ADDR_MAX, 0);
    uct_varuna_parsed_addr_t parsed;
    const char *reason;

    make(2, 2);
    uct_varuna_iface_pack_short_address(host->iface(), &buffer[0]);
    EXPECT_NE(UCS_OK, uct_varuna_parse_addr(NULL, buffer.data(), SIZE_MAX, &parsed,
                                            &reason));
}
