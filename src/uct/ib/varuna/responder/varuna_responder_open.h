/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Opening, closing and progress of the responder. Called by the interface.
 */
#ifndef UCT_VARUNA_RESPONDER_OPEN_H_
#define UCT_VARUNA_RESPONDER_OPEN_H_

#include <uct/ib/varuna/core/varuna_def.h>
#include "varuna_responder.h"

/** Open the responder and register its rows. The control plane is open and does not
 *  listen yet; lock held. @a amo: the mode of atomics, may be NULL. */
ucs_status_t uct_varuna_responder_create(uct_varuna_iface_t *iface,
                                         uct_varuna_ctl_t *ctl,
                                         const uct_varuna_served_ops_t *amo,
                                         uct_varuna_responder_t **resp_p);

/** Close all targets. The control plane does not listen any more. */
void uct_varuna_responder_destroy(uct_varuna_responder_t *resp);

/** Main thread, lock not held: what the async context has left to it, and what it keeps
 *  ready for that. */
void uct_varuna_responder_progress(uct_varuna_responder_t *resp);

/* --- Targets that nobody knows --- */

/* Targets whose requester may not know that it has them. */

/** Give the clock its job. */
void uct_varuna_unused_start(uct_varuna_responder_t *resp);

/* --- Orphans --- */

/* Targets whose requester died without a word, so that no CLOSE ever comes.
 * Called by varuna_responder_open.c and varuna_am.c (async context, lock held, unless a
 * function says otherwise). */

/** Give the clock its job, if ORPHAN_TIMEOUT is not zero. */
void uct_varuna_orphan_start(uct_varuna_responder_t *resp);

/** Main thread, lock not held: the target was given up. Its queue pairs go; what
 *  its requester could still use, should it live, is kept for a while. */
void uct_varuna_orphan_keep(uct_varuna_responder_t *resp, uct_varuna_target_t *target);

/** Main thread, lock not held: its requester lives, and sends messages. */
void uct_varuna_orphan_message(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target);

/** Main thread: destroy those which are kept. */
void uct_varuna_orphans_cleanup(uct_varuna_responder_t *resp);

#endif
