/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pending requests of the user. Main thread.
 */
#ifndef UCT_VARUNA_PENDING_H_
#define UCT_VARUNA_PENDING_H_

#include "varuna_ep.h"
#include "varuna_sm.h"
#include <uct/ib/varuna/md/varuna_md.h>

/* No request may be posted right away, whatever its key has */
#define UCT_VARUNA_GATE_CLOSED       UCT_VARUNA_RKEY_LACKS_ANY

/* UCT's operations */
ucs_status_t uct_varuna_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags);
void uct_varuna_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg);

/** Try the user's pending requests. */
void uct_varuna_ep_dispatch_pending(uct_varuna_ep_t *ep);

/** The endpoint has failed, and the user does not know yet: try the user's pending requests
 *  once more if this UCX wants to hear of the failure from its messages of the wire-up
 *  (UCT_VARUNA_COMPAT_PURGES_WIREUP). */
void uct_varuna_ep_end_pending(uct_varuna_ep_t *ep);

/** Wait for resources of the inner lane in its own queue. @return UCS_ERR_BUSY if
 *  it has resources. */
ucs_status_t uct_varuna_ep_enter_inner_pending(uct_varuna_ep_t *ep);

/** Take our element out of the inner lane's pending queue. */
void uct_varuna_ep_leave_inner_pending(uct_varuna_ep_t *ep, uct_ep_h inner);

/* --- The gate --- */

/* Whether a request may be posted now.
 *
 * A post looks at two words: the endpoint's gate, and whether the interface's beat is the
 * one that the endpoint has seen. The beat increases when a link or a path fails, when a NIC
 * of the peer was reset, and when the user fences the interface. Whoever brings an endpoint
 * into a state in which a request has to wait, or is not the plainest one, closes its gate;
 * uct_varuna_gate_update() opens it after a look at everything.
 *
 * The bits of an open gate are NICs of the peer that were opened again. It is closed for a request
 * whose key lacks one of them: such a request must not be posted there, and on the other links
 * the slow path asks for what the key lacks (varuna_key.c). If all keys in use are complete,
 * nothing is slower than before.
 *
 * uct_varuna_ep_can_post() has no side effects: the caller reports the reason
 * (varuna_sm.h). */

/* Whether a request may be posted on the lane right away, by the functions that know mlx5.
 * @a lacks: of its key, UCT_VARUNA_GATE_CLOSED if it has none. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_gate_is_open(const uct_varuna_iface_t *iface, const uct_varuna_ep_t *ep,
                        uint8_t lacks)
{
    return !(ep->hot.gate & lacks) && (ep->hot.beat == iface->beat);
}

/** Whether requests are queued to be posted later: by a new endpoint, which has no lane
 *  yet, and during a planned change of the lane, once the read that ends the old lane
 *  is posted. After a failure none is queued until the lost ones are posted again. */
static inline int uct_varuna_ep_takes(const uct_varuna_ep_t *ep)
{
    switch (ep->hot.state) {
    case UCT_VARUNA_EP_OPENING:
        break;
    case UCT_VARUNA_EP_SWAP:
        if (ep->next.swap_posts == 0) {
            return 0;
        }
        break;
    case UCT_VARUNA_EP_BACKLOG:
        break;
    default:
        return 0;
    }

    return ep->hot.num_reqs < UCT_VARUNA_MAX_WAITING;
}

/* Whether the next request is fenced. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_is_fenced(const uct_varuna_iface_t *iface,
                        const uct_varuna_ep_t *ep)
{
    return ep->hot.fence_next ||
           (ep->fence_beat != uct_varuna_requester(iface)->beats.fence);
}

/* Rule 9: a fence holds later posts until earlier atomics are decided. It may be before
 * the next request, or before an atomic that is still waiting. */
static inline int
uct_varuna_ep_amo_is_in_way(const uct_varuna_iface_t *iface,
                            const uct_varuna_ep_t *ep)
{
    return ((ep->amo.undecided > 0) && uct_varuna_ep_is_fenced(iface, ep)) ||
           (ep->amo.fences > 0) || (ep->hot.num_amos >= UCT_VARUNA_MAX_AMOS);
}

/* Whether a request may be posted as far as the vQP is concerned; the inner lane may
 * still have no resources. 'now': it may not be kept for later either. The caller passes
 * the answer to uct_varuna_ep_raise_post(). */
static UCS_F_ALWAYS_INLINE uct_varuna_post_t
uct_varuna_ep_can_post(const uct_varuna_iface_t *iface, const uct_varuna_ep_t *ep,
                       int now)
{
    if (ucs_unlikely((ep->hot.num_amos > 0) &&
                     uct_varuna_ep_amo_is_in_way(iface, ep))) {
        return UCT_VARUNA_POST_ATOMICS;
    }

    if (ucs_unlikely(ep->hot.state != UCT_VARUNA_EP_ACTIVE)) {
        return (!now && uct_varuna_ep_takes(ep)) ? UCT_VARUNA_POST_OK :
               UCT_VARUNA_POST_STATE;
    }

    if (ucs_unlikely(uct_varuna_ep_lane_is_stale(iface, ep))) {
        return UCT_VARUNA_POST_LANE_FAILED;
    }

    /* A read is complete when its data has come, not when the responder has
     * sent it. If a fenced operation were executed while that data got lost,
     * reading again would see too new a value; and UCX's fence modes do not
     * always make the NIC wait. */
    if (ucs_unlikely((ep->hot.num_reads > 0) &&
                     uct_varuna_ep_is_fenced(iface, ep))) {
        return UCT_VARUNA_POST_READS;
    }

    return ((ep->owed == NULL) && (ep->hot.num_reqs < UCT_VARUNA_MAX_REQS)) ?
           UCT_VARUNA_POST_OK : UCT_VARUNA_POST_FULL;
}

/* Whether the user has requests that wait */
static UCS_F_ALWAYS_INLINE int uct_varuna_ep_has_queued(const uct_varuna_ep_t *ep)
{
    return !ucs_queue_is_empty(&ep->pend.queue);
}

/* Whether requests wait which came first: nothing may pass them, or a fence
 * would not hold between the two */
static UCS_F_ALWAYS_INLINE int
uct_varuna_ep_has_pending(const uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_has_queued(ep) && !ep->pend.dispatching;
}

/* Whether requests wait, and the inner lane does not say when to try them */
static inline int uct_varuna_ep_polls_pending(const uct_varuna_ep_t *ep)
{
    return uct_varuna_ep_has_queued(ep) && !ep->pend.inner_queued;
}

/* Whether uct_varuna_ep_end_pending() lets the messages of the wire-up hear of a failure */
static inline int uct_varuna_ep_ends_pending(const uct_varuna_ep_t *ep)
{
    return ep->pend.ending;
}

/* What keys must not lack. A NIC without a bit leaves the gate closed */
static inline uint8_t uct_varuna_ep_returned_nics(const uct_varuna_ep_t *ep)
{
    uint8_t nics = 0;
    const uct_varuna_peer_link_t *far;
    uint8_t nic;
    unsigned link;

    ucs_for_each_bit(link, ep->peer->returned) {
        far   = &ep->peer->links[link];
        nic   = uct_varuna_rkey_has_returned(far->nic, far->generation);
        nics |= (nic == 0) ? UCT_VARUNA_GATE_CLOSED : nic;
    }

    return nics;
}

/* Open the gate if nothing at all is in the way, or close it. */
static inline void
uct_varuna_gate_update(const uct_varuna_iface_t *iface, uct_varuna_ep_t *ep)
{
    int is_closed = (ep->hot.state != UCT_VARUNA_EP_ACTIVE) ||
                    (ep->lane.kind != UCT_VARUNA_LANE_RC) || (ep->hot.num_amos > 0) ||
                    (ep->owed != NULL) || (ep->hot.reqs.head == NULL) ||
                    uct_varuna_ep_has_queued(ep) || uct_varuna_ep_is_fenced(iface, ep) ||
                    uct_varuna_ep_lane_is_stale(iface, ep);

    ep->hot.gate = is_closed ? UCT_VARUNA_GATE_CLOSED :
                   uct_varuna_ep_returned_nics(ep);
    ep->hot.beat = iface->beat;
}

#endif
