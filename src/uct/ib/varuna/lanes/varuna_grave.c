/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Inner endpoints whose owner is gone. See varuna_grave.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_grave.h"
#include "varuna_rest.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

typedef struct uct_varuna_grave {
    ucs_list_link_t            list;
    uct_ep_h                   inner;
    uct_varuna_lane_kind_t     kind;
    void                       *remains; /* Unfinished requests; they have no
                                            endpoint */
    uct_varuna_grave_release_t release;
} uct_varuna_grave_t;

static void uct_varuna_grave_close(uct_varuna_iface_t *iface, uct_varuna_grave_t *grave)
{
    uct_varuna_rest_begin(iface, grave->inner, grave->kind);
    if (grave->remains != NULL) {
        grave->release(grave->remains);
    }
    ucs_free(grave);
}

/* @return nonzero if the grave is drained, and gone. */
static int uct_varuna_grave_try_close(uct_varuna_iface_t *iface,
                                      uct_varuna_grave_t *grave)
{
    if (!uct_varuna_tl_drain(grave->inner, grave->kind)) {
        return 0;
    }

    uct_varuna_grave_close(iface, grave);
    return 1;
}

void uct_varuna_graves_progress(uct_varuna_iface_t *iface)
{
    uct_varuna_grave_t *grave, *tmp;

    ucs_list_for_each_safe(grave, tmp, &iface->graveyard, list) {
        ucs_list_del(&grave->list);
        if (!uct_varuna_grave_try_close(iface, grave)) {
            ucs_list_insert_before(&tmp->list, &grave->list);
        }
    }
}

void uct_varuna_grave_bury(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind, void *remains,
                           uct_varuna_grave_release_t release)
{
    uct_varuna_grave_t *grave;

    grave = ucs_malloc(sizeof(*grave), "varuna_grave");
    ucs_assert_always(grave != NULL);
    grave->inner   = inner;
    grave->kind    = kind;
    grave->remains = remains;
    grave->release = release;

    if (!uct_varuna_grave_try_close(iface, grave)) {
        ucs_list_add_tail(&iface->graveyard, &grave->list);
    }
}

void uct_varuna_graves_cleanup(uct_varuna_iface_t *iface)
{
    ucs_time_t deadline = ucs_get_time() + ucs_time_from_sec(1.0);
    uct_varuna_grave_t *grave, *tmp;

    while (!ucs_list_is_empty(&iface->graveyard) &&
           (ucs_get_time() < deadline)) {
        uct_varuna_lanes_progress(iface);
        uct_varuna_graves_progress(iface);
    }

    ucs_list_for_each_safe(grave, tmp, &iface->graveyard, list) {
        ucs_debug("inner ep %p was not drained", grave->inner);
        ucs_list_del(&grave->list);
        uct_varuna_grave_close(iface, grave);
    }
}
