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
 *         completion queues of mlx5 may be compressed, doorbells may have a lock; UCP
 *         purges all its messages of the wire-up
 *   1.15  keys of reads and writes, and those of atomics, are invalidated apart;
 *         interfaces have iface_is_reachable_v2; the entries of ucs_sys_readdir() are const
 *   1.16  mkey_pack takes the address range, rkey_compare is there,
 *         is_sockaddr_accessible is gone, interfaces have ep_is_connected
 *   1.17  ib's options have the prefix of their table; the send queue of an RC
 *         endpoint is a class of its own
 *   1.18  a device may place data out of order (DDP), interfaces say whether
 *         they reach other nodes; mlx5 is a library of its own
 *   1.19  rkey_unpack takes parameters; ib looks for RoCE peers in the routing table
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
#include <dirent.h>
#include <string.h>

/* Nonzero if the UCX which we are compiled for is at least _major._minor */
#define UCT_VARUNA_UCX_AT_LEAST(_major, _minor) \
    ((UCT_VERNO_MAJOR > (_major)) || \
     ((UCT_VERNO_MAJOR == (_major)) && (UCT_VERNO_MINOR >= (_minor))))

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


/* Whether UCP takes all its messages of the wire-up back when the pending requests of a
 * failed endpoint are purged. 1.13 aborts the process at some of them
 * (ucp_request_send_state_ff()). */
#define UCT_VARUNA_COMPAT_PURGES_WIREUP UCT_VARUNA_UCX_AT_LEAST(1, 14)

/* The id of these messages, UCP_AM_ID_WIREUP in all series so far */
#define UCT_VARUNA_COMPAT_AM_ID_WIREUP  1


/* The option of ib's memory domain that permits the device to reorder its writes. Newer
 * series want it with the prefix of its table. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 17)
#  define UCT_VARUNA_COMPAT_RELAXED_ORDERING    "IB_PCI_RELAXED_ORDERING"
#else
#  define UCT_VARUNA_COMPAT_RELAXED_ORDERING    "PCI_RELAXED_ORDERING"
#endif


/* The GID that ib uses if none is named, by its index: the first one */
#if UCT_VARUNA_UCX_AT_LEAST(1, 17)
#  define UCT_VARUNA_COMPAT_DEFAULT_GID_INDEX    UCT_IB_DEVICE_DEFAULT_GID_INDEX
#else
#  define UCT_VARUNA_COMPAT_DEFAULT_GID_INDEX    UCT_IB_MD_DEFAULT_GID_INDEX
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

/* Flag of a flush: it completes when all that was written before is in the peer's memory, for
 * all that access it. Newer series of UCP pass it, for fences over several lanes. There is no
 * capability for it: a user requests it as a feature when an interface is opened, and ours
 * always has it. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_FLUSH_REMOTE    UCT_FLUSH_FLAG_REMOTE
#else
#  define UCT_VARUNA_COMPAT_FLUSH_REMOTE    UCS_BIT(1)
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

/** @return What memory is registered for, as for uct_md_mem_reg(). */
static inline unsigned uct_varuna_compat_reg_flags(uct_varuna_reg_arg_t arg)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return UCS_PARAM_VALUE(UCT_MD_MEM_REG_FIELD, arg, flags, FLAGS, 0);
#else
    return arg;
#endif
}

/** @return Whether memory is registered for remote atomics. */
static inline int uct_varuna_compat_reg_is_atomic(uct_varuna_reg_arg_t arg)
{
    return !!(uct_varuna_compat_reg_flags(arg) & UCT_MD_MEM_ACCESS_REMOTE_ATOMIC);
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

/* What the callback of ucs_sys_readdir() gets. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 15)
typedef const struct dirent uct_varuna_compat_dirent_t;
#else
typedef struct dirent       uct_varuna_compat_dirent_t;
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

/* --- Attributes of a memory domain --- */

/*
 * Those of uct_md_attr_v2_t, under their names. It has three more, which stay 0, as we export
 * no keys: the size of such a key, and the id by which UCP finds who imports it. UCT sets the
 * name of the component.
 */
typedef struct uct_varuna_md_attr {
    uint64_t                   max_alloc;
    size_t                     max_reg;
    uint64_t                   flags;
    uint64_t                   reg_mem_types;
    uint64_t                   reg_nonblock_mem_types; /* From 1.15 on */
    uint64_t                   cache_mem_types; /* From 1.14 on. UCP registers other memory
                                             anew for each use, and keeps one handle for both if
                                             the user has mapped it: it releases one only */
    uint64_t                   gva_mem_types;   /* From 1.18 on */
    uint64_t                   detect_mem_types;
    uint64_t                   alloc_mem_types;
    uint64_t                   access_mem_types;
    uint64_t                   dmabuf_mem_types; /* From 1.14 on: it makes dmabufs of them */
    ucs_linear_func_t          reg_cost;
    size_t                     rkey_packed_size;
    ucs_cpu_set_t              local_cpus;
    size_t                     reg_alignment;   /* From 1.16 on, where ib leaves it at 0 */
    uint8_t                    required_mem_flags; /* From 1.22 on */
} uct_varuna_md_attr_t;

/* Copy all that the structures of a version have, in either direction. What all versions have,
 * the oldest in a part of its own: @a _dst_cap and @a _src_cap. */
#define UCT_VARUNA_COMPAT_MD_ATTR_COPY_ALL(_dst, _dst_cap, _src, _src_cap) \
    do { \
        (_dst_cap).max_alloc        = (_src_cap).max_alloc; \
        (_dst_cap).max_reg          = (_src_cap).max_reg; \
        (_dst_cap).flags            = (_src_cap).flags; \
        (_dst_cap).reg_mem_types    = (_src_cap).reg_mem_types; \
        (_dst_cap).detect_mem_types = (_src_cap).detect_mem_types; \
        (_dst_cap).alloc_mem_types  = (_src_cap).alloc_mem_types; \
        (_dst_cap).access_mem_types = (_src_cap).access_mem_types; \
        (_dst)->reg_cost            = (_src)->reg_cost; \
        (_dst)->rkey_packed_size    = (_src)->rkey_packed_size; \
        (_dst)->local_cpus          = (_src)->local_cpus; \
    } while (0)

#define UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_14(_dst, _src) \
    do { \
        UCT_VARUNA_COMPAT_MD_ATTR_COPY_ALL(_dst, *(_dst), _src, *(_src)); \
        (_dst)->cache_mem_types  = (_src)->cache_mem_types; \
        (_dst)->dmabuf_mem_types = (_src)->dmabuf_mem_types; \
    } while (0)

#define UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_15(_dst, _src) \
    do { \
        UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_14(_dst, _src); \
        (_dst)->reg_nonblock_mem_types = (_src)->reg_nonblock_mem_types; \
    } while (0)

#define UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_16(_dst, _src) \
    do { \
        UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_15(_dst, _src); \
        (_dst)->reg_alignment = (_src)->reg_alignment; \
    } while (0)

#define UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_18(_dst, _src) \
    do { \
        UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_16(_dst, _src); \
        (_dst)->gva_mem_types = (_src)->gva_mem_types; \
    } while (0)

#define UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_22(_dst, _src) \
    do { \
        UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_18(_dst, _src); \
        (_dst)->required_mem_flags = (_src)->required_mem_flags; \
    } while (0)

#if UCT_VARUNA_UCX_AT_LEAST(1, 22)
#  define UCT_VARUNA_COMPAT_MD_ATTR_COPY    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_22
#elif UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  define UCT_VARUNA_COMPAT_MD_ATTR_COPY    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_18
#elif UCT_VARUNA_UCX_AT_LEAST(1, 16)
#  define UCT_VARUNA_COMPAT_MD_ATTR_COPY    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_16
#elif UCT_VARUNA_UCX_AT_LEAST(1, 15)
#  define UCT_VARUNA_COMPAT_MD_ATTR_COPY    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_15
#elif UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_COMPAT_MD_ATTR_COPY    UCT_VARUNA_COMPAT_MD_ATTR_COPY_1_14
#endif

/* @a _attr is ours. */
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
typedef uct_md_attr_v2_t uct_varuna_compat_md_attr_t;
#  define UCT_VARUNA_COMPAT_MD_ATTR_FROM_UCX(_attr, _of_ucx) \
    UCT_VARUNA_COMPAT_MD_ATTR_COPY(_attr, _of_ucx)
#  define UCT_VARUNA_COMPAT_MD_ATTR_TO_UCX(_of_ucx, _attr) \
    UCT_VARUNA_COMPAT_MD_ATTR_COPY(_of_ucx, _attr) /* UCX has zeroed the others */
#else
typedef uct_md_attr_t uct_varuna_compat_md_attr_t;
#  define UCT_VARUNA_COMPAT_MD_ATTR_FROM_UCX(_attr, _of_ucx) \
    do { \
        UCT_VARUNA_COMPAT_MD_ATTR_COPY_ALL(_attr, *(_attr), _of_ucx, (_of_ucx)->cap); \
        (_attr)->cache_mem_types = UCS_MASK(UCS_MEMORY_TYPE_LAST); \
    } while (0)
#  define UCT_VARUNA_COMPAT_MD_ATTR_TO_UCX(_of_ucx, _attr) \
    UCT_VARUNA_COMPAT_MD_ATTR_COPY_ALL(_of_ucx, (_of_ucx)->cap, _attr, *(_attr))
#endif

/** Attributes of an inner memory domain. */
static inline ucs_status_t
uct_varuna_compat_md_query(uct_md_h md, uct_varuna_md_attr_t *attr)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    uct_varuna_compat_md_attr_t of_ucx = { .field_mask = UINT64_MAX };
    ucs_status_t status                = uct_md_query_v2(md, &of_ucx);
#else
    uct_varuna_compat_md_attr_t of_ucx;
    ucs_status_t status = uct_md_query(md, &of_ucx);
#endif

    memset(attr, 0, sizeof(*attr));
    if (status == UCS_OK) {
        UCT_VARUNA_COMPAT_MD_ATTR_FROM_UCX(attr, &of_ucx);
    }
    return status;
}

/*
 * Define _name, the query of md operations, on top of _impl, which fills an
 * uct_varuna_md_attr_t.
 */
#define UCT_VARUNA_COMPAT_MD_QUERY(_name, _impl) \
    static ucs_status_t _name(uct_md_h md, uct_varuna_compat_md_attr_t *of_ucx) \
    { \
        uct_varuna_md_attr_t attr; \
        ucs_status_t status; \
        \
        memset(&attr, 0, sizeof(attr)); \
        status = _impl(md, &attr); \
        if (status == UCS_OK) { \
            UCT_VARUNA_COMPAT_MD_ATTR_TO_UCX(of_ucx, &attr); \
        } \
        return status; \
    }

/* --- Operations --- */

/* The operations that each version of UCX wants of an interface, a memory domain and a
 * component: their arguments, and those that not all versions have. */

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

/* --- The UCX in this process --- */

/* Is the UCX in this process the one that we were built for? Vendors build commits between
 * releases, build a version in several ways, and apply patches, so its number does not tell
 * how its structures look; and we write doorbells and credits into them. */

/**
 * Compare libuct and libucs. Call it once, before anything is registered with them. The
 * option UCX_RC_VARUNA_UCX_CHECK is read here, from the environment, because UCX's parser
 * is a part of what is compared.
 *
 * @return Whether UCX may be used. Otherwise a message has told why not.
 */
int uct_varuna_ucx_check(void);

/**
 * Compare the libraries with the inner transports, which are loaded later.
 *
 * @param [in] ib  The inner component. The first call decides for all.
 *
 * @return Whether they may be used. Otherwise the first call has told why not.
 */
int uct_varuna_ucx_check_ib(uct_component_h ib);

#endif
