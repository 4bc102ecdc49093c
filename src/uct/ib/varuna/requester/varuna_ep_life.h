/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Creation and destruction of the vQP.
 */
#ifndef UCT_VARUNA_EP_LIFE_H_
#define UCT_VARUNA_EP_LIFE_H_

#include "varuna_ep.h"
#include "varuna_requester.h"

UCS_CLASS_DECLARE_NEW_FUNC(uct_varuna_ep_t, uct_ep_t, const uct_ep_params_t*);
UCS_CLASS_DECLARE_DELETE_FUNC(uct_varuna_ep_t, uct_ep_t);

/* --- Opening --- */

/* The state OPENING of a vQP. Main thread only. */

/** Take the first lane of a vQP that has a target, if there is any. */
void uct_varuna_ep_open_lane(uct_varuna_ep_t *ep, ucs_time_t now);

/** The step of this state. */
int uct_varuna_ep_step_opening(uct_varuna_ep_t *ep, ucs_time_t now);

/* --- Closing --- */

/* Repeats CLOSE for a destroyed endpoint, over one link after the other, until it is
 * answered. The link of the first CLOSE may have just failed, and without CLOSE the peer
 * would keep the target, its queue pair and its log rings. */

/**
 * Close the target of a vQP at @a peer. Any thread.
 *
 * @param [in] link   The first link to try.
 * @param [in] whose  The vQP, its instance and its opening. Opening 0: the answer to
 *                    OPEN_REQ has not come. The request may still be on its way, so
 *                    CLOSE waits for as long as a packet may take.
 */
void uct_varuna_farewell_say(uct_varuna_requester_t *requester,
                             uct_varuna_peer_t *peer, unsigned link,
                             const uct_varuna_ctl_hdr_t *whose);

/** CLOSE_REP has come. Lock held. */
void uct_varuna_farewell_answered(uct_varuna_requester_t *requester,
                                  const uct_varuna_ctl_hdr_t *hdr);

/** Start looking for what is not answered. Lock held. */
void uct_varuna_farewell_start(uct_varuna_requester_t *requester);

/** The interface is being closed: send what is not answered over all links once
 *  more, and forget it. Lock not held. */
void uct_varuna_farewells_end(uct_varuna_requester_t *requester);

#endif
