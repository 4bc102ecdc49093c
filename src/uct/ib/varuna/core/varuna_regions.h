/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Regions of memory, which may overlap, found by address: a tree sorted by their
 * beginnings, balanced by random priorities (a treap), in which each node knows the
 * highest end below it. Pure. The caller locks. Used by varuna_mem.c.
 */
#ifndef UCT_VARUNA_REGIONS_H_
#define UCT_VARUNA_REGIONS_H_

#include <stdint.h>

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

#endif
