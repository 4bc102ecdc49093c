/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The memory domain, its handles of memory, and keys. varuna_md_open.c opens it, varuna_mem.c
 * has its operations.
 */
#ifndef UCT_VARUNA_MD_H_
#define UCT_VARUNA_MD_H_

#include "varuna_cmd.h"
#include "varuna_nic.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include <uct/ib/varuna/core/varuna_msg.h>
#include <uct/ib/varuna/core/varuna_numbers.h>
#include <uct/ib/varuna/ucx/varuna_compat.h>

#include <ucs/memory/memory_type.h>
#include <ucs/sys/compiler.h>
#include <uct/base/uct_component.h>
#include <uct/base/uct_iface.h>
#include <uct/base/uct_md.h>
#include <pthread.h>
#include <stdint.h>

/* --- Regions --- */

/* Regions of memory, which may overlap, found by address: a tree sorted by their
 * beginnings, balanced by random priorities (a treap), in which each node knows the
 * highest end below it. The caller locks. */

/** A region; part of what the caller keeps of it. */
typedef struct uct_varuna_region {
    uint64_t                   first;     /* Its first byte */
    uint64_t                   last;      /* Its last byte */
    /* The tree's own */
    struct uct_varuna_region   *left;
    struct uct_varuna_region   *right;
    uint64_t                   max_last;  /* Of it and of all below it */
    uint32_t                   priority;  /* Not below that of its children */
} uct_varuna_region_t;

typedef struct uct_varuna_regions {
    uct_varuna_region_t        *root;
    uint32_t                   random;
} uct_varuna_regions_t;

void uct_varuna_regions_init(uct_varuna_regions_t *regions);

/** Add a region whose first and last are set. */
void uct_varuna_regions_insert(uct_varuna_regions_t *regions,
                               uct_varuna_region_t *region);

/** Remove a region that was added. */
void uct_varuna_regions_remove(uct_varuna_regions_t *regions,
                               uct_varuna_region_t *region);

/** @return A region that contains all bytes from @a first to @a last, or NULL. */
uct_varuna_region_t *
uct_varuna_regions_find(const uct_varuna_regions_t *regions, uint64_t first,
                        uint64_t last);

/** Whether a region is the one that is looked for */
typedef int (*uct_varuna_region_match_func_t)(const uct_varuna_region_t *region,
                                              const void *arg);

/** As above, for a region that @a match accepts. Regions that overlap there are all
 *  looked at. */
uct_varuna_region_t *
uct_varuna_regions_find_match(const uct_varuna_regions_t *regions,
                              uint64_t first, uint64_t last,
                              uct_varuna_region_match_func_t match,
                              const void *arg);

/* --- The memory domain --- */

/** @return Nonzero if the NIC of an inner memory domain is gone for good. */
typedef int (*uct_varuna_md_is_dead_func_t)(uct_md_h md);

/** @return Nonzero if a port, such as "mlx5_0:1", answers when its device is opened anew. */
typedef int (*uct_varuna_md_answers_func_t)(const char *dev_name);

/** A region of the host's memory, of which peers had keys, was deregistered. Any thread, perhaps in
 *  a hook of munmap(): it must not allocate or free memory. */
typedef void (*uct_varuna_md_mem_ended_func_t)(const uct_varuna_mem_t *mem);

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
    uint8_t                    packed;    /* this map, in their present lives */
    uint64_t                   token;     /* In its keys; if is_shared */
    ucs_list_link_t            list;      /* In md->mems */
    unsigned                   flags;     /* It was registered with */
    unsigned                   pack_flags; /* Its keys were packed with: UCX invalidates only
                                              what has such a key */
    uint8_t                    owed;      /* Devices that were opened later, and have not
                                              registered it yet, by their first port. Owner:
                                              varuna_return.c */
    uct_mem_h                  inner[UCT_VARUNA_MAX_LINKS]; /* Atomic. NULL if the NIC
                                                               is no link, or away */
};

struct uct_varuna_md {
    uct_md_t                   super;
    uct_component_h            ib;        /* Inner component */
    unsigned                   num_nics;
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
                                              they are in their first life */
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
    uct_varuna_md_mem_ended_func_t mem_ended; /* Of the mode of atomics; may be NULL */
    int                        rests_at_fork; /* It has called uct_varuna_ucx_fork_get() */
    void                       *spare_page; /* What spares have registered */
    pthread_mutex_t            lock;      /* Protects the tree and the list of regions,
                                             where spares are, what NICs are short of, and
                                             their lives. No command to a NIC is given while
                                             it is held */
    ucs_list_link_t            mems;      /* All that are registered */
    uct_varuna_regions_t       shared;    /* uct_varuna_mem_t, see
                                             varuna_mem.c */
    struct {
        uct_varuna_secret_key_t key;      /* Makes tokens of numbers */
        uint64_t               num;
    } tokens;
    uct_varuna_md_attr_t       attr;      /* What all links can do */
};

/** A NIC has packed a key of the region, unless it has one. Lock of the memory domain. */
static inline void uct_varuna_mem_add_key(uct_varuna_mem_t *mem, unsigned nic, uint64_t key)
{
    if (!(mem->packed & UCS_BIT(nic))) {
        mem->keys[nic] = key;
        mem->packed   |= UCS_BIT(nic);
    }
}

/** @return Inner memory handle of @a memh for @a nic. */
static inline uct_mem_h uct_varuna_mem_inner_of(uct_mem_h memh, unsigned nic)
{
    return __atomic_load_n(&((uct_varuna_mem_t*)memh)->inner[nic], __ATOMIC_RELAXED);
}

/** The same, NULL-safe: UCT_MEM_HANDLE_NULL stays so. */
static inline uct_mem_h uct_varuna_mem_inner(uct_mem_h memh, unsigned nic)
{
    return (memh == UCT_MEM_HANDLE_NULL) ? UCT_MEM_HANDLE_NULL :
           uct_varuna_mem_inner_of(memh, nic);
}

/* --- Opening --- */

/* Opens the inner memory domain of every link's NIC. Each user region is registered on
 * all of them, and one key per NIC is packed (paper, section "Memory Management").
 * Nothing here depends on which link is up. */

typedef struct uct_varuna_md_config {
    uct_md_config_t            super;
    UCS_CONFIG_STRING_ARRAY_FIELD(names) links; /* UCX_RC_VARUNA_LINKS */
    unsigned                   lanes;           /* uct_varuna_lanes_names */
    unsigned                   atomic_mode;
    int                        dmabuf;          /* ucs_ternary_auto_value_t */
    char                       *ucx_check; /* For UCX's list of options: varuna_ucx_check.c
                                            * has read it before */
    unsigned long              vqp_links;
} uct_varuna_md_config_t;

extern ucs_config_field_t uct_varuna_md_config_table[];

/**
 * Open a memory domain over those of the links.
 *
 * A NIC that dies is left out of all later registrations, as its links are dead as
 * well. Then keys are packed without it.
 *
 * @param [in]  component  Our component.
 * @param [in]  ib         Inner component.
 * @param [in]  config     Which NICs are links.
 * @param [out] md_p       Memory domain, to be closed by uct_md_close().
 *
 * @return UCS_ERR_NO_DEVICE if no NIC can be a link; it is logged only if one
 *         was asked for by name.
 */
ucs_status_t uct_varuna_md_create(uct_component_t *component,
                                  uct_component_h ib,
                                  const uct_varuna_md_config_t *config,
                                  uct_md_h *md_p);

/**
 * Attributes of a memory domain without NICs, which are to be added. They differ from ib's
 * where we do less: only memory of the host is registered at its address, unless NICs are found to
 * do more, and no range of all addresses (GVA), as a key belongs to a region. None is allocated, none is detected, and keys
 * are not exported.
 *
 * @param [out] attr   Attributes.
 * @param [in]  flags  UCT_MD_FLAG_xx that were asked for besides the usual ones.
 */
void uct_varuna_md_attr_init(uct_varuna_md_attr_t *attr, uint64_t flags);

/** Restrict attributes to what an inner memory domain can do, and add its costs. */
void uct_varuna_md_attr_add(uct_varuna_md_attr_t *attr, const uct_varuna_md_attr_t *inner);

/** As uct_tl_t::query_devices. */
ucs_status_t uct_varuna_query_devices(uct_md_h md,
                                      uct_tl_device_resource_t **devices_p,
                                      unsigned *num_devices_p);

/* --- The component --- */

/* It opens memory domains and unpacks remote keys. varuna_module.c
 * registers it with UCX, together with the transport. */

extern uct_component_t uct_varuna_component;

/* --- Operations --- */

/** As uct_md_ops_t::mem_reg. */
ucs_status_t uct_varuna_md_mem_reg(uct_md_h tl_md, void *address, size_t length,
                                   uct_varuna_reg_arg_t arg, uct_mem_h *memh_p);

/** As uct_md_ops_t::mem_dereg. */
ucs_status_t
uct_varuna_md_mem_dereg(uct_md_h tl_md, const uct_md_mem_dereg_params_t *params);

/** As uct_md_ops_t::mem_advise. Advice is a hint: all NICs get it, and the call only
 *  fails if none accepts it. */
ucs_status_t uct_varuna_md_mem_advise(uct_md_h tl_md, uct_mem_h memh, void *addr,
                                      size_t length, unsigned advice);

/** As uct_md_ops_t::mkey_pack. From now on peers may name this memory. */
ucs_status_t
uct_varuna_md_mkey_pack_common(uct_md_h tl_md, uct_mem_h memh, void *address,
                               size_t length,
                               const uct_md_mkey_pack_params_t *params,
                               void *buffer);

/* --- Memory of devices --- */

/* Memory that is not the host's: a GPU's, or a NIC's own. The CPU does not access it, and a log
 * entry in host memory proves the arrival of earlier writes to host memory only. */

/* What may be registered by any NIC, and what the CPU may access. */
#define UCT_VARUNA_MEM_TYPES         UCS_BIT(UCS_MEMORY_TYPE_HOST)

/**
 * Ask UCX's cache of memory types, which knows what GPU libraries have allocated.
 *
 * @return Nonzero if all of it is host memory, as far as UCX knows. Any thread.
 */
int uct_varuna_mem_is_host(const void *address, size_t length);

/** A place in the memory of a device, and a NIC's key for it. */
typedef struct uct_varuna_place {
    uint64_t                   address;
    uct_rkey_t                 rkey;
    uint8_t                    device;
} uct_varuna_place_t;

/**
 * List one place in each device of which a peer may have a key for a NIC.
 *
 * @param [in]  nic     NIC index.
 * @param [out] places  Room for @a max.
 *
 * @return How many there are; more than @a max if not all are listed. Any thread.
 */
unsigned uct_varuna_md_list_devices(uct_varuna_md_t *md, unsigned nic,
                                    uct_varuna_place_t *places, unsigned max);

/* --- Memory of which keys are out --- */

/* The memory of which this process has given keys away: it accesses only such memory at
 * addresses that a peer names (docs/SECURITY.md). Any thread. */

/**
 * A key of the region is packed.
 *
 * @param [in] keys        Of the NICs in @a nic_map: those in the first one stay.
 * @param [in] pack_flags  UCT_MD_MKEY_PACK_FLAG_xx: keys of NICs that come later have them, too.
 */
void uct_varuna_md_share(uct_varuna_md_t *md, uct_varuna_mem_t *mem, uint8_t nic_map,
                         const uint64_t *keys, unsigned pack_flags);

/** The region is deregistered. @return Nonzero if it was shared. */
int uct_varuna_md_unshare(uct_varuna_md_t *md, uct_varuna_mem_t *mem);

/** @return Nonzero if a peer may have a key of all these bytes. */
int uct_varuna_md_is_shared(uct_varuna_md_t *md, uint64_t address,
                            size_t length);

/**
 * Keep a region from being deregistered while the CPU accesses it for a peer: a
 * deregistration waits. The caller accesses it and releases it, nothing else: it must
 * not allocate, log, or take another lock.
 *
 * @param [in] token  Of a key that was packed.
 *
 * @return Nonzero if a region with this token, registered for remote atomics, contains
 *         all these bytes; then uct_varuna_md_release() is to be called.
 */
int uct_varuna_md_hold(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                       size_t length);

void uct_varuna_md_release(uct_varuna_md_t *md);

/**
 * Find what a key that was packed lacks: a peer asks, which knows the token in it.
 *
 * @param [in]  address  Of a byte in the region.
 * @param [in]  nic, generation  Any numbers.
 * @param [out] key_p    Inner key, packed.
 *
 * @return UCS_ERR_NO_ELEM if there is no such region (any more), UCS_ERR_NO_DEVICE if there is
 *         no such NIC, or it is in another life, UCS_ERR_NO_RESOURCE if that has not registered
 *         the region.
 */
ucs_status_t uct_varuna_md_find_key(uct_varuna_md_t *md, uint64_t token, uint64_t address,
                                    unsigned nic, unsigned generation, uint64_t *key_p);

/**
 * Find a key of ours by which a NIC may access what is shared.
 *
 * @param [in]  nic     NIC index, a link.
 * @param [out] rkey_p  Inner remote key.
 *
 * @return Nonzero if a region which is shared now covers it.
 */
int uct_varuna_md_find_rkey(uct_varuna_md_t *md, unsigned nic, uint64_t address,
                            size_t length, uct_rkey_t *rkey_p);

/* --- Remote keys --- */

/* Packed and unpacked: a set of inner keys by NIC index. Used by varuna_mem.c (pack),
 * varuna_md_open.c (unpack) and the data path (look-up). */

/* This bit is set in each key, so that one test tells whether a request may be posted that uses
 * any key (the gate, varuna_pending.h). */
#define UCT_VARUNA_RKEY_LACKS_ANY    UCS_BIT(0)

/* Unpacked remote key: inner keys by NIC index of the *remote* host. */
struct uct_varuna_rkey {
    unsigned                   num_keys;   /* Highest NIC index + 1 */
    uct_varuna_atomic_mode_t   atomic_mode;/* Of the responder */
    uint8_t                    device;    /* Whose memory it is, UCT_VARUNA_DEVICE_HOST or a
                                             number */
    uint8_t                    lacks;     /* All bits but those of NICs, by
                                             uct_varuna_rkey_has_returned(), for whose
                                             present life it was found complete. Looked at
                                             before 'keys': another thread may complete it */
    uint64_t                   token;     /* Of the region; 0: rc_varuna's own */
    uint64_t                   owner;     /* UUID of the peer; 0: nobody has completed it. With
                                             the lock of varuna_rkey.c, as the next two */
    ucs_list_link_t            list;      /* All keys of the process */
    uint16_t                   generations[UCT_VARUNA_MAX_LINKS]; /* Of the NICs in 'keys' */
    uct_rkey_bundle_t          inner[UCT_VARUNA_MAX_LINKS];
    uct_rkey_t                 keys[UCT_VARUNA_MAX_LINKS]; /* Those in 'inner';
                                                              UCT_INVALID_RKEY: none.
                                                              They are ib's numbers,
                                                              which stay valid after a
                                                              release */
};

/** @return The bit of a NIC in 'lacks' that is clear if the key is of its present generation; 0:
 *  there is none. No NIC in its first generation has one, and the last NIC never. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_varuna_rkey_has_returned(unsigned nic, unsigned generation)
{
    return (generation > 0) ? (uint8_t)(UCS_BIT(1) << nic) : 0;
}

/** @return Size of a packed key which holds @a num_keys inner ones. */
size_t uct_varuna_rkey_packed_size(unsigned num_keys);

/**
 * Write the header of a packed key.
 *
 * @param [in]  nic_map      NICs whose inner keys follow.
 * @param [in]  atomic_mode  uct_varuna_atomic_mode_t of this host.
 * @param [in]  device       Whose memory it is.
 * @param [in]  token        Of the region, 0: no atomics by the CPU.
 * @param [out] buffer       Packed key.
 *
 * @return Place of the first inner key, for uct_varuna_rkey_pack_key().
 */
void *uct_varuna_rkey_pack_header(uint8_t nic_map, unsigned atomic_mode, uint8_t device,
                                  uint64_t token, void *buffer);

/** Write the next inner key of a packed one, of a NIC of this generation. @return Place of the
 *  one after it. */
void *uct_varuna_rkey_pack_key(uint64_t key, unsigned generation, void *buffer);

/**
 * Unpack a key of a peer. Its length is unknown: what is read is limited by what a
 * header may contain.
 *
 * @param [in]  ib       Inner component.
 * @param [in]  buffer   Packed key.
 * @param [out] rkey_p   Unpacked key, to be released by
 *                       uct_varuna_rkey_release().
 *
 * @return UCS_ERR_INVALID_PARAM if it is none of ours, UCS_ERR_UNSUPPORTED if its mode of
 *         atomics is not built; both are logged.
 */
ucs_status_t uct_varuna_rkey_unpack(uct_component_h ib, const void *buffer,
                                    uct_varuna_rkey_t **rkey_p);

/** Add an inner key, which is released with the others, to one that lacks it. */
void uct_varuna_rkey_add(uct_varuna_rkey_t *rkey, unsigned nic, unsigned generation,
                         const uct_rkey_bundle_t *bundle);

/** Release the inner key of a NIC, if there is one: it is of another life. */
void uct_varuna_rkey_remove(uct_component_h ib, uct_varuna_rkey_t *rkey, unsigned nic);

/**
 * Find out whether a key has something for the present life of a NIC of a peer, and note that.
 * Others may use the key in other threads meanwhile, or do the same: they see it with a number or
 * without it.
 *
 * @param [in] uuid        The peer whose key it is.
 * @param [in] generation  Of the NIC, as far as the caller knows.
 * @param [in] inner       What ib understands as an inner key, if it is known; it is added to a
 *                         key that has none.
 */
void uct_varuna_rkey_complete(uct_varuna_rkey_t *rkey, uint64_t uuid, unsigned nic,
                              unsigned generation, uct_rkey_t inner);

/** A NIC of a peer is in another life: no key of the process has anything for an earlier one any
 *  more. Call it before any thread that posts learns the generation. Any thread. */
void uct_varuna_rkeys_renew(uint64_t uuid, unsigned nic, unsigned generation);

/** Before fork(): no other thread changes the list of keys, which a child inherits. */
void uct_varuna_rkeys_fork_prepare(void);

/** After fork(), in both processes. */
void uct_varuna_rkeys_fork_end(void);

/** @return What a key lacks, before the keys in it are read. */
static UCS_F_ALWAYS_INLINE uint8_t uct_varuna_rkey_lacks(uct_rkey_t rkey)
{
    return __atomic_load_n(&((const uct_varuna_rkey_t*)rkey)->lacks, __ATOMIC_ACQUIRE);
}

/** Release an unpacked key and the inner keys in it. */
void uct_varuna_rkey_release(uct_component_h ib, uct_varuna_rkey_t *rkey);

/** @return Inner remote key for the remote host's @a nic, UCT_INVALID_RKEY if
 *  the peer registered the memory on no such NIC. */
static inline uct_rkey_t uct_varuna_rkey_inner(uct_rkey_t rkey, unsigned nic)
{
    const uct_varuna_rkey_t *vrkey = (const uct_varuna_rkey_t*)rkey;

    return vrkey->keys[nic % UCT_VARUNA_MAX_LINKS];
}

#endif
