/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * An interface as a user of rc_varuna_ctl and rc_varuna.h: obeys their commands, and
 * shows them the states of its links. Main thread.
 */
#ifndef UCT_VARUNA_ADMIN_IFACE_H_
#define UCT_VARUNA_ADMIN_IFACE_H_

#include "varuna_tl_iface.h"

/** Register the interface. @a ctl_dir: directory of the socket, see varuna_admin.h. */
void uct_varuna_admin_iface_register(uct_varuna_tl_iface_t *iface,
                                     const char *ctl_dir);

void uct_varuna_admin_iface_unregister(uct_varuna_tl_iface_t *iface);

/** Obey the commands given since the last call. */
void uct_varuna_admin_iface_obey(uct_varuna_tl_iface_t *iface, ucs_time_t now);

#endif
