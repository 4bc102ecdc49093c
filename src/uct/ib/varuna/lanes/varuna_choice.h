/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Which links an interface uses, and in which order.
 */
#ifndef UCT_VARUNA_CHOICE_H_
#define UCT_VARUNA_CHOICE_H_

#include "varuna_lanes.h"

/**
 * Choose the links: the device that was asked for is the primary, and the nearest others
 * follow, unless a file gives an order. Those that are not used now are in
 * iface->further.
 *
 * @return UCS_ERR_NO_DEVICE, which is logged, if no link has that name.
 */
ucs_status_t uct_varuna_lanes_order(uct_varuna_iface_t *iface,
                                    const char *dev_name);

/** Leave out the links on which an interface of this process could not be opened lately, as
 *  long as there are others. */
void uct_varuna_choice_skip(uct_varuna_iface_t *iface);

/**
 * Something could not be opened on link iface->opening.failed: leave it out. Everything is
 * closed.
 *
 * @param [in] status  Why.
 *
 * @return Whether to open the others; if not, an error is logged.
 */
int uct_varuna_choice_leave_out(uct_varuna_iface_t *iface, ucs_status_t status);

/** All that were not left out are open. */
void uct_varuna_choice_done(uct_varuna_iface_t *iface);

#endif
