/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The requester's rows of the bus.
 */
#ifndef UCT_VARUNA_ANSWERS_H_
#define UCT_VARUNA_ANSWERS_H_

#include <uct/ib/varuna/core/varuna_wire.h>

/** Register them. The control plane is open. */
void uct_varuna_answers_init(uct_varuna_iface_t *iface);

/** @return The endpoint that an answer is for, NULL if it is closed, or opened again.
 *  Not for the answer to OPEN_REQ. */
uct_varuna_ep_t *uct_varuna_answer_opened_ep(uct_varuna_iface_t *iface,
                                             const uct_varuna_ctl_hdr_t *hdr);

#endif
