/* Copyright (C) rc_varuna authors, 2026. ALL RIGHTS RESERVED.
 * See LICENSE for terms (BSD-3-Clause).
 *
 * Writes the addresses of our interface; varuna_msg.c reads them.
 */
#ifndef UCT_VARUNA_ADDR_H_
#define UCT_VARUNA_ADDR_H_

#include <uct/ib/varuna/lanes/varuna_lanes.h>

/** Write the full interface address, which control messages carry.
 *  @return bytes used. */
size_t uct_varuna_iface_pack_full_address(uct_varuna_iface_t *iface,
                                          void *buffer, size_t max);

/** Write the short interface address, for which UCP has 63 bytes. It always has
 *  UCT_VARUNA_IFACE_ADDR_MAX bytes, zero after the last link: in unified mode, UCP uses
 *  the length of its own address for those of its peers. @return number of links that
 *  had room. */
unsigned uct_varuna_iface_pack_short_address(const uct_varuna_iface_t *iface,
                                             void *buffer);

#endif
