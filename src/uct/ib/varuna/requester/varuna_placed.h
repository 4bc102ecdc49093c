/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Whether completed writes are in the peer's memory. An acknowledgement only says that the
 * peer's NIC has them: the NIC keeps their order to what comes later to itself, and not to
 * what the peer's other NICs and CPUs do. Atomics find all that came before to one NIC of the
 * peer, its home (docs/ATOMICS.md). So a flush of writes to another NIC ends with a read.
 * Main thread.
 */
#ifndef UCT_VARUNA_PLACED_H_
#define UCT_VARUNA_PLACED_H_

#include "varuna_ep.h"

/** @return Whether an atomic of any process that is executed from now on finds the writes
 *  that are complete. */
static inline int uct_varuna_ep_is_placed(const uct_varuna_ep_t *ep)
{
    return (ep->hot.far_nic == ep->amo.home_nic) ||
           (ep->num_writes == ep->num_settled) ||
           !uct_varuna_ep_requester(ep)->amo->has_home ||
           (ep->hot.state == UCT_VARUNA_EP_FAILED);
}

/** Make a read of a word of the peer's logs that nobody needs of @a req. */
void uct_varuna_req_make_read_back(uct_varuna_req_t *req);

/** Post such a read in any state that has a lane: when it is complete, all earlier writes
 *  are in memory. A queue pair executes a read after the writes before it, and its data does
 *  not pass theirs. @return UCS_OK if it is posted. */
ucs_status_t uct_varuna_ep_read_back(uct_varuna_ep_t *ep, uct_completion_t *comp);

/**
 * Complete @a comp, unless it is NULL, when all requests are complete, and placed.
 *
 * @return UCS_INPROGRESS, or UCS_ERR_NO_RESOURCE if the caller must try again.
 */
ucs_status_t uct_varuna_ep_queue_flush(uct_varuna_ep_t *ep, uct_completion_t *comp);

#endif
