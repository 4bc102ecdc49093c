/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The interfaces of a link whose port has another address use it, and peers ask for it.
 */
#ifndef UCT_VARUNA_MOVES_APPLY_H_
#define UCT_VARUNA_MOVES_APPLY_H_

#include "varuna_ports.h"

/** Let the links of moved ports have their new address, as soon as that can be had. Main
 *  thread, lock not held. */
void uct_varuna_moves_apply_all(uct_varuna_ctl_t *ctl);

/** The same, if there are any. */
static inline void uct_varuna_moves_progress(uct_varuna_ctl_t *ctl)
{
    if (__atomic_load_n(&ctl->moves.links, __ATOMIC_ACQUIRE) != 0) {
        uct_varuna_moves_apply_all(ctl);
    }
}

/** Register the messages LINKS_REQ and LINKS_REP. */
void uct_varuna_moves_init(uct_varuna_ctl_t *ctl);

#endif
