/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Pending requests of the user. Main thread.
 */
#ifndef UCT_VARUNA_PENDING_H_
#define UCT_VARUNA_PENDING_H_

#include "varuna_ep.h"

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

#endif
