/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Posting atomics on rc_mlx5 endpoints: two work requests with one doorbell, and one
 * completion, which brings the value that one of them found. As for the functions of
 * varuna_mlx5_post.inl, UCS_ERR_UNSUPPORTED means that nothing was posted, and that UCX must
 * do it.
 *
 * A NIC may put the data of a request into its completion, so only the request that has one
 * can give its value.
 */
#ifndef UCT_VARUNA_MLX5_CAS_INL_
#define UCT_VARUNA_MLX5_CAS_INL_

#include "varuna_mlx5_post.inl"

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
