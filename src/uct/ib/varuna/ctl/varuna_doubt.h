/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Limits what is sent to peers that are probably dead. Lock held in all.
 */
#ifndef UCT_VARUNA_DOUBT_H_
#define UCT_VARUNA_DOUBT_H_

#include "varuna_ctl.h"
#include "varuna_peer.h"

/** May a message be posted to @a peer on @a link now? */
int uct_varuna_doubt_may_post(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                              unsigned link);

/** May a message be posted to a stranger now? It is taken for posted. */
int uct_varuna_doubt_admit(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

/** @return Whether messages of that endpoint, to a doubtful peer, may wait. */
int uct_varuna_doubt_has_place(const uct_varuna_ctl_t *ctl,
                               const uct_varuna_ctl_ep_t *ep);

/** One was posted, or failed later, or the endpoint is about to be destroyed. */
void uct_varuna_doubt_posted(uct_varuna_ctl_t *ctl, uct_varuna_peer_t *peer,
                             unsigned link);
void uct_varuna_doubt_failed(uct_varuna_peer_t *peer, unsigned link);
void uct_varuna_doubt_forget(uct_varuna_ctl_t *ctl, uct_varuna_ctl_ep_t *ep);

#endif
