/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Links over which an endpoint cannot reach memory, because a NIC of ours or of the peer has
 * registered it not: it hung, or was short of regions. Nobody looks at that when a request is
 * posted. The NIC refuses it, and others carry the traffic.
 */
#ifndef UCT_VARUNA_KEYLESS_H_
#define UCT_VARUNA_KEYLESS_H_

#include "varuna_ep.h"

/** @return Links that are not to be used: there is no key for the peer's log, or a request was
 *  refused lately. */
unsigned uct_varuna_ep_keyless_links(const uct_varuna_ep_t *ep);

/** A request on the active lane was refused. @return Whether that is due to a region that a
 *  NIC lacks. Then the lane's link is avoided for a while, longer after each time. */
int uct_varuna_ep_note_keyless(uct_varuna_ep_t *ep);

#endif
