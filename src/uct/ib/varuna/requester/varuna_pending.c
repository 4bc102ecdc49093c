/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pending requests of the user. They wait in our queue, since they outlive lanes; one
 * element of ours waits in the lane's queue for its resources.
 *
 * While that queue calls us, neither the element is in it nor may the queue be purged
 * (ucs_arbiter_group_purge()): the lane may fail just then, as what the user posts is
 * the first to see that its link is down, or the user may want to wait again.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_pending.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

static inline uct_pending_req_priv_queue_t *
uct_varuna_pending_priv(uct_pending_req_t *req)
{
    return (uct_pending_req_priv_queue_t*)req->priv;
}

static inline uct_pending_req_t *
uct_varuna_pending_req(uct_pending_req_priv_queue_t *priv)
{
    return ucs_container_of(priv, uct_pending_req_t, priv);
}

static ucs_status_t uct_varuna_ep_inner_pending_cb(uct_pending_req_t *self)
{
    uct_varuna_ep_t *ep = ucs_container_of(self, uct_varuna_ep_t, pend.inner);

    ep->pend.inner_queued = 0;
    ep->pend.inner_called = 1;
    uct_varuna_ep_requester(ep)->ep_resume(ep);
    uct_varuna_ep_dispatch_pending(ep);
    ep->pend.inner_called = 0;
    return UCS_OK;
}

void uct_varuna_ep_dispatch_pending(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;
    uct_varuna_post_t why;
    ucs_status_t status;

    if (ep->pend.dispatching) {
        return; /* A completion inside a pending callback */
    }

    ep->pend.dispatching = 1;
    while (!ucs_queue_is_empty(&ep->pend.queue)) {
        why = uct_varuna_ep_can_post(iface, ep, 1);
        if (why != UCT_VARUNA_POST_OK) {
            uct_varuna_ep_raise_post(ep, why);
            break;
        }

        priv   = ucs_queue_pull_elem_non_empty(&ep->pend.queue,
                                               uct_pending_req_priv_queue_t,
                                               queue_elem);
        req    = uct_varuna_pending_req(priv);
        status = req->func(req);
        if (status != UCS_OK) {
            ucs_queue_push_head(&ep->pend.queue, &priv->queue_elem);
            ep->hot.gate = 1;
        } else {
            --uct_varuna_requester(iface)->num_pending;
        }

        if (UCS_STATUS_IS_ERR(status)) {
            break;
        }
    }
    ep->pend.dispatching = 0;

    if (!ucs_queue_is_empty(&ep->pend.queue)) {
        /* Our own limits are looked at when something completes; the lane's
         * by its own pending queue, entered from the progress since this may be
         * called from inside it */
        uct_varuna_ep_add_work(ep);
    }
}

void uct_varuna_ep_end_pending(uct_varuna_ep_t *ep)
{
    uct_pending_req_priv_queue_t *priv;
    ucs_queue_head_t queue;

    if (UCT_VARUNA_COMPAT_PURGES_WIREUP || ep->pend.dispatching) {
        return;
    }

    ucs_queue_head_init(&queue);
    ucs_queue_splice(&queue, &ep->pend.queue);
    ep->pend.dispatching = 1;
    ep->pend.ending      = 1;
    while (!ucs_queue_is_empty(&queue)) {
        priv = ucs_queue_pull_elem_non_empty(&queue, uct_pending_req_priv_queue_t,
                                             queue_elem);
        if (uct_varuna_pending_req(priv)->func(uct_varuna_pending_req(priv)) == UCS_OK) {
            --uct_varuna_ep_requester(ep)->num_pending;
        } else {
            ucs_queue_push(&ep->pend.queue, &priv->queue_elem);
        }
    }
    ep->pend.ending      = 0;
    ep->pend.dispatching = 0;
}

ucs_status_t uct_varuna_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_varuna_post_t why = uct_varuna_ep_can_post(iface, ep, 1);

    uct_varuna_ep_raise_post(ep, why);
    if ((why == UCT_VARUNA_POST_OK) &&
        ucs_queue_is_empty(&ep->pend.queue)) {
        if (uct_varuna_ep_enter_inner_pending(ep) == UCS_ERR_BUSY) {
            return UCS_ERR_BUSY;
        }
    } else {
        uct_varuna_ep_add_work(ep);
    }

    ucs_queue_push(&ep->pend.queue,
                   &uct_varuna_pending_priv(req)->queue_elem);
    ep->hot.gate = 1;
    ++uct_varuna_requester(iface)->num_pending;
    UCT_TL_EP_STAT_PEND(&ep->super);
    return UCS_OK;
}

ucs_status_t uct_varuna_ep_enter_inner_pending(uct_varuna_ep_t *ep)
{
    ucs_status_t status;

    if (ep->pend.inner_queued) {
        return UCS_OK;
    } else if (ep->pend.inner_called) {
        uct_varuna_ep_add_work(ep);
        return UCS_OK;
    }

    ep->pend.inner.func = uct_varuna_ep_inner_pending_cb;
    status              = uct_ep_pending_add(ep->lane.ep, &ep->pend.inner, 0);
    if (status == UCS_OK) {
        ep->pend.inner_queued = 1;
    }

    return status;
}

static void
uct_varuna_ep_inner_purge_cb(uct_pending_req_t *self, void *arg)
{
    uct_varuna_ep_t *ep = ucs_container_of(self, uct_varuna_ep_t, pend.inner);

    ep->pend.inner_queued = 0;
}

void uct_varuna_ep_leave_inner_pending(uct_varuna_ep_t *ep, uct_ep_h inner)
{
    if (ep->pend.inner_queued) {
        uct_ep_pending_purge(inner, uct_varuna_ep_inner_purge_cb, NULL);
        ep->pend.inner_queued = 0;
    }
}

void uct_varuna_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg)
{
    UCT_VARUNA_EP_DECL(tl_ep, iface, ep);
    uct_pending_req_priv_queue_t *priv;
    uct_pending_req_t *req;

    while (!ucs_queue_is_empty(&ep->pend.queue)) {
        --uct_varuna_requester(iface)->num_pending;
        priv = ucs_queue_pull_elem_non_empty(&ep->pend.queue,
                                             uct_pending_req_priv_queue_t,
                                             queue_elem);
        req  = uct_varuna_pending_req(priv);
        if (cb != NULL) {
            cb(req, arg);
        } else {
            ucs_warn("ep %p: pending request %p was not purged", ep, req);
        }
    }
}
