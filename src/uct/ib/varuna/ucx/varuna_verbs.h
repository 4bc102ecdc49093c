/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What UCT's public interface does not provide about inner rc_verbs endpoints: their row
 * of varuna_tl.c, where the functions are described.
 */
#ifndef UCT_VARUNA_VERBS_H_
#define UCT_VARUNA_VERBS_H_

#include "varuna_mlx5.h"

int uct_varuna_verbs_is_drained(uct_ep_h ep, unsigned kind);

int uct_varuna_verbs_drain(uct_ep_h ep, unsigned kind);

int uct_varuna_verbs_get_mark(uct_ep_h ep, unsigned kind, uint16_t *mark_p);

/** Verbs cannot look at a queue without taking from it, but UCX's progress function counts
 *  errors. @return 0 */
int uct_varuna_verbs_has_completions(uct_iface_h iface);

/** The same. @return 1 */
int uct_varuna_verbs_has_input(uct_iface_h iface);

/** As uct_iface_progress(), with the messages of queue pairs that were stopped. */
unsigned uct_varuna_verbs_progress(uct_iface_h iface);

uct_varuna_tl_poll_func_t uct_varuna_verbs_poll_func(uct_iface_h iface, unsigned kind);

/** UCX's progress function does it. @return 0 */
unsigned uct_varuna_verbs_refill(uct_iface_h iface);

ucs_status_t uct_varuna_verbs_stop(uct_ep_h ep);

void uct_varuna_verbs_last_wqe(uct_ep_h ep, uct_varuna_last_wqe_t *event);

ucs_status_t uct_varuna_verbs_query_epsn(uct_ep_h ep, uint32_t *epsn_p);

ucs_status_t uct_varuna_verbs_query_sq(uct_ep_h ep, uint32_t *psn_p, uint32_t *mtu_p);

ucs_status_t uct_varuna_verbs_reset(uct_ep_h ep);

void uct_varuna_verbs_end_reset(uct_ep_h ep);

unsigned uct_varuna_verbs_am_overhead(void);

/** See uct_varuna_tl_event_arm(). */
ucs_status_t uct_varuna_verbs_event_arm(uct_iface_h iface, unsigned events);

/**
 * Report UCS_ERR_UNREACHABLE for requests that a NIC could not send (LOC_QP_OP_ERR), which
 * UCX reports as it does wrong memory keys. The kernel's soft-RoCE says so while its
 * interface is down, some time before the event of its port.
 */
ucs_status_t uct_varuna_verbs_guard(uct_iface_h iface);

ucs_status_t uct_varuna_verbs_flush(uct_ep_h ep, uct_completion_t *comp,
                                    unsigned *num_psns_p);

/** In a new child: completions that were copied are the parent's. */
void uct_varuna_verbs_fence_forked(void);

#endif
