/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Posting on rc_mlx5 endpoints, with UCX's inline functions: a request, or two with one
 * doorbell. What UCX's functions post and what these post can follow each other.
 *
 * All return UCS_ERR_UNSUPPORTED if nothing was posted, and UCX's own functions must be
 * used: there are not enough resources, or a fence is due. Unit tests have endpoints
 * without resources.
 */
#ifndef UCT_VARUNA_MLX5_INL_
#define UCT_VARUNA_MLX5_INL_

#include "varuna_mlx5.h"
#include "varuna_mlx5_ep.h"

/* --- UCX's inline functions --- */

#include <uct/ib/mlx5/ib_mlx5.h>

/* Called by one of the functions that nobody here calls. Without this, a process with
 * LD_BIND_NOW ends when it opens the plugin: UCX opens its libraries for itself alone */
extern __typeof__(uct_ib_mlx5_iface_get_res_domain) uct_ib_mlx5_iface_get_res_domain
        __attribute__((weak));

/* A build of UCX with logging (its configure's default) prints each packet at level data, by
 * functions of its modules, which cannot be linked: what is posted here is not printed */
#include <uct/ib/mlx5/ib_mlx5_log.h>
#undef uct_ib_mlx5_log_tx
#undef uct_ib_mlx5_log_rx
#undef uct_ib_mlx5_log_cqe
#define uct_ib_mlx5_log_tx(_iface, _wqe, _qstart, _qend, _max_sge, _log_sge, _dump_cb) \
    ((void)(_log_sge))
#define uct_ib_mlx5_log_rx(_iface, _cqe, _data, _dump_cb) ((void)(_cqe))
#define uct_ib_mlx5_log_cqe(_cqe)                         ((void)(_cqe))

#if UCT_VARUNA_UCX_AT_LEAST(1, 18)
#  include <uct/ib/mlx5/rc/rc_mlx5.inl>
#else
#  include <uct/ib/rc/accel/rc_mlx5.inl>
#endif

/* --- Posting --- */

/* As uct_varuna_mlx5_am_overhead() */
#define UCT_VARUNA_MLX5_AM_OVERHEAD  sizeof(uct_rc_mlx5_hdr_t)

/* Control segment, remote address, inline header, entry */
#define UCT_VARUNA_MLX5_LOG_WQE_SIZE \
    (sizeof(struct mlx5_wqe_ctrl_seg) + sizeof(struct mlx5_wqe_raddr_seg) + \
     sizeof(struct mlx5_wqe_inl_data_seg) + sizeof(uint64_t))

/* Called by UCX when a request that has a completion is complete: its owner's function, which
 * begins with one of uct_varuna_mlx5_xx_done() and gets the completion from it. When UCX purges
 * its queue after an error, it calls the completion itself, and then this function without a
 * response: that is for uct_varuna_mlx5_xx_purged(). */
typedef uct_rc_send_handler_t uct_varuna_mlx5_done_t;

/* An operation that UCX has purged carries a status, which must not stay there when it is
 * free again: since 1.14 UCX asserts that. */
static inline void uct_varuna_mlx5_op_clear(uct_rc_iface_send_op_t *op)
{
    op->flags &= ~UCT_RC_IFACE_SEND_OP_STATUS;
}

/* Of all but reads. The operation is free before the user is called, who may post the next
 * one. */
static UCS_F_ALWAYS_INLINE uct_completion_t *
uct_varuna_mlx5_op_done(uct_rc_iface_send_op_t *op)
{
    UCS_STATIC_ASSERT(UCT_VARUNA_MLX5_LOG_WQE_SIZE <= MLX5_SEND_WQE_BB);
    uct_rc_iface_put_send_op(op);
    return op->user_comp;
}

static inline void uct_varuna_mlx5_op_purged(uct_rc_iface_send_op_t *op)
{
    uct_varuna_mlx5_op_clear(op);
    uct_rc_iface_put_send_op(op);
}

/* Work requests of one RC endpoint, built from UCX's inline functions: one, or two that
 * are posted with one doorbell. The work and the checks that UCX's own posting function
 * does for each request are done once for both. */
typedef struct uct_varuna_mlx5_post {
    uct_varuna_mlx5_rc_ep_t    *ep;
    uct_rc_mlx5_iface_common_t *iface;
    uct_ib_mlx5_txwq_t         *wq;
    struct mlx5_wqe_ctrl_seg   *data;  /* Where the first one begins */
    uct_ib_mlx5_mmio_reg_t     *reg;   /* Of wq, these too: what is stored in between might */
    uint32_t                   qp_num; /* change them, as far as the compiler knows */
} uct_varuna_mlx5_post_t;

/* What UCX keeps free on a queue for a request that waits and needs more than others */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_is_reserved(const uct_varuna_mlx5_rc_ep_t *ep)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 22)
    return ep->super.txqp_reserve != 0;
#else
    return 0;
#endif
}

/* Whether both can be posted, and neither needs what only UCX's functions do: wait for
 * resources, fence, signal because credits run out, report what was transmitted */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_post_init(uct_varuna_mlx5_post_t *post, uct_ep_h tl_ep)
{
    uct_varuna_mlx5_rc_ep_t *ep       = ucs_derived_of(tl_ep,
                                                       uct_varuna_mlx5_rc_ep_t);
    uct_rc_mlx5_iface_common_t *iface = ucs_derived_of(tl_ep->iface,
                                                       uct_rc_mlx5_iface_common_t);

    post->ep     = ep;
    post->iface  = iface;
    post->wq     = &ep->tx.wq;
    post->data   = ep->tx.wq.curr;
    post->reg    = ep->tx.wq.reg;
    post->qp_num = ep->tx.wq.super.qp_num;
    return (ep->super.txqp.available > UCT_IB_MLX5_MAX_BB) &&
           (iface->super.tx.cq_available >
            (signed)iface->super.config.tx_moderation + UCT_IB_MLX5_MAX_BB) &&
           (ep->tx.wq.fi.fence_beat == iface->super.tx.fi.fence_beat) &&
           !uct_varuna_mlx5_is_reserved(ep) &&
           !ucs_log_is_enabled(UCS_LOG_LEVEL_TRACE_DATA);
}

/* The remote address, right after its control segment: both are in the first
 * BB of a request, which does not wrap. @return what follows. */
static UCS_F_ALWAYS_INLINE void *
uct_varuna_mlx5_set_remote(struct mlx5_wqe_ctrl_seg *ctrl, uint64_t remote_addr,
                          uct_rkey_t rkey)
{
    struct mlx5_wqe_raddr_seg *raddr = (struct mlx5_wqe_raddr_seg*)(ctrl + 1);

    uct_ib_mlx5_ep_set_rdma_seg(raddr, remote_addr, uct_ib_md_direct_rkey(rkey));
    return raddr + 1;
}

/* Make the control segment of a request, by two stores: UCX's function needs five */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_set_ctrl(const uct_varuna_mlx5_post_t *post,
                         struct mlx5_wqe_ctrl_seg *ctrl, uint16_t pi, uint8_t opcode,
                         uint8_t opmod, uint8_t fm_ce_se, unsigned size)
{
    unsigned num_ds = ucs_div_round_up(size, UCT_IB_MLX5_WQE_SEG_SIZE);
    uint64_t words[2];

    UCS_STATIC_ASSERT(sizeof(words) == sizeof(*ctrl));
    words[0] = htobe64(((uint64_t)opmod << 56) | ((uint64_t)pi << 40) |
                       ((uint64_t)opcode << 32) | (post->qp_num << 8) | num_ds);
    words[1] = htobe64((uint64_t)fm_ce_se << 32); /* No stream of a DCI, no immediate */
    memcpy(ctrl, words, sizeof(*ctrl));
}

/* Copy what follows the headers of a request. They and 8 bytes are in its first BB, which
 * does not wrap. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_inline_copy(void *dst, const void *src, unsigned length,
                            uct_ib_mlx5_txwq_t *wq)
{
    if (ucs_likely(length == sizeof(uint64_t))) {
        memcpy(dst, src, sizeof(uint64_t));
    } else {
        uct_ib_mlx5_inline_copy(dst, src, length, wq);
    }
}

/* @return The request that begins @a num_bb after the one at @a ctrl. */
static UCS_F_ALWAYS_INLINE struct mlx5_wqe_ctrl_seg *
uct_varuna_mlx5_next_wqe(const uct_varuna_mlx5_post_t *post,
                         struct mlx5_wqe_ctrl_seg *ctrl, unsigned num_bb)
{
    void *next = UCS_PTR_BYTE_OFFSET(ctrl, num_bb * MLX5_SEND_WQE_BB);

    return ucs_likely(next < (void*)post->wq->qend) ? next :
           UCS_PTR_BYTE_OFFSET(next, -UCS_PTR_BYTE_DIFF(post->wq->qstart,
                                                        post->wq->qend));
}

/* What UCX keeps of a queue, after requests were posted of which the last one is at @a pi,
 * of @a num_bb. A completion is called when that one has completed. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_posted(uct_varuna_mlx5_post_t *post, struct mlx5_wqe_ctrl_seg *ctrl,
                       uint16_t pi, unsigned num_bb, unsigned num_wqes,
                       int is_signaled)
{
    uct_ib_mlx5_txwq_t *wq = post->wq;
    uct_rc_txqp_t *txqp    = &post->ep->super.txqp;
    uint16_t res_count     = pi - wq->prev_sw_pi;

    post->reg->addr.uint ^= UCT_IB_MLX5_BF_REG_SIZE;
    wq->prev_sw_pi        = pi;
    wq->sw_pi             = pi + num_bb;
    wq->curr              = uct_varuna_mlx5_next_wqe(post, ctrl, num_bb);
    txqp->available      -= res_count;

    post->iface->super.tx.cq_available -= res_count;
    if (is_signaled) {
        wq->sig_pi       = pi;
        txqp->unsignaled = 0;
    } else {
        txqp->unsignaled += num_wqes;
    }
}

/* Call @a done when the request at @a pi has completed */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_add_comp(uct_varuna_mlx5_post_t *post, uct_completion_t *comp,
                         uct_varuna_mlx5_done_t done, uint16_t pi)
{
    uct_rc_iface_send_op_t *op = uct_rc_iface_get_send_op(&post->iface->super);

    op->handler   = done;
    op->user_comp = comp;
    op->flags    |= UCT_RC_IFACE_SEND_OP_FLAG_ZCOPY;
    uct_rc_txqp_add_send_op_sn(&post->ep->super.txqp, op, pi);
}

/* Whether UCX signals the next request because so many were not. UCX posts it then: we
 * signal before that, unless the user wants to share completions more than UCX does. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_wants_signal(const uct_varuna_mlx5_post_t *post, unsigned num_wqes)
{
    return (post->ep->super.txqp.unsignaled + num_wqes) >
           post->iface->super.config.tx_moderation;
}

/* Post one request, as UCX does; @a fm_ce_se says whether it is signaled. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_post_one(uct_varuna_mlx5_post_t *post, uint8_t opcode,
                         uint8_t fm_ce_se, size_t size)
{
    uct_ib_mlx5_txwq_t *wq = post->wq;
    uint16_t num_bb        = ucs_div_round_up(size, MLX5_SEND_WQE_BB);
    uint16_t pi            = wq->sw_pi;

    uct_varuna_mlx5_set_ctrl(post, post->data, pi, opcode, 0, fm_ce_se, size);
    ucs_memory_cpu_store_fence();
    *wq->dbrec = htonl((uint16_t)(pi + num_bb));
    if (post->reg->mode == UCT_IB_MLX5_MMIO_MODE_DB) {
        uct_varuna_mlx5_reg_ring_alone(post->reg, post->data);
    } else if (uct_varuna_mlx5_reg_is_locked(post->reg)) {
        uct_varuna_mlx5_reg_ring(post->reg, post->data);
    } else {
        ucs_memory_bus_store_fence();
        uct_ib_mlx5_bf_copy(post->reg->addr.ptr, post->data, num_bb, wq);
        if (post->reg->mode == UCT_IB_MLX5_MMIO_MODE_BF_POST) {
            ucs_memory_bus_cacheline_wc_flush();
        } else {
            ucs_memory_cpu_wc_fence();
        }
    }

    uct_varuna_mlx5_posted(post, post->data, pi, num_bb, 1,
                           fm_ce_se & MLX5_WQE_CTRL_CQ_UPDATE);
}

/* Make the request at @a ctrl, of one BB, that writes a log entry. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_set_log(const uct_varuna_mlx5_post_t *post, struct mlx5_wqe_ctrl_seg *ctrl,
                        uint16_t pi, const uct_varuna_mlx5_log_t *log, int is_signaled)
{
    struct mlx5_wqe_inl_data_seg *inl;

    inl             = uct_varuna_mlx5_set_remote(ctrl, log->remote_addr, log->rkey);
    inl->byte_count = htonl(sizeof(log->entry) | MLX5_INLINE_SEG);
    memcpy(inl + 1, &log->entry, sizeof(log->entry));
    uct_varuna_mlx5_set_ctrl(post, ctrl, pi, MLX5_OPCODE_RDMA_WRITE, 0,
                             is_signaled ? MLX5_WQE_CTRL_CQ_UPDATE : 0,
                             UCT_VARUNA_MLX5_LOG_WQE_SIZE);
}

/* The log entry after the data, of @a size bytes with its control segment, and the
 * doorbell for both. As uct_rc_mlx5_common_post_send() and uct_ib_mlx5_post_send(). */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_pair_post(uct_varuna_mlx5_post_t *post, size_t size,
                          const uct_varuna_mlx5_log_t *log, uct_completion_t *comp,
                          uct_varuna_mlx5_done_t done)
{
    uct_ib_mlx5_txwq_t *wq = post->wq;
    uint16_t num_bb        = ucs_div_round_up(size, MLX5_SEND_WQE_BB);
    uint16_t pi            = wq->sw_pi + num_bb;
    struct mlx5_wqe_ctrl_seg *ctrl;

    uct_varuna_mlx5_set_ctrl(post, post->data, wq->sw_pi, MLX5_OPCODE_RDMA_WRITE, 0, 0,
                             size);

    ctrl = uct_varuna_mlx5_next_wqe(post, post->data, num_bb);
    uct_varuna_mlx5_set_log(post, ctrl, pi, log, comp != NULL);

    ucs_memory_cpu_store_fence();
    *wq->dbrec = htonl((uint16_t)(pi + 1));
    uct_varuna_mlx5_reg_ring(post->reg, ctrl);
    uct_varuna_mlx5_posted(post, ctrl, pi, 1, 2, comp != NULL);
    if (comp != NULL) {
        uct_varuna_mlx5_add_comp(post, comp, done, pi);
    }
}

/* A put, with its log entry if there is one */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_put_post(uct_varuna_mlx5_post_t *post, size_t size,
                         const uct_varuna_mlx5_log_t *log, uct_completion_t *comp,
                         uct_varuna_mlx5_done_t done)
{
    uint16_t pi = post->wq->sw_pi;

    if (log != NULL) {
        uct_varuna_mlx5_pair_post(post, size, log, comp, done);
        return;
    }

    uct_varuna_mlx5_post_one(post, MLX5_OPCODE_RDMA_WRITE,
                             (comp != NULL) ? MLX5_WQE_CTRL_CQ_UPDATE : 0, size);
    if (comp != NULL) {
        uct_varuna_mlx5_add_comp(post, comp, done, pi);
    }
}

/* As uct_varuna_mlx5_post_init(), for requests that may have no completion. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_silent_init(uct_varuna_mlx5_post_t *post, uct_ep_h tl_ep,
                            unsigned num_wqes, const uct_completion_t *comp)
{
    return uct_varuna_mlx5_post_init(post, tl_ep) &&
           ((comp != NULL) || !uct_varuna_mlx5_wants_signal(post, num_wqes));
}

/* The segments of @a length bytes in @a iovcnt buffers. @return What they take. The caller
 * may know at compile time that there is one with data. */
static UCS_F_ALWAYS_INLINE size_t
uct_varuna_mlx5_set_iov(const uct_varuna_mlx5_post_t *post, void *dptr,
                        const uct_iov_t *iov, size_t iovcnt, size_t length)
{
    if (iovcnt != 1) {
        return uct_ib_mlx5_set_data_seg_iov(post->wq, dptr, iov, iovcnt);
    }

    uct_ib_mlx5_set_data_seg(dptr, iov->buffer, length, uct_ib_memh_get_lkey(iov->memh));
    return sizeof(struct mlx5_wqe_data_seg);
}

/**
 * Post a put and its log entry, as two work requests with one doorbell.
 *
 * @param [in] log   May be NULL: the put alone.
 * @param [in] comp  For @a done, which is called when both are complete; may be NULL.
 */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_put_short(uct_ep_h tl_ep, const void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          const uct_varuna_mlx5_log_t *log, uct_completion_t *comp,
                          uct_varuna_mlx5_done_t done)
{
    struct mlx5_wqe_inl_data_seg *inl;
    uct_varuna_mlx5_post_t post;

    if (ucs_unlikely(!uct_varuna_mlx5_silent_init(&post, tl_ep, (log == NULL) ? 1 : 2,
                                                  comp) ||
                     (length > UCT_IB_MLX5_PUT_MAX_SHORT(0)))) {
        return UCS_ERR_UNSUPPORTED;
    }

    inl = uct_varuna_mlx5_set_remote(post.data, remote_addr, rkey);
    inl->byte_count = htonl(length | MLX5_INLINE_SEG);
    uct_varuna_mlx5_inline_copy(inl + 1, buffer, length, post.wq);

    uct_varuna_mlx5_put_post(&post, sizeof(*post.data) +
                             sizeof(struct mlx5_wqe_raddr_seg) + sizeof(*inl) +
                             length, log, comp, done);
    return UCS_OK;
}

/** The same from registered memory; the handles in @a iov are the inner ones, and
 *  @a length is its sum. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_put_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt,
                          size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                          const uct_varuna_mlx5_log_t *log, uct_completion_t *comp,
                          uct_varuna_mlx5_done_t done)
{
    uct_varuna_mlx5_post_t post;
    void *dptr;
    size_t size;

    if (ucs_unlikely(!uct_varuna_mlx5_silent_init(&post, tl_ep, (log == NULL) ? 1 : 2,
                                                  comp) ||
                     (iovcnt > UCT_RC_MLX5_RMA_MAX_IOV(0)))) {
        return UCS_ERR_UNSUPPORTED;
    }

    dptr = uct_varuna_mlx5_set_remote(post.data, remote_addr, rkey);
    size = UCS_PTR_BYTE_DIFF(post.data, dptr) +
           uct_varuna_mlx5_set_iov(&post, dptr, iov, iovcnt, length);
    uct_varuna_mlx5_put_post(&post, size, log, comp, done);
    return UCS_OK;
}

/* As uct_varuna_mlx5_post_init(); and flow control has a window, and neither asks for nor
 * announces anything. */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_message_init(uct_varuna_mlx5_post_t *post, uct_ep_h tl_ep,
                             const uct_completion_t *comp)
{
    int16_t window;

    if (!uct_varuna_mlx5_silent_init(post, tl_ep, 1, comp)) {
        return 0;
    }

    window = post->ep->super.fc.fc_wnd;
    return (window > 0) && (window != post->iface->super.config.fc_soft_thresh) &&
           (window != post->iface->super.config.fc_hard_thresh) &&
           !(post->ep->super.flags & UCT_RC_EP_FC_MASK);
}

static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_message_post(uct_varuna_mlx5_post_t *post, size_t size,
                             uct_completion_t *comp, uct_varuna_mlx5_done_t done)
{
    uint16_t pi = post->wq->sw_pi;

    uct_varuna_mlx5_post_one(post, MLX5_OPCODE_SEND, MLX5_WQE_CTRL_SOLICITED |
                             ((comp != NULL) ? MLX5_WQE_CTRL_CQ_UPDATE : 0), size);
    --post->ep->super.fc.fc_wnd;
    if (comp != NULL) {
        uct_varuna_mlx5_add_comp(post, comp, done, pi);
    }
}

/** Post a message, as uct_ep_am_short(), with a completion, which may be NULL. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_am_short(uct_ep_h tl_ep, uint8_t id, uint64_t header,
                         const void *payload, unsigned length, uct_completion_t *comp,
                         uct_varuna_mlx5_done_t done)
{
    struct mlx5_wqe_inl_data_seg *inl;
    uct_rc_mlx5_am_short_hdr_t *am;
    uct_varuna_mlx5_post_t post;

    if (ucs_unlikely(!uct_varuna_mlx5_message_init(&post, tl_ep, comp) ||
                     (sizeof(*am) + length > UCT_IB_MLX5_AM_MAX_SHORT(0)))) {
        return UCS_ERR_UNSUPPORTED;
    }

    inl             = (struct mlx5_wqe_inl_data_seg*)(post.data + 1);
    inl->byte_count = htonl((sizeof(*am) + length) | MLX5_INLINE_SEG);
    am              = (uct_rc_mlx5_am_short_hdr_t*)(inl + 1);
    am->am_hdr      = header;
    uct_rc_mlx5_am_hdr_fill(&am->rc_hdr, id);
    uct_varuna_mlx5_inline_copy(am + 1, payload, length, post.wq);
    uct_varuna_mlx5_message_post(&post, sizeof(*post.data) + sizeof(*inl) +
                                 sizeof(*am) + length, comp, done);
    return UCS_OK;
}

/** The same as uct_ep_am_zcopy(); @a length is the sum of @a iov. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_am_zcopy(uct_ep_h tl_ep, uint8_t id, const void *header,
                         unsigned header_length, const uct_iov_t *iov, size_t iovcnt,
                         size_t length, uct_completion_t *comp,
                         uct_varuna_mlx5_done_t done)
{
    struct mlx5_wqe_inl_data_seg *inl;
    uct_varuna_mlx5_post_t post;
    uct_rc_mlx5_hdr_t *am;
    size_t size;

    if (ucs_unlikely(!uct_varuna_mlx5_message_init(&post, tl_ep, comp) ||
                     (iovcnt > UCT_IB_MLX5_AM_ZCOPY_MAX_IOV) ||
                     (header_length > UCT_IB_MLX5_AM_ZCOPY_MAX_HDR(0)))) {
        return UCS_ERR_UNSUPPORTED;
    }

    inl             = (struct mlx5_wqe_inl_data_seg*)(post.data + 1);
    inl->byte_count = htonl((sizeof(*am) + header_length) | MLX5_INLINE_SEG);
    am              = (uct_rc_mlx5_hdr_t*)(inl + 1);
    size            = ucs_align_up_pow2(sizeof(*inl) + sizeof(*am) + header_length,
                                        UCT_IB_MLX5_WQE_SEG_SIZE);
    uct_rc_mlx5_am_hdr_fill(am, id);
    uct_varuna_mlx5_inline_copy(am + 1, header, header_length, post.wq);
    if (ucs_likely(length > 0)) {
        size       += uct_varuna_mlx5_set_iov(&post,
                                              uct_ib_mlx5_txwq_wrap_any(
                                                      post.wq,
                                                      UCS_PTR_BYTE_OFFSET(inl, size)),
                                              iov, iovcnt, length);
    }
    uct_varuna_mlx5_message_post(&post, sizeof(*post.data) + size, comp, done);
    return UCS_OK;
}

/* The interface of a read of uct_varuna_mlx5_get_bcopy(), of which it tells that it is over */
static UCS_F_ALWAYS_INLINE uct_rc_iface_t *
uct_varuna_mlx5_read_end(const uct_rc_iface_send_op_t *op)
{
    uct_rc_iface_t *iface = ucs_container_of(
            ucs_mpool_obj_owner((void*)ucs_derived_of(op, uct_rc_iface_send_desc_t)),
            uct_rc_iface_t, tx.mp);

    iface->tx.reads_completed += op->length;
    return iface;
}

/* Of uct_varuna_mlx5_get_bcopy() */
static UCS_F_ALWAYS_INLINE uct_completion_t *
uct_varuna_mlx5_read_done(uct_rc_iface_send_op_t *op, const void *resp)
{
    uct_completion_t *comp             = op->user_comp;
    const uct_varuna_mlx5_read_t *read = op->unpack_arg;

    uct_varuna_mlx5_read_end(op);
    read->cb(read->arg, resp, op->length);
    ucs_mpool_put_inline(op);
    return comp;
}

static inline void uct_varuna_mlx5_read_purged(uct_rc_iface_send_op_t *op)
{
    uct_rc_iface_update_reads(uct_varuna_mlx5_read_end(op));
    uct_varuna_mlx5_op_clear(op);
    ucs_mpool_put_inline(op);
}

/* Of uct_varuna_mlx5_get_zcopy() */
static UCS_F_ALWAYS_INLINE uct_completion_t *
uct_varuna_mlx5_zread_done(uct_rc_iface_send_op_t *op)
{
    op->iface->tx.reads_completed += op->length;
    return uct_varuna_mlx5_op_done(op);
}

static inline void uct_varuna_mlx5_zread_purged(uct_rc_iface_send_op_t *op)
{
    op->iface->tx.reads_completed += op->length;
    uct_rc_iface_update_reads(op->iface);
    uct_varuna_mlx5_op_purged(op);
}

/** The same as uct_ep_get_bcopy(); @a comp must be given. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_get_bcopy(uct_ep_h tl_ep, uct_varuna_mlx5_read_t *read,
                          size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp, uct_varuna_mlx5_done_t done)
{
    uct_rc_iface_send_desc_t *desc;
    uct_varuna_mlx5_post_t post;
    void *dptr;

    if (ucs_unlikely(!uct_varuna_mlx5_post_init(&post, tl_ep) ||
                     (post.iface->super.tx.reads_available <= 0))) {
        return UCS_ERR_UNSUPPORTED;
    }

    desc = ucs_mpool_get_inline(&post.iface->super.tx.mp);
    if (ucs_unlikely(desc == NULL)) {
        return UCS_ERR_UNSUPPORTED;
    }

    desc->super.handler    = done;
    desc->super.unpack_arg = read;
    desc->super.user_comp  = comp;
    desc->super.length     = length;
    desc->super.sn         = post.wq->sw_pi;

    dptr = uct_varuna_mlx5_set_remote(post.data, remote_addr, rkey);
    uct_ib_mlx5_set_data_seg(dptr, desc + 1, length, desc->lkey);
    uct_varuna_mlx5_post_one(&post, MLX5_OPCODE_RDMA_READ, MLX5_WQE_CTRL_CQ_UPDATE,
                             UCS_PTR_BYTE_DIFF(post.data, dptr) +
                             sizeof(struct mlx5_wqe_data_seg));
    uct_rc_txqp_add_send_op(&post.ep->super.txqp, &desc->super);
    post.iface->super.tx.reads_available -= length;
    return UCS_OK;
}

/** The same as uct_ep_get_zcopy(); @a length is the sum of @a iov. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_get_zcopy(uct_ep_h tl_ep, const uct_iov_t *iov, size_t iovcnt,
                          size_t length, uint64_t remote_addr, uct_rkey_t rkey,
                          uct_completion_t *comp, uct_varuna_mlx5_done_t done)
{
    uct_rc_iface_send_op_t *op;
    uct_varuna_mlx5_post_t post;
    uint16_t pi;
    void *dptr;
    size_t size;

    if (ucs_unlikely(!uct_varuna_mlx5_post_init(&post, tl_ep) ||
                     (iovcnt > UCT_RC_MLX5_RMA_MAX_IOV(0)) ||
                     (post.iface->super.tx.reads_available <= 0) ||
                     (length <= post.iface->super.super.config.max_inl_cqe[
                                                                UCT_IB_DIR_TX]))) {
        return UCS_ERR_UNSUPPORTED;
    }

    pi   = post.wq->sw_pi;
    dptr = uct_varuna_mlx5_set_remote(post.data, remote_addr, rkey);
    size = UCS_PTR_BYTE_DIFF(post.data, dptr) +
           uct_varuna_mlx5_set_iov(&post, dptr, iov, iovcnt, length);
    uct_varuna_mlx5_post_one(&post, MLX5_OPCODE_RDMA_READ, MLX5_WQE_CTRL_CQ_UPDATE,
                             size);

    op            = uct_rc_iface_get_send_op(&post.iface->super);
    op->handler   = done;
    op->user_comp = comp;
    op->length    = length;
    op->flags    |= UCT_RC_IFACE_SEND_OP_FLAG_ZCOPY;
    uct_rc_txqp_add_send_op_sn(&post.ep->super.txqp, op, pi);
    post.iface->super.tx.reads_available -= length;
    return UCS_OK;
}

/* --- Atomics --- */

/* Posting atomics on rc_mlx5 endpoints: two work requests with one doorbell, and one
 * completion, which brings the value that one of them found.
 *
 * A NIC may put the data of a request into its completion, so only the request that has one
 * can give its value. */

/* A compare and swap of 4 or 8 bytes, or a fetch and add of 8 */
typedef struct uct_varuna_mlx5_cas {
    uint64_t                   remote_addr;
    uct_rkey_t                 rkey;       /* Inner */
    uint64_t                   compare;
    uint64_t                   swap;       /* Or what is added */
    unsigned                   width;
    int                        is_add;
} uct_varuna_mlx5_cas_t;

/* Requests that end with a compare and swap, and where the values go that they find */
typedef struct uct_varuna_mlx5_cas_post {
    uct_varuna_mlx5_post_t     super;
    uct_rc_iface_send_desc_t   *desc;
    uint16_t                   pi;         /* Of the next request */
} uct_varuna_mlx5_cas_post_t;

static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_cas_init(uct_varuna_mlx5_cas_post_t *post, uct_ep_h tl_ep)
{
    if (ucs_unlikely(!uct_varuna_mlx5_post_init(&post->super, tl_ep))) {
        return 0;
    }

    post->desc = ucs_mpool_get_inline(&post->super.iface->super.tx.mp);
    post->pi   = post->super.wq->sw_pi;
    return ucs_likely(post->desc != NULL);
}

/* Make a request of one BB, at @a ctrl. Its value goes to word @a index of the buffer. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_cas_set(const uct_varuna_mlx5_cas_post_t *post,
                        struct mlx5_wqe_ctrl_seg *ctrl,
                        const uct_varuna_mlx5_cas_t *cas, unsigned index,
                        uint8_t fm_ce_se)
{
    struct mlx5_wqe_raddr_seg *raddr = (struct mlx5_wqe_raddr_seg*)(ctrl + 1);
    uint64_t remote_addr             = cas->remote_addr;
    uint8_t opcode                   = cas->is_add ? MLX5_OPCODE_ATOMIC_FA :
                                       MLX5_OPCODE_ATOMIC_CS;
    uint8_t opmod                    = 0;
    struct uct_ib_mlx5_atomic_masked_cswap32_seg *half;
    struct mlx5_wqe_atomic_seg *word;
    uint32_t rkey;

    UCS_STATIC_ASSERT(sizeof(*ctrl) + sizeof(*raddr) + sizeof(*word) +
                      sizeof(struct mlx5_wqe_data_seg) == MLX5_SEND_WQE_BB);
    UCS_STATIC_ASSERT(sizeof(*word) == sizeof(*half));
    rkey = uct_ib_resolve_atomic_rkey(cas->rkey, post->super.ep->super.atomic_mr_offset,
                                      &remote_addr);
    uct_ib_mlx5_ep_set_rdma_seg(raddr, remote_addr, rkey);
    word = (struct mlx5_wqe_atomic_seg*)(raddr + 1);
    if (ucs_likely(cas->width == sizeof(uint64_t))) {
        word->swap_add     = htobe64(cas->swap);
        word->compare      = htobe64(cas->compare);
    } else {
        half               = (struct uct_ib_mlx5_atomic_masked_cswap32_seg*)word;
        half->swap         = htonl(cas->swap);
        half->compare      = htonl(cas->compare);
        half->swap_mask    = UINT32_MAX;
        half->compare_mask = UINT32_MAX;
        opcode             = MLX5_OPCODE_ATOMIC_MASKED_CS;
        opmod              = UCT_IB_MLX5_OPMOD_EXT_ATOMIC(2);
    }

    uct_ib_mlx5_set_data_seg((struct mlx5_wqe_data_seg*)(word + 1),
                             (uint64_t*)(post->desc + 1) + index, cas->width,
                             post->desc->lkey);
    uct_varuna_mlx5_set_ctrl(&post->super, ctrl, post->pi, opcode, opmod, fm_ce_se,
                             MLX5_SEND_WQE_BB);
}

/* Its value is the result: when the request at @a pi has completed */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_cas_expect(uct_varuna_mlx5_cas_post_t *post,
                           const uct_varuna_mlx5_cas_t *cas, uint16_t pi, void *result,
                           uct_completion_t *comp)
{
    uct_rc_iface_send_op_t *op = &post->desc->super;

    /* UCX's handler knows the order of the value's bytes, and UCX knows it when it purges
     * the queue */
    op->handler   = uct_rc_iface_atomic_handler(&post->super.iface->super,
                                                cas->width == sizeof(uint32_t),
                                                cas->width);
    op->buffer    = result;
    op->user_comp = comp;
    op->sn        = pi;
    uct_rc_txqp_add_send_op(&post->super.ep->super.txqp, op);
}

/* Ring for all requests, of which the last one, of one BB, is at @a ctrl. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_cas_bell(uct_varuna_mlx5_cas_post_t *post,
                         struct mlx5_wqe_ctrl_seg *ctrl, unsigned num_wqes,
                         int is_signaled)
{
    uct_ib_mlx5_txwq_t *wq = post->super.wq;

    ucs_memory_cpu_store_fence();
    *wq->dbrec = htonl((uint16_t)(post->pi + 1));
    uct_varuna_mlx5_reg_ring(post->super.reg, ctrl);
    uct_varuna_mlx5_posted(&post->super, ctrl, post->pi, 1, num_wqes, is_signaled);
}

/* Add the last request, at @a ctrl, and ring for all of them: @a num_wqes. */
static UCS_F_ALWAYS_INLINE void
uct_varuna_mlx5_cas_ring(uct_varuna_mlx5_cas_post_t *post,
                         struct mlx5_wqe_ctrl_seg *ctrl, const uct_varuna_mlx5_cas_t *cas,
                         unsigned num_wqes, void *result, uct_completion_t *comp)
{
    uct_varuna_mlx5_cas_set(post, ctrl, cas, 0, MLX5_WQE_CTRL_CQ_UPDATE);
    uct_varuna_mlx5_cas_bell(post, ctrl, num_wqes, 1);
    uct_varuna_mlx5_cas_expect(post, cas, post->pi, result, comp);
}

/**
 * Post a write, and then a compare and swap, with one doorbell.
 *
 * @param [in]  buffer  Data of the write, copied.
 * @param [in]  length  Bytes; small enough to be inline in the request.
 * @param [out] result  What the compare and swap has found, when @a comp is called.
 */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_write_cas(uct_ep_h tl_ep, const void *buffer, unsigned length,
                          uint64_t remote_addr, uct_rkey_t rkey,
                          const uct_varuna_mlx5_cas_t *cas, void *result,
                          uct_completion_t *comp)
{
    struct mlx5_wqe_inl_data_seg *inl;
    uct_varuna_mlx5_cas_post_t post;
    uct_ib_mlx5_txwq_t *wq;
    unsigned num_bb;
    size_t size;

    if (ucs_unlikely(!uct_varuna_mlx5_cas_init(&post, tl_ep))) {
        return UCS_ERR_UNSUPPORTED;
    }

    wq              = post.super.wq;
    inl             = uct_varuna_mlx5_set_remote(post.super.data, remote_addr, rkey);
    inl->byte_count = htonl(length | MLX5_INLINE_SEG);
    uct_ib_mlx5_inline_copy(inl + 1, buffer, length, wq);
    size            = UCS_PTR_BYTE_DIFF(post.super.data, inl + 1) + length;
    num_bb          = ucs_div_round_up(size, MLX5_SEND_WQE_BB);
    ucs_assertv(num_bb < UCT_IB_MLX5_MAX_BB, "length=%u", length);
    uct_varuna_mlx5_set_ctrl(&post.super, post.super.data, post.pi,
                             MLX5_OPCODE_RDMA_WRITE, 0, 0, size);

    post.pi        += num_bb;
    uct_varuna_mlx5_cas_ring(&post,
                             uct_varuna_mlx5_next_wqe(&post.super, post.super.data,
                                                      num_bb),
                             cas, 2, result, comp);
    return UCS_OK;
}

/** Post two compare and swaps with one doorbell. @a result is what the second one has
 *  found, when @a comp is called. */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_cas_cas(uct_ep_h tl_ep, const uct_varuna_mlx5_cas_t *first,
                        const uct_varuna_mlx5_cas_t *second, void *result,
                        uct_completion_t *comp)
{
    uct_varuna_mlx5_cas_post_t post;

    if (ucs_unlikely(!uct_varuna_mlx5_cas_init(&post, tl_ep))) {
        return UCS_ERR_UNSUPPORTED;
    }

    uct_varuna_mlx5_cas_set(&post, post.super.data, first, 1, 0);
    ++post.pi;
    uct_varuna_mlx5_cas_ring(&post,
                             uct_varuna_mlx5_next_wqe(&post.super, post.super.data, 1),
                             second, 2, result, comp);
    return UCS_OK;
}

/**
 * Post an atomic, and its log entry after it, with one doorbell.
 *
 * @param [in]  log     May be NULL: the atomic alone.
 * @param [out] result  What the atomic has found, when @a comp is called: the entry may be
 *                      under way then.
 */
static UCS_F_ALWAYS_INLINE ucs_status_t
uct_varuna_mlx5_cas_log(uct_ep_h tl_ep, const uct_varuna_mlx5_cas_t *cas,
                        const uct_varuna_mlx5_log_t *log, void *result,
                        uct_completion_t *comp)
{
    uct_varuna_mlx5_cas_post_t post;
    struct mlx5_wqe_ctrl_seg *ctrl;
    uct_rc_txqp_t *txqp;
    int is_signaled;
    uint16_t pi;

    if (ucs_unlikely(!uct_varuna_mlx5_cas_init(&post, tl_ep))) {
        return UCS_ERR_UNSUPPORTED;
    }

    if (log == NULL) {
        uct_varuna_mlx5_cas_ring(&post, post.super.data, cas, 1, result, comp);
        return UCS_OK;
    }

    uct_varuna_mlx5_cas_set(&post, post.super.data, cas, 0, MLX5_WQE_CTRL_CQ_UPDATE);
    pi                    = post.pi++;
    ctrl                  = uct_varuna_mlx5_next_wqe(&post.super, post.super.data, 1);
    txqp                  = &post.super.ep->super.txqp;
    is_signaled           = post.super.iface->super.config.tx_moderation <= 1;
    txqp->unsignaled      = 0;
    post.super.wq->sig_pi = pi;
    uct_varuna_mlx5_set_log(&post.super, ctrl, post.pi, log, is_signaled);
    uct_varuna_mlx5_cas_bell(&post, ctrl, 1, is_signaled);
    uct_varuna_mlx5_cas_expect(&post, cas, pi, result, comp);
    return UCS_OK;
}

#endif
