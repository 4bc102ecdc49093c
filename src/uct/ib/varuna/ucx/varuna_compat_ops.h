/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The operations that each version of UCX wants of an interface, a memory domain and a
 * component: their arguments, and those that not all versions have. See varuna_compat.h;
 * varuna_compat_md.h has the query of a memory domain.
 */
#ifndef UCT_VARUNA_COMPAT_OPS_H_
#define UCT_VARUNA_COMPAT_OPS_H_

#include "varuna_compat.h"
#include <assert.h>

/*
 * Operations of an interface besides uct_iface_ops_t, and of a memory domain: UCX calls
 * each of them without looking whether it is there. The tables of a version that has
 * another number lack one: find out who calls it, and set it below.
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 23)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    12
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       13
#elif UCT_VARUNA_UCX_AT_LEAST(1, 22)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    10
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       12
#elif UCT_VARUNA_UCX_AT_LEAST(1, 21)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    8
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       12
#elif UCT_VARUNA_UCX_AT_LEAST(1, 20)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    10
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       11
#elif UCT_VARUNA_UCX_AT_LEAST(1, 16)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    7
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       11
#elif UCT_VARUNA_UCX_AT_LEAST(1, 15)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    6
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       12
#elif UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    5
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       12
#else
#  define UCT_VARUNA_COMPAT_NUM_IFACE_OPS    4
#  define UCT_VARUNA_COMPAT_NUM_MD_OPS       11
#endif

static_assert(sizeof(uct_iface_internal_ops_t) ==
              UCT_VARUNA_COMPAT_NUM_IFACE_OPS * sizeof(void*),
              "this version of UCX has internal operations that are not known here");
static_assert(sizeof(uct_md_ops_t) == UCT_VARUNA_COMPAT_NUM_MD_OPS * sizeof(void*),
              "this version of UCX has operations of memory domains that are not known "
              "here");


/* Define _name, the ep_invalidate of an interface, on top of _impl(ep). */
#if UCT_VARUNA_UCX_AT_LEAST(1, 21)
#  define UCT_VARUNA_COMPAT_EP_INVALIDATE(_name, _impl) \
    static ucs_status_t _name(uct_ep_h ep, const uct_ep_invalidate_params_t \
                                                   *params UCS_V_UNUSED) \
    { \
        return _impl(ep); \
    }
#else
#  define UCT_VARUNA_COMPAT_EP_INVALIDATE(_name, _impl) \
    static ucs_status_t _name(uct_ep_h ep, unsigned flags UCS_V_UNUSED) \
    { \
        return _impl(ep); \
    }
#endif


/*
 * Define what newer series ask of an interface besides, on top of
 * _reachable(iface, device_addr, iface_addr) and _connected(ep, iface_addr), and
 * list it in the internal operations.
 */
#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  define UCT_VARUNA_COMPAT_FILL_INFO(_params, _info) \
    uct_iface_fill_info_str_buf(_params, _info)
#else
#  define UCT_VARUNA_COMPAT_FILL_INFO(_params, _info)
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 16)
/* UCP asks for the scope of one device to learn whether the peer is on this node */
#  define UCT_VARUNA_COMPAT_REACHABLE(_name, _reachable) \
    static int _name(const uct_iface_h iface, \
                     const uct_iface_is_reachable_params_t *params) \
    { \
        if (!uct_iface_is_reachable_params_addrs_valid(params)) { \
            return 0; \
        } \
        \
        if (!_reachable(iface, params->device_addr, params->iface_addr)) { \
            UCT_VARUNA_COMPAT_FILL_INFO(params, \
                                        "no link in common, or another version"); \
            return 0; \
        } \
        \
        return uct_iface_scope_is_reachable(iface, params); \
    }
#  define UCT_VARUNA_COMPAT_CONNECTED(_name, _connected) \
    static int _name(uct_ep_h ep, const uct_ep_is_connected_params_t *params) \
    { \
        return (params->field_mask & UCT_EP_IS_CONNECTED_FIELD_IFACE_ADDR) && \
               _connected(ep, params->iface_addr); \
    }
#  define UCT_VARUNA_COMPAT_IFACE_OPS_REACHABLE(_reachable, _connected) \
    .iface_is_reachable_v2 = _reachable, \
    .ep_is_connected       = _connected,
#else
#  define UCT_VARUNA_COMPAT_REACHABLE(_name, _reachable)
#  define UCT_VARUNA_COMPAT_CONNECTED(_name, _connected)
#  if UCT_VARUNA_UCX_AT_LEAST(1, 15)
/* It asks the older operation */
#    define UCT_VARUNA_COMPAT_IFACE_OPS_REACHABLE(_reachable, _connected) \
    .iface_is_reachable_v2 = uct_base_iface_is_reachable_v2,
#  else
#    define UCT_VARUNA_COMPAT_IFACE_OPS_REACHABLE(_reachable, _connected)
#  endif
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_14 \
    .ep_connect_to_ep_v2 = (void*)ucs_empty_function_return_unsupported,
#else
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_14
#endif

/* For endpoints of GPUs, which we do not offer */
#if UCT_VARUNA_UCX_AT_LEAST(1, 20)
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_20 \
    .ep_get_device_ep = (void*)ucs_empty_function_return_unsupported,
#else
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_20
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 20) && !UCT_VARUNA_UCX_AT_LEAST(1, 21)
#  define UCT_VARUNA_COMPAT_IFACE_OPS_QUERY \
    .iface_query_v2         = uct_iface_base_query_v2, \
    .iface_mem_element_pack = (void*)ucs_empty_function_return_unsupported,
#elif UCT_VARUNA_UCX_AT_LEAST(1, 22)
#  define UCT_VARUNA_COMPAT_IFACE_OPS_QUERY \
    .iface_query_v2         = uct_iface_base_query_v2,
#else
#  define UCT_VARUNA_COMPAT_IFACE_OPS_QUERY
#endif

/* The base version of the query says that we have none of these */
#if UCT_VARUNA_UCX_AT_LEAST(1, 22)
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_22 \
    .ep_put_sgl_zcopy = (void*)ucs_empty_function_return_unsupported,
#else
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_22
#endif

#if UCT_VARUNA_UCX_AT_LEAST(1, 23)
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_23 \
    .ep_get_sgl_zcopy     = (void*)ucs_empty_function_return_unsupported, \
    .ep_outstanding_purge = (void*)ucs_empty_function_return_unsupported,
#else
#  define UCT_VARUNA_COMPAT_IFACE_OPS_1_23
#endif

#define UCT_VARUNA_COMPAT_IFACE_OPS(_reachable, _connected) \
    UCT_VARUNA_COMPAT_IFACE_OPS_1_14 \
    UCT_VARUNA_COMPAT_IFACE_OPS_REACHABLE(_reachable, _connected) \
    UCT_VARUNA_COMPAT_IFACE_OPS_1_20 \
    UCT_VARUNA_COMPAT_IFACE_OPS_QUERY \
    UCT_VARUNA_COMPAT_IFACE_OPS_1_22 \
    UCT_VARUNA_COMPAT_IFACE_OPS_1_23


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

#if UCT_VARUNA_UCX_AT_LEAST(1, 23)
#  define UCT_VARUNA_COMPAT_MD_OPS_RELEASE \
    .mem_elem_release = (void*)ucs_empty_function,
#else
#  define UCT_VARUNA_COMPAT_MD_OPS_RELEASE
#endif

#define UCT_VARUNA_COMPAT_MD_OPS \
    UCT_VARUNA_COMPAT_MD_OPS_SOCKADDR \
    UCT_VARUNA_COMPAT_MD_OPS_ATTACH \
    UCT_VARUNA_COMPAT_MD_OPS_ELEM \
    UCT_VARUNA_COMPAT_MD_OPS_RELEASE


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
