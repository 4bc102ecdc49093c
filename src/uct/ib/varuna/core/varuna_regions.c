/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Regions of memory by address. See varuna_regions.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_regions.h"

#include <ucs/debug/assert.h>
#include <ucs/sys/math.h>
#include <stddef.h>

void uct_varuna_regions_init(uct_varuna_regions_t *regions)
{
    regions->root   = NULL;
    regions->random = 0x9e3779b9;
}

static uint32_t uct_varuna_regions_random(uct_varuna_regions_t *regions)
{
    regions->random ^= regions->random << 13;
    regions->random ^= regions->random >> 17;
    regions->random ^= regions->random << 5;
    return regions->random;
}

/* Regions with the same start are distinguished by the addresses of their nodes. */
static int uct_varuna_region_is_before(const uct_varuna_region_t *a,
                                       const uct_varuna_region_t *b)
{
    return (a->first < b->first) || ((a->first == b->first) && (a < b));
}

static void uct_varuna_region_update(uct_varuna_region_t *node)
{
    node->max_last = node->last;
    if (node->left != NULL) {
        node->max_last = ucs_max(node->max_last, node->left->max_last);
    }
    if (node->right != NULL) {
        node->max_last = ucs_max(node->max_last, node->right->max_last);
    }
}

/* Split a tree in what is before @a region and what is not. */
static void uct_varuna_region_split(uct_varuna_region_t *node,
                                    const uct_varuna_region_t *region,
                                    uct_varuna_region_t **before_p,
                                    uct_varuna_region_t **behind_p)
{
    if (node == NULL) {
        *before_p = NULL;
        *behind_p = NULL;
        return;
    }

    if (uct_varuna_region_is_before(node, region)) {
        uct_varuna_region_split(node->right, region, &node->right, behind_p);
        *before_p = node;
    } else {
        uct_varuna_region_split(node->left, region, before_p, &node->left);
        *behind_p = node;
    }
    uct_varuna_region_update(node);
}

/* Join two trees; all of @a before is before @a after. */
static uct_varuna_region_t *uct_varuna_region_join(uct_varuna_region_t *before,
                                                   uct_varuna_region_t *after)
{
    if ((before == NULL) || (after == NULL)) {
        return (before == NULL) ? after : before;
    }

    if (before->priority >= after->priority) {
        before->right = uct_varuna_region_join(before->right, after);
        uct_varuna_region_update(before);
        return before;
    }

    after->left = uct_varuna_region_join(before, after->left);
    uct_varuna_region_update(after);
    return after;
}

void uct_varuna_regions_insert(uct_varuna_regions_t *regions,
                               uct_varuna_region_t *region)
{
    uct_varuna_region_t *before, *after;

    region->left     = NULL;
    region->right    = NULL;
    region->max_last = region->last;
    region->priority = uct_varuna_regions_random(regions);
    uct_varuna_region_split(regions->root, region, &before, &after);
    regions->root = uct_varuna_region_join(
            uct_varuna_region_join(before, region), after);
}

/* @return the tree without @a region, which is in it. */
static uct_varuna_region_t *
uct_varuna_region_cut(uct_varuna_region_t *node,
                      const uct_varuna_region_t *region)
{
    ucs_assert(node != NULL);
    if (node == region) {
        return uct_varuna_region_join(node->left, node->right);
    }

    if (uct_varuna_region_is_before(region, node)) {
        node->left  = uct_varuna_region_cut(node->left, region);
    } else {
        node->right = uct_varuna_region_cut(node->right, region);
    }
    uct_varuna_region_update(node);
    return node;
}

void uct_varuna_regions_remove(uct_varuna_regions_t *regions,
                               uct_varuna_region_t *region)
{
    regions->root = uct_varuna_region_cut(regions->root, region);
}

uct_varuna_region_t *
uct_varuna_regions_find(const uct_varuna_regions_t *regions, uint64_t first,
                        uint64_t last)
{
    uct_varuna_region_t *node = regions->root;

    while ((node != NULL) && (node->max_last >= last)) {
        if (node->first > first) {
            node = node->left;
        } else if (node->last >= last) {
            return node;
        } else if ((node->left != NULL) && (node->left->max_last >= last)) {
            node = node->left; /* All of it begins early enough */
        } else {
            node = node->right;
        }
    }

    return NULL;
}

static uct_varuna_region_t *
uct_varuna_region_find_match(uct_varuna_region_t *node, uint64_t first,
                             uint64_t last,
                             uct_varuna_region_match_func_t match,
                             const void *arg)
{
    uct_varuna_region_t *found;

    while ((node != NULL) && (node->max_last >= last)) {
        found = uct_varuna_region_find_match(node->left, first, last, match,
                                             arg);
        if (found != NULL) {
            return found;
        }

        if (node->first > first) {
            return NULL; /* So do all to the right of it */
        }

        if ((node->last >= last) && match(node, arg)) {
            return node;
        }

        node = node->right;
    }

    return NULL;
}

uct_varuna_region_t *
uct_varuna_regions_find_match(const uct_varuna_regions_t *regions,
                              uint64_t first, uint64_t last,
                              uct_varuna_region_match_func_t match,
                              const void *arg)
{
    return uct_varuna_region_find_match(regions->root, first, last, match, arg);
}
