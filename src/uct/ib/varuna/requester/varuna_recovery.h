/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Moves a vQP from lane to lane: failure recovery in epochs, background
 * (re)connection of RC, planned swaps. Main thread only.
 */
#ifndef UCT_VARUNA_RECOVERY_H_
#define UCT_VARUNA_RECOVERY_H_

#include "varuna_lane.h"

/**
 * The active lane failed, or is to be left at once. Idempotent per incarnation:
 * an error of an older one never starts a new epoch. Callable from inner
 * call-backs; the work is done by uct_varuna_ep_step().
 */
void uct_varuna_recovery_start(uct_varuna_ep_t *ep, const char *reason);

/** Run the endpoint's state machine. @return nonzero if it has more to do and
 *  must stay in the work list. */
int uct_varuna_ep_step(uct_varuna_ep_t *ep, ucs_time_t now);

/** Enter a state. */
void uct_varuna_ep_set_state(uct_varuna_ep_t *ep, uct_varuna_ep_state_t state);

/** Put the endpoint in the interface's work list. */
void uct_varuna_ep_add_work(uct_varuna_ep_t *ep);

/** An inner endpoint of ours reported an error. */
void uct_varuna_ep_lane_error(uct_varuna_ep_t *ep, uct_ep_h inner,
                              ucs_status_t status);

/**
 * Send a control message about this endpoint to its peer on @a link, once.
 *
 * @param [in] epoch  As varuna_wire.h says for that type.
 */
ucs_status_t uct_varuna_ep_ctl_send(uct_varuna_ep_t *ep, unsigned link,
                                    uct_varuna_ctl_type_t type, uint32_t epoch,
                                    const void *body, size_t length);

/** Give the endpoint up. Its requests are completed with @a status when its
 *  lane is drained, then the user's error handler is called (not for UCS_OK,
 *  which is flush(CANCEL)). */
void uct_varuna_ep_fail(uct_varuna_ep_t *ep, ucs_status_t status);

#endif
