/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ports that get another address: a LID, or a place in their table of GIDs. A link whose
 * port has moved is down until our interfaces use the new address; then peers learn it.
 */
#ifndef UCT_VARUNA_MOVES_H_
#define UCT_VARUNA_MOVES_H_

#include "varuna_ctl.h"

/**
 * Compare the address of a link's port with the one that we use. Lock held.
 *
 * @return Nonzero if they differ, or did and the main thread has not seen to it: the
 *         link is of no use yet.
 */
int uct_varuna_moves_check(uct_varuna_ctl_t *ctl, unsigned link);

/** @return Whether a link's port is up. Lock held. */
int uct_varuna_moves_is_active(const uct_varuna_ctl_t *ctl, unsigned link);

/** A peer says how often its addresses have changed: ask for them if that is news. Lock
 *  held. */
void uct_varuna_moves_heard(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                            unsigned link, const uct_varuna_ctl_ports_t *ports);

/** Send a peer our address, in LINKS_REP; @a whose as for uct_varuna_ctl_send(). Lock
 *  held. */
void uct_varuna_moves_tell(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                           unsigned link, const uct_varuna_ctl_hdr_t *whose);

/** Our address is another one: all who send to us are told, until their requests show that
 *  they know. Lock held. */
void uct_varuna_moves_announce(uct_varuna_ctl_t *ctl);

/** Called now and then, with the lock held. */
void uct_varuna_moves_tick(uct_varuna_ctl_t *ctl, ucs_time_t now);

#endif
