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
#include "varuna_sm.h"
#include "varuna_lane.h"
#include "varuna_pending.h"
#include "varuna_ep.h"
#include "varuna_ring.h"
#include "varuna.inl"
#include <uct/ib/varuna/ucx/varuna_mlx5.inl>

#include <ucs/debug/memtrack_int.h>

ucs_status_t uct_varuna_ep_signal(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req = ep->hot.last_silent;
    unsigned num_psns;
    ucs_status_t status;

    ep->hot.want_signal = 1;
    if ((ep->hot.silent == 0) || (ep->owed != NULL)) {
        ep->hot.want_signal = (ep->owed != NULL);
        return UCS_INPROGRESS;
    }

    /* It has no completion of its own under way: lend it to an inner flush,
     * which covers all before it */
    uct_varuna_req_init_comp(req);
    status = uct_varuna_tl_flush(ep->lane.ep, ep->lane.kind, &req->comp, &num_psns);
    uct_varuna_lane_advance_psn(&ep->lane, num_psns);
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

/* What only few requests have */
static UCS_F_NOINLINE void
uct_varuna_req_retire_special(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                              ucs_status_t status)
{
    if (req == ep->owed) {
        ep->owed = NULL; /* Complete: it needs no log entry any more */
    }

    if (req->flags & UCT_VARUNA_REQ_FLAG_FIRST) {
        uct_varuna_ep_note_life(ep);
        ++ep->stats.resumed;
        ep->stats.resume_usec   += ucs_time_to_usec(ucs_get_time() -
                                                    ep->recovery.noticed_at);
        ep->recovery.noticed_at  = 0;
    }

    if (uct_varuna_req_is_step((uct_varuna_req_type_t)req->type)) {
        uct_varuna_ep_requester(ep)->amo->collect(req);
    } else if (uct_varuna_req_fetches(req) && (status == UCS_OK)) {
        memcpy(req->atomic.result, req->data, req->length);
    }
}

/* It tells what has arrived */
static UCS_F_ALWAYS_INLINE void
uct_varuna_ep_retire_read(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    --ep->hot.num_reads;
    if (ucs_likely(req->device == UCT_VARUNA_DEVICE_HOST)) {
        ep->num_settled = req->log_sn;
    } else {
        uct_varuna_device_note_read(ep, req);
    }
}

/* The oldest one, which has nothing that is to be looked at */
static UCS_F_ALWAYS_INLINE void
uct_varuna_ep_retire_plain(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    --ep->hot.num_reqs;
    --uct_varuna_ep_requester(ep)->outstanding;
    uct_varuna_ring_pull_plain(&ep->hot.reqs, req);
}

/* Retire the oldest request. Users' callbacks may post, flush, and add to the ring. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_ep_retire_head(uct_varuna_ep_t *ep, ucs_status_t status)
{
    uct_varuna_req_t *req  = ep->hot.reqs.tail;
    uct_completion_t *comp = req->user_comp;

    if (ucs_unlikely(ep->hot.num_reads > 0) &&
        uct_varuna_req_is_read((uct_varuna_req_type_t)req->type)) {
        uct_varuna_ep_retire_read(ep, req);
    }

    if (ucs_likely(!(req->flags & UCT_VARUNA_REQ_FLAGS_NOT_PLAIN))) {
        uct_varuna_ep_retire_plain(ep, req);
    } else {
        --ep->hot.num_reqs;
        --uct_varuna_ep_requester(ep)->outstanding;
        uct_varuna_req_release(req);
        if (req->flags & (UCT_VARUNA_REQ_FLAG_FIRST | UCT_VARUNA_REQ_FLAG_SPECIAL)) {
            uct_varuna_req_retire_special(ep, req, status);
        }
        uct_varuna_ring_pull(&ep->hot.reqs);
    }

    if (comp != NULL) {
        uct_invoke_completion(comp, status);
    }
}

/* Retire the oldest requests before @a last that hold nothing but a packing buffer, and have
 * no completion of the user. Reads are counted. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_ep_retire_silent(uct_varuna_ep_t *ep, const uct_varuna_req_t *last)
{
    uct_varuna_req_t *req = ep->hot.reqs.tail;
    unsigned count        = 0;

    if (ep->hot.num_reads > 0) {
        return;
    }

    while ((req != last) && (req->user_comp == NULL) &&
           !(req->flags & UCT_VARUNA_REQ_FLAGS_NOT_PLAIN & ~UCT_VARUNA_REQ_FLAG_BCOPY)) {
        uct_varuna_req_release(req);
        req = (uct_varuna_req_t*)UCS_PTR_BYTE_OFFSET(req, req->size);
        ++count;
    }

    ep->hot.reqs.tail                         = req;
    ep->hot.num_reqs                         -= count;
    uct_varuna_ep_requester(ep)->outstanding -= count;
}

uct_varuna_req_t *uct_varuna_ep_push_flush(uct_varuna_ep_t *ep, unsigned flags,
                                           uint32_t log_sn, uct_completion_t *comp)
{
    uct_varuna_req_t *req = uct_varuna_req_new(ep);

    if (req != NULL) {
        uct_varuna_req_init(ep, req, UCT_VARUNA_REQ_FLUSH, comp);
        req->opcode = flags;
        req->log_sn = log_sn;
        uct_varuna_req_push(uct_varuna_ep_iface(ep), ep, req, UCT_VARUNA_REQ_FLUSH);
    }
    return req;
}

/* What follows a flush, the oldest request, has completed before the reads of devices that the
 * flush waits for, since it was repeated first. It goes to the end if it is not placed. @return
 * Whether the request may be taken from the ring: if not, the lane is given up. */
static int uct_varuna_ep_defer_flush(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *flush = ep->hot.reqs.tail;
    uct_varuna_req_t *req;

    if (uct_varuna_ep_is_placed_up_to(ep, flush->log_sn, flush->opcode)) {
        return 1;
    }

    req = uct_varuna_ep_push_flush(ep, flush->opcode, flush->log_sn, flush->user_comp);
    if (req == NULL) {
        /* The recovery's fence places all */
        uct_varuna_ep_raise_lane_failed(ep, ucs_status_string(UCS_ERR_NO_MEMORY));
        return 0;
    }

    req->flags      |= flush->flags & UCT_VARUNA_REQ_FLAG_PASSED;
    flush->user_comp = NULL;
    return 1;
}

/* Retire all before @a last. @return Whether they are retired: if not, the lane is given up. */
static UCS_F_NOINLINE int
uct_varuna_ep_retire_before(uct_varuna_ep_t *ep, const uct_varuna_req_t *last)
{
    uct_varuna_ep_retire_silent(ep, last);
    while (ep->hot.reqs.tail != last) {
        if (ucs_unlikely(ep->devices != NULL) &&
            (ep->hot.reqs.tail->type == UCT_VARUNA_REQ_FLUSH) &&
            !uct_varuna_ep_defer_flush(ep)) {
            return 0;
        }

        uct_varuna_ep_retire_head(ep, UCS_OK);
        uct_varuna_ep_retire_silent(ep, last);
    }

    return 1;
}

void uct_varuna_ep_finish_up_to(uct_varuna_ep_t *ep, const uct_varuna_req_t *last)
{
    if (uct_varuna_ep_retire_before(ep, last)) {
        uct_varuna_ep_retire_head(ep, UCS_OK);
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
    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        if (req->type != UCT_VARUNA_REQ_FLUSH) {
            return 1;
        }
    }

    return 0;
}

void uct_varuna_ep_detach_reqs(uct_varuna_ep_t *ep)
{
    uct_varuna_req_t *req;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        req->ep     = NULL;
        req->flags |= UCT_VARUNA_REQ_FLAG_ORPHAN;
        if (uct_varuna_req_info(req)->unpacks) {
            req->get.cb = uct_varuna_req_unpack_nothing;
        }
    }

    if (ep->compare.read != NULL) {
        ep->compare.read->ep = NULL;
    }

    uct_varuna_ep_requester(ep)->outstanding -= ep->hot.num_reqs;
    ep->hot.num_reqs                          = 0;
    ep->hot.num_reads                         = 0;
}

/* Of an endpoint that is gone, while its lane may still complete something */
typedef struct uct_varuna_remains {
    uct_varuna_ring_t          reqs;
    uct_varuna_req_t           *read;  /* Of a comparison, or NULL */
} uct_varuna_remains_t;

void *uct_varuna_ep_take_reqs(uct_varuna_ep_t *ep)
{
    uct_varuna_remains_t *remains;
    uct_varuna_req_t *req;
    uct_completion_t *comp;

    uct_varuna_ring_for_each(req, &ep->hot.reqs) {
        comp           = req->user_comp;
        req->user_comp = NULL;
        if (comp != NULL) {
            uct_invoke_completion(comp, UCS_ERR_CANCELED);
        }
    }

    uct_varuna_ring_trim(&ep->hot.reqs);
    if (uct_varuna_ring_is_empty(&ep->hot.reqs) && (ep->compare.read == NULL)) {
        return NULL;
    }

    remains = ucs_malloc(sizeof(*remains), "varuna_remains");
    ucs_assert_always(remains != NULL);
    remains->reqs    = ep->hot.reqs;
    remains->read    = ep->compare.read;
    ep->compare.read = NULL;
    memset(&ep->hot.reqs, 0, sizeof(ep->hot.reqs));
    return remains;
}

void uct_varuna_remains_release(void *arg)
{
    uct_varuna_remains_t *remains = arg;

    if (remains == NULL) {
        return;
    }

    uct_varuna_ring_release(&remains->reqs);
    if (remains->read != NULL) {
        ucs_mpool_put(remains->read);
    }
    ucs_free(remains);
}

void uct_varuna_ep_finish_done(uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *head;

    while (!uct_varuna_ring_is_empty(&ep->hot.reqs)) {
        head = ep->hot.reqs.tail;
        if ((head->type == UCT_VARUNA_REQ_FLUSH) ?
            !uct_varuna_ep_is_placed_up_to(ep, head->log_sn, head->opcode) :
            !(head->flags & UCT_VARUNA_REQ_FLAG_DONE)) {
            break;
        }
        uct_varuna_ep_finish_head(ep, UCS_OK);
    }

    if (ucs_unlikely(uct_varuna_ep_has_queued(ep))) {
        uct_varuna_ep_dispatch_pending(ep);
    }
}

/* One lane completes in order: this covers all before it */
void uct_varuna_req_completion(uct_completion_t *comp)
{
    uct_varuna_req_t *req = ucs_container_of(comp, uct_varuna_req_t, comp);
    uct_varuna_ep_t *ep   = req->ep;

    if (ucs_unlikely(ep == NULL)) {
        return; /* Its endpoint is gone, its grave releases it */
    }

    if (ucs_unlikely(comp->status != UCS_OK)) {
        /* Decided by the evidence, not by UCX's word for it: requests before
         * and after the failing one get statuses which they do not deserve */
        uct_varuna_ep_lane_error(ep, ep->lane.ep, comp->status);
        return;
    }

    ep->lane.acked_psn = req->end_psn;
    if ((ep->hot.reqs.tail != req) && !uct_varuna_ep_retire_before(ep, req)) {
        return;
    }

    uct_varuna_ep_retire_head(ep, UCS_OK);
    uct_varuna_ep_finished_some(ep);
}

/* The same, of a request that has succeeded. Most are the oldest one, and plain. */
static UCS_F_ALWAYS_INLINE void uct_varuna_req_succeeded(uct_completion_t *comp, int is_read)
{
    uct_varuna_req_t *req = ucs_container_of(comp, uct_varuna_req_t, comp);
    uct_varuna_ep_t *ep   = req->ep;
    uct_completion_t *user_comp;

    if (ucs_unlikely((req->flags & UCT_VARUNA_REQ_FLAGS_NOT_PLAIN) ||
                     (ep->hot.reqs.tail != req))) {
        uct_varuna_req_completion(comp);
        return;
    }

    ep->lane.acked_psn = req->end_psn;
    if (is_read) {
        uct_varuna_ep_retire_read(ep, req);
    }

    user_comp = req->user_comp;
    uct_varuna_ep_retire_plain(ep, req);
    if (user_comp != NULL) {
        uct_invoke_completion(user_comp, UCS_OK);
    }

    uct_varuna_ep_finished_some(ep);
}

void uct_varuna_req_done(uct_rc_iface_send_op_t *op, const void *resp)
{
    if (ucs_likely(resp != NULL)) {
        uct_varuna_req_succeeded(uct_varuna_mlx5_op_done(op), 0);
    } else {
        uct_varuna_mlx5_op_purged(op);
    }
}

void uct_varuna_req_read_done(uct_rc_iface_send_op_t *op, const void *resp)
{
    if (ucs_likely(resp != NULL)) {
        uct_varuna_req_succeeded(uct_varuna_mlx5_read_done(op, resp), 1);
    } else {
        uct_varuna_mlx5_read_purged(op);
    }
}

void uct_varuna_req_zread_done(uct_rc_iface_send_op_t *op, const void *resp)
{
    if (ucs_likely(resp != NULL)) {
        uct_varuna_req_succeeded(uct_varuna_mlx5_zread_done(op), 1);
    } else {
        uct_varuna_mlx5_zread_purged(op);
    }
}
