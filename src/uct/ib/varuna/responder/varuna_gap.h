/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Gaps in the sequence of active messages which will never be filled. Main thread
 * only.
 */
#ifndef UCT_VARUNA_GAP_H_
#define UCT_VARUNA_GAP_H_

#include "varuna_responder.h"

/**
 * Messages up to @a end, without it, were acknowledged, or are known to have come:
 * watch until they have been delivered, or until it is sure that they never will.
 * Then the target is broken: the requester is notified, and its endpoint fails.
 */
void uct_varuna_gap_watch(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, uint32_t end);

/** Look at what is watched. */
void uct_varuna_gap_progress(uct_varuna_responder_t *resp);

/** @return Whether something is watched. */
int uct_varuna_gap_is_watching(uct_varuna_responder_t *resp);

/** Break the target at once. */
void uct_varuna_gap_break(uct_varuna_responder_t *resp,
                          uct_varuna_target_t *target, const char *reason);

/** Report to the requester that its endpoint has failed, if a report is due: over one
 *  link after the other, a limited number of times. */
void uct_varuna_gap_tell(uct_varuna_responder_t *resp,
                         uct_varuna_target_t *target, ucs_time_t now);

/** The target is being destroyed. */
void uct_varuna_gap_forget(uct_varuna_target_t *target);

#endif
