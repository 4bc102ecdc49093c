/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Queue pairs at rest, and endpoints whose owner is gone. See varuna_rest.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_rest.h"
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

/* Seconds. A NIC that has not raised the event LAST_WQE_REACHED after that never does */
#define UCT_VARUNA_REST_LAST_WQE     10

typedef struct uct_varuna_rest {
    ucs_list_link_t            list;      /* In iface->rest.eps, oldest first */
    uct_ep_h                   inner;
    uct_varuna_lane_kind_t     kind;
    uint8_t                    is_early;  /* It is to end now */
    ucs_time_t                 since;
    uct_varuna_rest_release_t  release;   /* It is in RESET; NULL: it is drained */
    void                       *arg;
} uct_varuna_rest_t;

static void uct_varuna_rest_end(uct_varuna_iface_t *iface, uct_varuna_rest_t *rest)
{
    ucs_list_del(&rest->list);
    --iface->rest.num;
    if (rest->release != NULL) {
        /* Its accounts are settled now, so UCX must not know it when errors of what was settled
         * are polled */
        rest->release(rest->arg, rest->inner);
        uct_varuna_tl_destroy_reset(rest->inner, rest->kind);
    } else {
        uct_varuna_lane_ep_destroy(iface, rest->inner, rest->kind);
    }

    ucs_free(rest);
}

/* One in RESET ends by polling, which is for progress alone: who needs a queue pair may be in
 * the middle of something */
static void uct_varuna_rest_end_early(uct_varuna_iface_t *iface, uct_varuna_rest_t *rest)
{
    if (rest->release != NULL) {
        rest->is_early = 1;
        return;
    }

    ++iface->rest.num_early;
    uct_varuna_rest_end(iface, rest);
}

static uct_varuna_rest_t *uct_varuna_rest_oldest(uct_varuna_iface_t *iface)
{
    return ucs_list_is_empty(&iface->rest.eps) ? NULL :
           ucs_list_head(&iface->rest.eps, uct_varuna_rest_t, list);
}

/* Of those that are not to end anyway */
static void uct_varuna_rest_end_oldest(uct_varuna_iface_t *iface)
{
    uct_varuna_rest_t *rest;

    ucs_list_for_each(rest, &iface->rest.eps, list) {
        if (!rest->is_early) {
            uct_varuna_rest_end_early(iface, rest);
            return;
        }
    }
}

static void uct_varuna_rest_add(uct_varuna_iface_t *iface, uct_varuna_rest_t *rest,
                                uct_ep_h inner, uct_varuna_lane_kind_t kind)
{
    if (iface->rest.num >= UCT_VARUNA_REST_MAX) {
        uct_varuna_rest_end_oldest(iface);
    }

    rest->inner    = inner;
    rest->kind     = kind;
    rest->is_early = 0;
    rest->since    = ucs_get_time();
    ucs_list_add_tail(&iface->rest.eps, &rest->list);
    ++iface->rest.num;
}

void uct_varuna_rest_begin(uct_varuna_iface_t *iface, uct_ep_h inner,
                           uct_varuna_lane_kind_t kind)
{
    uct_varuna_rest_t *rest = NULL;

    /* A DCI is the next endpoint's as soon as it is drained, and nobody creates one then. What
     * is not drained belongs to a NIC that hangs or is gone, and UCX still has the requests that
     * are unfinished: it must let them go before their owner does */
    if ((kind != UCT_VARUNA_LANE_DC) && !iface->rest.is_closed &&
        uct_varuna_tl_is_drained(inner, kind)) {
        rest = ucs_malloc(sizeof(*rest), "varuna_rest");
        iface->rest.num_early += (rest == NULL);
    }

    if (rest == NULL) {
        uct_varuna_lane_ep_destroy(iface, inner, kind);
        return;
    }

    rest->release = NULL;
    uct_varuna_rest_add(iface, rest, inner, kind);
}

void uct_varuna_rest_begin_reset(uct_varuna_iface_t *iface, uct_ep_h inner,
                                 uct_varuna_lane_kind_t kind,
                                 uct_varuna_rest_release_t release, void *arg)
{
    uct_varuna_rest_t *rest = ucs_malloc(sizeof(*rest), "varuna_rest");

    ucs_assert_always(rest != NULL);
    rest->release = release;
    rest->arg     = arg;
    uct_varuna_rest_add(iface, rest, inner, kind);
}

/* Whether UCX can destroy one that is in RESET */
static int uct_varuna_rest_has_last_wqe(const uct_varuna_rest_t *rest, ucs_time_t deadline)
{
    return uct_varuna_tl_wait_last_wqe(rest->inner, rest->kind, deadline) == UCS_OK;
}

static uct_varuna_rest_t *
uct_varuna_rest_first_of(const uct_varuna_iface_t *iface, const void *arg)
{
    uct_varuna_rest_t *rest;

    ucs_list_for_each(rest, &iface->rest.eps, list) {
        if ((rest->release != NULL) && (rest->arg == arg)) {
            return rest;
        }
    }

    return NULL;
}

void uct_varuna_rest_end_resets(uct_varuna_iface_t *iface, const void *arg,
                                ucs_time_t deadline)
{
    uct_varuna_rest_t *rest;

    while ((rest = uct_varuna_rest_first_of(iface, arg)) != NULL) {
        (void)uct_varuna_rest_has_last_wqe(rest, deadline);
        uct_varuna_rest_end(iface, rest);
    }
}

static int uct_varuna_rest_is_over(const uct_varuna_iface_t *iface,
                                   const uct_varuna_rest_t *rest, ucs_time_t now)
{
    return (rest->since + iface->config.packet_lifetime) < now;
}

static int uct_varuna_rest_is_due(const uct_varuna_iface_t *iface,
                                  const uct_varuna_rest_t *rest, ucs_time_t now)
{
    if (!rest->is_early && !uct_varuna_rest_is_over(iface, rest, now)) {
        return 0;
    }

    return (rest->release == NULL) || uct_varuna_rest_has_last_wqe(rest, 0) ||
           ((rest->since + ucs_time_from_sec(UCT_VARUNA_REST_LAST_WQE)) < now);
}

static uct_varuna_rest_t *
uct_varuna_rest_first_due(const uct_varuna_iface_t *iface, ucs_time_t now)
{
    uct_varuna_rest_t *rest;

    ucs_list_for_each(rest, &iface->rest.eps, list) {
        if (uct_varuna_rest_is_due(iface, rest, now)) {
            return rest;
        }
    }

    return NULL;
}

void uct_varuna_rest_progress(uct_varuna_iface_t *iface, ucs_time_t now)
{
    uct_varuna_rest_t *rest;

    /* From the start each time: what is polled may let others rest, and end some */
    while ((rest = uct_varuna_rest_first_due(iface, now)) != NULL) {
        iface->rest.num_early += !uct_varuna_rest_is_over(iface, rest, now);
        uct_varuna_rest_end(iface, rest);
    }
}

static int uct_varuna_rest_is_on(const uct_varuna_iface_t *iface,
                                 const uct_varuna_rest_t *rest, unsigned nic)
{
    unsigned link;

    for (link = 0; link < iface->num_links; ++link) {
        if ((iface->links[link].nic == nic) &&
            (iface->links[link].lanes[rest->kind].inner == rest->inner->iface)) {
            return 1;
        }
    }

    return 0;
}

static int uct_varuna_rests_are_on(const uct_varuna_iface_t *iface, unsigned link)
{
    uct_varuna_rest_t *rest;

    ucs_list_for_each(rest, &iface->rest.eps, list) {
        if (uct_varuna_link_is_of(iface, link, rest->inner)) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_rest_yield(uct_varuna_iface_t *iface, unsigned nic)
{
    uct_varuna_rest_t *rest;

    ucs_list_for_each(rest, &iface->rest.eps, list) {
        if (!rest->is_early && uct_varuna_rest_is_on(iface, rest, nic)) {
            ucs_debug("rc_varuna: %s is short of queue pairs: one does not rest any longer",
                      iface->md->nics[nic].dev_name);
            uct_varuna_rest_end_early(iface, rest);
            return;
        }
    }
}

void uct_varuna_rest_cleanup(uct_varuna_iface_t *iface)
{
    uct_varuna_rest_t *rest;

    iface->rest.is_closed = 1;
    while ((rest = uct_varuna_rest_oldest(iface)) != NULL) {
        uct_varuna_rest_end(iface, rest);
    }
}

/* --- Endpoints whose owner is gone --- */

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

void uct_varuna_graves_end(uct_varuna_iface_t *iface, unsigned link)
{
    uct_varuna_grave_t *grave, *tmp;

    ucs_list_for_each_safe(grave, tmp, &iface->graveyard, list) {
        if (uct_varuna_link_is_of(iface, link, grave->inner)) {
            ucs_list_del(&grave->list);
            uct_varuna_grave_close(iface, grave);
        }
    }
}

static int uct_varuna_graves_are_on(const uct_varuna_iface_t *iface, unsigned link)
{
    uct_varuna_grave_t *grave;

    ucs_list_for_each(grave, &iface->graveyard, list) {
        if (uct_varuna_link_is_of(iface, link, grave->inner)) {
            return 1;
        }
    }

    return 0;
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

int uct_varuna_lanes_are_used(const uct_varuna_iface_t *iface, unsigned link)
{
    const uct_varuna_link_t *own = &iface->links[link];
    unsigned num_eps             = 0;
    unsigned kind;

    for (kind = 0; kind < UCT_VARUNA_LANE_LAST; ++kind) {
        num_eps += own->lanes[kind].num_eps;
    }

    return (own->num_kept > 0) || (num_eps > 0) || uct_varuna_graves_are_on(iface, link) ||
           uct_varuna_rests_are_on(iface, link);
}
