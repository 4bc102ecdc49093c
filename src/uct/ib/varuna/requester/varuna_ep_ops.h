/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Data path of the endpoint: UCT operations, posting a saved request (again),
 * and finishing requests in order.
 */
#ifndef UCT_VARUNA_EP_OPS_H_
#define UCT_VARUNA_EP_OPS_H_

#include "varuna_ep.h"
#include <uct/ib/varuna/core/varuna_mutate.h>

ucs_status_t uct_varuna_ep_put_short(uct_ep_h tl_ep, const void *buffer,
                                     unsigned length, uint64_t remote_addr,
                                     uct_rkey_t rkey);
ssize_t uct_varuna_ep_put_bcopy(uct_ep_h tl_ep, uct_pack_callback_t pack_cb,
                                void *arg, uint64_t remote_addr,
                                uct_rkey_t rkey);
ucs_status_t uct_varuna_ep_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_get_bcopy(uct_ep_h tl_ep,
                                     uct_unpack_callback_t unpack_cb, void *arg,
                                     size_t length, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov,
                                     size_t iovcnt, uint64_t remote_addr,
                                     uct_rkey_t rkey, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                                    const void *payload, unsigned length);
ucs_status_t uct_varuna_ep_am_short_iov(uct_ep_h tl_ep, uint8_t id,
                                        const uct_iov_t *iov, size_t iovcnt);
ssize_t uct_varuna_ep_am_bcopy(uct_ep_h tl_ep, uint8_t id,
                               uct_pack_callback_t pack_cb, void *arg,
                               unsigned flags);
ucs_status_t uct_varuna_ep_am_zcopy(uct_ep_h tl_ep, uint8_t id,
                                    const void *header, unsigned header_length,
                                    const uct_iov_t *iov, size_t iovcnt,
                                    unsigned flags, uct_completion_t *comp);
ucs_status_t uct_varuna_ep_flush(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_varuna_ep_fence(uct_ep_h tl_ep, unsigned flags);
ucs_status_t uct_varuna_ep_check(uct_ep_h tl_ep, unsigned flags,
                                 uct_completion_t *comp);
ucs_status_t uct_varuna_ep_invalidate(uct_ep_h tl_ep);

/** @return whether the endpoint leads to the interface with this address. */
int uct_varuna_ep_is_connected(uct_ep_h tl_ep, const uct_iface_addr_t *addr);
ucs_status_t uct_varuna_ep_pending_add(uct_ep_h tl_ep, uct_pending_req_t *req,
                                       unsigned flags);
void uct_varuna_ep_pending_purge(uct_ep_h tl_ep,
                                 uct_pending_purge_callback_t cb, void *arg);


/** Post a read of ours in any state which has a lane; the data is thrown away.
 *  @return UCS_OK if it is posted. */
ucs_status_t uct_varuna_ep_get_bcopy_internal(uct_varuna_ep_t *ep,
                                              uct_unpack_callback_t unpack_cb,
                                              size_t length,
                                              uint64_t remote_addr,
                                              uct_rkey_t rkey);

/** Post the newest log write which had no resources. @return nonzero if posted
 *  or no longer needed. */
int uct_varuna_ep_post_owed_log(uct_varuna_ep_t *ep);

/** Ask the lane to tell when all which was posted silently is complete. */
ucs_status_t uct_varuna_ep_signal(uct_varuna_ep_t *ep);

/** Finish the request at the head of the queue with @a status: call the user,
 *  free it. */
void uct_varuna_ep_finish_head(uct_varuna_ep_t *ep, ucs_status_t status);

/** @return Whether a request is unfinished which a flush has to wait for. Other
 *  flushes are none: their users are being told, and may flush once more. */
int uct_varuna_ep_is_busy(const uct_varuna_ep_t *ep);

/** Finish all requests at the head which are DONE, and markers behind them. */
void uct_varuna_ep_finish_done(uct_varuna_ep_t *ep);

/** Take the endpoint's unfinished requests from it: their completions reach
 *  nobody any more. */
void uct_varuna_ep_detach_reqs(uct_varuna_ep_t *ep);

/** Tell the users of detached requests that they were canceled. No lane may
 *  still touch the users' buffers. */
void uct_varuna_reqs_cancel(ucs_queue_head_t *reqs);

/** Free requests which no lane knows of any more. */
void uct_varuna_reqs_release(ucs_queue_head_t *reqs);

/** Try the user's pending requests. */
void uct_varuna_ep_dispatch_pending(uct_varuna_ep_t *ep);

/** Wait for resources of the inner lane in its own queue. @return UCS_ERR_BUSY if
 *  it has resources. */
ucs_status_t uct_varuna_ep_enter_inner_pending(uct_varuna_ep_t *ep);

/** Take our element out of the inner lane's pending queue. */
void uct_varuna_ep_leave_inner_pending(uct_varuna_ep_t *ep, uct_ep_h inner);

/** Object constructor of uct_varuna_requester(iface)->bcopy_mp. */
void uct_varuna_bcopy_init(uct_iface_h tl_iface, void *obj, uct_mem_h memh);

/* Bytes which a packing buffer needs besides its payload. */
#define UCT_VARUNA_BCOPY_OVERHEAD    sizeof(uct_mem_h)

static inline uct_pending_req_priv_queue_t *
uct_varuna_pending_priv(uct_pending_req_t *req)
{
    return (uct_pending_req_priv_queue_t*)req->priv;
}

/** Whether requests are taken that are posted later: by a new endpoint, which has no
 *  lane yet, and by one that is changing its lane as planned. Of the latter no
 *  request can be behind what is taken: the read that ends the old lane comes first.
 *  After a failure none is taken before the lost ones are on the lane again. */
static inline int uct_varuna_ep_takes(const uct_varuna_ep_t *ep)
{
    switch (ep->hot.state) {
    case UCT_VARUNA_EP_OPENING:
        break;
    case UCT_VARUNA_EP_SWAP:
        if (!ep->next.swap_read) {
            return 0;
        }
        break;
    case UCT_VARUNA_EP_BACKLOG:
        break;
    default:
        return 0;
    }

    return ep->hot.num_reqs < UCT_VARUNA_LOG_SIZE;
}

/** Mutation: whether new requests are posted before lost ones. So it is until one has
 *  been, however long the application takes to post it. */
static inline int uct_varuna_ep_leaks(const uct_varuna_ep_t *ep)
{
#ifdef UCT_VARUNA_MUTATIONS
    return uct_varuna_mutate(NO_GATE) && (ep->hot.state == UCT_VARUNA_EP_REPEAT) &&
           (ep->lane.ep != NULL) && (ep->mutate.leaks > 0);
#else
    return 0;
#endif
}

/** Mutation: a request was posted while the gate was open. */
static inline void uct_varuna_ep_leaked(uct_varuna_ep_t *ep)
{
#ifdef UCT_VARUNA_MUTATIONS
    if (uct_varuna_ep_leaks(ep)) {
        ep->mutate.leaks = 0;
    }
#endif
}

/** Address of the ring of an incarnation. */
static inline uint64_t uct_varuna_ep_ring_addr(const uct_varuna_ep_t *ep,
                                               uint32_t epoch)
{
    return ep->remote.logs_addr + (uct_varuna_log_ring(epoch) *
                            UCT_VARUNA_LOG_SIZE * sizeof(uint64_t));
}

#endif
