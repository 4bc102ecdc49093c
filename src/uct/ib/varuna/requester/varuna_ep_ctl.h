/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's side of the control plane: requests that are sent until they are
 * answered, and the answers. Main thread only.
 */
#ifndef UCT_VARUNA_EP_CTL_H_
#define UCT_VARUNA_EP_CTL_H_

#include "varuna_ep_event.h"

/* OPEN_REP and REJECT. The lengths were checked, the contents are the peer's. */
void uct_varuna_ep_handle_open_rep(uct_varuna_ep_t *ep,
                                   const uct_varuna_ctl_hdr_t *hdr,
                                   const uct_varuna_ctl_open_rep_t *rep);
void uct_varuna_ep_handle_reject(uct_varuna_ep_t *ep,
                                 const uct_varuna_ctl_reject_t *rej);

/**
 * Send a control message about this endpoint to its peer on @a link, once.
 *
 * @param [in] epoch  As varuna_wire.h says for that type.
 */
ucs_status_t uct_varuna_ep_ctl_send(uct_varuna_ep_t *ep, unsigned link,
                                    uct_varuna_ctl_type_t type, uint32_t epoch,
                                    const void *body, size_t length);

/** @return The links for a control request: all that reach the peer and whose port is up. What
 *  cannot leave would only keep the control plane busy. */
unsigned uct_varuna_ep_ctl_links(const uct_varuna_ep_t *ep);

/* Send a request now if none was sent lately. */
void uct_varuna_ep_ctl_request(uct_varuna_ep_t *ep, ucs_time_t now,
                               uct_varuna_ctl_type_t type, uint32_t epoch,
                               const void *body, size_t length);

/* It is answered, or the answer is not needed any more. */
void uct_varuna_ep_ctl_ended(uct_varuna_ep_t *ep);

/* Fail the endpoint if its peer is gone, or has not answered for too long. */
void uct_varuna_ep_check_give_up(uct_varuna_ep_t *ep, ucs_time_t now);

#endif
