/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * The endpoints of an interface by their ids. Main thread, but the lock of the table
 * covers changes, for other readers.
 */
#ifndef UCT_VARUNA_EP_TABLE_H_
#define UCT_VARUNA_EP_TABLE_H_

#include "varuna_ep.h"

/** @return The endpoint with this vQP id, NULL if it is gone. */
uct_varuna_ep_t *uct_varuna_ep_find(uct_varuna_iface_t *iface, uint32_t id);

/** Give the endpoint an id by which it is found. */
ucs_status_t uct_varuna_ep_add(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

/** No thread finds it any more. */
void uct_varuna_ep_remove(uct_varuna_iface_t *iface, uct_varuna_ep_t *ep);

#endif
