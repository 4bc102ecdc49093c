/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Spare RC queue pairs of the responder. UCX makes and destroys endpoints in the
 * thread of the interface's worker only, but connecting one touches nothing but
 * that endpoint. So the main thread keeps some ready, of which the async context
 * takes what a requester asks for, and the main thread destroys what it leaves.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_spare.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/assert.h>
#include <ucs/debug/log.h>
#include <ucs/debug/memtrack_int.h>

/* Seconds for which the end of the interface waits for LAST_WQE_REACHED */
#define UCT_VARUNA_SPARE_LINGER      0.1

/* One more than is wanted: the main thread makes one where none is wanted */
static unsigned uct_varuna_spares_room(const uct_varuna_responder_t *resp)
{
    return resp->iface->config.spare_qps + 1;
}

/* A NIC that is short of them is not asked each time: UCX logs an error then */
static ucs_status_t uct_varuna_spare_create(uct_varuna_responder_t *resp, unsigned link,
                                            uct_ep_h *ep_p)
{
    uct_varuna_iface_t *iface = resp->iface;
    unsigned nic              = iface->links[link].nic;
    ucs_time_t now            = uct_varuna_ctl_now(resp->ctl);
    uct_ep_params_t params;
    ucs_status_t status;

    if (!uct_varuna_md_may_ask(iface->md, nic, UCT_VARUNA_SHORT_QP, now)) {
        return UCS_ERR_NO_RESOURCE;
    }

    params.field_mask = UCT_EP_PARAM_FIELD_IFACE;
    params.iface      = uct_varuna_link_rc(&iface->links[link])->inner;
    status            = uct_ep_create(&params, ep_p);
    uct_varuna_md_note_answer(iface->md, nic, UCT_VARUNA_SHORT_QP, status, now);
    if (status != UCS_OK) {
        uct_varuna_rest_yield(iface, nic);
    }
    return status;
}

ucs_status_t uct_varuna_spares_make(uct_varuna_responder_t *resp, unsigned link,
                                    unsigned wanted)
{
    uct_varuna_spares_t *spares = &resp->spares;
    ucs_status_t status;
    uct_ep_h ep;

    /* Only this thread adds any, so the count can only have become less */
    while (__atomic_load_n(&spares->count[link], __ATOMIC_RELAXED) < wanted) {
        status = uct_varuna_spare_create(resp, link, &ep);
        if (status != UCS_OK) {
            return status;
        }

        uct_varuna_ctl_lock(resp->ctl);
        ucs_assert(spares->count[link] < uct_varuna_spares_room(resp));
        spares->eps[link][spares->count[link]] = ep;
        ++spares->count[link];
        uct_varuna_ctl_unlock(resp->ctl);
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_spares_add_link(uct_varuna_responder_t *resp, unsigned link)
{
    if (resp->spares.eps[link] != NULL) {
        return UCS_OK;
    }

    resp->spares.eps[link] = ucs_calloc(uct_varuna_spares_room(resp), sizeof(uct_ep_h),
                                        "varuna_spares");
    if (resp->spares.eps[link] == NULL) {
        ucs_error("failed to allocate room for spare queue pairs");
        return UCS_ERR_NO_MEMORY;
    }

    return UCS_OK;
}

ucs_status_t uct_varuna_spares_init(uct_varuna_responder_t *resp)
{
    uct_varuna_spares_t *spares = &resp->spares;
    ucs_status_t status;
    unsigned link;

    ucs_list_head_init(&spares->old);
    for (link = 0; link < resp->ctl->num_links; ++link) {
        status = uct_varuna_spares_add_link(resp, link);
        if (status != UCS_OK) {
            uct_varuna_spares_cleanup(resp);
            return status;
        }

        /* Those that cannot be had now are made later */
        (void)uct_varuna_spares_make(resp, link, resp->iface->config.spare_qps);
    }

    return UCS_OK;
}

/* Main thread, lock not held. Nobody asks whose messages of the endpoint are any more. */
static void uct_varuna_spare_forget(void *arg, uct_ep_h ep)
{
    uct_varuna_responder_t *resp = arg;
    khiter_t iter;

    uct_varuna_ctl_lock(resp->ctl);
    iter = kh_get(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)ep);
    if (iter != kh_end(&resp->targets.rc_eps)) {
        kh_del(uct_varuna_rc_eps, &resp->targets.rc_eps, iter);
    }
    uct_varuna_ctl_unlock(resp->ctl);
}

/* Main thread, lock not held. */
static void uct_varuna_spare_destroy_ep(uct_varuna_responder_t *resp, uct_ep_h ep,
                                        int is_reset)
{
    uct_varuna_lane_kind_t kind = uct_varuna_lane_kind_of(resp->iface, ep);

    if (is_reset) {
        uct_varuna_rest_begin_reset(resp->iface, ep, kind, uct_varuna_spare_forget, resp);
        return;
    }

    /* Its last completions come first: UCX does not expect any of a QP that it does
     * not know */
    uct_varuna_spare_forget(resp, ep);
    uct_varuna_tl_stop(ep, kind);
    uct_varuna_grave_bury(resp->iface, ep, kind, NULL, NULL);
}

/* Destroy what the async context has dropped, or let it rest. */
static void uct_varuna_spares_reap(uct_varuna_responder_t *resp, int is_last)
{
    uct_varuna_old_ep_t *old;
    ucs_list_link_t list;

    if (is_last) {
        uct_varuna_ctl_lock(resp->ctl);
    } else if (!uct_varuna_ctl_try_lock(resp->ctl)) {
        return; /* The next call finds them */
    }

    ucs_list_head_init(&list);
    ucs_list_splice_tail(&list, &resp->spares.old);
    ucs_list_head_init(&resp->spares.old);
    uct_varuna_ctl_unlock(resp->ctl);

    while (!ucs_list_is_empty(&list)) {
        old = ucs_list_extract_head(&list, uct_varuna_old_ep_t, list);
        uct_varuna_spare_destroy_ep(resp, old->inner, old->is_reset);
        ucs_free(old);
    }
}

/* What rests is destroyed while we know whose it is. */
static void uct_varuna_spares_end_rest(uct_varuna_responder_t *resp)
{
    double linger = (resp->no_last_wqe == 0) ? UCT_VARUNA_SPARE_LINGER : 0;

    uct_varuna_rest_end_resets(resp->iface, resp, ucs_get_time() + ucs_time_from_sec(linger));
}

void uct_varuna_spares_cleanup(uct_varuna_responder_t *resp)
{
    uct_varuna_spares_t *spares = &resp->spares;
    unsigned link;

    spares->is_closed = 1;
    uct_varuna_spares_reap(resp, 1);
    uct_varuna_spares_end_rest(resp);
    for (link = 0; link < UCT_VARUNA_MAX_LINKS; ++link) {
        while (spares->count[link] > 0) {
            /* Nothing was ever posted on it, so nothing is to be drained */
            uct_ep_destroy(spares->eps[link][--spares->count[link]]);
        }

        ucs_free(spares->eps[link]);
        spares->eps[link] = NULL;
    }
}

void uct_varuna_spares_progress(uct_varuna_responder_t *resp)
{
    unsigned link, count;

    uct_varuna_spares_reap(resp, 0);
    for (link = 0; link < resp->ctl->num_links; ++link) {
        count = __atomic_load_n(&resp->spares.count[link], __ATOMIC_RELAXED);
        if (count < resp->iface->config.spare_qps) {
            uct_varuna_spares_make(resp, link, count + 1);
        }
    }
}

uct_ep_h uct_varuna_spare_take(uct_varuna_responder_t *resp, unsigned link)
{
    uct_varuna_spares_t *spares = &resp->spares;

    if (spares->count[link] == 0) {
        return NULL;
    }

    __atomic_store_n(&spares->count[link], spares->count[link] - 1,
                     __ATOMIC_RELAXED);
    uct_varuna_iface_set_slow(resp->iface); /* The main thread makes another one */
    return spares->eps[link][spares->count[link]];
}

void uct_varuna_spare_end(uct_varuna_responder_t *resp, uct_ep_h ep, int is_reset)
{
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_spare_drop(resp, ep, is_reset);
    uct_varuna_ctl_unlock(resp->ctl);
    uct_varuna_spares_reap(resp, resp->spares.is_closed);
    if (resp->spares.is_closed) {
        uct_varuna_spares_end_rest(resp);
    }
}

void uct_varuna_spare_drop(uct_varuna_responder_t *resp, uct_ep_h ep, int is_reset)
{
    uct_varuna_old_ep_t *old = ucs_malloc(sizeof(*old), "varuna_old_ep");

    ucs_assert_always(old != NULL);
    old->inner    = ep;
    old->is_reset = is_reset;
    ucs_list_add_tail(&resp->spares.old, &old->list);
}
