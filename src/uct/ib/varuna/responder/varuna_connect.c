/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's queue pairs of RC: CONNECT_REQ takes a spare one, connects it to the requester's and makes it the target's.
 * This happens in the async context, so that a process which computes is
 * connected to, too. It only falls to the main thread, which alone can make
 * queue pairs, when there is no spare one.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_responder.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include "varuna_fence.h"
#include "varuna_target.h"
#include <uct/ib/varuna/lanes/varuna_rest.h>
#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/lanes/varuna_ib_addr.h>
#include <uct/ib/varuna/md/varuna_health.h>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <ucs/debug/log.h>
#include <string.h>
#include <ucs/debug/assert.h>
#include <ucs/debug/memtrack_int.h>

#define UCT_VARUNA_TARGET_ADDR_ROOM  64


static ucs_status_t
uct_varuna_target_find_link(const uct_varuna_iface_t *iface,
                            const uct_varuna_ctl_connect_t *req, unsigned *link_p)
{
    unsigned i;

    for (i = 0; i < iface->num_links; ++i) {
        if ((iface->links[i].nic == req->link) && !iface->links[i].is_closed &&
            (iface->md->nics[req->link].generation == req->generation)) {
            *link_p = i;
            return UCS_OK;
        }
    }

    /* The requester has keys of its generation */
    ucs_debug("nic %u of generation %u is not a link of this process", req->link,
              req->generation);
    return UCS_ERR_NO_DEVICE;
}

/* Tell the requester, lock held. */
static void uct_varuna_target_reply_connect(uct_varuna_responder_t *resp,
                                            unsigned link,
                                            const uct_varuna_ctl_hdr_t *hdr,
                                            uct_varuna_target_t *target,
                                            uint8_t nic, ucs_status_t status)
{
    const uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, hdr->epoch);
    const uct_varuna_link_t *rc_link;
    char body[sizeof(uct_varuna_ctl_connect_t) +
              (2 * UCT_VARUNA_TARGET_ADDR_ROOM)];
    uct_varuna_ctl_connect_t *rep = (uct_varuna_ctl_connect_t*)body;
    size_t length                 = sizeof(*rep);
    uint32_t home_epoch;
    uint8_t home_nic;

    memset(rep, 0, sizeof(*rep));
    /* Rule 12: what the requester has believed may be wrong now */
    uct_varuna_target_tell_home(resp, &home_nic, &home_epoch);
    rep->home_nic   = home_nic;
    rep->home_epoch = home_epoch;
    if (status == UCS_OK) {
        rc_link         = &resp->iface->links[qp->link];
        rep->device_len = rc_link->device_addr_len;
        rep->ep_len     = uct_varuna_link_rc(rc_link)->attr.ep_addr_len;
        ucs_assert((rep->device_len + rep->ep_len) <= (sizeof(body) - length));
        memcpy(body + length, rc_link->device_addr, rep->device_len);
        length += rep->device_len;
        status  = uct_ep_get_address(qp->ep,
                                     (uct_ep_addr_t*)(body + length));
        length += rep->ep_len;
    }

    rep->link = nic;
    if (status != UCS_OK) {
        length          = sizeof(*rep);
        rep->device_len = 0;
        rep->ep_len     = 0;
        rep->status     = -status;
    }

    uct_varuna_ctl_reply(resp->ctl, target->peer, link, hdr,
                         UCT_VARUNA_CTL_CONNECT_REP, body, length);
}

/* Lock held. @return UCS_INPROGRESS if a QP is to be made, else what to answer. */
static ucs_status_t uct_varuna_target_check_connect(uct_varuna_target_t *target,
                                                    uint32_t epoch)
{
    const uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, epoch);

    if ((epoch <= target->fenced) || (epoch < qp->epoch) ||
        ((epoch == qp->epoch) && (qp->stopped_at != 0))) {
        return UCS_ERR_REJECTED;
    }

    return ((epoch == qp->epoch) && (qp->ep != NULL)) ? UCS_OK : UCS_INPROGRESS;
}

void uct_varuna_connect_forget(uct_varuna_responder_t *resp, uct_ep_h ep)
{
    khiter_t iter = kh_get(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)ep);

    if (iter != kh_end(&resp->targets.rc_eps)) {
        kh_val(&resp->targets.rc_eps, iter) = NULL;
    }
}

/* Make the QP of incarnation @a epoch the target's. Lock held. */
static ucs_status_t
uct_varuna_target_attach_ep(uct_varuna_responder_t *resp, uct_varuna_target_t *target,
                            uct_ep_h ep, unsigned link, uint32_t epoch)
{
    uct_varuna_target_qp_t *qp = uct_varuna_target_qp(target, epoch);
    khiter_t iter;
    int ret;

    iter = kh_put(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)ep, &ret);
    if (ret == UCS_KH_PUT_FAILED) {
        return UCS_ERR_NO_MEMORY;
    }

    if (qp->ep != NULL) {
        /* Of an incarnation whose ring is needed: it is over */
        uct_varuna_target_fence_qp(resp, target, qp);
        uct_varuna_connect_forget(resp, qp->ep);
        if (!uct_varuna_fence_disown(resp, qp)) {
            uct_varuna_spare_drop(resp, qp->ep, qp->link, qp->is_reset);
        }
    }

    kh_val(&resp->targets.rc_eps, iter) = target;
    qp->ep                             = ep;
    qp->epoch                          = epoch;
    uct_varuna_target_clear_ring(target, epoch);
    qp->flags                          = 0;
    qp->epsn                           = 0;
    qp->is_reset                       = 0;
    qp->stopped_at                     = 0;
    qp->link                           = link;
    qp->attached_at                    = uct_varuna_ctl_now(resp->ctl);
    ucs_debug("rc_varuna: target %u: connected epoch=%u on %s", target->id,
              epoch, uct_varuna_link_name(resp->iface, link));
    return UCS_OK;
}

/* Lock held. @return UCS_ERR_NO_RESOURCE, and nothing is answered, if there is no
 * spare queue pair. */
static ucs_status_t
uct_varuna_target_try_connect(uct_varuna_responder_t *resp, unsigned link,
                              const uct_varuna_ctl_hdr_t *hdr,
                              const uct_varuna_ctl_connect_t *req)
{
    uct_varuna_target_t *target;
    ucs_status_t status;
    unsigned rc_link;
    uct_ep_h ep;

    target = uct_varuna_target_asked(resp, link, hdr);
    if (target == NULL) {
        return UCS_OK;
    }

    uct_varuna_fence_end_older(resp, link, hdr, req, target);
    status = uct_varuna_target_check_connect(target, hdr->epoch);
    if (status != UCS_INPROGRESS) {
        goto out_reply;
    }

    status = uct_varuna_target_find_link(resp->iface, req, &rc_link);
    if (status != UCS_OK) {
        goto out_reply;
    }

    /* Before it costs a queue pair */
    status = uct_varuna_rc_addr_check(&resp->iface->links[rc_link], req);
    if (status != UCS_OK) {
        goto out_reply;
    }

    if (!uct_varuna_reach_allow(resp->ctl, rc_link, req + 1,
                                       req->device_len, 1)) {
        status = UCS_ERR_EXCEEDS_LIMIT;
        goto out_reply;
    }

    ep = uct_varuna_spare_take(resp, rc_link);
    if (ep == NULL) {
        return UCS_ERR_NO_RESOURCE;
    }

    status = uct_varuna_rc_connect(&resp->iface->links[rc_link], ep, req);
    if (status == UCS_OK) {
        uct_varuna_lane_read_rx_order(resp->iface, rc_link, ep);
        status = uct_varuna_target_attach_ep(resp, target, ep, rc_link,
                                             hdr->epoch);
    }

    if (status != UCS_OK) {
        uct_varuna_spare_drop(resp, ep, rc_link, 0);
    }

out_reply:
    uct_varuna_target_reply_connect(resp, link, hdr, target, req->link, status);
    return UCS_OK;
}

static void uct_varuna_target_handle_connect(void *arg, unsigned link,
                                             const uct_varuna_ctl_hdr_t *hdr,
                                             const void *body)
{
    uct_varuna_responder_t *resp = arg;

    if (uct_varuna_target_try_connect(resp, link, hdr, body) != UCS_OK) {
        uct_varuna_ctl_defer(resp->ctl, link, hdr, body);
    }
}

/* There was no spare queue pair: make one first. Main thread, lock not held. */
static void uct_varuna_target_connect(void *arg, unsigned link,
                                      const uct_varuna_ctl_hdr_t *hdr,
                                      const void *body)
{
    uct_varuna_responder_t *resp               = arg;
    const uct_varuna_ctl_connect_t *req = body;
    unsigned rc_link;

    if (uct_varuna_target_find_link(resp->iface, req, &rc_link) == UCS_OK) {
        uct_varuna_spares_make(resp, rc_link, 1);
    }

    /* If another request took the spare one meanwhile, the requester asks again */
    uct_varuna_ctl_lock(resp->ctl);
    uct_varuna_target_try_connect(resp, link, hdr, req);
    uct_varuna_ctl_unlock(resp->ctl);
}

static const uct_varuna_bus_reg_t uct_varuna_connect_rows[] = {
    {UCT_VARUNA_CTL_CONNECT_REQ, UCT_VARUNA_BUS_ASYNC,
     uct_varuna_target_handle_connect},
    {UCT_VARUNA_CTL_CONNECT_REQ, UCT_VARUNA_BUS_MAIN, uct_varuna_target_connect}
};

void uct_varuna_connect_init(uct_varuna_responder_t *resp)
{
    uct_varuna_bus_register(&resp->ctl->bus, uct_varuna_connect_rows,
                            ucs_static_array_size(uct_varuna_connect_rows), resp);
}

int uct_varuna_target_ep_failed(uct_varuna_responder_t *resp, uct_ep_h inner)
{
    int found = 0;
    uct_varuna_target_t *target;
    khiter_t iter;

    uct_varuna_ctl_lock(resp->ctl);
    iter = kh_get(uct_varuna_rc_eps, &resp->targets.rc_eps, (uintptr_t)inner);
    if (iter != kh_end(&resp->targets.rc_eps)) {
        /* The requester finds out by itself, and decides */
        found = 1;
        target = kh_val(&resp->targets.rc_eps, iter);
        ucs_debug("target %d: endpoint %p failed",
                  (target == NULL) ? -1 : (int)target->id, inner);
    }

    uct_varuna_ctl_unlock(resp->ctl);
    return found;
}


/* --- Spare queue pairs --- */

/* Spare RC queue pairs of the responder. UCX makes and destroys endpoints in the
 * thread of the interface's worker only, but connecting one touches nothing but
 * that endpoint. So the main thread keeps some ready, of which the async context
 * takes what a requester asks for, and the main thread destroys what it leaves. */

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

    if (iface->links[link].is_closed ||
        !uct_varuna_md_may_ask(iface->md, nic, UCT_VARUNA_SHORT_QP, now)) {
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

/* Main thread: one more link, before it is there. It may be called again. */
static ucs_status_t uct_varuna_spares_add_link(uct_varuna_responder_t *resp, unsigned link)
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

void uct_varuna_spares_leave_link(uct_varuna_responder_t *resp, unsigned link)
{
    uct_varuna_spares_t *spares = &resp->spares;

    while (spares->count[link] > 0) {
        /* Nothing was ever posted on it, so nothing is to be drained */
        uct_varuna_tl_destroy(spares->eps[link][--spares->count[link]]);
    }
}

int uct_varuna_spares_are_on(const uct_varuna_responder_t *resp, unsigned link)
{
    uct_varuna_old_ep_t *old;

    ucs_list_for_each(old, &resp->spares.old, list) {
        if (uct_varuna_link_is_of(resp->iface, link, old->inner)) {
            return 1;
        }
    }

    return resp->spares.count[link] > 0;
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
        uct_varuna_spares_leave_link(resp, link);
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

int uct_varuna_spares_are_at_rest(const uct_varuna_responder_t *resp, unsigned link)
{
    ucs_time_t stopped_at = resp->spares.stopped_at[link];

    return (resp->spares.stopping[link] == 0) &&
           ((stopped_at == 0) || (uct_varuna_ctl_now(resp->ctl) >=
                                  (stopped_at + resp->iface->config.packet_lifetime)));
}

void uct_varuna_spare_end(uct_varuna_responder_t *resp, uct_ep_h ep, unsigned link, int is_reset)
{
    if (!is_reset) {
        uct_varuna_tl_stop(ep, uct_varuna_lane_kind_of(resp->iface, ep));
    }

    uct_varuna_ctl_lock(resp->ctl);
    --resp->spares.stopping[link];
    uct_varuna_spare_drop(resp, ep, link, is_reset);
    uct_varuna_ctl_unlock(resp->ctl);
    uct_varuna_spares_reap(resp, resp->spares.is_closed);
    if (resp->spares.is_closed) {
        uct_varuna_spares_end_rest(resp);
    }
}

void uct_varuna_spare_drop(uct_varuna_responder_t *resp, uct_ep_h ep, unsigned link,
                           int is_reset)
{
    uct_varuna_old_ep_t *old = ucs_malloc(sizeof(*old), "varuna_old_ep");

    ucs_assert_always(old != NULL);
    old->inner    = ep;
    old->is_reset = is_reset;
    ucs_list_add_tail(&resp->spares.old, &old->list);
    if (!is_reset) {
        resp->spares.stopped_at[link] = uct_varuna_ctl_now(resp->ctl);
    }
}
