/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Polling the completion queues of an inner interface. What UCX's progress function polls
 * and what these poll can follow each other.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_mlx5_poll.h"
#include "varuna_mlx5_ep.h"
#include <uct/ib/varuna/core/varuna_def.h>
#include "varuna_mlx5_inl.h"
#include <ucs/type/init_once.h>
#include <dlfcn.h>

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
#  define UCT_VARUNA_MLX5_POLL_FLAG_HAS_EP         UCT_IB_MLX5_POLL_FLAG_HAS_EP
#  define UCT_VARUNA_MLX5_POLL_FLAG_LINKED_LIST    UCT_IB_MLX5_POLL_FLAG_LINKED_LIST
#else
#  define UCT_VARUNA_MLX5_POLL_FLAG_HAS_EP         UCT_RC_MLX5_POLL_FLAG_HAS_EP
#  define UCT_VARUNA_MLX5_POLL_FLAG_LINKED_LIST    UCT_RC_MLX5_POLL_FLAG_LINKED_LIST
#endif

/* Whether the NIC compresses completions in such a way that their owner is elsewhere */
static UCS_F_ALWAYS_INLINE int uct_varuna_mlx5_cq_is_zip(const uct_ib_mlx5_cq_t *cq)
{
#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    return cq->zip;
#else
    return 0;
#endif
}

/* The next completion of a queue, which may be the NIC's still */
static UCS_F_ALWAYS_INLINE struct mlx5_cqe64 *
uct_varuna_mlx5_cq_next(uct_ib_mlx5_cq_t *cq, int is_zip, int *is_ready_p)
{
    struct mlx5_cqe64 *cqe = uct_ib_mlx5_get_cqe(cq, cq->cq_ci);

#if UCT_VARUNA_UCX_AT_LEAST(1, 14)
    *is_ready_p = !uct_ib_mlx5_cqe_is_hw_owned(cq, cqe, cq->cq_ci, is_zip ?
                                               UCT_IB_MLX5_POLL_FLAG_CQE_ZIP : 0);
#else
    *is_ready_p = !uct_ib_mlx5_cqe_is_hw_owned(cqe->op_own, cq->cq_ci, cq->cq_length);
#endif
    return cqe;
}

static UCS_F_ALWAYS_INLINE int uct_varuna_mlx5_cq_has_cqe(uct_ib_mlx5_cq_t *cq)
{
    int is_ready;

    uct_varuna_mlx5_cq_next(cq, uct_varuna_mlx5_cq_is_zip(cq), &is_ready);
    return is_ready;
}

int uct_varuna_mlx5_has_completions(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return uct_varuna_mlx5_cq_has_cqe(&iface->cq[UCT_IB_DIR_TX]);
}

int uct_varuna_mlx5_has_input(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return uct_varuna_mlx5_cq_has_cqe(&iface->cq[UCT_IB_DIR_RX]) ||
           uct_varuna_mlx5_cq_has_cqe(&iface->cq[UCT_IB_DIR_TX]);
}

/* A queue pair that enters ERR in the middle of a message holds a receive buffer, which
 * completes as flushed. UCX ignores that completion, so neither this buffer nor those that
 * follow it in the cycle would be posted again. */
static void uct_varuna_mlx5_release_flushed(uct_rc_mlx5_iface_common_t *iface,
                                            struct mlx5_cqe64 *cqe)
{
    const struct mlx5_err_cqe *ecqe = (const struct mlx5_err_cqe*)cqe;
    uint16_t wqe_ctr                = ntohs(ecqe->wqe_counter);

    if (((ecqe->op_own >> 4) != MLX5_CQE_RESP_ERR) ||
        (ecqe->syndrome != MLX5_CQE_SYNDROME_WR_FLUSH_ERR)) {
        return;
    }

    uct_rc_mlx5_iface_release_srq_seg(iface,
                                      uct_ib_mlx5_srq_get_wqe(&iface->rx.srq, wqe_ctr),
                                      cqe, wqe_ctr, UCS_OK, 0, NULL,
                                      (iface->config.srq_topo ==
                                       UCT_RC_MLX5_SRQ_TOPO_LIST) ?
                                      UCT_VARUNA_MLX5_POLL_FLAG_LINKED_LIST : 0);
}

/* UCX's function is asked first, and what it has taken is looked at then: it may find a
 * completion that was not there before. The NIC writes to that place again only after the
 * queue's whole length. UCX takes one; others may have been taken by users' callbacks that
 * call progress. */
unsigned uct_varuna_mlx5_progress(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface = ucs_derived_of(tl_iface,
                                                       uct_rc_mlx5_iface_common_t);
    uct_ib_mlx5_cq_t *cq              = &iface->cq[UCT_IB_DIR_RX];
    unsigned ci                       = cq->cq_ci;
    unsigned count                    = uct_iface_progress(tl_iface);

    if (UCT_RC_MLX5_TM_ENABLED(iface) || UCT_RC_MLX5_MP_ENABLED(iface)) {
        return count; /* These have buffers of other kinds */
    }

    if (ci != cq->cq_ci) {
        uct_varuna_mlx5_release_flushed(iface, uct_ib_mlx5_get_cqe(cq, ci));
    }

    return count;
}

/* Whether UCX's function would post receive buffers */
static UCS_F_ALWAYS_INLINE int
uct_varuna_mlx5_wants_buffers(const uct_rc_mlx5_iface_common_t *iface)
{
    return iface->super.rx.srq.available >= iface->super.super.config.rx_max_batch;
}

unsigned uct_varuna_mlx5_refill(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return ucs_unlikely(uct_varuna_mlx5_wants_buffers(iface)) ?
           uct_varuna_mlx5_progress(tl_iface) : 0;
}

/* UCX polls, if there is anything */
static unsigned uct_varuna_mlx5_poll_any(uct_iface_h iface)
{
    return uct_varuna_mlx5_has_input(iface) ? uct_varuna_mlx5_progress(iface) : 0;
}

/* uct_rc_ep_process_pending() of the library that has rc_mlx5. UCX loads that without
 * adding its symbols to the global scope. */
static ucs_arbiter_callback_t uct_varuna_mlx5_process_pending;

/* A message. UCX's functions handle what is an error, or compressed */
static UCS_F_NOINLINE unsigned
uct_varuna_mlx5_received(uct_rc_mlx5_iface_common_t *iface, struct mlx5_cqe64 *cqe)
{
    unsigned length, flags;
    void *hdr;

    if (ucs_unlikely(uct_ib_mlx5_cqe_is_error_or_zipped(cqe->op_own))) {
        return uct_varuna_mlx5_progress(&iface->super.super.super.super);
    }

    ++iface->cq[UCT_IB_DIR_RX].cq_ci;
    ucs_memory_cpu_load_fence();
    length = ntohl(cqe->byte_cnt);
    hdr    = uct_rc_mlx5_iface_common_data(iface, cqe, length, &flags);
    uct_rc_mlx5_iface_common_am_handler(iface, cqe, hdr, flags, length,
                                        UCT_VARUNA_MLX5_POLL_FLAG_HAS_EP);
    uct_ib_mlx5_update_db_cq_ci(&iface->cq[UCT_IB_DIR_RX]);
    return ucs_unlikely(uct_varuna_mlx5_wants_buffers(iface)) ?
           uct_varuna_mlx5_progress(&iface->super.super.super.super) + 1 : 1;
}

/* All that was posted on a queue pair up to this is complete */
static UCS_F_NOINLINE unsigned
uct_varuna_mlx5_sent(uct_rc_mlx5_iface_common_t *iface, struct mlx5_cqe64 *cqe)
{
    uct_rc_iface_t *rc = &iface->super;
    uct_varuna_mlx5_rc_ep_t *ep;
    uct_rc_txqp_t *txqp;
    unsigned qp_num;
    uint16_t hw_ci, num_bb;

    if (ucs_unlikely(uct_ib_mlx5_cqe_is_error_or_zipped(cqe->op_own))) {
        return uct_varuna_mlx5_progress(&rc->super.super.super);
    }

    ++iface->cq[UCT_IB_DIR_TX].cq_ci;
    ucs_memory_cpu_load_fence();
    hw_ci  = ntohs(cqe->wqe_counter);
    qp_num = ntohl(cqe->sop_drop_qpn) & UCS_MASK(UCT_IB_QPN_ORDER);
    ep     = ucs_derived_of(uct_rc_iface_lookup_ep(rc, qp_num),
                            uct_varuna_mlx5_rc_ep_t);
    if (ucs_unlikely(ep == NULL)) {
        /* Of a queue pair that was destroyed before it was drained. UCX has returned its
         * credits then */
        uct_ib_mlx5_update_db_cq_ci(&iface->cq[UCT_IB_DIR_TX]);
        return 1;
    }

    txqp   = &ep->super.txqp;
    uct_rc_mlx5_txqp_process_tx_cqe(txqp, cqe, hw_ci);
    ucs_arbiter_group_schedule(&rc->tx.arbiter, &ep->super.arb_group);

    num_bb = uct_ib_mlx5_txwq_update_bb(&ep->tx.wq, hw_ci) - txqp->available;
    uct_rc_txqp_available_add(txqp, num_bb);
    uct_rc_iface_update_reads(rc);
    uct_rc_iface_add_cq_credits(rc, num_bb);
    ucs_arbiter_dispatch(&rc->tx.arbiter, 1, uct_varuna_mlx5_process_pending, NULL);
    uct_ib_mlx5_update_db_cq_ci(&iface->cq[UCT_IB_DIR_TX]);
    return 1;
}

static unsigned uct_varuna_mlx5_poll_rc(uct_iface_h tl_iface)
{
    uct_rc_mlx5_iface_common_t *iface = ucs_derived_of(tl_iface,
                                                       uct_rc_mlx5_iface_common_t);
    struct mlx5_cqe64 *cqe;
    int is_ready;

    cqe = uct_varuna_mlx5_cq_next(&iface->cq[UCT_IB_DIR_RX], 0, &is_ready);
    if (is_ready) {
        return uct_varuna_mlx5_received(iface, cqe);
    }

    cqe = uct_varuna_mlx5_cq_next(&iface->cq[UCT_IB_DIR_TX], 0, &is_ready);
    if (is_ready) {
        return uct_varuna_mlx5_sent(iface, cqe);
    }

    return 0;
}

/* Find what we need of the library that has rc_mlx5 */
static int uct_varuna_mlx5_poll_init(uct_iface_h iface)
{
    static ucs_init_once_t once = UCS_INIT_ONCE_INITIALIZER;

    UCS_INIT_ONCE(&once) {
        uct_varuna_mlx5_process_pending = (ucs_arbiter_callback_t)
                uct_varuna_ib_symbol(iface, "uct_rc_ep_process_pending");
    }

    return uct_varuna_mlx5_process_pending != NULL;
}

/* Whether it is polled as by default: the receive queue is a cycle, and the NIC neither
 * matches tags nor moves the owner of completions */
static int uct_varuna_mlx5_is_plain(uct_iface_h tl_iface)
{
    const uct_rc_mlx5_iface_common_t *iface =
            ucs_derived_of(tl_iface, uct_rc_mlx5_iface_common_t);

    return !UCT_RC_MLX5_TM_ENABLED(iface) && !UCT_RC_MLX5_MP_ENABLED(iface) &&
           (iface->config.srq_topo == UCT_RC_MLX5_SRQ_TOPO_CYCLIC) &&
           !uct_varuna_mlx5_cq_is_zip(&iface->cq[UCT_IB_DIR_RX]) &&
           !uct_varuna_mlx5_cq_is_zip(&iface->cq[UCT_IB_DIR_TX]) &&
           !iface->super.config.tx_poll_always;
}

uct_varuna_tl_poll_func_t uct_varuna_mlx5_poll_func(uct_iface_h iface, unsigned kind)
{
    return ((kind == UCT_VARUNA_LANE_RC) && uct_varuna_mlx5_is_plain(iface) &&
            uct_varuna_mlx5_poll_init(iface)) ?
           uct_varuna_mlx5_poll_rc : uct_varuna_mlx5_poll_any;
}

/* --- Functions by name --- */

/* Finds functions in the library of an inner interface. */

void *uct_varuna_ib_symbol(uct_iface_h iface, const char *name)
{
    void *symbol = NULL;
    Dl_info info;
    void *lib;

    if ((dladdr((void*)iface->ops.iface_progress, &info) != 0) &&
        ((lib = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD)) != NULL)) {
        symbol = dlsym(lib, name);
        dlclose(lib); /* It stays open: the interface is of it */
    }

    return symbol;
}
