/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The attributes of a memory domain that the versions of UCX know. See varuna_compat.h.
 */
#ifndef UCT_VARUNA_COMPAT_MD_H_
#define UCT_VARUNA_COMPAT_MD_H_

#include "varuna_compat.h"

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

#endif
