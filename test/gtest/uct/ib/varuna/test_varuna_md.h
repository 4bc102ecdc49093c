/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A memory domain over an inner component that needs no NIC.
 */
#ifndef TEST_VARUNA_MD_H_
#define TEST_VARUNA_MD_H_

#include <common/test.h>

#include "fake_ib.h"

extern "C" {
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <uct/ib/varuna/md/varuna_md.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/core/varuna_wire.h>
#include <ucs/debug/memtrack_int.h>
}

#include <string>
#include <vector>

#if UCT_VARUNA_UCX_AT_LEAST(1, 15)
#  define PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE_RMA
#else
#  define PACK_INVALIDATE UCT_MD_MKEY_PACK_FLAG_INVALIDATE
#endif

class test_varuna_md : public ucs::test {
protected:
    typedef std::vector<std::string> names_t;

    static constexpr size_t MAX_KEY =
            sizeof(uct_varuna_packed_rkey_t) +
            (UCT_VARUNA_MAX_LINKS * sizeof(uct_varuna_packed_key_t));

    virtual void init()
    {
        ucs::test::init();
        m_md = NULL;
    }

    virtual void cleanup()
    {
        close();
        /* A test must release everything */
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
        config.dmabuf      = m_dmabuf;
        config.vqp_links   = m_vqp_links;

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
        /* With one link there is a warning, but only once in a process */
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

    /* A valid packed key, for tests that change it */
    uct_varuna_packed_rkey_t *make_key(uint8_t nic_map, void *buffer)
    {
        void *key = uct_varuna_rkey_pack_header(
                nic_map, UCT_VARUNA_ATOMIC_NATIVE, UCT_VARUNA_DEVICE_HOST, 0, buffer);

        for (unsigned nic = 0; nic < UCT_VARUNA_MAX_LINKS; ++nic) {
            if (nic_map & UCS_BIT(nic)) {
                key = uct_varuna_rkey_pack_key(1000 + nic, 0, key);
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
    int              m_dmabuf      = UCS_NO;
    unsigned long    m_vqp_links   = UCS_ULUNITS_AUTO;
    char             m_buffer[4096];
};

#endif
