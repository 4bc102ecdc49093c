/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Tells the user, at the default log level, which peers have no link, which endpoints fail
 * therefore, and why as far as is known. The same reason for many peers is one line. Main
 * thread only.
 */
#ifndef UCT_VARUNA_OUTAGE_H_
#define UCT_VARUNA_OUTAGE_H_

#include "varuna_ep.h"

/** The endpoint waits for its peer. If that has no link for a second, the user is told, once
 *  for each outage. */
void uct_varuna_outage_check(uct_varuna_ep_t *ep);

/** The endpoint fails because it got no answer for the time @a age. */
void uct_varuna_outage_give_up(uct_varuna_ep_t *ep, ucs_time_t age);

/** Write the lines that are due; to be called before users are told of failed endpoints. */
void uct_varuna_outage_write(uct_varuna_requester_t *requester);

/** Write all that is left. */
void uct_varuna_outage_cleanup(uct_varuna_requester_t *requester);

#endif
