/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Spare queue pairs, and those that the main thread is to destroy.
 */
#ifndef UCT_VARUNA_SPARE_H_
#define UCT_VARUNA_SPARE_H_

#include "varuna_responder.h"

/** Main thread, before any other thread uses them: makes all spare endpoints that can be had. */
ucs_status_t uct_varuna_spares_init(uct_varuna_responder_t *resp);

/** Main thread: one more link, before it is there. It may be called again. */
ucs_status_t uct_varuna_spares_add_link(uct_varuna_responder_t *resp, unsigned link);

/** Main thread: destroys all of them. */
void uct_varuna_spares_cleanup(uct_varuna_responder_t *resp);

/** Main thread, lock not held: makes spare endpoints until there are @a wanted. @return
 *  UCS_ERR_NO_RESOURCE if the NIC had none and is not to be asked now. */
ucs_status_t uct_varuna_spares_make(uct_varuna_responder_t *resp, unsigned link,
                                    unsigned wanted);

/** Main thread, lock not held: makes what has been taken, one for each link in a
 * call, and destroys what was dropped. */
void uct_varuna_spares_progress(uct_varuna_responder_t *resp);

/** @return an endpoint, NULL if there is none. Lock held. */
uct_ep_h uct_varuna_spare_take(uct_varuna_responder_t *resp, unsigned link);

/** Destroy a queue pair whose incarnation is over, as soon as UCX can. Main thread, lock
 *  not held.
 *
 * @param [in] is_reset  It is in RESET.
 */
void uct_varuna_spare_end(uct_varuna_responder_t *resp, uct_ep_h ep, int is_reset);

/** Make the main thread do that. Lock held. */
void uct_varuna_spare_drop(uct_varuna_responder_t *resp, uct_ep_h ep, int is_reset);

#endif
