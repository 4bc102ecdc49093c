/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What ports report, and how real ones differ.
 */

#include "test_emu.h"

class test_emu_port : public emu::test_emu {
protected:
    static uint64_t subnet_timeout(emu::side &s)
    {
        return (*s)("port", s.ctx).at(4);
    }
};

UCS_TEST_F(test_emu_port, subnet_timeout_is_opensms) {
    make_pair();
    EXPECT_EQ(18u, subnet_timeout(*a));
}

class test_emu_subnet : public test_emu_port {
protected:
    rcv::args_t fabric_options() const override
    {
        return {"--subnet-timeout", "10"};
    }
};

UCS_TEST_F(test_emu_subnet, timeout) {
    make_pair(1);
    EXPECT_EQ(10u, subnet_timeout(*a));
    EXPECT_EQ(10u, subnet_timeout(*b));
    EXPECT_NE(std::string::npos, fabric().command("status", {"--json"}).find(
              "\"subnet_timeout\": 10"));
}
