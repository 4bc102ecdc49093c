/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Protection domains and memory regions.
 *
 * Called by: verbs/ (alloc, reg, dereg), proto/ (key checks).
 */

#ifndef EMU_MR_H_
#define EMU_MR_H_

#include "../base/emu_def.h"

struct emu_pd {
    uint32_t used;
    uint32_t index;        /* the PD number */
    uint32_t proc;
    uint32_t ctx;
    uint32_t refs;         /* MRs and QPs */
};

/** A memory region. Keys are index << 8 | variant, local and remote alike. */
struct emu_mr {
    uint32_t used;
    uint32_t key;
    uint32_t proc;
    uint32_t pd;
    uint32_t port;
    uint32_t access;       /* enum ibv_access_flags */
    uint64_t iova;         /* address by which it is named in WQEs */
    uint64_t addr;         /* address in the owner's memory */
    uint64_t length;
    uint64_t device;       /* whose memory it is, see emu_dmabuf.h; 0: the host's */
    uint32_t variant;      /* low byte of the key; survives the slot's reuse */
    uint32_t parent;       /* key of the region that this is a window into */
    uint32_t is_window;
    uint32_t windows;      /* into this region; atomic */
    uint64_t freed;        /* emu_fabric_t::mr_freed when it was deregistered; 0: never.
                              Guarded by table_lock */
};

/** A region seen by other addresses, with other rights: start + n in the window
 *  is address + n in the region. What lies outside of the region is invalid. */
typedef struct emu_mr_window {
    uint32_t key;          /* of the region */
    uint64_t address;
    uint64_t start;
    uint64_t length;
    unsigned access;       /* enum ibv_access_flags; no more than the region's */
    uint32_t variant;      /* low byte of the new key */
} emu_mr_window_t;

int emu_pd_alloc(emu_ctx_t *ctx, emu_pd_t **pd_p);
/** @return -EBUSY while something uses it. */
int emu_pd_free(emu_pd_t *pd);

/** Whether rights can be had together: remote write or atomic access needs local write. */
int emu_mr_access_is_valid(unsigned access);

/**
 * Register memory. Remote write or atomic access needs local write, as verbs
 * say (-EINVAL). A length of 0 is allowed and matches nothing.
 *
 * @param [in] device  Whose memory it is, 0: the host's.
 */
int emu_mr_reg(emu_pd_t *pd, uint64_t addr, uint64_t length, uint64_t iova,
               unsigned access, uint64_t device, emu_mr_t **mr_p);

/** Register a window into a region of the same PD; -EINVAL if there is no such
 *  region. It dies with the region, and is deregistered like one. */
int emu_mr_reg_window(emu_pd_t *pd, const emu_mr_window_t *window,
                      emu_mr_t **mr_p);

/**
 * Give a region to another PD of the same context, and change its rights. The key stays;
 * accesses that began before are waited for. @a access as for @ref emu_mr_reg.
 *
 * @return -EINVAL, -EIO, or -EBUSY if there are windows into it.
 */
int emu_mr_change(emu_mr_t *mr, emu_pd_t *pd, unsigned access);

/** Deregister: waits until no access is in progress. */
void emu_mr_dereg(emu_mr_t *mr);

/**
 * Check a key.
 *
 * @param [in] access  Access flags that are needed (0: local read).
 * @return The region, or NULL if the key, the range, the rights, the PD or the
 *         port are wrong.
 */
emu_mr_t *emu_mr_check(uint32_t key, uint64_t addr, uint64_t length,
                       unsigned access, uint32_t pd, uint32_t port);

/** As emu_mr_check, and keep the region from being deregistered until
 *  emu_mr_put: for memory of other processes. */
emu_mr_t *emu_mr_get(uint32_t key, uint64_t addr, uint64_t length,
                     unsigned access, uint32_t pd, uint32_t port);
void emu_mr_put(emu_mr_t *mr);

#endif
