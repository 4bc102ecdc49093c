/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Sends pings. A link has resources for a few messages at a time (4 DCIs), and gets them
 * back only when it is polled, so one tick of the heartbeat cannot ask all peers: those
 * that are left are due, and are asked as resources come back. Lock held in all.
 */
#ifndef UCT_VARUNA_PING_H_
#define UCT_VARUNA_PING_H_

#include "varuna_ctl.h"
#include "varuna_peer.h"

/** There are none at first. */
void uct_varuna_ping_init(uct_varuna_ctl_t *ctl);

/**
 * Ask at once or not at all. What waited in the queue of messages would measure nothing.
 * A ping that fails for another reason than resources counts as asked: no answer will
 * come.
 *
 * @return Whether the peer was asked.
 */
int uct_varuna_ping_now(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned link,
                        ucs_time_t now);

/** Ask the peer on exactly these links, as soon as there are resources, after all who are
 *  due already. It keeps its turn where it is due. */
void uct_varuna_ping_due(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer, unsigned links);

/** Send the pings that are due, as far as there are resources, but no more than a burst on
 *  each link, because the caller holds the lock. */
void uct_varuna_ping_go_on(uct_varuna_ctl_t *ctl);

#endif
