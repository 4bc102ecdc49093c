/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Checks a port's address (LID or GID) that a peer sent, before UCX gets it: UCX
 * takes its length from what it reads, and ends the process if the address is malformed.
 * Pure; called before each use of such an address by UCX.
 */
#ifndef UCT_VARUNA_IB_ADDR_H_
#define UCT_VARUNA_IB_ADDR_H_

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

#endif
