/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The memory domain and its handles of memory. varuna_md_open.h opens it, varuna_mem.h
 * has its operations.
 */
#ifndef UCT_VARUNA_MD_H_
#define UCT_VARUNA_MD_H_

#include "varuna_cmd.h"
#include "varuna_nic.h"
#include <uct/ib/varuna/core/varuna_regions.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include "varuna_rkey.h"

#include <pthread.h>
#include <uct/base/uct_md.h>

/** @return Nonzero if the NIC of an inner memory domain is gone for good. */
typedef int (*uct_varuna_md_is_dead_func_t)(uct_md_h md);

/** @return Nonzero if a port, such as "mlx5_0:1", answers when its device is opened anew. */
typedef int (*uct_varuna_md_answers_func_t)(const char *dev_name);

/* Of a NIC that may be gone, varuna_health.c */
typedef struct uct_varuna_md_end uct_varuna_md_end_t;

/* Of a NIC that works again, varuna_return.c */
typedef struct uct_varuna_return uct_varuna_return_t;

/* Local handle: inner handles by NIC index. */
struct uct_varuna_mem {
    void                       *address;
    size_t                     length;
    uct_varuna_region_t        region;    /* In md->shared, if is_shared */
    int                        is_shared; /* A key of it was packed */
    int                        is_atomic; /* Registered for remote atomics */
    uint8_t                    device;    /* Whose memory it is. Unless it is the host's, only
                                             NICs access it */
    uint64_t                   keys[UCT_VARUNA_MAX_LINKS]; /* Inner, packed, of the NICs in */
    uint8_t                    packed;    /* this map */
    uint64_t                   token;     /* In its keys; if is_shared */
    ucs_list_link_t            list;      /* In md->mems */
    unsigned                   flags;     /* It was registered with */
    unsigned                   num_nics;  /* ... on these. Owner of this and the next one:
                                              varuna_return.c */
    uint8_t                    owed;      /* NICs that came later, and have not registered it
                                              yet */
    uct_mem_h                  inner[UCT_VARUNA_MAX_LINKS]; /* Atomic. NULL if the NIC
                                                               is no link */
};

struct uct_varuna_md {
    uct_md_t                   super;
    uct_component_h            ib;        /* Inner component */
    unsigned                   num_nics;  /* Atomic: those that were reset get another
                                             number, varuna_return.h */
    /* In canonical order (by device name), so that NIC k of one host is NIC k of
     * another, whatever links each uses. Two ports of one device have two entries
     * that share the md handle. */
    uct_varuna_nic_t           nics[UCT_VARUNA_MAX_LINKS];
    uct_varuna_cmds_t          *cmds[UCT_VARUNA_MAX_LINKS]; /* Commands to the NICs that
                                              have a memory domain of their own; NULL: the
                                              caller gives them */
    uct_varuna_md_end_t        *ends[UCT_VARUNA_MAX_LINKS]; /* Of the same NICs; NULL:
                                              nobody has asked */
    uct_varuna_return_t        *returns[UCT_VARUNA_MAX_LINKS]; /* Of the same NICs; NULL:
                                              they have not come back */
    /* NIC indices by priority: the configured order, else canonical. Only
     * these NICs have an open md. */
    unsigned                   num_links;
    uint8_t                    links[UCT_VARUNA_MAX_LINKS];
    unsigned                   vqp_links; /* So many of them does a vQP use at first */
    int                        order_is_given; /* By a file: distance is of no account */
    int                        links_are_named; /* By the user, each of them: their
                                                 order is that of the networks */
    unsigned                   num_primaries; /* The first of them are shown as
                                                 devices of the transport */
    struct {
        uint8_t                is_set;    /* Over RETURN_DELAY */
        ucs_time_t             delay;     /* UCS_TIME_INFINITY: never */
    } return_policy;                      /* From the file of links */
    uct_varuna_atomic_mode_t   atomic_mode;
    uct_varuna_md_is_dead_func_t is_dead; /* NULL: NICs never die */
    uct_varuna_md_answers_func_t answers; /* NULL: nor do they come back */
    int                        rests_at_fork; /* It has called uct_varuna_ucx_fork_get() */
    void                       *spare_page; /* What spares have registered */
    pthread_mutex_t            lock;      /* Protects the tree and the list of regions,
                                             where spares are, what NICs are short of, and
                                             which numbers there are. No command to a NIC is
                                             given while it is held */
    ucs_list_link_t            mems;      /* All that are registered */
    uct_varuna_regions_t       shared;    /* uct_varuna_mem_t, see
                                             varuna_mem.c */
    uct_varuna_secret_key_t    token_key; /* Makes tokens of numbers */
    uint64_t                   num_tokens;
    uct_varuna_md_attr_t       attr;      /* What all links can do */
};

/** @return The number that a port had first, its place among those of the host. */
static inline unsigned uct_varuna_md_port(const uct_varuna_md_t *md, unsigned nic)
{
    return md->nics[nic].has_returned ? md->nics[nic].port : nic;
}

/** A NIC has packed a key of the region, unless it has one. Lock of the memory domain. */
static inline void uct_varuna_mem_add_key(uct_varuna_mem_t *mem, unsigned nic, uint64_t key)
{
    if (!(mem->packed & UCS_BIT(nic))) {
        mem->keys[nic] = key;
        mem->packed   |= UCS_BIT(nic);
    }
}

/** @return Inner memory handle of @a memh for @a nic, NULL-safe
 *  (UCT_MEM_HANDLE_NULL stays so). */
static inline uct_mem_h uct_varuna_mem_inner(uct_mem_h memh, unsigned nic)
{
    return (memh == UCT_MEM_HANDLE_NULL) ? UCT_MEM_HANDLE_NULL :
           __atomic_load_n(&((uct_varuna_mem_t*)memh)->inner[nic], __ATOMIC_RELAXED);
}

#endif
