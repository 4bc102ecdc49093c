/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * A link of an interface whose NIC was reset gets a successor: a further link on the same port,
 * with the NIC's new number (md/varuna_return.c). The former link stays as it is, down for ever,
 * since lanes may be open there; nothing is posted on it, and it is in no address any more.
 */
#ifndef UCT_VARUNA_JOIN_H_
#define UCT_VARUNA_JOIN_H_

#include "varuna_tl_iface.h"
#include <uct/ib/varuna/ctl/varuna_ctl.h>

/** Open what is to be opened. Main thread, not inside progress of an inner interface. */
void uct_varuna_join_all(uct_varuna_tl_iface_t *iface);

/** The same, if there is anything. */
static inline void uct_varuna_join_progress(uct_varuna_tl_iface_t *iface)
{
    if (__atomic_load_n(&iface->super.super.ctl->announce.joins, __ATOMIC_ACQUIRE) != 0) {
        uct_varuna_join_all(iface);
    }
}

#endif
