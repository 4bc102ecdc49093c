/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening, closing and progress of the responder. Called by the interface.
 */
#ifndef UCT_VARUNA_RESPONDER_OPEN_H_
#define UCT_VARUNA_RESPONDER_OPEN_H_

#include <uct/ib/varuna/core/varuna_def.h>

/** Open the responder and register its rows. The control plane is open and does not
 *  listen yet; lock held. */
ucs_status_t uct_varuna_responder_create(uct_varuna_iface_t *iface,
                                         uct_varuna_ctl_t *ctl,
                                         uct_varuna_responder_t **resp_p);

/** Close all targets. The control plane does not listen any more. */
void uct_varuna_responder_destroy(uct_varuna_responder_t *resp);

/** Main thread, lock not held: what the async context has left to it, and what it keeps
 *  ready for that. */
void uct_varuna_responder_progress(uct_varuna_responder_t *resp);

#endif
