/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Wrong arguments and unusual uses: runs verbs_args.cc on a host of a fabric, which
 * prints errors.
 */

#include <common/test.h>

#include "common/emu_fabric.h"

class test_emu_args : public ucs::test_base,
                      public ::testing::TestWithParam<const char*> {
public:
    UCS_TEST_BASE_IMPL;
};

class test_emu_explain : public ucs::test {
};


UCS_TEST_P(test_emu_args, group)
{
    rcv::fabric fabric;
    rcv::process_ptr p;

    p = fabric.start(0, {RCV_TOP_BUILDDIR "/test/gtest/verbs_args",
                         GetParam()});
    EXPECT_EQ(0, p->wait()) << p->output();
    EXPECT_EQ("", p->output());
}

/* Refused calls print the reason on request */
UCS_TEST_F(test_emu_explain, what_is_not_modelled) {
    rcv::fabric fabric;
    rcv::args_t program = {RCV_TOP_BUILDDIR "/test/gtest/verbs_args", ""};

    for (const char *line : {
                 "unsupported|ibv_attach_mcast: it is not modelled",
                 "unsupported|ibv_open_xrcd: it is not modelled",
                 "unsupported|ibv_alloc_dm: it is not modelled",
                 "unsupported|ibv_alloc_mw: it is not modelled",
                 "unsupported|ibv_create_wq: it is not modelled",
                 "unsupported|ibv_create_flow: it is not modelled",
                 "unsupported|ibv_query_rt_values_ex: it is not modelled",
                 "unsupported|rdma_create_event_channel: the RDMA connection manager",
                 "memory|ibv_reg_mr_iova2: on-demand paging, ",
                 "qp|ibv_create_qp: types other than RC, UD and DC are not",
                 "direct|mlx5dv_init_obj: such objects are not modelled"}) {
        std::string text = line;
        size_t bar       = text.find('|');

        program[1] = text.substr(0, bar);
        rcv::process_ptr p = fabric.start(0, program, {"MLX5EMU_EXPLAIN=1"});
        EXPECT_EQ(0, p->wait()) << p->output();
        EXPECT_NE(std::string::npos,
                  p->output().find("mlx5emu: " + text.substr(bar + 1)))
                << p->output();
    }
}

INSTANTIATE_TEST_SUITE_P(verbs, test_emu_args,
                         ::testing::Values("device", "device_list", "memory", "cq",
                                           "qp", "srq", "post", "direct", "doorbell",
                                           "unsupported", "fork", "umem",
                                           "umem_fork", "signal", "dv_cq", "caps",
                                           "srq_default", "resize_cq",
                                           "no_resize", "rereg_mr", "no_rereg", "pin",
                                           "pin_umem", "dmabuf"));
