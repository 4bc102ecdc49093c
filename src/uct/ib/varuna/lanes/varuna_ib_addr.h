/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Addresses that a peer sent. A port's (LID or GID) is checked before each use of it by UCX,
 * which takes its length from what it reads, and ends the process if the address is malformed.
 */
#ifndef UCT_VARUNA_IB_ADDR_H_
#define UCT_VARUNA_IB_ADDR_H_

#include "varuna_lanes.h"
#include <uct/ib/varuna/core/varuna_wire.h>

#include <stddef.h>

/**
 * @param [in] addr    A UCT device address of an inner transport, as a peer sent it.
 * @param [in] length  Its length.
 * @param [in] own     The same of our port from which it is to be reached.
 *
 * @return Nonzero if it is one. Whether it can be reached is another question.
 */
int uct_varuna_ib_addr_is_valid(const void *addr, size_t length, const void *own);

/** @return Bytes of the path MTU that an address asks for, 4096 if it does not limit it; 0 if
 *  the address has another length than its flags say. */
unsigned uct_varuna_ib_addr_mtu(const void *addr, size_t length);

/**
 * Lower the path MTU that an address asks for: UCX takes a peer's, unless that is 4096, even
 * if it is longer than its own.
 *
 * @param [in,out] addr  An address that is valid.
 * @param [in]     mtu   Bytes, as @ref uct_varuna_ib_addr_mtu returns it.
 */
void uct_varuna_ib_addr_limit_mtu(void *addr, size_t length, unsigned mtu);

/**
 * Write an address for people: a LID and its subnet, if that is not the default one; or a
 * GID.
 *
 * @param [out] text  Of @a max bytes; "?" if the address has another length than its
 *                    flags say.
 */
void uct_varuna_ib_addr_print(const void *addr, size_t length, char *text, size_t max);

/* --- Connecting RC --- */

/* Connects an RC endpoint to the peer's, whose address is in CONNECT_REQ or
 * CONNECT_REP. Called by the requester (varuna_rebuild.c) and by the responder
 * (varuna_connect.c). */

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
