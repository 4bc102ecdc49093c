/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which links of two hosts are said to be crossed.
 */
#include "fake_host.h"
#include "log_lines.h"

class test_varuna_cabling : public fake_host_test {
protected:
    struct port {
        unsigned    nic;
        unsigned    plane;
        std::string name;
    };

    virtual void init()
    {
        ucs::test::init();
        host.reset(new fake_host(3));
    }

    static std::string address(const std::vector<port> &ports, unsigned flags = 0)
    {
        uct_varuna_addr_t addr = {UCT_VARUNA_WIRE_MAGIC, UCT_VARUNA_WIRE_VERSION,
                                  (uint8_t)(ports.size() | flags), 0x5e};
        std::string text       = std::string((char*)&addr, sizeof(addr));

        for (const port &p : ports) {
            std::string device          = fake_lane::device_addr(fake_lane::lid(1, p.plane));
            uct_varuna_addr_link_t link = {(uint8_t)p.nic, (uint8_t)device.size(),
                                           fake_lane::ADDR_LEN, fake_lane::ADDR_LEN,
                                           (uint8_t)p.name.size(), 0};

            text += std::string((char*)&link, sizeof(link)) + device +
                    std::string(2 * fake_lane::ADDR_LEN, 'c') + p.name;
        }

        return text;
    }

    /* A peer with these ports. @return how many warnings its address causes. */
    unsigned meet(const std::vector<port> &ports)
    {
        std::string text        = address(ports);
        uct_varuna_peer_t *peer = NULL;
        log_lines lines;

        EXPECT_EQ(UCS_OK, uct_varuna_peer_get(host->ctl(), NULL, text.data(), text.size(),
                                              &peer));
        EXPECT_EQ(lines.count(), lines.count("wrong cabling? fake_")) << lines.last();
        host->drop(peer);
        return lines.count();
    }
};

UCS_TEST_F(test_varuna_cabling, as_it_should_be) {
    EXPECT_EQ(0u, meet({{0, 0, "a"}, {1, 1, "b"}, {2, 2, "c"}}));
}

UCS_TEST_F(test_varuna_cabling, crossed) {
    EXPECT_EQ(2u, meet({{0, 1, "a"}, {1, 0, "b"}, {2, 2, "c"}}));
}

/* The host gives the others its number */
UCS_TEST_F(test_varuna_cabling, peer_leaves_out_a_port) {
    EXPECT_EQ(0u, meet({{0, 1, "fake_1:1"}, {1, 2, "fake_2:1"}}));
    EXPECT_EQ(0u, meet({{0, 1, "b"}, {1, 2, "c"}})) << "hosts may name ports differently";
    EXPECT_EQ(0u, meet({{0, 0, "a"}, {1, 2, "c"}}));
}

UCS_TEST_F(test_varuna_cabling, each_leaves_out_another_port) {
    EXPECT_EQ(0u, meet({{0, 1, "fake_1:1"}, {1, 2, "fake_2:1"}, {2, 3, "fake_3:1"}}));
    EXPECT_EQ(2u, meet({{0, 1, "b"}, {1, 2, "c"}, {2, 3, "d"}})) <<
            "it cannot be told from wrong cables";
}

UCS_TEST_F(test_varuna_cabling, crossed_and_a_port_is_left_out) {
    EXPECT_EQ(2u, meet({{0, 1, "b"}, {1, 0, "a"}}));
}

/* UCP asks for each pair of interfaces: others of the peer's have other links */
UCS_TEST_F(test_varuna_cabling, interfaces_with_some_links) {
    std::string text = address({{1, 5, ""}}, UCT_VARUNA_ADDR_LIMITED);
    log_lines lines;

    text.reserve(UCT_VARUNA_IFACE_ADDR_MAX);
    host->iface()->md->vqp_links = 3;
    EXPECT_FALSE(uct_varuna_peer_is_reachable(host->iface(), NULL, text.data()));
    EXPECT_EQ(0u, lines.count()) << lines.last();

    text = address({{1, 5, ""}});
    text.reserve(UCT_VARUNA_IFACE_ADDR_MAX);
    for (unsigned i = 0; i < 2; ++i) {
        EXPECT_FALSE(uct_varuna_peer_is_reachable(host->iface(), NULL, text.data()));
    }
    EXPECT_LE(lines.count("none of our links reaches"), 1u) << "once for each process";
}
