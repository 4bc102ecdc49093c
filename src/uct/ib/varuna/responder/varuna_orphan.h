/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Targets whose requester died without a word, so that no CLOSE ever comes.
 * Called by varuna_responder_open.c and varuna_am.c (async context, lock held, unless a
 * function says otherwise).
 */
#ifndef UCT_VARUNA_ORPHAN_H_
#define UCT_VARUNA_ORPHAN_H_

#include "varuna_responder.h"

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
