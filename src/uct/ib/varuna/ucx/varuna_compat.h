/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The only place which knows UCX versions. UCX's internal interfaces drift
 * between its series; the differences are hidden here in one form, which is
 * that of the newest series where it is a superset. CI builds and tests 1.13.1;
 * docs/TESTING.md says what was tried with others.
 *
 *   1.14  memory registration takes parameters, also a dmabuf, md query has
 *         attributes v2, md has mem_attach; memory pools take parameters;
 *         completion queues of mlx5 may be compressed, doorbells may have a lock
 *   1.15  keys of reads and writes, and those of atomics, are invalidated apart;
 *         interfaces have iface_is_reachable_v2
 *   1.16  mkey_pack takes the address range, rkey_compare is there,
 *         is_sockaddr_accessible is gone, interfaces have ep_is_connected
 *   1.17  ib's options have the prefix of their table; the send queue of an RC
 *         endpoint is a class of its own
 *   1.18  a device may place data out of order (DDP), interfaces say whether
 *         they reach other nodes; mlx5 is a library of its own
 *   1.19  rkey_unpack takes parameters; ib asks the routing table who is reachable
 *   1.20  iface_query_v2, iface_mem_element_pack, ep_get_device_ep
 *   1.21  ep_invalidate takes parameters; mem_elem_pack is an operation of the memory
 *         domain, iface_query_v2 is gone
 *   1.22  iface_query_v2 is back, ep_put_sgl_zcopy
 *   1.23  (master) ep_get_sgl_zcopy, ep_outstanding_purge, mem_elem_release
 */
#ifndef UCT_VARUNA_COMPAT_H_
#define UCT_VARUNA_COMPAT_H_

#include <uct/api/uct.h>
#include <uct/api/version.h>
#include <uct/api/v2/uct_v2.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>
#include <ucs/arch/cpu.h>
#include <ucs/async/async.h>
#include <ucs/datastruct/mpool.h>
#include <ucs/sys/string.h>
#if __has_include(<ucs/sys/ptr_arith.h>)
#  include <ucs/sys/ptr_arith.h> /* 1.18: ucs_align_up() and others */
#endif
#include <assert.h>
#include <string.h>

/* Nonzero if the UCX which we are compiled for is at least _major._minor */
#define UCT_VARUNA_UCX_AT_LEAST(_major, _minor) \
    ((UCT_VERNO_MAJOR > (_major)) || \
     ((UCT_VERNO_MAJOR == (_major)) && (UCT_VERNO_MINOR >= (_minor))))

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

/* Bytes which ib's rkey_unpack reads; it is the same in all series so far, and
 * md_open compares it with what the memory domain says. */
#define UCT_VARUNA_INNER_KEY_SIZE    sizeof(uint64_t)


/* Capability of an interface which reaches other nodes; ours does what its lanes
 * do. */
#ifdef UCT_IFACE_FLAG_INTER_NODE
#  define UCT_VARUNA_COMPAT_INTER_NODE    UCT_IFACE_FLAG_INTER_NODE
#else
#  define UCT_VARUNA_COMPAT_INTER_NODE    0
#endif


/* Flags of a memory domain that invalidates keys. Newer series have one for keys of reads
 * and writes and one for keys of atomics, and UCP uses neither with error handling
 * unless it can be invalidated. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 15)
#  define UCT_VARUNA_COMPAT_INVALIDATE \
    (UCT_MD_FLAG_INVALIDATE | UCT_MD_FLAG_INVALIDATE_RMA | \
     UCT_MD_FLAG_INVALIDATE_AMO)
#else
#  define UCT_VARUNA_COMPAT_INVALIDATE    UCT_MD_FLAG_INVALIDATE
#endif


/** Attributes of an inner memory domain, with the flags that only the newer form of the
 * query returns. */
static inline ucs_status_t
uct_varuna_compat_md_query(uct_md_h md, uct_md_attr_t *attr)
{
    ucs_status_t status = uct_md_query(md, attr);

#if UCT_VARUNA_UCX_AT_LEAST(1, 15)
    uct_md_attr_v2_t attr_v2 = { .field_mask = UCT_MD_ATTR_FIELD_FLAGS };

    if (status == UCS_OK) {
        status = uct_md_query_v2(md, &attr_v2);
    }

    if (status == UCS_OK) {
        attr->cap.flags = attr_v2.flags;
    }
#endif
    return status;
}


/* The option of ib's memory domain that permits the device to reorder its writes. Newer
 * series want it with the prefix of its table. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 17)
#  define UCT_VARUNA_COMPAT_RELAXED_ORDERING    "IB_PCI_RELAXED_ORDERING"
#else
#  define UCT_VARUNA_COMPAT_RELAXED_ORDERING    "PCI_RELAXED_ORDERING"
#endif


/** A pool of objects that are aligned to cache lines, without a limit. */
static inline ucs_status_t
uct_varuna_compat_mpool_init(ucs_mpool_t *mp, size_t elem_size,
                             unsigned elems_per_chunk, ucs_mpool_ops_t *ops,
                             const char *name)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    ucs_mpool_params_t params;

    ucs_mpool_params_reset(&params);
    params.elem_size       = elem_size;
    params.alignment       = UCS_SYS_CACHE_LINE_SIZE;
    params.elems_per_chunk = elems_per_chunk;
    params.ops             = ops;
    params.name            = name;
    return ucs_mpool_init(&params, mp);
#else
    return ucs_mpool_init(mp, 0, elem_size, 0, UCS_SYS_CACHE_LINE_SIZE,
                          elems_per_chunk, UINT_MAX, ops, name);
#endif
}


/* Initialiser of an uct_iface_mpool_config_t: as many objects as are asked for, in
 * chunks of _grow. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_MPOOL_CONFIG(_grow) \
    { \
        .max_bufs       = UINT_MAX, \
        .bufs_grow      = (_grow), \
        .max_chunk_size = SIZE_MAX, \
        .grow_factor    = 1.0 \
    }
#else
#  define UCT_VARUNA_COMPAT_MPOOL_CONFIG(_grow) \
    { \
        .max_bufs  = UINT_MAX, \
        .bufs_grow = (_grow) \
    }
#endif


/** Move an endpoint to the error state. */
static inline ucs_status_t uct_varuna_compat_ep_invalidate(uct_ep_h ep)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 21)
    uct_ep_invalidate_params_t params = { .field_mask = 0 };

    return uct_ep_invalidate(ep, &params);
#else
    return uct_ep_invalidate(ep, 0);
#endif
}

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

/* Check the arguments of ep_check. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 22)
#  define UCT_VARUNA_COMPAT_EP_CHECK_PARAM(_flags, _comp) \
    UCT_CHECK_PARAM((_comp) == NULL, "Unsupported completion on ep_check"); \
    UCT_EP_KEEPALIVE_CHECK_PARAM(_flags)
#else
#  define UCT_VARUNA_COMPAT_EP_CHECK_PARAM(_flags, _comp) \
    UCT_EP_KEEPALIVE_CHECK_PARAM(_flags, _comp)
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
 * Since 1.19 ib takes a RoCE peer for reachable if the kernel's table of routes has one over
 * the port. It reads the table once in a process, so that nobody is reachable over a port
 * that comes up later. Whom a port reaches is found out by messages: let ib believe that it
 * is everybody, unless the user chose another way.
 *
 * @param [in] table  Prefix of the interface's table of options: "RC" or "DC".
 */
static inline ucs_status_t
uct_varuna_compat_config_reachable(uct_iface_config_t *config, const char *table)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 19)
    char name[64], value[32];

    /* Reading an option needs its whole path through UCX's tables */
    ucs_snprintf_safe(name, sizeof(name), "%s_RC_IB_ROCE_REACHABILITY_MODE", table);
    if ((uct_config_get(config, name, value, sizeof(value)) == UCS_OK) &&
        !strcmp(value, "route")) {
        return uct_config_modify(config, "IB_ROCE_REACHABILITY_MODE", "all");
    }
#endif
    return UCS_OK;
}


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

/** @return Whether memory is registered for remote atomics. */
static inline int uct_varuna_compat_reg_is_atomic(uct_varuna_reg_arg_t arg)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return !!(UCS_PARAM_VALUE(UCT_MD_MEM_REG_FIELD, arg, flags, FLAGS, 0) &
              UCT_MD_MEM_ACCESS_REMOTE_ATOMIC);
#else
    return !!(arg & UCT_MD_MEM_ACCESS_REMOTE_ATOMIC);
#endif
}

/* Flag of a memory domain that registers the memory of a device by its dmabuf. UCP
 * registers such memory with each one that has it. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_REG_DMABUF    UCT_MD_FLAG_REG_DMABUF
#else
#  define UCT_VARUNA_COMPAT_REG_DMABUF    0
#endif

/** @return Whether memory is registered by a dmabuf. */
static inline int uct_varuna_compat_reg_is_dmabuf(uct_varuna_reg_arg_t arg)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return UCS_PARAM_VALUE(UCT_MD_MEM_REG_FIELD, arg, dmabuf_fd, DMABUF_FD,
                           UCT_DMABUF_FD_INVALID) != UCT_DMABUF_FD_INVALID;
#else
    (void)arg;
    return 0;
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
    /* UCX has zeroed it, and set the mask of its fields */
#  if UCT_VARUNA_UCX_AT_LEAST(1, 17)
    uct_md_base_md_query(attr_v2);
#  elif UCT_VARUNA_UCX_AT_LEAST(1, 16)
    attr_v2->reg_alignment = 1;
#  endif
#  if UCT_VARUNA_UCX_AT_LEAST(1, 22)
    attr_v2->required_mem_flags = UCS_MEM_FLAG_REGISTRABLE;
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

/** As UCS_ASYNC_BLOCK(), unless another thread has the lock.
 *  @return Whether it is blocked now. */
static inline int uct_varuna_compat_async_try_block(ucs_async_context_t *async)
{
    if (async->mode == UCS_ASYNC_MODE_THREAD_SPINLOCK) {
        return ucs_recursive_spin_trylock(&async->thread.spinlock);
    }

    if (async->mode == UCS_ASYNC_MODE_THREAD_MUTEX) {
        if (pthread_mutex_trylock(&async->thread.mutex.lock) != 0) {
            return 0;
        }

        /* It is recursive: this counts as UCX does, and waits for nobody */
        ucs_recursive_mutex_block(&async->thread.mutex);
        (void)pthread_mutex_unlock(&async->thread.mutex.lock);
        return 1;
    }

    UCS_ASYNC_BLOCK(async); /* There is no other thread */
    return 1;
}

#endif
