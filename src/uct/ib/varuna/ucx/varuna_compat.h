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

#endif
