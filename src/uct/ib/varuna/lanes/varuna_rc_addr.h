/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Connects an RC endpoint to the peer's, whose address is in CONNECT_REQ or
 * CONNECT_REP. Called by the requester (varuna_rebuild.c) and by the responder
 * (varuna_connect.c).
 */
#ifndef UCT_VARUNA_RC_ADDR_H_
#define UCT_VARUNA_RC_ADDR_H_

#include <uct/ib/varuna/lanes/varuna_lanes.h>
#include <uct/ib/varuna/core/varuna_wire.h>

/**
 * Check the addresses after a message.
 *
 * @param [in] link  The link that must reach them.
 * @param [in] msg   Has passed uct_varuna_parse_ctl().
 *
 * @return UCS_ERR_INVALID_ADDR if UCX must not get such an address,
 *         UCS_ERR_UNREACHABLE if it is not reached.
 */
ucs_status_t uct_varuna_rc_addr_check(const uct_varuna_link_t *link,
                                      const uct_varuna_ctl_connect_t *msg);

/** Check them, and connect the inner endpoint @a ep. */
ucs_status_t uct_varuna_rc_connect(const uct_varuna_link_t *link, uct_ep_h ep,
                                   const uct_varuna_ctl_connect_t *msg);

#endif
