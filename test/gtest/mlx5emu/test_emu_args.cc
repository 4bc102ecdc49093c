/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Wrong arguments and unusual ways of use: verbs_args.cc does it, on a host of
 * a fabric, and prints what isn't as it should be.
 */

#include <common/test.h>

#include "common/emu_fabric.h"

class test_emu_args : public ucs::test_base,
                      public ::testing::TestWithParam<const char*> {
public:
    UCS_TEST_BASE_IMPL;

protected:
    static const double timeout_sec;
};

const double test_emu_args::timeout_sec = 60;


UCS_TEST_P(test_emu_args, group)
{
    rcv::fabric fabric;
    rcv::process_ptr p;

    p = fabric.start(0, {RCV_TOP_BUILDDIR "/test/gtest/verbs_args",
                         GetParam()});
    EXPECT_EQ(0, p->wait(timeout_sec)) << p->output();
    EXPECT_EQ("", p->output());
}

INSTANTIATE_TEST_SUITE_P(verbs, test_emu_args,
                         ::testing::Values("device", "memory", "cq", "qp",
                                           "srq", "post", "direct", "doorbell",
                                           "unsupported", "fork", "umem",
                                           "umem_fork", "signal"));
