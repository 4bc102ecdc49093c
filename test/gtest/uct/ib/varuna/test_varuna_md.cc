/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links, memory domain and remote keys, over an inner component which needs no
 * NIC.
 */
#include <common/test.h>

#include <atomic>
#include <set>
#include <thread>

#include "fake_ib.h"

extern "C" {
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/md/varuna_md_open.h>
#include <uct/ib/varuna/md/varuna_md_share.h>
#include <uct/ib/varuna/responder/proxy/varuna_cpu_op.h>
#include <uct/ib/varuna/responder/proxy/varuna_fault.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/memory/memtype_cache.h>
}

#include <sys/mman.h>
#include <unistd.h>

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  define PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA
#else
#  define PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE
#endif

class test_varuna_md : public ucs::test {
protected:
    typedef std::vector<std::string> names_t;

    static constexpr size_t MAX_KEY =
            sizeof(uct_varuna_packed_rkey_t) +
            (UCT_VARUNA_MAX_LINKS * UCT_VARUNA_INNER_KEY_SIZE);

    virtual void init()
    {
        ucs::test::init();
        m_md = NULL;
    }

    virtual void cleanup()
    {
        close();
        /* Whatever a test does, nothing may be left over */
        EXPECT_EQ(0u, m_ib.num_open_mds);
        EXPECT_EQ(0u, m_ib.num_mems);
        EXPECT_EQ(0u, m_ib.num_rkeys);
        ucs::test::cleanup();
    }

    void add(const std::string &name, unsigned num_ports = 1)
    {
        m_ib.devices.push_back(fake_ib::device(name, num_ports));
    }

    void add_many(unsigned count)
    {
        for (unsigned i = 0; i < count; ++i) {
            add("mlx5_" + ucs::to_string(i));
        }
    }

    ucs_status_t open_status(const names_t &names = names_t(1, "all"))
    {
        std::vector<char*> pointers;
        uct_varuna_md_config_t config = {};
        uct_md_h md;

        for (const std::string &name : names) {
            pointers.push_back(const_cast<char*>(name.c_str()));
        }
        config.links.names = pointers.data();
        config.links.count = pointers.size();
        config.atomic_mode = m_atomic_mode;

        ucs_status_t status = uct_varuna_md_create(&m_component,
                                                   m_ib.component(), &config,
                                                   &md);
        if (status == UCS_OK) {
            m_md = ucs_derived_of(md, uct_varuna_md_t);
        }
        return status;
    }

    void open(const names_t &names = names_t(1, "all"))
    {
        /* With one link there's a warning, but only once in a process */
        scoped_log_handler slh(hide_warns_logger);

        close();
        ASSERT_UCS_OK(open_status(names));
    }

    void close()
    {
        if (m_md != NULL) {
            uct_md_close(&m_md->super);
            m_md = NULL;
        }
    }

    /* Opening fails, and the one error message has this text. */
    void open_fails(const names_t &names, ucs_status_t expected,
                    const std::string &text)
    {
        scoped_log_handler slh(hide_errors_logger);

        close();
        m_errors.clear();
        EXPECT_EQ(expected, open_status(names));
        expect_error(text);
        EXPECT_EQ(0u, m_ib.num_open_mds);
    }

    void expect_error(const std::string &text)
    {
        ASSERT_EQ(1u, m_errors.size());
        EXPECT_NE(std::string::npos, m_errors[0].find(text)) << m_errors[0];
    }

    /* Device names of the links, by priority, as UCT shows them. */
    std::string links()
    {
        uct_tl_device_resource_t *devices;
        unsigned num_devices;
        std::string result;

        EXPECT_UCS_OK(uct_varuna_query_devices(&m_md->super, &devices,
                                               &num_devices));
        for (unsigned i = 0; i < num_devices; ++i) {
            EXPECT_EQ(UCT_DEVICE_TYPE_NET, devices[i].type);
            EXPECT_EQ(m_md->nics[m_md->links[i]].sys_device,
                      devices[i].sys_device);
            result += (i ? "," : "") + std::string(devices[i].name);
        }
        ucs_free(devices);
        return result;
    }

    ucs_status_t reg(uct_mem_h *memh_p)
    {
        return uct_md_mem_reg(&m_md->super, m_buffer, sizeof(m_buffer),
                              UCT_MD_MEM_ACCESS_ALL, memh_p);
    }

    ucs_status_t pack(uct_mem_h memh, void *buffer, unsigned flags = 0)
    {
        uct_md_mkey_pack_params_t params;

        params.field_mask = UCT_MD_MKEY_PACK_FIELD_FLAGS;
        params.flags      = flags;
        return uct_varuna_compat_mkey_pack(&m_md->super, memh, m_buffer,
                                           sizeof(m_buffer), &params, buffer);
    }

    ucs_status_t unpack(const void *buffer, uct_varuna_rkey_t **rkey_p)
    {
        return uct_varuna_rkey_unpack(m_ib.component(), buffer, rkey_p);
    }

    ucs_status_t invalidate(uct_mem_h memh, uct_completion_t *comp)
    {
        uct_md_mem_dereg_params_t params;

        params.field_mask = UCT_MD_MEM_DEREG_FIELD_MEMH |
                            UCT_MD_MEM_DEREG_FIELD_FLAGS;
        params.memh       = memh;
        params.flags      = UCT_MD_MEM_DEREG_FLAG_INVALIDATE;
        params.comp       = comp;
        if (comp != NULL) {
            params.field_mask |= UCT_MD_MEM_DEREG_FIELD_COMPLETION;
        }
        return uct_md_mem_dereg_v2(&m_md->super, &params);
    }

    static void count_cb(uct_completion_t *comp)
    {
        ++static_cast<counter*>(comp)->calls;
    }

    struct counter : public uct_completion_t {
        counter() : calls(0)
        {
            func   = count_cb;
            count  = 1;
            status = UCS_OK;
        }

        unsigned calls;
    };

    /* A packed key which is right up to what a test changes */
    uct_varuna_packed_rkey_t *make_key(uint8_t nic_map, void *buffer)
    {
        uint8_t *key = (uint8_t*)uct_varuna_rkey_pack_header(
                nic_map, UCT_VARUNA_ATOMIC_NATIVE, 0, buffer);
        uint64_t value;

        for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
            if (nic_map & UCS_BIT(nic)) {
                value = 1000 + nic;
                memcpy(key, &value, sizeof(value));
                key += sizeof(value);
            }
        }
        return (uct_varuna_packed_rkey_t*)buffer;
    }

    void unpack_refused(const void *buffer, const std::string &text)
    {
        scoped_log_handler slh(hide_errors_logger);
        uct_varuna_rkey_t *rkey;

        m_errors.clear();
        EXPECT_EQ(UCS_ERR_INVALID_PARAM, unpack(buffer, &rkey));
        expect_error(text);
        EXPECT_EQ(0u, m_ib.num_unpacks);
    }

    fake_ib          m_ib;
    uct_component_t  m_component = {};
    uct_varuna_md_t  *m_md;
    unsigned         m_atomic_mode = UCT_VARUNA_ATOMIC_NATIVE;
    char             m_buffer[4096];
};

/* --- Links ----------------------------------------------------------------- */

UCS_TEST_F(test_varuna_md, links_in_natural_order) {
    add("mlx5_10");
    add("mlx5_2");
    add("mlx5_0", 2);
    open();
    EXPECT_EQ("varuna_mlx5_0:1,varuna_mlx5_0:2,varuna_mlx5_2:1,"
              "varuna_mlx5_10:1", links());
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
    open_fails({"mlx5_0", "mlx5_7:1"}, UCS_ERR_NO_DEVICE,
               "no port 'mlx5_7:1' with rc_mlx5 and dc_mlx5 (there are: "
               "mlx5_0:1,mlx5_1:1)");
    open_fails({"mlx5"}, UCS_ERR_NO_DEVICE, "no port 'mlx5'");
    open_fails({"mlx5_0:"}, UCS_ERR_NO_DEVICE, "no port 'mlx5_0:'");
    open_fails({""}, UCS_ERR_NO_DEVICE, "no port ''");
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
    EXPECT_EQ(sizeof(uct_varuna_packed_rkey_t) + (2 * sizeof(uint64_t)),
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
        EXPECT_EQ(UCS_ERR_IO_ERROR, reg(&memh));
        EXPECT_EQ(m_ib.fail_reg, m_ib.num_regs);
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

/* A NIC which has died can register nothing. The others go on without it, and a key
 * says so; what fails on a NIC that lives fails. */
UCS_TEST_F(test_varuna_md, reg_without_a_dead_nic) {
    char buffer[MAX_KEY] = {};
    uct_mem_h before, after;
    uct_varuna_rkey_t *rkey;

    nic_is_dead = false;
    add_many(3);
    open();
    m_md->is_dead = is_dead;
    ASSERT_UCS_OK(reg(&before));
    EXPECT_EQ(6u, m_ib.num_mems); /* Each NIC has a spare as well */

    m_ib.num_regs = 0;
    m_ib.fail_reg = 2;
    EXPECT_EQ(UCS_ERR_IO_ERROR, reg(&after));
    EXPECT_EQ(6u, m_ib.num_mems);

    nic_is_dead   = true;
    m_ib.num_regs = 0;
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

    /* It is not asked again */
    m_ib.num_regs = m_ib.fail_reg = 0;
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    ASSERT_UCS_OK(reg(&after));
    EXPECT_EQ(2u, m_ib.num_regs);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, after));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, before));
    EXPECT_EQ(3u, m_ib.num_mems);
}

UCS_TEST_F(test_varuna_md, reg_needs_a_nic) {
    scoped_log_handler slh(hide_errors_logger);
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
    ucs_memtype_cache_update(memory, sizeof(memory), UCS_MEMORY_TYPE_CUDA,
                             UCS_SYS_DEVICE_ID_UNKNOWN);
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

/* As UCP expects: after an error nobody is called, neither at once nor later, and the
 * completion is the caller's again */
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

/* What the inner invalidation says itself, in the end, is passed on */
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

/* --- Remote keys ----------------------------------------------------------- */

UCS_TEST_F(test_varuna_md, rkey_round_trip) {
    char buffer[MAX_KEY + 1];
    uct_varuna_rkey_t *rkey;
    uct_md_attr_t attr;
    uct_mem_h memh;
    size_t size;

    add("mlx5_0", 2);
    add("mlx5_1");
    add("mlx5_2");
    open({"mlx5_2", "mlx5_0"}); /* NICs 3, 0, 1 */
    ASSERT_UCS_OK(uct_md_query(&m_md->super, &attr));
    size = attr.rkey_packed_size;
    ASSERT_LE(size, size_t(MAX_KEY));

    ASSERT_UCS_OK(reg(&memh));
    memset(buffer, 0x5a, sizeof(buffer));
    /* Unaligned, as in an UCP message */
    ASSERT_UCS_OK(pack(memh, buffer + 1, PACK_INVALIDATE));
    EXPECT_EQ(unsigned(PACK_INVALIDATE), m_ib.pack_flags);
    EXPECT_EQ(0x5a, buffer[0]);
    for (size_t i = 1 + size; i < sizeof(buffer); ++i) {
        EXPECT_EQ(0x5a, buffer[i]) << i;
    }

    ASSERT_UCS_OK(unpack(buffer + 1, &rkey));
    EXPECT_EQ(4u, rkey->num_keys);
    for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
        fake_ib::mem *mem = (fake_ib::mem*)uct_varuna_mem_inner(memh, nic);
        EXPECT_EQ((mem == NULL) ? UCT_INVALID_RKEY : mem->key,
                  uct_varuna_rkey_inner((uct_rkey_t)rkey, nic)) << nic;
    }
    uct_varuna_rkey_release(m_ib.component(), rkey);
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* What peers name by its address has to be where a key was given away. */
UCS_TEST_F(test_varuna_md, shared_is_what_has_a_key) {
    const uintptr_t begin = (uintptr_t)m_buffer;
    const uintptr_t end   = begin + sizeof(m_buffer);
    char buffer[MAX_KEY];
    uct_mem_h memh, other;
    uct_rkey_t rkey;
    counter comp;

    add_many(2);
    open();
    ASSERT_UCS_OK(reg(&memh));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin, 8));
    EXPECT_FALSE(uct_varuna_md_find_rkey(m_md, 1, begin, 8, &rkey));

    ASSERT_UCS_OK(pack(memh, buffer));
    ASSERT_UCS_OK(pack(memh, buffer)); /* Once is enough */
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, begin, sizeof(m_buffer)));
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, end - 8, 8));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, end - 8, 9));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin - 1, 2));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin, 0));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, UINT64_MAX - 3, 8));
    ASSERT_TRUE(uct_varuna_md_find_rkey(m_md, 1, begin, 8, &rkey));
    EXPECT_EQ(((fake_ib::mem*)uct_varuna_mem_inner(memh, 1))->key, rkey);

    /* The same memory, once more: each has its own time */
    ASSERT_UCS_OK(reg(&other));
    ASSERT_UCS_OK(pack(other, buffer));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, begin, 8));
    EXPECT_EQ(UCS_ERR_INVALID_PARAM, invalidate(other, NULL));
    EXPECT_TRUE(uct_varuna_md_is_shared(m_md, begin, 8)) << "it was not done";
    ASSERT_UCS_OK(invalidate(other, &comp));
    EXPECT_FALSE(uct_varuna_md_is_shared(m_md, begin, 8));
    EXPECT_FALSE(uct_varuna_md_find_rkey(m_md, 1, begin, 8, &rkey));
}

UCS_TEST_F(test_varuna_md, rkey_pack_fails_at_each_nic) {
    char buffer[MAX_KEY];
    uct_mem_h memh;

    add_many(3);
    open();
    ASSERT_UCS_OK(reg(&memh));
    for (m_ib.fail_pack = 1; m_ib.fail_pack <= 3; ++m_ib.fail_pack) {
        m_ib.num_packs = 0;
        EXPECT_EQ(UCS_ERR_IO_ERROR, pack(memh, buffer));
    }
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

UCS_TEST_F(test_varuna_md, rkey_unpack_unwinds_at_each_nic) {
    char buffer[MAX_KEY];
    uct_varuna_rkey_t *rkey;

    make_key(0x2d, buffer);
    for (m_ib.fail_unpack = 1; m_ib.fail_unpack <= 4; ++m_ib.fail_unpack) {
        m_ib.num_unpacks = 0;
        EXPECT_EQ(UCS_ERR_IO_ERROR, unpack(buffer, &rkey));
        EXPECT_EQ(0u, m_ib.num_rkeys);
    }
}

UCS_TEST_F(test_varuna_md, rkey_unpack_every_nic_map) {
    char buffer[MAX_KEY];
    uct_varuna_rkey_t *rkey;

    for (unsigned map = 1; map < UCS_BIT(UCT_VARUNA_MAX_LINKS); ++map) {
        make_key(map, buffer);
        ASSERT_UCS_OK(unpack(buffer, &rkey));
        for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
            EXPECT_EQ((map & UCS_BIT(nic)) ? (1000 + nic) : UCT_INVALID_RKEY,
                      uct_varuna_rkey_inner((uct_rkey_t)rkey, nic));
        }
        uct_varuna_rkey_release(m_ib.component(), rkey);
    }
}

UCS_TEST_F(test_varuna_md, rkey_corrupt_header_is_refused) {
    char buffer[MAX_KEY];

    make_key(3, buffer)->magic = 0x5256; /* Other byte order */
    unpack_refused(buffer, "begins with 0x5256");
    make_key(3, buffer)->magic = 0;
    unpack_refused(buffer, "not of rc_varuna");
    make_key(3, buffer)->version = UCT_VARUNA_WIRE_VERSION + 1;
    unpack_refused(buffer, "wire version " +
                           std::to_string(UCT_VARUNA_WIRE_VERSION + 1));
    make_key(3, buffer)->version = 0;
    unpack_refused(buffer, "wire version 0");
    make_key(3, buffer)->num_keys = 0;
    unpack_refused(buffer, "corrupt: 0 keys");
    make_key(0, buffer);
    unpack_refused(buffer, "corrupt: 0 keys");
    make_key(3, buffer)->num_keys = 255;
    unpack_refused(buffer, "corrupt: 255 keys");
    make_key(3, buffer)->num_keys = 1;
    unpack_refused(buffer, "corrupt: 1 keys");
    make_key(3, buffer)->nic_map = 7;
    unpack_refused(buffer, "for NICs 0x7");
    for (unsigned size : {0, 4, 7, 9, 16, 255}) {
        make_key(3, buffer)->key_size = size;
        unpack_refused(buffer, "keys of " + ucs::to_string(size) + " bytes");
    }
}

/* A key is at the end of what can be read: no more than it says is read, and
 * a truncated one, of which zeroes are left, is refused by its header. */
UCS_TEST_F(test_varuna_md, rkey_unpack_reads_no_further) {
    size_t page = sysconf(_SC_PAGESIZE);
    uct_varuna_rkey_t *rkey;
    char whole[MAX_KEY];
    char *pages, *end;
    size_t size;

    pages = (char*)mmap(NULL, 2 * page, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(MAP_FAILED, (void*)pages);
    end = pages + page;
    ASSERT_EQ(0, mprotect(end, page, PROT_NONE));

    for (unsigned num = 1; num <= UCT_VARUNA_MAX_LINKS; ++num) {
        size = uct_varuna_rkey_packed_size(num);
        make_key(UCS_MASK(num), end - size);
        ASSERT_UCS_OK(unpack(end - size, &rkey));
        EXPECT_EQ(num, rkey->num_keys);
        uct_varuna_rkey_release(m_ib.component(), rkey);
    }

    m_ib.num_unpacks = 0;
    size             = sizeof(uct_varuna_packed_rkey_t);
    make_key(3, whole);
    for (size_t left = 0; left <= offsetof(uct_varuna_packed_rkey_t, nic_map);
         ++left) {
        memset(end - size, 0, size);
        memcpy(end - size, whole, left);
        unpack_refused(end - size, "rc_varuna");
    }

    munmap(pages, 2 * page);
}

/* --- Tokens of regions, for atomics by the CPU ----------------------------- */

class test_varuna_md_token : public test_varuna_md {
protected:
    virtual void init()
    {
        test_varuna_md::init();
        m_atomic_mode = UCT_VARUNA_ATOMIC_PROXY;
        add_many(2);
        open();
    }

    /* @return The token in the key of a new region. */
    uint64_t reg_part(size_t offset, size_t length, uct_mem_h *memh_p,
                      unsigned flags = UCT_MD_MEM_ACCESS_ALL)
    {
        char key[UINT8_MAX];

        EXPECT_UCS_OK(uct_md_mem_reg(&m_md->super, m_buffer + offset, length,
                                     flags, memh_p));
        EXPECT_UCS_OK(pack(*memh_p, key));
        return ((const uct_varuna_packed_rkey_t*)key)->token;
    }

    bool holds(uint64_t token, size_t offset, size_t length = 8)
    {
        if (!uct_varuna_md_hold(m_md, token, (uintptr_t)m_buffer + offset,
                                length)) {
            return false;
        }
        uct_varuna_md_release(m_md);
        return true;
    }
};

UCS_TEST_F(test_varuna_md_token, covers_its_region) {
    uct_mem_h memh;
    uint64_t token = reg_part(64, 128, &memh);

    EXPECT_NE(0u, token);
    EXPECT_TRUE(holds(token, 64));
    EXPECT_TRUE(holds(token, 64 + 120));
    EXPECT_TRUE(holds(token, 64 + 124, 4));
    EXPECT_FALSE(holds(token, 63));
    EXPECT_FALSE(holds(token, 64 + 121));
    EXPECT_FALSE(holds(token, 64 + 128));
    EXPECT_FALSE(holds(token ^ 1, 64));
    EXPECT_FALSE(holds(0, 64));
    EXPECT_FALSE(uct_varuna_md_hold(m_md, token, UINT64_MAX - 3, 8));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    EXPECT_FALSE(holds(token, 64));
}

/* Many regions lie over each other; each token finds its own */
UCS_TEST_F(test_varuna_md_token, overlapping_regions) {
    std::vector<uct_mem_h> memhs(50);
    std::vector<uint64_t> tokens;

    for (size_t i = 0; i < memhs.size(); ++i) {
        tokens.push_back(reg_part(8 * (i % 10), 256 - (8 * (i / 10)), &memhs[i]));
    }
    for (size_t i = 0; i < memhs.size(); ++i) {
        size_t first = 8 * (i % 10), length = 256 - (8 * (i / 10));

        EXPECT_TRUE(holds(tokens[i], first)) << i;
        EXPECT_TRUE(holds(tokens[i], first + length - 8)) << i;
        EXPECT_FALSE(holds(tokens[i], first + length - 7)) << i;
        EXPECT_FALSE((first > 0) && holds(tokens[i], first - 8)) << i;
    }
    for (uct_mem_h memh : memhs) {
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    }
    for (uint64_t token : tokens) {
        EXPECT_FALSE(holds(token, 128));
    }
}

UCS_TEST_F(test_varuna_md_token, none_without_the_right) {
    uct_mem_h memh;

    EXPECT_EQ(0u, reg_part(0, 64, &memh, UCT_MD_MEM_ACCESS_RMA));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

UCS_TEST_F(test_varuna_md_token, none_in_other_modes) {
    uct_mem_h memh;

    m_atomic_mode = UCT_VARUNA_ATOMIC_EXTENDED;
    open();
    EXPECT_EQ(0u, reg_part(0, 64, &memh));
    ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
}

/* The same memory again is another region: what was given away for the first is void */
UCS_TEST_F(test_varuna_md_token, is_never_used_again) {
    std::set<uint64_t> tokens;

    for (unsigned i = 0; i < 1000; ++i) {
        uct_mem_h memh;

        EXPECT_TRUE(tokens.insert(reg_part(0, 64, &memh)).second);
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
    }
}

/* Deregistration waits for the access, and no longer */
UCS_TEST_F(test_varuna_md_token, deregistration_waits) {
    volatile bool is_gone = false;
    uct_mem_h memh;
    uint64_t token = reg_part(0, 64, &memh);

    ASSERT_TRUE(uct_varuna_md_hold(m_md, token, (uintptr_t)m_buffer, 8));
    std::thread other([&] {
        EXPECT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
        is_gone = true;
    });
    usleep(20000);
    EXPECT_FALSE(is_gone);
    uct_varuna_md_release(m_md);
    other.join();
    EXPECT_TRUE(is_gone);
    EXPECT_FALSE(holds(token, 0));
}

/* Memory is deregistered and unmapped in a loop while the CPU executes atomics there: what is
 * held is there, so none of them faults */
UCS_TEST_F(test_varuna_md_token, deregistered_under_load) {
    std::atomic<uint64_t> token(0), address(0), executed(0);
    std::atomic<bool> stop(false);
    unsigned faults = 0;

    ASSERT_UCS_OK(uct_varuna_fault_init());
    std::thread other([&] {
        while (!stop) {
            uct_varuna_ctl_atomic_op_t op = {};
            uint64_t now_token            = token, result;

            op.addr  = address;
            op.value = 1;
            op.op    = UCT_ATOMIC_OP_ADD;
            op.width = 8;
            if (uct_varuna_md_hold(m_md, now_token, op.addr, op.width)) {
                ucs_status_t status = uct_varuna_cpu_op(&op, &result);
                uct_varuna_md_release(m_md);
                faults += (status != UCS_OK);
                ++executed;
            }
        }
    });
    for (unsigned i = 0; (i < 100000) && ((i < 500) || (executed < 500)); ++i) {
        void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        char key[UINT8_MAX];
        uct_mem_h memh;

        ASSERT_UCS_OK(uct_md_mem_reg(&m_md->super, page, 4096,
                                     UCT_MD_MEM_ACCESS_ALL, &memh));
        ASSERT_UCS_OK(pack(memh, key));
        address = (uintptr_t)page;
        token   = ((const uct_varuna_packed_rkey_t*)key)->token;
        if (i % 2) {
            sched_yield();
        }
        ASSERT_UCS_OK(uct_md_mem_dereg(&m_md->super, memh));
        munmap(page, 4096);
    }
    stop = true;
    other.join();
    EXPECT_EQ(0u, faults);
    EXPECT_GE(executed, 500u);
}
