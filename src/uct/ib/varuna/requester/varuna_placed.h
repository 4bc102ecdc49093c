/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Flushes, and the reads that place what was written: see uct_varuna_ep_is_placed(). A flush
 * of an endpoint that is away ends with a read, and so does each with
 * UCT_VARUNA_COMPAT_FLUSH_REMOTE. Main thread.
 */
#ifndef UCT_VARUNA_PLACED_H_
#define UCT_VARUNA_PLACED_H_

#include "varuna_ep.h"

/** Make a read of a word of the peer's logs that nobody needs of @a req. */
void uct_varuna_req_make_read_back(uct_varuna_req_t *req);

/** Post such a read in any state that has a lane: when it is complete, all earlier writes
 *  are in memory. A queue pair executes a read after the writes before it, and its data does
 *  not pass theirs. @return UCS_OK if it is posted. */
ucs_status_t uct_varuna_ep_read_back(uct_varuna_ep_t *ep, uct_completion_t *comp);

/**
 * All that was posted on the lane before @a flush is complete or under way: if its writes have to
 * be placed, make a read of it.
 *
 * @return Whether the read is to be posted.
 */
int uct_varuna_req_pass_flush(uct_varuna_req_t *flush);

/** The same for memory of devices: post reads of all with writes that no read follows yet.
 *  @return UCS_OK if all are posted; UCS_ERR_NO_RESOURCE to be called again;
 *  UCS_ERR_EXCEEDS_LIMIT if only a fence proves anything, as there are too many devices. */
ucs_status_t uct_varuna_ep_read_devices(uct_varuna_ep_t *ep);

/**
 * The endpoint is active: begin to place what flushes with UCT_VARUNA_COMPAT_FLUSH_REMOTE, that
 * came before, wait for in memory of devices. The read that is made of them reads the host's.
 *
 * @return Nonzero to be called again.
 */
int uct_varuna_ep_place_repeated(uct_varuna_ep_t *ep);

/**
 * Complete @a comp, unless it is NULL, when all requests are complete, and placed as the flags
 * of the flush want.
 *
 * @return UCS_INPROGRESS, or UCS_ERR_NO_RESOURCE if the caller must try again.
 */
ucs_status_t uct_varuna_ep_queue_flush(uct_varuna_ep_t *ep, unsigned flags,
                                       uct_completion_t *comp);

#endif
