/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Answers that arrive late, or come from a process that took the place of the one that
 * was asked. Main thread, lock not held.
 */
#ifndef UCT_VARUNA_STALE_H_
#define UCT_VARUNA_STALE_H_

#include <uct/ib/varuna/core/varuna_wire.h>

/** @return Whether a message says that a peer which we have asked does not exist any
 *  more. */
int uct_varuna_stale_is_gone(const uct_varuna_ctl_hdr_t *hdr, const void *body);

/** Fail all endpoints to that peer. */
void uct_varuna_stale_fail_eps(uct_varuna_iface_t *iface,
                               const uct_varuna_ctl_reject_t *rej);

/** OPEN_REP has come. If no endpoint wants what it opened, the request was late, and
 *  its endpoint is closed: close the target as well, or it would stay open. */
void uct_varuna_stale_close_opening(uct_varuna_ctl_t *ctl, unsigned link,
                                    const uct_varuna_ctl_hdr_t *hdr,
                                    const uct_varuna_ctl_open_rep_t *rep);

#endif
