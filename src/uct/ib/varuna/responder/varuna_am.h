/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Receive side of active messages: exactly once, in order, over several lanes.
 */
#ifndef UCT_VARUNA_AM_H_
#define UCT_VARUNA_AM_H_

#include <uct/ib/varuna/lanes/varuna_lanes.h>

/** Nothing was received so far. */
void uct_varuna_am_init(uct_varuna_responder_t *resp);

/** AM handler of every inner data interface; @a arg is its lane_iface. */
ucs_status_t uct_varuna_am_handler(void *arg, void *data, size_t length,
                                   unsigned flags);

#endif
