/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Connects the responder's queue pairs.
 */
#ifndef UCT_VARUNA_CONNECT_H_
#define UCT_VARUNA_CONNECT_H_

#include "varuna_responder.h"

/** Add the rows of CONNECT_REQ. */
void uct_varuna_connect_init(uct_varuna_responder_t *resp);

/** The queue pair is not its target's any more, and is destroyed later, perhaps after the
 *  target. Lock held. */
void uct_varuna_connect_forget(uct_varuna_responder_t *resp, uct_ep_h ep);

/** Error handler of the inner RC interfaces, for endpoints which are no
 *  requester's lane: main thread. The passive side waits for the requester.
 *  @return nonzero if the endpoint is a target's. */
int uct_varuna_target_ep_failed(uct_varuna_responder_t *resp, uct_ep_h inner);

#endif
