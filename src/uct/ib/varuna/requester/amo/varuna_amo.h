/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's driver of atomics which are executed exactly once: gives the
 * actions of the state machine (varuna_amo_sm.h) to the lane as saved requests,
 * or to the peer's home NIC by proxy. Main thread only.
 */
#ifndef UCT_VARUNA_AMO_H_
#define UCT_VARUNA_AMO_H_

#include <uct/ib/varuna/requester/varuna_ep.h>
#include <uct/ib/varuna/core/varuna_mutate.h>

/**
 * Take a new atomic: UCT's semantics, in the mode of the interface.
 *
 * @param [in] op       uct_atomic_op_t.
 * @param [in] width    Bytes of the target, 4 or 8.
 * @param [in] result   Where the old value goes, NULL if nobody wants it.
 * @param [in] comp     NULL if nobody waits for it.
 *
 * @return UCS_OK if it is taken, UCS_ERR_NO_RESOURCE to try again.
 */
ucs_status_t uct_varuna_amo_start(uct_varuna_ep_t *ep, unsigned op,
                                  unsigned width, uint64_t compare,
                                  uint64_t value, uint64_t remote_addr,
                                  uct_rkey_t rkey, void *result,
                                  uct_completion_t *comp);

/** What the peer told when the endpoint was opened. */
ucs_status_t uct_varuna_amo_open(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_open_rep_t *rep);

/** The peer has named its home NIC. */
void uct_varuna_amo_learn_home(uct_varuna_ep_t *ep, uint8_t nic,
                               uint32_t epoch);

/** Post the next actions of all atomics which have one. @return Nonzero if some
 *  wait for resources, so that the endpoint must stay in the work list. */
int uct_varuna_amo_progress(uct_varuna_ep_t *ep);

/** @return How many atomics a flush has to wait for. Rule 9: those which are
 *  decided, but not confirmed yet, as well. */
static inline unsigned uct_varuna_amo_num_to_flush(const uct_varuna_ep_t *ep)
{
    return uct_varuna_mutate(AMO_NOT_FLUSHED) ? ep->amo.undecided : ep->hot.num_amos;
}

/** Complete @a flush (a FLUSH request) behind all unfinished atomics. */
void uct_varuna_amo_add_flush(uct_varuna_ep_t *ep, uct_varuna_req_t *flush);

/** A request of an atomic is finished: take over what it gave. */
void uct_varuna_amo_collect(const uct_varuna_req_t *req);

/** The endpoint failed or is destroyed: finish all atomics with @a status. Their
 *  requests must be finished already. */
void uct_varuna_amo_fail_all(uct_varuna_ep_t *ep, ucs_status_t status);

/** Answer of the responder's proxy. */
void uct_varuna_amo_handle_proxy_rep(uct_varuna_ep_t *ep,
                                     const uct_varuna_ctl_proxy_rep_t *rep);

/** Initialize and clean up what belongs to atomics in an endpoint, interface. */
void uct_varuna_amo_ep_init(uct_varuna_ep_t *ep);
void uct_varuna_amo_ep_cleanup(uct_varuna_ep_t *ep);
ucs_status_t uct_varuna_amo_iface_init(uct_varuna_iface_t *iface);
void uct_varuna_amo_iface_cleanup(uct_varuna_iface_t *iface);

#endif
