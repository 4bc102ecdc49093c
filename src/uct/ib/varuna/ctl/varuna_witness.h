/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * What all peers together show of a link: which are behind which port, which have
 * answered, and which are silent. Called by the heartbeat; the lock is held in all.
 */
#ifndef UCT_VARUNA_WITNESS_H_
#define UCT_VARUNA_WITNESS_H_

#include "varuna_ctl.h"

/** @return whether what we send to @a peer turns back inside the NIC: it is this
 *  process, or another one behind the same port. */
int uct_varuna_witness_is_inside(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link);

/** @return whether @a other is another process behind the port that @a link reaches
 *  of @a peer. */
int uct_varuna_witness_is_neighbour(const uct_varuna_ctl_t *ctl,
                                    const uct_varuna_peer_t *peer,
                                    const uct_varuna_peer_t *other, unsigned link);

/** @return whether @a peer has answered on @a link lately. */
int uct_varuna_witness_is_recent(const uct_varuna_ctl_t *ctl,
                                 const uct_varuna_peer_t *peer, unsigned link,
                                 ucs_time_t now);

/** Log whose fault it is that some paths of @a peer are silent. What is not known now
 *  is logged if it turns out in the next intervals: so this is called in each.
 *
 * @param [in] dead          Paths which were found to be dead just now.
 * @param [in] became_silent The peer has fallen silent on all paths.
 */
void uct_varuna_witness_explain(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                                unsigned dead, int became_silent,
                                ucs_time_t now);

/** @return whether a peer outside has answered on @a link lately. */
int uct_varuna_witness_anybody(uct_varuna_ctl_t *ctl, unsigned link,
                               ucs_time_t now);

/** @return Number of peers outside which were found to be dead on @a link; 0 if all of
 *  them are behind one port, whose fault it may be. */
unsigned uct_varuna_witness_count_dead(uct_varuna_ctl_t *ctl, unsigned link);

#endif
