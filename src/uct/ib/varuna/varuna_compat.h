/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The only place which knows UCX versions. UCX's internal interfaces drift
 * between its series; what differs is hidden here behind one form, which is
 * that of the newest series where it is a superset. 1.13.1 is built and tested,
 * the others are checked to compile.
 *
 *   1.14  memory registration takes parameters, md query has attributes v2,
 *         md has mem_attach
 *   1.16  mkey_pack takes the address range, rkey_compare is there,
 *         is_sockaddr_accessible is gone
 *   1.19  rkey_unpack takes parameters
 */
#ifndef UCT_VARUNA_COMPAT_H_
#define UCT_VARUNA_COMPAT_H_

#include <uct/api/uct.h>
#include <uct/api/version.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_md.h>
#include <string.h>

/* Nonzero if the UCX which we are compiled for is at least _major._minor */
#define UCT_VARUNA_UCX_AT_LEAST(_major, _minor) \
    ((UCT_VERNO_MAJOR > (_major)) || \
     ((UCT_VERNO_MAJOR == (_major)) && (UCT_VERNO_MINOR >= (_minor))))

/* Bytes which ib's rkey_unpack reads; it is the same in all series so far, and
 * md_open compares it with what the memory domain says. */
#define UCT_VARUNA_INNER_KEY_SIZE    sizeof(uint64_t)


/*
 * What a registration is asked for: flags, or a pointer to parameters. It is
 * handed on to the inner memory domains as it is.
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
typedef const uct_md_mem_reg_params_t *uct_varuna_reg_arg_t;
#else
typedef unsigned                      uct_varuna_reg_arg_t;
#endif

static inline ucs_status_t
uct_varuna_compat_mem_reg(uct_md_h md, void *address, size_t length,
                          uct_varuna_reg_arg_t arg, uct_mem_h *memh_p)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return uct_md_mem_reg_v2(md, address, length, arg, memh_p);
#else
    return uct_md_mem_reg(md, address, length, arg, memh_p);
#endif
}

/** @return Log level for a failed registration. */
static inline ucs_log_level_t
uct_varuna_compat_reg_log_level(uct_varuna_reg_arg_t arg)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return uct_md_reg_log_lvl(
            UCS_PARAM_VALUE(UCT_MD_MEM_REG_FIELD, arg, flags, FLAGS, 0));
#else
    return uct_md_reg_log_lvl(arg);
#endif
}


static inline ucs_status_t
uct_varuna_compat_mkey_pack(uct_md_h md, uct_mem_h memh, void *address,
                            size_t length,
                            const uct_md_mkey_pack_params_t *params,
                            void *buffer)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 16)
    return uct_md_mkey_pack_v2(md, memh, address, length, params, buffer);
#else
    (void)address;
    (void)length;
    return uct_md_mkey_pack_v2(md, memh, params, buffer);
#endif
}

/*
 * Define _name, the mkey_pack of md operations, on top of _impl, which has the
 * arguments of uct_varuna_compat_mkey_pack().
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 16)
#  define UCT_VARUNA_COMPAT_MKEY_PACK(_name, _impl) \
    static ucs_status_t _name(uct_md_h md, uct_mem_h memh, void *address, \
                              size_t length, \
                              const uct_md_mkey_pack_params_t *params, \
                              void *buffer) \
    { \
        return _impl(md, memh, address, length, params, buffer); \
    }
#else
#  define UCT_VARUNA_COMPAT_MKEY_PACK(_name, _impl) \
    static ucs_status_t _name(uct_md_h md, uct_mem_h memh, \
                              const uct_md_mkey_pack_params_t *params, \
                              void *buffer) \
    { \
        return _impl(md, memh, NULL, 0, params, buffer); \
    }
#endif


/*
 * Define _name, the query of md operations, on top of _impl, which fills an
 * uct_md_attr_t.
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_MD_QUERY(_name, _impl) \
    static ucs_status_t _name(uct_md_h md, uct_md_attr_v2_t *attr_v2) \
    { \
        uct_md_attr_t attr; \
        ucs_status_t status; \
        \
        memset(&attr, 0, sizeof(attr)); \
        status = _impl(md, &attr); \
        if (status == UCS_OK) { \
            uct_varuna_compat_md_attr_to_v2(&attr, attr_v2); \
        } \
        return status; \
    }

static inline void
uct_varuna_compat_md_attr_to_v2(const uct_md_attr_t *attr,
                                uct_md_attr_v2_t *attr_v2)
{
#  if UCT_VARUNA_UCX_AT_LEAST(1, 17)
    uct_md_base_md_query(attr_v2);
#  else
    memset(attr_v2, 0, sizeof(*attr_v2));
#    if UCT_VARUNA_UCX_AT_LEAST(1, 16)
    attr_v2->reg_alignment = 1;
#    endif
#  endif
    attr_v2->max_alloc        = attr->cap.max_alloc;
    attr_v2->max_reg          = attr->cap.max_reg;
    attr_v2->flags            = attr->cap.flags;
    attr_v2->reg_mem_types    = attr->cap.reg_mem_types;
    attr_v2->cache_mem_types  = attr->cap.reg_mem_types;
    attr_v2->detect_mem_types = attr->cap.detect_mem_types;
    attr_v2->alloc_mem_types  = attr->cap.alloc_mem_types;
    attr_v2->access_mem_types = attr->cap.access_mem_types;
    attr_v2->reg_cost         = attr->reg_cost;
    attr_v2->rkey_packed_size = attr->rkey_packed_size;
    attr_v2->local_cpus       = attr->local_cpus;
}
#else
#  define UCT_VARUNA_COMPAT_MD_QUERY(_name, _impl) \
    static ucs_status_t _name(uct_md_h md, uct_md_attr_t *attr) \
    { \
        return _impl(md, attr); \
    }
#endif


/* Initialisers of md operations which are not in all series; all refuse. */
#if !UCT_VARUNA_UCX_AT_LEAST(1, 16)
#  define UCT_VARUNA_COMPAT_MD_OPS_SOCKADDR \
    .is_sockaddr_accessible = ucs_empty_function_return_zero_int,
#else
#  define UCT_VARUNA_COMPAT_MD_OPS_SOCKADDR
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_MD_OPS_ATTACH \
    .mem_attach = (void*)ucs_empty_function_return_unsupported,
#else
#  define UCT_VARUNA_COMPAT_MD_OPS_ATTACH
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 21)
#  define UCT_VARUNA_COMPAT_MD_OPS_ELEM \
    .mem_elem_pack = (void*)ucs_empty_function_return_unsupported,
#else
#  define UCT_VARUNA_COMPAT_MD_OPS_ELEM
#endif

#define UCT_VARUNA_COMPAT_MD_OPS \
    UCT_VARUNA_COMPAT_MD_OPS_SOCKADDR \
    UCT_VARUNA_COMPAT_MD_OPS_ATTACH \
    UCT_VARUNA_COMPAT_MD_OPS_ELEM


/*
 * Define _name, the rkey_unpack of a component, on top of
 * _impl(rkey_buffer, rkey_p, handle_p).
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 19)
#  define UCT_VARUNA_COMPAT_RKEY_UNPACK(_name, _impl) \
    static ucs_status_t _name(uct_component_t *component UCS_V_UNUSED, \
                              const void *rkey_buffer, \
                              const uct_rkey_unpack_params_t *params \
                                      UCS_V_UNUSED, \
                              uct_rkey_t *rkey_p, void **handle_p) \
    { \
        return _impl(rkey_buffer, rkey_p, handle_p); \
    }
#else
#  define UCT_VARUNA_COMPAT_RKEY_UNPACK(_name, _impl) \
    static ucs_status_t _name(uct_component_t *component UCS_V_UNUSED, \
                              const void *rkey_buffer, uct_rkey_t *rkey_p, \
                              void **handle_p) \
    { \
        return _impl(rkey_buffer, rkey_p, handle_p); \
    }
#endif

/* Initialisers of the component which are not in all series. The base version
 * compares the values of keys, ours are pointers: equal keys which were unpacked
 * twice count as different, which costs callers a cache hit and nothing else. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 16)
#  define UCT_VARUNA_COMPAT_COMPONENT_OPS \
    .rkey_compare = uct_base_rkey_compare,
#else
#  define UCT_VARUNA_COMPAT_COMPONENT_OPS
#endif

#endif
