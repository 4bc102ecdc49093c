/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The hot path: taking, posting and queueing a request. Included by the files that
 * implement operations of the endpoint, and by varuna_post.c, which posts again.
 */
#ifndef UCT_VARUNA_INL_
#define UCT_VARUNA_INL_

#include "varuna_completion.h"
#include "varuna_ep.h"
#include "varuna_pending.h"
#include "varuna_ring.h"
#include <uct/ib/varuna/ctl/varuna_peer.h>
#include <uct/ib/varuna/ucx/varuna_mlx5.inl>
#include <uct/ib/varuna/ucx/varuna_tl.h>

#include <uct/base/uct_iov.inl>

/* --- Posting a saved request on RC, by the functions that know mlx5 --- */

/* What a message has before its payload */
static UCS_F_ALWAYS_INLINE uint32_t
uct_varuna_req_am_header_length(const uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    return (uct_varuna_req_infos[type].place == UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER) ?
           req->header_length : sizeof(req->am.hdr);
}

/* More than what any lane and we put before a message */
#define UCT_VARUNA_AM_OVERHEAD       64

/* PSNs which the request's packets take: a message of n MTUs takes n, a read as
 * many as its response has, an atomic one; one if the MTU is not known. An MTU is a power of
 * two. @a length: of the request, which the caller may know */
static UCS_F_ALWAYS_INLINE uint32_t
uct_varuna_req_num_psns(const uct_varuna_ep_t *ep, const uct_varuna_req_t *req,
                        uct_varuna_req_type_t type, uint32_t length)
{
    int is_message = uct_varuna_req_is_message(type);
    uint32_t mtu   = ep->lane.mtu;

    if (uct_varuna_req_infos[type].one_packet) {
        return 1;
    }

    if (is_message) {
        length += uct_varuna_req_am_header_length(req, type);
    }

    if (ucs_likely((length + (is_message ? UCT_VARUNA_AM_OVERHEAD : 0)) <= mtu)) {
        return 1;
    }

    if (is_message) {
        length += ucs_likely(ep->lane.kind == UCT_VARUNA_LANE_RC) ?
                  UCT_VARUNA_MLX5_AM_OVERHEAD :
                  uct_varuna_tl_am_overhead(ep->lane.kind);
    }

    return (mtu == 0) ? 1 : ((length + mtu - 1) >> ucs_ilog2(mtu));
}

/* IBV_MTU_256 */
#define UCT_VARUNA_MIN_MTU           256

/* A completed write may be on its way to memory. A read of the same lane that returns later
 * proves that it has arrived, if both are of the host's memory, or of the same device's. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_note_write(uct_varuna_ep_t *ep, uct_varuna_req_t *req)
{
    ++ep->num_writes;
    if (ucs_unlikely(req->device != UCT_VARUNA_DEVICE_HOST)) {
        uct_varuna_device_note_write(ep, req);
    }
}

/* Count what was posted. The inner lane's inline limits are below the smallest MTU, so
 * what is short takes one packet. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_posted(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                      uct_varuna_req_type_t type, uint32_t length,
                      const uct_completion_t *comp)
{
    UCS_STATIC_ASSERT(UCT_VARUNA_MAX_INLINE <= UCT_VARUNA_MIN_MTU);
    req->flags |= UCT_VARUNA_REQ_FLAG_POSTED;
    if (uct_varuna_req_is_read(type)) {
        req->log_sn = ep->num_writes;
    }

    if (comp == NULL) {
        ep->hot.last_silent = req;
        ++ep->hot.silent;
    } else {
        ep->hot.silent      = 0; /* Its completion covers those before */
    }

    uct_varuna_lane_advance_psn(&ep->lane, uct_varuna_req_num_psns(ep, req, type, length));
    req->end_psn = ep->lane.psn;
    if (!uct_varuna_req_is_read(type) && !uct_varuna_req_is_message(type)) {
        uct_varuna_req_note_write(ep, req);
    }
}

/* Whether a request is posted without a completion. Of requests without a user's
 * completion, one in TX_CQ_MODERATION has one for all of them. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_req_is_silent(const uct_varuna_ep_t *ep, const uct_varuna_req_known_t *known,
                         int signal)
{
    return !signal && (known->user_comp == NULL) &&
           ((ep->hot.silent + 1u) < known->iface->config.tx_cq_moderation);
}

/* The buffers with the handles of the lane's NIC. Messages may be empty, and their handle is
 * none then. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_know_iov(const uct_varuna_ep_t *ep, const uct_varuna_req_t *req,
                        uct_varuna_req_type_t type, const uct_varuna_req_known_t *known,
                        uct_iov_t *iov)
{
    if (known->iovcnt == 1) {
        iov->buffer = known->buffer;
        iov->memh   = (uct_varuna_req_is_message(type) && (known->length == 0)) ?
                      UCT_MEM_HANDLE_NULL :
                      uct_varuna_mem_inner_of(known->memh, ep->hot.nic);
    } else {
        uct_varuna_req_fill_iov(ep, req, known->iovcnt, iov);
    }
}

/* The put itself. @a log: the entry that follows it, or NULL */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_put(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                        uct_varuna_req_type_t type, const uct_varuna_req_known_t *known,
                        const uct_varuna_mlx5_log_t *log, uct_completion_t *comp)
{
    uct_rkey_t rkey = req->keys[ep->hot.far_nic];
    uct_iov_t iov[UCT_VARUNA_MAX_IOV];

    if (uct_varuna_req_infos[type].place == UCT_VARUNA_REQ_IN_DATA) {
        return uct_varuna_mlx5_put_short(ep->lane.ep, req->data, known->length,
                                         req->remote_addr, rkey, log, comp,
                                         uct_varuna_req_done);
    }

    uct_varuna_req_know_iov(ep, req, type, known, iov);
    return uct_varuna_mlx5_put_zcopy(ep->lane.ep, iov, known->iovcnt, known->length,
                                     req->remote_addr, rkey, log, comp,
                                     uct_varuna_req_done);
}

/* The log entry that a request is about to have */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_fill_log(const uct_varuna_ep_t *ep, const uct_varuna_req_t *req,
                        uct_varuna_mlx5_log_t *log)
{
    uint32_t sn = ep->hot.log_next;

    log->entry       = uct_varuna_log_entry(req, sn);
    log->remote_addr = ep->hot.log_addr + (uct_varuna_log_slot(sn) * sizeof(uint64_t));
    log->rkey        = ep->hot.log_rkey;
}

/* It is posted, and its log entry after it */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_posted_pair(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                           uct_varuna_req_type_t type, uint32_t length,
                           uct_completion_t *comp)
{
    req->log_sn = ep->hot.log_next++;
    req->flags |= UCT_VARUNA_REQ_FLAG_LOGGED;
    uct_varuna_req_posted(ep, req, type, length, comp);
    uct_varuna_lane_advance_psn(&ep->lane, 1);
    ++ep->stats.logged;
}

/* Post a put and its log entry with one doorbell */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_pair(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                         uct_varuna_req_type_t type, const uct_varuna_req_known_t *known,
                         uct_completion_t *comp)
{
    uct_varuna_mlx5_log_t log;
    ucs_status_t status;

    uct_varuna_req_fill_log(ep, req, &log);
    status = uct_varuna_req_post_put(ep, req, type, known, &log, comp);
    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_req_posted_pair(ep, req, type, known->length, comp);
    }

    return status;
}

/* Post a fetching atomic that the functions that know mlx5 can make, with its log entry if
 * this lane needs any. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_cas(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                        uct_varuna_req_type_t type)
{
    uct_varuna_mlx5_cas_t cas;
    uct_varuna_mlx5_log_t log;
    ucs_status_t status;

    cas.is_add = (type == UCT_VARUNA_REQ_ATOMIC_FETCH);
    if (cas.is_add && ((req->opcode != UCT_ATOMIC_OP_ADD) ||
                       (req->length != sizeof(uint64_t)))) {
        return UCS_ERR_UNSUPPORTED;
    }

    cas.remote_addr = req->remote_addr;
    cas.rkey        = uct_varuna_req_rkey(req);
    cas.compare     = req->atomic.compare;
    cas.swap        = req->atomic.value;
    cas.width       = req->length;
    uct_varuna_req_init_comp(req);
    if (!ep->hot.logged) {
        status = uct_varuna_mlx5_cas_log(ep->lane.ep, &cas, NULL, req->data,
                                         &req->comp);
        if (ucs_likely(status == UCS_OK)) {
            uct_varuna_req_posted(ep, req, type, cas.width, &req->comp);
        }
        return status;
    }

    uct_varuna_req_fill_log(ep, req, &log);
    status = uct_varuna_mlx5_cas_log(ep->lane.ep, &cas, &log, req->data,
                                     &req->comp);
    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_req_posted_pair(ep, req, type, cas.width, &req->comp);
    }

    return status;
}

/* Post a put, with its log entry if this lane needs any. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_write(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                          uct_varuna_req_type_t type,
                          const uct_varuna_req_known_t *known, uct_completion_t *comp)
{
    ucs_status_t status;

    if (ep->hot.logged) {
        return uct_varuna_req_post_pair(ep, req, type, known, comp);
    }

    status = uct_varuna_req_post_put(ep, req, type, known, NULL, comp);
    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_req_posted(ep, req, type, known->length, comp);
    }

    return status;
}

/* Post a read or a message, which has no log entry */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_single(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                           uct_varuna_req_type_t type,
                           const uct_varuna_req_known_t *known, uct_completion_t *comp)
{
    uct_iov_t iov[UCT_VARUNA_MAX_IOV];
    ucs_status_t status = UCS_ERR_UNSUPPORTED;

    switch (uct_varuna_req_infos[type].place) {
    case UCT_VARUNA_REQ_IN_DATA:
        status = uct_varuna_mlx5_am_short(ep->lane.ep, UCT_VARUNA_AM_ID_DATA,
                                          req->am.hdr.u64, req->data, known->length,
                                          comp, uct_varuna_req_done);
        break;
    case UCT_VARUNA_REQ_IN_BCOPY:
        uct_varuna_req_fill_bcopy(req, iov);
        status = uct_varuna_mlx5_am_zcopy(ep->lane.ep, UCT_VARUNA_AM_ID_DATA,
                                          &req->am.hdr, sizeof(req->am.hdr), iov, 1,
                                          known->length, comp, uct_varuna_req_done);
        break;
    case UCT_VARUNA_REQ_IN_IOV_AFTER_HEADER:
        uct_varuna_req_know_iov(ep, req, type, known, iov);
        status = uct_varuna_mlx5_am_zcopy(ep->lane.ep, UCT_VARUNA_AM_ID_DATA,
                                          &req->iov[known->iovcnt],
                                          req->header_length, iov, known->iovcnt,
                                          known->length, comp, uct_varuna_req_done);
        break;
    case UCT_VARUNA_REQ_NOWHERE:
        status = uct_varuna_mlx5_get_bcopy(ep->lane.ep, &req->get, known->length,
                                           req->remote_addr,
                                           req->keys[ep->hot.far_nic], comp,
                                           uct_varuna_req_read_done);
        break;
    case UCT_VARUNA_REQ_IN_IOV:
        uct_varuna_req_know_iov(ep, req, type, known, iov);
        status = uct_varuna_mlx5_get_zcopy(ep->lane.ep, iov, known->iovcnt, known->length,
                                           req->remote_addr,
                                           req->keys[ep->hot.far_nic], comp,
                                           uct_varuna_req_zread_done);
        break;
    case UCT_VARUNA_REQ_OPERANDS:
        break;
    }

    if (ucs_likely(status == UCS_OK)) {
        uct_varuna_req_posted(ep, req, type, known->length, comp);
    }

    return status;
}

/* As uct_varuna_req_post_rc(), with this completion, or NULL. The compiler makes a copy for
 * each, which need not look. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_with(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                         uct_varuna_req_type_t type, const uct_varuna_req_known_t *known,
                         uct_completion_t *comp)
{
    return (uct_varuna_req_infos[type].rc == UCT_VARUNA_REQ_AS_WRITE) ?
           uct_varuna_req_post_write(ep, req, type, known, comp) :
           uct_varuna_req_post_single(ep, req, type, known, comp);
}

/* Post a request that has no fence before it on RC. @return UCS_ERR_UNSUPPORTED if UCX
 * must post it. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_post_rc(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                       uct_varuna_req_type_t type, const uct_varuna_req_known_t *known,
                       int signal)
{
    switch (uct_varuna_req_infos[type].rc) {
    case UCT_VARUNA_REQ_AS_WRITE:
        if (uct_varuna_req_infos[type].place != UCT_VARUNA_REQ_IN_DATA) {
            signal |= (known->length > UCT_VARUNA_MAX_SILENT);
        }
        break;
    case UCT_VARUNA_REQ_AS_SINGLE:
        signal |= uct_varuna_req_is_read(type);
        break;
    case UCT_VARUNA_REQ_AS_ATOMIC:
        return uct_varuna_req_post_cas(ep, req, type);
    case UCT_VARUNA_REQ_BY_UCX:
        return UCS_ERR_UNSUPPORTED;
    }

    if (uct_varuna_req_is_silent(ep, known, signal)) {
        return uct_varuna_req_post_with(ep, req, type, known, NULL);
    }

    uct_varuna_req_init_comp(req);
    return uct_varuna_req_post_with(ep, req, type, known, &req->comp);
}

/* --- New requests --- */

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_init(uct_varuna_ep_t *ep, uct_varuna_req_t *req,
                    uct_varuna_req_type_t type, uct_completion_t *comp)
{
    req->ep        = ep;
    req->user_comp = comp;
    req->length    = 0;
    req->flags     = uct_varuna_req_infos[type].special ?
                     UCT_VARUNA_REQ_FLAG_SPECIAL :
                     (type == UCT_VARUNA_REQ_FLUSH) ? UCT_VARUNA_REQ_FLAG_MARKER : 0;
    req->type      = type;
    req->opcode    = 0;
    req->iovcnt    = 0;
}

/** As uct_varuna_req_get(), after a look at all that may be in the way. */
uct_varuna_req_t *
uct_varuna_req_get_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                        uct_varuna_req_type_t type, uct_completion_t *comp,
                        uct_rkey_t rkey);

/** Close the gate for a new request whose key lacks a NIC of the peer that was opened again. If it
 *  is closed, uct_varuna_req_start_slow() looks at the key. */
void uct_varuna_gate_check_key(uct_varuna_req_t *req, uct_rkey_t rkey);

/** As uct_varuna_req_start(), for a request that may have to wait, or that UCX posts. */
ucs_status_t uct_varuna_req_start_slow(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                                       uct_varuna_req_t *req);

/* What the gate may be closed for. A message has no key. */
static UCS_F_ALWAYS_INLINE uint8_t
uct_varuna_req_lacks(uct_varuna_req_type_t type, uct_rkey_t rkey)
{
    return uct_varuna_req_infos[type].user_key ? uct_varuna_rkey_lacks(rkey) :
           UCT_VARUNA_GATE_CLOSED;
}

/* A new request at the head of the ring, NULL if it is not taken now. @a rkey: the user's,
 * UCT_INVALID_RKEY of a message, or if the caller looks at the key afterwards; @a lacks:
 * uct_varuna_req_lacks(), or UCT_VARUNA_GATE_CLOSED */
static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_req_get_lacking(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                           uct_varuna_req_type_t type, uct_completion_t *comp,
                           uct_rkey_t rkey, uint8_t lacks)
{
    uct_varuna_req_t *req;

    if (ucs_unlikely(!uct_varuna_gate_is_open(iface, ep, lacks))) {
        return uct_varuna_req_get_slow(iface, ep, type, comp, rkey);
    }

    req = ep->hot.reqs.head;
    uct_varuna_req_init(ep, req, type, comp);
    return req;
}

static UCS_F_ALWAYS_INLINE uct_varuna_req_t *
uct_varuna_req_get(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                   uct_varuna_req_type_t type, uct_completion_t *comp, uct_rkey_t rkey)
{
    return uct_varuna_req_get_lacking(iface, ep, type, comp, rkey,
                                      uct_varuna_req_lacks(type, rkey));
}

/* A request of ours at the head of the ring, whatever state the endpoint is in */
static inline uct_varuna_req_t *uct_varuna_req_new(uct_varuna_ep_t *ep)
{
    return (uct_varuna_ring_open(ep, 1) == UCS_OK) ? ep->hot.reqs.head : NULL;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_push_known(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                          uct_varuna_req_t *req, uct_varuna_req_type_t type,
                          const uct_varuna_req_known_t *known)
{
    ++uct_varuna_requester(iface)->outstanding;
    ep->hot.num_reads += uct_varuna_req_is_read(type);
    uct_varuna_ring_push(ep, req, uct_varuna_req_size(req, type, known));
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_push(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                    uct_varuna_req_t *req, uct_varuna_req_type_t type)
{
    const uct_varuna_req_known_t known = uct_varuna_req_know(req);

    uct_varuna_req_push_known(iface, ep, req, type, &known);
}

/* In UCX's own statistics, where they are built */
static inline void uct_varuna_ep_count_refused(uct_varuna_ep_t *ep,
                                               ucs_status_t status)
{
    if (status == UCS_ERR_NO_RESOURCE) {
        UCS_STATS_UPDATE_COUNTER(ep->super.stats, UCT_EP_STAT_NO_RES, 1);
    }
}

/* Why a request is not taken. The error handler reports the endpoint's failure before any
 * posting call does: UCP, in the mode in which it fails over between its lanes, begins a
 * request again that gets an error, and on the same lane if it does not know of the failure. */
static inline ucs_status_t uct_varuna_ep_unavailable(uct_varuna_ep_t *ep)
{
    ucs_status_t status = (ep->hot.state == UCT_VARUNA_EP_FAILED) && ep->sm.reported ?
                          ep->sm.fail_status : UCS_ERR_NO_RESOURCE;

    uct_varuna_ep_count_refused(ep, status);
    return status;
}

/* Post a new request, and add it to the ring, or give it back. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_known(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                           uct_varuna_req_t *req, uct_varuna_req_type_t type,
                           const uct_varuna_req_known_t *known)
{
    req->length = known->length;
    if (ucs_likely(!(ep->hot.gate & UCT_VARUNA_GATE_CLOSED)) &&
        ucs_likely(uct_varuna_req_post_rc(ep, req, type, known, 0) == UCS_OK)) {
        uct_varuna_req_push_known(iface, ep, req, type, known);
        ++ep->stats.posted;
        return UCS_OK;
    }

    return uct_varuna_req_start_slow(iface, ep, req);
}

/* The same, of @a length bytes which are in no iov */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                     uct_varuna_req_t *req, uct_varuna_req_type_t type,
                     const uct_completion_t *comp, uint32_t length)
{
    const uct_varuna_req_known_t known = {
        .iface     = iface,
        .user_comp = comp,
        .length    = length
    };

    return uct_varuna_req_start_known(iface, ep, req, type, &known);
}

/* The same, of @a length bytes in @a iovcnt buffers */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_req_start_iov(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep,
                         uct_varuna_req_t *req, uct_varuna_req_type_t type,
                         const uct_completion_t *comp, uint32_t length,
                         const uct_iov_t *iov, uint8_t iovcnt)
{
    const uct_varuna_req_known_t known = {
        .iface     = iface,
        .user_comp = comp,
        .buffer    = (iovcnt == 1) ? iov->buffer : NULL,
        .memh      = (iovcnt == 1) ? iov->memh : UCT_MEM_HANDLE_NULL,
        .length    = length,
        .iovcnt    = iovcnt
    };

    return uct_varuna_req_start_known(iface, ep, req, type, &known);
}

static UCS_F_ALWAYS_INLINE ucs_status_t uct_varuna_req_inprogress(ucs_status_t status)
{
    return (status == UCS_OK) ? UCS_INPROGRESS : status;
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_remote(uct_varuna_req_t *req, uint64_t remote_addr,
                          uct_rkey_t rkey)
{
    req->remote_addr = remote_addr;
    req->device      = ((const uct_varuna_rkey_t*)rkey)->device;
    req->user.token  = ((const uct_varuna_rkey_t*)rkey)->token;
    memcpy(req->keys, ((const uct_varuna_rkey_t*)rkey)->keys, sizeof(req->keys));
}

/* @a length: of all */
static UCS_F_ALWAYS_INLINE void
uct_varuna_req_set_iov(uct_varuna_req_t *req, const uct_iov_t *iov, size_t iovcnt,
                       size_t length)
{
    size_t i;

    req->iovcnt = iovcnt;
    if ((iovcnt == 1) && ucs_likely(length > 0)) {
        req->iov[0].buffer = iov->buffer;
        req->iov[0].length = length;
        req->iov[0].memh   = iov->memh;
        return;
    }

    for (i = 0; i < iovcnt; ++i) {
        req->iov[i].buffer = iov[i].buffer;
        req->iov[i].length = uct_iov_get_length(&iov[i]);
        /* Callers need not set that of an empty one: UCP does not */
        req->iov[i].memh   = (req->iov[i].length == 0) ? UCT_MEM_HANDLE_NULL :
                             iov[i].memh;
    }
}

/* Give the request a registered buffer and an iov over its first @length bytes;
 * the buffer's payload is returned. */
static UCS_F_ALWAYS_INLINE void *
uct_varuna_req_get_bcopy(uct_varuna_iface_t *iface, uct_varuna_req_t *req)
{
    uct_varuna_bcopy_t *bcopy = ucs_mpool_get_inline(&uct_varuna_requester(iface)->pools.bcopies);

    if (ucs_unlikely(bcopy == NULL)) {
        return NULL;
    }

    req->flags |= UCT_VARUNA_REQ_FLAG_BCOPY;
    req->bcopy  = bcopy;
    return bcopy + 1;
}

#endif
