/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The responder's targets: opened and closed at their requester's wish.
 */
#ifndef UCT_VARUNA_TARGET_H_
#define UCT_VARUNA_TARGET_H_

#include "varuna_responder.h"

ucs_status_t uct_varuna_targets_init(uct_varuna_responder_t *resp);

/** Main thread, no other user is left. */
void uct_varuna_targets_cleanup(uct_varuna_responder_t *resp);

/** Lock held. @return The target that the message was sent to, NULL if there is none: all
 * but OPEN_REQ must find theirs by this. */
uct_varuna_target_t *uct_varuna_target_of(uct_varuna_responder_t *resp,
                                          const uct_varuna_ctl_hdr_t *hdr,
                                          khiter_t *iter_p);

void uct_varuna_target_destroy(uct_varuna_responder_t *resp,
                               uct_varuna_target_t *target);

/** Drop what was received and the queue pairs. Main thread. */
void uct_varuna_target_disconnect(uct_varuna_responder_t *resp,
                                  uct_varuna_target_t *target);

/** Take the target, which is at @a iter, out of the table of names and let the main
 * thread destroy it. Lock held. */
void uct_varuna_target_drop(uct_varuna_responder_t *resp, khiter_t iter);

/** Send OPEN_REP, as the answer to the request @a hdr. Lock held. */
void uct_varuna_target_reply_open(uct_varuna_responder_t *resp, unsigned link,
                                  const uct_varuna_ctl_hdr_t *hdr,
                                  uct_varuna_target_t *target);

/* --- Atomics that peers ask for --- */

/** Lock held. As uct_varuna_target_of(), for a request for atomics: one that was meant for an
 *  earlier target of that name is refused. */
uct_varuna_target_t *uct_varuna_target_asked(uct_varuna_responder_t *resp, unsigned link,
                                             const uct_varuna_ctl_hdr_t *hdr);

/** Lock held. Nobody asks for atomics any more. */
void uct_varuna_target_close_amo(uct_varuna_responder_t *resp, uct_varuna_target_t *target);

/** Name this process's home NIC, UCT_VARUNA_HOME_NONE if it has none. */
void uct_varuna_target_tell_home(const uct_varuna_responder_t *resp, uint8_t *nic_p,
                                 uint32_t *epoch_p);

#endif
