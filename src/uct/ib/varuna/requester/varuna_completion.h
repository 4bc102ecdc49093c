/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Completion of requests, in order. Main thread.
 */
#ifndef UCT_VARUNA_COMPLETION_H_
#define UCT_VARUNA_COMPLETION_H_

#include "varuna_ep.h"
#include "varuna_pending.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ucx/varuna_compat.h>

/** Completion callback of all saved requests, if not one of those below is called. */
void uct_varuna_req_completion(uct_completion_t *comp);

struct uct_rc_iface_send_op;

/** Called when a request that varuna.inl has posted is complete (uct_varuna_mlx5_done_t): of
 *  all but reads, */
void uct_varuna_req_done(struct uct_rc_iface_send_op *op, const void *resp);

/** of GET_BCOPY, */
void uct_varuna_req_read_done(struct uct_rc_iface_send_op *op, const void *resp);

/** and of GET_ZCOPY. */
void uct_varuna_req_zread_done(struct uct_rc_iface_send_op *op, const void *resp);

/** Make the request's own completion ready to be given to the lane. */
static UCS_F_ALWAYS_INLINE void uct_varuna_req_init_comp(uct_varuna_req_t *req)
{
    req->comp.func   = uct_varuna_req_completion;
    req->comp.count  = 1;
    req->comp.status = UCS_OK;
}

/** Ask the lane for a completion of all that was posted silently. */
ucs_status_t uct_varuna_ep_signal(uct_varuna_ep_t *ep);

/** The lane has completed all up to @a last. A flush that still waits for a read stays. */
void uct_varuna_ep_finish_up_to(uct_varuna_ep_t *ep, const uct_varuna_req_t *last);

/** Finish the oldest request with @a status: call the user, free it. */
void uct_varuna_ep_finish_head(uct_varuna_ep_t *ep, ucs_status_t status);

/** @return Whether there are unfinished requests that a flush has to wait for. Other
 *  flushes do not count: their completions are being called, and may flush again. */
int uct_varuna_ep_is_busy(const uct_varuna_ep_t *ep);

/** Finish the oldest requests that are DONE, and the flushes after them whose writes are
 *  placed. */
void uct_varuna_ep_finish_done(uct_varuna_ep_t *ep);

/** Add a flush with these flags, which waits for writes up to number @a log_sn.
 *  @return NULL without memory. */
uct_varuna_req_t *uct_varuna_ep_push_flush(uct_varuna_ep_t *ep, unsigned flags,
                                           uint32_t log_sn, uct_completion_t *comp);

/** The oldest requests were finished: finish those after them that need no completion, and
 *  let pending requests of the user be posted. */
static UCS_F_ALWAYS_INLINE void uct_varuna_ep_finished_some(uct_varuna_ep_t *ep)
{
    const uct_varuna_req_t *tail = ep->hot.reqs.tail;

    /* The gate is closed while requests of the user are pending */
    if (ucs_likely((tail == ep->hot.reqs.head) ||
                   !(tail->flags & UCT_VARUNA_REQ_FLAGS_AWAITED)) &&
        (ucs_likely(!(ep->hot.gate & UCT_VARUNA_GATE_CLOSED)) ||
         !uct_varuna_ep_has_queued(ep))) {
        return;
    }

    uct_varuna_ep_finish_done(ep);
}

/* --- Whether completed writes are in the peer's memory --- */

/* An acknowledgement only says that the peer's NIC has a write: the NIC keeps its order to what
 * comes later to itself, and not to what the peer's other NICs and CPUs do. In some modes of
 * atomics these find all that came before to one NIC of the peer; an endpoint whose lane goes
 * to another one is away (docs/ATOMICS.md). */

/** @return Whether a flush with these flags need not wait for writes up to number @a sn once
 *  they are complete: with UCT_VARUNA_COMPAT_FLUSH_REMOTE, whether all find them; otherwise,
 *  whether an atomic of any process does that is executed from now on. */
static inline int
uct_varuna_ep_is_placed_up_to(const uct_varuna_ep_t *ep, uint32_t sn, unsigned flags)
{
    if (!(flags & UCT_VARUNA_COMPAT_FLUSH_REMOTE) && !ep->amo.is_away) {
        return 1;
    }

    return (UCS_CIRCULAR_COMPARE32(ep->num_settled, >=, sn) &&
            (!(flags & UCT_VARUNA_COMPAT_FLUSH_REMOTE) ||
             uct_varuna_devices_are_placed(ep, sn))) ||
           (ep->hot.state == UCT_VARUNA_EP_FAILED);
}

/** The same, for all writes that were posted. */
static inline int uct_varuna_ep_is_placed(const uct_varuna_ep_t *ep, unsigned flags)
{
    return uct_varuna_ep_is_placed_up_to(ep, ep->num_writes, flags);
}

/** Take the endpoint's unfinished requests from it: their completions have no effect any
 *  more. */
void uct_varuna_ep_detach_reqs(uct_varuna_ep_t *ep);

/** Take detached requests from an endpoint that ends, and tell their users that they were
 *  canceled. @return What is left of them, NULL if there is nothing. */
void *uct_varuna_ep_take_reqs(uct_varuna_ep_t *ep);

/** Free what is left of requests of which no lane knows any more. */
void uct_varuna_remains_release(void *remains);

#endif
