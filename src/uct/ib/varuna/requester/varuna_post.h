/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Posts a saved request on the active lane, with its log entry. The same code posts a
 * request for the first time and repeats it. Main thread.
 */
#ifndef UCT_VARUNA_POST_H_
#define UCT_VARUNA_POST_H_

#include "varuna_ep.h"

/**
 * Post a saved request on the active lane, and then its log write.
 *
 * @param [in] signal  Ask for a completion even if the user wants none.
 *
 * @return UCS_OK if it is posted (its log write may still be owed, see
 *         uct_varuna_ep_post_owed_log()), UCS_ERR_NO_RESOURCE if nothing was
 *         posted, or the inner lane's error.
 */
ucs_status_t uct_varuna_req_post(uct_varuna_req_t *req, int signal);

/**
 * Post a read of ours that is not one of the endpoint's requests: its completion
 * finishes none of them, and what was posted silently stays so.
 *
 * @param [in] req  Its own completion is ready.
 *
 * @return As UCT's operations do.
 */
ucs_status_t uct_varuna_req_post_apart(uct_varuna_req_t *req);

/** Write a word that nobody reads: an error shows that the lane is dead. */
ucs_status_t uct_varuna_ep_post_probe(uct_varuna_ep_t *ep);

/** Post the newest log write which had no resources. @return nonzero if posted
 *  or no longer needed. */
int uct_varuna_ep_post_owed_log(uct_varuna_ep_t *ep);

#endif
