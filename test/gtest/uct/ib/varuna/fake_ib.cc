/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The inner component for the tests of the memory domain.
 */
#include "fake_ib.h"

#include <common/test.h>

extern "C" {
#include <uct/ib/varuna/ucx/varuna_compat.h>
#include <ucs/algorithm/crc.h>
#include <ucs/debug/memtrack_int.h>
#include <ucs/sys/string.h>
}

#include <cstring>

/* The callbacks of UCT carry no argument */
static fake_ib *fake = NULL;

struct fake_md {
    uct_md_t        super;
    fake_ib::device *device;
};

static bool fails(unsigned *count, unsigned fail_at)
{
    return ++(*count) == fail_at;
}

static fake_ib::device *find_device(uct_md_h md)
{
    return reinterpret_cast<fake_md*>(md)->device;
}

static void fake_md_close(uct_md_h md)
{
    --fake->num_open_mds;
    delete reinterpret_cast<fake_md*>(md);
}

static ucs_status_t fake_md_query_attr(uct_md_h md, uct_varuna_md_attr_t *attr)
{
    const fake_ib::device *device = find_device(md);

    attr->max_alloc        = ULONG_MAX;
    attr->max_reg          = device->max_reg;
    attr->flags            = device->md_flags;
    attr->reg_mem_types    = fake->mem_types;
    attr->cache_mem_types  = UCS_MASK(UCS_MEMORY_TYPE_LAST);
    attr->access_mem_types = fake->mem_types;
    attr->detect_mem_types = fake->mem_types;
    attr->reg_cost         = ucs_linear_func_make(1e-6, 1e-9);
    attr->rkey_packed_size = UCT_VARUNA_INNER_KEY_SIZE;
    attr->reg_alignment    = 1;
    return UCS_OK;
}

UCT_VARUNA_COMPAT_MD_QUERY(fake_md_query, fake_md_query_attr)

static ucs_status_t fake_md_mem_reg(uct_md_h md, void *address, size_t length,
                                    uct_varuna_reg_arg_t arg, uct_mem_h *memh_p)
{
    fake_ib::mem *mem;

    if (fake->on_reg) {
        fake->on_reg();
    }

    if (fails(&fake->num_regs, fake->fail_reg)) {
        return UCS_ERR_IO_ERROR;
    }

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    if (uct_varuna_compat_reg_is_dmabuf(arg)) {
        EXPECT_TRUE(arg->field_mask & UCT_MD_MEM_REG_FIELD_DMABUF_OFFSET);
        fake->dmabufs.push_back(arg->dmabuf_fd);
    }
#endif
    mem          = new fake_ib::mem;
    mem->md_name = find_device(md)->name;
    mem->key     = ucs_crc32(0, mem->md_name.data(), mem->md_name.size());
    mem->advised = false;
    *memh_p      = mem;
    ++fake->num_mems;
    return UCS_OK;
}

static ucs_status_t fake_md_mem_dereg(uct_md_h md,
                                      const uct_md_mem_dereg_params_t *params)
{
    fake_ib::mem *mem = reinterpret_cast<fake_ib::mem*>(params->memh);
    bool failed       = fails(&fake->num_deregs, fake->fail_dereg);

    EXPECT_EQ(find_device(md)->name, mem->md_name);
    --fake->num_mems;
    delete mem;

    if ((params->field_mask & UCT_MD_MEM_DEREG_FIELD_FLAGS) &&
        (params->flags & UCT_MD_MEM_DEREG_FLAG_INVALIDATE) &&
        (!failed || fake->complete_failed_dereg)) {
        if (fake->hold_invalidations) {
            fake->held.push_back(params->comp);
        } else {
            uct_invoke_completion(params->comp, UCS_OK);
        }
    }

    return failed ? UCS_ERR_IO_ERROR : UCS_OK;
}

static ucs_status_t fake_md_mem_advise(uct_md_h md, uct_mem_h memh, void *addr,
                                       size_t length, unsigned advice)
{
    if (fake->fail_advise) {
        return UCS_ERR_IO_ERROR;
    }

    reinterpret_cast<fake_ib::mem*>(memh)->advised = true;
    ++fake->num_advised;
    return UCS_OK;
}

static ucs_status_t
fake_md_mkey_pack_any(uct_md_h md, uct_mem_h memh, void *address, size_t length,
                      const uct_md_mkey_pack_params_t *params, void *buffer)
{
    const fake_ib::mem *mem = reinterpret_cast<const fake_ib::mem*>(memh);

    EXPECT_EQ(find_device(md)->name, mem->md_name);
    EXPECT_EQ(0u, reinterpret_cast<uintptr_t>(buffer) % sizeof(uint64_t));
    fake->pack_flags = (params->field_mask & UCT_MD_MKEY_PACK_FIELD_FLAGS) ?
                       params->flags : 0;
    if (fails(&fake->num_packs, fake->fail_pack)) {
        return UCS_ERR_IO_ERROR;
    }

    memcpy(buffer, &mem->key, sizeof(mem->key));
    return UCS_OK;
}

UCT_VARUNA_COMPAT_MKEY_PACK(fake_md_mkey_pack, fake_md_mkey_pack_any)

static ucs_status_t fake_rkey_unpack_any(const void *buffer, uct_rkey_t *rkey_p,
                                         void **handle_p)
{
    uint64_t key;

    if (fails(&fake->num_unpacks, fake->fail_unpack)) {
        return UCS_ERR_IO_ERROR;
    }

    memcpy(&key, buffer, sizeof(key));
    *rkey_p   = key;
    *handle_p = NULL;
    ++fake->num_rkeys;
    return UCS_OK;
}

UCT_VARUNA_COMPAT_RKEY_UNPACK(fake_rkey_unpack, fake_rkey_unpack_any)

static ucs_status_t
fake_rkey_release(uct_component_t *component, uct_rkey_t rkey, void *handle)
{
    --fake->num_rkeys;
    return UCS_OK;
}

static ucs_status_t
fake_query_md_resources(uct_component_t *component,
                        uct_md_resource_desc_t **resources_p, unsigned *num_p)
{
    uct_md_resource_desc_t *resources;

    resources = (uct_md_resource_desc_t*)
            ucs_calloc(fake->devices.size() + 1, sizeof(*resources), "fake_ib");
    for (size_t i = 0; i < fake->devices.size(); ++i) {
        ucs_strncpy_zero(resources[i].md_name, fake->devices[i].name.c_str(),
                         sizeof(resources[i].md_name));
    }

    *resources_p = resources;
    *num_p       = fake->devices.size();
    return UCS_OK;
}

static ucs_config_field_t fake_md_config_table[] = {
    {"", "", NULL, 0, UCS_CONFIG_TYPE_TABLE(uct_md_config_table)},
    {UCT_VARUNA_COMPAT_RELAXED_ORDERING, "auto", "",
     ucs_offsetof(fake_ib::md_config, relaxed), UCS_CONFIG_TYPE_STRING},
    {NULL}
};

void fake_ib::forget_relaxed_ordering()
{
    m_component.md_config.table = uct_md_config_table;
    m_component.md_config.size  = sizeof(uct_md_config_t);
}

static ucs_status_t
fake_md_open(uct_component_t *component, const char *md_name,
             const uct_md_config_t *config, uct_md_h *md_p)
{
    static uct_md_ops_t ops;

    ops.close      = fake_md_close;
    ops.query      = fake_md_query;
    ops.mem_reg    = fake_md_mem_reg;
    ops.mem_dereg  = fake_md_mem_dereg;
    ops.mem_advise = fake_md_mem_advise;
    ops.mkey_pack  = fake_md_mkey_pack;

    EXPECT_STREQ("off", ucs_derived_of(config, fake_ib::md_config)->relaxed);
    for (fake_ib::device &device : fake->devices) {
        if ((device.name == md_name) && device.can_open) {
            fake_md *md         = new fake_md;
            md->super.ops       = &ops;
            md->super.component = component;
            md->device          = &device;
            *md_p               = &md->super;
            ++fake->num_open_mds;
            return UCS_OK;
        }
    }
    return UCS_ERR_IO_ERROR;
}

extern "C" uint64_t uct_varuna_mlx5_ports_keep(uct_md_h md)
{
    fake_ib::device *device = find_device(md);

    device->are_kept = true;
    return device->ports_down;
}

static ucs_status_t query_ports(uct_md_h md, bool is_dc,
                                uct_tl_device_resource_t **devices_p,
                                unsigned *num_p)
{
    const fake_ib::device *device = find_device(md);
    uct_tl_device_resource_t *devices;

    if (is_dc && !device->has_dc) {
        return UCS_ERR_NO_DEVICE;
    }

    EXPECT_TRUE(device->are_kept);
    devices = (uct_tl_device_resource_t*)
            ucs_calloc(device->num_ports, sizeof(*devices), "fake_ib");
    for (unsigned i = 0; i < device->num_ports; ++i) {
        ucs_snprintf_safe(devices[i].name, sizeof(devices[i].name), "%s:%u",
                          device->name.c_str(), i + 1);
        devices[i].type       = UCT_DEVICE_TYPE_NET;
        devices[i].sys_device = device - &fake->devices[0];
    }

    *devices_p = devices;
    *num_p     = device->num_ports;
    return UCS_OK;
}

static ucs_status_t query_rc(uct_md_h md, uct_tl_device_resource_t **devices_p,
                             unsigned *num_p)
{
    return query_ports(md, false, devices_p, num_p);
}

static ucs_status_t query_dc(uct_md_h md, uct_tl_device_resource_t **devices_p,
                             unsigned *num_p)
{
    return query_ports(md, true, devices_p, num_p);
}

fake_ib::device::device(const std::string &_name, unsigned _num_ports) :
    name(_name), num_ports(_num_ports), has_dc(true), can_open(true),
    md_flags(UCT_MD_FLAG_REG | UCT_MD_FLAG_NEED_MEMH | UCT_MD_FLAG_NEED_RKEY |
             UCT_MD_FLAG_ADVISE | UCT_MD_FLAG_INVALIDATE),
    max_reg(SIZE_MAX), ports_down(0), are_kept(false)
{
}

fake_ib::fake_ib() :
    mem_types(UCS_BIT(UCS_MEMORY_TYPE_HOST)), fail_reg(0), fail_dereg(0), fail_pack(0), fail_unpack(0),
    fail_advise(false), hold_invalidations(false), complete_failed_dereg(false),
    num_open_mds(0), num_mems(0), num_rkeys(0), num_regs(0), num_deregs(0),
    num_packs(0), num_unpacks(0), num_advised(0), pack_flags(0)
{
    strcpy(const_cast<char*>(m_component.name), "fake_ib");
    m_component.query_md_resources = fake_query_md_resources;
    m_component.md_open            = fake_md_open;
    m_component.rkey_unpack        = fake_rkey_unpack;
    m_component.rkey_release       = fake_rkey_release;
    m_component.md_vfs_init        = [](uct_md_h) {};
    m_component.md_config.name     = "fake";
    m_component.md_config.prefix   = "";
    m_component.md_config.table    = fake_md_config_table;
    m_component.md_config.size     = sizeof(md_config);

    strcpy(m_rc.name, UCT_VARUNA_RC_TL);
    strcpy(m_dc.name, UCT_VARUNA_DC_TL);
    m_rc.query_devices = query_rc;
    m_dc.query_devices = query_dc;
    ucs_list_head_init(&m_component.tl_list);
    ucs_list_add_tail(&m_component.tl_list, &m_dc.list);
    ucs_list_add_tail(&m_component.tl_list, &m_rc.list);
    fake = this;
}

fake_ib::~fake_ib()
{
    fake = NULL;
}

void fake_ib::complete_invalidations()
{
    std::vector<uct_completion_t*> comps;

    comps.swap(held);
    for (uct_completion_t *comp : comps) {
        uct_invoke_completion(comp, UCS_OK);
    }
}
