/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Rows of functions of the inner transports. See varuna_tl.h.
 */
#ifdef HAVE_CONFIG_H
#  include "config.h"
#endif

#include "varuna_tl.h"
#include "varuna_compat.h"
#include "varuna_mlx5.h"
#include "varuna_ud.h"
#include "varuna_verbs.h"

#include <ucs/debug/log.h>
#include <pthread.h>
#include <stddef.h>

/* What differs between the transports. A function that is NULL has nothing to do, or is
 * not called, for this one. */
typedef struct uct_varuna_tl {
    unsigned                   (*am_overhead)(void);
    int                        (*is_drained)(uct_ep_h ep, unsigned kind);
    int                        (*drain)(uct_ep_h ep, unsigned kind);
    int                        (*get_mark)(uct_ep_h ep, unsigned kind,
                                           uint16_t *mark_p);
    int                        (*has_completions)(uct_iface_h iface);
    int                        (*has_input)(uct_iface_h iface);
    unsigned                   (*progress)(uct_iface_h iface);
    uct_varuna_tl_poll_func_t  (*poll_func)(uct_iface_h iface, unsigned kind);
    unsigned                   (*refill)(uct_iface_h iface);
    ucs_status_t               (*flush)(uct_ep_h ep, uct_completion_t *comp,
                                        unsigned *num_psns_p);
    ucs_status_t               (*stop)(uct_ep_h ep);
    void                       (*last_wqe)(uct_ep_h ep, uct_varuna_last_wqe_t *event);
    ucs_status_t               (*query_epsn)(uct_ep_h ep, uint32_t *epsn_p);
    ucs_status_t               (*query_sq)(uct_ep_h ep, uint32_t *psn_p,
                                           uint32_t *mtu_p);
    ucs_status_t               (*reset)(uct_ep_h ep);
    void                       (*end_reset)(uct_ep_h ep);
    ucs_status_t               (*guard)(uct_iface_h iface);
    ucs_status_t               (*allocate_tx)(uct_iface_h iface);
    int                        (*has_rx)(uct_iface_h iface);
    ucs_status_t               (*event_arm)(uct_iface_h iface, unsigned events);
    int                        arm_is_blind; /* Of a NIC of unknown make */
    ucs_status_t               (*order_request)(uct_md_h md, const char *dev_name,
                                                unsigned kind,
                                                uct_iface_config_t *config,
                                                uct_varuna_sl_move_t *move);
    uct_varuna_order_t         (*order)(uct_iface_h iface, uint8_t *sl_p,
                                        uint16_t *mask_p);
    uct_varuna_order_t         (*order_of_ep)(uct_ep_h ep);
    uct_varuna_order_t         (*order_of_iface)(uct_iface_h iface);
} uct_varuna_tl_t;

/* What rc_mlx5 and dc_mlx5 have in common */
#define UCT_VARUNA_TL_MLX5 \
    .am_overhead     = uct_varuna_mlx5_am_overhead, \
    .is_drained      = uct_varuna_mlx5_is_drained, \
    .drain           = uct_varuna_mlx5_drain, \
    .get_mark        = uct_varuna_mlx5_get_mark, \
    .has_completions = uct_varuna_mlx5_has_completions, \
    .has_input       = uct_varuna_mlx5_has_input, \
    .poll_func       = uct_varuna_mlx5_poll_func, \
    .refill          = uct_varuna_mlx5_refill, \
    .stop            = uct_varuna_compat_ep_invalidate, \
    .allocate_tx     = uct_varuna_mlx5_allocate_tx, \
    .has_rx          = uct_varuna_mlx5_has_rx, \
    .event_arm       = uct_varuna_mlx5_event_arm, \
    .order_request   = uct_varuna_mlx5_order_request, \
    .order           = uct_varuna_mlx5_order

static const uct_varuna_tl_t uct_varuna_tls[] = {
    [UCT_VARUNA_LANE_RC] = {
        UCT_VARUNA_TL_MLX5,
        .progress        = uct_varuna_mlx5_progress,
        .last_wqe        = uct_varuna_mlx5_ep_last_wqe,
        .query_epsn      = uct_varuna_mlx5_ep_query_epsn,
        .query_sq        = uct_varuna_mlx5_ep_query_sq,
        .reset           = uct_varuna_mlx5_ep_reset,
        .end_reset       = uct_varuna_mlx5_ep_end_reset,
        .guard           = uct_varuna_mlx5_guard_rc,
        .order_of_ep     = uct_varuna_mlx5_order_of_rc
    },
    [UCT_VARUNA_LANE_DC] = {
        UCT_VARUNA_TL_MLX5,
        .guard           = uct_varuna_mlx5_prepare_dc,
        .order_of_iface  = uct_varuna_mlx5_order_of_dct
    },
    [UCT_VARUNA_LANE_VERBS] = {
        .am_overhead     = uct_varuna_verbs_am_overhead,
        .is_drained      = uct_varuna_verbs_is_drained,
        .drain           = uct_varuna_verbs_drain,
        .get_mark        = uct_varuna_verbs_get_mark,
        .has_completions = uct_varuna_verbs_has_completions,
        .has_input       = uct_varuna_verbs_has_input,
        .progress        = uct_varuna_verbs_progress,
        .poll_func       = uct_varuna_verbs_poll_func,
        .refill          = uct_varuna_verbs_refill,
        .allocate_tx     = uct_varuna_mlx5_allocate_tx,
        .has_rx          = uct_varuna_mlx5_has_rx,
        .flush           = uct_varuna_verbs_flush,
        .stop            = uct_varuna_verbs_stop,
        .last_wqe        = uct_varuna_verbs_last_wqe,
        .query_epsn      = uct_varuna_verbs_query_epsn,
        .query_sq        = uct_varuna_verbs_query_sq,
        .reset           = uct_varuna_verbs_reset,
        .end_reset       = uct_varuna_verbs_end_reset,
        .guard           = uct_varuna_verbs_guard,
        .event_arm       = uct_varuna_verbs_event_arm,
        .arm_is_blind    = 1
    },
    [UCT_VARUNA_LANE_UD] = {
        .is_drained      = uct_varuna_ud_is_drained,
        .has_input       = uct_varuna_ud_has_input
    }
};

int uct_varuna_tl_is_drained(uct_ep_h ep, unsigned kind)
{
    return uct_varuna_tls[kind].is_drained(ep, kind);
}

int uct_varuna_tl_get_mark(uct_ep_h ep, unsigned kind, uint16_t *mark_p)
{
    return uct_varuna_tls[kind].get_mark(ep, kind, mark_p);
}

int uct_varuna_tl_has_completions(uct_iface_h iface, unsigned kind)
{
    return uct_varuna_tls[kind].has_completions(iface);
}

int uct_varuna_tl_has_input(uct_iface_h iface, unsigned kind)
{
    return uct_varuna_tls[kind].has_input(iface);
}

unsigned uct_varuna_tl_progress(uct_iface_h iface, unsigned kind)
{
    return (uct_varuna_tls[kind].progress == NULL) ? uct_iface_progress(iface) :
           uct_varuna_tls[kind].progress(iface);
}

uct_varuna_tl_poll_func_t uct_varuna_tl_poll_func(uct_iface_h iface, unsigned kind)
{
    return uct_varuna_tls[kind].poll_func(iface, kind);
}

unsigned uct_varuna_tl_refill(uct_iface_h iface, unsigned kind)
{
    return uct_varuna_tls[kind].refill(iface);
}

ucs_status_t uct_varuna_tl_flush(uct_ep_h ep, unsigned kind, uct_completion_t *comp,
                                 unsigned *num_psns_p)
{
    *num_psns_p = 0;
    return (uct_varuna_tls[kind].flush == NULL) ? uct_ep_flush(ep, 0, comp) :
           uct_varuna_tls[kind].flush(ep, comp, num_psns_p);
}

/* --- Messages of UCX about NICs that are dead --- */

/* More are not found: UCX's messages about them are shown */
#define UCT_VARUNA_TL_MAX_DEAD       32

/* Memory domains of NICs that are dead, NULL: a free place. Atomic */
static uct_md_h uct_varuna_tl_dead[UCT_VARUNA_TL_MAX_DEAD];

/* What UCX logs in this thread is no news */
static __thread int uct_varuna_tl_is_quiet;

static ucs_log_func_rc_t
uct_varuna_tl_log(const char *file, unsigned line, const char *function, ucs_log_level_t level,
                  const ucs_log_component_config_t *comp_conf, const char *message, va_list ap)
{
    return (uct_varuna_tl_is_quiet && (level > UCS_LOG_LEVEL_FATAL) &&
            !ucs_log_is_enabled(UCS_LOG_LEVEL_DEBUG)) ? UCS_LOG_FUNC_RC_STOP :
                                                        UCS_LOG_FUNC_RC_CONTINUE;
}

static void uct_varuna_tl_push_log(void)
{
    ucs_log_push_handler(uct_varuna_tl_log);
}

void uct_varuna_tl_note_dead(uct_md_h md, int is_dead)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uct_md_h former            = is_dead ? NULL : md;
    unsigned i;

    if (is_dead) {
        pthread_once(&once, uct_varuna_tl_push_log);
    }

    for (i = 0; i < UCT_VARUNA_TL_MAX_DEAD; ++i) {
        uct_md_h place = former;

        if (__atomic_compare_exchange_n(&uct_varuna_tl_dead[i], &place, is_dead ? md : NULL, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
            return;
        }
    }
}

/* @return Whether the NIC of an endpoint is dead, as far as is known. */
static int uct_varuna_tl_is_dead(uct_ep_h ep)
{
    uct_md_h md = ucs_derived_of(ep->iface, uct_base_iface_t)->md;
    unsigned i;

    for (i = 0; i < UCT_VARUNA_TL_MAX_DEAD; ++i) {
        if (__atomic_load_n(&uct_varuna_tl_dead[i], __ATOMIC_RELAXED) == md) {
            return 1;
        }
    }

    return 0;
}

ucs_status_t uct_varuna_tl_stop(uct_ep_h ep, unsigned kind)
{
    ucs_status_t status = UCS_OK;

    if (uct_varuna_tls[kind].stop != NULL) {
        uct_varuna_tl_is_quiet = uct_varuna_tl_is_dead(ep);
        status                 = uct_varuna_tls[kind].stop(ep);
        uct_varuna_tl_is_quiet = 0;
    }

    return status;
}

int uct_varuna_tl_drain(uct_ep_h ep, unsigned kind)
{
    int is_drained;

    uct_varuna_tl_is_quiet = uct_varuna_tl_is_dead(ep);
    is_drained             = uct_varuna_tls[kind].drain(ep, kind);
    uct_varuna_tl_is_quiet = 0;
    return is_drained;
}

void uct_varuna_tl_destroy(uct_ep_h ep)
{
    uct_varuna_tl_is_quiet = uct_varuna_tl_is_dead(ep);
    uct_ep_destroy(ep);
    uct_varuna_tl_is_quiet = 0;
}

ucs_status_t uct_varuna_tl_wait_last_wqe(uct_ep_h ep, unsigned kind,
                                         ucs_time_t deadline)
{
    uct_varuna_last_wqe_t event;

    uct_varuna_tls[kind].last_wqe(ep, &event);
    return uct_varuna_last_wqe_wait(&event, deadline);
}

ucs_status_t uct_varuna_tl_query_epsn(uct_ep_h ep, unsigned kind, uint32_t *epsn_p)
{
    return uct_varuna_tls[kind].query_epsn(ep, epsn_p);
}

ucs_status_t uct_varuna_tl_query_sq(uct_ep_h ep, unsigned kind, uint32_t *psn_p,
                                    uint32_t *mtu_p)
{
    return uct_varuna_tls[kind].query_sq(ep, psn_p, mtu_p);
}

ucs_status_t uct_varuna_tl_reset(uct_ep_h ep, unsigned kind)
{
    return uct_varuna_tls[kind].reset(ep);
}

/* Since 1.14, UCX takes the end of a device for the event of each of its queue pairs, and there may
 * be two such ends: a failure of the device, and its removal */
void uct_varuna_tl_destroy_lane(uct_ep_h ep, unsigned kind)
{
    int may_come_twice = (uct_varuna_tls[kind].last_wqe != NULL) && uct_varuna_tl_is_dead(ep);
    uct_varuna_last_wqe_t event;

    if (may_come_twice) {
        uct_varuna_tls[kind].last_wqe(ep, &event);
    }

    uct_varuna_tl_destroy(ep);
    if (may_come_twice) {
        uct_varuna_last_wqe_ignore(&event);
    }
}

void uct_varuna_tl_destroy_reset(uct_ep_h ep, unsigned kind)
{
    uct_varuna_last_wqe_t event;
    int may_come_twice;

    uct_varuna_tls[kind].last_wqe(ep, &event);
    may_come_twice = (uct_varuna_last_wqe_wait(&event, 0) != UCS_OK);
    uct_varuna_tls[kind].end_reset(ep);
    uct_varuna_tl_stop(ep, kind);
    uct_varuna_tl_destroy_lane(ep, kind);
    if (may_come_twice) {
        uct_varuna_last_wqe_ignore(&event);
    }
}

unsigned uct_varuna_tl_am_overhead(unsigned kind)
{
    return uct_varuna_tls[kind].am_overhead();
}

ucs_status_t uct_varuna_tl_guard(uct_iface_h iface, unsigned kind)
{
    return (uct_varuna_tls[kind].guard == NULL) ? UCS_OK :
           uct_varuna_tls[kind].guard(iface);
}

ucs_status_t uct_varuna_tl_allocate_tx(uct_iface_h iface, unsigned kind)
{
    return (uct_varuna_tls[kind].allocate_tx == NULL) ? UCS_OK :
           uct_varuna_tls[kind].allocate_tx(iface);
}

int uct_varuna_tl_has_rx(uct_iface_h iface, unsigned kind)
{
    return (uct_varuna_tls[kind].has_rx == NULL) || uct_varuna_tls[kind].has_rx(iface);
}

ucs_status_t uct_varuna_tl_event_arm(uct_iface_h iface, unsigned kind, unsigned events)
{
    return uct_varuna_tls[kind].event_arm(iface, events);
}

int uct_varuna_tl_arm_is_blind(unsigned kind)
{
    return uct_varuna_tls[kind].arm_is_blind;
}

ucs_status_t uct_varuna_tl_order_request(uct_md_h md, const char *dev_name,
                                         unsigned kind, uct_iface_config_t *config,
                                         uct_varuna_sl_move_t *move)
{
    move->is_done = 0;
    return (uct_varuna_tls[kind].order_request == NULL) ? UCS_OK :
           uct_varuna_tls[kind].order_request(md, dev_name, kind, config, move);
}

ucs_status_t uct_varuna_tl_reach_all(unsigned kind, uct_iface_config_t *config)
{
    return uct_varuna_compat_config_reachable(config, (kind == UCT_VARUNA_LANE_DC) ?
                                                      "DC" : "RC");
}

uct_varuna_order_t uct_varuna_tl_order(uct_iface_h iface, unsigned kind, uint8_t *sl_p,
                                       uint16_t *mask_p)
{
    if (uct_varuna_tls[kind].order == NULL) {
        *sl_p   = 0;
        *mask_p = 0;
        return UCT_VARUNA_ORDER_UNKNOWN;
    }

    return uct_varuna_tls[kind].order(iface, sl_p, mask_p);
}

uct_varuna_order_t uct_varuna_tl_order_of_qp(uct_iface_h iface, uct_ep_h ep, unsigned kind)
{
    const uct_varuna_tl_t *tl = &uct_varuna_tls[kind];

    if (tl->order_of_iface != NULL) {
        return tl->order_of_iface(iface);
    }

    return ((tl->order_of_ep == NULL) || (ep == NULL)) ? UCT_VARUNA_ORDER_UNKNOWN :
           tl->order_of_ep(ep);
}
