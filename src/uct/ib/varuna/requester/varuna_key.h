/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Keys that were packed before a NIC of the peer was reset have nothing for it. The peer is asked
 * by KEY_REQ, which names the region by the token in its key. Main thread.
 *
 *   the peer's address shows the NIC --> the key of the logs --> what requests use for a while
 *                                                                      |
 *                        the link is used, but for requests without <--+
 *
 * Keys belong to the user, and others may use them at the same time, so answers are kept here.
 * To a peer with such a NIC, UCX posts all requests, or the slow path does: the gate is closed.
 */
#ifndef UCT_VARUNA_KEY_H_
#define UCT_VARUNA_KEY_H_

#include "varuna_ep.h"

void uct_varuna_keys_init(uct_varuna_requester_t *requester);

void uct_varuna_keys_cleanup(uct_varuna_requester_t *requester);

/** Now and then: ask for the key of the peer's log, if there is none for a NIC that was reset. */
void uct_varuna_ep_complete_logs(uct_varuna_ep_t *ep, ucs_time_t now);

/**
 * Before a request is posted that may be the first to use its key: find out what the key lacks.
 *
 * @return Whether it can be posted. If not, its lane is left.
 */
int uct_varuna_req_complete_key(uct_varuna_req_t *req);

/** KEY_REP has come. */
void uct_varuna_ep_handle_key_rep(uct_varuna_ep_t *ep, const uct_varuna_ctl_key_rep_t *rep);

#endif
