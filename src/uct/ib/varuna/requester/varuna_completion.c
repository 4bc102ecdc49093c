/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion of requests: those that the lane reports, those that are known to be executed,
 * and those of an endpoint that ends.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_completion.h"
#include "varuna_amo_ops.h"
#include "varuna_ep_event.h"
#include "varuna_lane.h"
#include "varuna_pending.h"

ucs_status_t uct_varuna_ep_signal(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req = ep->hot.last_silent;
    ucs_status_t status;

    ep->hot.want_signal = 1;
    if ((ep->hot.silent == 0) || (ep->hot.owed != NULL)) {
        ep->hot.want_signal = (ep->hot.owed != NULL);
        return UCS_INPROGRESS;
    }

    /* It has no completion of its own under way: lend it to an inner flush,
     * which covers all before it */
    uct_varuna_req_init_comp(req);
    status = uct_ep_flush(ep->lane.ep, 0, &req->comp);
    if (ucs_likely(status == UCS_INPROGRESS)) {
        ep->hot.silent      = 0;
        ep->hot.want_signal = 0;
    } else if ((status == UCS_OK) || (status == UCS_ERR_NO_RESOURCE)) {
        /* The next step asks again, or calls the users: this may be called from a
         * user's callback */
        uct_varuna_ep_add_work(ep);
    } else {
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(status));
    }

    return status;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_ep_retire_head(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_requester_t *requester = uct_varuna_ep_requester(ep);
    const uct_varuna_req_info_t *info;
    uct_varuna_req_t *req;
    uct_completion_t *comp;

    req  = ucs_queue_pull_elem_non_empty(&ep->hot.reqs, uct_varuna_req_t, queue);
    info = uct_varuna_req_info(req);
    comp = req->user_comp;
    --ep->hot.num_reqs;
    --requester->outstanding;
    ep->hot.num_reads -= (info->kind == UCT_VARUNA_OP_GET);
    if (req == ep->hot.last_silent) {
        ep->hot.last_silent = NULL;
        ep->hot.silent      = 0;
    }

    if (info->logged && (req->flags & UCT_VARUNA_REQ_FLAG_POSTED)) {
        uct_varuna_oplog_finish(&ep->hot.oplog, ep->log_ring, req->log_sn);
        if (ucs_unlikely(!(req->flags & UCT_VARUNA_REQ_FLAG_LOGGED))) {
            ep->hot.owed = NULL; /* Complete: it needs no log entry any more */
        }
    }

    if (ucs_unlikely(req->flags & UCT_VARUNA_REQ_FLAG_FIRST)) {
        ++ep->stats.resumed;
        ep->stats.resume_usec += ucs_time_to_usec(ucs_get_time() -
                                                  ep->recovery.noticed_at);
        ep->recovery.noticed_at         = 0;
    }

    if (ucs_unlikely(req->type >= UCT_VARUNA_REQ_AMO_BODY)) {
        requester->amo->collect(req);
    }

    uct_varuna_req_release(req);
    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

void uct_varuna_ep_finish_head(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_ep_retire_head(ep, status);
}

int uct_varuna_ep_is_busy(const uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *req;

    /* All before the first other request are done */
    ucs_queue_for_each(req, &ep->hot.reqs, queue) {
        if (req->type != UCT_VARUNA_REQ_FLUSH) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_ep_detach_reqs(uct_varuna_ep_t *ep)
{
    uct_varuna_iface_t *iface = ucs_derived_of(ep->super.super.iface,
                                               uct_varuna_iface_t);
    uct_varuna_req_t *req;

    ucs_queue_for_each(req, &ep->hot.reqs, queue) {
        req->ep = NULL;
    }

    uct_varuna_requester(iface)->outstanding -= ep->hot.num_reqs;
    ep->hot.num_reqs        = 0;
    ep->hot.num_reads       = 0;
}

void uct_varuna_reqs_cancel(ucs_queue_head_t *reqs)
{
    uct_varuna_req_t *req;
    uct_completion_t *comp;

    ucs_queue_for_each(req, reqs, queue) {
        comp           = req->user_comp;
        req->user_comp = NULL;
        if (comp != NULL) {
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }
}

void uct_varuna_reqs_release(ucs_queue_head_t *reqs)
{
    uct_varuna_req_t *req;

    while (!ucs_queue_is_empty(reqs)) {
        req = ucs_queue_pull_elem_non_empty(reqs, uct_varuna_req_t, queue);
        uct_varuna_req_release(req);
    }
}

void uct_varuna_ep_finish_done(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *head;

    while (!ucs_queue_is_empty(&ep->hot.reqs)) {
        head = ucs_queue_head_elem_non_empty(&ep->hot.reqs, uct_varuna_req_t,
                                             queue);
        if ((head->type != UCT_VARUNA_REQ_FLUSH) &&
            !(head->flags & UCT_VARUNA_REQ_FLAG_DONE)) {
            break;
        }
        uct_varuna_ep_finish_head(ep, UCS_OK);
    }

    if (ucs_unlikely(!ucs_queue_is_empty(&ep->pend.queue))) {
        uct_varuna_ep_dispatch_pending(ep);
    }
}

void uct_varuna_req_completion(uct_completion_t *comp)
{
    uct_varuna_req_t *req = ucs_container_of(comp, uct_varuna_req_t, comp);
    uct_varuna_ep_t *ep   = req->ep;
    uct_varuna_req_t *head;

    if (ucs_unlikely(ep == NULL)) {
        return; /* Its endpoint is gone, its grave releases it */
    }

    if (ucs_unlikely(comp->status != UCS_OK)) {
        /* Decided by the evidence, not by UCX's word for it: requests before
         * and after the failing one get statuses which they do not deserve */
        uct_varuna_ep_lane_error(ep, ep->lane.ep, comp->status);
        return;
    }

    /* One lane completes in order: this covers all before it */
    ep->lane.acked_psn = req->end_psn;
    do {
        head = ucs_queue_head_elem_non_empty(&ep->hot.reqs, uct_varuna_req_t,
                                             queue);
        uct_varuna_ep_retire_head(ep, UCS_OK);
    } while (head != req);

    if (!ucs_queue_is_empty(&ep->hot.reqs)) {
        head = ucs_queue_head_elem_non_empty(&ep->hot.reqs, uct_varuna_req_t, queue);
        if (ucs_likely(!(head->flags & UCT_VARUNA_REQ_FLAG_DONE) &&
                       (head->type != UCT_VARUNA_REQ_FLUSH) &&
                       ucs_queue_is_empty(&ep->pend.queue))) {
            return;
        }
    }

    uct_varuna_ep_finish_done(ep);
}
