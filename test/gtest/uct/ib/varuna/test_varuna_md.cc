/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links and the memory domain.
 */
#include "test_varuna_md.h"

extern "C" {
#include <uct/ib/varuna/md/varuna_md.h>
#include <ucs/memory/memtype_cache.h>
}

#include <chrono>
#include <future>

/* From now on, UCX takes memory for a GPU's */
static void become_device(const void *memory, size_t length)
{
    ucs_memory_info_t info;

    ucs_memtype_cache_lookup(memory, length, &info); /* Makes the cache */
#if UCT_VARUNA_UCX_AT_LEAST(1, 22)
    ucs_memtype_cache_update(memory, length, UCS_MEMORY_TYPE_CUDA,
                             UCS_SYS_DEVICE_ID_UNKNOWN, UCS_MEM_FLAG_REGISTRABLE);
#else
    ucs_memtype_cache_update(memory, length, UCS_MEMORY_TYPE_CUDA,
                             UCS_SYS_DEVICE_ID_UNKNOWN);
#endif
}

/* --- Links ----------------------------------------------------------------- */

UCS_TEST_F(test_varuna_md, links_in_natural_order) {
    add("mlx5_10");
    add("mlx5_2");
    add("mlx5_0", 2);
    open();
    EXPECT_EQ("varuna_mlx5_0:1,varuna_mlx5_0:2,varuna_mlx5_2:1,"
              "varuna_mlx5_10:1", links());
}

UCS_TEST_F(test_varuna_md, refuses_relaxed_ordering) {
    add_many(2);
    m_ib.forget_relaxed_ordering();
    open_fails({"all"}, UCS_ERR_NO_ELEM, "Set UCX_IB_PCI_RELAXED_ORDERING=off");
}

UCS_TEST_F(test_varuna_md, links_by_name) {
    add_many(3);
    open({"mlx5_2:1", "varuna_mlx5_0:1", "mlx5_1"});
    EXPECT_EQ("varuna_mlx5_2:1,varuna_mlx5_0:1,varuna_mlx5_1:1", links());
}

UCS_TEST_F(test_varuna_md, links_all_after_a_name) {
    add_many(3);
    open({"mlx5_1:1", "all"});
    EXPECT_EQ("varuna_mlx5_1:1,varuna_mlx5_0:1,varuna_mlx5_2:1", links());
}

/* As UCX_RC_VARUNA_VQP_LINKS says; by default, all that are named */
UCS_TEST_F(test_varuna_md, links_of_a_vqp) {
    add_many(4);
    open();
    EXPECT_EQ(2u, m_md->vqp_links);
    open({"mlx5_3", "all"});
    EXPECT_EQ(2u, m_md->vqp_links);
    open({"mlx5_3", "mlx5_0", "mlx5_1"});
    EXPECT_LE(3u, m_md->vqp_links);
    m_vqp_links = 3;
    open();
    EXPECT_EQ(3u, m_md->vqp_links);
    m_vqp_links = UCS_ULUNITS_INF;
    open();
    EXPECT_EQ(unsigned(UCT_VARUNA_MAX_LINKS), m_md->vqp_links);
    EXPECT_FALSE(m_md->order_is_given);
    m_vqp_links = 0;
    open_fails({"all"}, UCS_ERR_INVALID_PARAM,
               "UCX_RC_VARUNA_VQP_LINKS=0: a vQP needs a link");
}

UCS_TEST_F(test_varuna_md, links_device_means_all_ports) {
    add("mlx5_1", 2);
    add("mlx5_11");
    open({"mlx5_11", "mlx5_1"});
    EXPECT_EQ("varuna_mlx5_11:1,varuna_mlx5_1:1,varuna_mlx5_1:2", links());
}

UCS_TEST_F(test_varuna_md, links_keep_canonical_nic_numbers) {
    add_many(3);
    open({"mlx5_2"});
    ASSERT_EQ(1u, m_md->num_links);
    EXPECT_EQ(2u, m_md->links[0]);
    EXPECT_EQ(3u, m_md->num_nics);
    EXPECT_STREQ("mlx5_2:1", m_md->nics[2].dev_name);
    /* The others aren't kept open */
    EXPECT_EQ(1u, m_ib.num_open_mds);
}

UCS_TEST_F(test_varuna_md, links_all_up_to_the_maximum) {
    add_many(UCT_VARUNA_MAX_LINKS + 2);
    open();
    EXPECT_EQ(unsigned(UCT_VARUNA_MAX_LINKS), m_md->num_links);
    EXPECT_EQ(unsigned(UCT_VARUNA_MAX_LINKS), m_ib.num_open_mds);
}

UCS_TEST_F(test_varuna_md, links_any_of_too_many_nics) {
    add_many(UCT_VARUNA_MAX_LINKS + 4);
    open({"mlx5_11", "mlx5_3"});
    EXPECT_EQ("varuna_mlx5_11:1,varuna_mlx5_3:1", links());
    EXPECT_EQ(2u, m_md->num_nics);
}

UCS_TEST_F(test_varuna_md, links_unknown_name) {
    add_many(2);
    open_fails({"mlx5_7:1"}, UCS_ERR_NO_DEVICE,
               "no port 'mlx5_7:1' with rc_mlx5 and dc_mlx5, or rc_verbs (there are: "
               "mlx5_0:1,mlx5_1:1)");
    open_fails({"mlx5"}, UCS_ERR_NO_DEVICE, "no port 'mlx5'");
    open_fails({"mlx5_0:"}, UCS_ERR_NO_DEVICE, "no port 'mlx5_0:'");
    open_fails({""}, UCS_ERR_NO_DEVICE, "no port ''");
}

/* It keeps its place, so that the others have the same numbers as elsewhere */
UCS_TEST_F(test_varuna_md, links_missing_name) {
    add("mlx5_1");
    add("mlx5_3");
    for (unsigned i = 0; i < 3; ++i) {
        scoped_log_handler slh(wrap_warns_logger);

        close();
        ASSERT_UCS_OK(open_status({"mlx5_3", "varuna_mlx5_0", "mlx5_1:1"}));
        EXPECT_EQ("varuna_mlx5_3:1,varuna_mlx5_1:1", links());
        EXPECT_EQ(3u, m_md->num_nics);
        EXPECT_EQ(2u, m_md->links[0]);
        EXPECT_EQ(1u, m_md->links[1]);
        EXPECT_STREQ("mlx5_0:1", m_md->nics[0].dev_name);
    }
    ASSERT_EQ(1u, m_warnings.size()) << "one in a process";
    EXPECT_NE(std::string::npos,
              m_warnings[0].find("UCX_RC_VARUNA_LINKS: there is no port "
                                 "'varuna_mlx5_0' with rc_mlx5 and dc_mlx5, or rc_verbs (there "
                                 "are: mlx5_1:1,mlx5_3:1)")) << m_warnings[0];
    m_warnings.clear();
}

/* So do ports that are down, which become links when they come up */
UCS_TEST_F(test_varuna_md, links_ports_that_are_down) {
    uct_mem_h memh;

    add_many(3);
    m_ib.devices[0].ports_down = UCS_BIT(1);
    m_ib.devices[2].ports_down = UCS_BIT(2);
    open();
    EXPECT_EQ("varuna_mlx5_0:1,varuna_mlx5_1:1,varuna_mlx5_2:1", links());
    EXPECT_TRUE(m_md->nics[0].was_down);
    EXPECT_FALSE(m_md->nics[1].was_down);
    EXPECT_FALSE(m_md->nics[2].was_down) << "another port of it";
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(3u, m_ib.num_mems);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* UCP then chooses another transport */
UCS_TEST_F(test_varuna_md, links_all_ports_are_down) {
    add_many(2);
    m_ib.devices[0].ports_down = UCS_BIT(1);
    m_ib.devices[1].ports_down = UCS_BIT(1);
    EXPECT_EQ(UCS_ERR_NO_DEVICE, open_status());
}

/* Of too many, those that are up */
UCS_TEST_F(test_varuna_md, links_too_many_ports_some_are_down) {
    add_many(UCT_VARUNA_MAX_LINKS + 1);
    m_ib.devices[2].ports_down = UCS_BIT(1);
    open();
    EXPECT_EQ(unsigned(UCT_VARUNA_MAX_LINKS), m_md->num_links);
    EXPECT_STREQ("mlx5_3:1", m_md->nics[m_md->links[2]].dev_name);
}

UCS_TEST_F(test_varuna_md, links_duplicate_name) {
    add("mlx5_0", 2);
    open_fails({"mlx5_0:1", "varuna_mlx5_0:1"}, UCS_ERR_INVALID_PARAM,
               "'varuna_mlx5_0:1' names mlx5_0:1 a second time (there are: "
               "mlx5_0:1,mlx5_0:2)");
    open_fails({"mlx5_0:2", "mlx5_0"}, UCS_ERR_INVALID_PARAM,
               "'mlx5_0' names mlx5_0:2 a second time");
    open_fails({"all", "mlx5_0:1"}, UCS_ERR_INVALID_PARAM,
               "'mlx5_0:1' names mlx5_0:1 a second time");
}

UCS_TEST_F(test_varuna_md, links_too_many_names) {
    names_t names;

    add_many(UCT_VARUNA_MAX_LINKS + 1);
    for (const fake_ib::device &device : m_ib.devices) {
        names.push_back(device.name);
    }
    open_fails(names, UCS_ERR_INVALID_PARAM, "'mlx5_8' is one too many");
}

UCS_TEST_F(test_varuna_md, links_empty) {
    add_many(2);
    open_fails({}, UCS_ERR_INVALID_PARAM, "names no link");
}

UCS_TEST_F(test_varuna_md, links_need_both_lanes) {
    add_many(3);
    m_ib.devices[1].has_dc = false;
    open();
    EXPECT_EQ("varuna_mlx5_0:1,varuna_mlx5_2:1", links());
    EXPECT_EQ(2u, m_ib.num_open_mds);
    open_fails({"mlx5_1"}, UCS_ERR_NO_DEVICE, "no port 'mlx5_1'");
}

UCS_TEST_F(test_varuna_md, links_skip_broken_device) {
    add_many(3);
    m_ib.devices[0].can_open = false;
    open();
    EXPECT_EQ("varuna_mlx5_1:1,varuna_mlx5_2:1", links());
}

UCS_TEST_F(test_varuna_md, no_nic_is_no_error) {
    /* The harness would complain about a message */
    EXPECT_EQ(UCS_ERR_NO_DEVICE, open_status());
    add_many(1);
    m_ib.devices[0].has_dc = false;
    EXPECT_EQ(UCS_ERR_NO_DEVICE, open_status());
    open_fails({"mlx5_0"}, UCS_ERR_NO_DEVICE, "(there are: none)");
}

/* --- Memory ---------------------------------------------------------------- */

UCS_TEST_F(test_varuna_md, attr_is_what_all_can_do) {
    uct_md_attr_t attr;

    add_many(2);
    m_ib.devices[0].md_flags &= ~UCT_MD_FLAG_ADVISE;
    m_ib.devices[1].max_reg   = 12345;
    open();
    ASSERT_UCS_OK(uct_md_query(&m_md->super, &attr));
    EXPECT_EQ(uint64_t(UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH |
                       UCT_MD_FLAG_NEED_RKEY | UCT_MD_FLAG_INVALIDATE),
              attr.cap.flags);
    EXPECT_EQ(12345u, attr.cap.max_reg);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.cap.reg_mem_types);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.cap.access_mem_types);
    EXPECT_EQ(0u, attr.cap.alloc_mem_types);
    EXPECT_NEAR(2e-6, attr.reg_cost.c, 1e-9);
    EXPECT_NEAR(2e-9, attr.reg_cost.m, 1e-12);
    EXPECT_EQ(sizeof(uct_varuna_packed_rkey_t) + (2 * sizeof(uct_varuna_packed_key_t)),
              attr.rkey_packed_size);
}

UCS_TEST_F(test_varuna_md, reg_on_all_links) {
    uct_mem_h memh;

    add_many(4);
    open({"mlx5_3", "mlx5_0", "mlx5_1"});
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(3u, m_ib.num_mems);
    for (unsigned nic : {0, 1, 3}) {
        fake_ib::mem *mem = (fake_ib::mem*)uct_varuna_mem_inner(memh, nic);
        ASSERT_TRUE(mem != NULL);
        EXPECT_EQ("mlx5_" + ucs::to_string(nic), mem->md_name);
    }
    EXPECT_TRUE(NULL == uct_varuna_mem_inner(memh, 2));
    EXPECT_TRUE(NULL == uct_varuna_mem_inner(UCT_MEM_HANDLE_NULL, 0));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(0u, m_ib.num_mems);
}

UCS_TEST_F(test_varuna_md, reg_once_for_the_ports_of_a_device) {
    uct_mem_h memh;

    add("mlx5_0", 2);
    add("mlx5_1", 2);
    open({"mlx5_0:2", "mlx5_1"});
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(2u, m_ib.num_mems);
    EXPECT_EQ(2u, m_ib.num_regs);
    EXPECT_TRUE(NULL == uct_varuna_mem_inner(memh, 0));
    EXPECT_TRUE(NULL != uct_varuna_mem_inner(memh, 1));
    EXPECT_EQ(uct_varuna_mem_inner(memh, 2), uct_varuna_mem_inner(memh, 3));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(2u, m_ib.num_deregs);
}

UCS_TEST_F(test_varuna_md, reg_unwinds_at_each_nic) {
    const unsigned count = 4;
    uct_mem_h memh;

    add_many(count);
    open();
    for (m_ib.fail_reg = 1; m_ib.fail_reg <= count; ++m_ib.fail_reg) {
        m_ib.num_regs = 0;
        EXPECT_EQ(UCS_ERR_IO_ERROR, reg(&memh)) << "without spares";
        EXPECT_EQ(count, m_ib.num_regs);
        EXPECT_EQ(0u, m_ib.num_mems);
    }

    m_ib.num_regs = 0;
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

static bool nic_is_dead;

static int is_dead(uct_md_h md)
{
    return nic_is_dead;
}

/* A NIC that has no region left is asked again later, and meanwhile the others have the
 * memory, as keys say. What no NIC registers is an error, and no shortage. */
UCS_TEST_F(test_varuna_md, reg_without_a_short_nic) {
    scoped_log_handler slh(hide_warns_logger);
    char buffer[MAX_KEY] = {};
    uct_mem_h before, during, after;
    uct_varuna_rkey_t *rkey;

    nic_is_dead = false;
    add_many(3);
    open();
    m_md->is_dead = is_dead;
    ASSERT_UCS_OK(reg(&before));

    m_ib.num_regs = 0;
    m_ib.fail_reg = 2;
    ASSERT_UCS_OK(reg(&during));
    EXPECT_EQ(m_md->nics[1].spare, uct_varuna_mem_inner(during, 1));
    ASSERT_UCS_OK(pack(during, buffer, 0));
    ASSERT_UCS_OK(unpack(buffer, &rkey));
    EXPECT_NE(UCT_INVALID_RKEY, uct_varuna_rkey_inner((uct_rkey_t)rkey, 0));
    EXPECT_EQ(UCT_INVALID_RKEY, uct_varuna_rkey_inner((uct_rkey_t)rkey, 1));
    uct_varuna_rkey_release(m_ib.component(), rkey);
    ASSERT_EQ(1u, m_warnings.size());
    EXPECT_NE(std::string::npos, m_warnings[0].find("mlx5_1:1 gives no memory region"));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, during));

    m_ib.num_regs = m_ib.fail_reg = 0;
    ASSERT_UCS_OK(reg(&during));
    EXPECT_EQ(2u, m_ib.num_regs) << "it is not asked again so soon";
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, during));

    m_md->nics[1].shortages[UCT_VARUNA_SHORT_MR].backoff.due = 0; /* Time passes */
    ASSERT_UCS_OK(reg(&after));
    EXPECT_NE(m_md->nics[1].spare, uct_varuna_mem_inner(after, 1));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, before));
    EXPECT_EQ(1u, m_warnings.size());
}

/* Memory that no NIC registers says nothing about the NICs */
UCS_TEST_F(test_varuna_md, reg_of_what_cannot_be_registered) {
    scoped_log_handler slh(hide_errors_logger);
    uct_mem_h memh;

    nic_is_dead = false;
    add_many(1);
    open();
    m_md->is_dead = is_dead;
    for (unsigned i = 0; i < 3; ++i) {
        m_ib.num_regs = 0;
        m_ib.fail_reg = 1;
        EXPECT_EQ(UCS_ERR_IO_ERROR, reg(&memh));
        EXPECT_EQ(1u, m_ib.num_regs);
    }
    ASSERT_FALSE(m_errors.empty());
    EXPECT_NE(std::string::npos,
              m_errors.back().find("if it is a GPU's, UCX_TLS needs a transport that knows it"));
    m_ib.num_regs = m_ib.fail_reg = 0;
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* If others have the region, a NIC without any is not used as a link: nothing may be posted
 * there with it */
UCS_TEST_F(test_varuna_md, reg_without_a_nic_that_has_no_spare) {
    scoped_log_handler slh(hide_warns_logger);
    uct_mem_h memh;

    nic_is_dead = false;
    add_many(2);
    open();
    m_md->is_dead = is_dead;
    m_md->nics[1].shortages[UCT_VARUNA_SHORT_MR].backoff = {UCS_TIME_INFINITY, 1, UCS_ERR_NO_MEMORY};
    m_ib.num_regs                    = 0;
    m_ib.fail_reg                    = 3; /* The region and the spare of the first one succeed */
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_TRUE(NULL == uct_varuna_mem_inner(memh, 1));
    m_ib.fail_reg = 0;
    EXPECT_UCS_OK(uct_varuna_md_prepare_nic(m_md, 0));
    EXPECT_EQ(UCS_ERR_NO_MEMORY, uct_varuna_md_prepare_nic(m_md, 1));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* A dead NIC can register nothing. The others continue without it, and keys reflect
 * this. */
UCS_TEST_F(test_varuna_md, reg_without_a_dead_nic) {
    scoped_log_handler slh(hide_warns_logger);
    char buffer[MAX_KEY] = {};
    uct_mem_h before, after;
    uct_varuna_rkey_t *rkey;

    nic_is_dead = false;
    add_many(3);
    open();
    m_md->is_dead = is_dead;
    ASSERT_UCS_OK(reg(&before));
    EXPECT_EQ(6u, m_ib.num_mems); /* Each NIC also has a spare */

    nic_is_dead   = true;
    m_ib.num_regs = 0;
    m_ib.fail_reg = 2;
    ASSERT_UCS_OK(reg(&after));
    EXPECT_EQ(8u, m_ib.num_mems);
    EXPECT_TRUE(NULL != uct_varuna_mem_inner(after, 1));
    EXPECT_NE(uct_varuna_mem_inner(before, 1), uct_varuna_mem_inner(after, 1));

    ASSERT_UCS_OK(pack(after, buffer, 0));
    ASSERT_UCS_OK(unpack(buffer, &rkey));
    EXPECT_NE(UCT_INVALID_RKEY, uct_varuna_rkey_inner((uct_rkey_t)rkey, 0));
    EXPECT_EQ(UCT_INVALID_RKEY, uct_varuna_rkey_inner((uct_rkey_t)rkey, 1));
    EXPECT_NE(UCT_INVALID_RKEY, uct_varuna_rkey_inner((uct_rkey_t)rkey, 2));
    uct_varuna_rkey_release(m_ib.component(), rkey);

    EXPECT_UCS_OK(uct_md_mem_advise(&m_md->super, after, m_buffer,
                                    sizeof(m_buffer), UCT_MADV_WILLNEED));
    EXPECT_EQ(2u, m_ib.num_advised);

    /* It is not called again */
    m_ib.num_regs = m_ib.fail_reg = 0;
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    ASSERT_UCS_OK(reg(&after));
    EXPECT_EQ(2u, m_ib.num_regs);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, before));
    EXPECT_EQ(3u, m_ib.num_mems);
}

/* One state for all ports of a device, whoever has found out */
UCS_TEST_F(test_varuna_md, health) {
    scoped_log_handler slh(hide_warns_logger);
    const ucs_time_t now = ucs_get_time();

    add("mlx5_0", 2);
    add("mlx5_1", 1);
    open();
    for (unsigned nic = 0; nic < 3; ++nic) {
        EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, nic));
    }

    uct_varuna_md_note_answer(m_md, 1, UCT_VARUNA_SHORT_MR, UCS_ERR_NO_MEMORY, now);
    EXPECT_EQ(UCT_VARUNA_NIC_SHORT, uct_varuna_md_nic_state(m_md, 0));
    EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, 2));
    uct_varuna_md_note_answer(m_md, 0, UCT_VARUNA_SHORT_MR, UCS_OK, now);
    EXPECT_EQ(UCT_VARUNA_NIC_WORKING, uct_varuna_md_nic_state(m_md, 1));

    EXPECT_TRUE(uct_varuna_md_may_ask(m_md, 0, UCT_VARUNA_SHORT_QP, now));
    uct_varuna_md_nic_died(m_md, 1, "a test");
    EXPECT_TRUE(uct_varuna_md_is_nic_dead(m_md, 0));
    EXPECT_FALSE(uct_varuna_md_is_nic_dead(m_md, 2));
    EXPECT_EQ(UCT_VARUNA_NIC_DEAD, uct_varuna_md_nic_state(m_md, 0));
    EXPECT_FALSE(uct_varuna_md_may_ask(m_md, 0, UCT_VARUNA_SHORT_QP,
                                       now + ucs_time_from_sec(3600)));
}

/* A NIC that hangs does not hold up who asks about it, whatever is registered there */
UCS_TEST_F(test_varuna_md, health_during_a_registration) {
    std::vector<std::future<bool>> answers; /* Each is waited for in the end */
    unsigned num_answers = 0;
    uct_mem_h memh;

    nic_is_dead = false;
    add_many(1);
    open();
    m_md->is_dead = is_dead;
    m_ib.on_reg   = [&]() {
        answers.push_back(std::async(std::launch::async, [&]() {
            return (uct_varuna_md_nic_state(m_md, 0) == UCT_VARUNA_NIC_WORKING) &&
                   uct_varuna_md_may_ask(m_md, 0, UCT_VARUNA_SHORT_QP, ucs_get_time());
        }));
        if (answers.back().wait_for(std::chrono::seconds(60)) == std::future_status::ready) {
            num_answers += answers.back().get();
        }
    };
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(2u, num_answers) << "during the region's and the spare's";
    m_ib.on_reg = nullptr;
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* Two threads make the spare at once: one is left */
UCS_TEST_F(test_varuna_md, spare_of_two_threads) {
    uct_mem_h memh;

    nic_is_dead = false;
    add_many(1);
    open();
    m_md->is_dead = is_dead;
    m_ib.on_reg   = [&]() {
        m_ib.on_reg = nullptr;
        EXPECT_UCS_OK(uct_varuna_md_prepare_nic(m_md, 0));
    };
    EXPECT_UCS_OK(uct_varuna_md_prepare_nic(m_md, 0));
    EXPECT_EQ(2u, m_ib.num_regs);
    EXPECT_EQ(1u, m_ib.num_mems);
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(2u, m_ib.num_mems);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

UCS_TEST_F(test_varuna_md, reg_needs_a_nic) {
    scoped_log_handler errors(hide_errors_logger);
    scoped_log_handler warnings(hide_warns_logger);
    uct_mem_h memh;

    nic_is_dead = true;
    add_many(1);
    open();
    m_md->is_dead = is_dead;
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    m_ib.num_regs = 0;
    m_ib.fail_reg = 1;
    EXPECT_EQ(UCS_ERR_IO_ERROR, reg(&memh));
    EXPECT_EQ(1u, m_ib.num_mems);
}

UCS_TEST_F(test_varuna_md, dereg_goes_on_after_a_failure) {
    scoped_log_handler slh(hide_warns_logger);
    uct_mem_h memh;

    add_many(3);
    open();
    ASSERT_UCS_OK(reg(&memh));
    m_ib.fail_dereg = 2;
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(3u, m_ib.num_deregs);
}

/* A mode of atomics looks at memory that peers could access, when they cannot any more */
UCS_TEST_F(test_varuna_md, dereg_tells_the_mode_of_atomics) {
    static unsigned num_ended;
    char buffer[512];
    uct_mem_h memh;

    add_many(3);
    open();
    num_ended       = 0;
    m_md->mem_ended = [](const uct_varuna_mem_t *mem) {
        ++num_ended;
    };
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(0u, num_ended) << "no key was given away";
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(pack(memh, buffer));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(1u, num_ended);

    scoped_log_handler slh(hide_warns_logger);
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(pack(memh, buffer));
    m_ib.num_deregs = 0;
    m_ib.fail_dereg = 2;
    EXPECT_EQ(UCS_ERR_IO_ERROR, uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_EQ(1u, num_ended) << "a key may be valid";
}

UCS_TEST_F(test_varuna_md, advise) {
    uct_mem_h memh;

    add_many(2);
    open();
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_UCS_OK(uct_md_mem_advise(&m_md->super, memh, m_buffer,
                                    sizeof(m_buffer), UCT_MADV_WILLNEED));
    EXPECT_EQ(2u, m_ib.num_advised);
    m_ib.fail_advise = true;
    EXPECT_EQ(UCS_ERR_IO_ERROR,
              uct_md_mem_advise(&m_md->super, memh, m_buffer, sizeof(m_buffer),
                                UCT_MADV_WILLNEED));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* --- Memory of devices ------------------------------------------------------ */

UCS_TEST_F(test_varuna_md, only_host_memory_is_advertised) {
    uct_md_attr_t attr;

    m_ib.mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) |
                     UCS_BIT(UCS_MEMORY_TYPE_CUDA) |
                     UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED);
    add_many(2);
    open();
    ASSERT_UCS_OK(uct_md_query(&m_md->super, &attr));
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.cap.reg_mem_types);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.cap.access_mem_types);
    EXPECT_EQ(0u, attr.cap.detect_mem_types);
    EXPECT_EQ(0u, attr.cap.alloc_mem_types);
}

UCS_TEST_F(test_varuna_md, memory_of_a_device_is_refused) {
    static char memory[4096];
    uct_mem_h memh;

    add_many(2);
    open();
    become_device(memory, sizeof(memory));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_md_mem_reg(&m_md->super, memory, sizeof(memory),
                             UCT_MD_MEM_ACCESS_ALL |
                             UCT_MD_MEM_FLAG_HIDE_ERRORS, &memh));
    EXPECT_EQ(0u, m_ib.num_regs);
    ucs_memtype_cache_remove(memory, sizeof(memory));
    ASSERT_UCS_OK(uct_md_mem_reg(&m_md->super, memory, sizeof(memory),
                                 UCT_MD_MEM_ACCESS_ALL, &memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* By one NIC that can, unless the user does not want it. UCX before 1.14 knows none */
UCS_TEST_F(test_varuna_md, dmabufs_are_advertised) {
    add_many(2);
    m_ib.devices[0].md_flags |= UCT_VARUNA_COMPAT_REG_DMABUF;
    open();
    EXPECT_EQ(0u, m_md->attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);
    for (int dmabuf : {UCS_AUTO, UCS_TRY, (UCT_VARUNA_COMPAT_REG_DMABUF == 0) ? UCS_TRY : UCS_YES}) {
        m_dmabuf = dmabuf;
        open();
        EXPECT_EQ(uint64_t(UCT_VARUNA_COMPAT_REG_DMABUF),
                  m_md->attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);
        EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), m_md->attr.reg_mem_types);
        EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), m_md->attr.access_mem_types);
    }
}

/* By no NIC, or by UCX before 1.14: only who insists is told */
UCS_TEST_F(test_varuna_md, dmabufs_are_not_supported) {
    scoped_log_handler slh(hide_warns_logger);

    add_many(2);
    m_dmabuf = UCS_AUTO;
    m_warnings.clear();
    ASSERT_UCS_OK(open_status());
    EXPECT_EQ(0u, m_warnings.size());

    close();
    m_dmabuf = UCS_YES;
    ASSERT_UCS_OK(open_status());
    ASSERT_EQ(1u, m_warnings.size());
    EXPECT_NE(std::string::npos,
              m_warnings[0].find((UCT_VARUNA_COMPAT_REG_DMABUF == 0) ?
                                 "UCX 1.14 or later is needed" :
                                 "no driver of a NIC registers dmabufs")) << m_warnings[0];
    EXPECT_EQ(0u, m_md->attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);
}

#if UCT_VARUNA_HAVE_EXTENDED
UCS_TEST_F(test_varuna_md, dmabufs_or_extended_atomics) {
    m_dmabuf      = UCS_YES;
    m_atomic_mode = UCT_VARUNA_ATOMIC_EXTENDED;
    add_many(2);
    open_fails({"all"}, UCS_ERR_INVALID_PARAM,
               "UCX_RC_VARUNA_DMABUF=y cannot be combined with");

    /* The default gives way */
    m_dmabuf = UCS_AUTO;
    m_ib.devices[0].md_flags |= UCT_VARUNA_COMPAT_REG_DMABUF;
    open();
    EXPECT_EQ(0u, m_md->attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);
}
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
UCS_TEST_F(test_varuna_md, dmabuf_is_registered_where_it_can_be) {
    uct_md_mem_reg_params_t params = {};
    uint8_t buffer[MAX_KEY];
    uct_mem_h memh;

    m_dmabuf      = UCS_YES;
    m_atomic_mode = UCT_VARUNA_ATOMIC_CPU;
    add_many(3);
    for (unsigned i = 0; i < 2; ++i) { /* Not the third */
        m_ib.devices[i].md_flags |= UCT_VARUNA_COMPAT_REG_DMABUF;
    }
    open();
    nic_is_dead   = false;
    m_md->is_dead = is_dead;
    become_device(m_buffer, sizeof(m_buffer));
    params.field_mask    = UCT_MD_MEM_REG_FIELD_FLAGS;
    params.flags         = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS;
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_md_mem_reg_v2(&m_md->super, m_buffer, sizeof(m_buffer),
                                &params, &memh)); /* Without one */
    params.field_mask   |= UCT_MD_MEM_REG_FIELD_DMABUF_FD |
                           UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET;
    params.dmabuf_fd     = 42;
    params.dmabuf_offset = 4096;
    ASSERT_UCS_OK(uct_md_mem_reg_v2(&m_md->super, m_buffer, sizeof(m_buffer),
                                    &params, &memh));
    EXPECT_EQ(std::vector<int>({42, 42}), m_ib.dmabufs);
    /* The CPU executes no atomics on it, and peers know what it is */
    ASSERT_UCS_OK(pack(memh, buffer));
    EXPECT_EQ(UCT_VARUNA_DEVICE_UNKNOWN, ((const uct_varuna_packed_rkey_t*)buffer)->device);
    EXPECT_EQ(3u, ((const uct_varuna_packed_rkey_t*)buffer)->nic_map);

    uct_varuna_place_t places[1];
    EXPECT_EQ(1u, uct_varuna_md_list_devices(m_md, 1, places, 1));
    EXPECT_EQ((uintptr_t)m_buffer, places[0].address);
    EXPECT_EQ(0u, uct_varuna_md_list_devices(m_md, 2, places, 1));
    EXPECT_GT(uct_varuna_md_list_devices(m_md, 1, places, 0), 0u);
    EXPECT_FALSE(uct_varuna_md_hold(m_md, static_cast<uct_varuna_mem_t*>(memh)->token,
                                    (uintptr_t)m_buffer, 8));
    EXPECT_EQ(UCT_VARUNA_DEVICE_UNKNOWN, static_cast<uct_varuna_mem_t*>(memh)->device);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    ucs_memtype_cache_remove(m_buffer, sizeof(m_buffer));

    /* Not in the cache: its pages may be out of the CPU's reach */
    ASSERT_UCS_OK(uct_md_mem_reg_v2(&m_md->super, m_buffer, sizeof(m_buffer),
                                    &params, &memh));
    EXPECT_EQ(UCT_VARUNA_DEVICE_UNKNOWN, static_cast<uct_varuna_mem_t*>(memh)->device);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));

    /* Refused by default */
    m_dmabuf = UCS_NO;
    open();
    EXPECT_EQ(UCS_ERR_UNSUPPORTED,
              uct_md_mem_reg_v2(&m_md->super, m_buffer, sizeof(m_buffer),
                                &params, &memh));
}
#endif

/* --- Invalidation ---------------------------------------------------------- */

UCS_TEST_F(test_varuna_md, invalidate_completes_once) {
    uct_mem_h memh;
    counter comp;

    add_many(3);
    open();
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(invalidate(memh, &comp));
    EXPECT_EQ(3u, m_ib.num_deregs);
    EXPECT_EQ(1u, comp.calls);
}

UCS_TEST_F(test_varuna_md, invalidate_completes_after_the_last) {
    uct_completion_t *last;
    uct_mem_h memh;
    counter comp;

    add_many(3);
    open();
    m_ib.hold_invalidations = true;
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(invalidate(memh, &comp));
    ASSERT_EQ(3u, m_ib.held.size());
    last = m_ib.held.back();
    m_ib.held.pop_back();
    m_ib.complete_invalidations();
    EXPECT_EQ(0u, comp.calls);
    uct_invoke_completion(last, UCS_OK);
    EXPECT_EQ(1u, comp.calls);
}

/* As UCP expects: after an error no callback is called, neither at once nor later, and
 * the caller owns the completion again */
UCS_TEST_F(test_varuna_md, invalidate_fails_or_completes) {
    scoped_log_handler slh(hide_warns_logger);

    add_many(3);
    open();
    for (unsigned held = 0; held < 2; ++held) {
        for (unsigned called = 0; called < 2; ++called) {
            for (unsigned fail_at = 1; fail_at <= 3; ++fail_at) {
                uct_mem_h memh;
                counter comp;

                m_ib.hold_invalidations    = held;
                m_ib.complete_failed_dereg = called && !held;
                m_ib.fail_dereg            = fail_at;
                m_ib.num_deregs            = 0;
                ASSERT_UCS_OK(reg(&memh));
                EXPECT_EQ(UCS_ERR_IO_ERROR, invalidate(memh, &comp));
                EXPECT_EQ(3u, m_ib.num_deregs);
                EXPECT_EQ(0u, comp.calls);
                m_ib.complete_invalidations();
                EXPECT_EQ(0u, comp.calls);
            }
        }
    }
}

/* The final status of the inner invalidation is passed on */
UCS_TEST_F(test_varuna_md, invalidate_completes_with_an_error) {
    uct_completion_t *last;
    uct_mem_h memh;
    counter comp;

    add_many(3);
    open();
    m_ib.hold_invalidations = true;
    ASSERT_UCS_OK(reg(&memh));
    ASSERT_UCS_OK(invalidate(memh, &comp));
    ASSERT_EQ(3u, m_ib.held.size());
    last = m_ib.held.back();
    m_ib.held.pop_back();
    uct_invoke_completion(last, UCS_ERR_IO_ERROR);
    EXPECT_EQ(0u, comp.calls);
    m_ib.complete_invalidations();
    EXPECT_EQ(1u, comp.calls);
    EXPECT_EQ(UCS_ERR_IO_ERROR, comp.status);
}

UCS_TEST_F(test_varuna_md, invalidate_needs_all_nics) {
    uct_mem_h memh;
    counter comp;

    add_many(2);
    m_ib.devices[1].md_flags &= ~UCT_MD_FLAG_INVALIDATE;
    open();
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(UCS_ERR_UNSUPPORTED, invalidate(memh, &comp));
    EXPECT_EQ(0u, m_ib.num_deregs);
    EXPECT_EQ(0u, comp.calls);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

UCS_TEST_F(test_varuna_md, invalidate_needs_a_completion) {
    uct_mem_h memh;

    add_many(2);
    open();
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, invalidate(memh, NULL));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, uct_md_mem_dereg(&m_md->super, NULL));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}
