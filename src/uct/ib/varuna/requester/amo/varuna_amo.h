/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's driver of atomics that are executed exactly once: posts the actions
 * of the state machine (varuna_amo_sm.h) on the lane as saved requests, or sends them
 * to the peer's home NIC as requests. Main thread only.
 */
#ifndef UCT_VARUNA_AMO_H_
#define UCT_VARUNA_AMO_H_

#include <uct/ib/varuna/requester/varuna_ep.h>

/**
 * Take a new atomic.
 *
 * @param [in] num_slots  Slots of the arena whose UIDs the target may hold, 0: none.
 *
 * @return As UCT's operations do; UCS_ERR_NO_RESOURCE to try again.
 */
ucs_status_t uct_varuna_amo_start(uct_varuna_ep_t *ep,
                                  const uct_varuna_amo_args_t *args,
                                  uint32_t num_slots);

/** The peer has reported its home NIC. */
void uct_varuna_amo_learn_home(uct_varuna_ep_t *ep, uint8_t nic,
                               uint32_t epoch);

/** Post the next actions of all atomics which have one. @return Nonzero if some
 *  wait for resources, so that the endpoint must stay in the work list. */
int uct_varuna_amo_progress(uct_varuna_ep_t *ep);

/** A request of an atomic is finished: take its result. */
void uct_varuna_amo_collect(const uct_varuna_req_t *req);

/** The endpoint failed or is destroyed: finish all atomics with @a status. Their
 *  requests must be finished already. */
void uct_varuna_amo_fail_all(uct_varuna_ep_t *ep, ucs_status_t status);

/** Mode proxy: results of atomics that the responder's CPU has executed. */
void uct_varuna_amo_handle_results(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_atomic_rep_t *rep);

/** Mode extended: answer of the peer's home NIC. */
void uct_varuna_amo_handle_home_rep(uct_varuna_ep_t *ep,
                                    const uct_varuna_ctl_home_rep_t *rep);

/** @return Bytes of an atomic, for the requester's pool. */
size_t uct_varuna_amo_size(void);

#endif
