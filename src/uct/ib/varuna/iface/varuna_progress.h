/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Progress of the interface.
 */
#ifndef UCT_VARUNA_PROGRESS_H_
#define UCT_VARUNA_PROGRESS_H_

#include "varuna_tl_iface.h"

/** As uct_iface_progress(), and enabling and disabling it. */
unsigned uct_varuna_iface_progress(uct_iface_h tl_iface);
void uct_varuna_iface_progress_enable(uct_iface_h tl_iface, unsigned flags);
void uct_varuna_iface_progress_disable(uct_iface_h tl_iface, unsigned flags);

/** Initialize the pace of slow-path work. */
void uct_varuna_iface_init_pace(uct_varuna_tl_iface_t *iface);

/** The next progress call does all of it. */
void uct_varuna_iface_pace_now(uct_varuna_tl_iface_t *iface);

#endif
