/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The sink for events of links: a detector reports here that a link or a path has
 * failed, or works again. The background scan of the endpoints (varuna_scan.c) and
 * their next posts notice it; nothing here looks at an endpoint.
 */
#ifndef UCT_VARUNA_LINK_EVENT_H_
#define UCT_VARUNA_LINK_EVENT_H_

#include "varuna_lanes.h"

/**
 * A detector reports that a link has failed. Every endpoint on it recovers. The cost
 * does not depend on the number of endpoints. Main thread.
 *
 * @param [in] link    Local link index.
 * @param [in] cause   UCT_VARUNA_LINK_CAUSE_xx: the detector.
 * @param [in] reason  For the log; it is kept.
 */
void uct_varuna_link_down(uct_varuna_iface_t *iface, unsigned link, unsigned cause,
                          const char *reason);

/** The detector @a cause no longer reports a failure of this link. Main thread. */
void uct_varuna_link_up(uct_varuna_iface_t *iface, unsigned link, unsigned cause);

/** A link or path has failed: endpoints that do not post must notice it soon. */
static inline void uct_varuna_link_raise(uct_varuna_iface_t *iface)
{
    ++iface->failures;
    ++iface->beat;
}

#endif
