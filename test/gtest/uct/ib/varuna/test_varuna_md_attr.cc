/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Each attribute of the memory domain is ib's, or differs for a reason; and UCX gets them all.
 */
#include "test_varuna_md.h"

namespace {

/* As UCX 1.22 declares it. Some attributes are not in the version that this is built with, but
 * what copies them is compiled here for all. */
struct md_attr_1_22 {
    uint64_t          field_mask;
    uint64_t          max_alloc;
    size_t            max_reg;
    uint64_t          flags;
    uint64_t          reg_mem_types;
    uint64_t          reg_nonblock_mem_types;
    uint64_t          cache_mem_types;
    uint64_t          gva_mem_types;
    uint64_t          detect_mem_types;
    uint64_t          alloc_mem_types;
    uint64_t          access_mem_types;
    uint64_t          dmabuf_mem_types;
    ucs_linear_func_t reg_cost;
    char              component_name[16];
    size_t            rkey_packed_size;
    ucs_cpu_set_t     local_cpus;
    size_t            exported_mkey_packed_size;
    char              global_id[32];
    size_t            reg_alignment;
    uint8_t           required_mem_flags;
};

/* An attribute, as bytes, and why it is not ib's; NULL: it is. */
template<typename attr_t> struct field {
    const char  *name;
    std::string (*get)(const attr_t &attr);
    const char  *reason;
};

#define FIELD(_name, _reason) \
    { \
        #_name, [](const attr_t &attr) { \
            return std::string((const char*)&attr._name, sizeof(attr._name)); \
        }, _reason \
    }

template<typename attr_t> std::vector<field<attr_t> > fields()
{
    return {
        FIELD(max_alloc, NULL),
        FIELD(max_reg, NULL),
        FIELD(flags, "ours neither allocates nor exports keys, and the user may not want dmabufs"),
        FIELD(reg_mem_types, "where the memory of devices is registered is found out from all NICs"),
        FIELD(reg_nonblock_mem_types, "the same"),
        FIELD(cache_mem_types, NULL),
        FIELD(gva_mem_types, "a key belongs to a region"),
        FIELD(detect_mem_types, NULL),
        FIELD(alloc_mem_types, "ours does not allocate"),
        FIELD(access_mem_types, NULL),
        FIELD(dmabuf_mem_types, NULL),
        FIELD(reg_cost, "the sum over all NICs"),
        FIELD(rkey_packed_size, "a key for each link, and their header"),
        FIELD(local_cpus, "set where the links are known"),
        FIELD(reg_alignment, NULL),
        FIELD(required_mem_flags, NULL)
    };
}

} // namespace

class test_varuna_md_attr : public ucs::test {
protected:
    /* Of a NIC that can do everything, with the newest UCX: what ib says of it
     * (uct_ib_md_query() and uct_ib_mlx5_devx_md_query()) */
    static uct_varuna_md_attr_t ib()
    {
        const uint64_t devices    = UCS_BIT(UCS_MEMORY_TYPE_CUDA) |
                                    UCS_BIT(UCS_MEMORY_TYPE_CUDA_MANAGED);
        uct_varuna_md_attr_t attr = {};

        attr.max_alloc              = ULONG_MAX;
        attr.max_reg                = ULONG_MAX;
        attr.flags                  = UINT64_MAX;
        attr.reg_mem_types          = UCS_BIT(UCS_MEMORY_TYPE_HOST) | devices;
        attr.reg_nonblock_mem_types = UCS_BIT(UCS_MEMORY_TYPE_HOST) | devices;
        attr.cache_mem_types        = UCS_MASK(UCS_MEMORY_TYPE_LAST);
        attr.gva_mem_types          = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr.alloc_mem_types        = UCS_BIT(UCS_MEMORY_TYPE_ROCM); /* Some */
        attr.access_mem_types       = UCS_BIT(UCS_MEMORY_TYPE_HOST);
        attr.reg_cost               = ucs_linear_func_make(1e-6, 1e-9);
        attr.rkey_packed_size       = UCT_VARUNA_INNER_KEY_SIZE;
        attr.reg_alignment          = 4096;
        attr.required_mem_flags     = 1;
        UCS_CPU_SET(1, &attr.local_cpus);
        return attr;
    }

    static uct_varuna_md_attr_t ours()
    {
        uct_varuna_md_attr_t attr, inner = ib();

        uct_varuna_md_attr_init(&attr, 0);
        uct_varuna_md_attr_add(&attr, &inner);
        uct_varuna_md_attr_add(&attr, &inner);
        return attr;
    }
};

UCS_TEST_F(test_varuna_md_attr, differs_from_ib_for_a_reason) {
    for (const auto &field : fields<uct_varuna_md_attr_t>()) {
        if (field.reason == NULL) {
            EXPECT_EQ(field.get(ib()), field.get(ours())) << field.name;
        } else {
            EXPECT_NE(field.get(ib()), field.get(ours()))
                    << field.name << " does not differ any more: " << field.reason;
        }
    }
}

/* Each is restricted by a NIC that can do less */
UCS_TEST_F(test_varuna_md_attr, each_is_restricted) {
    uct_varuna_md_attr_t attr, inner = ib();

    uct_varuna_md_attr_init(&attr, UCT_VARUNA_COMPAT_REG_DMABUF);
    EXPECT_EQ(1u, attr.reg_alignment);
    uct_varuna_md_attr_add(&attr, &inner);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.reg_mem_types);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.reg_nonblock_mem_types);
    EXPECT_EQ(uint64_t(UCT_VARUNA_COMPAT_REG_DMABUF),
              attr.flags & UCT_VARUNA_COMPAT_REG_DMABUF);

    memset(&inner, 0, sizeof(inner));
    inner.cache_mem_types    = UCS_BIT(UCS_MEMORY_TYPE_HOST);
    inner.required_mem_flags = 2;
    uct_varuna_md_attr_add(&attr, &inner);
    /* Another NIC may register the memory of devices */
    EXPECT_EQ(uint64_t(UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY |
                       UCT_VARUNA_COMPAT_REG_DMABUF), attr.flags);
    EXPECT_EQ(0u, attr.max_alloc);
    EXPECT_EQ(0u, attr.max_reg);
    EXPECT_EQ(0u, attr.reg_mem_types);
    EXPECT_EQ(0u, attr.reg_nonblock_mem_types);
    EXPECT_EQ(0u, attr.access_mem_types);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), attr.cache_mem_types);
    EXPECT_EQ(4096u, attr.reg_alignment);
    EXPECT_EQ(3u, attr.required_mem_flags);
}

/* Of the newest version, in both directions */
UCS_TEST_F(test_varuna_md_attr, all_are_copied) {
    uct_varuna_md_attr_t attr = ib(), copy = {};
    md_attr_1_22 of_ucx       = {};

    attr.detect_mem_types = 0x10;
    attr.dmabuf_mem_types = 0x20;
    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_22(&of_ucx, &attr);
    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_22(&copy, &of_ucx);
    for (const auto &field : fields<uct_varuna_md_attr_t>()) {
        EXPECT_NE(std::string(field.get(attr).size(), 0), field.get(attr)) << field.name;
        EXPECT_EQ(field.get(attr), field.get(copy)) << field.name;
    }
    for (unsigned i = 0; i < fields<md_attr_1_22>().size(); ++i) {
        EXPECT_EQ(fields<uct_varuna_md_attr_t>()[i].get(attr),
                  fields<md_attr_1_22>()[i].get(of_ucx)) << fields<md_attr_1_22>()[i].name;
    }
    EXPECT_EQ(0u, of_ucx.exported_mkey_packed_size);
    EXPECT_EQ(0, of_ucx.global_id[0]);
}

/* The version that this is built with gets what it knows */
UCS_TEST_F(test_varuna_md, attr_of_this_version) {
    add_many(2);
    open();
    EXPECT_EQ(UCS_MASK(UCS_MEMORY_TYPE_LAST), m_md->attr.cache_mem_types);
    EXPECT_EQ(m_md->nics[0].md_attr.cache_mem_types, m_md->attr.cache_mem_types);
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    uct_md_attr_v2_t of_ucx = {};

    of_ucx.field_mask = UINT64_MAX;
    ASSERT_UCS_OK(uct_md_query_v2(&m_md->super, &of_ucx));
    EXPECT_EQ(UCS_MASK(UCS_MEMORY_TYPE_LAST), of_ucx.cache_mem_types);
    EXPECT_EQ(UCS_BIT(UCS_MEMORY_TYPE_HOST), of_ucx.reg_mem_types);
    EXPECT_EQ(m_md->attr.rkey_packed_size, of_ucx.rkey_packed_size);
    EXPECT_EQ(0u, of_ucx.exported_mkey_packed_size);
    EXPECT_EQ(0, of_ucx.global_id[0]);
#else
    uct_md_attr_t of_ucx;

    ASSERT_UCS_OK(uct_md_query(&m_md->super, &of_ucx));
    EXPECT_EQ(m_md->attr.max_alloc, of_ucx.cap.max_alloc);
    EXPECT_EQ(m_md->attr.max_reg, of_ucx.cap.max_reg);
    EXPECT_EQ(m_md->attr.flags, of_ucx.cap.flags);
    EXPECT_EQ(m_md->attr.reg_mem_types, of_ucx.cap.reg_mem_types);
    EXPECT_EQ(m_md->attr.access_mem_types, of_ucx.cap.access_mem_types);
    EXPECT_EQ(0u, of_ucx.cap.detect_mem_types);
    EXPECT_EQ(0u, of_ucx.cap.alloc_mem_types);
    EXPECT_EQ(m_md->attr.reg_cost.c, of_ucx.reg_cost.c);
    EXPECT_EQ(m_md->attr.rkey_packed_size, of_ucx.rkey_packed_size);
    EXPECT_EQ(0, memcmp(&m_md->attr.local_cpus, &of_ucx.local_cpus,
                        sizeof(of_ucx.local_cpus)));
#endif
}
