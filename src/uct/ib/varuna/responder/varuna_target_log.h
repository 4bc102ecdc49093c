/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Ids of targets, and the log rings that belong to them. Lock held, unless a function
 * says otherwise.
 */
#ifndef UCT_VARUNA_TARGET_LOG_H_
#define UCT_VARUNA_TARGET_LOG_H_

#include "varuna_responder.h"

/** Main thread, before any other thread uses them: makes the first ids ready. */
ucs_status_t uct_varuna_target_logs_init(uct_varuna_responder_t *resp);

/** Main thread, no other user is left. */
void uct_varuna_target_logs_cleanup(uct_varuna_responder_t *resp);

/** Main thread, lock not held: makes an id ready, if some have been taken. */
void uct_varuna_target_logs_progress(uct_varuna_responder_t *resp);

/** Get an id whose log rings have a new registration. */
ucs_status_t uct_varuna_target_id_get(uct_varuna_responder_t *resp, uint32_t *id_p);

/** Give it back: nothing that is posted from now on is for its rings. */
void uct_varuna_target_id_put(uct_varuna_responder_t *resp, uint32_t id);

/** The rings of an id, and their registration. No lock. */
uint64_t *uct_varuna_target_log(const uct_varuna_responder_t *resp, uint32_t id);

const uct_varuna_own_t *
uct_varuna_target_log_key(const uct_varuna_responder_t *resp, uint32_t id);

/** Register the rings of an id that is in use on one more NIC, see uct_varuna_own_add(). */
ucs_status_t uct_varuna_target_log_add(uct_varuna_responder_t *resp, uint32_t id, unsigned nic,
                                       uint64_t *key_p);

#endif
