/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which remote ports UCX may be given. Lock held.
 */
#ifndef UCT_VARUNA_REACH_H_
#define UCT_VARUNA_REACH_H_

#include <uct/ib/varuna/core/varuna_def.h>

/**
 * May UCX be given the device address of a remote port that a message named? Each costs
 * an address handle, which UCX keeps until the end.
 *
 * @param [in] is_guest  The sender of the message knows our address.
 */
int uct_varuna_reach_allow(uct_varuna_ctl_t *ctl, unsigned link,
                                  const void *device_addr, size_t length,
                                  int is_guest);

#endif
